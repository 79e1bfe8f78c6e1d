"""Figures in files, exactly as wide as asked for: SVG, PDF with its fonts, and PNG."""

import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import vl_convert

from analysis.config import FigureConfig
from analysis.figures.style import LABEL_SIZE, Chart, Frame, channel, finished, schema_version
from pairscale.files import write_bytes, write_text

PER_INCH = 96  # pixels of an SVG
DPI = 300  # of a PNG
GAP = 20  # pixels between panels
SMALL = 3  # panels in a row, from which on they share their axes
LEAST = 80  # pixels: the narrowest panel
CHARACTER = 6.8  # pixels of a character in a legend, in the widest font that a reader may have
SYMBOL = 46  # pixels of a mark in a legend with its margins
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')  # the viewBox follows and stays
_CLIP = re.compile(r"(?<=[\"#]clip)\d+")  # numbers of clipping paths, which vl-convert counts through a process


def write_figure(
    folder: Path,
    name: str,
    panels: Sequence[Callable[..., Chart]],
    config: FigureConfig,
    columns: int = 2,
    legend: pd.DataFrame | None = None,
    formats: Sequence[str] = ("svg", "pdf", "png"),
) -> None:
    """Write a figure as NAME.svg, NAME.pdf and NAME.png; the arguments are those of `figure`."""
    svg = figure(panels, config, columns, legend)
    if "svg" in formats:
        write_text(folder / f"{name}.svg", svg)
    if "pdf" in formats:  # vl-convert takes a pixel for a point
        write_bytes(
            folder / f"{name}.pdf", vl_convert.svg_to_pdf(_resized(svg, config.pixels("width") * 72 / PER_INCH))
        )
    if "png" in formats:
        write_bytes(folder / f"{name}.png", vl_convert.svg_to_png(svg, scale=72 / PER_INCH, ppi=DPI))


def figure(
    panels: Sequence[Callable[..., Chart]], config: FigureConfig, columns: int = 2, legend: pd.DataFrame | None = None
) -> str:
    """Return panels in rows of at most `columns` above a legend, as SVG of exactly the width asked for.

    The figure is laid out at the size at which names have LABEL_SIZE pixels. A first drawing shows how many pixels the
    names and numbers beside the panels need; the panels share the rest.
    """
    scale = config.pixels("font_size") / LABEL_SIZE
    width = config.pixels("width") / scale
    height = round(config.pixels("height") / scale) if config.height else None
    for in_row in range(min(columns, len(panels)), 0, -1):
        trial = (width - GAP * (in_row - 1)) / in_row * 0.8
        first = panels[: 1 if in_row >= SMALL else in_row]  # only the first of small panels has names beside it
        beside = _size(_svg(first, Frame(int(trial), height), in_row, None, width))[0] - int(trial) * len(first)
        beside += (in_row - len(first)) * GAP
        share = int((width - beside) / in_row)
        if share >= LEAST or in_row == 1:
            break
    return _resized(_svg(panels, Frame(max(LEAST, share), height), in_row, legend, width), config.pixels("width"))


def _svg(
    panels: Sequence[Callable[..., Chart]], frame: Frame, in_row: int, legend: pd.DataFrame | None, width: float
) -> str:
    parts = [finished(draw(frame=frame)) for draw in panels]
    whole = _joined("concat", parts, columns=in_row, spacing=GAP) if in_row < SMALL else _small(parts, frame, in_row)
    if legend is not None:
        apart = {"scale": dict.fromkeys(("color", "shape", "strokeDash"), "independent")}
        whole = _joined("vconcat", [finished(_legend(legend, width)), whole], resolve=apart)
    svg = vl_convert.vegalite_to_svg(whole, vl_version=schema_version())
    numbers = {number: str(i) for i, number in enumerate(dict.fromkeys(_CLIP.findall(svg)))}
    return _CLIP.sub(lambda clip: numbers[clip[0]], svg)


def _small(parts: Sequence[dict[str, Any]], frame: Frame, in_row: int) -> dict[str, Any]:
    """Return many small panels, whose axes have numbers at the left and below only, and a title once."""
    titles: dict[str, str] = {}
    for number, part in enumerate(parts):
        outer = {"x": number + in_row >= len(parts), "y": number % in_row == 0}
        for layer in part.get("layer", [part]):
            for side, shown in outer.items():
                axis = layer.get("encoding", {}).get(side, {}).get("axis")
                if axis:
                    titles[side] = axis.pop("title", None) or titles.get(side, "")
                    axis |= {"title": None, "labels": shown}
        lines = textwrap.wrap(str(part.get("title", "")), max(12, int(((frame.width or LEAST) + GAP) / CHARACTER)))
        part["title"] = {"text": lines, "fontSize": LABEL_SIZE, "frame": "group", "offset": 6}
    look = {"anchor": "middle", "fontSize": 12, "fontWeight": "normal"}
    below, left = (
        {"text": titles.get(side, ""), "orient": at, **look} for side, at in (("x", "bottom"), ("y", "left"))
    )
    return _joined("vconcat", [_joined("concat", parts, columns=in_row, spacing=GAP - 6, title=below)], title=left)


def _joined(kind: str, parts: Sequence[dict[str, Any]], **properties: Any) -> dict[str, Any]:
    """Return one chart of several, whose look, data sets and parameters belong to the whole.

    alt.concat copies all parts of a chart once more for each level, which takes seconds with many panels.
    """
    whole: dict[str, Any] = {"datasets": {}, "params": []}
    for part in parts:
        whole["datasets"] |= part.pop("datasets", {})
        whole["params"] += [param for param in part.pop("params", []) if param not in whole["params"]]
        whole |= {key: part.pop(key) for key in ("$schema", "config")}
    return whole | {kind: list(parts), **properties}


def _legend(looks: pd.DataFrame, width: float) -> Chart:
    """Return names beside their lines and marks, in as many columns as fit into `width` pixels."""
    cell = SYMBOL + CHARACTER * looks["name"].str.len().max()
    columns = max(1, int(width // cell))
    place = pd.Series(range(len(looks)))
    rows = pd.DataFrame({"name": looks["name"].to_numpy(), "x": cell * (place % columns), "y": place // columns})
    rows = rows.assign(end=rows["x"] + 24, middle=rows["x"] + 12)
    colour, dash, shape = (
        channel(kind, "name", looks, look)
        for kind, look in ((alt.Color, "colour"), (alt.StrokeDash, "dash"), (alt.Shape, "shape"))
    )
    used = min(columns, len(rows)) * cell
    across = alt.Scale(domain=[0, used], nice=False)
    y = alt.Y("y:O", axis=None)
    base = alt.Chart(rows)
    line = base.mark_rule(strokeWidth=2).encode(alt.X("x:Q", scale=across, axis=None), alt.X2("end:Q"), y, colour, dash)
    mark = base.mark_point(size=50, filled=True, opacity=1).encode(alt.X("middle:Q"), y, colour, shape)
    text = base.mark_text(align="left", dx=5, fontSize=12).encode(alt.X("end:Q"), y, alt.Text("name:N"))
    return alt.layer(line, mark, text, width=used, height=18 * (1 + int(rows["y"].max())))


def _resized(svg: str, width: float) -> str:
    across, down = _size(svg)
    return _SIZE.sub(f'width="{width:g}" height="{down * width / across:g}"', svg, count=1)


def _size(svg: str) -> tuple[float, float]:
    size = _SIZE.search(svg)
    assert size, svg[:200]  # as vl-convert writes it
    return float(size[1]), float(size[2])
