"""Each result in README is that of a committed table, and no other number stands there."""

import re

import pandas as pd
import pytest

from tests.readme_blocks import BLOCK, BLOCKS, README, RESULTS, bench_row, curves_of, with_results

# Decimal numbers that are no results: versions, sections of papers, the level of intervals.
NO_RESULT = re.compile(r"3\.1[12]\b|\| 3\.[23] \||section \d\.\d|2024, 3\.2|95% intervals")


@pytest.fixture(scope="module")
def readme():
    return README.read_text(encoding="utf-8")


def test_results_are_those_of_the_committed_tables(readme):
    assert {match["name"] for match in BLOCK.finditer(readme)} == set(BLOCKS)
    assert with_results(readme) == readme, "python -m tests.readme_blocks writes them anew"


def test_no_number_stands_outside_of_them(readme):
    """Decimals, factors and shares of results, as "1.4 to 1.7 times" or ".86 to .93"."""
    text = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", BLOCK.sub("", readme), flags=re.DOTALL)
    left = [match[0] for match in re.finditer(r"(?<![\w.])\d*\.\d+\b|\d+ ?%|\d times", NO_RESULT.sub("", text))]
    assert left == []


def test_blocks_read_the_cells_of_the_tables():
    """By hand, from the files, without the code that writes the blocks."""
    table = pd.read_csv(RESULTS / "blimp_cpu" / "slopes.csv")
    row = table[(table["group"] == "lstm_tiny") & (table["name"] == "island_effects")].iloc[0]
    curves = curves_of("blimp_cpu")
    mine = curves.slopes[(curves.slopes["group"] == "lstm_tiny") & (curves.slopes["name"] == "island_effects")].iloc[0]
    assert (mine["slope"], mine["low"], mine["high"]) == (row["slope"], row["low"], row["high"])
    at = curves.accuracies[
        (curves.accuracies["group"] == "lstm_tiny") & (curves.accuracies["name"] == "island_effects")
    ]
    assert dict(zip(at["size"], at["accuracy"], strict=True))["1M"] == row["accuracy 1M"]
    points = pd.read_csv(RESULTS / "blimp_cpu" / "points.csv")
    runs = points[(points["group"] == "lstm_tiny") & (points["name"] == "island_effects") & (points["size"] == "1M")]
    assert row["accuracy 1M"] == pytest.approx(runs["accuracy"].mean())
    assert bench_row("LSTM, fp32")[1] == "597"
