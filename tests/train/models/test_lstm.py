"""The LSTM: state, size and initialisation as published."""

import pytest
import torch

import train.models.recurrent
from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from train.models.build import build_model, parameter_count
from train.models.config import LstmConfig
from train.models.loss import cross_entropy
from train.models.recurrent import LstmLanguageModel


def tiny(**values):
    return LstmConfig(
        **{"name": "l", "embedding": 6, "hidden": 6, "layers": 2, "dropout": 0.0, "tied": False, **values}
    )


def test_outputs_equal_the_gate_equations():
    """The equations are Hochreiter and Schmidhuber's (1997) with a forget gate, one layer and step at a time."""
    torch.manual_seed(0)
    model = LstmLanguageModel(tiny(layers=1), 9)
    lstm = model.lstm
    tokens = torch.randint(9, (1, 5))
    hidden, cell, expected = torch.zeros(6), torch.zeros(6), []
    for token in tokens[0]:
        gates = lstm.weight_ih_l0 @ model.embedding.weight[token] + lstm.bias_ih_l0
        gates = gates + lstm.weight_hh_l0 @ hidden + lstm.bias_hh_l0
        i, f, g, o = gates.chunk(4)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        hidden = o.sigmoid() * cell.tanh()
        expected.append(hidden)
    result, _ = model(tokens, model.initial_state(1))
    torch.testing.assert_close(result[0], torch.stack(expected))


@pytest.mark.parametrize(
    ("name", "embedding", "hidden"), [("lstm", 650, 650), ("lstm_blimp", 200, 650), ("lstm_climp", 200, 200)]
)
def test_configurations_have_the_published_sizes(name, embedding, hidden):
    config = compose("train", [f"model={name}"]).model
    first = 4 * hidden * (embedding + hidden + 2)
    second = 4 * hidden * (2 * hidden + 2)
    assert parameter_count(config, 1000) == 1000 * embedding + first + second + 1000 * hidden + 1000


def test_tied_weights_are_one_tensor():
    model = build_model(tiny(tied=True), 9)
    assert model.output_weight is model.embedding.weight
    assert parameter_count(tiny(tied=True), 9) == parameter_count(tiny(), 9) - 9 * 6
    with pytest.raises(ConfigError, match=r"got 4 and 6"):
        tiny(tied=True, embedding=4)


def test_initial_weights_and_dropout_are_as_published():
    torch.manual_seed(0)
    model = LstmLanguageModel(tiny(embedding=50, hidden=50, dropout=0.5), 400)
    for weight in (model.embedding.weight, model.output_weight):
        assert weight.abs().max().item() == pytest.approx(0.1, rel=0.01)
        assert weight.std().item() == pytest.approx(0.2 / 12**0.5, rel=0.02)
    assert model.output_bias.count_nonzero() == 0
    assert model.lstm.dropout == 0.5
    hidden, _ = model(torch.randint(400, (10, 20)), model.initial_state(10))
    assert (hidden == 0).float().mean().item() == pytest.approx(0.5, abs=0.03)
    model.eval()
    hidden, _ = model(torch.randint(400, (10, 20)), model.initial_state(10))
    assert not (hidden == 0).any()


def test_bf16_autocast_trains():
    torch.manual_seed(0)
    model = build_model(tiny(), 9)
    state = model.initial_state(2)
    tokens = torch.randint(9, (2, 6))
    for _ in range(2):
        with torch.autocast("cpu", torch.bfloat16):
            hidden, state = model(tokens, state)
            loss = cross_entropy(hidden.flatten(0, 1), model.output_weight, model.output_bias, tokens.flatten())
    loss.backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in model.parameters())


def test_layers_are_fp32_on_a_cpu_without_bf16(monkeypatch):
    monkeypatch.setattr(train.models.recurrent, "cpu_has_bf16", lambda: False)
    torch.manual_seed(0)
    model = build_model(tiny(), 9).eval()
    tokens = torch.randint(9, (2, 6))
    exact, _ = model(tokens, model.initial_state(2))
    with torch.autocast("cpu", torch.bfloat16):
        hidden, _ = model(tokens, model.initial_state(2))
    assert torch.equal(hidden, exact)
