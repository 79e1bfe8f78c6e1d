"""Figures, as Altair charts: the same chart is a file for a paper and the interactive one of the report.

A parameter lets a page change the chart that it shows: `highlight`, a name; the others fade.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import vl_convert

from analysis.curves import ALL_PAIRS, Curves
from analysis.tables import title, two_sizes_noted
from corpora.files import write_bytes, write_text

Chart = Any  # Altair's classes of charts share no useful base

# Okabe and Ito 2008: six hues that people with any colour vision tell apart; beyond six, another dash and shape.
HUES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ([1, 0], [6, 3], [2, 2])
OF_PAIRS = " · "  # between the name of a curve and that of the pairs it is about
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
GREY = "#8a8a8a"
TEXT_GREY = "#666666"  # small text needs more contrast than a line (WCAG 2.2, 1.4.3)
OVERALL = "Overall"
FONT = "Helvetica, Arial, Liberation Sans, sans-serif"
LEGEND_CHARACTERS = 70  # that stand beside each other above a chart
MOST_TICKS = 8  # on an axis of sizes
LABEL_GAP = 13  # pixels between two names at the ends of lines
CHANCE_LABEL = "(abs(datum.value - 0.5) < 1e-6 ? 'chance  ' : '') + format(datum.value, '.1f')"
MARGIN = alt.Scale(padding=8)  # pixels between the outermost marks and the names beside the axis
SLOPE_TITLE = "Accuracy gained per doubling of the text"

# 125000 -> 125k, 2000000 -> 2M
SIZE_LABEL = (
    "datum.value >= 1e6 ? format(datum.value / 1e6, '.3~g') + 'M' : "
    "datum.value >= 1e3 ? format(datum.value / 1e3, '.3~g') + 'k' : datum.value"
)


def style(names: Sequence[str]) -> pd.DataFrame:
    """Colour, dash and shape of each name, in order: no two of the first eighteen share all three.

    Of names "curve · pairs" a curve has one colour and shape whatever pairs it is about, which have a dash each.
    """
    parts = [name.split(OF_PAIRS) for name in names]
    curves, pairs = (list(dict.fromkeys(part[i] for part in parts)) for i in (0, -1))
    rows = []
    for name, part in zip(names, parts, strict=True):
        i = curves.index(part[0])
        dash = i // len(HUES) + (pairs.index(part[-1]) if len(part) > 1 else 0)
        shape = SHAPES[(i + i // len(HUES)) % len(SHAPES)]
        rows.append((name, HUES[i % len(HUES)], DASHES[dash % len(DASHES)], shape))
    return pd.DataFrame(rows, columns=["name", "colour", "dash", "shape"])


def group_looks(groups: Sequence[str]) -> tuple[alt.Color, alt.Shape]:
    """Colours and shapes of the groups, and their legend above the chart, in as many columns as its width holds."""
    look = style(groups)
    columns = max(1, LEGEND_CHARACTERS // (4 + max(map(len, groups), default=0)))
    legend = alt.Legend(title=None, orient="top", labelLimit=400, columns=columns)
    colour = alt.Color("group:N", scale=alt.Scale(domain=groups, range=list(look["colour"])), legend=legend)
    return colour, alt.Shape("group:N", scale=alt.Scale(domain=groups, range=list(look["shape"])), legend=legend)


def spread_apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Positions in the order of `wanted`, at least `gap` apart, as near to it as can be (least squares).

    Pool adjacent violators: with the gaps taken out, positions have only to be ascending.
    """
    order = np.argsort(wanted, kind="stable")
    blocks: list[list[float]] = []  # mean, how many
    for rank, i in enumerate(order):
        blocks.append([wanted[i] - rank * gap, 1])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            mean, count = blocks.pop()
            blocks[-1] = [
                (blocks[-1][0] * blocks[-1][1] + mean * count) / (blocks[-1][1] + count),
                blocks[-1][1] + count,
            ]
    placed = np.repeat([mean for mean, _ in blocks], [int(count) for _, count in blocks]) + gap * np.arange(len(order))
    result = np.empty(len(order))
    result[order] = placed
    return [float(position) for position in result]


def accuracy_domain(curves: Curves, pairs: str = ALL_PAIRS, people: float | None = None) -> tuple[float, float]:
    """Limits of the axis of accuracies, whole tenths, the same for every panel."""
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
    """One panel of figure 5 of Warstadt et al. 2020: accuracy against words, a line per phenomenon, the whole in grey.

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
    """One panel: accuracy in one phenomenon, or overall, against words, a line per group.

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
    """Opacity of marks whose name is not the one highlighted."""
    return alt.condition("highlight === '' || highlight === datum.name", alt.value(opacity), alt.value(opacity * 0.1))


def _ticks(sizes: Sequence[float]) -> list[float]:
    """The sizes; where they are many every second one, or third."""
    return [float(size) for size in sizes[:: -(-len(sizes) // MOST_TICKS)]]


def _rules(people: float | None, low: float) -> list[Any]:
    """Chance, and how well people do overall."""
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
    """Names to the right of the panel, spread so that none overlap, each tied to the end of its line."""
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
    """Slopes with their intervals, one row per phenomenon, steepest first; published ones as hollow diamonds.

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
        axis=alt.Axis(title=None, grid=True, tickBand="extent", labelLimit=220, domain=False, ticks=False),
        scale=alt.Scale(paddingInner=0.25),
    )
    offset = alt.YOffset("group:N", sort=groups)
    colour, shape = group_looks(groups)
    x = alt.X(
        "slope:Q",
        scale=MARGIN,
        axis=alt.Axis(title=SLOPE_TITLE, labelExpr="datum.value ? format(datum.value, '+.2~f') : '0'", tickCount=6),
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
        told = "Hollow diamonds: published slopes of the same architecture"
        chart = chart.properties(title=alt.Title(told, fontSize=11, fontWeight="normal", color=TEXT_GREY))
    return chart


def text_axis(sizes: Sequence[float], unit: str) -> alt.Axis:
    """The x axis of training text in `unit`s, with a tick at each size."""
    title = f"{unit.capitalize()} of training text"
    return alt.Axis(values=_ticks(sizes), labelExpr=SIZE_LABEL, title=title, grid=False)


def perplexity_chart(runs: pd.DataFrame, *, unit: str = "words", width: int | str = 400, height: int = 300) -> Chart:
    """Validation perplexity per reference word against training text in `unit`s, both axes logarithmic."""
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


def side_by_side(panels: Sequence[Chart], columns: int = 2) -> Chart:
    """Panels in rows of `columns`, as one figure."""
    return alt.concat(*panels, columns=columns, spacing=24)


def finished(chart: Any) -> dict[str, Any]:
    """The chart as a Vega-Lite specification with the look that all figures share."""
    styled = chart.configure(  # one call: each copies the chart
        font=FONT,
        background="white",
        view=alt.ViewConfig(strokeWidth=0),
        axis=alt.AxisConfig(labelFontSize=11, titleFontSize=12, titleFontWeight="normal", gridOpacity=0.35),
        title=alt.TitleConfig(fontSize=13, anchor="start"),
        legend=alt.LegendConfig(labelFontSize=12, symbolSize=90),
    )
    # Its parts were validated when they were made.
    specification: dict[str, Any] = styled.to_dict(validate=False)
    return specification


def schema_version() -> str:
    """The version of Vega-Lite that the specifications are written in, as vl-convert names it."""
    return alt.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]


def write_figure(folder: Path, name: str, chart: Any) -> None:
    """Write <name>.svg and <name>.png (twice the size, for print)."""
    svg = vl_convert.vegalite_to_svg(finished(chart), vl_version=schema_version())
    write_text(folder / f"{name}.svg", svg)
    write_bytes(folder / f"{name}.png", vl_convert.svg_to_png(svg, scale=2))
