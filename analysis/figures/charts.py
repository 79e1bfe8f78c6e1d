"""Charts: learning curves, estimates with intervals in rows, and lines over sizes. Files and the page share them.

On the page a chart of curves has the parameter `highlight`, the name of a curve; the others fade.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression

from analysis.figures.style import (
    GREY,
    LABEL_SIZE,
    SIGNED_LABEL,
    TEXT_GREY,
    Chart,
    Frame,
    accuracy_axis,
    accuracy_domain,
    channel,
    size_axis,
)
from analysis.formats import title

HEIGHT, SMALL_HEIGHT = 420, 170  # pixels of a panel of curves on the page
MOST_BANDS = 3  # of curves in one panel: more would hide each other
LABEL_GAP = 13  # pixels between two names beside a panel
CHANCE = 0.5
_TIE = 16  # pixels of the line from a panel to a name
_ROWS = alt.Axis(title=None, grid=True, tickBand="extent", labelLimit=220, domain=False, ticks=False)


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
    level, name = unit
    points = units[(units["level"] == level) & (units["name"] == name)]
    points = points[["run", "curve", "size", "seed", "sample_words", "accuracy"]].astype({"sample_words": float})
    means = points.groupby(["curve", "size", "sample_words"], as_index=False, sort=False)["accuracy"].mean()
    fits = lines[(lines["level"] == level) & (lines["name"] == name)]
    fits = fits[["curve", "sample_words", "accuracy", "low", "high"]]
    if domain is None:
        domain = accuracy_domain(points["accuracy"], fits["accuracy"], levels["accuracy"])
    titled = labelled or not frame.on_page  # a page says it once, above all panels
    x = size_axis(units["sample_words"].astype(float), _counted(units), frame, titled)
    y = accuracy_axis(domain, titled=titled, small=not labelled)
    colour, dash, shape = (
        channel(kind, "curve", looks, look)
        for kind, look in ((alt.Color, "colour"), (alt.StrokeDash, "dash"), (alt.Shape, "shape"))
    )
    height = frame.height_or(HEIGHT if labelled else SMALL_HEIGHT)
    tooltip = [alt.Tooltip("curve:N"), alt.Tooltip("accuracy:Q", format=".3f"), alt.Tooltip("size:N")]
    rules = pd.concat([levels[["name", "accuracy"]], pd.DataFrame({"name": ["chance"], "accuracy": [CHANCE]})])
    rule = alt.Chart(rules).mark_rule(strokeDash=[3, 3], color=GREY, clip=True)
    layers = [
        rule.encode(y=alt.Y("accuracy:Q"), tooltip=[alt.Tooltip("name:N"), alt.Tooltip("accuracy:Q", format=".3f")])
    ]
    banded = fits[fits["low"].notna()]
    if len(banded):
        many = banded["curve"].nunique() > MOST_BANDS
        band = alt.Chart(banded).mark_area(clip=True)
        layers.append(
            band.encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), colour, _faded(0.2, 0) if many else _faded(0.15))
        )
    if len(fits):
        line = alt.Chart(fits).mark_line(strokeWidth=2.4, clip=True)
        layers.append(line.encode(x, y, colour, dash, _faded(1)))
    layers += [
        alt.Chart(means).mark_line(strokeWidth=0.9, clip=True).encode(x, y, colour, _faded(0.9)),
        alt.Chart(points).mark_point(size=14, filled=True).encode(
            x, y, colour, shape, _faded(0.5), tooltip=[*tooltip, alt.Tooltip("seed:Q"), alt.Tooltip("run:N")]
        ),
        alt.Chart(means).mark_point(size=60 if labelled else 30, filled=True).encode(
            x, y, colour, shape, _faded(1), tooltip=tooltip
        ),
    ]  # fmt: skip
    if labelled:
        last = means.loc[means.groupby("curve", sort=False)["sample_words"].idxmax()].rename(columns={"curve": "name"})
        layers += _end_labels(last, levels, domain, height, channel(alt.Color, "name", looks, "colour"))
    chart = alt.layer(
        *layers, width=frame.span, height=height, params=[alt.VariableParameter(name="highlight", value="")]
    )
    return chart if labelled else chart.properties(title=title(name))


def _counted(units: pd.DataFrame) -> str:
    """Return what the sizes of runs count."""
    return str(units["unit"].iloc[0]) if len(units) else "words"


def _faded(opacity: float, always: float = 0.1) -> alt.OpacityValue:
    """Return an opacity that is `always` times as low for all curves but the highlighted one.

    With `always=0`, nothing is drawn until a curve is highlighted.
    """
    test = "highlight === datum.curve" if always == 0 else "highlight === '' || highlight === datum.curve"
    return alt.OpacityValue(**alt.condition(test, alt.value(opacity), alt.value(opacity * always)))


def _end_labels(
    ends: pd.DataFrame, levels: pd.DataFrame, domain: tuple[float, float], height: int, colour: alt.Color
) -> list[Chart]:
    """Write the names of curves and levels beside the panel, apart from each other, each tied to its line."""
    rows = pd.concat([ends, levels])[["name", "accuracy"]].assign(curve=[*ends["name"], *levels["name"]])
    rows["accuracy"] = rows["accuracy"].clip(*domain)
    rows["place"] = spread_apart(rows["accuracy"].to_numpy(), LABEL_GAP * (domain[1] - domain[0]) / height, domain)
    x, x2 = alt.XValue("width"), alt.X2Value("width")  # type: ignore[no-untyped-call]
    layers: list[Chart] = []
    looks: tuple[dict[str, Any], ...] = ({}, {"color": TEXT_GREY})
    for part, look in zip((rows.iloc[: len(ends)], rows.iloc[len(ends) :]), looks, strict=True):
        if len(part):
            base = alt.Chart(part)
            tie = base.mark_rule(strokeWidth=1.2, xOffset=2, x2Offset=_TIE, **look)
            tie = tie.encode(x, x2, alt.Y("accuracy:Q"), alt.Y2("place:Q"))
            text = base.mark_text(align="left", baseline="middle", fontSize=LABEL_SIZE, dx=_TIE + 4, **look)
            layers += [tie if look else tie.encode(colour), text.encode(x, alt.Y("place:Q"), alt.Text("name:N"))]
    return layers


def spread_apart(positions: Any, gap: float, domain: tuple[float, float]) -> Any:
    """Return positions in the same order, at least `gap` apart, as close to the given ones as possible.

    Without the gaps they only have to ascend: an isotonic regression. They stay within `domain` if they fit there.
    """
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

    @property
    def is_signed(self) -> bool:
        return self.form.startswith("+")


def dot_chart(
    table: pd.DataFrame,
    value: str,
    axis: Axis,
    looks: pd.DataFrame,
    *,
    by: str = "curve",
    reference: float | None = 0.0,
    heading: str = "",
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
        heading: a title of the panel.
        frame: the size of the panel.
    """
    shown = table.assign(name=table["name"].map(str))
    order = list(dict.fromkeys(shown["name"]))
    groups = [name for name in looks["name"] if name in set(shown[by])]
    legend = len(groups) > 1
    label = SIGNED_LABEL if axis.is_signed else alt.Undefined
    ticks = alt.Axis(title=axis.title, labelExpr=label, tickCount=frame.ticks(6))
    x = alt.X(f"{value}:Q", axis=ticks, scale=alt.Scale(padding=8, zero=False))
    y = alt.Y("name:N", sort=order, axis=_ROWS, scale=alt.Scale(paddingInner=0.25))
    offset = alt.YOffset(f"{by}:N", sort=groups)
    colour = channel(alt.Color, by, looks[looks["name"].isin(groups)], "colour", legend)
    shape = channel(alt.Shape, by, looks[looks["name"].isin(groups)], "shape", legend)
    tooltip = [alt.Tooltip("name:N"), alt.Tooltip(f"{by}:N"), alt.Tooltip(f"{value}:Q", format=axis.form)]
    layers = []
    if reference is not None:
        line = alt.Chart(pd.DataFrame({"at": [reference]})).mark_rule(color=GREY)
        layers.append(line.encode(x=alt.X("at:Q")))
    if "low" in shown and (limited := shown[shown["low"].notna() & np.isfinite(shown["low"].astype(float))]).size:
        tooltip += [alt.Tooltip(f"{limit}:Q", format=axis.form) for limit in ("low", "high")]
        rules = alt.Chart(limited).mark_rule(strokeWidth=1.8)
        layers.append(rules.encode(alt.X("low:Q"), alt.X2("high:Q"), y, offset, colour))
    marks = alt.Chart(shown).mark_point(size=55, filled=True, opacity=1)
    layers.append(marks.encode(x, y, offset, colour, shape, tooltip=tooltip))
    chart = alt.layer(*layers, width=frame.span, height=len(order) * (10 + 12 * len(groups)))
    return chart.properties(title=heading) if heading else chart


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
    means = rows.groupby([by, "sample_words"], as_index=False, sort=False)[value].mean()
    names = looks[looks["name"].isin(rows[by])]
    colour, shape = (
        channel(kind, by, names, look, legend=len(names) > 1)
        for kind, look in ((alt.Color, "colour"), (alt.Shape, "shape"))
    )
    x = size_axis(rows["sample_words"], unit, frame)
    scale = alt.Scale(type="log", base=2, nice=True) if axis.logarithmic else alt.Scale(zero=False, padding=8)
    y = alt.Y(f"{value}:Q", scale=scale, axis=alt.Axis(title=axis.title, format=axis.form, tickCount=5))
    tooltip = [
        alt.Tooltip(f"{by}:N"),
        alt.Tooltip(f"{value}:Q", format=axis.form),
        alt.Tooltip("sample_words:Q", format=","),
    ]
    layers = [
        alt.Chart(means).mark_line(strokeWidth=2).encode(x, y, colour),
        alt.Chart(rows).mark_point(filled=True, size=40, opacity=0.8).encode(x, y, colour, shape, tooltip=tooltip),
    ]
    chart = alt.layer(*layers, width=frame.span, height=frame.height_or(260))
    return chart.properties(title=heading) if heading else chart


def panels_of(units: pd.DataFrame, names: Sequence[str] | None = None) -> list[str]:
    """Return the phenomena that a figure with one panel each shows, in alphabetical order, or those asked for."""
    return sorted(units.loc[units["level"] == "phenomenon", "name"].unique()) if names is None else list(names)
