"""Figures in files, exactly as wide as asked for: SVG, PDF with its fonts, and PNG."""

import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import vl_convert

from analysis.config import FigureConfig
from analysis.figures.style import LABEL_SIZE, LEGEND, Chart, finished
from pairscale.files import write_bytes, write_text

PER_INCH, DPI = 96, 300  # pixels of an SVG and of a PNG
GAP = 20  # pixels between panels
SMALL = 3  # panels in a row, from which on they share their axes
LEAST = 80  # pixels: the narrowest panel
ROOM = 62  # pixels of the title and the numbers of a vertical axis
CHARACTER = 6.8  # pixels of a character in the widest font that a reader may have
SYMBOL = 46  # pixels of a mark in a legend with its margins
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')  # the viewBox follows and stays


def write_figure(
    folder: Path,
    name: str,
    charts: Sequence[Chart],
    config: FigureConfig,
    columns: int = 2,
    legend: pd.DataFrame | None = None,
    formats: str = "svg pdf png",
) -> None:
    """Write a figure as NAME.svg, NAME.pdf and NAME.png; the arguments are those of `figure`."""
    svg = figure(charts, config, columns, legend)
    if "svg" in formats:
        write_text(folder / f"{name}.svg", svg)
    if "pdf" in formats:  # vl-convert takes a pixel for a point
        points = _resized(svg, config.pixels("width") * 72 / PER_INCH)
        write_bytes(folder / f"{name}.pdf", vl_convert.svg_to_pdf(points))
    if "png" in formats:
        write_bytes(folder / f"{name}.png", vl_convert.svg_to_png(svg, scale=72 / PER_INCH, ppi=DPI))


def figure(charts: Sequence[Chart], config: FigureConfig, columns: int = 2, legend: pd.DataFrame | None = None) -> str:
    """Return charts in rows of at most `columns` below a legend, as SVG of exactly the width asked for.

    The figure is laid out at the size at which names have LABEL_SIZE pixels. A single chart fills the width with its
    axes, its legend and the names beside it. Of several, only the axes are known to need ROOM: the figure as drawn may
    be a few pixels wider or narrower, and is scaled to the width.
    """
    scale = config.pixels("font_size") / LABEL_SIZE
    width = config.pixels("width") / scale
    height = round(config.pixels("height") / scale) if config.height else None
    if legend is not None:
        columns_of_names = max(1, int(width // (SYMBOL + CHARACTER * legend["name"].str.len().max())))
        charts = [_with_legend(chart, columns_of_names) for chart in charts]
    if len(charts) == 1:
        whole = _sized(charts[0], width, height) | {"autosize": {"type": "fit-x", "contains": "padding"}}
    else:
        in_row = min(columns, len(charts))
        while in_row > 1 and _share(width, in_row) < LEAST:
            in_row -= 1
        parts = [_sized(chart, max(LEAST, _share(width, in_row)), height) for chart in charts]
        whole = {**_in_rows(parts, in_row), "params": parts[0].get("params", [])}
    return _resized(vl_convert.vegalite_to_svg(finished(whole)), config.pixels("width"))


def _share(width: float, in_row: int) -> int:
    """Return the width of each of the panels in a row."""
    return int((width - GAP * (in_row - 1) - ROOM * (in_row if in_row < SMALL else 1)) / in_row)


def _sized(chart: Chart, width: float, height: int | None) -> Chart:
    """Return a chart of a width; a height that isn't asked for is that of the page, but less in a narrow file."""
    usual = chart["height"]
    if "yOffset" not in chart["layer"][-1]["encoding"]:  # not of rows, which have a height each
        usual = height or int(np.clip(0.8 * width, 0.45 * usual, usual))
    return chart | {"width": int(width), "height": usual}


def _resized(svg: str, width: float) -> str:
    size = _SIZE.search(svg)
    assert size, svg[:200]  # as vl-convert writes it
    across, down = map(float, size.groups())
    return _SIZE.sub(f'width="{width:g}" height="{down * width / across:g}"', svg, count=1)


def _in_rows(charts: Sequence[Chart], in_row: int) -> Chart:
    """Return panels in rows. Many small ones have numbers at the left and below only, and the titles of axes once."""
    alone = [{name: part for name, part in chart.items() if name != "params"} for chart in charts]
    if in_row < SMALL:
        return {"concat": alone, "columns": in_row, "spacing": GAP}
    axes = charts[0]["layer"][-1]["encoding"]
    parts = []
    for place, chart in enumerate(alone):
        part = untitled(chart, x=place + in_row >= len(alone), y=place % in_row == 0)
        lines = textwrap.wrap(part.get("title", ""), max(12, int((part["width"] + GAP) / CHARACTER)))
        parts.append(part | {"title": {"text": lines, "fontSize": LABEL_SIZE, "frame": "group", "offset": 6}})
    below, left = (
        {"text": axes[side]["axis"]["title"], "orient": at, "anchor": "middle", "fontSize": 12, "fontWeight": "normal"}
        for side, at in (("x", "bottom"), ("y", "left"))
    )
    return {"vconcat": [{"concat": parts, "columns": in_row, "spacing": GAP - 6, "title": below}], "title": left}


def untitled(chart: Chart, **numbered: bool) -> Chart:
    """Return a chart whose axes have no titles, and numbers only on the axes (x, y) for which that is True."""

    def bare(channel: str, of: Any) -> Any:
        has_axis = channel in numbered and of.get("axis")
        return of | {"axis": of["axis"] | {"title": None, "labels": numbered[channel]}} if has_axis else of

    return _changed(chart, bare)


def _with_legend(chart: Chart, columns: int) -> Chart:
    def named(channel: str, of: Any) -> Any:
        has_looks = channel in ("color", "shape") and "legend" in of
        return of | {"legend": LEGEND | {"columns": columns}} if has_looks else of

    return _changed(chart, named)


def _changed(chart: Chart, change: Callable[[str, Any], Any]) -> Chart:
    """Return a chart in which the encodings of all layers are changed."""
    layers = [
        one | {"encoding": {channel: change(channel, of) for channel, of in one["encoding"].items()}}
        for one in chart["layer"]
    ]
    return chart | {"layer": layers}
