"""Figures of interventions: differences over sizes, differences by paradigm, accuracy over doses."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from analysis.exhibits.figures.dots import numbers, reference
from analysis.exhibits.figures.methods import named_lines
from analysis.exhibits.figures.style import (
    GREY,
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

HEIGHT = 240
ROW = 14  # pixels of a paradigm
APART = 0.035  # of a size, between the marks of two units at it
DIFFERENCE = "Difference of accuracy"


def sizes_chart(rows: pd.DataFrame, units: Sequence[str], *, title: str, unit: str, frame: Frame = PAGE) -> Chart:
    """Draw differences over sizes with their intervals, a line for each unit.

    `rows`: name, words, difference, low, high (NaN: no interval), pairs. `units`: names, in the order of colours, of
    all panels.
    """
    shift = {name: (1 + APART) ** (place - (len(units) - 1) / 2) for place, name in enumerate(units)}
    rows = rows.assign(at=rows["words"] * rows["name"].map(shift))
    colour, shape = looks(units, "name")
    axis = alt.Axis(title=DIFFERENCE, labelExpr=SIGNED_LABEL, tickCount=6)
    x, y = size_axis("at", rows["words"], unit), alt.Y("difference:Q", axis=axis)
    tooltip = [alt.Tooltip("name:N", title="paradigms"), *numbers("difference", "low", "high", form="+.3f")]
    tooltip += [alt.Tooltip("pairs:Q", title="pairs of runs")]
    base = alt.Chart(rows)
    zero = alt.Chart(pd.DataFrame({"difference": [0.0]})).mark_rule(strokeDash=[3, 3], color=GREY).encode(y=y)
    layers = [
        zero,
        base.mark_rule(strokeWidth=1.6).encode(x, alt.Y("low:Q", axis=axis), alt.Y2("high:Q"), colour),
        base.mark_line(strokeWidth=1.2, opacity=0.6).encode(x, y, colour),
        base.mark_point(size=50, filled=True, opacity=1).encode(x, y, colour, shape, tooltip=tooltip),
    ]
    return alt.layer(*layers, width=frame.span, height=frame.height_of_curves(HEIGHT), title=title)


def paradigms_chart(rows: pd.DataFrame, units: Sequence[str], *, title: str, frame: Frame = PAGE) -> Chart:
    """Draw the difference in each paradigm with its interval; `rows`: name (as people read it), scope, difference,
    low, high, in their order from top to bottom. `units`: the scopes, in the order of colours.
    """
    colour, shape = looks(units, "scope")
    order = list(rows["name"])
    y = alt.Y("name:N", sort=order, axis=alt.Axis(title=None, labelLimit=260, domain=False, ticks=False, grid=True))
    x = alt.X("difference:Q", axis=signed_axis(DIFFERENCE, frame))
    tooltip = [alt.Tooltip("name:N", title="paradigm"), *numbers("difference", "low", "high", form="+.3f")]
    base = alt.Chart(rows)
    layers = [
        reference(0),
        base.mark_rule(strokeWidth=1.4).encode(alt.X("low:Q"), alt.X2("high:Q"), y, colour),
        base.mark_point(size=40, filled=True, opacity=1).encode(x, y, colour, shape, tooltip=tooltip),
    ]
    return alt.layer(*layers, width=frame.span, height=ROW * len(order), title=title)


def doses_chart(rows: pd.DataFrame, *, title: str, frame: Frame = PAGE) -> Chart:
    """Draw accuracy over doses with bands, a line for each unit; `rows`: name, at, accuracy, low, high, runs."""
    axis = alt.Axis(title="Share of the construction's sentences that stay", format=".0%", grid=False)
    tooltip = [alt.Tooltip("name:N", title="paradigms"), alt.Tooltip("at:Q", format=".3~%", title="share")]
    tooltip += [*numbers("accuracy", "low", "high"), *numbers("runs", form=",")]
    domain = accuracy_limits(rows[["accuracy", "low", "high"]])
    lines = named_lines(rows, alt.X("at:Q", axis=axis), accuracy_axis(domain), tooltip, frame)
    return lines.properties(title=title)
