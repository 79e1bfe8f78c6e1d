"""The sentences of a report: one finding per curve, the comparison of curves, and what to know before quoting them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.curves.fit import AT_ENDS
from analysis.formats import (
    in_text,
    joined,
    level_text,
    p_in_text,
    p_text,
    per_cent_text,
    plural,
    points,
    points_between,
    rows_of,
)
from pairscale.sizes import format_size, readable_size

ALPHA = 0.05  # of the lack-of-fit test
MOST_COMPARISONS = 3  # on the first screen
MOST_NAMED = 6  # phenomena that a sentence lists
FEW_PAIRS = 20  # a phenomenon of fewer pairs is mentioned
UNKNOWN_SHARE, TIED_SHARE, SHARED_TEXT = 0.05, 0.01, 0.1  # shares from which they are mentioned


@dataclass(frozen=True)
class Finding:
    """A sentence or two about a subject, such as a curve; the subject may be ""."""

    subject: str
    text: str


def size_text(words: float, unit: str = "") -> str:
    """Format an amount of text: "4k words", "31,250 words"."""
    return f"{readable_size(format_size(round(words)))} {unit}".strip()


def headline(slopes: pd.DataFrame) -> str:
    """Return a sentence on all curves if all of them rise or fall, else an empty text."""
    whole = slopes[slopes["level"] == "overall"]
    if len(whole) < 2 or whole["low"].isna().any():
        return ""
    curves = "both curves" if len(whole) == 2 else f"all {len(whole)} curves"
    if (whole["low"] > 0).all():
        return f"Accuracy rises with more text in {curves}."
    return f"Accuracy falls with more text in {curves}." if (whole["high"] < 0).all() else ""


def curve_findings(slopes: pd.DataFrame, confidence: float) -> list[Finding]:
    """Return one finding per curve: its accuracy at both ends, its overall slope, and how sure that is.

    Args:
        slopes: the table of `analysis.fit_curves`.
        confidence: the level of its intervals.
    """
    whole = slopes[slopes["level"] == "overall"]
    return [Finding(str(row.curve), _curve(row, confidence)) for row in rows_of(whole)]


def _curve(row: Any, confidence: float) -> str:
    small, large = size_text(row.smallest_words), size_text(row.largest_words, row.unit)
    ends = f"{row.smallest_accuracy:.0%} correct after {small}, {row.largest_accuracy:.0%} after {large}."
    if pd.isna(row.slope):
        at = f"{row.largest_accuracy:.0%} correct after {large}."
        return f"{at} There is only one training size, so there is no learning curve yet."
    interval = f"{level_text(confidence)} confidence interval"
    if pd.isna(row.low):
        text = f"Each doubling of the text changes accuracy by {_signed(row.slope)} points on average."
        return f"{ends} {text} {_sentence(row.note)}"
    limits = points_between(row.low, row.high)
    if row.low > 0 or row.high < 0:
        verb = "adds" if row.low > 0 else "takes away"
        low, high = (row.low, row.high) if row.low > 0 else (-row.high, -row.low)
        change = points(abs(row.slope), row.low, row.high)
        text = f"Each doubling of the text {verb} about {change} points ({interval} {points_between(low, high)})."
    else:
        text = (
            "We can't tell whether accuracy changes with more text: "
            f"{_signed(row.slope, row.low, row.high)} points per doubling ({interval} {limits})."
        )
    return f"{ends} {text}{_bent(row)} {_sentence(row.note)}".strip()


def _signed(value: float, low: float = math.nan, high: float = math.nan) -> str:
    text = points(value, low, high)
    return text if text.startswith("-") or value == 0 else f"+{text}"


def _bent(row: Any) -> str:
    if pd.isna(row.lack_of_fit) or row.lack_of_fit >= ALPHA:
        return ""
    if row.low <= 0 <= row.high:
        return f" But it doesn't change at a steady rate (lack-of-fit test, {p_in_text(row.lack_of_fit)})."
    over = f"{size_text(row.smallest_words)} to {size_text(row.largest_words, row.unit)}"
    return (
        f" Growth isn't steady (lack-of-fit test, {p_in_text(row.lack_of_fit)}), so read this slope as an average over "
        f"{over}."
    )


def comparison_findings(differences: pd.DataFrame, slopes: pd.DataFrame, confidence: float) -> list[Finding]:
    """Return the comparisons of curves by their overall slopes, the surest first.

    Args:
        differences: the table of `analysis.compare`.
        slopes: the table of `analysis.fit_curves`; curves without a slope aren't mentioned.
        confidence: the level of the intervals; a corrected p value below 1 - confidence shows a difference.
    """
    overall = slopes[(slopes["level"] == "overall") & slopes["slope"].notna()]
    falling = set(overall.loc[overall["slope"] < 0, "curve"])
    whole = differences[differences["level"] == "overall"].sort_values("p_holm", kind="stable")
    whole = whole[whole["curve"].isin(overall["curve"]) & whole["other"].isin(overall["curve"])]
    shown = rows_of(whole.head(MOST_COMPARISONS))
    findings = [_compared(row, confidence, len(whole), {row.curve, row.other} <= falling) for row in shown]
    if len(whole) > MOST_COMPARISONS:
        alpha = round(1 - confidence, 6)
        sure = int((whole["p_holm"] < alpha).sum())
        all_text = f"Slopes differ in {sure} of {len(whole)} comparisons (p < {p_text(alpha)}, Holm's correction)."
        findings.append(Finding("", f"{all_text} The table of differences has all of them."))
    return findings


def _compared(row: Any, confidence: float, comparisons: int, falling: bool) -> Finding:
    gains, more = ("loses more slowly", "fewer") if falling else ("gains faster", "more")
    corrected = f" after Holm's correction for {comparisons} comparisons" if comparisons > 1 else ""
    subject = f"{row.curve} and {row.other}"
    if pd.isna(row.difference):
        return Finding(subject, f"Their slopes can't be compared. {_sentence(row.note)}")
    if pd.isna(row.low):
        by = f"Their slopes differ by {points(abs(row.difference))} points per doubling"
        return Finding(subject, f"{by}, without a confidence interval. {_sentence(row.note)}")
    note = f" {_sentence(row.note)}".rstrip()
    if row.p_holm < 1 - confidence:
        faster, slower = (row.curve, row.other) if row.difference > 0 else (row.other, row.curve)
        low, high = (row.low, row.high) if row.difference > 0 else (-row.high, -row.low)
        change = points(abs(row.difference), row.low, row.high)
        interval = f"{level_text(confidence)} confidence interval {points_between(low, high)}"
        sure = f"({interval}; {p_in_text(row.p_holm)}{corrected})"
        text = f"{change} points {more} per doubling than {slower} {sure}.{note}"
        return Finding(f"{faster} {gains}", text)
    interval = f"{level_text(confidence)} confidence interval {points_between(row.low, row.high)}"
    limits = f"({interval}; {p_in_text(row.p_holm)}{corrected})"
    difference = f"{_signed(row.difference, row.low, row.high)} points per doubling {limits}"
    if corrected and (row.low > 0 or row.high < 0):
        note = f" The interval itself isn't corrected.{note}"
    if row.equivalent is not pd.NA and row.equivalent:
        return Finding(subject, f"Their slopes are equal within the margin: {difference}.{note}")
    return Finding(subject, f"We can't tell which one {gains}: {difference}.{note}")


def phenomena_findings(slopes: pd.DataFrame) -> list[Finding]:
    """Return, for each curve, in which phenomena accuracy rises, falls, or has no clear trend."""
    findings = []
    for curve, rows in slopes[slopes["level"] == "phenomenon"].groupby("curve", sort=False):
        known = rows[rows["low"].notna()].sort_values("slope", ascending=False)
        if known.empty:
            continue
        unknown = rows[rows["low"].isna()]
        rising, falling = known[known["low"] > 0], known[known["high"] < 0]
        unclear = known.drop(rising.index).drop(falling.index)
        text = f"accuracy rises in {len(rising)} of {plural(len(rows), 'phenomenon')}"
        text += f" and falls in {len(falling)} ({_names(falling)})." if len(falling) else "."
        if len(unclear):
            are = "its interval includes" if len(unclear) == 1 else "their intervals include"
            text += f" The trend is unclear in {_names(unclear)}: {are} zero."
        bent = known[known["lack_of_fit"].fillna(1).astype(float) < ALPHA]
        if len(bent):
            slopes_are = "its slope is an average" if len(bent) == 1 else "their slopes are averages"
            text += f" Growth isn't steady in {_names(bent)} (lack-of-fit test, p < .05): {slopes_are}."
        if len(unknown):
            text += f" There is no interval for {_names(unknown)}."
        ends = known[known["note"].str.contains(AT_ENDS, regex=False)]
        if len(ends):
            text += f" Most runs of a size are at 0 or 1 in {_names(ends)}, so that intervals may be too narrow there."
        findings.append(Finding(str(curve), text))
    return findings


def _sentence(note: str) -> str:
    """Return a note with a full stop."""
    return note if not note or note.endswith(".") else f"{note}."


def _names(rows: pd.DataFrame) -> str:
    names = [in_text(name) for name in rows["name"]]
    return joined(names) if len(names) <= MOST_NAMED else f"{len(names)} phenomena"


def notes_of_scores(accuracies: pd.DataFrame, ties: str) -> list[str]:
    """Return notes on unknown words, ties and small benchmarks that could explain a result.

    Args:
        accuracies: the long table of one benchmark and method, of curves.
        ties: what a tie counts as: "wrong", "half" or "right".
    """
    notes: list[str] = []
    counted = accuracies.dropna(subset=["pairs", "pairs_with_unk", "ties"])
    if counted.empty:
        return notes
    sums = counted.groupby(["curve", "size"], sort=False)[["pairs", "pairs_with_unk", "ties"]].sum().astype(float)
    unknown, tied = sums["pairs_with_unk"] / sums["pairs"], sums["ties"] / sums["pairs"]
    if unknown.max() >= UNKNOWN_SHARE:
        curve, size = unknown.index[int(unknown.argmax())]
        notes.append(
            f"Up to {per_cent_text(unknown.max())} of the pairs contain an unknown word ({curve}, {size}). Accuracy "
            "without them is under “Unknown words and ties”."
        )
    if tied.max() >= TIED_SHARE:
        curve, size = tied.index[int(tied.argmax())]
        change = points(tied.max() / (2 if ties == "half" else 1))
        notes.append(
            f"Up to {per_cent_text(tied.max())} of the pairs are ties ({curve}, {size}); a tie counts as {ties}. "
            f"Counted otherwise, accuracy would change by up to {change} points."
        )
    pairs = counted.groupby("run", sort=False).head(10**6).drop_duplicates(["benchmark", "paradigm"])
    few = pairs.groupby("phenomenon", sort=False)["pairs"].sum()
    few = few[few.astype(float) < FEW_PAIRS]
    if len(few):
        named = joined([f"{in_text(str(name))} ({number})" for name, number in few.head(MOST_NAMED).items()])
        notes.append(
            f"Some phenomena have fewer than {FEW_PAIRS} pairs, so their accuracy moves in large steps: {named}."
        )
    return notes


def notes_of_runs(runs: pd.DataFrame) -> list[str]:
    """Return notes on sizes, shared text and vocabulary that could explain a result.

    Args:
        runs: rows of `analysis.runs` that belong to curves.
    """
    notes: list[str] = []
    sizes = _sizes_of(runs)
    if sizes.nunique() > 1:
        ranges = [f"{curve} {size_text(of[0])} to {size_text(of[-1])}" for curve, of in sizes.items() if of]
        notes.append(f"Curves cover different sizes, so their slopes aren't directly comparable: {'; '.join(ranges)}.")
    shared = runs.dropna(subset=["overlap", "sample_words"])
    shared = shared[shared.groupby(["curve", "size"])["run"].transform("size") > 1]
    if len(shared) and shared["overlap"].max() >= SHARED_TEXT:
        row = shared.sort_values("overlap").iloc[-1]
        notes.append(
            f"Samples of {size_text(row['sample_words'], 'words')} share {row['overlap']:.0%} of their text. "
            "Intervals are about new samples of this corpus, not about other corpora."
        )
    if "vocabulary" in runs and runs["vocabulary"].isin(["pieces", "text"]).any():
        notes.append(
            "Small samples may lack words of the pairs, and these wouldn't be counted as unknown words, because the "
            "tokenizer was fitted to the whole corpus. So part of a rise may be vocabulary. To check, score pairs "
            "made only of words that every sample contains (benchmark=generated benchmark.vocabulary=study)."
        )
    return notes


def _sizes_of(runs: pd.DataFrame) -> pd.Series:
    """Return the sizes of each curve, as a tuple of words."""
    words = runs.groupby("curve", sort=False)["sample_words"]
    return pd.Series({curve: tuple(sorted(set(of.dropna()))) for curve, of in words}, dtype=object)


def checked(accuracies: pd.DataFrame, runs: pd.DataFrame, complete: bool) -> str:
    """Return one sentence on what was checked and found in order; an empty text if nothing was.

    `complete`: whether all runs that the study should have are known to be there.
    """
    fine = ["no missing runs"] if complete else []
    counted = accuracies.dropna(subset=["pairs", "ties", "pairs_with_unk"])
    if len(counted):
        fine += ["no ties"] if not counted["ties"].astype(float).any() else []
        fine += ["no unknown words"] if not counted["pairs_with_unk"].astype(float).any() else []
    sizes = _sizes_of(runs)
    if len(sizes) > 1 and sizes.nunique() == 1:
        fine.append("the same sizes for all curves")
    return f"Checked: {', '.join(fine)}." if fine else ""


def missing_runs(problems: pd.DataFrame) -> list[str]:
    """Return a note that counts the runs that are left out, by status."""
    if problems.empty:
        return []
    counts = joined([f"{number} {status}" for status, number in problems["status"].value_counts().items()])
    are = "run isn't" if len(problems) == 1 else "runs aren't"
    return [f"{len(problems)} {are} in this report ({counts}). “Runs” lists them."]


def texts(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    """Return findings as the takeaways of an exhibit."""
    return [(finding.subject, finding.text) for finding in findings]
