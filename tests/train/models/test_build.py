"""Models without weights: their shapes, and what building them loads; dropout with masks of our own."""

import pytest
import torch
from scipy import stats

from pairscale.command.compose import compose
from train.models.build import Dropout, build_model, without_weights


@pytest.mark.parametrize("name", ["lstm_tiny", "txl_tiny", "gru", "gpt2"])
def test_models_without_weights_have_the_shapes_of_others(name):
    config = compose("train", [f"model={name}"]).model
    with without_weights():
        empty = build_model(config, 100).state_dict()
    assert all(weight.is_meta for weight in empty.values())
    real = build_model(config, 100).state_dict()
    assert {name: weight.shape for name, weight in real.items()} == {name: w.shape for name, w in empty.items()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("p", [0.1, 0.2, 0.5])
def test_elements_are_dropped_with_probability_p_and_the_others_scaled(p, dtype):
    torch.manual_seed(1)
    values = torch.ones(401, 1003, dtype=dtype)  # an odd number of elements
    dropped = Dropout(p)(values)
    assert dropped.dtype == dtype
    zeros = int((dropped == 0).sum())
    assert stats.binomtest(zeros, values.numel(), p).pvalue > 1e-3
    torch.testing.assert_close(dropped[dropped != 0], torch.full((values.numel() - zeros,), 1 / (1 - p), dtype=dtype))
    by_place = torch.stack([Dropout(p)(torch.ones(64, dtype=dtype)) == 0 for _ in range(4000)]).double().mean(0)
    assert stats.kstest((by_place - p) / (p * (1 - p) / 4000) ** 0.5, "norm").pvalue > 1e-3  # halves of a draw alike


@pytest.mark.parametrize(("p", "alive"), [(1e-9, 1.0), (1 - 1e-9, 0.0)])
def test_probabilities_near_0_and_1_drop_almost_nothing_and_almost_all(p, alive):
    torch.manual_seed(1)
    dropped = Dropout(p)(torch.ones(1000, dtype=torch.bfloat16))
    assert (dropped != 0).double().mean().item() == alive
    assert dropped.isfinite().all()


def test_the_gradient_has_the_mask_of_the_value():
    torch.manual_seed(1)
    values = torch.randn(30, 7, requires_grad=True)
    dropped = Dropout(0.3)(values)
    dropped.sum().backward()
    torch.testing.assert_close(values.grad, (dropped / values).detach())


def test_masks_follow_the_seed_and_evaluation_has_none():
    layer, values = Dropout(0.5), torch.randn(5, 6)
    masks = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        masks.append(layer(values) == 0)
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])
    assert layer.eval()(values) is values
    assert torch.equal(Dropout(0.0)(values), values)
    assert Dropout(0.3)(torch.empty(0, 5)).shape == (0, 5)
