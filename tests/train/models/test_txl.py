"""The Transformer-XL against the formulas of Dai et al. 2019, written as plain loops."""

import dataclasses
import math

import pytest
import torch

from pairscale.command.compose import compose
from pairscale.command.schemas import build
from pairscale.errors import ConfigError
from tests.support.random_models import TXL
from train.models.build import parameter_count
from train.models.config import TxlConfig
from train.models.loss import cross_entropy
from train.models.txl import TransformerXL

VOCABULARY = 11


def tiny(dtype=torch.float64, **values):
    config = dataclasses.replace(
        TXL, name="t", d_model=8, d_head=4, d_inner=12, memory=5, dropout=0.0, attention_dropout=0.0
    )
    config = dataclasses.replace(config, **values)
    torch.manual_seed(0)
    model = TransformerXL(config, VOCABULARY).to(dtype)
    for parameter in model.parameters():  # the initial weights are too small to tell terms apart
        torch.nn.init.normal_(parameter, 0.0, 0.5)
    return model, config


def encoding(distance, d_model):
    """Return R_i of Vaswani et al. 2017, all sines, then all cosines, as in the authors' code."""
    angles = [distance / 10000 ** (2 * k / d_model) for k in range(d_model // 2)]
    numbers = [math.sin(a) for a in angles] + [math.cos(a) for a in angles]
    return torch.tensor(numbers, dtype=torch.float64)


def naive_forward(model, config, tokens, memories):
    """Return hidden states and memories by section 3.3, for one (query, key) pair at a time.

    A = q·k + q·r + u·k + v·r; tokens (T,), memories [(m, D)].
    """
    x = model.embedding.weight[tokens] * math.sqrt(config.d_model)
    new_memories = []
    for layer, memory in zip(model.layers, memories, strict=True):
        past = torch.cat([memory, x])
        new_memories.append(past[max(0, len(past) - config.memory) :])
        attention = layer.attention
        width = config.heads * config.d_head
        rows = []
        for i in range(len(x)):
            heads = []
            for h in range(config.heads):
                part = slice(h * config.d_head, (h + 1) * config.d_head)
                q = (attention.query.weight @ x[i])[part]
                scores, values = [], []
                for j in range(len(past)):
                    back = len(memory) + i - j
                    if back < 0 or (config.same_length and back >= config.memory):
                        continue
                    distance = back if config.clamp_len is None else min(back, config.clamp_len)
                    key_value = attention.key_value.weight @ past[j]
                    k = key_value[:width][part]
                    r = (attention.distance.weight @ encoding(distance, config.d_model))[part]
                    u, v = model.u[h, 0, 0], model.v[h, 0, 0]
                    scores.append((q @ k + q @ r + u @ k + v @ r) / math.sqrt(config.d_head))
                    values.append(key_value[width:][part])
                weights = torch.stack(scores).softmax(0)
                heads.append((weights[:, None] * torch.stack(values)).sum(0))
            rows.append(attention.output.weight @ torch.cat(heads))
        x = layer.attention_norm(x + torch.stack(rows))
        x = layer.feed_forward_norm(x + layer.outer(torch.relu(layer.inner(x))))
    return x, new_memories


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"same_length": True, "clamp_len": 2},
        {"memory": 0},
        {"memory": 2, "same_length": True, "tied": False},  # a segment longer than the memory
    ],
)
def test_outputs_equal_the_formulas_over_three_segments(values):
    model, config = tiny(**values)
    state = model.initial_state(2)
    memories = [[torch.zeros(0, 8, dtype=torch.float64)] * 2 for _ in range(2)]
    for _ in range(3):
        tokens = torch.randint(VOCABULARY, (2, 4))
        with torch.no_grad():  # where torch's own attention is used
            scored, _ = model(tokens, state)
        hidden, state = model(tokens, state)
        torch.testing.assert_close(scored, hidden, rtol=1e-10, atol=1e-10)
        for column in range(2):
            expected, memories[column] = naive_forward(model, config, tokens[column], memories[column])
            torch.testing.assert_close(hidden[column], expected, rtol=1e-10, atol=1e-10)
        for layer in range(2):
            torch.testing.assert_close(state[layer], torch.stack([memories[c][layer] for c in range(2)]))


def test_gradients_equal_finite_differences():
    model, _ = tiny(layers=1, memory=3)
    tokens = torch.randint(VOCABULARY, (1, 3))
    _, state = model(torch.randint(VOCABULARY, (1, 3)), model.initial_state(1))
    names = ["u", "v", "layers.0.attention.distance.weight", "layers.0.attention.key_value.weight"]
    parameters = dict(model.named_parameters())

    def hidden(*values):
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), (tokens, state))[0]

    assert torch.autograd.gradcheck(hidden, [parameters[name] for name in names])


def test_attention_is_dropped_in_training_with_and_without_a_gradient():
    model, _ = tiny(attention_dropout=0.5)
    tokens = torch.randint(VOCABULARY, (1, 6))
    for gradient in (True, False):
        with torch.set_grad_enabled(gradient):
            one, other = (model.train()(tokens, model.initial_state(1))[0] for _ in range(2))
            assert not torch.allclose(one, other)
            one, other = (model.eval()(tokens, model.initial_state(1))[0] for _ in range(2))
            assert torch.equal(one, other)


@pytest.mark.slow
def test_a_compiled_model_trains_on_texts_of_any_length():
    """The model is traced with dynamic sizes, as by trainer.compile=true, but without generating code (minutes)."""
    model, _ = tiny(dropout=0.5, attention_dropout=0.5)
    compiled = torch.compile(model.train(), backend="eager", dynamic=True)
    state = model.initial_state(2)
    for length in (4, 5):
        hidden, state = compiled(torch.randint(VOCABULARY, (2, length)), state)
        hidden.square().sum().backward()
        assert hidden.isfinite().all()


def test_the_memory_has_no_storage_beyond_its_own_size():
    model, config = tiny()
    _, state = model(torch.randint(VOCABULARY, (2, 30)), model.initial_state(2))
    assert all(part.untyped_storage().nbytes() == 2 * config.memory * config.d_model * 8 for part in state)


def test_initial_weights_are_drawn_as_by_the_authors():
    torch.manual_seed(0)
    config = dataclasses.replace(TXL, d_model=64, heads=4, d_head=16, d_inner=256, tied=False, initial_sd=0.02)
    for name, parameter in TransformerXL(config, 500).named_parameters():
        if "norm.weight" in name:
            assert parameter.mean().item() == pytest.approx(1, abs=0.01)
        elif parameter.dim() == 1:
            assert parameter.count_nonzero() == 0
            continue
        assert parameter.std().item() == pytest.approx(0.02, rel=0.3), name


def test_bf16_autocast_keeps_a_float32_state_and_reaches_every_weight():
    model, _ = tiny(torch.float32, dropout=0.1, attention_dropout=0.1)
    state = model.initial_state(2)
    tokens = torch.randint(VOCABULARY, (2, 6))
    for _ in range(2):
        with torch.autocast("cpu", torch.bfloat16):
            hidden, state = model(tokens, state)
            loss = cross_entropy(hidden.flatten(0, 1), model.output_weight, model.output_bias, tokens.flatten())
    assert {part.dtype for part in state} == {torch.float32}
    loss.backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("values", [{"d_model": 7}, {"same_length": True, "memory": 0}, {"clamp_len": 0}])
def test_values_out_of_range_are_refused(values):
    with pytest.raises(ConfigError, match=rf"model\.{[*values][-1]}=\d"):
        build(TxlConfig, dataclasses.asdict(tiny()[1]) | values, "model.")


def test_the_base_model_has_the_published_number_of_parameters():
    """The number follows from the sizes that Dai et al. 2019 give for their base model."""
    d, inner, width = 410, 2100, 410
    layer = 5 * d * width + 2 * d * inner + inner + d + 4 * d
    config = compose("train", ["model=txl"]).model
    assert parameter_count(config, 1000) == 16 * layer + 2 * width + 1000 * d + 1000
