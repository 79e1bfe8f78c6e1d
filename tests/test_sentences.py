"""What could carry a result stands first: shares of <unk> and of ties, unequal ranges of sizes, missing runs."""

import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from analysis.collect import PROBLEMS
from analysis.judgements import Judgements, sized
from analysis.sentences import extent, in_text, joined, warnings
from analysis.tables import slope_table, terminal_table
from tests.test_findings import curve

PAIRS = 100


def judged(unk=0.0, tie=0.0, *, cells=(("lstm", "16k"), ("lstm", "128k")), problems=(), reference="treebank"):
    """Two runs a cell; shares of pairs with <unk> and of ties are numbers, or one a cell."""
    rows = [
        {"group": group, "size": size, "seed": seed, "sample_words": float(size.removesuffix("k")), "overlap": 0.0,
         "reference": reference, "manifest": {}, "study": "s"}
        for group, size in cells
        for seed in (1, 2)
    ]  # fmt: skip
    runs = pd.DataFrame(rows, index=pd.Index([f"run-{i}" for i in range(len(rows))]))

    def share(of):
        wanted = np.repeat(np.broadcast_to(of, len(cells)), 2)
        return np.arange(PAIRS) < np.round(wanted[:, None] * PAIRS)

    pairs = pd.DataFrame({"pair_id": range(PAIRS), "paradigm": "p", "phenomenon": "f"})
    return Judgements(
        "generated", "lp", "d", {}, runs, pairs, np.ones((len(rows), PAIRS)), share(tie).astype(float), share(unk),
        pd.DataFrame(problems, columns=list(PROBLEMS)),
    )  # fmt: skip


def test_unknown_words_and_ties_of_the_reviews_example_are_said_first():
    """99% of generated pairs held <unk> and 25% tied, counted as wrong; the findings warned of nothing."""
    problems = [("gone", "missing", ""), ("broken", "failed", "loss")]
    texts = warnings(judged(0.99, (0.25, 0.11), problems=problems), "wrong")
    assert texts[0].startswith("2 runs not in these curves: 1 missing and 1 failed")
    assert texts[1].startswith("Unknown words could carry these results: 99% of the pairs hold <unk>. 1 of 100 pairs")
    assert texts[2] == (
        "Ties could carry these results: 11% to 25% (most in lstm at 16k words) of the pairs have two equal "
        "scores, and each counts as wrong (counted half, accuracies would be up to .125 higher)."
    )
    assert "each counts half." in warnings(judged(tie=0.25), "half")[0]
    assert "up to .125 lower" in warnings(judged(tie=0.25), "right")[0]


def test_few_unknown_words_and_ties_are_no_warning():
    assert warnings(judged(0.04, 0.0), "wrong") == []
    assert len(warnings(judged(0.05, 0.01), "wrong")) == 2


def test_curves_over_different_sizes_are_said():
    cells = (("lstm", "16k"), ("lstm", "32k"), ("lstm", "128k"), ("txl", "16k"), ("txl", "32k"), ("ngram", "16k"))
    assert warnings(judged(cells=cells), "wrong") == [
        "Curves cover different sizes, so that their slopes do not compare as they stand: lstm has 3 sizes, 16k to "
        "128k words, txl has 2 sizes, 16k to 32k words and ngram has one, 16k words."
    ]
    assert warnings(judged(cells=cells[:2]), "wrong") == []


def test_sizes_have_a_unit():
    assert extent(judged().runs) == "4 runs: 1 curve, 2 sizes from 16k to 128k words, seeds 1 and 2"
    assert "16k to 128k characters" in extent(judged(reference="characters").runs)
    assert (sized("16k", "words"), sized("4k sentences", "words")) == ("16k words", "4k sentences")


def test_names_and_lists_within_a_sentence():
    assert joined(["a", "b", "c"]) == "a, b and c"
    assert (in_text("npi_licensing"), in_text("island_effects")) == ("NPI licensing", "island effects")


@pytest.mark.parametrize(
    ("limits", "code"), [((0.01, 0.03), "32"), ((-0.03, -0.01), "31"), ((-0.01, 0.02), "2"), ((np.nan, np.nan), "2")]
)
def test_the_terminal_marks_what_rises_and_what_falls(limits, code):
    slopes, at = curve({"overall": (float(np.nanmean([0.015, *limits])), *limits)})
    console = Console(width=80, file=io.StringIO(), force_terminal=True, color_system="standard")
    table = slope_table(type("C", (), {"slopes": slopes, "accuracies": at}))
    console.print(terminal_table(table, "h", 0.95))
    text = console.file.getvalue()
    assert "95% interval" in text
    (line,) = [line for line in text.splitlines() if "Overall" in line]
    assert f"\x1b[{code}m" in line
