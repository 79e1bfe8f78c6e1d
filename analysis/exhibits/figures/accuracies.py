"""Figures of accuracies of several models: a matrix of numbers, dots by condition, gaps to people."""

import math

import altair as alt
import numpy as np
import pandas as pd

from analysis.exhibits.figures.dots import Dots, numbers, reference
from analysis.exhibits.figures.style import PAGE, TEXT_GREY, Chart, Frame, level_accuracy_axis
from analysis.exhibits.tables.text import title

_BLUES = ("#f2f6fa", "#c3d9ec", "#7fb2d9", "#2f7fbf", "#0b4a86")  # light to dark, one hue: legible without colour too
_CELL = 34  # pixels, the height of a row of a matrix


def matrix_chart(
    rows: pd.DataFrame, y: str, x: str, value: str, *, domain: tuple[float, float], frame: Frame = PAGE, legend: str
) -> Chart:
    """Draw a matrix of numbers, each in its cell, darker where it is higher; rows and columns keep their order.

    `domain`: the values of the lightest and the darkest cell. `legend`: the name of the numbers, in the tooltip.
    """
    names, columns = list(dict.fromkeys(rows[y])), list(dict.fromkeys(rows[x]))
    middle = domain[0] + 0.7 * (domain[1] - domain[0])
    shown = rows[[y, x, value]].rename(columns={value: "value"})
    upright = len(columns) * max(map(len, columns)) > 48  # names that would run into each other
    turned = alt.Axis(labelAngle=-90, labelAlign="left", labelBaseline="middle")
    level = alt.Axis(labelAngle=0, labelAlign="center", labelBaseline="bottom")
    axis = turned if upright else level
    axis.orient, axis.title, axis.domain, axis.ticks, axis.labelLimit = "top", None, False, False, 170
    across = alt.X(f"{x}:N", sort=columns, scale=alt.Scale(paddingInner=0.03), axis=axis)
    left = alt.Axis(title=None, domain=False, ticks=False, labelLimit=200)
    down = alt.Y(f"{y}:N", sort=names, scale=alt.Scale(paddingInner=0.06), axis=left)
    written = "replace(format(datum.value, '.2f'), '0.', '.')"
    base = alt.Chart(shown).transform_calculate(written=written).encode(across, down)
    scale = alt.Scale(domain=list(domain), range=list(_BLUES), clamp=True)
    tooltip = [alt.Tooltip(f"{y}:N"), alt.Tooltip(f"{x}:N"), alt.Tooltip("value:Q", format=".3f", title=legend)]
    cells = base.mark_rect().encode(color=alt.Color("value:Q", scale=scale, legend=None), tooltip=tooltip)
    ink = alt.condition(f"datum.value > {middle}", alt.value("white"), alt.value("#1d1f23"))
    text = base.mark_text(fontSize=12).encode(text="written:N", color=ink)
    return alt.layer(cells, text, width=frame.span, height=_CELL * len(names))


def condition_chart(
    rows: pd.DataFrame, *, domain: tuple[float, float], frame: Frame = PAGE, heading: str = ""
) -> Chart:
    """Draw a row per model and a mark per condition, from chance outwards; `rows`: model, condition, accuracy."""
    shown = rows[["model", "condition", "accuracy"]].assign(chance=0.5)
    dots = Dots(shown, list(dict.fromkeys(shown["model"])), "model", "condition")
    tooltip = [alt.Tooltip("model:N"), alt.Tooltip("condition:N"), *numbers("accuracy")]
    return dots.chart(
        reference(0.5, dashed=True),
        dots.lines("chance", "accuracy", opacity=0.45),
        dots.points(level_accuracy_axis(domain), tooltip),
        frame=frame,
        title=heading,
    )


def model_chart(rows: pd.DataFrame, people: pd.DataFrame, *, frame: Frame = PAGE, heading: str = "") -> Chart:
    """Draw a row per phenomenon under that of the whole, a mark with its interval per model; ticks are people.

    `rows`: level, name, model, accuracy, low, high, pairs; `people`: name, accuracy, no rows where they are unknown.
    Phenomena go from the highest mean accuracy to the lowest.
    """
    shown = rows.assign(name=rows["name"].map(title))
    means = shown.assign(first=shown["level"] == "overall").groupby("name").agg({"first": "any", "accuracy": "mean"})
    order = list(means.sort_values(["first", "accuracy"], ascending=False, kind="stable").index)
    dots = Dots(shown[["name", "model", "accuracy", "low", "high", "pairs"]], order, group="model")
    known = people.assign(name=people["name"].map(title))[["name", "accuracy"]]
    known = known[known["name"].isin(order)]
    x = level_accuracy_axis((axis_start(pd.concat([shown["low"], known["accuracy"]])), 1.0))
    phenomenon = alt.Tooltip("name:N", title="phenomenon")
    tooltip = [phenomenon, alt.Tooltip("model:N"), *numbers("accuracy", "low", "high"), *numbers("pairs", form=",")]
    points = dots.points(x, tooltip)
    layers = [reference(0.5, dashed=True), dots.lines("low", "high"), points]
    titles = [heading] if heading else []
    if len(known):
        height = 0.6 * (8 + 12 * len(dots.groups))
        ticks = alt.Chart(known).mark_tick(color=TEXT_GREY, thickness=3, size=height, opacity=1)
        of_people = [phenomenon, alt.Tooltip("accuracy:Q", format=".3f", title="people")]
        layers.insert(1, ticks.encode(x, points.encoding.y, tooltip=of_people))
        titles.append("Upright bars: people")
    return dots.chart(*layers, frame=frame, note=" · ".join(titles))


def axis_start(accuracies: pd.Series) -> float:
    """Return the start of an axis of accuracies in whole tenths, below chance and below the lowest accuracy."""
    return min(0.4, float(np.floor(accuracies.min() * 10 - 0.2) / 10))


def gap_chart(gaps: pd.DataFrame, *, frame: Frame = PAGE) -> Chart:
    """Draw how far models lie above or below people, a row per phenomenon, the largest mean gap last.

    `gaps`: level, name, model, gap (accuracies.gaps).
    """
    shown = gaps[["name", "model", "gap"]].assign(name=gaps["name"].map(title))
    order = list(shown.groupby("name")["gap"].mean().sort_values(ascending=False).index)
    dots = Dots(shown, order, group="model")
    signed = "datum.value ? format(datum.value, '+.1f') : 'people'"
    lowest, highest = min(0.0, shown["gap"].min()), max(0.0, shown["gap"].max())
    step = 0.1 if highest - lowest < 0.35 else 0.2
    values = [step * number for number in range(math.ceil(lowest / step), math.floor(highest / step) + 1)]
    axis = alt.Axis(title="Accuracy above that of people", values=values, tickCount=len(values), labelExpr=signed)
    x = alt.X("gap:Q", scale=alt.Scale(nice=False, padding=12), axis=axis)
    tooltip = [alt.Tooltip("name:N", title="phenomenon"), alt.Tooltip("model:N"), *numbers("gap", form="+.3f")]
    return dots.chart(reference(0), dots.points(x, tooltip), frame=frame)
