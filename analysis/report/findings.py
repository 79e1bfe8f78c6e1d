"""The sentences of a report: one finding per curve, the comparison of curves, and what to know before quoting them."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from analysis.curves.fit import AT_ENDS
from analysis.formats import in_text, interval_in_text, joined, level_text, p_in_text, p_text, plural, points, rows_of
from pairscale.shares import wilson
from pairscale.sizes import format_size, readable_size

ALPHA = 0.05  # of the lack-of-fit test
MOST_COMPARISONS = 3  # on the first screen
MOST_NAMED = 6  # phenomena that a sentence lists
FEW_PAIRS = 20  # a phenomenon of fewer pairs is mentioned
UNKNOWN_SHARE, TIED_SHARE, SHARED_TEXT = 0.05, 0.01, 0.1  # shares from which they are mentioned


class Finding(NamedTuple):
    """A sentence or two about a subject, such as a curve; the subject may be ""."""

    subject: str
    text: str


def size_text(words: float, unit: str = "") -> str:
    """Format an amount of text: "4k words", "31,250 words"."""
    return f"{readable_size(format_size(round(words)))} {unit}".strip()


def headline(slopes: pd.DataFrame) -> str:
    """Return a sentence on all curves if all of them rise or fall, else an empty text."""
    whole = slopes[slopes["level"] == "overall"]
    verb = "rises" if (whole["low"] > 0).all() else "falls" if (whole["high"] < 0).all() else ""
    curves = "both curves" if len(whole) == 2 else f"all {len(whole)} curves"
    return f"Accuracy {verb} with more text in {curves}." if verb and len(whole) > 1 else ""


def curve_findings(slopes: pd.DataFrame, confidence: float, pairs: Mapping[Any, float] | None = None) -> list[Finding]:
    """Return one finding per curve: its accuracy at both ends, its overall slope, and how sure that is.

    Args:
        slopes: the table of `analysis.fit_curves`.
        confidence: the level of its intervals.
        pairs: the number of pairs of each curve, for an interval of the accuracy of a curve with one size.
    """
    whole = slopes[slopes["level"] == "overall"]
    return [Finding(str(row.curve), _curve(row, confidence, (pairs or {}).get(row.curve))) for row in rows_of(whole)]


def _curve(row: Any, confidence: float, pairs: float | None) -> str:
    small, large = size_text(row.smallest_words), size_text(row.largest_words, row.unit)
    if pd.isna(row.slope):
        over = over_pairs(row.largest_accuracy, pairs, confidence)
        none = "There is only one training size, so there is no learning curve yet."
        return f"{row.largest_accuracy:.0%} correct after {large}{over}. {none}"
    change, bent = _signed(row.slope, row.low, row.high), ""
    test = f"(lack-of-fit test, {p_in_text(row.lack_of_fit)})"
    if pd.isna(row.low):
        text = f"Each doubling of the text changes accuracy by {change} points on average."
    elif row.low <= 0 <= row.high:
        limits = f"{change} points per doubling ({interval_in_text(row.low, row.high, confidence)})"
        text = f"We can't tell whether accuracy changes with more text: {limits}."
        bent = f"But it doesn't change at a steady rate {test}."
    else:
        verb = "adds" if row.low > 0 else "takes away"
        size, low, high = _without_sign(row.slope, row.low, row.high)
        text = f"Each doubling of the text {verb} about {size} points ({interval_in_text(low, high, confidence)})."
        bent = f"Growth isn't steady {test}, so read this slope as an average over {small} to {large}."
    ends = f"{row.smallest_accuracy:.0%} correct after {small}, {row.largest_accuracy:.0%} after {large}."
    return " ".join(filter(None, [ends, text, bent if row.lack_of_fit < ALPHA else "", _sentence(row.note)]))


def over_pairs(accuracy: float, pairs: float | None, confidence: float) -> str:
    """Return Wilson's interval of an accuracy for new pairs, in brackets; an empty text if `pairs` isn't known."""
    if pairs is None or pd.isna(pairs):
        return ""
    low, high = wilson(accuracy, pairs, confidence)
    return f" ({level_text(confidence)} confidence interval over pairs {low:.0%} to {high:.0%})"


def _signed(value: float, low: float = math.nan, high: float = math.nan) -> str:
    text = points(value, low, high)
    return text if text.startswith("-") or value == 0 else f"+{text}"


def _without_sign(value: float, low: float, high: float) -> tuple[str, float, float]:
    """Return the points of an estimate without its sign, and the limits of that."""
    return points(abs(value), low, high), *((low, high) if value > 0 else (-high, -low))


def comparison_findings(differences: pd.DataFrame, slopes: pd.DataFrame, confidence: float) -> list[Finding]:
    """Return the comparisons of curves by their overall slopes, the surest first.

    Args:
        differences: the table of `analysis.compare`.
        slopes: the table of `analysis.fit_curves`; curves without a slope aren't mentioned.
        confidence: the level of the intervals; a corrected p value below 1 - confidence shows a difference.
    """
    overall = slopes[(slopes["level"] == "overall") & slopes["slope"].notna()]
    falling = set(overall.loc[overall["slope"] < 0, "curve"])
    known = differences[["curve", "other"]].isin(set(overall["curve"])).all(axis=1)
    whole = differences[known & (differences["level"] == "overall")].sort_values("p_holm", kind="stable")
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
    subject, note = f"{row.curve} and {row.other}", _sentence(row.note)
    if pd.isna(row.difference):
        return Finding(subject, f"Their slopes can't be compared. {note}")
    size, low, high = _without_sign(row.difference, row.low, row.high)
    if pd.isna(row.low):
        by = f"Their slopes differ by {size} points per doubling"
        return Finding(subject, f"{by}, without a confidence interval. {note}")
    corrected = f" after Holm's correction for {comparisons} comparisons" if comparisons > 1 else ""
    p = f"{p_in_text(row.p_holm)}{corrected}"
    if row.p_holm < 1 - confidence:
        faster, slower = (row.curve, row.other) if row.difference > 0 else (row.other, row.curve)
        text = f"{size} points {more} per doubling than {slower} ({interval_in_text(low, high, confidence)}; {p})."
        return Finding(f"{faster} {gains}", f"{text} {note}".strip())
    difference = f"{_signed(row.difference, row.low, row.high)} points per doubling"
    limits = f"({interval_in_text(row.low, row.high, confidence)}; {p})"
    if corrected and low * high > 0:
        note = f"The interval itself isn't corrected. {note}"
    is_equal = row.equivalent is not pd.NA and row.equivalent
    verdict = "Their slopes are equal within the margin" if is_equal else f"We can't tell which one {gains}"
    return Finding(subject, f"{verdict}: {difference} {limits}. {note}".strip())


def phenomena_findings(slopes: pd.DataFrame) -> list[Finding]:
    """Return, for each curve, in which phenomena accuracy rises, falls, or has no clear trend."""
    findings = []
    for curve, rows in slopes[slopes["level"] == "phenomenon"].groupby("curve", sort=False):
        known = rows[rows["low"].notna()].sort_values("slope", ascending=False)
        if known.empty:
            continue
        rising, falling = known[known["low"] > 0], known[known["high"] < 0]
        falls = f" and falls in {len(falling)} ({_names(falling)})" if len(falling) else ""
        texts_of = {
            "The trend is unclear in {}, where the interval includes zero.": known.drop(
                [*rising.index, *falling.index]
            ),
            "Growth isn't steady in {} (lack-of-fit test, p < .05): the slope is an average there.": known[
                known["lack_of_fit"].astype(float) < ALPHA
            ],
            "There is no interval for {}.": rows[rows["low"].isna()],
            "Most runs of a size are at 0 or 1 in {}, so intervals may be too narrow there.": known[
                known["note"].str.contains(AT_ENDS, regex=False)
            ],
        }
        sentences = [f"accuracy rises in {len(rising)} of {plural(len(rows), 'phenomenon')}{falls}."]
        sentences += [text.format(_names(named)) for text, named in texts_of.items() if len(named)]
        findings.append(Finding(str(curve), " ".join(sentences)))
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
    sums = counted.groupby(["curve", "size"], sort=False)[["pairs", "pairs_with_unk", "ties"]].sum().astype(float)
    sums.index = sums.index.map(", ".join)
    unknown, tied = sums["pairs_with_unk"] / sums["pairs"], sums["ties"] / sums["pairs"]
    if unknown.max() >= UNKNOWN_SHARE:
        notes.append(
            f"Up to {unknown.max():.1%} of the pairs contain an unknown word ({unknown.idxmax()}). Accuracy without "
            "them is under “Unknown words and ties”."
        )
    if tied.max() >= TIED_SHARE:
        notes.append(
            f"Up to {tied.max():.1%} of the pairs are ties ({tied.idxmax()}); a tie counts as {ties}. Counted "
            f"otherwise, accuracy would change by up to {points(tied.max() / (2 if ties == 'half' else 1))} points."
        )
    few = counted.drop_duplicates("paradigm").groupby("phenomenon", sort=False)["pairs"].sum()
    few = few[few < FEW_PAIRS]
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
    shared = runs[runs.duplicated(["curve", "size"], keep=False)].dropna(subset=["overlap", "sample_words"])
    if shared["overlap"].max() >= SHARED_TEXT:
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
    counted = accuracies.dropna(subset=["pairs", "ties", "pairs_with_unk"])
    sizes = _sizes_of(runs)
    checks = {
        "no missing runs": complete,
        "no ties": len(counted) and not counted["ties"].any(),
        "no unknown words": len(counted) and not counted["pairs_with_unk"].any(),
        "the same sizes for all curves": len(sizes) > 1 and sizes.nunique() == 1,
    }
    fine = [text for text, is_fine in checks.items() if is_fine]
    return f"Checked: {', '.join(fine)}." if fine else ""


def missing_runs(problems: pd.DataFrame) -> list[str]:
    """Return a note that counts the runs that are left out, by status."""
    if problems.empty:
        return []
    counts = joined([f"{number} {status}" for status, number in problems["status"].value_counts().items()])
    are = "run isn't" if len(problems) == 1 else "runs aren't"
    return [f"{len(problems)} {are} in this report ({counts}). “Runs” lists them."]
