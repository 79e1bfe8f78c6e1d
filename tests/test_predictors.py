"""Accuracy by shallow predictors, against hand-made scores."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.predictors import PREDICTORS, accuracy_by_predictor, binned, shallow_predictors
from eval.scores import SCORES, write_scores
from tests.made_up_study import MadeUpStudy


def scores(count=200, seed=0):
    rng = np.random.default_rng(seed)
    words = rng.integers(3, 9, count)
    good, bad = rng.normal(-40, 8, (2, count))
    rows = pd.DataFrame({"pair_id": [str(n) for n in range(count)], "paradigm": "p", "good": good, "bad": bad})
    rows = rows.assign(good_lp=good, bad_lp=bad, good_words=words, bad_words=words)
    return rows.reindex(columns=SCORES.names)


def test_predictors_are_what_they_are_called():
    rows = pd.DataFrame({"good_words": [4], "good_lp": [-8.0], "bad_lp": [-9.5]})
    found = shallow_predictors(rows).iloc[0]
    assert tuple(found[list(PREDICTORS)]) == pytest.approx((4, np.exp(2), -8, 1.5))


def test_accuracy_in_bins_equals_a_group_by(tmp_path):
    tables = [scores(seed=seed) for seed in (1, 2)]
    for number, table in enumerate(tables):
        write_scores(tmp_path / f"{number}.parquet", table, MadeUpStudy().metadata("m"))
    files = pd.DataFrame({"group": "g", "path": [tmp_path / "0.parquet", tmp_path / "1.parquet"]})
    found = accuracy_by_predictor(files, "wrong", bins=4)
    joined = pd.concat(tables, ignore_index=True)
    right = joined["good"] > joined["bad"]
    expected = right.groupby(pd.qcut(joined["good_lp"], 4, labels=False)).mean()
    by_lp = found[found["predictor"] == "log_probability"]
    assert by_lp["accuracy"].to_numpy() == pytest.approx(expected.to_numpy())
    assert set(by_lp["judgements"]) == {100}
    assert set(by_lp["runs"]) == {2}
    assert ((by_lp["low"] < by_lp["accuracy"]) & (by_lp["accuracy"] < by_lp["high"])).all()
    assert found.groupby("predictor")["judgements"].sum().eq(400).all()


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(1, 10))
def test_bins_part_no_equal_values_and_none_is_empty(values, bins):
    values = np.asarray(values, dtype=float)
    found = binned(values, bins)
    assert set(found) == set(range(found.max() + 1))
    assert found.max() < bins
    of_value = pd.Series(found).groupby(values).nunique()
    assert (of_value == 1).all()
    assert (np.diff(found[np.argsort(values)]) >= 0).all()
