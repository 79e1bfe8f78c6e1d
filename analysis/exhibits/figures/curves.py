"""Altair charts of curves, slopes and perplexity: one chart serves the file for a paper and the interactive page.

A parameter lets a page change the chart that it shows: `highlight`, a name; the others fade.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from analysis.curves.fit import ALL_PAIRS, Curves
from analysis.exhibits.figures.style import (
    CHANCE_LABEL,
    GREY,
    LABEL_GAP,
    MARGIN,
    ROWS,
    SIGNED_LABEL,
    TEXT_GREY,
    Chart,
    group_looks,
    spread_apart,
    style,
    text_axis,
)
from analysis.exhibits.tables.slopes import two_sizes_noted
from analysis.exhibits.tables.text import title

OVERALL = "Overall"
SLOPE_TITLE = "Accuracy gained per doubling of the text"


def accuracy_domain(curves: Curves, pairs: str = ALL_PAIRS, people: float | None = None) -> tuple[float, float]:
    """Return limits of the axis of accuracies, whole tenths, the same for every panel."""
    values = curves.points.loc[(curves.points["pairs"] == pairs) & (curves.points["level"] != "paradigm"), "accuracy"]
    low, high = float(np.floor(values.min() * 10) / 10), float(np.ceil(values.max() * 10) / 10)
    high = max(high, low + 0.1, np.ceil((people or 0.0) * 10) / 10)
    return max(0.0, min(low, 0.4)), float(min(1.0, high))


def _accuracy_axes(
    curves: Curves, domain: tuple[float, float], unit: str, axis: alt.Axis | None = None
) -> tuple[alt.X, alt.Y]:
    sizes = sorted(curves.accuracies["words"].unique())
    x = alt.X(
        "words:Q",
        scale=alt.Scale(type="log", base=2, nice=False, domain=[sizes[0] / 1.12, sizes[-1] * 1.12]),
        axis=axis or text_axis(sizes, unit),
    )
    y = alt.Y(
        "accuracy:Q",
        scale=alt.Scale(domain=list(domain), nice=False, zero=False),
        axis=alt.Axis(title="Accuracy", labelExpr=CHANCE_LABEL, tickCount=6),
    )
    return x, y


def learning_curves(
    curves: Curves,
    group: str,
    *,
    pairs: str = ALL_PAIRS,
    people: float | None = None,
    unit: str = "words",
    axis: alt.Axis | None = None,
    height: int = 420,
    width: int | str = 400,
) -> Chart:
    """Draw a panel of figure 5 of Warstadt et al. 2020: accuracy against words, a line per phenomenon, overall grey.

    Lines are means over runs, points are runs, bands the intervals over runs: that of the whole, and that of the
    phenomenon which is chosen, as all of them at once would hide each other. `people` draws their overall accuracy;
    `unit` is what the x of the curves counts, `axis` what tells it in place of the usual one.
    """
    names = [title(name) for name in curves.slopes.loc[curves.slopes["level"] == "phenomenon", "name"].unique()]
    low, high = accuracy_domain(curves, pairs, people)
    means, points = (_shown(table, group, pairs) for table in (curves.accuracies, curves.points))
    x, y = _accuracy_axes(curves, (low, high), unit, axis)
    look = style(names)
    domain = [*look["name"], OVERALL]
    colour = alt.Color("name:N", scale=alt.Scale(domain=domain, range=[*look["colour"], GREY]), legend=None)
    dash = alt.StrokeDash("name:N", scale=alt.Scale(domain=domain, range=[*look["dash"], [1, 0]]), legend=None)
    shape = alt.Shape("name:N", scale=alt.Scale(domain=domain, range=[*look["shape"], "circle"]), legend=None)
    about = [
        alt.Tooltip("name:N", title="phenomenon"),
        alt.Tooltip("accuracy:Q", format=".3f"),
        alt.Tooltip("words:Q", format=","),
    ]
    of_means = [*about, alt.Tooltip("low:Q", format=".3f"), alt.Tooltip("high:Q", format=".3f"), alt.Tooltip("runs:Q")]
    of_runs = [alt.Tooltip("run:N"), *about, alt.Tooltip("seed:N")]
    lines = alt.Chart(means[means["level"] == "phenomenon"])
    whole = alt.Chart(means[means["level"] == "overall"])
    opacity = alt.condition("highlight === datum.name", alt.value(0.25), alt.value(0))
    layers: list[Any] = [
        *_rules(people, low),
        lines.mark_area(clip=True).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), colour, opacity=opacity),
        whole.mark_area(clip=True).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), colour, opacity=_faded(0.2)),
        whole.mark_line(strokeWidth=5, strokeCap="round").encode(x, y, colour, opacity=_faded(0.8)),
        lines.mark_line(strokeWidth=2).encode(x, y, colour, dash, opacity=_faded(1)),
        alt.Chart(points).mark_point(size=12, filled=True).encode(
            x, y, colour, shape, opacity=_faded(0.5), tooltip=of_runs
        ),
        lines.mark_point(size=50, filled=True).encode(x, y, colour, shape, opacity=_faded(1), tooltip=of_means),
        *_end_labels(means, (low, high), height, colour),
    ]  # fmt: skip
    return (
        alt.layer(*layers)
        .add_params(alt.param(name="highlight", value=""))
        .properties(width=width, height=height, title=group)
    )


def curves_together(
    curves: Curves,
    name: str,
    *,
    people: float | None = None,
    unit: str = "words",
    height: int = 240,
    width: int | str = 260,
    legend: bool = True,
) -> Chart:
    """Draw one panel: accuracy in one phenomenon, or overall, against words, a line per group.

    Lines are means over runs, small marks runs, bands the intervals over runs. `people` as in `learning_curves`.
    """
    groups = list(curves.slopes["group"].unique())
    low, high = accuracy_domain(curves, people=people)
    means, points = (
        table[(table["name"] == name) & (table["level"] != "paradigm") & (table["pairs"] == ALL_PAIRS)].drop(
            columns=["name", "phenomenon", "pairs", "level"]
        )
        for table in (curves.accuracies, curves.points)
    )
    means, points = (table.rename(columns={"group": "name"}) for table in (means, points))
    x, y = _accuracy_axes(curves, (low, high), unit)
    look = style(groups)
    key = alt.Legend(title=None, orient="bottom", labelLimit=400, columns=2) if legend else None
    colour, dash, shape = (
        channel("name:N", scale=alt.Scale(domain=groups, range=list(look[of])), legend=key)
        for channel, of in ((alt.Color, "colour"), (alt.StrokeDash, "dash"), (alt.Shape, "shape"))
    )
    about = [
        alt.Tooltip("name:N", title="curve"),
        alt.Tooltip("accuracy:Q", format=".3f"),
        alt.Tooltip("words:Q", format=","),
    ]
    of_means = [*about, alt.Tooltip("low:Q", format=".3f"), alt.Tooltip("high:Q", format=".3f"), alt.Tooltip("runs:Q")]
    lines = alt.Chart(means)
    layers = [
        *_rules(people, low),
        lines.mark_area(clip=True).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), colour, opacity=_faded(0.12)),
        lines.mark_line(strokeWidth=2).encode(x, y, colour, dash, opacity=_faded(1)),
        alt.Chart(points).mark_point(size=12, filled=True).encode(
            x, y, colour, shape, opacity=_faded(0.5), tooltip=[alt.Tooltip("run:N"), *about, alt.Tooltip("seed:N")]
        ),
        lines.mark_point(size=50, filled=True).encode(x, y, colour, shape, opacity=_faded(1), tooltip=of_means),
    ]  # fmt: skip
    return (
        alt.layer(*layers)
        .add_params(alt.param(name="highlight", value=""))
        .properties(width=width, height=height, title=title(name))
    )


def _shown(table: pd.DataFrame, group: str, pairs: str) -> pd.DataFrame:
    rows = table[(table["group"] == group) & (table["pairs"] == pairs) & (table["level"] != "paradigm")]
    return rows.assign(name=rows["name"].map(title)).drop(columns=["phenomenon", "group", "pairs"])


def _faded(opacity: float) -> Any:
    """Return the opacity of marks, low for all but the highlighted name."""
    return alt.condition("highlight === '' || highlight === datum.name", alt.value(opacity), alt.value(opacity * 0.1))


def _rules(people: float | None, low: float) -> list[Any]:
    """Draw chance, and people's overall accuracy."""
    levels = [("", 0.5)] if low < 0.5 else []  # chance is named on the axis, where no line crosses it
    levels += [("people, overall", people)] if people is not None else []
    table = pd.DataFrame(levels, columns=["level", "accuracy"])
    at = alt.Chart(table).encode(y=alt.Y("accuracy:Q"))
    rule = at.mark_rule(strokeDash=[3, 3], color=GREY)
    under = people is not None and people * 10 % 1 > 0.7  # a line of the grid would run through a name above
    text = at.mark_text(align="left", dx=4, dy=8 if under else -6, fontSize=10, color=TEXT_GREY)
    text = text.encode(x=alt.value(0), text="level:N")
    return [rule, text] if levels else []


def _end_labels(means: pd.DataFrame, domain: tuple[float, float], height: int, colour: Any) -> list[Any]:
    """Draw names to the right of the panel, spread so that none overlap, each tied to the end of its line."""
    last = means[means["words"] == means["words"].max()].copy()
    pixel = (domain[1] - domain[0]) / height
    places = np.asarray(spread_apart(list(last["accuracy"]), LABEL_GAP * pixel))
    # All of them beside the panel, if they fit there.
    places -= max(0.0, places.max() - domain[1])
    places += max(0.0, domain[0] - places.min())
    last["place"] = places
    opacity = _faded(1)
    base = alt.Chart(last)
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


def slope_chart(slopes: pd.DataFrame, *, pairs: str = ALL_PAIRS, width: int | str = 520) -> Chart:
    """Draw slopes with their intervals, one row per phenomenon, steepest first; published ones as hollow diamonds.

    `slopes` is Curves.slopes with the columns of tables.with_published.
    """
    slopes = two_sizes_noted(slopes)
    rows = slopes[(slopes["pairs"] == pairs) & slopes["level"].isin(["phenomenon", "overall"])]
    rows = rows[["group", "name", "slope", "low", "high", "r2", "method", "published_model", "published_slope"]]
    rows = rows.assign(name=rows["name"].map(title), zero=0.0)
    order = list(rows.groupby("name")["slope"].mean().sort_values(ascending=False).index)
    groups = list(rows["group"].unique())
    y = alt.Y(
        "name:N",
        sort=order,
        axis=ROWS,
        scale=alt.Scale(paddingInner=0.25),
    )
    offset = alt.YOffset("group:N", sort=groups)
    colour, shape = group_looks(groups)
    x = alt.X(
        "slope:Q",
        scale=MARGIN,
        axis=alt.Axis(title=SLOPE_TITLE, labelExpr=SIGNED_LABEL, tickCount=6),
    )
    tooltip = [
        alt.Tooltip("name:N", title="phenomenon"),
        alt.Tooltip("group:N"),
        *(alt.Tooltip(f"{field}:Q", format="+.4f") for field in ("slope", "low", "high")),
        alt.Tooltip("r2:Q", format=".3f", title="R²"),
        alt.Tooltip("method:N", title="interval"),
    ]
    published = [
        alt.Tooltip("name:N", title="phenomenon"),
        alt.Tooltip("published_model:N", title="published model"),
        alt.Tooltip("published_slope:Q", format="+.4f", title="slope"),
    ]
    base = alt.Chart(rows)
    layers: list[Any] = [
        base.mark_rule(color=GREY).encode(x=alt.X("zero:Q")),
        base.mark_rule(strokeWidth=2).encode(alt.X("low:Q"), alt.X2("high:Q"), y, offset, colour),
        base.mark_point(size=55, filled=True, opacity=1).encode(x, y, offset, colour, shape, tooltip=tooltip),
    ]
    theirs = rows[rows["published_slope"].notna()]
    if len(theirs):
        hollow = alt.Chart(theirs).mark_point(shape="diamond", size=80, filled=False, strokeWidth=1.6, opacity=1)
        layers.append(hollow.encode(alt.X("published_slope:Q"), y, offset, colour, tooltip=published))
    height = len(order) * (10 + 12 * len(groups))
    chart = alt.layer(*layers).properties(width=width, height=height)
    if len(theirs):
        caption = "Hollow diamonds: published slopes of the same architecture"
        chart = chart.properties(title=alt.Title(caption, fontSize=11, fontWeight="normal", color=TEXT_GREY))
    return chart


def perplexity_chart(runs: pd.DataFrame, *, unit: str = "words", width: int | str = 400, height: int = 300) -> Chart:
    """Draw validation perplexity per reference word against training text in `unit`s, both axes logarithmic."""
    rows = runs[runs["valid_ppl"].notna()].reset_index(names="run")
    rows = rows[["run", "group", "size", "seed", "sample_words", "valid_ppl", "valid_oov_rate"]]
    means = rows.groupby(["group", "size"], as_index=False, sort=False)[["sample_words", "valid_ppl"]].mean()
    sizes = sorted(means["sample_words"].unique())
    groups = list(rows["group"].unique())
    colour, shape = group_looks(groups)
    x = alt.X(
        "sample_words:Q",
        scale=alt.Scale(type="log", base=2, nice=False, domain=[sizes[0] / 1.12, sizes[-1] * 1.12]),
        axis=text_axis(sizes, unit),
    )
    y = alt.Y(
        "valid_ppl:Q",
        scale=alt.Scale(type="log", base=2, nice=True),
        axis=alt.Axis(title="Perplexity per word", format=",.0f", tickCount=5),
    )
    tooltip = [
        alt.Tooltip("run:N"),
        alt.Tooltip("valid_ppl:Q", format=".1f", title="perplexity"),
        alt.Tooltip("valid_oov_rate:Q", format=".2%", title="unknown words"),
        alt.Tooltip("seed:N"),
    ]
    layers = [
        alt.Chart(means).mark_line(strokeWidth=2).encode(x, y, colour),
        alt.Chart(rows).mark_point(filled=True, size=40, opacity=0.8).encode(x, y, colour, shape, tooltip=tooltip),
    ]
    return alt.layer(*layers).properties(width=width, height=height)
