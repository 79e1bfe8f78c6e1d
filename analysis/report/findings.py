"""Write the sentences of a report: findings on curves, comparisons and phenomena, and notes on reading them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from analysis.formats import change_in_text, in_text, joined, level_text, p_in_text, p_text, plural, rows_of
from eval.scores.accuracy import stratified_trials
from pairscale.shares import wilson
from pairscale.sizes import format_size, readable_size

ALPHA = 0.05  # significance level of the lack-of-fit test
MOST_COMPARISONS = 3  # maximum number of comparisons, or curves, to describe
MOST_NAMED = 6  # maximum number of phenomena that a sentence lists
LEAST_PHENOMENA = 4  # minimum number of phenomena for naming the best and the worst
FEW = 20  # a note lists the phenomena with fewer pairs than this
UNKNOWN_SHARE, TIED_SHARE, SHARED_TEXT = 0.05, 0.01, 0.1  # a note mentions shares of at least this size


class Finding(NamedTuple):
    """One or two sentences about a subject, such as a curve. The subject may be ""."""

    subject: str
    text: str


def size_text(words: float, unit: str = "") -> str:
    """Format an amount of text, such as "4k words" or "31,250 words"."""
    return f"{readable_size(format_size(round(words)))} {unit}".strip()


def curve_findings(slopes: pd.DataFrame, confidence: float, trials: Mapping[Any, float] | None = None) -> list[Finding]:
    """Return one finding per curve, with its accuracy at both ends and its overall slope with a confidence interval.

    Args:
        slopes: The table of `analysis.fit_curves`.
        confidence: The level of its intervals.
        trials: The result of `trials_of` for each curve, for the interval of a curve with a single size.
    """
    whole = slopes[slopes["level"] == "overall"]
    return [
        Finding(str(row.curve), _curve_text(row, confidence, (trials or {}).get(row.curve))) for row in rows_of(whole)
    ]


def _curve_text(row: Any, confidence: float, trials: float | None) -> str:
    small, large = (size_text(words, row.unit) for words in (row.smallest_words, row.largest_words))
    if pd.isna(row.slope):
        over = over_pairs(row.largest_accuracy, trials, confidence)
        none = "There is only one training size, so there is no learning curve yet."
        return f"accuracy is {row.largest_accuracy:.0%} after {large}{over}. {none}"
    unclear = row.low <= 0 <= row.high
    change, interval = change_in_text(row.slope, row.low, row.high, confidence, signed=unclear)
    verb = "changes it by" if unclear else "adds" if row.slope > 0 else "takes away"
    doubling = f"doubling of the text {verb} about {change}"
    each = "We can't tell whether accuracy changes with more text: each" if unclear else "Each"
    sentences = [
        f"accuracy is {row.smallest_accuracy:.0%} after {small} and {row.largest_accuracy:.0%} after {large}.",
        f"{each} {doubling}{interval and f' ({interval})'}.",
    ]
    if row.lack_of_fit < ALPHA:
        test = f"lack-of-fit test, {p_in_text(row.lack_of_fit)}"
        sentences.append(f"Growth isn't steady ({test}), so read this slope as an average over these sizes.")
    return " ".join([*sentences, _sentence(row.note)]).strip()


def trials_of(rows: pd.DataFrame) -> float:
    """Return the effective number of independent pairs of an overall accuracy, or NaN if it isn't known.

    Args:
        rows: Rows of the long table for one curve, size and method. Runs judge the same pairs, so they are averaged.
    """
    given = rows[rows["phenomenon"].isna() & rows["paradigm"].isna()]  # an overall accuracy that the source reports
    groups = (rows if given.empty else given).groupby(["phenomenon", "paradigm"], dropna=False)
    shares, pairs = groups["accuracy"].mean(), groups["pairs"].first()
    weights = np.full((len(pairs), 1), 1 / len(pairs))
    return float(stratified_trials(shares, pairs.astype(float), weights)[0])


def over_pairs(accuracy: float, trials: float | None, confidence: float) -> str:
    """Return the interval of an accuracy over new pairs, in brackets. The text is empty if `trials` isn't known.

    Args:
        accuracy: The accuracy of one run, or the mean over several runs.
        trials: The result of `trials_of`, which is the number of pairs in Wilson's interval.
        confidence: The level of the interval.
    """
    if trials is None or pd.isna(trials):
        return ""
    low, high = wilson(accuracy, trials, confidence)
    return f" ({level_text(confidence)} confidence interval over pairs {low:.0%} to {high:.0%})"


def comparison_findings(differences: pd.DataFrame, slopes: pd.DataFrame, confidence: float) -> list[Finding]:
    """Compare the overall slopes of curves. The comparisons with the smallest p values come first.

    Args:
        differences: The table of `analysis.compare`.
        slopes: The table of `analysis.fit_curves`. Curves without a slope are skipped.
        confidence: The level of the intervals. A difference is clear if its corrected p value is below 1 - confidence.
    """
    sloped = set(slopes.loc[(slopes["level"] == "overall") & slopes["slope"].notna(), "curve"])
    known = differences[["curve", "other"]].isin(sloped).all(axis=1)
    whole = differences[known & (differences["level"] == "overall")].sort_values("p_holm", kind="stable")
    findings = [_comparison_text(row, confidence, len(whole)) for row in rows_of(whole.head(MOST_COMPARISONS))]
    if len(whole) > MOST_COMPARISONS:
        alpha = round(1 - confidence, 6)
        sure = int((whole["p_holm"] < alpha).sum())
        all_text = f"Slopes differ in {sure} of {len(whole)} comparisons (p < {p_text(alpha)} after Holm's correction)."
        findings.append(Finding("", f"{all_text} The section 'Differences between curves' lists all comparisons."))
    return findings


def _comparison_text(row: Any, confidence: float, comparisons: int) -> Finding:
    """Describe one comparison. The curve with the higher slope comes first."""
    first, second = (row.other, row.curve) if row.difference < 0 else (row.curve, row.other)
    if pd.isna(row.difference):
        return Finding(f"{first} and {second}", f"Their slopes can't be compared. {_sentence(row.note)}")
    change, interval = change_in_text(row.difference, row.low, row.high, confidence)
    corrected = f" after Holm's correction for {comparisons} comparisons" if comparisons > 1 else ""
    sure = f"({interval}; {p_in_text(row.p_holm)}{corrected})" if interval else "(no confidence interval)"
    text = f"{change} more per doubling than {second} {sure}. {_sentence(row.note)}".strip()
    if row.p_holm < 1 - confidence:
        return Finding(f"{first} gains faster", f"it gains {text}")
    is_equal = row.equivalent is not pd.NA and row.equivalent
    verdict = "Their slopes are equivalent within the margin" if is_equal else "We can't tell which one gains faster"
    return Finding(f"{first} and {second}", f"{verdict}: {first} gains {text}")


def extreme_findings(slopes: pd.DataFrame) -> list[Finding]:
    """Name the phenomena with the largest and smallest slopes and final accuracies, for the first few curves.

    `slopes` is the table of `analysis.fit_curves`. The list is empty if all curves have few phenomena.
    """
    phenomena = slopes[(slopes["level"] == "phenomenon") & slopes["slope"].notna()]
    by_curve = [(curve, rows) for curve, rows in phenomena.groupby("curve", sort=False) if len(rows) >= LEAST_PHENOMENA]
    sentences = []
    for curve, rows in by_curve[:MOST_COMPARISONS]:
        worst, *_, best = map(_phenomenon_text, rows_of(rows.sort_values("slope", kind="stable")))
        sentences.append(f"{curve} gains most in {best} and least in {worst}.")
        low, *_, high = rows_of(rows.sort_values("largest_accuracy", kind="stable"))
        best, worst = (f"{in_text(one.name)} ({one.largest_accuracy:.0%})" for one in (high, low))
        sentences.append(f"With the most text, it is best at {best} and worst at {worst}.")
    if not sentences:
        return []
    others = " The section 'Phenomena' describes the other curves." if len(by_curve) > MOST_COMPARISONS else ""
    return [Finding("Learned best and worst", " ".join(sentences) + others)]


def _phenomenon_text(row: Any) -> str:
    """Return a phenomenon and its change, such as "ellipsis (26% to 47%)"."""
    ends = f"{row.smallest_accuracy:.0%} to {row.largest_accuracy:.0%}"
    return f"{in_text(row.name)} ({ends}{'; the trend is unclear' if row.low <= 0 <= row.high else ''})"


def phenomena_findings(slopes: pd.DataFrame) -> list[Finding]:
    """List the phenomena in which accuracy rises, falls or has no clear trend, for each curve."""
    findings = []
    for curve, rows in slopes[slopes["level"] == "phenomenon"].groupby("curve", sort=False):
        known = rows[rows["low"].notna()].sort_values("slope", ascending=False)
        if known.empty:
            continue
        rises, falls, bends = known["low"] > 0, known["high"] < 0, known["lack_of_fit"].astype(float) < ALPHA
        unknown = rows["low"].isna() & rows["slope"].notna()
        texts_of = {
            "It falls in {}.": falls,
            "The trend is unclear in {}, where the interval includes zero.": ~rises & ~falls,
            "Growth isn't steady in {} (lack-of-fit test, p < .05), so read the slope there as an average.": bends,
        }
        sentences = [f"accuracy rises in {rises.sum()} of {plural(len(rows), 'phenomenon')}."]
        sentences += [text.format(_names(known.loc[named, "name"])) for text, named in texts_of.items() if named.any()]
        if unknown.any():
            sentences.append(f"There is no confidence interval for {_names(rows.loc[unknown, 'name'])}.")
        findings.append(Finding(str(curve), " ".join(sentences)))
    return findings


def _sentence(note: str) -> str:
    """Add a full stop to a note that lacks one."""
    return note if not note or note.endswith(".") else f"{note}."


def _names(phenomena: pd.Series) -> str:
    return joined([*map(in_text, phenomena)]) if len(phenomena) <= MOST_NAMED else f"{len(phenomena)} phenomena"


def notes_of_scores(accuracies: pd.DataFrame, ties: str) -> list[str]:
    """Return notes on unknown words, ties and small phenomena that could explain a result.

    Args:
        accuracies: The curves' rows of the long table, for one benchmark and method.
        ties: What a tie counts as, such as "wrong" (eval.scores.accuracy.tie_rule).
    """
    counted = accuracies.dropna(subset=["pairs", "pairs_with_unk", "ties"])
    sums = counted.groupby(["curve", "size"], sort=False)[["pairs", "pairs_with_unk", "ties"]].sum().astype(float)
    sums.index = sums.index.map(", ".join)
    unknown, tied = sums["pairs_with_unk"] / sums["pairs"], sums["ties"] / sums["pairs"]
    few = counted.drop_duplicates("paradigm").groupby("phenomenon", sort=False)["pairs"].sum().loc[lambda of: of < FEW]
    notes: list[str] = []
    if unknown.max() >= UNKNOWN_SHARE:
        notes.append(
            f"The largest share of pairs with an unknown word is {unknown.max():.1%} ({unknown.idxmax()}). The section "
            "'Unknown words and ties' shows the accuracy without these pairs."
        )
    if tied.max() >= TIED_SHARE:
        notes.append(f"The largest share of ties is {tied.max():.1%} ({tied.idxmax()}). A tie counts as {ties}.")
    if len(few):
        named = joined([f"{in_text(str(name))} ({number})" for name, number in few.head(MOST_NAMED).items()])
        notes.append(f"Some phenomena have fewer than {FEW} pairs, so their accuracy changes in large steps: {named}.")
    return notes


def notes_of_runs(runs: pd.DataFrame) -> list[str]:
    """Return notes on sizes, shared text and vocabulary that could explain a result.

    `runs` contains the runs of the curves.
    """
    notes: list[str] = []
    sizes = runs.dropna(subset="sample_words").groupby("curve", sort=False)["sample_words"].unique().map(sorted)
    if sizes.map(str).nunique() > 1:
        ranges = [f"{curve} {size_text(of[0])} to {size_text(of[-1])}" for curve, of in sizes.items()]
        notes.append(f"The curves cover different sizes, so compare their slopes with care: {'; '.join(ranges)}.")
    shared = runs[runs.duplicated(["curve", "size"], keep=False)].dropna(subset=["overlap", "sample_words"])
    if shared["overlap"].max() >= SHARED_TEXT:
        row = shared.sort_values("overlap").iloc[-1]
        notes.append(
            f"Different samples of {size_text(row['sample_words'], 'words')} share {row['overlap']:.0%} of their text. "
            "Intervals apply to new samples of this corpus, not to other corpora."
        )
    if "vocabulary" in runs and runs["vocabulary"].isin(["pieces", "text"]).any():
        notes.append(
            "Part of a rise may be due to vocabulary. Small samples may lack words of the pairs. These words don't "
            "count as unknown, because the tokenizer was fitted to the whole corpus. To check this, score pairs made "
            "only of words that every sample contains (benchmark=generated benchmark.vocabulary=study)."
        )
    return notes


def missing_runs(problems: pd.DataFrame) -> list[str]:
    """Return a note with the number of runs left out, by status. The list is empty if there are none."""
    counts = joined([f"{number} {status}" for status, number in problems["status"].value_counts().items()])
    text = f"This report leaves out {plural(len(problems), 'run')} ({counts}). See 'Runs left out' for the reasons."
    return [text] if counts else []
