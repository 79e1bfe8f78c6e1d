"""The results in README and docs/: all come from the committed tables."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from analysis.exhibits.tables.slopes import slope_table
from tests.support import PAGES, ROOT
from tests.support.committed_results import FAMILIES, GPU, LONG, RESULTS, SMALL, STUDY, analysed
from tests.support.gallery import SCREENSHOTS
from tests.support.pictures import PICTURES, PNG, parts_of
from tests.support.readme_blocks import BLOCK, BLOCKS, bench_row, with_results

# Decimals that are not results: versions, sections of papers, the level of intervals.
NO_RESULT = re.compile(r"\d\.\d ?in(?:ches)?\b|3\.1[123]\b|\| 3\.[23] \||section \d\.\d|2024, 3\.2|95% intervals")


# docs/benchmarks.md is itself the table of measured speeds, which others quote.
WITH_RESULTS = [page for page in PAGES if page.name != "benchmarks.md"]


@pytest.fixture(params=WITH_RESULTS, ids=lambda page: page.name)
def text(request):
    return request.param.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_results_equal_the_committed_tables(page):
    text = page.read_text(encoding="utf-8")
    assert with_results(text) == text, "python -m tests.support.readme_blocks rewrites them"


def test_every_result_is_shown():
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert {match["name"] for text in texts for match in BLOCK.finditer(text)} == set(BLOCKS)


def test_no_other_text_holds_a_result(text):
    """Results are decimals, factors and shares, such as "1.4 to 1.7 times" or ".86 to .93"."""
    prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", BLOCK.sub("", text), flags=re.DOTALL)
    assert re.findall(r"(?<![\w.])\d*\.\d+\b|\d+ ?%|\d times", NO_RESULT.sub("", prose)) == []


# The tables of the study of families were computed from single judgements and manifests, which are not in points.csv.
COLUMNS = {
    STUDY: (["lack_of_fit"], ["low", "high", "p_holm", "p_equivalent"]),
    SMALL: (["method"], ["low", "high", "p_holm", "p_equivalent", "paired", "pairs"]),
    FAMILIES: ([], []),
    LONG: (["method"], ["low", "high", "p_holm", "p_equivalent", "paired", "pairs"]),
    GPU: ([], ["paired", "pairs"]),
}


@pytest.mark.parametrize("study", COLUMNS)
def test_committed_tables_follow_from_the_committed_accuracies(study):
    """Means and slopes are computed from points.csv; the intervals have their own tests."""
    folder = RESULTS / study
    table = pd.read_csv(folder / "slopes.csv").set_index(["group", "name"])
    points = pd.read_csv(folder / "points.csv")
    for (group, name), part in points.groupby(["group", "name"]):
        means = part.groupby("words")["accuracy"].mean()
        largest = part.loc[part["words"].idxmax(), "size"]
        assert table.at[(group, name), f"accuracy {largest}"] == pytest.approx(means.iloc[-1])
        runs = part.groupby("words")["accuracy"].size()
        if (runs > 1).sum() > 1:  # a single run is no part of the line
            means = means[runs > 1]
        slope = np.polyfit(np.log2(means.index.to_numpy(dtype=float)), means.to_numpy(), 1)[0]  # sizes weigh equally
        assert table.at[(group, name), "slope"] == pytest.approx(slope)
    curves, differences = analysed(study)
    again = slope_table(curves).set_index(["group", "name"])
    of_slopes, of_differences = COLUMNS[study]
    limits = ["low", "high", "rank_low", "rank_high"]
    columns = ["slope", "rank", *of_slopes, *([] if study == GPU else limits)]
    # With few pairs, those of phenomena depend on judgements of pairs, too.
    rows = table["level"] == "overall" if study == FAMILIES else table["level"] != "paradigm"
    pd.testing.assert_frame_equal(table.loc[rows, columns], again.loc[rows, columns], rtol=1e-6)
    if study == GPU:  # bootstrapped, from single judgements, which tell chance in them from differences between runs
        apart = table.loc[rows, limits[:2]].sub(again.loc[rows, limits[:2]]).abs().max(axis=1)
        assert (apart < 0.2 * (table["high"] - table["low"])[rows]).all()
    committed = pd.read_csv(folder / "slope-differences.csv")
    columns = ["group", "other", "name", "difference", *of_differences]
    pd.testing.assert_frame_equal(committed[columns], differences[columns], rtol=1e-6)


def test_the_committed_comparison_of_runs_on_one_text_is_paired():
    differences = pd.read_csv(RESULTS / SMALL / "slope-differences.csv")
    assert differences[["paired", "pairs"]].drop_duplicates().to_numpy().tolist() == [[True, 8]]


def test_speeds_equal_the_tables_of_the_bench():
    assert bench_row("LSTM, fp32")[1] == "597"


@pytest.mark.slow
@pytest.mark.parametrize("name", PICTURES)
def test_pictures_show_the_committed_tables(name):
    texts, numbers = parts_of((ROOT / f"{name}.svg").read_text())
    drawn_texts, drawn_numbers = parts_of(PICTURES[name]())
    assert drawn_texts == texts, "make pictures draws them"
    np.testing.assert_allclose(drawn_numbers, numbers, rtol=1e-4, atol=0.02)


def test_pictures_of_readme_are_those_that_are_drawn_and_none_is_quantised():
    links = [(page.parent / link) for page in PAGES for link in re.findall(r"!\[[^]]*\]\((\S+)\)", page.read_text())]
    linked = {str(path.resolve().relative_to(ROOT)) for path in links}
    assert linked <= {f"{PNG}.png", *(f"{name}.svg" for name in PICTURES), *SCREENSHOTS}
    drawn = ET.parse(ROOT / f"{PNG}.svg").getroot()
    with Image.open(ROOT / f"{PNG}.png") as image:
        assert image.mode in ("RGB", "RGBA")  # no palette
        assert image.width == pytest.approx(300 / 96 * float(drawn.get("width")), abs=1)
