"""Figures of accuracies of several models: a matrix of numbers, dots by condition, gaps to people."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd

from analysis.exhibits.figures.style import CHANCE_LABEL, GREY, ROWS, TEXT_GREY, Chart, group_looks, looks
from analysis.exhibits.tables.text import title

_BLUES = ("#f2f6fa", "#c3d9ec", "#7fb2d9", "#2f7fbf", "#0b4a86")  # light to dark, one hue: read without colour too
LEGEND = alt.Legend(title=None, orient="top", labelLimit=400, columns=2, symbolOpacity=1)
_CELL = 34  # pixels, the height of a row of a matrix


def matrix_chart(
    rows: pd.DataFrame, y: str, x: str, value: str, *, domain: tuple[float, float], width: int | str, legend: str
) -> Chart:
    """Draw a matrix of numbers, each in its cell, darker where it is higher; rows and columns keep their order.

    `domain`: the values of the lightest and the darkest cell; `legend` says what the numbers are (in the tooltip).
    """
    names, columns = list(dict.fromkeys(rows[y])), list(dict.fromkeys(rows[x]))
    middle = domain[0] + 0.7 * (domain[1] - domain[0])
    shown = rows[[y, x, value]].rename(columns={value: "value"})
    long = len(columns) * max(map(len, columns)) > 48  # names that would run into each other stand upright
    across = alt.X(
        f"{x}:N",
        sort=columns,
        scale=alt.Scale(paddingInner=0.03),
        axis=alt.Axis(
            orient="top",
            title=None,
            domain=False,
            ticks=False,
            labelAngle=-90 if long else 0,
            labelAlign="left" if long else "center",
            labelBaseline="middle" if long else "bottom",
            labelLimit=170,
        ),
    )
    down = alt.Y(
        f"{y}:N",
        sort=names,
        scale=alt.Scale(paddingInner=0.06),
        axis=alt.Axis(title=None, domain=False, ticks=False, labelLimit=200),
    )
    written = "replace(format(datum.value, '.2f'), '0.', '.')"
    base = alt.Chart(shown).transform_calculate(written=written).encode(across, down)
    scale = alt.Scale(domain=list(domain), range=list(_BLUES), clamp=True)
    tooltip = [alt.Tooltip(f"{y}:N"), alt.Tooltip(f"{x}:N"), alt.Tooltip("value:Q", format=".3f", title=legend)]
    cells = base.mark_rect().encode(color=alt.Color("value:Q", scale=scale, legend=None), tooltip=tooltip)
    text = base.mark_text(fontSize=12).encode(
        text="written:N",
        color=alt.condition(f"datum.value > {middle}", alt.value("white"), alt.value("#1d1f23")),
    )
    return alt.layer(cells, text).properties(width=width, height=_CELL * len(names))


def condition_chart(
    rows: pd.DataFrame,
    *,
    width: int | str,
    heading: str = "",
    domain: tuple[float, float],
    gap: int = 6,
) -> Chart:
    """Draw a row per model and a mark per condition, from chance outwards.

    `rows`: model, condition, accuracy, in the order in which they are shown.
    """
    models, conditions = list(dict.fromkeys(rows["model"])), list(dict.fromkeys(rows["condition"]))
    shown = rows[["model", "condition", "accuracy"]].assign(chance=0.5)
    y = alt.Y(
        "model:N",
        sort=models,
        axis=alt.Axis(title=None, grid=True, tickBand="extent", domain=False, ticks=False, labelLimit=200),
        scale=alt.Scale(paddingInner=0.3, paddingOuter=0.15),
    )
    offset = alt.YOffset("condition:N", sort=conditions)
    x = alt.X(
        "accuracy:Q",
        scale=alt.Scale(domain=list(domain), nice=False, zero=False),
        axis=alt.Axis(title="Accuracy", tickCount=6, format=".1f", tickMinStep=0.1),
    )
    colour, shape = looks(conditions, LEGEND, "condition")
    tooltip = [alt.Tooltip("model:N"), alt.Tooltip("condition:N"), alt.Tooltip("accuracy:Q", format=".3f")]
    base = alt.Chart(shown)
    chance = alt.Chart(shown.iloc[:1])
    layers = [
        chance.mark_rule(color=GREY, strokeDash=[3, 3]).encode(x=alt.X("chance:Q")),
        chance.mark_text(fontSize=10, dy=-6).encode(x=alt.X("chance:Q"), y=alt.value(0), text=alt.value("chance")),
        base.mark_rule(strokeWidth=1.5, opacity=0.45).encode(
            alt.X("chance:Q"), alt.X2("accuracy:Q"), y, offset, colour
        ),
        base.mark_point(size=60, filled=True, opacity=1).encode(x, y, offset, colour, shape, tooltip=tooltip),
    ]
    height = len(models) * (12 * len(conditions) + gap + 6)
    chart = alt.layer(*layers).properties(width=width, height=height)
    return chart.properties(title=heading) if heading else chart


def model_chart(rows: pd.DataFrame, people: pd.DataFrame, *, width: int | str, heading: str = "") -> Chart:
    """Draw a row per phenomenon under that of the whole, a mark with its interval per model; ticks are people.

    `rows`: level, name, model, accuracy, low, high, pairs; `people`: name, accuracy, no rows where they are not known.
    Phenomena go from the highest mean accuracy to the lowest.
    """
    shown = rows.assign(group=rows["model"], name=rows["name"].map(title), chance=0.5)
    means = shown.assign(first=shown["level"] == "overall").groupby("name").agg({"first": "any", "accuracy": "mean"})
    order = list(means.sort_values(["first", "accuracy"], ascending=False, kind="stable").index)
    shown = shown[["name", "group", "accuracy", "low", "high", "pairs", "chance"]]
    known = people.assign(name=people["name"].map(title))[["name", "accuracy"]]
    known = known[known["name"].isin(order)]
    models = list(dict.fromkeys(shown["group"]))
    step = 8 + 12 * len(models)
    y = alt.Y(
        "name:N",
        sort=order,
        axis=ROWS,
        scale=alt.Scale(paddingInner=0.25),
    )
    offset = alt.YOffset("group:N", sort=models)
    low = axis_start(pd.concat([shown["low"], known["accuracy"]]))
    x = alt.X(
        "accuracy:Q",
        scale=alt.Scale(domain=[low, 1.0], nice=False, zero=False),
        axis=alt.Axis(title="Accuracy", labelExpr=CHANCE_LABEL, tickCount=6, tickMinStep=0.1),
    )
    colour, shape = group_looks(models)
    tooltip = [alt.Tooltip("name:N", title="phenomenon"), alt.Tooltip("group:N", title="model"),
               *(alt.Tooltip(f"{of}:Q", format=".3f") for of in ("accuracy", "low", "high")),
               alt.Tooltip("pairs:Q", format=",")]  # fmt: skip
    base = alt.Chart(shown)
    layers = [
        alt.Chart(shown.iloc[:1]).mark_rule(color=GREY, strokeDash=[3, 3]).encode(x=alt.X("chance:Q")),
        base.mark_rule(strokeWidth=2).encode(alt.X("low:Q"), alt.X2("high:Q"), y, offset, colour),
        base.mark_point(size=55, filled=True, opacity=1).encode(x, y, offset, colour, shape, tooltip=tooltip),
    ]
    titles = [heading] if heading else []
    if len(known):
        of_people = [alt.Tooltip("name:N", title="phenomenon"), alt.Tooltip("accuracy:Q", format=".3f", title="people")]
        ticks = alt.Chart(known).mark_tick(color=TEXT_GREY, thickness=3, size=0.6 * step, opacity=1)
        layers.insert(1, ticks.encode(x, y, tooltip=of_people))
        titles.append("Upright bars: people")
    chart = alt.layer(*layers).properties(width=width, height=len(order) * step)
    return chart.properties(title=alt.Title(" · ".join(titles), fontSize=12, fontWeight="normal")) if titles else chart


def axis_start(accuracies: pd.Series) -> float:
    """Return the start of an axis of accuracies in whole tenths, below chance and below the lowest accuracy."""
    return min(0.4, float(np.floor(accuracies.min() * 10 - 0.2) / 10))


def gap_chart(gaps: pd.DataFrame, *, width: int | str) -> Chart:
    """Draw how far models lie above or below people, a row per phenomenon, the largest mean gap last.

    `gaps`: level, name, model, gap (accuracies.gaps).
    """
    models = list(dict.fromkeys(gaps["model"]))
    shown = gaps[["name", "model", "gap"]].assign(name=gaps["name"].map(title), zero=0.0)
    order = list(shown.groupby("name")["gap"].mean().sort_values(ascending=False).index)
    y = alt.Y(
        "name:N",
        sort=order,
        axis=ROWS,
        scale=alt.Scale(paddingInner=0.25),
    )
    offset = alt.YOffset("model:N", sort=models)
    title_of_axis = "Accuracy above that of people"
    x = alt.X(
        "gap:Q",
        scale=alt.Scale(nice=False, padding=12),
        axis=alt.Axis(
            title=title_of_axis, tickCount=6, labelExpr="datum.value ? format(datum.value, '+.1f') : 'people'"
        ),
    )
    colour, shape = looks(models, LEGEND, "model")
    tooltip = [alt.Tooltip("name:N", title="phenomenon"), alt.Tooltip("model:N"), alt.Tooltip("gap:Q", format="+.3f")]
    base = alt.Chart(shown)
    layers = [
        base.mark_rule(color=GREY).encode(x=alt.X("zero:Q")),
        base.mark_point(size=50, filled=True, opacity=1).encode(x, y, offset, colour, shape, tooltip=tooltip),
    ]
    return alt.layer(*layers).properties(width=width, height=len(order) * (8 + 9 * len(models)))
