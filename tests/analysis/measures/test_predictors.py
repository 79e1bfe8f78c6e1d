"""Accuracy by shallow predictors, from small tables of scores."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.measures.predictors import (
    PREDICTORS,
    accuracy_by_predictor,
    accuracy_in_bins,
    quantile_bins,
    shallow_predictors,
)
from eval.scores.files import SCORES, write_scores
from tests.support.simulated_study import SimulatedStudy


def scores(count=200, seed=0):
    rng = np.random.default_rng(seed)
    words = rng.integers(3, 9, count)
    good, bad = rng.normal(-40, 8, (2, count))
    rows = pd.DataFrame({"pair_id": [str(n) for n in range(count)], "paradigm": "p", "good": good, "bad": bad})
    rows = rows.assign(good_lp=good, bad_lp=bad, good_words=words, bad_words=words)
    return rows.reindex(columns=SCORES.names)


def test_predictors_are_computed_from_the_scores():
    rows = pd.DataFrame({"good_words": [4], "good_lp": [-8.0], "bad_lp": [-9.5]})
    predictors = shallow_predictors(rows).iloc[0]
    assert tuple(predictors[list(PREDICTORS)]) == pytest.approx((4, np.exp(2), -8, 1.5))


def test_accuracy_in_bins_equals_a_group_by(tmp_path):
    tables = [scores(seed=seed) for seed in (1, 2)]
    for number, table in enumerate(tables):
        write_scores(tmp_path / f"{number}.parquet", table, SimulatedStudy().metadata("m"))
    files = pd.DataFrame({"group": "g", "path": [tmp_path / "0.parquet", tmp_path / "1.parquet"]})
    accuracies = accuracy_by_predictor(files, "wrong", bins=4)
    joined = pd.concat(tables, ignore_index=True)
    right = joined["good"] > joined["bad"]
    expected = right.groupby(pd.qcut(joined["good_lp"], 4, labels=False)).mean()
    by_lp = accuracies[accuracies["predictor"] == "log_probability"]
    assert by_lp["accuracy"].to_numpy() == pytest.approx(expected.to_numpy())
    assert set(by_lp["judgements"]) == {100}
    assert set(by_lp["runs"]) == {2}
    assert ((by_lp["low"] < by_lp["accuracy"]) & (by_lp["accuracy"] < by_lp["high"])).all()
    assert accuracies.groupby("predictor")["judgements"].sum().eq(400).all()


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(1, 10))
def test_equal_values_fall_into_one_bin(values, bins):
    numbers = quantile_bins(pd.Series(values), pd.Series("p", index=range(len(values))), bins)
    assert numbers.between(0, bins - 1).all()
    assert (numbers.groupby(pd.Series(values)).nunique() == 1).all()
    assert (np.diff(numbers.to_numpy()[np.argsort(values, kind="stable")]) >= 0).all()


def two_paradigms(rng, count, accuracy, within):
    """Return judgements of an easy paradigm of long sentences and of a hard one of short sentences."""
    parts = []
    for name, middle, share in (("easy", 12, accuracy + 0.2), ("hard", 5, accuracy - 0.2)):
        place = rng.uniform(-1, 1, count)
        right = rng.uniform(size=count) < share + within * place
        parts.append(pd.DataFrame({"paradigm": name, "length": middle + 4 * place, "outcome": right.astype(float)}))
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("within", [0.0, -0.15])
def test_paradigms_of_unequal_difficulty_cause_no_slope(within):
    """Simpson's paradox: longer sentences are easier in the pooled data, but not within each paradigm."""
    judged = two_paradigms(np.random.default_rng(0), 20_000, 0.7, within)
    pooled = judged.groupby(pd.qcut(judged["length"], 10, labels=False))["outcome"].mean().to_numpy()
    assert pooled[-1] - pooled[0] > 0.1
    rows = pd.DataFrame(accuracy_in_bins(judged, ["length"], "g", runs=1))
    centres = (2 * np.arange(10) + 1) / 10 - 1
    np.testing.assert_allclose(rows["accuracy"], 0.7 + within * centres, atol=0.025)
    assert rows["judgements"].eq(4000).all()
    assert ((rows["low"] < rows["accuracy"]) & (rows["accuracy"] < rows["high"])).all()


def test_a_paradigm_of_one_length_is_in_no_bin():
    judged = two_paradigms(np.random.default_rng(1), 500, 0.7, 0.1)
    constant = pd.DataFrame({"paradigm": "same", "length": 7.0, "outcome": 1.0}, index=range(500))
    rows = accuracy_in_bins(pd.concat([judged, constant], ignore_index=True), ["length"], "g", 1)
    assert rows == accuracy_in_bins(judged, ["length"], "g", 1)


def test_the_interval_of_a_bin_covers_its_true_accuracy():
    rng = np.random.default_rng(2)
    held = []
    for _ in range(200):
        row = accuracy_in_bins(two_paradigms(rng, 200, 0.7, -0.1), ["length"], "g", 1, bins=4)[0]
        held.append(row["low"] < 0.7 - 0.1 * -0.75 < row["high"])
    assert 0.92 <= np.mean(held) <= 0.99
