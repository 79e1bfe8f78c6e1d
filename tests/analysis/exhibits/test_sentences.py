"""Warnings about what could cause a result (<unk>, ties, sizes, missing runs), and the methods paragraph."""

import io
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from analysis.config import CONSERVATIVE, LEAVE_OUT, CurvesConfig
from analysis.curves.fit import fit_curves
from analysis.exhibits.figures.curves import overview_chart
from analysis.exhibits.sentences.curves import extent, in_text, joined, ruled_out, warnings
from analysis.exhibits.sentences.findings import findings
from analysis.exhibits.sentences.methods import judging, methods
from analysis.exhibits.tables.slopes import slope_table, terminal_table
from analysis.papers.exhibits import paradigms_exhibit
from analysis.published import published_file
from analysis.sections.together import marks_text
from analysis.study.collect import PROBLEMS
from analysis.study.judgements import Judgements, sized
from tests.support.slopes_by_hand import curve

PAIRS = 100


def simulated_judgements(
    unk=0.0, tie=0.0, *, cells=(("lstm", "16k"), ("lstm", "128k")), problems=(), vocabulary="sample", **fields
):
    """Return judgements of two runs a cell; the shares of pairs with <unk> and of ties are one number or one a cell."""
    rows = [
        {"group": group, "size": size, "seed": seed, "sample_words": float(size.removesuffix("k")), "overlap": 0.0,
         "reference": "treebank", "manifest": {}, "study": "s", "nested": False, "vocabulary": vocabulary} | fields
        for group, size in cells
        for seed in (1, 2)
    ]  # fmt: skip
    runs = pd.DataFrame(rows, index=pd.Index([f"run-{i}" for i in range(len(rows))]))

    def share(of):
        shares = np.repeat(np.broadcast_to(of, len(cells)), 2)
        return np.arange(PAIRS) < np.round(shares[:, None] * PAIRS)

    pairs = pd.DataFrame({"pair_id": range(PAIRS), "paradigm": "p", "phenomenon": "f"})
    return Judgements(
        "generated", "lp", "d", {}, runs, pairs, np.ones((len(rows), PAIRS)), share(tie).astype(float), share(unk),
        pd.DataFrame(problems, columns=list(PROBLEMS)),
    )  # fmt: skip


def test_many_unknown_words_and_ties_are_warned_of():
    """In the review's example 99% of pairs have <unk> and 25% tie, counted as wrong."""
    problems = [("gone", "missing", ""), ("broken", "failed", "loss")]
    texts = warnings(simulated_judgements(0.99, (0.25, 0.11), problems=problems), "wrong")
    assert texts[0].startswith("2 runs not in these curves: 1 missing and 1 failed")
    assert texts[1].startswith("Unknown words could explain these results: 99% of the pairs hold <unk>. 1 of 100 pairs")
    assert texts[2] == (
        "Ties could explain these results: 11% to 25% (most in lstm at 16k words) of the pairs are tied, and each tie "
        "counts as wrong (counted half, accuracies would be up to .125 higher)."
    )
    assert "each tie counts half." in warnings(simulated_judgements(tie=0.25), "half")[0]
    assert "up to .125 lower" in warnings(simulated_judgements(tie=0.25), "right")[0]


def test_what_does_not_explain_a_result_is_ruled_out():
    assert ruled_out(simulated_judgements()) == "Ruled out: no run is missing, no pair holds <unk> and no pair is tied."
    cells = (("lstm", "16k"), ("lstm", "32k"), ("txl", "16k"), ("txl", "32k"))
    problems = [("gone", "missing", "")]
    assert ruled_out(simulated_judgements(0.04, 0.02, cells=cells, problems=problems)) == (
        "Ruled out: at most 4.0% of the pairs hold <unk> and all curves cover the same sizes."
    )
    assert ruled_out(simulated_judgements(0.99, 0.25, cells=cells[:3], problems=problems)) == ""


def test_at_most_is_never_less_than_the_share():
    judged = simulated_judgements(cells=(("lstm", "16k"),))
    tie = np.zeros((2, 7000))
    tie[:, :10] = 1  # 0.143%
    pairs = pd.DataFrame({"pair_id": range(7000), "paradigm": "p", "phenomenon": "f"})
    judged = replace(judged, pairs=pairs, outcome=np.ones_like(tie), tie=tie, unk=np.zeros_like(tie))
    assert "at most 0.2% of the pairs are tied" in ruled_out(judged)


def test_no_run_is_said_to_be_missing_and_not_to_be():
    """A size that lacks a seed of the others is a warning, and so not ruled out, whether or not a grid names it."""
    judged = simulated_judgements(cells=(("lstm", "16k"), ("lstm", "32k")))
    assert "no run is missing" in ruled_out(judged)
    judged.runs.loc[judged.runs.index[-1], "seed"] = 99
    assert ruled_out(judged) == "Ruled out: no pair holds <unk> and no pair is tied."


@pytest.mark.parametrize(("vocabulary", "why"), [("pieces", "splits them into pieces"), ("text", "whole text")])
def test_unseen_words_that_are_no_unk_are_not_ruled_out(vocabulary, why):
    """Subword tokenizers know every word as pieces, so that 0% of <unk> says nothing about words never seen."""
    judged = simulated_judgements(vocabulary=vocabulary)
    assert ruled_out(judged) == "Ruled out: no run is missing and no pair is tied."
    (text,) = warnings(judged, "wrong")
    assert text.startswith("Words that samples lack could explain these results")
    assert why in text
    assert "benchmark.vocabulary=study" in text
    judged.label = "generated+en+study-k5"
    assert warnings(judged, "wrong") == []
    assert "every sample holds the words of the pairs" in ruled_out(judged)


def test_few_pairs_are_warned_of():
    """Three pairs gave slopes of -.25 with limits of -1.79 and +1.29."""
    judged = simulated_judgements()
    three = judged.select(np.arange(PAIRS) < 3)
    assert warnings(three, "wrong")[0].startswith("Too few pairs for conclusions: Generated pairs have 3 pairs.")
    judged.pairs["phenomenon"] = np.where(np.arange(PAIRS) < 19, "npi_licensing", "binding")
    assert warnings(judged, "wrong")[0].startswith(
        "Too few pairs for conclusions: fewer than 20 in NPI licensing (19). Accuracy over so few"
    )


def test_few_unknown_words_and_ties_cause_no_warning():
    assert warnings(simulated_judgements(0.04, 0.0), "wrong") == []
    assert len(warnings(simulated_judgements(0.05, 0.01), "wrong")) == 2


def test_curves_over_different_sizes_are_warned_of():
    cells = (("lstm", "16k"), ("lstm", "32k"), ("lstm", "128k"), ("txl", "16k"), ("txl", "32k"), ("ngram", "16k"))
    assert warnings(simulated_judgements(cells=cells), "wrong") == [
        "Curves cover different sizes, so their slopes do not compare as they are: lstm has 3 sizes, 16k to 128k "
        "words, txl has 2 sizes, 16k to 32k words and ngram has one, 16k words."
    ]
    assert warnings(simulated_judgements(cells=cells[:2]), "wrong") == []


def test_warnings_name_sizes_with_their_unit():
    assert extent(simulated_judgements().runs) == "4 runs: 1 curve, 2 sizes from 16k to 128k words, seeds 1 and 2"
    assert "16k to 128k characters" in extent(simulated_judgements(reference="characters").runs)
    assert (sized("16k", "words"), sized("4k sentences", "words")) == ("16k words", "4k sentences")


def test_many_seeds_are_counted():
    one = simulated_judgements().runs.iloc[:1]
    runs = pd.concat([one.assign(seed=seed) for seed in range(1, 12)])
    assert extent(runs) == "11 runs: 1 curve, one size, 16k words, 11 seeds"
    assert extent(runs[:10]).endswith("16k words, seeds 1, 2, 3, 4, 5, 6, 7, 8, 9 and 10")
    assert extent(one).endswith("16k words, seed 1")


def test_lists_of_names_within_a_sentence():
    assert joined(["a", "b", "c"]) == "a, b and c"
    assert (in_text("npi_licensing"), in_text("island_effects")) == ("NPI licensing", "island effects")


@pytest.mark.parametrize(
    ("limits", "code"), [((0.01, 0.03), "32"), ((-0.03, -0.01), "31"), ((-0.01, 0.02), "2"), ((np.nan, np.nan), "2")]
)
def test_the_terminal_colours_rising_and_falling_slopes(limits, code):
    slopes, at = curve({"overall": (float(np.nanmean([0.015, *limits])), *limits)})
    console = Console(width=80, file=io.StringIO(), force_terminal=True, color_system="standard")
    table = slope_table(type("C", (), {"slopes": slopes, "accuracies": at}))
    console.print(terminal_table(table, "h", 0.95))
    text = console.file.getvalue()
    assert "95% interval" in text
    (line,) = [line for line in text.splitlines() if "Overall" in line]
    assert f"\x1b[{code}m" in line


def study(counts, *, nested=False, overlap=0.0, training=None, reference="treebank"):
    """Return judgements of groups with `counts` runs at each size; `overlap` is that of the largest size."""
    rows = [
        {"study": "s", "group": group, "size": f"{2**s}k", "seed": seed, "sample_words": 1000.0 * 2**s,
         "nested": nested, "overlap": overlap * (s == len(of_group) - 1), "reference": reference, "manifest": {},
         "training": training or f"{group}-{s}-{seed}"}
        for group, of_group in counts.items()
        for s, runs in enumerate(of_group)
        for seed in range(runs)
    ]  # fmt: skip
    runs = pd.DataFrame(rows, index=pd.Index([f"run-{i}" for i in range(len(rows))]))
    accuracy = 0.5 + 0.05 * np.log2(runs["sample_words"].to_numpy() / 1000)[:, None]
    outcome = (np.random.default_rng(0).uniform(size=(len(runs), PAIRS)) < accuracy).astype(np.float32)
    pairs = pd.DataFrame({"pair_id": range(PAIRS), "paradigm": np.repeat(["p", "q"], PAIRS // 2), "phenomenon": "f"})
    flat = np.zeros(outcome.shape, dtype=bool)
    policy = {"context": "none", "context_tokens": 32, "score_eos": True, "unk": "score"}
    problems = pd.DataFrame(columns=list(PROBLEMS))
    return Judgements("generated", "lp", "d", dict.fromkeys(counts, policy), runs, pairs, outcome, flat, flat, problems)


def methods_of(judgements, interval="auto", cautioned=CONSERVATIVE):
    """Return the methods paragraph, in which no sentence occurs twice."""
    config = CurvesConfig(
        method="lp", interval=interval, confidence=0.95, resamples=50, seed=1, cautioned_limits=cautioned
    )
    text = " ".join(methods(judgements, fit_curves(judgements, config), config, "wrong"))
    sentences = text.split(". ")
    assert len(sentences) == len(set(sentences)), text
    return text


FITTED = "Lines are fitted to the sizes studied: nothing here shows that they continue"
WHY = "A bootstrap needs five runs at each size."
BENT = "errors include the distance of a bent curve from its line"


@pytest.mark.parametrize(
    ("counts", "more", "there", "not_there"),
    [
        ([2] * 4, {}, ["as some size has two runs and errors about the line are", WHY], ["HC2", BENT]),
        ([3] * 4, {}, ["each size has the spread of its own runs", WHY, FITTED], ["HC2", "HC3", BENT, "resamples"]),
        ([1] * 4, {}, ["HC2 errors", "as some size has one run", "Bands are Student's", "no mean of a size has limits"],
         ["HC3", "lack of fit", "Wilson"]),
        ([5] * 4, {}, ["They are from a crossed bootstrap (50 resamples, seed 1). Runs are drawn"],
         ["t intervals", WHY]),
        ([3] * 4, {"nested": True}, ["t intervals over seeds", "samples are nested"], ["HC2", "HC3", BENT]),
        ([5] * 4, {"nested": True}, ["Seeds are drawn with all of their runs"], ["within their size"]),
        ([5] * 4, {"overlap": 0.77}, ["increased for the text that samples of one size share"], []),
        ([3] * 4, {"overlap": 1.0}, ["Without an interval: lstm (samples of a size are the same text"],
         ["too few runs", "t intervals", "lack of fit", "for these pairs;"]),
        ([1] * 5, {"training": "one", "reference": "tokens"},
         ["Without an interval: lstm (checkpoints of one training", "log2 of the tokens that a checkpoint was trained"],
         ["too few runs", "distinct", "Onset"]),
        ([3], {}, ["With one size, accuracies have no slope.", "Without an interval: lstm (one size only"],
         ["least-squares", "Onset"]),
        ([3, 3], {}, ["With two sizes, the slope is their difference per doubling."], ["lack of fit"]),
    ],
)  # fmt: skip
def test_the_methods_paragraph_names_the_methods_that_were_used(counts, more, there, not_there):
    text = methods_of(study({"lstm": counts}, **more))
    assert not [part for part in there if part not in text], text
    assert not [part for part in [*not_there, "Curves are compared"] if part in text], text


def test_the_methods_paragraph_says_that_the_configuration_chose_the_interval():
    """Five runs a size would allow the bootstrap, so the number of runs is no reason for t intervals."""
    text = methods_of(study({"lstm": [5] * 4}), "t")
    assert "They were chosen over a bootstrap (analysis.interval=t)." in text
    assert WHY not in text
    assert BENT not in text


def test_the_methods_paragraph_names_the_curves_whose_limits_are_left_out():
    judgements = study({"lstm": [5] * 4, "txl": [5, 5, 3, 1]})
    text = methods_of(judgements, cautioned=LEAVE_OUT)
    assert (
        "Without an interval: txl (limits would be conservative: one run at a size, beside sizes of several; " in text
    )
    assert "HC2 errors" not in text
    config = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=50, seed=1)
    said = {finding.subject: finding.text for finding in findings(fit_curves(judgements, config), "words", 0.95)}
    assert "so it is left open whether it changes" in said["txl"]
    assert "left open" not in said["lstm"]


def test_the_methods_paragraph_names_the_curves_of_each_interval():
    counts = {
        "lstm": [5] * 4,
        "txl": [5, 5, 3, 1],
        "gru": [2] * 4,
        "ngram": [3, 3, 3, 2],
        "llama": [3] * 3,
        "lone": [2],
    }
    text = methods_of(study(counts))
    assert "Those of txl are t intervals with HC2 errors" in text
    assert "as some size has two runs and errors about the line" in text
    assert "Those of llama are t intervals in which each size" in text
    assert "Those of lstm are from a crossed bootstrap" in text
    assert "HC2 errors include the distance" in text
    assert "Without an interval: lone (one size only: no slope)." in text
    assert text.count("For new pairs too, t intervals add") == text.count(WHY) == 1
    assert "do not differ where both the interval and two one-sided tests" in text


def test_runs_on_the_same_text_get_no_sentence_about_wider_intervals():
    (text,) = warnings(study({"lstm": [3] * 4}, overlap=1.0), "wrong")
    assert text == (
        "Some runs of one size were trained on the same text (lstm at 8k words): nothing shows what new samples "
        "would change, so these curves have no intervals of slopes."
    )
    (text,) = warnings(study({"lstm": [3] * 4}, overlap=0.7), "wrong")
    assert "(70% at 8k words)" in text
    assert "widened" in text


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("blimp", "The study's part of BLiMP has 100 pairs in 1 of 67 paradigms; accuracies"),
        ("minimal_pairs", " Minimal pairs have 100 pairs in 1 paradigm; accuracies"),
        ("toy", " Toy English has 100 pairs in 1 paradigm; accuracies"),
    ],
)
def test_the_methods_say_what_part_of_a_benchmark_was_scored(label, said):
    judged = replace(simulated_judgements(), label=label)
    assert said in judging(judged, "wrong")[0]


def test_one_paradigm_is_in_the_singular():
    accuracies = pd.DataFrame([("paradigm", "passive_1", "a", 0.4)], columns=["level", "name", "model", "accuracy"])
    exhibit = paradigms_exhibit("table4", "", "", accuracies, published_file("blimp_paradigms"))
    assert exhibit.takeaways == [("", "Below chance, of 1 paradigm: a in 1.")]


@pytest.mark.parametrize(("seeds", "sizes"), [(1, 3), (2, 3), (2, 2)])
def test_methods_caption_and_figure_agree_on_bands(seeds, sizes):
    cells = [("lstm", f"{16 * 2**number}k") for number in range(sizes)]
    judged = simulated_judgements(cells=cells)
    rows = (judged.runs["seed"] <= seeds).to_numpy()
    rng = np.random.default_rng(1)
    outcome = (rng.uniform(size=judged.outcome.shape) < 0.7).astype(float)
    parts = {name: getattr(judged, name)[rows] for name in ("tie", "unk")}
    judged = replace(judged, runs=judged.runs[rows], outcome=outcome[rows], **parts)
    config = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=50, seed=1)
    curves = fit_curves(judged, config)
    text = " ".join(methods(judged, curves, config, "wrong"))
    drawn = '"mark": {"type": "area"' in json.dumps(overview_chart(curves).to_dict())
    assert drawn == (sizes > 2)
    assert ("95% bands for new runs" in marks_text(curves, 0.95, "overall")) == drawn
    assert ("Bands are Student's limits of the fitted line" in text) == drawn
    assert ("No size has two runs, so no mean of a size has limits" in text) == (seeds == 1)
    assert "none has a band" not in text
