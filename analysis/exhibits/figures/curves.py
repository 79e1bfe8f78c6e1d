"""Altair charts of curves, slopes and perplexity: one chart serves the file for a paper and the interactive page.

The parameter `highlight` of a chart is the name of a line; the others fade.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from analysis.curves.fit import ALL_PAIRS, CHANCE, Curves
from analysis.exhibits.figures.dots import Dots, numbers, reference
from analysis.exhibits.figures.labels import end_labels, level_names, level_rules
from analysis.exhibits.figures.style import (
    LOOK,
    MOST_BANDS,
    PAGE,
    TEXT_GREY,
    Chart,
    Frame,
    accuracy_axis,
    accuracy_limits,
    looks,
    phenomenon_style,
    signed_axis,
    size_axis,
    style,
)
from analysis.exhibits.tables.slopes import banded_lines, two_sizes_noted
from analysis.exhibits.tables.text import title

OVERALL = "Overall"
HEIGHT = 420  # pixels of a panel of learning curves on a page
SMALL_HEIGHT = 170  # of one of many
SHORT_NAMES = 16  # characters: names that stand at the ends of lines on a phone, too; in place of others is a legend
NARROW = 300  # pixels of a panel on a phone, or beside its names
SLOPE = "Accuracy gained per doubling of the text"  # the title of an axis
MARGIN = alt.Scale(padding=8)  # pixels between the outermost marks and the names beside the axis


@dataclass(frozen=True)
class Level:
    """An accuracy that does not depend on our text: that of people, or of a published model."""

    name: str
    accuracy: float


def accuracy_domain(curves: Curves, people: Iterable[float] = ()) -> tuple[float, float]:
    """Return limits of the axis of accuracies, the same for every panel: people, runs, lines and bands lie within."""
    bands = curves.accuracies if curves.lines.empty else banded_lines(curves)
    shown = [table[(table["pairs"] == ALL_PAIRS) & (table["level"] != "paradigm")] for table in (curves.points, bands)]
    return accuracy_limits(
        shown[0]["accuracy"], shown[1][["accuracy", "low", "high"]], pd.Series([*people], dtype=float)
    )


def overview_chart(curves: Curves, levels: Sequence[Level] = (), *, unit: str = "words", frame: Frame = PAGE) -> Chart:
    """Draw overall accuracy of all curves over text: fitted lines, each with its band, and their names at their ends.

    Large marks are means over runs, small ones runs. `levels`: accuracies of others, as level lines. Where nothing is
    fitted (one size, checkpoints), lines join the means.
    """
    parts = _Parts.of(curves, "group", curves.slopes["level"] == "overall")
    names = list(curves.slopes["group"].unique())
    others = pd.DataFrame([(level.name, level.accuracy) for level in levels], columns=["name", "accuracy"])
    domain = accuracy_limits(parts.points["accuracy"], parts.lines[["accuracy", "low", "high"]], others["accuracy"])
    x = size_axis("words", curves.accuracies["words"], unit)
    panel = _Panel(style(names), x, accuracy_axis(domain), "curve", marks=70)
    height = frame.height_of_curves(HEIGHT, len(names) + len(others))
    opaque = alt.OpacityValue(1)
    short = max(map(len, [*names, *others["name"]])) <= SHORT_NAMES
    edge = x["scale"]["domain"][1] if short else None
    layers = [
        level_rules(pd.concat([others, _CHANCE])),
        *panel.bands(parts.fits, alt.OpacityValue(0.15)),
        panel.line(parts.lines, opaque, strokeWidth=2.5),
        panel.runs(parts.points, alt.OpacityValue(0.5)),
        panel.means(parts.means, opaque),
        *end_labels(parts.ends, domain, height, panel.channel(alt.Color, "colour"), opaque, others, edge),
    ]
    return alt.layer(*layers, width=frame.span, height=height)


def learning_curves(
    curves: Curves,
    group: str,
    *,
    people: float | None = None,
    x: alt.X | None = None,
    unit: str = "words",
    frame: Frame = PAGE,
) -> Chart:
    """Draw a panel of figure 5 of Warstadt et al. 2020: accuracy against words, a line per phenomenon, overall grey.

    Lines are fitted, marks are means over runs. The highlighted phenomenon has its band and its runs too: those of all
    would hide each other. `people` draws their overall accuracy; `unit` is that of the sizes, `x` an axis in place of
    theirs, on which untrained models (0 words), which no line reaches, have a mark overall too. Where nothing is
    fitted, lines join the means and bands are over runs.
    """
    names = list(curves.slopes.loc[curves.slopes["level"] == "phenomenon", "name"].unique())
    domain = accuracy_domain(curves, [] if people is None else [people])
    parts = _Parts.of(curves, "name", curves.slopes["group"] == group)
    whole, lines = (parts.lines[parts.lines["name"] == OVERALL], parts.lines[parts.lines["name"] != OVERALL])
    panel = _Panel(
        pd.concat([phenomenon_style(names), pd.DataFrame([(OVERALL, TEXT_GREY, [1, 0], "circle")], columns=LOOK)]),
        x or size_axis("words", curves.accuracies["words"], unit),
        accuracy_axis(domain),
    )
    height = frame.height_of_curves(HEIGHT, len(names) + 1)
    known = _level("people, overall", people)
    layers = [
        level_rules(pd.concat([known, _CHANCE])),
        *level_names(known, pd.concat([parts.means, parts.lines]), domain, (frame.width or NARROW, height)),
        panel.line(whole, _faded(0.55), strokeWidth=5, strokeCap="round"),
        *panel.bands(parts.fits, _chosen(0.2)),
        panel.line(lines, _faded(1)),
        panel.runs(parts.points, _chosen(0.6)),
        panel.means(parts.means[(parts.means["name"] != OVERALL) | (parts.means["words"] == 0)], _faded(1)),
        *end_labels(parts.ends, domain, height, panel.channel(alt.Color, "colour"), _faded(1)),
    ]
    return alt.layer(*layers, width=frame.span, height=height, title=group, params=_HIGHLIGHT)


def curves_together(
    curves: Curves,
    name: str,
    *,
    people: Mapping[str, float] | None = None,
    unit: str = "words",
    frame: Frame = PAGE,
) -> Chart:
    """Draw one panel: accuracy in one phenomenon, or overall, against words, a line per group.

    Lines are fitted, marks means over runs, small marks runs; bands are those of the lines, of the highlighted one only
    if there are more than MOST_BANDS. `people`: their accuracy by phenomenon, as a level line; the axis
    is that of all phenomena.
    """
    people = people or {}
    domain = accuracy_domain(curves, people.values())
    groups = list(curves.slopes["group"].unique())
    height, known = frame.height_of_curves(SMALL_HEIGHT), _level("people", people.get(name))
    parts = _Parts.of(curves, "group", (curves.slopes["name"] == name) & (curves.slopes["level"] != "paradigm"))
    bands = _chosen(0.2) if len(groups) > MOST_BANDS else _faded(0.15)
    ticks = 4 if frame.on_page else frame.ticks(4)
    of = "" if frame.on_page else None  # a page says it once above all panels
    x = size_axis("words", curves.accuracies["words"], unit, of, most=ticks)
    panel = _Panel(style(groups), x, accuracy_axis(domain, small=True, named=not frame.on_page), "curve", marks=30)
    layers = [
        level_rules(pd.concat([known, _CHANCE])),
        *level_names(known, pd.concat([parts.means, parts.lines]), domain, (frame.width or NARROW, height)),
        *panel.bands(parts.fits, bands),
        panel.line(parts.lines, _faded(1)),
        panel.runs(parts.points, _faded(0.5)),
        panel.means(parts.means, _faded(1)),
    ]
    return alt.layer(*layers, width=frame.span, height=height, title=title(name), params=_HIGHLIGHT)


@dataclass(frozen=True)
class _Parts:
    """The rows of tables of curves that one panel shows, all pairs; `name` is the name of a line.

    fits: with low and high, their band, NaN for curves of fewer than LEAST_SIZES; the means over runs where nothing is
    fitted. lines: those of them that are accuracies, as a fitted line may leave 0 to 1. ends: of the lines.
    """

    means: pd.DataFrame
    points: pd.DataFrame
    fits: pd.DataFrame

    @classmethod
    def of(cls, curves: Curves, by: str, shown: pd.Series) -> _Parts:
        """Select the units (level, name, group) of the rows of Curves.slopes in `shown`; lines are named `by`."""
        keys = ["group", "level", "name"]
        units = pd.MultiIndex.from_frame(curves.slopes.loc[shown, keys])
        tables = []
        for table in (curves.accuracies, curves.points, banded_lines(curves)):
            rows = table[(table["pairs"] == ALL_PAIRS) & (table["level"] != "paradigm")]
            rows = rows[pd.MultiIndex.from_frame(rows[keys]).isin(units)]
            names = rows["group"] if by == "group" else rows["name"].map(title)
            tables.append(rows.assign(name=names).drop(columns=[*{"phenomenon", "group", "pairs"} & {*rows}]))
        means, points, lines = tables
        unfitted = means[~means["name"].isin(lines["name"])]
        return cls(means, points, pd.concat([lines, unfitted[lines.columns]]) if len(lines) else unfitted)

    @property
    def lines(self) -> pd.DataFrame:
        return within_limits(self.fits)

    @property
    def ends(self) -> pd.DataFrame:
        return self.lines.loc[self.lines.groupby("name", sort=False)["words"].idxmax()]


def within_limits(lines: pd.DataFrame) -> pd.DataFrame:
    """Return lines, each cut where it reaches 0 or 1, the limits of accuracies; `lines`: name, words, accuracy."""
    parts = []
    for _, line in lines.groupby("name", sort=False):
        line = line.sort_values("words")
        limited = line["accuracy"].clip(0, 1)  # a fit to accuracies of 1 may miss it by the last digit
        line["accuracy"] = limited.where((limited - line["accuracy"]).abs() < 1e-12, line["accuracy"])
        at, accuracy = np.log2(line["words"].to_numpy(dtype=float)), line["accuracy"].to_numpy()
        inside = line[line["accuracy"].between(0, 1)]
        crossings = [
            {"words": 2 ** np.interp(limit, accuracy[i : i + 2][::step], at[i : i + 2][::step]), "accuracy": limit}
            for limit in (0.0, 1.0)
            for i in range(len(line) - 1)
            for step in [1 if accuracy[i] < accuracy[i + 1] else -1]
            if min(accuracy[i : i + 2]) < limit < max(accuracy[i : i + 2])
        ]
        cut = [line.iloc[[0]].assign(low=np.nan, high=np.nan, **crossing) for crossing in crossings]
        parts.append(pd.concat([inside, *cut]).sort_values("words"))
    return pd.concat(parts, ignore_index=True) if parts else lines


@dataclass(frozen=True)
class _Panel:
    """The layers of a panel of curves; `look`: of each name (figures.style); `of`: what the names are of."""

    look: pd.DataFrame
    x: alt.X
    y: alt.Y
    of: str = "phenomenon"
    marks: int = 50  # square pixels of the means

    def channel(self, channel: Any, look: str) -> Any:
        scale = alt.Scale(domain=list(self.look["name"]), range=list(self.look[look]))
        return channel("name:N", scale=scale, legend=None)

    def bands(self, rows: pd.DataFrame, opacity: alt.OpacityValue) -> list[Chart]:
        """Return the layer of bands; none without limits."""
        rows = rows[rows["low"].notna()]
        colour = self.channel(alt.Color, "colour")
        band = alt.Chart(rows).mark_area(clip=True)
        return [band.encode(self.x, alt.Y("low:Q"), alt.Y2("high:Q"), colour, opacity)] if len(rows) else []

    def line(self, rows: pd.DataFrame, opacity: alt.OpacityValue, **mark: Any) -> Chart:
        line = alt.Chart(rows).mark_line(**{"strokeWidth": 2, "clip": True} | mark)
        looks = self.channel(alt.Color, "colour"), self.channel(alt.StrokeDash, "dash")
        return line.encode(self.x, self.y, *looks, opacity)

    def runs(self, rows: pd.DataFrame, opacity: alt.OpacityValue) -> Chart:
        tooltip = [alt.Tooltip("run:N"), *self._tooltip, alt.Tooltip("seed:N")]
        return self._points(rows, 12, opacity, tooltip)

    def means(self, rows: pd.DataFrame, opacity: alt.OpacityValue) -> Chart:
        return self._points(rows, self.marks, opacity, [*self._tooltip, *numbers("low", "high"), alt.Tooltip("runs:Q")])

    def _points(self, rows: pd.DataFrame, size: int, opacity: alt.OpacityValue, tooltip: list[alt.Tooltip]) -> Chart:
        points = alt.Chart(rows).mark_point(size=size, filled=True)
        looks = self.channel(alt.Color, "colour"), self.channel(alt.Shape, "shape")
        return points.encode(self.x, self.y, *looks, opacity, tooltip=tooltip)

    @property
    def _tooltip(self) -> list[alt.Tooltip]:
        return [alt.Tooltip("name:N", title=self.of), *numbers("accuracy"), *numbers("words", form=",")]


_HIGHLIGHT = [alt.VariableParameter(name="highlight", value="")]  # a line's name, or "" for none


def _faded(opacity: float) -> alt.OpacityValue:
    """Return the opacity of marks: low for all but the highlighted name."""
    return _where("highlight === '' || highlight === datum.name", opacity, opacity * 0.1)


def _chosen(opacity: float) -> alt.OpacityValue:
    """Return the opacity of marks: none of them but those of the highlighted name is seen."""
    return _where("highlight === datum.name", opacity, 0)


def _where(test: str, opacity: float, otherwise: float) -> alt.OpacityValue:
    # A dict of alt.condition alone would do, but altair takes 20 ms to make a channel of one.
    return alt.OpacityValue(**alt.condition(test, alt.value(opacity), alt.value(otherwise)))


_CHANCE = pd.DataFrame({"name": [""], "accuracy": [CHANCE]})  # the axis names it


def _level(name: str, accuracy: float | None) -> pd.DataFrame:
    rows = [] if accuracy is None else [(name, accuracy)]
    return pd.DataFrame(rows, columns=["name", "accuracy"]).astype({"accuracy": float})


def slope_chart(slopes: pd.DataFrame, *, frame: Frame = PAGE) -> Chart:
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
    points = dots.points(alt.X("slope:Q", scale=MARGIN, axis=signed_axis(SLOPE, frame)), tooltip)
    layers = [reference(0), dots.lines("low", "high"), points]
    theirs = rows[rows["published_slope"].notna()]
    if theirs.empty:
        return dots.chart(*layers, frame=frame)
    published = [phenomenon, alt.Tooltip("published_model:N", title="published model")]
    published += [alt.Tooltip("published_slope:Q", format="+.4f", title="slope")]
    hollow = dots.points(alt.X("published_slope:Q"), published, filled=False, of=theirs)
    hollow.mark.shape, hollow.mark.size, hollow.encoding.shape = "diamond", 80, alt.Undefined
    note = "Hollow diamonds: published slopes of the same architecture"
    return dots.chart(*layers, hollow, frame=frame, note=note)


def perplexity_chart(runs: pd.DataFrame, *, unit: str = "words", frame: Frame = PAGE) -> Chart:
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
    return alt.layer(*layers, width=frame.span, height=frame.height_of_curves(300))
