"""The results in README and docs/: all come from the committed tables."""

import re

import numpy as np
import pandas as pd
import pytest

from tests.support import PAGES, ROOT
from tests.support.bench_pages import bench_row
from tests.support.committed_results import CPU, FAMILIES, GPU, LONG, RESULTS, SMALL, committed_results
from tests.support.gallery import SCREENSHOTS
from tests.support.pictures import PICTURES, parts_of
from tests.support.readme_blocks import BLOCK, BLOCKS, with_results

# Decimals that are not results: versions, sections of papers, the level of intervals.
NO_RESULT = re.compile(
    r"\d\.\d ?in(?:ches)?\b|3\.1[123]\b|\| 3\.[23] \||section \d\.\d|2024, 3\.2|95% intervals?|95% confidence"
)

# docs/benchmarks.md is itself the table of measured speeds, which others quote.
WITH_RESULTS = [page for page in PAGES if page.name != "benchmarks.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_results_equal_the_committed_tables(page):
    text = page.read_text(encoding="utf-8")
    assert with_results(text) == text, "python -m tests.support.readme_blocks rewrites them"


def test_every_result_is_shown():
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert {match["name"] for text in texts for match in BLOCK.finditer(text)} == set(BLOCKS)


@pytest.mark.parametrize("page", WITH_RESULTS, ids=lambda page: page.name)
def test_no_other_text_has_a_result(page):
    """Results are decimals, factors and shares, such as "1.4 to 1.7 times" or ".86 to .93"."""
    text = page.read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", BLOCK.sub("", text), flags=re.DOTALL)
    assert re.findall(r"(?<![\w.])\d*\.\d+\b|\d+ ?%|\d times", NO_RESULT.sub("", prose)) == []


@pytest.mark.parametrize("study", [CPU, SMALL, FAMILIES, LONG, GPU])
def test_slopes_of_committed_studies_are_those_of_numpy(study):
    points = pd.read_csv(RESULTS / study / "accuracies.csv")
    points["name"] = points["phenomenon"].fillna("overall")
    slopes = committed_results(study).slopes.set_index(["curve", "name"])
    names = committed_results(study).names
    for (curve, name), part in points.groupby(["curve", "name"]):
        row = slopes.loc[(names[curve], name)]
        expected = np.polyfit(np.log2(part["sample_words"]), part["accuracy"], 1)
        assert row[["slope", "intercept"]].tolist() == pytest.approx(expected.tolist(), abs=1e-9)
        largest = part.loc[part["sample_words"] == part["sample_words"].max(), "accuracy"]
        assert row["largest_accuracy"] == pytest.approx(largest.mean())


def test_speeds_equal_the_tables_of_the_bench():
    assert bench_row("LSTM, fp32")[1] == "597"


@pytest.mark.slow
@pytest.mark.parametrize("name", PICTURES)
def test_pictures_show_the_committed_tables(name):
    texts, numbers = parts_of((ROOT / name).read_text())
    drawn_texts, drawn_numbers = parts_of(PICTURES[name]())
    assert drawn_texts == texts, "make pictures draws them"
    np.testing.assert_allclose(drawn_numbers, numbers, rtol=1e-4, atol=0.02)


def test_pictures_of_pages_are_drawn_and_every_drawn_picture_is_in_a_page():
    links = [page.parent / link for page in PAGES for link in re.findall(r"!\[[^]]*\]\((\S+)\)", page.read_text())]
    linked = {str(path.resolve().relative_to(ROOT)) for path in links}
    assert set(PICTURES) <= linked <= {*PICTURES, *SCREENSHOTS}
