"""Recurrent networks: carried state, equations, sizes and initialisation as published."""

import pytest
import torch

import train.models.recurrent
from pairscale.command.compose import compose
from train.models.build import build_model, parameter_count
from train.models.config import GruConfig, LstmConfig, RnnConfig
from train.models.recurrent import LstmLanguageModel

VALUES = {"name": "r", "embedding": 6, "hidden": 6, "layers": 2, "dropout": 0.0, "tied": False}
CONFIGS = [LstmConfig(**VALUES), GruConfig(**VALUES), RnnConfig(**VALUES)]


def tiny(**values):
    return LstmConfig(**{**VALUES, **values})


def hidden_states(model, tokens):
    return model(tokens, model.initial_state(len(tokens)))[0]


@pytest.mark.parametrize("config", CONFIGS)
def test_carried_state_equals_one_long_pass(config):
    torch.manual_seed(0)
    model = build_model(config, 9)
    tokens = torch.randint(9, (3, 10))
    first, state = model(tokens[:, :4], model.initial_state(3))
    second, after = model(tokens[:, 4:], state)
    torch.testing.assert_close(torch.cat([first, second], 1), hidden_states(model, tokens))
    assert {part.shape for part in after} == {(2, 3, 6)}
    assert not any(part.requires_grad for part in after)


def lstm_step(of_input, of_state, hidden, cell):
    """Hochreiter and Schmidhuber's (1997) equations with a forget gate."""
    i, f, g, o = (of_input + of_state).chunk(4)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def gru_step(of_input, of_state, hidden, cell):
    """The equations of Cho et al. (2014), with the reset gate behind the product."""
    reset, update, new = zip(of_input.chunk(3), of_state.chunk(3), strict=True)
    keep = sum(update).sigmoid()
    return (1 - keep) * (new[0] + sum(reset).sigmoid() * new[1]).tanh() + keep * hidden, cell


def rnn_step(of_input, of_state, hidden, cell):
    """Elman's equation."""
    return (of_input + of_state).tanh(), cell


@pytest.mark.parametrize(("kind", "step"), [("lstm", lstm_step), ("gru", gru_step), ("rnn", rnn_step)])
def test_outputs_equal_the_equations(kind, step):
    torch.manual_seed(0)
    described = {"lstm": LstmConfig, "gru": GruConfig, "rnn": RnnConfig}[kind](**VALUES | {"layers": 1})
    model, tokens = build_model(described, 9), torch.randint(9, (1, 5))
    layer, hidden, cell, expected = getattr(model, kind), torch.zeros(6), torch.zeros(6), []
    for token in tokens[0]:
        of_input = layer.weight_ih_l0 @ model.embedding.weight[token] + layer.bias_ih_l0
        hidden, cell = step(of_input, layer.weight_hh_l0 @ hidden + layer.bias_hh_l0, hidden, cell)
        expected.append(hidden)
    torch.testing.assert_close(hidden_states(model, tokens)[0], torch.stack(expected))


@pytest.mark.parametrize(
    ("name", "gates", "embedding", "hidden"),
    [("lstm", 4, 650, 650), ("lstm_blimp", 4, 200, 650), ("lstm_climp", 4, 200, 200), ("gru", 3, 650, 650)],
)
def test_configurations_have_the_published_sizes(name, gates, embedding, hidden):
    config = compose("train", [f"model={name}"]).model
    layers = gates * hidden * (embedding + hidden + 2) + gates * hidden * (2 * hidden + 2)
    assert parameter_count(config, 1000) == 1000 * embedding + layers + 1000 * hidden + 1000


def test_tied_weights_are_one_tensor():
    model = build_model(tiny(tied=True), 9)
    assert model.output_weight is model.embedding.weight
    assert parameter_count(tiny(tied=True), 9) == parameter_count(tiny(), 9) - 9 * 6


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


@pytest.mark.parametrize("config", CONFIGS)
def test_bf16_autocast_trains(config):
    torch.manual_seed(0)
    model = build_model(config, 9)
    state, tokens = model.initial_state(2), torch.randint(9, (2, 6))
    for _ in range(2):
        with torch.autocast("cpu", torch.bfloat16):
            hidden, state = model(tokens, state)
            loss = model.loss(hidden.flatten(0, 1), tokens.flatten())
    loss.backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in model.parameters())


def test_layers_are_fp32_on_a_cpu_without_bf16(monkeypatch):
    monkeypatch.setattr(train.models.recurrent, "cpu_has_bf16", lambda: False)
    torch.manual_seed(0)
    model, tokens = build_model(tiny(), 9).eval(), torch.randint(9, (2, 6))
    exact = hidden_states(model, tokens)
    with torch.autocast("cpu", torch.bfloat16):
        hidden = hidden_states(model, tokens)
    assert torch.equal(hidden, exact)
