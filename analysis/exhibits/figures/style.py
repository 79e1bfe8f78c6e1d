"""The common look of figures (hues, dashes, shapes, legends, fonts), and their files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import vl_convert

from pairscale.files import write_bytes, write_text

Chart = Any  # Altair's classes of charts share no useful base


# Okabe and Ito 2008: six hues that people with any colour vision tell apart; beyond six, another dash and shape.
HUES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ([1, 0], [6, 3], [2, 2])
OF_PAIRS = " · "  # between the name of a curve and that of the pairs it is about
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
GREY = "#8a8a8a"
TEXT_GREY = "#666666"  # small text needs more contrast than a line (WCAG 2.2, 1.4.3)
FONT = "Helvetica, Arial, Liberation Sans, sans-serif"
LEGEND_CHARACTERS = 70  # that stand beside each other above a chart
MOST_TICKS = 8  # on an axis of sizes
LABEL_GAP = 13  # pixels between two names at the ends of lines
CHANCE_LABEL = "(abs(datum.value - 0.5) < 1e-6 ? 'chance  ' : '') + format(datum.value, '.1f')"
SIGNED_LABEL = "datum.value ? format(datum.value, '+.2~f') : '0'"
ROWS = alt.Axis(title=None, grid=True, tickBand="extent", labelLimit=220, domain=False, ticks=False)  # a name a row
MARGIN = alt.Scale(padding=8)  # pixels between the outermost marks and the names beside the axis


# 125000 -> 125k, 2000000 -> 2M
SIZE_LABEL = (
    "datum.value >= 1e6 ? format(datum.value / 1e6, '.3~g') + 'M' : "
    "datum.value >= 1e3 ? format(datum.value / 1e3, '.3~g') + 'k' : datum.value"
)


def style(names: Sequence[str]) -> pd.DataFrame:
    """Return colour, dash and shape of each name, in order: no two of the first eighteen share all three.

    Of names "curve · pairs" a curve has one colour and shape whatever pairs it is about, which have a dash each.
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


def group_looks(groups: Sequence[str]) -> tuple[alt.Color, alt.Shape]:
    """Return colours and shapes of the groups, with a legend above the chart in as many columns as fit."""
    look = style(groups)
    columns = max(1, LEGEND_CHARACTERS // (4 + max(map(len, groups), default=0)))
    legend = alt.Legend(title=None, orient="top", labelLimit=400, columns=columns)
    colour = alt.Color("group:N", scale=alt.Scale(domain=groups, range=list(look["colour"])), legend=legend)
    return colour, alt.Shape("group:N", scale=alt.Scale(domain=groups, range=list(look["shape"])), legend=legend)


def looks(names: Sequence[str], legend: alt.Legend | None = None, field: str = "name") -> tuple[alt.Color, alt.Shape]:
    """Return a colour and a shape for each name in the column `field`; None: no legend."""
    colour = alt.Scale(domain=list(names), range=[HUES[i % len(HUES)] for i in range(len(names))])
    shape = alt.Scale(domain=list(names), range=[SHAPES[i % len(SHAPES)] for i in range(len(names))])
    return alt.Color(f"{field}:N", scale=colour, legend=legend), alt.Shape(f"{field}:N", scale=shape, legend=legend)


def spread_apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Return positions in the order of `wanted`, at least `gap` apart, as close to it as possible (least squares).

    Pool adjacent violators: with the gaps taken out, positions have only to be ascending.
    """
    order = np.argsort(wanted, kind="stable")
    blocks: list[list[float]] = []  # mean, how many
    for rank, i in enumerate(order):
        blocks.append([wanted[i] - rank * gap, 1])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            mean, count = blocks.pop()
            blocks[-1] = [
                (blocks[-1][0] * blocks[-1][1] + mean * count) / (blocks[-1][1] + count),
                blocks[-1][1] + count,
            ]
    placed = np.repeat([mean for mean, _ in blocks], [int(count) for _, count in blocks]) + gap * np.arange(len(order))
    result = np.empty(len(order))
    result[order] = placed
    return [float(position) for position in result]


def _ticks(sizes: Sequence[float]) -> list[float]:
    """Return the sizes, or every second or third where there are many."""
    return [float(size) for size in sizes[:: -(-len(sizes) // MOST_TICKS)]]


def text_axis(sizes: Sequence[float], unit: str) -> alt.Axis:
    """Return the x axis of training text in `unit`s, with a tick at each size."""
    title = f"{unit.capitalize()} of training text"
    return alt.Axis(values=_ticks(sizes), labelExpr=SIZE_LABEL, title=title, grid=False)


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
    # Its parts were validated when they were made.
    specification: dict[str, Any] = styled.to_dict(validate=False)
    return specification


def schema_version() -> str:
    """Return the version of Vega-Lite that the specifications are written in, as vl-convert names it."""
    return alt.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]


def write_figure(folder: Path, name: str, chart: Any) -> None:
    """Write <name>.svg and <name>.png (twice the size, for print)."""
    svg = vl_convert.vegalite_to_svg(finished(chart), vl_version=schema_version())
    write_text(folder / f"{name}.svg", svg)
    write_bytes(folder / f"{name}.png", vl_convert.svg_to_png(svg, scale=2))
