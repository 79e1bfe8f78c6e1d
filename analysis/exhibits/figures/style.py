"""The common look of figures (hues, dashes, shapes, legends, fonts), and their files."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import vl_convert
from scipy.optimize import isotonic_regression

from pairscale.files import write_bytes, write_text

Chart = Any  # Altair's classes of charts share no useful base

# Okabe and Ito 2008: six hues that people with any colour vision tell apart; beyond six, another dash and shape.
HUES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ([1, 0], [6, 3], [2, 2])
OF_PAIRS = " · "  # between the names of a curve and of its pairs
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
GREY = "#8a8a8a"
TEXT_GREY = "#666666"  # small text needs more contrast than a line (WCAG 2.2, 1.4.3)
FONT = "Helvetica, Arial, Liberation Sans, sans-serif"
LEGEND_CHARACTERS = 70  # of a line of the legend above a chart
MOST_TICKS = 8  # on an axis of sizes
LABEL_GAP = 13  # pixels between two names at the ends of lines
CHANCE_LABEL = "(abs(datum.value - 0.5) < 1e-6 ? 'chance  ' : '') + format(datum.value, '.1f')"
SIGNED_LABEL = "datum.value ? format(datum.value, '+.2~f') : '0'"
# 125000 -> 125k, 2000000 -> 2M
SIZE_LABEL = (
    "datum.value >= 1e6 ? format(datum.value / 1e6, '.3~g') + 'M' : "
    "datum.value >= 1e3 ? format(datum.value / 1e3, '.3~g') + 'k' : datum.value"
)


def style(names: Sequence[str]) -> pd.DataFrame:
    """Return colour, dash and shape of each name, in order: no two of the first eighteen share all three.

    Names "curve · pairs" of one curve share colour and shape, those of the same pairs a dash.
    """
    parts = [name.split(OF_PAIRS) for name in names]
    curves, pairs = (list(dict.fromkeys(part[i] for part in parts)) for i in (0, -1))
    rows = []
    for name, part in zip(names, parts, strict=True):
        i = curves.index(part[0])
        dash = i // len(HUES) + (pairs.index(part[-1]) if len(part) > 1 else 0)
        shape = SHAPES[(i + i // len(HUES)) % len(SHAPES)]
        rows.append((name, HUES[i % len(HUES)], DASHES[dash % len(DASHES)], shape))
    return pd.DataFrame(rows, columns=["name", "colour", "dash", "shape"])


def looks(names: Sequence[str], field: str = "group", legend: bool = True) -> tuple[alt.Color, alt.Shape]:
    """Return colours and shapes of the names in a column, with a legend above the chart in as many columns as fit."""
    columns = max(1, LEGEND_CHARACTERS // (4 + max(map(len, names), default=0)))
    above = alt.Legend(title=None, orient="top", labelLimit=400, columns=columns, symbolOpacity=1) if legend else None
    look = style(names)
    colour, shape = (alt.Scale(domain=list(names), range=list(look[of])) for of in ("colour", "shape"))
    return alt.Color(f"{field}:N", scale=colour, legend=above), alt.Shape(f"{field}:N", scale=shape, legend=above)


def spread_apart(positions: Sequence[float], gap: float) -> list[float]:
    """Return positions in the same order, at least `gap` apart, as close to the given ones as possible (least squares).

    With the gaps taken out, they have only to ascend: an isotonic regression.
    """
    order = np.argsort(positions, kind="stable")
    gaps = gap * np.arange(len(order))
    result = np.empty(len(order))
    result[order] = isotonic_regression(np.asarray(positions)[order] - gaps).x + gaps
    return [float(position) for position in result]


def size_axis(
    field: str, sizes: Iterable[float], unit: str, of: str = "of training text", ticks: Sequence[float] | None = None
) -> alt.X:
    """Return a logarithmic axis of amounts of text, counted in `unit`; `ticks`: in place of the sizes."""
    sizes = sorted(set(sizes))
    ticks = sizes[:: -(-len(sizes) // MOST_TICKS)] if ticks is None else ticks
    scale = alt.Scale(type="log", base=2, nice=False, domain=[sizes[0] / 1.12, sizes[-1] * 1.12])
    name = f"{unit.capitalize()} {of}"
    axis = alt.Axis(values=[*map(float, ticks)], labelExpr=SIZE_LABEL, title=name, grid=False)
    return alt.X(f"{field}:Q", scale=scale, axis=axis)


def side_by_side(panels: Sequence[Chart], columns: int = 2) -> Chart:
    """Arrange panels in rows of `columns`, as one figure."""
    return alt.concat(*panels, columns=columns, spacing=24)


def finished(chart: Any) -> dict[str, Any]:
    """Return the chart as a Vega-Lite specification with the common look."""
    styled = chart.configure(  # one call: each copies the chart
        font=FONT,
        background="white",
        view=alt.ViewConfig(strokeWidth=0),
        axis=alt.AxisConfig(labelFontSize=11, titleFontSize=12, titleFontWeight="normal", gridOpacity=0.35),
        title=alt.TitleConfig(fontSize=13, anchor="start"),
        legend=alt.LegendConfig(labelFontSize=12, symbolSize=90),
    )
    specification: dict[str, Any] = styled.to_dict(validate=False)  # its parts are valid
    return specification


def schema_version() -> str:
    """Return the version of Vega-Lite of the specifications, as vl-convert names it."""
    return alt.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]


def write_figure(folder: Path, name: str, chart: Any) -> None:
    """Write <name>.svg and <name>.png (twice the size, for print)."""
    svg = vl_convert.vegalite_to_svg(finished(chart), vl_version=schema_version())
    write_text(folder / f"{name}.svg", svg)
    write_bytes(folder / f"{name}.png", vl_convert.svg_to_png(svg, scale=2))
