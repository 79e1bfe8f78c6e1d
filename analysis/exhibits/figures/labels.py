"""Direct labels: names beside the ends of their lines, in place of a legend, and those of level lines."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import isotonic_regression

from analysis.exhibits.figures.style import GREY, LABEL_GAP, LABEL_SIZE, TEXT_GREY, Chart

_CHARACTER = 5.5  # pixels of one in the name of a level line
_LEVEL_NAME = 7  # pixels from a level line to the middle of its name
_TIE = 16  # pixels of the line from the panel to a name


def end_labels(
    ends: pd.DataFrame,
    domain: tuple[float, float],
    height: int,
    colour: alt.Color,
    opacity: alt.OpacityValue,
    levels: pd.DataFrame | None = None,
    edge: float | None = None,
) -> list[Chart]:
    """Draw the names of lines beside the panel, spread so that none overlap, each tied to the end of its line.

    `ends`: name, words, accuracy of the ends. `domain`: of the axis of accuracies. `levels`: name, accuracy of level
    lines, named in grey among the others. A dotted line leads from the end of a line to the edge, which others reach.
    `edge`: of the panel; by default its width, by which a page on a phone knows the layers that give way to a legend.
    """
    rows = pd.concat([ends, *([] if levels is None else [levels])])[["name", "words", "accuracy"]]
    rows["accuracy"] = rows["accuracy"].clip(*domain)
    rows["place"] = places(rows["accuracy"], domain, height)
    of_lines, of_levels = rows.iloc[: len(ends)], rows.iloc[len(ends) :]
    at = alt.Y("accuracy:Q")
    x, x2 = _at_width() if edge is None else (alt.XDatum(edge), alt.X2Datum(edge))
    layers = []
    if len(of_levels):
        base = alt.Chart(of_levels)
        tie = base.mark_rule(strokeWidth=1.2, xOffset=2, x2Offset=_TIE, color=GREY)
        layers.append(tie.encode(x, x2, at, alt.Y2("place:Q")))
        layers.append(_names(base, x, color=TEXT_GREY))
    base = alt.Chart(of_lines)
    way = base.mark_rule(strokeWidth=1, strokeDash=[1, 3]).encode(alt.X("words:Q"), x2, at, colour)
    tie = base.mark_rule(strokeWidth=1.2, xOffset=2, x2Offset=_TIE)
    tie = tie.encode(x, x2, at, alt.Y2("place:Q"), colour)
    return [*layers, *(layer.encode(opacity) for layer in (way, tie, _names(base, x)))]


def _at_width() -> tuple[alt.XValue, alt.X2Value]:
    return alt.XValue("width"), alt.X2Value("width")  # type: ignore[no-untyped-call]


def _names(base: alt.Chart, x: alt.XValue | alt.XDatum, **mark: Any) -> Chart:
    text = base.mark_text(align="left", baseline="middle", fontSize=LABEL_SIZE, dx=_TIE + 4, **mark)
    return text.encode(x, alt.Y("place:Q"), alt.Text("name:N"))


def level_rules(levels: pd.DataFrame) -> Chart:
    """Draw level lines; `levels`: accuracy."""
    return alt.Chart(levels).mark_rule(strokeDash=[3, 3], color=GREY).encode(y=alt.Y("accuracy:Q"))


def level_names(
    levels: pd.DataFrame, lines: pd.DataFrame, domain: tuple[float, float], size: tuple[int, int]
) -> list[Chart]:
    """Draw the names of level lines within a panel, each above or below its line, left or right, where most is free.

    `levels`: name, accuracy. `lines`: words, accuracy of what else is drawn. `domain`: of the axis of accuracies.
    `size`: of the panel, in pixels.
    """
    layers: list[Chart] = []
    if levels.empty:
        return layers
    at = np.log2(lines["words"].to_numpy(dtype=np.float64))
    share = (at - at.min()) / max(float(np.ptp(at)), 1e-9)
    for row in levels.to_dict("records"):
        across = _CHARACTER * len(row["name"]) / size[0]
        above = (lines["accuracy"].to_numpy() - row["accuracy"]) / (domain[1] - domain[0]) * size[1]  # pixels
        room = {
            (right, up): np.abs(above - up)[(1 - share if right else share) <= across + 0.05].min(initial=size[1])
            for right in (False, True)
            for up in (_LEVEL_NAME, -_LEVEL_NAME)
        }
        right, up = max(room, key=lambda place: min(room[place], 2 * _LEVEL_NAME))  # the first, where there is enough
        text = alt.Chart(pd.DataFrame([row])).mark_text(
            align="right" if right else "left", dx=-4 if right else 4, dy=-up, fontSize=10, color=TEXT_GREY
        )
        x = alt.XDatum(2.0 ** at.max()) if right else alt.XValue(0)  # type: ignore[no-untyped-call]
        layers.append(text.encode(x, alt.Y("accuracy:Q"), alt.Text("name:N")))
    return layers


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
