"""Each result in README is that of a committed table, and no other number stands there."""

import re

import numpy as np
import pandas as pd
import pytest

from analysis.exhibits.tables.slopes import slope_table
from tests.support.committed_results import RESULTS, STUDY, analysed
from tests.support.readme_blocks import BLOCK, BLOCKS, README, bench_row, with_results

# Decimal numbers that are no results: versions, sections of papers, the level of intervals.
NO_RESULT = re.compile(r"3\.1[12]\b|\| 3\.[23] \||section \d\.\d|2024, 3\.2|95% intervals")


@pytest.fixture(scope="module")
def readme():
    return README.read_text(encoding="utf-8")


def test_results_are_those_of_the_committed_tables(readme):
    assert {match["name"] for match in BLOCK.finditer(readme)} == set(BLOCKS)
    assert with_results(readme) == readme, "python -m tests.support.readme_blocks writes them anew"


def test_no_number_stands_outside_of_them(readme):
    """Decimals, factors and shares of results, as "1.4 to 1.7 times" or ".86 to .93"."""
    text = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", BLOCK.sub("", readme), flags=re.DOTALL)
    left = [match[0] for match in re.finditer(r"(?<![\w.])\d*\.\d+\b|\d+ ?%|\d times", NO_RESULT.sub("", text))]
    assert left == []


def test_committed_tables_are_those_of_the_committed_accuracies():
    """Means and slopes by hand from points.csv; the intervals are tested where they are made."""
    folder = RESULTS / STUDY
    table = pd.read_csv(folder / "slopes.csv").set_index(["group", "name"])
    points = pd.read_csv(folder / "points.csv")
    for (group, name), part in points.groupby(["group", "name"]):
        means = part.groupby("words")["accuracy"].mean()
        assert table.at[(group, name), "accuracy 1M"] == pytest.approx(means[1_000_000])
        slope = np.polyfit(np.log2(means.index.to_numpy(dtype=float)), means.to_numpy(), 1)[0]  # sizes weigh equally
        assert table.at[(group, name), "slope"] == pytest.approx(slope)
    curves, differences = analysed()
    again = slope_table(curves).set_index(["group", "name"])
    columns = ["slope", "low", "high", "lack_of_fit", "rank", "rank_low", "rank_high"]
    pd.testing.assert_frame_equal(table[columns], again[columns], rtol=1e-6)
    kept = pd.read_csv(folder / "slope-differences.csv")
    columns = ["difference", "low", "high", "p_holm", "p_equivalent"]
    pd.testing.assert_frame_equal(kept[columns], differences[columns], rtol=1e-6)


def test_speeds_are_read_from_the_tables_of_the_bench():
    assert bench_row("LSTM, fp32")[1] == "597"
