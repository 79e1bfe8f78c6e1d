"""Trajectories over words seen, and what the vocabulary does, from numbers made by hand."""

import numpy as np
import pandas as pd
import pytest

from analysis.collect import collect
from analysis.judgements import judgements
from analysis.trajectories import trajectories
from analysis.vocabulary import unequal_unk, vocabulary_effects
from corpora.errors import RunError
from eval.scores import read_scores, score_path, write_scores
from tests.made_up_study import MadeUpStudy


def points(**columns):
    return pd.DataFrame({"group": "lstm, 1M", "level": "overall", "name": "overall", **columns})


def test_means_over_runs_at_each_moment():
    table = trajectories(
        points(run=list("ababb"), words_seen=[10, 10, 20, 20, 30], accuracy=[0.5, 0.7, 0.6, 0.6, 0.8]), 0.95
    )
    assert table["words_seen"].tolist() == [10, 20, 30]
    assert table["runs"].tolist() == [2, 2, 1]
    np.testing.assert_allclose(table["accuracy"], [0.6, 0.6, 0.8])
    # t(.975, 1 degree) is 12.7: the interval is cut at 0 and 1.
    np.testing.assert_allclose(table[["low", "high"]].to_numpy(), [[0, 1], [0.6, 0.6], [np.nan, np.nan]])


def test_sizes_are_no_moments():
    taken = points(run=list("ab"), words_seen=[10, 10], accuracy=[0.5, 0.6], sample_words=[10, 20])
    with pytest.raises(RunError, match="samples of 2 sizes in one trajectory"):
        trajectories(taken, 0.95)
    with pytest.raises(RunError, match="two accuracies at one number of words seen"):
        trajectories(points(run=list("aa"), words_seen=[10, 10], accuracy=[0.5, 0.6]), 0.95)


def test_shares_of_ties_and_unknown_words(tmp_path):
    made_up = MadeUpStudy(models=("lstm_tiny",), sizes=("125k", "250k"), unk_share=0.4)
    folders = made_up.write(tmp_path)
    # In one run half of the pairs with <unk> get it in both sentences: they are no longer unequal.
    path = score_path(folders[0].scores("blimp"), "lp")
    scores, metadata = read_scores(path)
    (with_unk,) = np.nonzero(scores["good_unk"].to_numpy() > 0)
    half = with_unk[: len(with_unk) // 2]
    scores.loc[half, "bad_unk"] = scores.loc[half, "good_unk"]
    scores.loc[:2, "bad"] = scores.loc[:2, "good"]
    write_scores(path, scores, metadata)
    study = collect(tmp_path, "made_up")
    judged = judgements(study, "blimp", "lp", "wrong")
    unequal = unequal_unk(study, "blimp", "lp")
    first = folders[0].path.name
    assert unequal[first] == pytest.approx((len(with_unk) - len(half)) / len(scores))
    table = vocabulary_effects(judged, unequal)
    assert table["size"].tolist() == ["125k", "250k"]
    row = table.iloc[0]
    assert row["ties"] == pytest.approx(3 / len(scores) / 2)
    assert row["unk"] == pytest.approx(len(with_unk) / len(scores))
    assert row["unequal_unk"] == pytest.approx((unequal[first] + row["unk"]) / 2)
    assert row["decided_unk"] == pytest.approx(row["unequal_unk"] / row["unk"])
    assert (table["unk"].diff().dropna() < 0).all()
