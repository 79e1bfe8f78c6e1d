"""Measures of single pairs: the hardest, learned and lost, flipping, disputed."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.measures.items import (
    differing_spans,
    error_sample,
    flipping_pairs,
    hardest_pairs,
    learned_and_lost,
    mean_margins,
    seed_disagreement,
    token_differences,
)
from analysis.study.judgements import Judgements
from eval.scores.files import SCORES, TOKENS, write_scores, write_tokens
from tests.support.simulated_study import SimulatedStudy

PAIRS = pd.DataFrame(
    {"pair_id": ["0", "1", "0", "1"], "paradigm": ["a", "a", "b", "b"], "phenomenon": ["x", "x", "y", "y"]}
)


def judgements_of(outcome, sizes=("1k", "1k", "2k", "2k")):
    runs = pd.DataFrame(
        {"group": "g", "size": sizes, "sample_words": [1000 * int(size[0]) for size in sizes]},
        index=[f"run{n}" for n in range(len(sizes))],
    )
    outcome = np.asarray(outcome, np.float32)
    none = np.zeros(outcome.shape)
    return Judgements("l", "lp", "d", {}, runs, PAIRS, outcome, none, none > 0, pd.DataFrame())


def test_the_hardest_pairs_are_those_at_the_largest_size_equal_ones_by_margin():
    hardest = hardest_pairs(
        judgements_of([[1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 0, 0], [0, 0, 0, 0]]), np.array([0, 0, 1, -1]), 1
    )
    assert list(hardest["paradigm"]) == ["a", "b"]
    assert list(hardest["pair_id"]) == ["0", "1"]
    assert list(hardest["accuracy"]) == [0, 0]


def test_shares_of_pairs_learned_and_lost_between_the_smallest_and_largest_size():
    shares = learned_and_lost(judgements_of([[0, 1, 0, 0], [0, 1, 1, 0], [1, 0, 1, 0], [1, 0, 1, 1]])).set_index(
        "paradigm"
    )
    assert tuple(shares.loc["a", ["learned", "lost"]]) == (0.5, 0.5)
    assert tuple(shares.loc["b", ["learned", "lost"]]) == (0, 0)  # a mean of .5 is on neither side
    assert tuple(shares.loc["a", ["smallest", "largest"]]) == ("1k", "2k")
    assert learned_and_lost(judgements_of([[1, 1, 1, 1]] * 2, ("1k", "1k"))).empty


def test_flips_count_changes_of_the_majority_between_sizes():
    """Three sizes: pair a/0 turns right and wrong again, a/1 is split at the second, b/0 never changes."""
    outcome = [[0, 0, 1, 0], [0, 0, 1, 0], [1, 1, 1, 0], [1, 0, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1]]
    flips = flipping_pairs(judgements_of(outcome, ("1k", "1k", "2k", "2k", "4k", "4k")), each=2)
    rows = flips.set_index(["paradigm", "pair_id"])
    assert rows["flips"].to_dict() == {("a", "0"): 2, ("a", "1"): 1, ("b", "0"): 0, ("b", "1"): 1}
    assert rows["split"].tolist() == pytest.approx([0, 1 / 3, 1 / 3, 0])  # a/0, a/1, b/1, b/0: most flips first
    assert rows.loc[("a", "1"), "shares"] == {"1k": 0, "2k": 0.5, "4k": 1}
    assert flipping_pairs(judgements_of(outcome[:1], ("1k",))).empty


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=4, max_size=4), min_size=2, max_size=5))
def test_disagreement_equals_the_mean_over_pairs_of_runs(outcome):
    disagreement = seed_disagreement(judgements_of(outcome, ("1k",) * len(outcome))).set_index("name")["disagreement"]
    differences = [np.abs(np.subtract(one, other)) for one, other in itertools.combinations(outcome, 2)]
    of_pairs = np.mean(differences, axis=0)
    assert disagreement["x"] == pytest.approx(of_pairs[:2].mean())
    assert disagreement["y"] == pytest.approx(of_pairs[2:].mean())
    assert disagreement["overall"] == pytest.approx(of_pairs.mean())


def test_one_run_cannot_disagree():
    assert seed_disagreement(judgements_of([[1, 1, 1, 1]], ("1k",))).empty


@pytest.mark.parametrize(
    ("good", "bad", "first", "second"),
    [
        ("The cats sleep .", "The cats sleeps .", " sleep", " sleeps"),
        ("Cats sleep.", "Dogs sleep.", "Cats", "Dogs"),
        ("Julia saw herself.", "Julia saw himself.", " herself", " himself"),
        ("We ran.", "We ran away.", "", " away"),
        ("A cat.", "A dog.", " cat", " dog"),
        ("Only he ever won.", "He only ever won.", "Only he", "He only"),
        ("他看见她自己", "他看见他自己", "她", "他"),
        ("same", "same", "", ""),
    ],
)
def test_differing_spans_are_whole_words(good, bad, first, second):
    (a, b), (c, d) = differing_spans(good, bad)
    assert (good[a:b], bad[c:d]) == (first, second)


@given(st.text("ab .", max_size=12), st.text("ab .", max_size=12))
def test_sentences_are_equal_around_their_differing_spans(good, bad):
    (a, b), (c, d) = differing_spans(good, bad)
    assert (good[:a], good[b:]) == (bad[:c], bad[d:])
    assert 0 <= a <= b <= len(good)
    assert 0 <= c <= d <= len(bad)


@pytest.fixture
def tokens(tmp_path):
    """Return the items and token scores of "A cat sleeps." against "A cat sleep."; pair 1 has no tokens."""
    rows = [
        ("good", 0, 0, 1, -1.0), ("good", 1, 1, 5, -2.0), ("good", 2, 5, 12, -3.0), ("good", 3, 12, 13, -0.5),
        ("good", 4, 13, 13, -0.25), ("bad", 0, 0, 1, -1.0), ("bad", 1, 1, 5, -2.0), ("bad", 2, 5, 11, -3.5),
        ("bad", 3, 11, 12, -1.5), ("bad", 4, 12, 12, -0.5),
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["side", "position", "start", "end", "logprob"])
    frame = frame.assign(pair_id="0", paradigm="a", unk=False)[list(TOKENS.names)]
    write_tokens(tmp_path, frame, {"policy": {}, "benchmark": {"name": "blimp", "digest": "be" * 32}})
    items = PAIRS.assign(good="A cat sleeps.", bad="A cat sleep.")
    return tmp_path, items


def test_the_difference_of_a_pair_is_split_into_before_differing_and_after(tokens):
    differences = token_differences(*tokens)
    assert len(differences) == 1
    assert tuple(differences[["before", "differing", "after"]].iloc[0]) == pytest.approx((0, 0.5, 1.25))


def test_sampled_errors_carry_their_tokens(tokens):
    folder, items = tokens
    (entry,) = error_sample(folder, items, PAIRS, each=5, seed=1)
    assert [token["text"] for token in entry["good"]] == ["A", " cat", " sleeps", ".", "<eos>"]
    assert [token["differs"] for token in entry["bad"]] == [False, False, True, False, False]
    assert entry["bad"][2]["logprob"] == -3.5
    assert error_sample(folder, items, PAIRS.iloc[1:2], each=5, seed=1) == []


def test_margins_are_in_deviations_of_each_file(tmp_path):
    metadata = SimulatedStudy().metadata("m")
    paths = []
    for number, scale in enumerate((1.0, 10.0)):
        good = scale * np.array([1.0, -1.0, 3.0, 0.0])
        rows = PAIRS.iloc[::-1].assign(good=good[::-1], bad=0.0, good_lp=0.0, bad_lp=0.0).reindex(columns=SCORES.names)
        paths.append(tmp_path / f"{number}.parquet")
        write_scores(paths[-1], rows, metadata)
    expected = np.array([1.0, -1.0, 3.0, 0.0])
    assert mean_margins(paths, PAIRS) == pytest.approx(expected / expected.std(ddof=1))
