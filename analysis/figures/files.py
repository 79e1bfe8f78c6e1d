"""Figures in files, exactly as wide as asked for: SVG, PDF with its fonts, and PNG."""

import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import vl_convert

from analysis.config import FigureConfig
from analysis.figures.style import LABEL_SIZE, Chart, Frame, finished, layer, number, styled, text
from pairscale.files import write_bytes, write_text

PER_INCH, DPI = 96, 300  # pixels of an SVG and of a PNG
GAP = 20  # pixels between panels
SMALL = 3  # panels in a row, from which on they share their axes
LEAST = 80  # pixels: the narrowest panel
CHARACTER = 6.8  # pixels of a character in a legend, in the widest font that a reader may have
SYMBOL = 46  # pixels of a mark in a legend with its margins
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')  # the viewBox follows and stays

Panels = Sequence[Callable[..., Chart]]


def write_figure(
    folder: Path,
    name: str,
    panels: Panels,
    config: FigureConfig,
    columns: int = 2,
    legend: pd.DataFrame | None = None,
    formats: str = "svg pdf png",
) -> None:
    """Write a figure as NAME.svg, NAME.pdf and NAME.png; the arguments are those of `figure`."""
    svg = figure(panels, config, columns, legend)
    if "svg" in formats:
        write_text(folder / f"{name}.svg", svg)
    if "pdf" in formats:  # vl-convert takes a pixel for a point
        points = _resized(svg, config.pixels("width") * 72 / PER_INCH)
        write_bytes(folder / f"{name}.pdf", vl_convert.svg_to_pdf(points))
    if "png" in formats:
        write_bytes(folder / f"{name}.png", vl_convert.svg_to_png(svg, scale=72 / PER_INCH, ppi=DPI))


def figure(panels: Panels, config: FigureConfig, columns: int = 2, legend: pd.DataFrame | None = None) -> str:
    """Return panels in rows of at most `columns` above a legend, as SVG of exactly the width asked for.

    The figure is laid out at the size at which names have LABEL_SIZE pixels. A first drawing shows how many pixels the
    names and numbers beside the panels need; the panels share the rest.
    """
    scale = config.pixels("font_size") / LABEL_SIZE
    width = config.pixels("width") / scale
    height = round(config.pixels("height") / scale) if config.height else None
    for in_row in range(min(columns, len(panels)), 0, -1):
        trial = int((width - GAP * (in_row - 1)) / in_row * 0.8)
        first = panels[: 1 if in_row >= SMALL else in_row]  # only the first of small panels has names beside it
        drawn = _svg(_in_rows(first, Frame(trial, height), in_row))
        beside = _size(drawn)[0] - trial * len(first) + (in_row - len(first)) * GAP
        share = max(LEAST, int((width - beside) / in_row))
        if share > LEAST or in_row == 1:
            break
    whole = _in_rows(panels, Frame(share, height), in_row)
    if legend is not None:
        apart = {"scale": dict.fromkeys(("color", "shape", "strokeDash"), "independent")}
        whole = {"vconcat": [_legend(legend, width), whole], "resolve": apart}
    return _resized(_svg(whole), config.pixels("width"))


def _svg(chart: Chart) -> str:
    svg: str = vl_convert.vegalite_to_svg(finished(chart))
    return svg


def _size(svg: str) -> tuple[float, float]:
    size = _SIZE.search(svg)
    assert size, svg[:200]  # as vl-convert writes it
    return float(size[1]), float(size[2])


def _resized(svg: str, width: float) -> str:
    across, down = _size(svg)
    return _SIZE.sub(f'width="{width:g}" height="{down * width / across:g}"', svg, count=1)


def _in_rows(panels: Panels, frame: Frame, in_row: int) -> Chart:
    """Return panels in rows. Many small ones have numbers at the left and below only, and the titles of axes once."""
    parts = [draw(frame=frame) for draw in panels]
    if in_row < SMALL:
        return {"concat": parts, "columns": in_row, "spacing": GAP}
    titles: dict[str, str] = {}
    for place, part in enumerate(parts):
        outer = {"x": place + in_row >= len(parts), "y": place % in_row == 0}
        for encoding in (one["encoding"] for one in part["layer"]):
            for side, shown in outer.items():
                if axis := encoding.get(side, {}).get("axis"):
                    titles[side] = axis["title"] or titles.get(side, "")
                    encoding[side] = {**encoding[side], "axis": {**axis, "title": None, "labels": shown}}
        lines = textwrap.wrap(part.get("title", ""), max(12, int(((frame.width or LEAST) + GAP) / CHARACTER)))
        part["title"] = {"text": lines, "fontSize": LABEL_SIZE, "frame": "group", "offset": 6}
    below, left = (
        {"text": titles.get(side, ""), "orient": at, "anchor": "middle", "fontSize": 12, "fontWeight": "normal"}
        for side, at in (("x", "bottom"), ("y", "left"))
    )
    return {
        "vconcat": [{"concat": parts, "columns": in_row, "spacing": GAP - 6, "title": below}],
        "title": left,
    }


def _legend(looks: pd.DataFrame, width: float) -> Chart:
    """Return names beside their lines and marks, in as many columns as fit into `width` pixels."""
    cell = SYMBOL + CHARACTER * looks["name"].str.len().max()
    columns = max(1, int(width // cell))
    place = pd.Series(range(len(looks)))
    rows = pd.DataFrame({"name": looks["name"].to_numpy(), "x": cell * (place % columns), "y": place // columns})
    rows = rows.assign(end=rows["x"] + 24, middle=rows["x"] + 12)
    used = min(columns, len(rows)) * cell
    y = {"field": "y", "type": "ordinal", "axis": None}
    line = {"x": number("x", scale={"domain": [0, used], "nice": False}, axis=None), "x2": {"field": "end"}, "y": y}
    mark = {"x": number("middle"), "y": y, **styled("name", looks, "colour", "shape")}
    layers = [
        layer(rows, "rule", line | styled("name", looks, "colour", "dash"), strokeWidth=2),
        layer(rows, "point", mark, size=50, filled=True, opacity=1),
        layer(rows, "text", {"x": number("end"), "y": y, "text": text("name")}, align="left", dx=5, fontSize=12),
    ]
    return {"layer": layers, "width": used, "height": 18 * (1 + int(rows["y"].max()))}
