"""Warnings, extent and methods in sentences, computed and never typed in; findings are in analysis/findings.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves import CHANCE_BASELINE, UNK_FREE, Curves
from analysis.intervals import BOOTSTRAP, NO_INTERVAL, OVERLAP_LIMIT, RUN_BOOTSTRAP, T_HC2, T_HC3, T_SEEDS, T_SIZES
from analysis.judgements import Judgements, sized, unit_of
from analysis.p_values import ALPHA
from analysis.tables import accuracy_text, title
from analysis.words_to_people import published_people
from corpora.config import readable_size

# Shares of pairs, at any size of any curve, from which a warning stands before the findings. Most slopes are of some
# .01 per doubling: a share of ties that falls by .01 a doubling makes one as large, and pairs with <unk> change an
# accuracy by a part of their share alone.
UNK_LIMIT = 0.05
TIE_LIMIT = 0.01
TIE_COUNTS = {"wrong": "counts as wrong", "half": "counts half", "right": "counts as right"}


def joined(words: Sequence[str]) -> str:
    """a, b and c"""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def plural(number: int, noun: str) -> str:
    """1 run, 2 runs"""
    plurals = {"phenomenon": "phenomena"}
    return f"{number:,} {noun if number == 1 else plurals.get(noun, noun + 's')}"


def beside(models: Sequence[str], asked: bool) -> str:
    """Who else stands in a table of accuracies: those named as eval.published does; people published, or `asked`."""
    others = "models that were trained on other and mostly more text" if set(models) - {"people"} else ""
    if not asked:
        return f"published accuracies of people and of {others}" if others else ""
    people = "people who answered a questionnaire" if "people" in models else ""
    return joined([*filter(None, [people, others and f"published accuracies of {others}"])])


def extent(runs: pd.DataFrame) -> str:
    """How much there is: "16 runs: 2 curves, 4 sizes from 125k to 1M words, seeds 1 and 2"."""
    unit = unit_of(runs)
    sizes = runs.groupby("size")["sample_words"].mean().sort_values().index
    groups = plural(runs["group"].nunique(), "curve")
    if len(sizes) > 1:
        span = f"{plural(len(sizes), 'size')} from {readable_size(sizes[0])} to {sized(sizes[-1], unit)}"
    else:
        span = f"one size, {sized(sizes[0], unit)}"
    seeds = joined([str(seed) for seed in sorted(runs["seed"].unique())])
    return f"{plural(len(runs), 'run')}: {groups}, {span}, seed{'s' if runs['seed'].nunique() > 1 else ''} {seeds}"


def in_text(name: str) -> str:
    """A phenomenon's name within a sentence: "island effects", but "NPI licensing"."""
    shown = title(name)
    return shown if shown[:2].isupper() and shown[:2].isalpha() else shown[:1].lower() + shown[1:]


def left_out(problems: pd.DataFrame, where: str) -> list[str]:
    """How many runs are not in the curves or tables, by status; nothing where all are."""
    if problems.empty:
        return []
    counts = joined([f"{number} {status}" for status, number in problems["status"].value_counts().items()])
    return [f"{plural(len(problems), 'run')} not in these {where}: {counts} (listed under provenance)."]


def warnings(judged: Judgements, ties: str) -> list[str]:
    """What a reader has to know before believing the curves; what could carry their results comes first."""
    return [
        *left_out(judged.problems, "curves"),
        *_unknown_words_carry(judged),
        *_ties_carry(judged, ties),
        *_unequal_ranges(judged.runs),
        *judged.notes,
        *_shared_text(judged.runs),
    ]


def _shares(judged: Judgements, what: npt.NDArray[Any]) -> pd.Series:
    """Mean share of pairs by group and size, smallest size first; `what`: judged.unk or judged.tie."""
    shares = judged.runs[["group", "size", "sample_words"]].assign(share=judged.share(what))
    return shares.sort_values("sample_words", kind="stable").groupby(["group", "size"], sort=False)["share"].mean()


def _extremes(shares: pd.Series, unit: str) -> str:
    """ "11% to 25% (most in lstm_tiny at 16k words)" """
    low, high = (f"{share:.0%}" for share in (shares.min(), shares.max()))
    if low == high:
        return high
    group, size = shares.index[int(shares.argmax())]
    return f"{low} to {high} (most in {group} at {sized(size, unit)})"


def _unknown_words_carry(judged: Judgements) -> list[str]:
    shares = _shares(judged, judged.unk)
    if shares.max() < UNK_LIMIT:
        return []
    unequal = judged.unequal.reindex(judged.runs.index).astype(float).max()
    more = f"; in up to {unequal:.0%} one sentence holds more of them than the other" if unequal > 0 else ""
    return [
        f"Unknown words could carry these results: {_extremes(shares, judged.unit)} of the pairs hold <unk>{more}. "
        + unknown_words(judged)
    ]


def _ties_carry(judged: Judgements, ties: str) -> list[str]:
    shares = _shares(judged, judged.tie)
    if shares.max() < TIE_LIMIT:
        return []
    counted = TIE_COUNTS[ties]
    if ties != "half":
        change = f"{accuracy_text(shares.max() / 2)} {'higher' if ties == 'wrong' else 'lower'}"
        counted += f" (counted half, accuracies would be up to {change})"
    return [
        f"Ties could carry these results: {_extremes(shares, judged.unit)} of the pairs have two equal scores, and "
        f"each {counted}."
    ]


def _unequal_ranges(runs: pd.DataFrame) -> list[str]:
    """Curves over other sizes than others have."""
    unit = unit_of(runs)
    ordered = runs.sort_values("sample_words", kind="stable")
    sizes = {str(group): tuple(dict.fromkeys(of["size"])) for group, of in ordered.groupby("group", sort=False)}
    if len(set(sizes.values())) < 2:
        return []
    told = joined([
        f"{group} has {plural(len(of), 'size')}, {readable_size(of[0])} to {sized(of[-1], unit)}" if len(of) > 1
        else f"{group} has one, {sized(of[0], unit)}"
        for group, of in sizes.items()
    ])  # fmt: skip
    return [f"Curves cover different sizes, so that their slopes do not compare as they stand: {told}."]


def _shared_text(runs: pd.DataFrame) -> list[str]:
    """Runs of one size that share text, or all of it."""
    unit = unit_of(runs)
    told = []
    by_size = runs.sort_values("sample_words").groupby("size", sort=False)
    overlap = by_size["overlap"].max()[by_size["seed"].nunique() > 1]
    high = overlap[overlap > OVERLAP_LIMIT]
    if len(high):
        shares = joined([f"{share:.0%} at {sized(str(size), unit)}" for size, share in high.items()])
        told.append(
            f"Samples of one size share much of their text ({shares}), so runs there differ less than runs on new text "
            "would: intervals of slopes, and bands, are widened for that."
        )
    trained_here = runs[["corpus" in manifest for manifest in runs["manifest"]]]
    digests = trained_here.assign(digest=[m["corpus"]["sample"]["digest"] for m in trained_here["manifest"]])
    at_size = digests.groupby(["group", "size"], sort=False)["digest"]
    same = at_size.size()[at_size.nunique() < at_size.size()]
    if len(same):
        where = joined([f"{group} at {sized(size, unit)}" for group, size in same.index])
        told.append(
            f"Some runs of one size were trained on the very same text ({where}): "
            "intervals there do not hold what new samples would change."
        )
    return told


def unknown_words(judged: Judgements) -> str:
    """One sentence on how many pairs are left without <unk>."""
    if judged.of_paradigms and judged.unk.any():
        return "Which pairs hold <unk> was not tracked, only how many do in each run."
    if not judged.unk.any():
        return "No pair holds an unknown word in any run, so all pairs are pairs without <unk>."
    left = int(judged.unk_free.sum())
    if not left:
        return "Every pair holds <unk> in some run: there is nothing to compare without it."
    return f"{left:,} of {len(judged.pairs):,} pairs hold no <unk> in any of the runs compared."


_OVER = (
    "Each pair is judged with {0}, and what it adds to accuracy is the mean over them: all accuracies are means over "
    "{0}, and a pair is one unit wherever pairs are resampled."
)

_BOTH = (
    "add the variance of pairs' own slopes within paradigms, without the chance in single judgements that the spread "
    "between runs holds already; paradigms are fixed"
)


def judging(judged: Judgements, ties: str) -> list[str]:
    """How scores became judgements and accuracies, for a paper."""
    paradigms = judged.pairs["paradigm"].nunique()
    return [
        f"A pair counts as right if the {judged.method} score of its good sentence is above that of its bad one; a tie "
        f"{TIE_COUNTS[ties]}. {judged.label} has {plural(judged.n_pairs, 'pair')} in {plural(paradigms, 'paradigm')}; "
        "accuracies of phenomena and of the whole are means over paradigms.",
        *([_OVER.format(judged.over)] if judged.over else []),
        *_policies(judged),
    ]


def methods(judged: Judgements, curves: Curves, config: CurvesConfig, ties: str) -> list[str]:
    """The methods paragraph, for a paper: what was scored how, what was fitted and what the intervals mean."""
    references = sorted(judged.runs["reference"].unique())
    text = [
        *judging(judged, ties),
        f"Curves are least-squares lines of a run's accuracy on log2 of its distinct training {judged.unit} (of the "
        f"reference tokenizer, {joined(references)}, not the model's tokens): the slope is accuracy gained per "
        "doubling.",
    ]
    text += _interval_methods(set(curves.slopes["method"]), config)
    people = published_people(judged.label.partition("+")[0], config.people_correlation)
    if people and people.design_effect > 1:
        text.append(
            f"The sampling error of published people's accuracy takes the {people.judgements} judgements of one pair "
            f"to go together (intraclass correlation {accuracy_text(people.correlation).rstrip('0')})."
        )
    if UNK_FREE in set(curves.slopes["pairs"]):
        text.append("Everything is also given for the pairs that hold no <unk> in any of the runs compared.")
    text.append(
        "Slopes weigh sizes equally, however many runs of each are finished. Bands are Wilson's limits, with Student's "
        "quantile, of the mean over new runs for these pairs, with the variance of the runs of a size (pooled over "
        "sizes, or its own if larger, where it has two; none where it has one) and no less than chance in single "
        "judgements gives. Onset is the smallest size studied from which on the lower bound of these bands exceeds "
        f"{_baselines(curves)}, for curves that rise; where that is the smallest size, it may lie below. "
        "Lines are fitted to the sizes studied only: nothing here says that they go on, and accuracy cannot exceed 1."
    )
    text.append(
        f"A line is rejected where the test of its lack of fit (Brunner, Dette and Munk 1997) has p < {_alpha()}. "
        "Curves are compared over the sizes that both have, run by run where both trained on the same text with the "
        f"same seed; they differ where Holm's p < {_alpha()}, and do not differ where two one-sided tests, by Holm "
        f"too, place the difference within {accuracy_text(config.equivalence_margin)} per doubling. Shares of pairs "
        "are warned of, at any size, from "
        f"{UNK_LIMIT:.0%} with <unk>, and from {TIE_LIMIT:.0%} with two equal scores."
    )
    return text


def _alpha() -> str:
    return f"{ALPHA:g}".removeprefix("0")


def _interval_methods(used: set[str], config: CurvesConfig) -> list[str]:
    """How the intervals of slopes were made; `used`: Curves.slopes["method"]."""
    level = f"{config.confidence:.0%}"
    text = []
    errors = {
        T_SIZES: "each size with the spread of its own runs (degrees of freedom by Satterthwaite)",
        T_HC3: "with HC3 errors and the degrees of freedom of Bell and McCaffrey (2002)",
        T_HC2: "with HC2 errors and the degrees of freedom of Bell and McCaffrey (2002), as some size has one run",
    }
    if chosen := [text for method, text in errors.items() if method in used]:
        text.append(
            f"{level} intervals are t intervals over runs, {joined(chosen)}, as the bootstrap needs five runs at each "
            "size: they say where the slope would lie with new samples of text and new initialisations, for these "
            "pairs; errors by HC2 and HC3 hold the distance of a bent curve from its line too. The intervals for new "
            f"pairs too {_BOTH}."
        )
    if T_SEEDS in used:
        text.append(
            f"{level} intervals of nested samples are t intervals over the slopes of seeds, as the runs of a seed "
            f"share their text. The intervals for new pairs too {_BOTH}."
        )
    if BOOTSTRAP in used:
        text.append(
            f"{level} intervals are from a crossed bootstrap ({config.resamples:,} resamples, seed {config.seed}): "
            "they say where the slope would lie with new samples of text and new initialisations, for these pairs. "
            "Runs are drawn within their size (whole seeds where samples are nested) and, for the intervals over new "
            "pairs, pairs within their paradigm in one draw shared by all runs; paradigms are fixed. Limits are "
            "percentiles, scaled to a standard error that counts chance in single judgements once and widened by the "
            "ratio of Student's to the normal quantile (degrees of freedom by Satterthwaite)."
        )
    if RUN_BOOTSTRAP in used:
        text.append(
            f"{level} intervals are from a bootstrap over runs ({config.resamples:,} resamples, seed {config.seed}): "
            "they say where the slope would lie with new samples of text and new initialisations, for these pairs. "
            "Runs are drawn within their size (whole seeds where samples are nested). Limits are percentiles, scaled "
            "to the standard error over runs and widened by the ratio of Student's to the normal quantile (degrees of "
            "freedom by Satterthwaite)."
        )
    if NO_INTERVAL in used:
        text.append("Where a curve has too few runs for an interval, none is given.")
    return text


def _baselines(curves: Curves) -> str:
    """What an onset is above, by group where it differs."""
    named = curves.slopes[["group", "onset_baseline"]].drop_duplicates()
    told = {name: str(name).replace(CHANCE_BASELINE, "chance (.5)") for name in named["onset_baseline"]}
    if len(told) == 1:
        return next(iter(told.values()))
    return joined([f"{told[name]} ({group})" for group, name in named.itertuples(index=False)])


_HIDDEN = {
    "original": "each token is hidden alone (Salazar et al. 2020)",
    "within_word_l2r": "each token is hidden with those after it in its word (Kauf and Ivanova 2023)",
}


def _policies(judged: Judgements) -> list[str]:
    told: dict[str, list[str]] = {}
    for group, policy in judged.policies.items():
        ends = "is" if policy["score_eos"] else "is not"
        eos = f"{policy['context_tokens']} <eos>"
        before = {"none": "nothing but the begin symbol", "eos": eos, "text": "a fixed text"}[policy["context"]]
        unk = "scored as <unk>" if policy["unk"] == "score" else "skipped"
        text = f"before each stands {before}, its end {ends} scored, unknown words are {unk}"
        if judged.method == "pll":
            text += f", and {_HIDDEN[policy.get('pll') or 'within_word_l2r']}"
        told.setdefault(text, []).append(group)
    what = f"What {judged.method} reads of a pair is" if judged.over else "Sentences are"
    if len(told) == 1:
        return [f"{what} scored alone: {next(iter(told))}."]
    return [f"{what} scored alone. {joined(groups)}: {text}." for text, groups in told.items()]
