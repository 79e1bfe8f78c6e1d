"""Write figures as SVG, PDF (with fonts) and PNG files of exactly the requested width."""

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import vl_convert

from analysis.config import FigureConfig
from analysis.figures.style import LABEL_SIZE, Chart, finished
from pairscale.files import write_bytes, write_text

PER_INCH, DPI = 96, 300  # pixels per inch of an SVG and of a PNG
GAP = 20  # pixels between panels
SMALL = 3  # rows with at least this many panels share their axes
LEAST = 80  # minimum width of a panel in pixels
ROOM = 62  # width in pixels of the title and the numbers of a vertical axis
CHARACTER = 6.8  # width in pixels of a character in the widest likely font
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')  # the viewBox that follows isn't changed


def write_figure(
    folder: Path,
    name: str,
    charts: Sequence[Chart],
    config: FigureConfig,
    columns: int = 2,
    formats: str = "svg pdf png",
) -> None:
    """Write a figure as NAME.svg, NAME.pdf and NAME.png. For the other arguments, see `figure`."""
    svg = figure(charts, config, columns)
    if "svg" in formats:
        write_text(folder / f"{name}.svg", svg)
    if "pdf" in formats:  # vl-convert converts one pixel into one point
        points = _resized(svg, config.pixels("width") * 72 / PER_INCH)
        write_bytes(folder / f"{name}.pdf", vl_convert.svg_to_pdf(points))
    if "png" in formats:
        write_bytes(folder / f"{name}.png", vl_convert.svg_to_png(svg, scale=72 / PER_INCH, ppi=DPI))


def figure(charts: Sequence[Chart], config: FigureConfig, columns: int = 2) -> str:
    """Return charts in rows of at most `columns` panels, as an SVG with exactly the configured width.

    The figure is laid out at the size at which names have LABEL_SIZE pixels. A single chart fills the width together
    with its axes, its legend and the names next to it. If there are several charts, each vertical axis is assumed to
    need ROOM pixels. The figure may then be a few pixels too wide or too narrow, so it is scaled to the width.
    """
    scale = config.pixels("font_size") / LABEL_SIZE
    width = config.pixels("width") / scale
    height = round(config.pixels("height") / scale) if config.height else None
    if len(charts) == 1:
        whole = _sized(charts[0], width, height) | {"autosize": {"type": "fit-x", "contains": "padding"}}
    else:
        in_row = min(columns, len(charts))
        while in_row > 1 and _share(width, in_row) < LEAST:
            in_row -= 1
        parts = [_sized(chart, max(LEAST, _share(width, in_row)), height) for chart in charts]
        whole = _in_rows(parts, in_row) | {"params": parts[0].get("params", [])}
    return _resized(vl_convert.vegalite_to_svg(finished(whole)), config.pixels("width"))


def _share(width: float, in_row: int) -> int:
    """Return the width of each panel in a row."""
    return int((width - GAP * (in_row - 1) - ROOM * (in_row if in_row < SMALL else 1)) / in_row)


def _sized(chart: Chart, width: float, height: int | None) -> Chart:
    """Return a chart with a width and a height. By default, it is as high as on the page, or less if it is narrow."""
    usual, is_of_rows = chart["height"], "yOffset" in chart["layer"][-1]["encoding"]
    fitting = height or int(np.clip(0.8 * width, 0.45 * usual, usual))
    return chart | {"width": int(width), "height": usual if is_of_rows else fitting}


def _resized(svg: str, width: float) -> str:
    size = _SIZE.search(svg)
    assert size, svg[:200]  # as vl-convert writes it
    across, down = map(float, size.groups())
    return _SIZE.sub(f'width="{width:g}" height="{down * width / across:g}"', svg, count=1)


def _in_rows(charts: Sequence[Chart], in_row: int) -> Chart:
    """Return panels in rows. Small panels share axis titles, and only the left and bottom ones have numbers."""
    alone = [{name: part for name, part in chart.items() if name != "params"} for chart in charts]
    if in_row < SMALL:
        return {"concat": alone, "columns": in_row, "spacing": GAP}
    axes = charts[0]["layer"][-1]["encoding"]
    parts = []
    for place, chart in enumerate(alone):
        part = bare(chart, x=place + in_row >= len(alone), y=place % in_row == 0, legend=True)
        lines = textwrap.wrap(part.get("title", ""), max(12, int((part["width"] + GAP) / CHARACTER)))
        parts.append(part | {"title": {"text": lines, "fontSize": LABEL_SIZE, "frame": "group", "offset": 6}})
    below, left = (
        {"text": axes[side]["axis"]["title"], "orient": at, "anchor": "middle", "fontSize": 12, "fontWeight": "normal"}
        for side, at in (("x", "bottom"), ("y", "left"))
    )
    return {"vconcat": [{"concat": parts, "columns": in_row, "spacing": GAP - 6, "title": below}], "title": left}


def bare(chart: Chart, *, x: bool, y: bool, legend: bool) -> Chart:
    """Return a chart without axis titles. The arguments say whether to keep the numbers on x and y, and the legend."""
    numbered, layers = {"x": x, "y": y}, []
    for one in chart["layer"]:
        encoding = dict(one["encoding"])
        for channel, of in one["encoding"].items():
            if channel in numbered and of.get("axis"):
                encoding[channel] = of | {"axis": of["axis"] | {"title": None, "labels": numbered[channel]}}
            elif channel in ("color", "shape") and not legend:
                encoding[channel] = of | {"legend": None}
        layers.append(one | {"encoding": encoding})
    return chart | {"layer": layers}
