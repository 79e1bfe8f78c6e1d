"""Recurrent networks: carried state and trees of texts of all, equations of GRU and Elman network."""

import pytest
import torch

from eval.scorers.trees import forests
from pairscale.command.compose import compose
from train.models.build import build_model, parameter_count
from train.models.config import GruConfig, LstmConfig, RnnConfig

VALUES = {"name": "r", "embedding": 6, "hidden": 6, "layers": 2, "dropout": 0.0, "tied": False}
CONFIGS = [LstmConfig(**VALUES), GruConfig(**VALUES), RnnConfig(**VALUES)]


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


def test_outputs_of_a_gru_equal_the_gate_equations():
    """The equations are those of Cho et al. (2014) with the reset gate behind the product, one step at a time."""
    torch.manual_seed(0)
    model = build_model(GruConfig(**VALUES | {"layers": 1}), 9)
    gru, tokens, hidden, expected = model.gru, torch.randint(9, (1, 5)), torch.zeros(6), []
    for token in tokens[0]:
        of_input = (gru.weight_ih_l0 @ model.embedding.weight[token] + gru.bias_ih_l0).chunk(3)
        of_state = (gru.weight_hh_l0 @ hidden + gru.bias_hh_l0).chunk(3)
        reset, update = ((one + other).sigmoid() for one, other in zip(of_input[:2], of_state[:2], strict=True))
        new = (of_input[2] + reset * of_state[2]).tanh()
        hidden = (1 - update) * new + update * hidden
        expected.append(hidden)
    torch.testing.assert_close(hidden_states(model, tokens)[0], torch.stack(expected))


def test_outputs_of_an_elman_network_equal_its_equation():
    torch.manual_seed(0)
    model = build_model(RnnConfig(**VALUES | {"layers": 1}), 9)
    rnn, tokens, hidden, expected = model.rnn, torch.randint(9, (1, 5)), torch.zeros(6), []
    for token in tokens[0]:
        of_input = rnn.weight_ih_l0 @ model.embedding.weight[token] + rnn.bias_ih_l0
        hidden = (of_input + rnn.weight_hh_l0 @ hidden + rnn.bias_hh_l0).tanh()
        expected.append(hidden)
    torch.testing.assert_close(hidden_states(model, tokens)[0], torch.stack(expected))


@pytest.mark.parametrize("config", CONFIGS)
def test_trees_equal_texts(config):
    torch.manual_seed(0)
    model = build_model(config, 9).eval()
    texts = [torch.tensor(text) for text in ([0, 1, 2, 3, 4], [0, 1, 2, 5], [0, 6, 2, 3, 4, 5])]
    (forest,) = forests([text.numpy() for text in texts], torch.ones(3, dtype=torch.int64).numpy(), 64, 64)
    tokens, parents, depths, _, _ = forest.tensors(torch.device("cpu"))
    with torch.no_grad():
        hidden = model.read_trees(tokens, parents, depths, model.initial_state(1)).flatten(0, 1)
        places = iter(forest.rows[forest.by_text])
        for number in forest.texts:
            alone = hidden_states(model, texts[number][None, :-1])[0]
            for state in alone:
                torch.testing.assert_close(hidden[next(places)], state)


def test_sizes_follow_from_the_gates():
    for name, gates in (("gru", 3), ("rnn", 1)):
        config = compose("train", [f"model={name}"]).model
        layer = gates * 650 * (650 + 650 + 2)
        assert parameter_count(config, 1000) == 2 * 1000 * 650 + 1000 + 2 * layer
