"""Figures of agreement with ratings: over training text, and scores side by side."""

import altair as alt
import pandas as pd

from analysis.exhibits.figures.dots import Dots, numbers
from analysis.exhibits.figures.methods import named_lines
from analysis.exhibits.figures.style import GREY, PAGE, Chart, Frame, size_axis


def agreement_chart(
    rows: pd.DataFrame, heading: str, level: float, *, unit: str = "words", frame: Frame = PAGE
) -> Chart:
    """Draw one measure over training text, a line with its band (over runs) for each name.

    `rows`: name, size, words, runs, value, low, high. `level`: of no agreement: 0 of correlations, .5 of shares.
    """
    table = rows.rename(columns={"words": "at", "value": "accuracy"})
    table = table[["name", "size", "at", "runs", "accuracy", "low", "high"]]
    tooltip = [alt.Tooltip("name:N"), alt.Tooltip("size:N"), alt.Tooltip("runs:Q")]
    y = alt.Y("accuracy:Q", scale=_scale(table, level), axis=alt.Axis(title=heading, format=".2~f", tickCount=6))
    rule = alt.Chart(pd.DataFrame({"accuracy": [level]})).mark_rule(strokeDash=[3, 3], color=GREY).encode(y=y)
    tooltip += numbers("accuracy", "low", "high")
    return named_lines(table, size_axis("at", table["at"], unit), y, tooltip, frame, [rule]).properties(title=heading)


def _scale(table: pd.DataFrame, level: float) -> alt.Scale:
    low, high = min(table["accuracy"].min(), level), max(table["accuracy"].max(), level)
    room = max(0.05, 0.25 * (high - low))  # bands of few runs can be wide: they are cut
    return alt.Scale(domain=[round(low - room, 2), round(high + room, 2)], nice=False)


def scores_chart(rows: pd.DataFrame, measure: str, *, frame: Frame = PAGE) -> Chart:
    """Draw a row for each score and a mark for each curve; `rows`: curve, score, value, low, high."""
    dots = Dots(rows[["curve", "score", "value", "low", "high"]], list(dict.fromkeys(rows["score"])), "score", "curve")
    x = alt.X("value:Q", axis=alt.Axis(title=measure, format=".2~f", tickCount=6), scale=alt.Scale(zero=False))
    tooltip = [alt.Tooltip("score:N"), alt.Tooltip("curve:N"), *numbers("value", "low", "high")]
    return dots.chart(dots.lines("low", "high", opacity=0.6), dots.points(x, tooltip), frame=frame)
