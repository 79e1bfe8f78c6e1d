"""Direct labels: names to the right of a panel, beside the ends of their lines, in place of a legend."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import isotonic_regression

from analysis.exhibits.figures.style import GREY, TEXT_GREY, Chart

LABEL_GAP = 13  # pixels between two names
LABEL_SIZE = 11  # of their font
_TIE = 16  # pixels of the line from the panel to a name


def end_labels(
    ends: pd.DataFrame,
    domain: tuple[float, float],
    height: int,
    colour: alt.Color,
    opacity: Any,
    levels: pd.DataFrame | None = None,
    edge: Any = None,
) -> list[Chart]:
    """Draw the names of lines beside the panel, spread so that none overlap, each tied to the end of its line.

    `ends`: name, words, accuracy of the ends. `domain`: of the axis of accuracies. `levels`: name, accuracy of level
    lines, named in grey among the others. A dotted line leads from the end of a line to the edge, which others reach.
    `edge`: of the panel; by default its width, by which a page on a phone knows the layers that give way to a legend.
    """
    rows = pd.concat([ends, *([] if levels is None else [levels])])[["name", "words", "accuracy"]]
    rows["place"] = places(rows["accuracy"], domain, height)
    of_lines, of_levels = rows.iloc[: len(ends)], rows.iloc[len(ends) :]
    edge, at = alt.value("width") if edge is None else edge, alt.Y("accuracy:Q")
    layers = []
    if len(of_levels):
        base = alt.Chart(of_levels)
        tie = base.mark_rule(strokeWidth=1.2, xOffset=2, x2Offset=_TIE, color=GREY)
        layers.append(tie.encode(at, alt.Y2("place:Q"), x=edge, x2=edge))
        layers.append(_names(base, edge, color=TEXT_GREY))
    base = alt.Chart(of_lines)
    way = base.mark_rule(strokeWidth=1, strokeDash=[1, 3]).encode(alt.X("words:Q"), at, x2=edge, color=colour)
    tie = base.mark_rule(strokeWidth=1.2, xOffset=2, x2Offset=_TIE)
    tie = tie.encode(at, alt.Y2("place:Q"), x=edge, x2=edge, color=colour)
    return [*layers, *(layer.encode(opacity=opacity) for layer in (way, tie, _names(base, edge)))]


def _names(base: alt.Chart, edge: Any, **mark: Any) -> Chart:
    text = base.mark_text(align="left", baseline="middle", fontSize=LABEL_SIZE, dx=_TIE + 4, **mark)
    return text.encode(alt.Y("place:Q"), x=edge, text="name:N")


def places(ends: pd.Series, domain: tuple[float, float], height: int) -> npt.NDArray[np.float64]:
    """Return where the names of lines that end at `ends` stand beside a panel: apart, and within it if they fit."""
    pixel = (domain[1] - domain[0]) / height
    positions = np.asarray(spread_apart(list(ends), LABEL_GAP * pixel))
    positions -= max(0.0, positions.max() - domain[1])
    positions += max(0.0, domain[0] - positions.min())
    return positions


def spread_apart(positions: Sequence[float], gap: float) -> list[float]:
    """Return positions in the same order, at least `gap` apart, as close to the given ones as possible (least squares).

    With the gaps taken out, they have only to ascend: an isotonic regression.
    """
    order = np.argsort(positions, kind="stable")
    gaps = gap * np.arange(len(order))
    result = np.empty(len(order))
    result[order] = isotonic_regression(np.asarray(positions)[order] - gaps).x + gaps
    return [float(position) for position in result]
