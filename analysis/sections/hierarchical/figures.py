"""Figures of the hierarchical model: slopes beside the default, shrunken paradigms, ranks, simulated runs."""

import altair as alt
import pandas as pd

from analysis.exhibits.figures.dots import Dots, reference
from analysis.exhibits.figures.style import (
    GREY,
    HUES,
    PAGE,
    SIGNED_LABEL,
    Chart,
    Frame,
    accuracy_axis,
    accuracy_limits,
    looks,
    signed_axis,
    size_axis,
)

SLOPE_AXIS = "Accuracy per doubling"


def slopes_chart(rows: pd.DataFrame, *, title: str, frame: Frame = PAGE) -> Chart:
    """Draw slopes with both intervals, a row for each unit.

    rows: name (as people read it), group (of the interval: hierarchical, default), slope, low, high; topmost first.
    """
    dots = Dots(rows, list(dict.fromkeys(rows["name"])))
    x = alt.X("slope:Q", axis=signed_axis(SLOPE_AXIS, frame))
    tooltip = [alt.Tooltip("name:N"), alt.Tooltip("group:N", title="interval")]
    tooltip += [alt.Tooltip(f"{name}:Q", format="+.4f") for name in ("slope", "low", "high")]
    known = rows[rows["low"].notna()]
    return dots.chart(
        reference(0), dots.lines("low", "high", of=known), dots.points(x, tooltip), frame=frame, title=title
    )


def shrinkage_chart(rows: pd.DataFrame, *, title: str, frame: Frame = PAGE) -> Chart:
    """Draw the slopes of paradigms in the model over the default ones, with the line on which both are equal.

    rows: name, phenomenon, default, slope, low, high.
    """
    both = rows[["default", "slope", "low", "high"]]
    ends = [float(both.min().min()), float(both.max().max())]
    scale = alt.Scale(domain=ends, nice=True)
    x_axis = signed_axis("Default", frame)
    x = alt.X("default:Q", axis=x_axis, scale=scale)
    axis = alt.Axis(title="Hierarchical", labelExpr=SIGNED_LABEL, tickCount=6)
    y = alt.Y("slope:Q", axis=axis, scale=scale)
    tooltip = [alt.Tooltip("name:N"), alt.Tooltip("phenomenon:N")]
    tooltip += [alt.Tooltip(f"{name}:Q", format="+.4f") for name in ("default", "slope", "low", "high")]
    line = (
        alt.Chart(pd.DataFrame({"at": ends}))
        .mark_line(color=GREY, strokeDash=[3, 3])
        .encode(alt.X("at:Q", axis=x_axis, scale=scale), alt.Y("at:Q", axis=axis, scale=scale))
    )
    table = alt.Chart(rows)
    bars = (
        alt.Chart(rows[rows["low"].notna()])
        .mark_rule(opacity=0.35, color=HUES[0])
        .encode(x, alt.Y("low:Q", axis=axis, scale=scale), alt.Y2("high:Q"))
    )
    marks = table.mark_point(size=28, filled=True, opacity=0.9, color=HUES[0]).encode(x, y, tooltip=tooltip)
    return alt.layer(line, bars, marks, width=frame.span, height=frame.height_of_curves(260), title=title)


def ranks_chart(rows: pd.DataFrame, *, title: str, frame: Frame = PAGE) -> Chart:
    """Draw the probability of each rank (columns) of each unit (rows of the chart, from top to bottom), as shades.

    rows: name (as people read it), rank, probability.
    """
    order = list(dict.fromkeys(rows["name"]))
    y = alt.Y("name:N", sort=order, axis=alt.Axis(title=None, labelLimit=220, domain=False, ticks=False))
    x = alt.X("rank:O", axis=alt.Axis(title="Rank", labelAngle=0, domain=False, ticks=False))
    shade = alt.Color(
        "probability:Q", scale=alt.Scale(domain=[0, 1], range=["#ffffff", HUES[0]]),
        legend=alt.Legend(title="probability", orient="right", gradientLength=80),
    )  # fmt: skip
    tooltip = [alt.Tooltip("name:N"), alt.Tooltip("rank:O"), alt.Tooltip("probability:Q", format=".2f")]
    cells = alt.Chart(rows).mark_rect(stroke="#dddddd").encode(x, y, shade, tooltip=tooltip)
    return cells.properties(width=frame.span, height=16 * len(order) + 10, title=title)


def predictive_chart(rows: pd.DataFrame, points: pd.DataFrame, unit: str, *, title: str, frame: Frame = PAGE) -> Chart:
    """Draw the runs of a curve (marks) within simulated runs (bars).

    rows: of the accuracy of a curve in Hierarchical.predictive; points: its runs, words and accuracy.
    """
    groups = [str(rows["group"].iloc[0])]
    colour, shape = looks(groups, legend=False)
    x = size_axis("words", rows["words"], unit)
    domain = accuracy_limits(rows[["low", "high"]], points["accuracy"])
    bars = alt.Chart(rows).mark_rule(strokeWidth=7, opacity=0.3).encode(
        x, alt.Y("low:Q", scale=alt.Scale(domain=list(domain), nice=False, zero=False)), alt.Y2("high:Q"), colour
    )  # fmt: skip
    tooltip = [alt.Tooltip("words:Q", format=",.3~s"), alt.Tooltip("accuracy:Q", format=".3f")]
    marks = alt.Chart(points.assign(group=groups[0])).mark_point(size=30, filled=True, opacity=0.9)
    drawn = marks.encode(x, accuracy_axis(domain), colour, shape, tooltip=tooltip)
    return alt.layer(drawn, bars, width=frame.span, height=frame.height_of_curves(240), title=title)
