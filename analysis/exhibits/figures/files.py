"""Figures in files, as wide as a journal's column: SVG, PDF with its fonts, and PNG."""

import math
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import vl_convert

from analysis.config import FigureConfig
from analysis.exhibits.figures.style import LABEL_SIZE, Chart, Frame, finished, schema_version, style
from pairscale.files import write_bytes, write_text

Draw = Callable[..., Chart]  # a panel, in a Frame
Specification = dict[str, Any]  # of Vega-Lite
PER_INCH = 96  # pixels of SVG and of a Frame
DPI = 300  # of PNG
GAP = 24  # pixels between panels
TRIAL = 320  # pixels, the width of a panel that is drawn to see what its names and axes need beside it
LEAST = 90  # pixels of the width of a panel
SMALL, SMALL_GAP, LOWEST = 100, 14, 50  # pixels: least width of a small panel, between two, least height
BESIDE, AROUND = 70, 50  # pixels of the numbers and the title beside small panels, of the names above and below one
PAGE_HEIGHT = 800  # pixels: 9 inches with names of 8 points, less axis and legend
NARROW = 200  # below which the title of an axis may be longer than it
CHARACTER, BOLD = 6.8, 7.4  # pixels of one in a legend, in a title, in the widest of the fonts that a reader may have
SYMBOL = 46  # pixels of a mark in a legend, with its margins
_CLIP = re.compile(r"(?<=[\"#]clip)\d+")  # numbers of clipping paths, which vl-convert counts through a process
_UNSEEN = re.compile(r'<path [^>]*(?<=\s)opacity="0"/>')  # for each, a PNG takes a layer of the size of the figure
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')  # then the viewBox, which stays


def write_figure(
    folder: Path, name: str, panels: Sequence[Draw], config: FigureConfig, columns: int = 2, legend: Sequence[str] = ()
) -> None:
    """Write <name>.svg, .pdf and .png of a `figure`."""
    svg = figure(panels, config, columns, legend)
    points = config.pixels("width") * 72 / PER_INCH
    write_text(folder / f"{name}.svg", svg)
    write_bytes(folder / f"{name}.pdf", vl_convert.svg_to_pdf(_resized(svg, points)))  # vl-convert: a pixel is a point
    write_bytes(folder / f"{name}.png", vl_convert.svg_to_png(_UNSEEN.sub("", svg), scale=72 / PER_INCH, ppi=DPI))


def figure(panels: Sequence[Draw], config: FigureConfig, columns: int, legend: Sequence[str] = ()) -> str:
    """Return panels in rows of at most `columns`, above a legend of the names that are given, as SVG.

    It is laid out in pixels in which names have LABEL_SIZE, so wide that they have the font size asked for when the
    whole has the width asked for. Names and axes beside a panel keep their size; the panel takes what they leave, at
    least as much as they have if it shares its row. Where they leave less than LEAST, everything shrinks. More than
    two panels in a row are small: they share their axes (_shared).
    """
    scale = config.pixels("font_size") / LABEL_SIZE
    width = config.pixels("width") / scale
    height = round(config.pixels("height") / scale) if config.height else None
    if columns > 2 and len(panels) > 1:
        whole = _shared(panels, Frame(round(width), height), columns)
        return _resized(_svg(_above(whole, legend, width - BESIDE), width), config.pixels("width"))
    beside = _size(_svg(finished(panels[0](frame=Frame(TRIAL, height))), None))[0] - TRIAL
    rooms = [(width - GAP * (number - 1)) / number - beside for number in range(1, 1 + min(columns, len(panels)))]
    in_row = max((number for number, room in enumerate(rooms, 1) if room >= max(LEAST, beside)), default=1)
    frame = Frame(max(LEAST, int(rooms[in_row - 1])), height)
    whole = _joined("concat", [finished(draw(frame=frame)) for draw in panels], columns=in_row, spacing=GAP)
    return _resized(_svg(_above(whole, legend, width), width), config.pixels("width"))


def _joined(kind: str, parts: Sequence[Specification], **properties: Any) -> Specification:
    """Return charts joined in one, whose look, data sets and parameters are those of the whole.

    alt.concat and alt.vconcat copy all parts of a chart once more for each level, for seconds with many panels.
    """
    whole: Specification = {"datasets": {}, "params": []}
    for part in parts:
        whole["datasets"] |= part.pop("datasets", {})
        whole["params"] += [param for param in part.pop("params", []) if param not in whole["params"]]
        whole |= {key: part.pop(key) for key in ("$schema", "config")}
    return whole | {kind: list(parts), **properties}


def _above(chart: Specification, legend: Sequence[str], width: float) -> Specification:
    """Return a chart above a legend, if there are names in it."""
    if not legend:
        return chart
    scales = dict.fromkeys(("color", "shape", "strokeDash"), "independent")
    return _joined("vconcat", [chart, finished(_legend(legend, width))], resolve={"scale": scales})


def _shared(panels: Sequence[Draw], whole: Frame, columns: int) -> Specification:
    """Return small panels in rows of at most `columns` across `whole`, whose axes have names and numbers once.

    Numbers stand left of a row and below a column, titles beside the whole. Unless `whole` has a height, that of a
    panel, a panel is so low that the whole fits a page, if there are not too many.
    """
    assert whole.width is not None
    room = whole.width - BESIDE + SMALL_GAP
    in_row = max(1, min(columns, len(panels), room // (SMALL + SMALL_GAP)))
    width = room // in_row - SMALL_GAP  # about; then as the numbers and names let it be
    width += int(whole.width - _size(_svg(_grid(panels, in_row, Frame(width, SMALL)), whole.width))[0]) // in_row
    most = PAGE_HEIGHT / math.ceil(len(panels) / in_row) - AROUND
    height = whole.height or int(np.clip(most, LOWEST, 0.75 * width))
    return _grid(panels, in_row, Frame(width, height))


def _grid(panels: Sequence[Draw], in_row: int, frame: Frame) -> Specification:
    """Return panels (layered charts) in rows, with one title for all x axes, and one for all y axes."""
    assert frame.width is not None
    titles: dict[str, Any] = {}
    charts = [draw(frame=frame) for draw in panels]
    for number, chart in enumerate(charts):
        outer = {"x": number + in_row >= len(charts), "y": number % in_row == 0}
        for channel, axis in _axes(chart):
            titles[channel] = titles.get(channel) or axis.title
            axis.title, axis.labels = None, outer[channel]
        lines = textwrap.wrap(chart.title, int((frame.width + SMALL_GAP) / CHARACTER))
        chart.title = alt.Title(lines, fontSize=LABEL_SIZE, frame="group")
    below, left = (
        {"text": titles[channel], "orient": side, "anchor": "middle", "fontSize": 12, "fontWeight": "normal"}
        for channel, side in (("x", "bottom"), ("y", "left"))
    )
    rows = _joined("concat", [*map(finished, charts)], columns=in_row, spacing=SMALL_GAP, title=below)
    return _joined("vconcat", [rows], title=left)


def _axes(chart: Chart) -> Iterator[tuple[str, alt.Axis]]:
    for layer in chart.layer:
        for channel in ("x", "y"):
            encoded = getattr(layer.encoding, channel)
            if isinstance(encoded, alt.X | alt.Y) and isinstance(encoded["axis"], alt.Axis):
                yield channel, encoded["axis"]


def _resized(svg: str, width: float) -> str:
    across, down = _size(svg)
    size = f'width="{width:g}" height="{down * width / across:g}"'
    return _SIZE.sub(size, svg, count=1)


def _legend(names: Sequence[str], width: float) -> Chart:
    """Return names beside their lines and marks, in as many columns as fit into `width` pixels."""
    cell = SYMBOL + CHARACTER * max(map(len, names))
    columns = max(1, int(width // cell))
    place = [divmod(number, columns) for number in range(len(names))]
    rows = pd.DataFrame([(name, cell * at, row) for name, (row, at) in zip(names, place, strict=True)])
    rows = rows.set_axis(["name", "x", "y"], axis=1).assign(end=lambda of: of["x"] + 24, middle=lambda of: of["x"] + 12)
    look = style(names)
    channels = {
        of: channel("name:N", scale=alt.Scale(domain=list(names), range=list(look[of])), legend=None)
        for of, channel in (("colour", alt.Color), ("dash", alt.StrokeDash), ("shape", alt.Shape))
    }
    across = alt.Scale(domain=[0, columns * cell], nice=False)
    y = alt.Y("y:O", axis=None)
    base = alt.Chart(rows)
    lines = base.mark_rule(strokeWidth=2).encode(alt.X("x:Q", scale=across, axis=None), alt.X2("end:Q"), y)
    marks = base.mark_point(size=50, filled=True, opacity=1).encode(alt.X("middle:Q"), y)
    text = base.mark_text(align="left", dx=5, fontSize=12).encode(alt.X("end:Q"), y, alt.Text("name:N"))
    layers = [lines.encode(channels["colour"], channels["dash"]), marks.encode(channels["colour"], channels["shape"])]
    return alt.layer(*layers, text, width=columns * cell, height=18 * (1 + place[-1][0]))


def _svg(specification: Specification, width: float | None) -> str:
    """Return a chart as SVG, without legends or, within `width` pixels of the whole figure, with them."""
    for part in _parts(specification):
        for channel in part.get("encoding", {}).values():
            if isinstance(channel, dict) and channel.get("legend"):
                channel["legend"] = None if width is None else channel["legend"] | _columns(channel, width)
        if part.get("width", NARROW) < NARROW:
            specification["config"]["axisX"] = {"titleAnchor": "end"}  # long titles grow over the names on the left
        if part.get("title") and "width" in part and width is not None:
            part["title"] = _broken(part["title"], max(part["width"] + 40, 160))
    svg = vl_convert.vegalite_to_svg(specification, vl_version=schema_version())
    numbers = {number: str(i) for i, number in enumerate(dict.fromkeys(_CLIP.findall(svg)))}
    return _CLIP.sub(lambda clip: numbers[clip[0]], svg)


def _parts(specification: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a specification and the panels and layers in it."""
    yield specification
    for part in [part for kind in ("concat", "vconcat", "layer") for part in specification.get(kind, ())]:
        yield from _parts(part)


def _columns(channel: dict[str, Any], width: float) -> dict[str, int]:
    longest = max(len(str(name)) for name in channel["scale"]["domain"])
    return {"columns": max(1, int(width // (SYMBOL + CHARACTER * longest)))}


def _broken(title: Any, width: float) -> Any:
    if isinstance(title, str):
        return textwrap.wrap(title, int(width / BOLD))
    if isinstance(title["text"], list):
        return title
    return title | {"text": textwrap.wrap(title["text"], int(width / CHARACTER))}


def _size(svg: str) -> tuple[float, float]:
    size = _SIZE.search(svg)
    assert size, svg[:200]  # of vl-convert
    return float(size[1]), float(size[2])
