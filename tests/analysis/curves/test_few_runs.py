"""Sizes of few runs: shown, but not part of lines."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.config import CONSERVATIVE, CurvesConfig
from analysis.curves.designs import sizes_of_few
from analysis.curves.fit import fit_curves
from analysis.curves.groups import few_notes, with_least_runs
from analysis.exhibits.sentences.findings import findings
from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from tests.support.judged_runs import judged_groups, overall

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=50, seed=1)
SIZES = [1000] * 3 + [2000] * 3 + [4000] * 3 + [8000]


@pytest.fixture(scope="module")
def judged():
    return judged_groups({"a": ([0.5, 0.6, 0.55, 0.62, 0.6, 0.64, 0.7, 0.68, 0.72, 0.9], SIZES)})


def test_sizes_of_fewer_runs_than_are_asked_for(judged):
    assert sizes_of_few(judged.runs, 1) == {}
    assert sizes_of_few(judged.runs, 2) == {"a": ["8000"]}
    assert sizes_of_few(judged.runs, 4) == {}  # no size would remain
    assert sizes_of_few(judged.runs.assign(training="one"), 2) == {}  # checkpoints
    assert few_notes(judged.runs, 2) == [
        "a: one run at 8,000: shown, but no part of its slope (analysis.least_runs=2)."
    ]
    assert few_notes(judged.runs, 1) == []


def test_a_number_that_would_leave_no_line_is_said_to_leave_out_nothing(judged):
    kept = ["a: analysis.least_runs=9 would leave fewer than two sizes, so no size is left out."]
    assert few_notes(judged.runs, 9) == kept
    assert few_notes(judged.runs.assign(training="one"), 9) == []  # checkpoints
    assert few_notes(judged.runs[:3], 9) == []  # one size has no line
    alone = judged.runs.drop_duplicates("size")
    assert few_notes(alone, 9) == kept
    assert few_notes(alone, 2) == []  # the note on the interval: one run a size
    assert fit_curves(with_least_runs(judged.of_runs([*alone.index]), 2), CONFIG).slopes["note"].unique().tolist() == [
        "one run a size: the interval rests on how straight the curve is"
    ]


def test_the_line_is_of_the_other_sizes_and_accuracies_are_of_all(judged):
    every = fit_curves(judged, CONFIG)
    curves = fit_curves(with_least_runs(judged, 2), CONFIG, shown=judged)
    pd.testing.assert_frame_equal(curves.accuracies, every.accuracies)
    pd.testing.assert_frame_equal(curves.points, every.points)
    row = overall(curves)
    assert np.isnan(overall(every)["low"])
    assert "analysis.cautioned_limits=conservative" in overall(every)["note"]
    every = fit_curves(judged, replace(CONFIG, cautioned_limits=CONSERVATIVE))
    assert row[["runs", "sizes", "from_size", "to_size"]].tolist() == [9, 3, "1000", "4000"]
    means = judged.outcome.mean(axis=1)[:9].reshape(3, 3).mean(axis=1)
    assert row["slope"] == pytest.approx(np.polyfit(np.log2([1000, 2000, 4000]), means, 1)[0], rel=1e-6)
    assert curves.lines["words"].max() == pytest.approx(4000)
    assert row["high"] - row["low"] < overall(every)["high"] - overall(every)["low"]
    assert overall(every)["note"].endswith("and is conservative; analysis.least_runs=2 leaves out such sizes")


def test_sentences_name_the_sizes_of_the_line(judged):
    (finding,) = findings(fit_curves(with_least_runs(judged, 2), CONFIG, shown=judged), "words", 0.95)
    assert "over 1,000 to 4,000 words" in finding.text
    assert "8,000" not in finding.full


def test_the_smallest_number_is_1():
    with pytest.raises(ConfigError, match=r"analysis\.least_runs=0: must be from 1 to 1000000"):
        compose("analysis", ["study=s", "analysis.least_runs=0"])
