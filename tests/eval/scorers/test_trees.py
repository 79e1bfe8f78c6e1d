"""Trees of texts: a token that is asked for stands after the beginning of its own text, and none is read twice."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eval.scorers.trees import forests
from tests.support.random_models import LSTM, TXL
from train.models.base import ancestors
from train.models.lstm import LstmLanguageModel
from train.models.txl import TransformerXL


def walk(forest, row, place):
    """The tokens from the beginning of a text to the one at a place, and how many stand before it."""
    tokens = []
    depth = forest.depths[row, place]
    while place >= 0:
        tokens.append(int(forest.tokens[row, place]))
        place = forest.parents[row, place]
    return tokens[::-1], depth


texts_of = st.lists(st.lists(st.integers(0, 3), min_size=0, max_size=7), min_size=1, max_size=12, unique_by=tuple)


@given(texts_of, st.integers(0, 12), st.integers(1, 40), st.randoms(use_true_random=False))
def test_what_is_asked_for_follows_its_own_text(bodies, capacity, batch_tokens, random):
    texts = [np.asarray([0, *body]) for body in bodies]
    first = np.asarray([random.randint(1, len(text)) for text in texts])
    seen = {}
    for forest in forests(texts, first, capacity, batch_tokens):
        width = forest.tokens.shape[1]
        assert forest.tokens.size <= batch_tokens or len(forest.tokens) == 1
        assert np.all(np.diff(forest.rows) >= 0)
        where = np.arange(len(forest.rows), dtype=np.float64)
        for index, places in forest.results(where):
            assert index not in seen
            seen[index] = len(places)
            for position, place in enumerate(places.astype(int), start=first[index]):
                before, depth = walk(forest, *divmod(int(forest.rows[place]), width))
                assert before == texts[index][:position].tolist()
                assert depth == position - 1
                assert forest.targets[place] == texts[index][position]
    assert seen == {index: len(text) - first[index] for index, text in enumerate(texts)}


@given(texts_of)
def test_one_tree_reads_each_beginning_once(bodies):
    texts = [np.asarray([0, *body]) for body in bodies]
    (forest,) = forests(texts, np.ones(len(texts), np.int64), 1000, 1000)
    beginnings = {tuple(text[:end]) for text in texts for end in range(1, len(text))}
    read = [tuple(walk(forest, 0, place)[0]) for place in range(forest.tokens.shape[1])]
    assert sorted(read) == sorted(beginnings)


def test_ancestors_of_a_tree_by_hand():
    #  0 - 1 - 2      3 is a second child of 0
    #    \ 3
    found = ancestors(torch.tensor([[-1, 0, 1, 0]]))[0].int().tolist()
    assert found == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 0, 1]]


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
def test_trees_are_read_as_their_texts_are(model, remembered):
    """Two trees of three texts each after a context, against each text in a row of its own."""
    torch.manual_seed(1)
    net = (LstmLanguageModel if model is LSTM else TransformerXL)(model, 11).eval()
    with torch.no_grad():
        for weight in net.parameters():
            weight.normal_(std=0.5)
        state = net.initial_state(1)
        if remembered:
            _, state = net(torch.randint(11, (1, remembered)), state)
        texts = [[1, 2, 3, 4, 5, 6], [1, 2, 3, 7], [1, 8, 3], [2, 2, 2, 2, 2], [2, 2, 9, 1], [2, 9, 9]]
        # Of the last token of a text nothing is read, so one more is added that is only asked for.
        asked = [np.asarray([*text, 0]) for text in texts]
        (forest,) = forests(asked, np.ones(6, np.int64), 9, 1000)
        assert len(forest.tokens) == 2
        tokens, parents, depths, _, _ = forest.tensors(torch.device("cpu"))
        hidden = net.read_trees(tokens, parents, depths, state).flatten(0, 1)
        for index, places in forest.results(np.arange(len(forest.rows), dtype=np.float64)):
            expected, _ = net(torch.tensor([texts[index]]), state)
            torch.testing.assert_close(hidden[forest.rows[places.astype(int)]], expected[0], atol=1e-5, rtol=1e-5)
