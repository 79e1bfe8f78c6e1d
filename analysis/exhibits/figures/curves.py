"""Altair charts of curves, slopes and perplexity: one chart serves the file for a paper and the interactive page.

The parameter `highlight` of a chart is the name of a line; the others fade.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.curves.fit import ALL_PAIRS, Curves
from analysis.exhibits.figures.dots import Dots, numbers, reference
from analysis.exhibits.figures.style import (
    CHANCE_LABEL,
    GREY,
    LABEL_GAP,
    SIGNED_LABEL,
    TEXT_GREY,
    Chart,
    looks,
    size_axis,
    spread_apart,
    style,
)
from analysis.exhibits.tables.slopes import two_sizes_noted
from analysis.exhibits.tables.text import title

OVERALL = "Overall"
HEIGHT = 420  # pixels of a panel of learning curves
SLOPE_AXIS = alt.Axis(title="Accuracy gained per doubling of the text", labelExpr=SIGNED_LABEL, tickCount=6)
MARGIN = alt.Scale(padding=8)  # pixels between the outermost marks and the names beside the axis


def accuracy_domain(curves: Curves, people: float | None = None) -> tuple[float, float]:
    """Return limits of the axis of accuracies, whole tenths, the same for every panel."""
    points = curves.points[(curves.points["pairs"] == ALL_PAIRS) & (curves.points["level"] != "paradigm")]
    low, high = np.floor(points["accuracy"].min() * 10) / 10, np.ceil(points["accuracy"].max() * 10) / 10
    high = max(high, low + 0.1, np.ceil((people or 0.0) * 10) / 10)
    return float(max(0.0, min(low, 0.4))), float(min(1.0, high))


def learning_curves(
    curves: Curves,
    group: str,
    *,
    people: float | None = None,
    x: alt.X | None = None,
    unit: str = "words",
    width: int | str = 400,
) -> Chart:
    """Draw a panel of figure 5 of Warstadt et al. 2020: accuracy against words, a line per phenomenon, overall grey.

    Lines are means over runs, points are runs. Bands are intervals over runs: that of the whole, and of the phenomenon
    that is highlighted, as all of them would hide each other. `people` draws their overall accuracy; `unit` is that of
    the sizes, `x` an axis in place of theirs.
    """
    names = [title(name) for name in curves.slopes.loc[curves.slopes["level"] == "phenomenon", "name"].unique()]
    domain = accuracy_domain(curves, people)
    means, points = (
        table[(table["group"] == group) & (table["pairs"] == ALL_PAIRS)].assign(
            name=lambda rows: rows["name"].map(title)
        )
        for table in (curves.accuracies, curves.points)
    )
    whole, lines = (means[means["level"] == level] for level in ("overall", "phenomenon"))
    panel = _Panel(
        pd.concat([style(names), pd.DataFrame([(OVERALL, GREY, [1, 0], "circle")], columns=_LOOK)]),
        x or size_axis("words", curves.accuracies["words"], unit),
        _accuracy_axis(domain),
    )
    layers = [
        *_rules(people, domain[0]),
        panel.band(whole, _faded(0.2)),
        panel.line(whole, _faded(0.8), strokeWidth=5, strokeCap="round"),
        panel.band(lines, alt.condition("highlight === datum.name", alt.value(0.25), alt.value(0))),
        panel.line(lines, _faded(1)),
        panel.runs(points[points["level"] != "paradigm"]),
        panel.means(lines),
        *_end_labels(pd.concat([whole, lines]), domain, HEIGHT, panel.channel(alt.Color, "colour")),
    ]
    return _highlighting(layers).properties(width=width, height=HEIGHT, title=group)


def curves_together(
    curves: Curves,
    name: str,
    *,
    people: float | None = None,
    unit: str = "words",
    width: int | str = 260,
    legend: bool = True,
) -> Chart:
    """Draw one panel: accuracy in one phenomenon, or overall, against words, a line per group.

    Lines are means over runs, small marks runs, bands the intervals over runs. `people` as in `learning_curves`.
    """
    domain = accuracy_domain(curves, people=people)
    means, points = (
        table[(table["name"] == name) & (table["level"] != "paradigm") & (table["pairs"] == ALL_PAIRS)].assign(
            name=lambda rows: rows["group"]
        )
        for table in (curves.accuracies, curves.points)
    )
    panel = _Panel(
        style(list(curves.slopes["group"].unique())),
        size_axis("words", curves.accuracies["words"], unit),
        _accuracy_axis(domain),
        "curve",
        alt.Legend(title=None, orient="bottom", labelLimit=400, columns=2) if legend else None,
    )
    layers = [
        *_rules(people, domain[0]),
        panel.band(means, _faded(0.12)),
        panel.line(means, _faded(1)),
        panel.runs(points),
        panel.means(means),
    ]
    return _highlighting(layers).properties(width=width, height=240, title=title(name))


_LOOK = ["name", "colour", "dash", "shape"]


@dataclass(frozen=True)
class _Panel:
    """The layers of a panel of curves; `look`: of each name (figures.style.style); `of`: what the names are of."""

    look: pd.DataFrame
    x: alt.X
    y: alt.Y
    of: str = "phenomenon"
    legend: alt.Legend | None = None

    def channel(self, channel: Any, look: str) -> Any:
        scale = alt.Scale(domain=list(self.look["name"]), range=list(self.look[look]))
        return channel("name:N", scale=scale, legend=self.legend)

    def band(self, rows: pd.DataFrame, opacity: Any) -> Chart:
        band = _chart(rows).mark_area(clip=True)
        colour = self.channel(alt.Color, "colour")
        return band.encode(self.x, alt.Y("low:Q"), alt.Y2("high:Q"), colour, opacity=opacity)

    def line(self, rows: pd.DataFrame, opacity: Any, **mark: Any) -> Chart:
        line = _chart(rows).mark_line(**{"strokeWidth": 2} | mark)
        looks = self.channel(alt.Color, "colour"), self.channel(alt.StrokeDash, "dash")
        return line.encode(self.x, self.y, *looks, opacity=opacity)

    def runs(self, rows: pd.DataFrame) -> Chart:
        tooltip = [alt.Tooltip("run:N"), *self._tooltip, alt.Tooltip("seed:N")]
        return self._points(rows, 12, 0.5, tooltip)

    def means(self, rows: pd.DataFrame) -> Chart:
        return self._points(rows, 50, 1, [*self._tooltip, *numbers("low", "high"), alt.Tooltip("runs:Q")])

    def _points(self, rows: pd.DataFrame, size: int, opacity: float, tooltip: list[alt.Tooltip]) -> Chart:
        points = _chart(rows).mark_point(size=size, filled=True)
        looks = self.channel(alt.Color, "colour"), self.channel(alt.Shape, "shape")
        return points.encode(self.x, self.y, *looks, opacity=_faded(opacity), tooltip=tooltip)

    @property
    def _tooltip(self) -> list[alt.Tooltip]:
        return [alt.Tooltip("name:N", title=self.of), *numbers("accuracy"), *numbers("words", form=",")]


def _chart(rows: pd.DataFrame) -> alt.Chart:
    return alt.Chart(rows.drop(columns=["phenomenon", "group", "pairs"]))


def _accuracy_axis(domain: tuple[float, float]) -> alt.Y:
    axis = alt.Axis(title="Accuracy", labelExpr=CHANCE_LABEL, tickCount=6)
    return alt.Y("accuracy:Q", scale=alt.Scale(domain=list(domain), nice=False, zero=False), axis=axis)


def _highlighting(layers: Sequence[Chart]) -> Chart:
    return alt.layer(*layers).add_params(alt.param(name="highlight", value=""))


def _faded(opacity: float) -> Any:
    """Return the opacity of marks: low for all but the highlighted name."""
    return alt.condition("highlight === '' || highlight === datum.name", alt.value(opacity), alt.value(opacity * 0.1))


def _rules(people: float | None, low: float) -> list[Any]:
    """Draw chance, which the axis names, and people's overall accuracy."""
    levels = [("", 0.5)] if low < 0.5 else []
    levels += [("people, overall", people)] if people is not None else []
    table = pd.DataFrame(levels, columns=["level", "accuracy"])
    at = alt.Chart(table).encode(y=alt.Y("accuracy:Q"))
    rule = at.mark_rule(strokeDash=[3, 3], color=GREY)
    under = people is not None and people * 10 % 1 > 0.7  # where a grid line would cross a name above
    text = at.mark_text(align="left", dx=4, dy=8 if under else -6, fontSize=10, color=TEXT_GREY)
    text = text.encode(x=alt.value(0), text="level:N")
    return [rule, text] if levels else []


def _end_labels(means: pd.DataFrame, domain: tuple[float, float], height: int, colour: Any) -> list[Any]:
    """Draw names to the right of the panel, spread so that none overlap, each tied to the end of its line."""
    last = means[means["words"] == means["words"].max()].copy()
    last["place"] = places(last["accuracy"], domain, height)
    opacity = _faded(1)
    base = _chart(last)
    edge = alt.value("width")
    tie = base.mark_rule(strokeWidth=1.2, xOffset=2, x2Offset=18).encode(
        x=edge, x2=edge, y=alt.Y("accuracy:Q"), y2=alt.Y2("place:Q"), color=colour, opacity=opacity
    )
    # From the last size of this curve to the edge, where other curves have larger ones.
    way = base.mark_rule(strokeWidth=1, strokeDash=[1, 3]).encode(
        x=alt.X("words:Q"), x2=edge, y=alt.Y("accuracy:Q"), color=colour, opacity=_faded(0.7)
    )
    text = base.mark_text(align="left", baseline="middle", fontSize=11, dx=22).encode(
        x=edge, y=alt.Y("place:Q"), text="name:N", opacity=opacity
    )
    return [way, tie, text]


def places(ends: pd.Series, domain: tuple[float, float], height: int) -> npt.NDArray[np.float64]:
    """Return where the names of lines that end at `ends` stand beside a panel: apart, and within it if they fit."""
    pixel = (domain[1] - domain[0]) / height
    positions = np.asarray(spread_apart(list(ends), LABEL_GAP * pixel))
    positions -= max(0.0, positions.max() - domain[1])
    positions += max(0.0, domain[0] - positions.min())
    return positions


def slope_chart(slopes: pd.DataFrame, *, width: int | str = 520) -> Chart:
    """Draw slopes with their intervals, one row per phenomenon, steepest first; published ones as hollow diamonds.

    `slopes` is Curves.slopes with the columns of tables.with_published.
    """
    slopes = two_sizes_noted(slopes)
    rows = slopes[(slopes["pairs"] == ALL_PAIRS) & slopes["level"].isin(["phenomenon", "overall"])]
    rows = rows[["group", "name", "slope", "low", "high", "r2", "method", "published_model", "published_slope"]]
    rows = rows.assign(name=rows["name"].map(title))
    order = list(rows.groupby("name")["slope"].mean().sort_values(ascending=False).index)
    dots = Dots(rows, order)
    phenomenon = alt.Tooltip("name:N", title="phenomenon")
    tooltip = [phenomenon, alt.Tooltip("group:N"), *numbers("slope", "low", "high", form="+.4f")]
    tooltip += [alt.Tooltip("r2:Q", format=".3f", title="R²"), alt.Tooltip("method:N", title="interval")]
    points = dots.points(alt.X("slope:Q", scale=MARGIN, axis=SLOPE_AXIS), tooltip)
    layers = [reference(0), dots.lines("low", "high"), points]
    theirs = rows[rows["published_slope"].notna()]
    if theirs.empty:
        return dots.chart(*layers, width=width)
    published = [phenomenon, alt.Tooltip("published_model:N", title="published model")]
    published += [alt.Tooltip("published_slope:Q", format="+.4f", title="slope")]
    hollow = dots.points(alt.X("published_slope:Q"), published, filled=False, of=theirs)
    hollow.mark.shape, hollow.mark.size, hollow.encoding.shape = "diamond", 80, alt.Undefined
    note = "Hollow diamonds: published slopes of the same architecture"
    return dots.chart(*layers, hollow, width=width, note=note)


def perplexity_chart(runs: pd.DataFrame, *, unit: str = "words", width: int | str = 400) -> Chart:
    """Draw validation perplexity per reference word against training text in `unit`s, both axes logarithmic."""
    rows = runs[runs["valid_ppl"].notna()].reset_index(names="run")
    rows = rows[["run", "group", "size", "seed", "sample_words", "valid_ppl", "valid_oov_rate"]]
    means = rows.groupby(["group", "size"], as_index=False, sort=False)[["sample_words", "valid_ppl"]].mean()
    colour, shape = looks(list(rows["group"].unique()))
    x = size_axis("sample_words", means["sample_words"], unit)
    axis = alt.Axis(title="Perplexity per word", format=",.0f", tickCount=5)
    y = alt.Y("valid_ppl:Q", scale=alt.Scale(type="log", base=2, nice=True), axis=axis)
    tooltip = [alt.Tooltip("run:N"), alt.Tooltip("valid_ppl:Q", format=".1f", title="perplexity")]
    tooltip += [alt.Tooltip("valid_oov_rate:Q", format=".2%", title="unknown words"), alt.Tooltip("seed:N")]
    layers = [
        alt.Chart(means).mark_line(strokeWidth=2).encode(x, y, colour),
        alt.Chart(rows).mark_point(filled=True, size=40, opacity=0.8).encode(x, y, colour, shape, tooltip=tooltip),
    ]
    return alt.layer(*layers).properties(width=width, height=300)
