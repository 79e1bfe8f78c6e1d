"""Draw learning curves, rows of estimates with intervals, and lines over sizes, for files and for the page.

A chart has a height but no width, because files.py and the page add it. In a chart of curves, the page fades all curves
except the one in the parameter `highlight`. `looks` is always a table of `analysis.figures.style.looks_of`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.figures.style import (
    CHANCE,
    GREY,
    LABEL_SIZE,
    TEXT_GREY,
    Chart,
    accuracy_axis,
    accuracy_domain,
    layer,
    number,
    size_axis,
    styled,
    text,
)
from analysis.formats import title

HEIGHT, SMALL_HEIGHT, LINE_HEIGHT = 420, 170, 260  # panel heights in pixels, for curves, small panels and lines
LABEL_GAP, LABEL_HEIGHT = 13, 250  # pixels between two names next to a panel that is at least LABEL_HEIGHT high
_TIE = 16  # length in pixels of the line from a panel to a name


@dataclass(frozen=True)
class Axis:
    """The axis of a quantity, with its title, the format of its numbers (d3-format), and whether it is logarithmic."""

    title: str
    form: str = ".3f"
    logarithmic: bool = False


def curve_chart(
    units: pd.DataFrame,
    lines: pd.DataFrame,
    looks: pd.DataFrame,
    levels: pd.DataFrame,
    *,
    unit: tuple[str, str] = ("overall", "overall"),
    domain: tuple[float, float] | None = None,
    chance: float = CHANCE,
    labelled: bool = False,
) -> Chart:
    """Draw the learning curves of one unit (accuracy by amount of training text), with one colour per curve.

    Small marks are runs. Large marks are means over the runs of a size, joined by a thin line. The thick line is the
    fitted line, with its confidence band.

    Args:
        units: Rows of `analysis.unit_accuracies`.
        lines: Rows of `analysis.fitted_lines`, which may be empty.
        looks: The look of each curve.
        levels: Names and accuracies of human baselines and published models, drawn as dashed lines.
        unit: A level and a name, such as ("phenomenon", "island_effects").
        domain: The ends of the accuracy axis. By default they fit the accuracies of this unit.
        chance: The accuracy of guessing, drawn as a dashed line.
        labelled: Whether to write names next to the ends of lines instead of in a legend.
    """
    points, fits = (table[(table["level"] == unit[0]) & (table["name"] == unit[1])] for table in (units, lines))
    means = _means(points, ["curve", "size"], "accuracy")
    domain = domain or accuracy_domain(points["accuracy"], fits["accuracy"], levels["accuracy"], chance=chance)
    height = HEIGHT if labelled else SMALL_HEIGHT
    x = size_axis(units["sample_words"], str(units["unit"].iloc[0]))
    place = {"x": x, "y": accuracy_axis(domain, small=not labelled, chance=chance)}
    colour, shape = _styles("curve", looks, legend=not labelled)
    bands = fits[["curve", "sample_words", "low", "high"]].dropna()
    bands[["low", "high"]] = bands[["low", "high"]].clip(*domain)
    fits = fits.loc[fits["accuracy"].between(*domain), ["curve", "sample_words", "accuracy"]]
    band = {"x": x, "y": number("low"), "y2": {"field": "high"}, **colour}
    opacity = _faded(0.45 / max(3, bands["curve"].nunique()))  # many opaque bands would hide each other
    tooltip = [text("curve"), number("accuracy", format=".3f"), text("size")]
    of_run = [*tooltip, number("seed"), text("run")]
    rules = pd.concat([levels[["name", "accuracy"]], pd.DataFrame({"name": ["chance"], "accuracy": [chance]})])
    rule = {"y": number("accuracy"), "tooltip": [text("name"), tooltip[1]]}
    runs, size = points[["run", "curve", "size", "seed", "sample_words", "accuracy"]], 60 if labelled else 30
    layers = [
        layer(rules, "rule", rule, strokeDash=[3, 3], color=GREY),
        layer(bands, "area", band | opacity),
        layer(fits, "line", place | colour | styled("curve", looks, "dash") | _faded(1), strokeWidth=2.4),
        layer(means, "line", place | colour | _faded(0.9), strokeWidth=0.9),
        layer(runs, "point", {**place, **shape, **_faded(0.5), "tooltip": of_run}, size=14, filled=True),
        layer(means, "point", {**place, **shape, **_faded(1), "tooltip": tooltip}, size=size, filled=True),
    ]
    if labelled:
        last = means.sort_values("sample_words").drop_duplicates("curve", keep="last").rename(columns={"curve": "name"})
        layers += _end_labels(pd.concat([last.merge(looks), levels.assign(colour=TEXT_GREY)]), domain)
    params = {"params": [{"name": "highlight", "value": ""}]}
    return _layered(layers, height, "" if labelled else title(unit[1])) | params


def _means(rows: pd.DataFrame, by: Sequence[str], value: str) -> pd.DataFrame:
    """Return the mean of a column at each size, with the columns `by`, sample_words and `value`."""
    return rows.groupby([*by, "sample_words"], as_index=False, sort=False)[[value]].mean()


def _styles(by: str, looks: pd.DataFrame, legend: bool = True) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the encodings of lines (colour) and of marks (colour and shape), with a legend if there are several."""
    legend = legend and len(looks) > 1
    return styled(by, looks, "colour", legend=legend), styled(by, looks, "colour", "shape", legend=legend)


def _layered(layers: Sequence[Chart], height: int, heading: str = "") -> Chart:
    """Return a chart of the layers that have any marks."""
    chart: Chart = {"layer": [one for one in layers if one["data"]["values"]], "height": height}
    return chart | ({"title": heading} if heading else {})


def _faded(opacity: float) -> dict[str, Any]:
    """Return the encoding of an opacity, which is divided by ten while another curve is highlighted."""
    test = "highlight === datum.curve || highlight === ''"
    return {"opacity": {"condition": {"test": test, "value": opacity}, "value": opacity / 10}}


def _end_labels(names: pd.DataFrame, domain: tuple[float, float]) -> list[Chart]:
    """Write names (with accuracy and colour) next to the panel, without overlap, each with a line to its curve."""
    at = names["accuracy"].clip(*domain)
    place = spread_apart(at.to_numpy(), LABEL_GAP * (domain[1] - domain[0]) / LABEL_HEIGHT, domain)
    rows = pd.DataFrame({"name": names["name"], "accuracy": at, "place": place, "colour": names["colour"]})
    edge, colour = {"value": "width"}, {"color": text("colour", scale=None)}
    tie = {"x": edge, "x2": edge, "y": number("accuracy"), "y2": {"field": "place"}, **colour}
    name = {"x": edge, "y": number("place"), "text": text("name"), **colour}
    return [
        layer(rows, "rule", tie, strokeWidth=1.2, xOffset=2, x2Offset=_TIE),
        layer(rows, "text", name, align="left", baseline="middle", fontSize=LABEL_SIZE, dx=_TIE + 4),
    ]


def spread_apart(positions: Any, gap: float, domain: tuple[float, float]) -> Any:
    """Move positions so that they are at least `gap` apart, and keep their order.

    The result is the mean of two solutions, in which positions only move up or only move down. It stays within `domain`
    if there is room.
    """
    order, gaps = np.argsort(positions, kind="stable"), gap * np.arange(len(positions))
    least = np.asarray(positions, dtype=float)[order] - gaps
    up, down = np.maximum.accumulate(least), np.minimum.accumulate(least[::-1])[::-1]
    result = np.empty(len(order))
    result[order] = np.maximum(np.minimum((up + down) / 2, domain[1] - gaps.max(initial=0)), domain[0]) + gaps
    return result


def dot_chart(
    table: pd.DataFrame,
    value: str,
    axis: Axis,
    looks: pd.DataFrame,
    *,
    by: str = "curve",
    reference: float | None = 0.0,
) -> Chart:
    """Draw rows of estimates with one mark per curve, and intervals if the table has the columns `low` and `high`.

    Args:
        table: One row per mark. Marks with the same `name` share a row, and rows keep the table's order.
        value: The column of the estimates.
        axis: The axis of the estimates.
        looks: The look of each name in the column `by`.
        by: The column that distinguishes the marks of a row: a curve, model or method.
        reference: The value at which to draw a vertical line, if any.
    """
    estimates = table.reindex(columns=["name", by, value, "low", "high"])
    looks = looks[looks["name"].isin(estimates[by])]
    form = f"datum.value ? format(datum.value, '{axis.form.replace('f', '~f')}') : '0'"
    ticks = {"title": axis.title, "titleAnchor": "end", "tickCount": 6, "labelExpr": form}
    rows = {"title": None, "grid": True, "tickBand": "extent", "labelLimit": 220, "domain": False, "ticks": False}
    place = {
        "y": text("name", sort=list(estimates["name"].unique()), axis=rows, scale={"paddingInner": 0.25}),
        "yOffset": text(by, sort=list(looks["name"])),
    }
    x = number(value, axis=ticks, scale={"padding": 8, "zero": False})
    limited = estimates[np.isfinite(estimates["low"].astype(float))]
    tooltip = [text("name"), text(by)]
    tooltip += [number(column, format=axis.form) for column in (value, *(("low", "high") if len(limited) else ()))]
    colour, shape = _styles(by, looks)
    layers = [
        layer(pd.DataFrame({"at": [reference]}).dropna(), "rule", {"x": number("at")}, color=GREY),
        layer(limited, "rule", {"x": number("low"), "x2": {"field": "high"}, **place, **colour}, strokeWidth=1.8),
        layer(estimates, "point", {"x": x, "tooltip": tooltip, **place, **shape}, size=55, filled=True, opacity=1),
    ]
    return _layered(layers, estimates["name"].nunique() * (10 + 12 * len(looks)))


def line_chart(
    table: pd.DataFrame,
    value: str,
    axis: Axis,
    looks: pd.DataFrame,
    *,
    by: str = "curve",
    unit: str = "words",
    heading: str = "",
) -> Chart:
    """Draw a quantity by amount of training text. Each row of the table is a mark, and lines join the means.

    Args:
        table: One row per mark, with the columns `by`, sample_words and `value`.
        value: The column of the quantity.
        axis: The axis of the quantity.
        looks: The look of each name in the column `by`.
        by: The column that distinguishes lines: a curve or method.
        unit: The unit of sample_words.
        heading: The title of the panel.
    """
    rows = table[[by, "sample_words", value]].dropna().astype({"sample_words": float, value: float})
    names = looks[looks["name"].isin(rows[by])]
    scale = {"type": "log", "base": 2, "nice": True} if axis.logarithmic else {"zero": False, "padding": 8}
    y = number(value, scale=scale, axis={"title": axis.title, "format": axis.form, "tickCount": 5})
    place = {"x": size_axis(rows["sample_words"], unit), "y": y}
    tooltip = [text(by), number(value, format=axis.form), number("sample_words", format=",")]
    colour, shape = _styles(by, names)
    layers = [
        layer(_means(rows, [by], value), "line", place | colour, strokeWidth=2),
        layer(rows, "point", {**place, **shape, "tooltip": tooltip}, filled=True, size=40, opacity=0.8),
    ]
    return _layered(layers, LINE_HEIGHT, heading)
