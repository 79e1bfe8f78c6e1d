"""The Transformer-XL against the formulas of Dai et al. 2019, written as plain loops."""

import math

import pytest
import torch

from train.config import TxlConfig
from train.txl import TransformerXL, relative_shift, sinusoids

VOCABULARY = 11


def tiny(**values):
    fixed = {
        "layers": 2,
        "d_model": 8,
        "heads": 2,
        "d_head": 4,
        "d_inner": 12,
        "dropout": 0.0,
        "attention_dropout": 0.0,
    }
    config = TxlConfig(**{"name": "t", "memory": 5, "same_length": False, "tied": True, **fixed, **values})
    torch.manual_seed(0)
    model = TransformerXL(config, VOCABULARY).double()
    for parameter in model.parameters():  # the initial weights are too small to tell terms apart
        torch.nn.init.normal_(parameter, 0.0, 0.5)
    return model, config


def naive_forward(model, config, tokens, memories):
    """Section 3.3, A = q·k + q·r + u·k + v·r, for one (query, key) pair at a time. tokens (T,), memories [(m, D)]."""
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
                    encoding = sinusoids(torch.tensor([distance]), config.d_model)[0].double()
                    key_value = attention.key_value.weight @ past[j]
                    k = key_value[:width][part]
                    r = (attention.distance.weight @ sinusoids(torch.tensor([distance]), config.d_model)[0].double())[
                        part
                    ]
                    u, v = model.u[h, 0], model.v[h, 0]
                    scores.append((q @ k + q @ r + u @ k + v @ r) / math.sqrt(config.d_head))
                    values.append(key_value[width:][part])
                weights = torch.stack(scores).softmax(0)
                heads.append((weights[:, None] * torch.stack(values)).sum(0))
            rows.append(attention.output.weight @ torch.cat(heads))
        x = layer.attention_norm(x + torch.stack(rows))
        x = layer.feed_forward_norm(x + layer.outer(torch.relu(layer.inner(x))))
    return x, new_memories


@pytest.fixture(autouse=True)
def _double_encodings(monkeypatch):
    """The model's sinusoids are float32; in float64 tests both sides must use the same."""
    import train.txl

    monkeypatch.setattr(train.txl, "sinusoids", lambda distances, d: sinusoids(distances, d).double())


@pytest.mark.parametrize("values", [{}, {"same_length": True}, {"clamp_len": 3}, {"same_length": True, "clamp_len": 2}])
def test_equals_the_formulas_over_three_segments(values):
    model, config = tiny(**values)
    state = model.initial_state(2)
    memories = [[torch.zeros(0, 8, dtype=torch.float64)] * 2 for _ in range(2)]
    for _ in range(3):
        tokens = torch.randint(VOCABULARY, (2, 4))
        hidden, state = model(tokens, state)
        for column in range(2):
            expected, memories[column] = naive_forward(model, config, tokens[column], memories[column])
            torch.testing.assert_close(hidden[column], expected, rtol=1e-10, atol=1e-10)
        for layer in range(2):
            torch.testing.assert_close(state[layer], torch.stack([memories[c][layer] for c in range(2)]))


def test_segments_with_enough_memory_equal_one_pass():
    model, _ = tiny(memory=12)
    tokens = torch.randint(VOCABULARY, (3, 12))
    whole, _ = model(tokens, model.initial_state(3))
    state, parts = model.initial_state(3), []
    for start in range(0, 12, 4):
        part, state = model(tokens[:, start : start + 4], state)
        parts.append(part)
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-10, atol=1e-10)


def test_what_follows_changes_nothing_before_it():
    model, _ = tiny()
    tokens = torch.randint(VOCABULARY, (1, 7))
    changed = tokens.clone()
    changed[0, 5:] = (changed[0, 5:] + 1) % VOCABULARY
    left, _ = model(tokens, model.initial_state(1))
    right, _ = model(changed, model.initial_state(1))
    torch.testing.assert_close(left[:, :5], right[:, :5], rtol=0, atol=1e-12)
    assert not torch.allclose(left[:, 5:], right[:, 5:])


def test_relative_shift_moves_row_i_left_by_what_it_lacks():
    scores = torch.arange(12.0).view(1, 1, 3, 4)
    shifted = relative_shift(scores)[0, 0]
    for i in range(3):
        valid = 4 - (2 - i)
        assert shifted[i, :valid].tolist() == scores[0, 0, i, 2 - i :].tolist()


def test_memory_gets_no_gradient_and_both_biases_do():
    model, _ = tiny()
    hidden, state = model(torch.randint(VOCABULARY, (1, 4)), model.initial_state(1))
    hidden, state = model(torch.randint(VOCABULARY, (1, 4)), state)
    assert not any(memory.requires_grad for memory in state)
    hidden.square().sum().backward()
    assert model.u.grad is not None
    assert model.u.grad.abs().sum() > 0
    assert model.v.grad is not None
    assert model.v.grad.abs().sum() > 0


def test_parameters_of_the_published_base_model():
    """Counted from the sizes that Dai et al. 2019 give for their base model."""
    from conf import compose
    from train.models import parameter_count

    config = compose("train", ["model=txl"]).model
    d, inner, width = 410, 2100, 410
    layer = 5 * d * width + 2 * d * inner + inner + d + 4 * d
    assert parameter_count(config, 1000) == 16 * layer + 2 * width + 1000 * d + 1000
