"""Figures of diagnostics: shares of items over training text, and beside the paper's models."""

import altair as alt
import pandas as pd

from analysis.exhibits.figures.dots import Dots, numbers
from analysis.exhibits.figures.methods import named_lines
from analysis.exhibits.figures.style import GREY, PAGE, TEXT_GREY, Chart, Frame, size_axis

_SHARE = alt.Axis(title="Share of items", format=".1f", tickCount=6, tickMinStep=0.1)
_SCALE = alt.Scale(domain=[0, 1], nice=False)


def size_chart(
    means: pd.DataFrame, levels: pd.DataFrame, heading: str, *, unit: str = "words", frame: Frame = PAGE
) -> Chart:
    """Draw one measure over training text, a line with its band (over runs) per group.

    `means`: group, size, words, runs, accuracy, low, high of one measure (analysis.measures.diagnostics.over_sizes).
    `levels`: name, accuracy: chance and published models, as level lines.
    """
    rows = means[["group", "size", "words", "runs", "accuracy", "low", "high"]]
    rows = rows.rename(columns={"group": "name", "words": "at"})
    tooltip = [alt.Tooltip("name:N", title="curve"), alt.Tooltip("size:N"), alt.Tooltip("runs:Q")]
    tooltip += numbers("accuracy", "low", "high")
    at = alt.Chart(levels).encode(y=alt.Y("accuracy:Q", scale=_SCALE))
    names = at.mark_text(align="left", dx=4, dy=-5, fontSize=10, color=TEXT_GREY)
    rules = [at.mark_rule(strokeDash=[3, 3], color=GREY), names.encode(x=alt.value(0), text="name:N")]
    y = alt.Y("accuracy:Q", scale=_SCALE, axis=_SHARE)
    chart = named_lines(rows, size_axis("at", rows["at"], unit), y, tooltip, frame, rules)
    return chart.properties(title=heading)


def beside_chart(rows: pd.DataFrame, *, frame: Frame = PAGE) -> Chart:
    """Draw measures of ours and of published models: a row per measure, a mark per model, with intervals over items.

    `rows`: model, measure, accuracy, low, high, items.
    """
    shown = rows[["model", "measure", "accuracy", "low", "high", "items"]]
    dots = Dots(shown, list(dict.fromkeys(shown["measure"])), "measure", "model")
    x = alt.X("accuracy:Q", scale=_SCALE, axis=_SHARE)
    tooltip = [alt.Tooltip("measure:N"), alt.Tooltip("model:N"), alt.Tooltip("items:Q")]
    points = dots.points(x, [*tooltip, *numbers("accuracy", "low", "high")])
    return dots.chart(dots.lines("low", "high", opacity=0.6), points, frame=frame)
