"""Figures of diagnostics: shares of items over training text, and beside the paper's models."""

from __future__ import annotations

import altair as alt
import pandas as pd

from analysis.exhibits.figures.methods import HEIGHT, LEGEND, named_lines
from analysis.exhibits.figures.style import GREY, ROWS, SIZE_LABEL, TEXT_GREY, Chart, looks

_SHARE = alt.Axis(title="Share of items", format=".1f", tickCount=6, tickMinStep=0.1)
_SCALE = alt.Scale(domain=[0, 1], nice=False)


def size_chart(
    means: pd.DataFrame, levels: pd.DataFrame, heading: str, *, unit: str = "words", width: int | str = 420
) -> Chart:
    """Draw one measure over the text that was trained on, a line with its band (over runs) per group.

    `means`: group, size, words, runs, accuracy, low, high of one measure (analysis.measures.diagnostics.over_sizes).
    `levels`: name, accuracy: chance and published models, as level lines.
    """
    rows = means.drop(columns="name").rename(columns={"group": "name", "words": "at"})
    rows = rows[["name", "size", "at", "runs", "accuracy", "low", "high"]]
    sizes = sorted(rows["at"].unique())
    x = alt.X(
        "at:Q",
        scale=alt.Scale(type="log", base=2, nice=False, domain=[sizes[0] / 1.12, sizes[-1] * 1.12]),
        axis=alt.Axis(values=sizes, labelExpr=SIZE_LABEL, title=f"{unit.capitalize()} of training text", grid=False),
    )
    tooltip = [alt.Tooltip("name:N", title="curve"), alt.Tooltip("size:N"), alt.Tooltip("runs:Q"),
               *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("accuracy", "low", "high"))]  # fmt: skip
    at = alt.Chart(levels).encode(y=alt.Y("accuracy:Q", scale=_SCALE))
    names = at.mark_text(align="left", dx=4, dy=-5, fontSize=10, color=TEXT_GREY)
    beside = [
        at.mark_rule(strokeDash=[3, 3], color=GREY),
        names.encode(x=alt.value(0), text="name:N"),
    ]
    chart = named_lines(rows, x, (0.0, 1.0), width, HEIGHT, tooltip, beside, _SHARE)
    return chart.properties(title=heading)


def beside_chart(rows: pd.DataFrame, heading: str, *, width: int | str = 420) -> Chart:
    """Draw measures of ours and of published models: a row per measure, a mark per model, with intervals over items.

    `rows`: model, measure, accuracy, low, high, items.
    """
    shown = rows.drop(columns="name").rename(columns={"model": "name"})[
        ["name", "measure", "accuracy", "low", "high", "items"]
    ]
    models, order = list(dict.fromkeys(shown["name"])), list(dict.fromkeys(shown["measure"]))
    legend = LEGEND.copy()
    legend.columns = max(1, 44 // (4 + max(map(len, models))))  # as many as a phone is wide
    colour, shape = looks(models, legend)
    y = alt.Y("measure:N", sort=order, axis=ROWS)
    offset = alt.YOffset("name:N", sort=models)
    x = alt.X("accuracy:Q", scale=_SCALE, axis=_SHARE)
    tooltip = [alt.Tooltip("measure:N"), alt.Tooltip("name:N", title="model"), alt.Tooltip("items:Q"),
               *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("accuracy", "low", "high"))]  # fmt: skip
    base = alt.Chart(shown)
    layers = [
        base.mark_rule(strokeWidth=1.6, opacity=0.6).encode(alt.X("low:Q"), alt.X2("high:Q"), y, offset, colour),
        base.mark_point(size=55, filled=True, opacity=1).encode(x, y, offset, colour, shape, tooltip=tooltip),
    ]
    return alt.layer(*layers).properties(width=width, height=len(order) * (10 + 12 * len(models)), title=heading)
