"""Charts: learning curves, estimates with intervals in rows, and lines over sizes. Files and the page share them.

On the page a chart of curves has the parameter `highlight`, the name of a curve; the others fade.
"""

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
    Frame,
    accuracy_axis,
    accuracy_domain,
    layer,
    number,
    size_axis,
    styled,
    text,
)
from analysis.formats import title

HEIGHT, SMALL_HEIGHT = 420, 170  # pixels of a panel of curves on the page
MOST_BANDS = 3  # of curves in one panel: more would hide each other
LABEL_GAP = 13  # pixels between two names beside a panel
_TIE = 16  # pixels of the line from a panel to a name


def curve_chart(
    units: pd.DataFrame,
    lines: pd.DataFrame,
    looks: pd.DataFrame,
    levels: pd.DataFrame,
    *,
    unit: tuple[str, str] = ("overall", "overall"),
    domain: tuple[float, float] | None = None,
    labelled: bool = False,
    frame: Frame,
) -> Chart:
    """Draw learning curves of one unit: accuracy against training text, one colour per curve.

    Small marks are runs, large ones means over the runs of a size, joined by a thin line. The thick line is the fitted
    one, with its confidence band.

    Args:
        units: rows of `analysis.unit_accuracies`.
        lines: rows of `analysis.curves.fit.fitted_lines`; may be empty.
        looks: the look of each curve (`analysis.figures.style.looks_of`).
        levels: name and accuracy of human baselines and published models, drawn as dashed lines.
        unit: level and name, such as ("phenomenon", "island_effects").
        domain: the axis of accuracies. Default: as the accuracies of this unit need it.
        labelled: write the names of curves and levels beside the ends of their lines, in place of a legend.
        frame: the size of the panel.
    """
    points, fits = (table[(table["level"] == unit[0]) & (table["name"] == unit[1])] for table in (units, lines))
    points = points[["run", "curve", "size", "seed", "sample_words", "accuracy"]]
    means = points.groupby(["curve", "size", "sample_words"], as_index=False, sort=False)[["accuracy"]].mean()
    domain = domain or accuracy_domain(points["accuracy"], fits["accuracy"], levels["accuracy"])
    fits = fits[["curve", "sample_words", "accuracy", "low", "high"]]
    bands = fits.dropna(subset="low")
    bands = bands.assign(low=bands["low"].clip(*domain), high=bands["high"].clip(*domain))
    fits = fits[fits["accuracy"].between(*domain)]  # cut here, because clipped layers take PNGs a second
    titled = labelled or not frame.on_page  # a page says it once, above all panels
    place = {
        "x": size_axis(units["sample_words"], str(units["unit"].iloc[0]), frame, titled),
        "y": accuracy_axis(domain, titled, small=not labelled),
    }
    colour, shape, dash = (styled("curve", looks, *of) for of in (["colour"], ["colour", "shape"], ["colour", "dash"]))
    size = frame.height_or(HEIGHT if labelled else SMALL_HEIGHT)
    band = {"x": place["x"], "y": number("low"), "y2": {"field": "high"}, **colour}
    many = bands["curve"].nunique() > MOST_BANDS
    said = [text("curve"), number("accuracy", format=".3f"), text("size")]
    of_run = [*said, number("seed"), text("run")]
    rules = pd.concat([levels[["name", "accuracy"]], pd.DataFrame({"name": ["chance"], "accuracy": [CHANCE]})])
    rule = {"y": number("accuracy"), "tooltip": [text("name"), said[1]]}
    layers = [
        layer(rules, "rule", rule, strokeDash=[3, 3], color=GREY),
        layer(bands, "area", band | (_faded(frame, 0.2, 0) if many else _faded(frame, 0.15))),
        layer(fits, "line", place | dash | _faded(frame, 1), strokeWidth=2.4),
        layer(means, "line", place | colour | _faded(frame, 0.9), strokeWidth=0.9),
        layer(points, "point", {**place, **shape, **_faded(frame, 0.5), "tooltip": of_run}, size=14, filled=True),
        layer(means, "point", {**place, **shape, **_faded(frame, 1), "tooltip": said}, size=60 if labelled else 30,
              filled=True),
    ]  # fmt: skip
    if labelled:
        last = means.loc[means.groupby("curve", sort=False)["sample_words"].idxmax()].rename(columns={"curve": "name"})
        layers += _end_labels(last, levels, domain, size, styled("name", looks, "colour"))
    drawn = [one for one in layers if one["data"]["values"]]
    chart: Chart = {"layer": drawn, "width": frame.span, "height": size}
    chart |= {} if labelled else {"title": title(unit[1])}
    return chart | ({"params": [{"name": "highlight", "value": ""}]} if frame.on_page else {})


def _faded(frame: Frame, opacity: float, rest: float = 0.1) -> dict[str, Any]:
    """Return an opacity that, on the page, is `rest` times as low for all curves but the highlighted one.

    With `rest=0`, nothing is drawn until a curve is highlighted.
    """
    if not frame.on_page:
        return {"opacity": {"value": opacity if rest else 0}}
    test = "highlight === datum.curve" + (" || highlight === ''" if rest else "")
    return {"opacity": {"condition": {"test": test, "value": opacity}, "value": opacity * rest}}


def _end_labels(
    ends: pd.DataFrame, levels: pd.DataFrame, domain: tuple[float, float], height: int, colour: dict[str, Any]
) -> list[Chart]:
    """Write the names of curves and levels beside the panel, apart from each other, each tied to its line."""
    rows = pd.concat([ends, levels])[["name", "accuracy"]]
    rows["accuracy"] = rows["accuracy"].clip(*domain)
    rows["place"] = spread_apart(rows["accuracy"].to_numpy(), LABEL_GAP * (domain[1] - domain[0]) / height, domain)
    edge, place = {"value": "width"}, number("place")
    layers = []
    for part, encoding, look in (
        (rows.iloc[: len(ends)], colour, {}),
        (rows.iloc[len(ends) :], {}, {"color": TEXT_GREY}),
    ):
        tie = {"x": edge, "x2": edge, "y": number("accuracy"), "y2": {"field": "place"}, **encoding}
        name = {"x": edge, "y": place, "text": text("name")}
        layers += [
            layer(part, "rule", tie, strokeWidth=1.2, xOffset=2, x2Offset=_TIE, **look),
            layer(part, "text", name, align="left", baseline="middle", fontSize=LABEL_SIZE, dx=_TIE + 4, **look),
        ]
    return layers


def spread_apart(positions: Any, gap: float, domain: tuple[float, float]) -> Any:
    """Return positions in the same order, at least `gap` apart, as close to the given ones as possible.

    Without the gaps they only have to ascend: an isotonic regression. They stay within `domain` if they fit there.
    """
    from scipy.optimize import isotonic_regression  # here, because it takes a while to import

    order = np.argsort(positions, kind="stable")
    gaps = gap * np.arange(len(order))
    result = np.empty(len(order))
    result[order] = isotonic_regression(np.asarray(positions)[order] - gaps).x + gaps
    result -= max(0.0, result.max() - domain[1])
    return result + max(0.0, domain[0] - result.min())


@dataclass(frozen=True)
class Axis:
    """The axis of a quantity: its title, how it writes numbers (d3-format), and whether it is logarithmic."""

    title: str
    form: str = ".3f"
    logarithmic: bool = False


def dot_chart(
    table: pd.DataFrame,
    value: str,
    axis: Axis,
    looks: pd.DataFrame,
    *,
    by: str = "curve",
    reference: float | None = 0.0,
    frame: Frame,
) -> Chart:
    """Draw estimates in rows, one mark per curve, with their intervals if the table has columns `low` and `high`.

    Args:
        table: one row per mark. Those with one `name` share a row; rows are drawn in the table's order.
        value: the column of estimates.
        axis: the axis of estimates.
        looks: the look of each name in the column `by`.
        by: the column of curves, models or methods.
        reference: a vertical line at this value.
        frame: the size of the panel.
    """
    shown = table.reindex(columns=["name", by, value, "low", "high"])
    order = list(shown["name"].unique())
    looks = looks[looks["name"].isin(shown[by])]
    groups = list(looks["name"])
    ticks = {"title": axis.title, "tickCount": frame.ticks(6)}
    if axis.form.startswith("+"):
        ticks["labelExpr"] = "datum.value ? format(datum.value, '+.4~f') : '0'"
    rows = {"title": None, "grid": True, "tickBand": "extent", "labelLimit": 220, "domain": False, "ticks": False}
    place = {
        "y": text("name", sort=order, axis=rows, scale={"paddingInner": 0.25}),
        "yOffset": text(by, sort=groups),
    }
    x = number(value, axis=ticks, scale={"padding": 8, "zero": False})
    limited = shown[np.isfinite(shown["low"].astype(float))]
    said = [text("name"), text(by), number(value, format=axis.form)]
    said += [number(limit, format=axis.form) for limit in ("low", "high") if len(limited)]
    colour, mark = styled(by, looks, "colour", legend=len(groups) > 1), {"x": x, "tooltip": said}
    mark |= place | styled(by, looks, "colour", "shape", legend=len(groups) > 1)
    limits = {"x": number("low"), "x2": {"field": "high"}, **place, **colour}
    line = pd.DataFrame({"at": [reference]}).dropna()
    layers = [
        layer(line, "rule", {"x": number("at")}, color=GREY),
        layer(limited, "rule", limits, strokeWidth=1.8),
        layer(shown, "point", mark, size=55, filled=True, opacity=1),
    ]
    drawn = [one for one in layers if one["data"]["values"]]
    return {"layer": drawn, "width": frame.span, "height": len(order) * (10 + 12 * len(groups))}


def line_chart(
    table: pd.DataFrame,
    value: str,
    axis: Axis,
    looks: pd.DataFrame,
    *,
    by: str = "curve",
    unit: str = "words",
    heading: str = "",
    frame: Frame,
) -> Chart:
    """Draw a quantity against training text: marks are rows, lines join their means.

    Args:
        table: one row per mark, with the columns `by`, sample_words and `value`.
        value: the column of the quantity.
        axis: the vertical axis.
        looks: the look of each name in the column `by`.
        by: the column of curves or methods.
        unit: the unit of sample_words.
        heading: a title of the panel.
        frame: the size of the panel.
    """
    rows = table[[by, "sample_words", value]].dropna().astype({"sample_words": float, value: float})
    means = rows.groupby([by, "sample_words"], as_index=False, sort=False)[[value]].mean()
    names = looks[looks["name"].isin(rows[by])]
    scale = {"type": "log", "base": 2, "nice": True} if axis.logarithmic else {"zero": False, "padding": 8}
    y = number(value, scale=scale, axis={"title": axis.title, "format": axis.form, "tickCount": 5})
    place = {"x": size_axis(rows["sample_words"], unit, frame), "y": y}
    said = [text(by), number(value, format=axis.form), number("sample_words", format=",")]
    colour, shape = (styled(by, names, *of, legend=len(names) > 1) for of in (["colour"], ["colour", "shape"]))
    layers = [
        layer(means, "line", place | colour, strokeWidth=2),
        layer(rows, "point", {**place, **shape, "tooltip": said}, filled=True, size=40, opacity=0.8),
    ]
    chart: Chart = {"layer": layers, "width": frame.span, "height": frame.height_or(260)}
    return chart | ({"title": heading} if heading else {})
