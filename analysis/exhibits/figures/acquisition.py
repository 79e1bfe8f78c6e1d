"""Figures of acquisition: units in order with their limits, small panels of shapes, words beside children's ages."""

import math

import altair as alt
import pandas as pd

from analysis.exhibits.figures.dots import Dots
from analysis.exhibits.figures.style import (
    PAGE,
    SIZE_LABEL,
    Chart,
    Frame,
    accuracy_axis,
    accuracy_limits,
    looks,
    size_axis,
)

HEIGHT = 150
ROOM = 1.35  # of the smallest and the largest size: where censored marks stand


def order_chart(rows: pd.DataFrame, unit: str, *, frame: Frame = PAGE) -> Chart:
    """Draw the amounts of text from which units are acquired, a row for each unit and a mark for each curve.

    rows: name (as people read it), group, words (NaN: censored), low, high (NaN: none), status, from_words, to_words,
    in the order from top to bottom. A hollow mark at an end: before the smallest size, or not by the largest. Limits
    beyond the sizes end there too.
    """
    first, last = rows["from_words"] / ROOM, rows["to_words"] * ROOM
    early = rows["status"].str.startswith("before")
    at = rows["words"].where(rows["words"].notna(), first.where(early, last))
    start, end = rows["low"].clip(first, last), rows["high"].clip(first, last)
    table = rows.assign(at=at, start=start, end=end)[["name", "group", "at", "start", "end", "status", "rank"]]
    dots = Dots(table, list(dict.fromkeys(table["name"])))
    x = size_axis(
        "at", [first.min(), last.max()], unit, "from which accuracy stays above the threshold", ticks=_ticks(rows)
    )
    tooltip = [alt.Tooltip("name:N"), alt.Tooltip("group:N", title="curve"), alt.Tooltip("status:N")]
    tooltip += [alt.Tooltip(f"{name}:Q", format=",.3~s") for name in ("at", "start", "end")]
    tooltip += [alt.Tooltip("rank:Q")]
    known = rows["status"].to_numpy() == "estimated"
    layers = [dots.lines("start", "end", opacity=0.55, of=table[table["start"].notna()])]
    layers += [dots.points(x, tooltip, of=table[known])] if known.any() else []
    layers += [dots.points(x, tooltip, filled=False, of=table[~known])] if (~known).any() else []
    return dots.chart(*layers, frame=frame)


def _ticks(rows: pd.DataFrame) -> list[float]:
    """Return sizes in powers of two from the smallest one on."""
    first, last = max(1.0, float(rows["from_words"].min())), float(rows["to_words"].max())
    doublings = int(math.log2(max(1.0, last * 1.01 / first)))
    ticks = [first * 2**doubling for doubling in range(doublings + 1)]
    return ticks[:: -(-len(ticks) // 8)]


def shape_chart(
    points: pd.DataFrame, groups: list[str], domain: tuple[float, float], unit: str, *, title: str, frame: Frame = PAGE
) -> Chart:
    """Draw a panel of one unit: means of sizes (marks), the nearest monotone fit (line) and the GAM (dashed).

    points: group, kind (means, monotone, GAM), words, accuracy. groups: in the order of colours, of all panels.
    """
    colour, shape = looks(groups, legend=False)
    means = points[points["kind"] == "means"]
    x = size_axis("words", means["words"], unit, most=4)
    y = accuracy_axis(domain, small=True)
    tooltip = [alt.Tooltip("group:N", title="curve"), alt.Tooltip("words:Q", format=",.3~s")]
    tooltip += [alt.Tooltip("accuracy:Q", format=".3f")]
    of = {kind: alt.Chart(rows) for kind, rows in points.groupby("kind", sort=False)}
    layers = [of["monotone"].mark_line(strokeWidth=1.6).encode(x, y, colour)]
    if "GAM" in of:
        layers.append(of["GAM"].mark_line(strokeWidth=1.3, strokeDash=[4, 3], opacity=0.8).encode(x, y, colour))
    layers.append(of["means"].mark_point(size=28, filled=True, opacity=1).encode(x, y, colour, shape, tooltip=tooltip))
    return alt.layer(*layers, width=frame.span, height=frame.height_of_curves(HEIGHT), title=title)


def limits_of(points: pd.DataFrame) -> tuple[float, float]:
    """Return the limits of the axis of accuracies of all panels."""
    return accuracy_limits(points.loc[points["kind"] == "means", "accuracy"])


def words_chart(words: pd.DataFrame, sizes: list[float], unit: str, *, title: str, frame: Frame = PAGE) -> Chart:
    """Draw the amount of text from which words are learnt over children's ages.

    words: word, age (months), at, censored. sizes: of the curve, where the axis has ticks.
    """
    axis = alt.Axis(title="Age of children (months)", grid=False, tickCount=frame.ticks(7))
    x = alt.X("age:Q", axis=axis, scale=alt.Scale(zero=False, nice=True))
    heading = alt.Axis(title=f"{unit.capitalize()} of training text", labelExpr=SIZE_LABEL, values=sizes)
    y = alt.Y("at:Q", axis=heading, scale=alt.Scale(type="log", base=2, nice=False, padding=8))
    tooltip = [alt.Tooltip("word:N"), alt.Tooltip("age:Q", format=".1f"), alt.Tooltip("at:Q", format=",.3~s")]
    layers = [
        alt.Chart(rows).mark_point(size=26, filled=filled, opacity=0.6, color="#0050d4").encode(x, y, tooltip=tooltip)
        for filled, rows in ((True, words[~words["censored"]]), (False, words[words["censored"]]))
        if len(rows)
    ]
    return alt.layer(*layers, width=frame.span, height=frame.height_of_curves(260), title=title)
