"""Acquisition in sentences: sizes, order, shapes and correlations of orders; none says more than its interval."""

import pandas as pd

from analysis.curves.acquisition.orders import ACQUISITION
from analysis.curves.acquisition.sizes import BEFORE
from analysis.curves.acquisition.turns import FALLS, FLAT, INVERTED, OPEN, RISES, U
from analysis.curves.words_to_people import words_text
from analysis.exhibits.sentences.curves import in_text, joined, plural
from analysis.exhibits.tables.text import accuracy_text, signed_text, supported_digits
from pairscale.sizes import format_size, readable_size

NAMED = 6  # units that a sentence names
_VERBS = {RISES: "rises", FALLS: "falls", U: "falls, then rises (a U)", INVERTED: "rises, then falls (an inverted U)",
          FLAT: "is flat"}  # fmt: skip


def named(names: list[str]) -> str:
    """Name units: the first NAMED of them, and how many more there are."""
    shown = [in_text(name) for name in names[:NAMED]]
    more = len(names) - len(shown)
    return joined([*shown, *([f"{more} more"] if more else [])])


def size_sentence(rows: pd.DataFrame, noun: str) -> str:
    """Say which units are surely acquired by the smallest size, by the largest, and surely not.

    rows: of one group and level in Acquisition.sizes. noun: phenomenon or paradigm.
    """
    if rows["low"].isna().all():
        return f"{plural(len(rows), noun)}, without limits ({rows['note'].iloc[0]})."
    ordered = rows.sort_values(["rank", "name"])
    first, last = (_size(ordered[name].iloc[0]) for name in ("from_words", "to_words"))
    before = list(ordered.loc[ordered["high"] == 0, "name"])
    within = list(ordered.loc[(ordered["high"] > 0) & (ordered["high"] < float("inf")), "name"])
    never = list(ordered.loc[ordered["low"] == float("inf"), "name"])
    level = accuracy_text(float(rows["threshold"].min()))
    highest = accuracy_text(float(rows["threshold"].max()))
    threshold = level if level == highest else f"{level} to {highest}"
    parts = [f"{plural(len(rows), noun)}, threshold {threshold}"]
    if before:
        parts.append(f"surely acquired before {first} words: {named(before)}")
    if within:
        parts.append(f"surely acquired by {last} words: {named(within)}")
    if never:
        parts.append(f"surely not acquired by {last} words: {named(never)}")
    open_ = len(rows) - len(before) - len(within) - len(never)
    if open_:
        parts.append(f"of {plural(open_, noun)}, the runs do not show whether {last} words are enough")
    return "; ".join(parts) + " (each by its own limits)."


def _words(words: float) -> str:
    """Format an estimated amount of text: 360k."""
    return words_text(words) if words >= 1000 else readable_size(f"{words:.0f}")


def _size(words: float) -> str:
    """Format a size of the study: 125k."""
    return readable_size(format_size(round(words)))


def rank_sentence(rows: pd.DataFrame, noun: str) -> str:
    """Name units whose rank is surely among the first third, or the last; "" without limits.

    rows: of one group, size and level in Acquisition.ranks.
    """
    if rows["rank_low"].isna().all() or len(rows) < 3:
        return ""
    third = len(rows) / 3
    ordered = rows.sort_values("rank")
    first = list(ordered.loc[ordered["rank_high"] <= third, "name"])
    last = list(ordered.loc[ordered["rank_low"] > len(rows) - third, "name"][::-1])
    parts = [
        f"surely among the {how} third: {named(names)}" for how, names in (("first", first), ("last", last)) if names
    ]
    size = readable_size(str(rows["size"].iloc[0]))
    if not parts:
        return f"By accuracy at {size}, no {noun} is surely in the first or the last third of the order."
    return f"By accuracy at {size}, {'; '.join(parts)}."


def shape_sentence(rows: pd.DataFrame, noun: str) -> str:
    """Count shapes, and name the units that turn; rows: of one group and level in Acquisition.shapes."""
    counts = rows["shape"].value_counts()
    if rows["p_trend"].isna().all():
        return f"No test of shapes ({rows['note'].iloc[0]})."
    parts = []
    for shape in (RISES, FALLS, FLAT):
        if counts.get(shape, 0):
            parts.append(f"accuracy {_VERBS[shape]} in {plural(int(counts[shape]), noun)}")
    for shape in (U, INVERTED):
        turned = rows[rows["shape"] == shape]
        if len(turned):
            parts.append(f"{_VERBS[shape]} in {named(list(turned['name']))}")
    if counts.get(OPEN, 0):
        parts.append(f"in {plural(int(counts[OPEN]), noun)} the runs show neither a trend nor a turn")
    tested = "" if rows["p_turn"].notna().any() else f" Turns are not tested ({rows['note'].iloc[0]})."
    return f"{'; '.join(parts)} (by Holm over {plural(len(rows), noun)}).{tested}".replace(
        "accuracy rises", "accuracy rises", 1
    )


def order_sentence(row: pd.Series, noun: str, confidence: float) -> str:
    """Say how alike two orders are; row: of Acquisition.orders."""
    what = "amounts of text" if row["size"] == ACQUISITION else f"accuracies at {_pair(row)}"
    if row["low"] != row["low"]:
        return f"the order of {what} is not compared ({row['note']})."
    digits = supported_digits(row["low"], row["high"])
    value, low, high = (signed_text(row[name], digits=digits) for name in ("spearman", "low", "high"))
    units = plural(int(row["units"]), noun)
    numbers = f"Spearman {value}, {confidence:.0%} interval for other units [{low}, {high}], {units}"
    if row["low"] <= 0 <= row["high"]:
        return f"no agreement of the orders of {what} is shown: {numbers}."
    return f"the orders of {what} {'agree' if row['low'] > 0 else 'are reversed'}: {numbers}."


def _pair(row: pd.Series) -> str:
    sizes = dict.fromkeys(readable_size(str(row[name])) for name in ("size", "other_size"))
    return joined(list(sizes))


def acquired_text(row: pd.Series) -> str:
    """Format an amount of text: 2.4M, or that it lies before the smallest or beyond the largest size."""
    if row["words"] == row["words"]:
        return _words(row["words"])
    return f"below {_size(row['from_words'])}" if row["status"] == BEFORE else f"beyond {_size(row['to_words'])}"


def limits_text(row: pd.Series, suffix: str = "") -> str:
    """Format limits: 125k to 1M; below and beyond the sizes as such; a dash where there are none."""
    low, high = row[f"low{suffix}"], row[f"high{suffix}"]
    if low != low:
        return "–"
    below, beyond = f"below {_size(row['from_words'])}", f"beyond {_size(row['to_words'])}"
    ends = [below if of == 0 else beyond if of == float("inf") else _words(of) for of in (low, high)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
