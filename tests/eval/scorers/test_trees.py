"""Trees of texts: each target follows the beginning of its own text, and no shared beginning is read twice."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eval.scorers.trees import forests
from tests.support.random_models import LSTM, TXL
from train.models.base import ancestors
from train.models.recurrent import LstmLanguageModel
from train.models.txl import TransformerXL


def walk(forest, row, place):
    """Return the tokens from the beginning of a text to the one at a place, and its depth."""
    tokens = []
    depth = forest.depths[row, place]
    while place >= 0:
        tokens.append(int(forest.tokens[row, place]))
        place = forest.parents[row, place]
    return tokens[::-1], depth


texts_of = st.lists(st.lists(st.integers(0, 3), min_size=0, max_size=7), min_size=1, max_size=12, unique_by=tuple)


@given(texts_of, st.integers(0, 12), st.integers(1, 40), st.randoms(use_true_random=False))
def test_each_target_follows_its_own_text(bodies, capacity, batch_tokens, random):
    texts = [np.asarray([0, *body]) for body in bodies]
    first = np.asarray([random.randint(1, len(text)) for text in texts])
    lengths = {}
    for forest in forests(texts, first, capacity, batch_tokens):
        width = forest.tokens.shape[1]
        assert forest.tokens.size <= batch_tokens or len(forest.tokens) == 1
        assert np.all(np.diff(forest.rows) >= 0)
        where = np.arange(len(forest.rows), dtype=np.float64)
        for index, places in forest.results(where):
            assert index not in lengths
            lengths[index] = len(places)
            for position, place in enumerate(places.astype(int), start=first[index]):
                before, depth = walk(forest, *divmod(int(forest.rows[place]), width))
                assert before == texts[index][:position].tolist()
                assert depth == position - 1
                assert forest.targets[place] == texts[index][position]
    assert lengths == {index: len(text) - first[index] for index, text in enumerate(texts)}


@given(texts_of)
def test_one_tree_reads_each_shared_beginning_once(bodies):
    texts = [np.asarray([0, *body]) for body in bodies]
    (forest,) = forests(texts, np.ones(len(texts), np.int64), 1000, 1000)
    beginnings = {tuple(text[:end]) for text in texts for end in range(1, len(text))}
    paths = [tuple(walk(forest, 0, place)[0]) for place in range(forest.tokens.shape[1])]
    assert sorted(paths) == sorted(beginnings)


def test_ancestors_of_a_tree_are_as_written_by_hand():
    #  0 - 1 - 2      3 is a second child of 0
    #    \ 3
    mask = ancestors(torch.tensor([[-1, 0, 1, 0]]))[0].int().tolist()
    assert mask == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 0, 1]]


@pytest.mark.parametrize("remembered", [0, 3, 9])
@pytest.mark.parametrize(
    "model",
    [
        LSTM,
        TXL,
        TXL.__class__(**vars(TXL) | {"memory": 4, "same_length": True}),
        TXL.__class__(**vars(TXL) | {"memory": 4, "clamp_len": 2}),
        TXL.__class__(**vars(TXL) | {"pre_norm": True, "cutoffs": [4, 8], "div_val": 2}),
    ],
    ids=["lstm", "txl", "same_length", "clamp_len", "pre_norm and adaptive"],
)
def test_hidden_states_of_a_tree_equal_those_of_its_texts(model, remembered):
    """Two trees of three texts each, after a context, are compared with the texts in rows of their own."""
    torch.manual_seed(1)
    net = (LstmLanguageModel if model is LSTM else TransformerXL)(model, 11).eval()
    with torch.no_grad():
        for weight in net.parameters():
            weight.normal_(std=0.5)
        state = net.initial_state(1)
        if remembered:
            _, state = net(torch.randint(11, (1, remembered)), state)
        texts = [[1, 2, 3, 4, 5, 6], [1, 2, 3, 7], [1, 8, 3], [2, 2, 2, 2, 2], [2, 2, 9, 1], [2, 9, 9]]
        # The last token of a text is only a target, so one more is added for comparison.
        targets = [np.asarray([*text, 0]) for text in texts]
        (forest,) = forests(targets, np.ones(6, np.int64), 9, 1000)
        assert len(forest.tokens) == 2
        tokens, parents, depths, _, _ = forest.tensors(torch.device("cpu"))
        hidden = net.read_trees(tokens, parents, depths, state).flatten(0, 1)
        for index, places in forest.results(np.arange(len(forest.rows), dtype=np.float64)):
            expected, _ = net(torch.tensor([texts[index]]), state)
            torch.testing.assert_close(hidden[forest.rows[places.astype(int)]], expected[0], atol=1e-5, rtol=1e-5)
