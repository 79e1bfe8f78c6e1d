"""Numbers printed in README and docs/, computed again from the committed tables by statsmodels and pandas.

A page marks its numbers with <!-- NAME --> and <!-- end -->. Each must be the rounding of the computed one.
"""

import re

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from analysis.formats import title
from tests.support import PAGES, ROOT

RESULTS = ROOT / "analysis" / "results"
NAMES = {"gpt2": "GPT-2", "gru": "GRU", "llama": "LLaMA", "lstm": "LSTM", "roberta": "RoBERTa", "txl": "Transformer-XL"}
STUDIES = ("blimp_gpu", "blimp_long", "blimp_cpu", "blimp_families_small")
NUMBER = re.compile(r"[-+−]?(?:\d[\d,]*)?\.?\d+")


def block(name):
    """Return the texts of the pages between <!-- name --> and <!-- end -->."""
    pattern = re.compile(rf"<!-- {name} -->\n(.*?)<!-- end -->", re.DOTALL)
    found = [text for page in PAGES for text in pattern.findall(page.read_text(encoding="utf-8"))]
    assert found, name
    return found


def rows(name):
    """Return the cells of each row of the tables in a block, without the two lines of the head."""
    tables = ([line for line in text.splitlines() if line.startswith("|")] for text in block(name))
    return [[cell.strip(" `*") for cell in line.strip("|").split("|")] for table in tables for line in table[2:]]


def assert_rounds(printed, expected, scale=1):
    """Assert that the numbers in a printed text are the expected ones, rounded to as many digits."""
    texts = NUMBER.findall(printed)
    assert len(texts) == len(expected), printed
    for text, value in zip(texts, expected, strict=True):
        decimals = len(text.partition(".")[2])
        rounding = 0.5 * 10.0**-decimals + 1e-9
        number = float(text.replace("−", "-").replace(",", ""))
        assert number == pytest.approx(value * scale, abs=rounding), printed


def study(name):
    """Return the overall accuracies and the runs of a committed study by the names that pages give its models."""
    accuracies = pd.read_csv(RESULTS / name / "accuracies.csv")
    accuracies = accuracies[accuracies["phenomenon"].isna()]
    runs = pd.read_csv(RESULTS / name / "runs.csv")
    for table in (accuracies, runs):
        table["name"] = table["model"].str.partition("_")[0].map(NAMES)
    return accuracies, runs


def slope(points):
    """Return the slope per doubling and its 95% interval: least squares with HC3 errors and Student's t."""
    x = sm.add_constant(np.log2(points["sample_words"].to_numpy(float)))
    fitted = sm.OLS(points["accuracy"].to_numpy(), x).fit(cov_type="HC3", use_t=True)
    return [fitted.params[1], *fitted.conf_int(0.05)[1]]


@pytest.mark.parametrize("name", STUDIES)
def test_tables_of_models(name):
    accuracies, runs = study(name)
    largest = runs[runs["sample_words"] == runs["sample_words"].max()].groupby("name")
    for model, weights, perplexity, accuracy, interval in rows(f"models of {name}"):
        points = accuracies[accuracies["name"] == model]
        last = points[points["sample_words"] == points["sample_words"].max()]
        assert_rounds(weights, [largest["parameters"].mean()[model]], 1e-6)
        if perplexity != "–":
            assert_rounds(perplexity, [largest["valid_ppl"].mean()[model]])
        assert_rounds(accuracy, [last["accuracy"].mean()])
        assert_rounds(interval, slope(points))


@pytest.mark.parametrize("name", ["first finding of blimp_gpu", *(f"findings of {name}" for name in STUDIES[:3])])
def test_findings_of_curves(name):
    accuracies, _ = study(name.split()[-1])
    form = re.compile(
        r"\*\*(\S+)\*\*: accuracy is (\S+)% after \S+ words and (\S+)% after \S+ words\. Each .*? adds about (\S+) "
        r"points \(95% confidence interval (\S+) to ([\d.]+)\)"
    )
    findings = [one for text in block(name) for one in form.findall(re.sub(r"\s*\n>? ?", " ", text))]
    assert findings
    for model, first, last, *interval in findings:
        points = accuracies[accuracies["name"] == model]
        means = points.groupby("sample_words")["accuracy"].mean()
        assert_rounds(f"{first} {last}", [means.iloc[0], means.iloc[-1]], 100)
        assert_rounds(" ".join(interval), slope(points), 100)


def test_phenomena_that_the_readme_names():
    accuracies = pd.read_csv(RESULTS / "blimp_gpu" / "accuracies.csv").query("model == 'gpt2_small'")
    means = accuracies.groupby(["phenomenon", "sample_words"])["accuracy"].mean()
    (text,) = block("first finding of blimp_gpu")
    found = re.findall(r"from (\d+)% to (\d+)% correct in ([\w -]+)[,.]", text)
    assert len(found) == 2
    for first, last, phenomenon in found:
        (of,) = [name for name in means.index.levels[0] if title(name).lower() == phenomenon.lower()]
        assert_rounds(f"{first} {last}", [means[of].iloc[0], means[of].iloc[-1]], 100)


def test_the_minimal_pair_of_the_demo():
    scores = pd.read_csv(RESULTS / "demo" / "minimal-pair.csv")
    for side, cells in zip(("good", "bad"), rows("minimal pair of the demo"), strict=True):
        assert scores[f"{side}_sentence"].iloc[0] == cells[0].strip("\\*")
        assert_rounds(" ".join(cells[1:]), scores[side].tolist())


def test_paradigms_of_the_ablations():
    effects = pd.read_csv(RESULTS / "ablation_small" / "effects.csv").query(
        "over == 'all sizes' and level == 'paradigm'"
    )
    effects = effects[effects["kind"] == "treatment - control"].set_index(["filter", "name"])
    for removed, paradigm, *cells in rows("paradigms of ablation_small"):
        row = effects.loc[(removed, paradigm.replace(" ", "_"))]
        assert_rounds(" ".join(cells), row[["first", "second", "difference", "low", "high"]].tolist())


def test_coverage_of_intervals():
    table = pd.read_csv(RESULTS / "coverage.csv").set_index(["quantity", "design", "method"]).sort_index()
    used = table[table["used"]].droplevel("method")

    def check(cell, row):
        assert_rounds(cell.partition(" (")[0].replace(",", ""), [100 * row["covered"], row["width"]])

    for design, ours, *others in rows("coverage of intervals"):
        check(ours, used.loc["slope", design])
        for cell, method in zip(others, ("OLS, t(R - 2)", "HC2, Bell-McCaffrey", "bootstrap of runs"), strict=True):
            if cell != "-":
                check(cell, table.loc["slope", design, method])
    for quantity, design, ours in rows("coverage of other intervals"):
        check(ours, used.loc[quantity, design])
