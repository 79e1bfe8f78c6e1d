"""Figures of accuracy by judgement method and by predictor."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from analysis.exhibits.figures.style import GREY, LABEL_GAP, ROWS, TEXT_GREY, Chart, looks, spread_apart
from analysis.measures.predictors import PREDICTORS

HEIGHT = 260
SHARE = alt.Axis(title="Accuracy", format=".1f", tickCount=6, tickMinStep=0.1)


LEGEND = alt.Legend(title=None, orient="top", labelLimit=400, symbolOpacity=1)


def named_lines(
    rows: pd.DataFrame,
    x: alt.X,
    domain: tuple[float, float],
    width: int | str,
    height: int,
    tooltip: list[alt.Tooltip],
    beside: Sequence[Chart] = (),
    share: alt.Axis = SHARE,
) -> Chart:
    """Draw a line with a band for each name (columns name, at, accuracy, low, high), named where it ends.

    `beside`: layers under the lines; chance (.5), where the axis shows it, if there are none. `share`: the
    axis of accuracies.
    """
    names = list(rows["name"].unique())
    colour, shape = looks(names)
    scale = alt.Scale(domain=list(domain), nice=False, zero=False)
    y = alt.Y("accuracy:Q", scale=scale, axis=share)
    base = alt.Chart(rows)
    last = rows.loc[rows.groupby("name")["at"].idxmax()].copy()
    pixel = (domain[1] - domain[0]) / height
    places = np.asarray(spread_apart(list(last["accuracy"]), LABEL_GAP * pixel))
    places -= max(0.0, places.max() - domain[1])
    last["place"] = places + max(0.0, domain[0] - places.min())
    edge = alt.value("width")
    ends = alt.Chart(last)
    chance = alt.Chart(pd.DataFrame({"accuracy": [0.5]})).mark_rule(strokeDash=[3, 3], color=GREY).encode(y=y)
    layers = [
        *(beside or ([chance] if domain[0] < 0.5 else [])),
        base.mark_area(opacity=0.12, clip=True).encode(x, alt.Y("low:Q", scale=scale), alt.Y2("high:Q"), colour),
        base.mark_line(strokeWidth=2).encode(x, y, colour),
        base.mark_point(size=40, filled=True, opacity=1).encode(x, y, colour, shape, tooltip=tooltip),
        # From where this line ends to the edge, which others reach.
        ends.mark_rule(strokeWidth=1, strokeDash=[1, 3]).encode(x=alt.X("at:Q"), x2=edge, y=y, color=colour),
        ends.mark_rule(strokeWidth=1.2, xOffset=2, x2Offset=14).encode(
            x=edge, x2=edge, y=y, y2=alt.Y2("place:Q"), color=colour
        ),
        ends.mark_text(align="left", baseline="middle", fontSize=11, dx=18).encode(
            x=edge, y=alt.Y("place:Q", scale=scale), text="name:N"
        ),
    ]
    return alt.layer(*layers).properties(width=width, height=height)


def domain(rows: pd.DataFrame) -> tuple[float, float]:
    """Return limits of the axis, whole tenths around all accuracies, chance among them."""
    low, high = np.floor(rows["accuracy"].min() * 10) / 10, np.ceil(rows["accuracy"].max() * 10) / 10
    return float(max(0.0, min(low, 0.4))), float(min(1.0, max(high, 0.6)))


def _scale(rows: pd.DataFrame) -> alt.Scale:
    return alt.Scale(domain=list(domain(rows)), nice=False, zero=False)


_INTERVAL = [alt.Tooltip(f"{name}:Q", format=".3f") for name in ("accuracy", "low", "high")]


def predictor_chart(accuracies: pd.DataFrame, predictor: str, *, width: int | str = 250) -> Chart:
    """Draw one panel of figure 2 of Warstadt et al. 2020: accuracy over a shallow predictor, a line per group.

    `accuracies`: as of analysis.measures.predictors.accuracy_by_predictor, all predictors, whose panels have one axis
    of accuracies. Perplexity has a logarithmic axis.
    """
    rows = accuracies[accuracies["predictor"] == predictor].rename(columns={"group": "name", "x": "at"})
    log = alt.Scale(type="log", nice=False) if predictor == "perplexity" else alt.Scale(zero=False, nice=False)
    label = PREDICTORS[predictor]
    axis = alt.Axis(title=label[:1].upper() + label[1:], format="~s", tickCount=5, grid=False)
    tooltip = [alt.Tooltip("name:N", title="curve"), alt.Tooltip("at:Q", format=",.1f", title=predictor),
               *_INTERVAL, alt.Tooltip("judgements:Q", format=",")]  # fmt: skip
    return named_lines(rows, alt.X("at:Q", scale=log, axis=axis), domain(accuracies), width, HEIGHT, tooltip)


def length_chart(accuracies: pd.DataFrame, *, width: int | str = 420) -> Chart:
    """Draw figure 2 of Ide et al. 2024: accuracy over the difference of lengths, a line per method.

    `accuracies`: as of analysis.measures.methods.accuracy_by_difference.
    """
    rows = accuracies.rename(columns={"method": "name", "difference": "at"})
    ends = int(rows["at"].abs().max())
    axis = alt.Axis(
        title="Tokens of the good sentence less those of the bad one",
        values=sorted({sign * value for sign in (-1, 1) for value in (0, ends // 2, ends)}),  # apart on a phone, too
        grid=False,
        labelExpr=f"abs(datum.value) == {ends} ? (datum.value < 0 ? '≤ −' : '≥ ') + abs(datum.value) : "
        "replace(datum.label, '-', '−')",
    )
    tooltip = [alt.Tooltip("name:N", title="method"), alt.Tooltip("at:Q", title="difference"), *_INTERVAL,
               alt.Tooltip("judgements:Q", format=",")]  # fmt: skip
    return named_lines(rows, alt.X("at:Q", axis=axis), domain(rows), width, HEIGHT, tooltip)


def method_chart(accuracies: pd.DataFrame, *, width: int | str = 420) -> Chart:
    """Draw table 3 of Ide et al. 2024: a row per method, a mark per group, a line of one deviation to either side.

    `accuracies`: group, method, accuracy, sd (over templates or trials; NaN where there are none), best, best_accuracy.
    The best template is a hollow mark.
    """
    rows = accuracies.rename(columns={"group": "name"})
    rows = rows.assign(low=rows["accuracy"] - rows["sd"], high=rows["accuracy"] + rows["sd"])
    names, order = list(rows["name"].unique()), list(rows["method"].unique())
    colour, shape = looks(names, LEGEND)
    y = alt.Y("method:N", sort=order, axis=ROWS)
    offset = alt.YOffset("name:N", sort=names)
    x = alt.X("accuracy:Q", scale=_scale(rows), axis=SHARE)
    tooltip = [alt.Tooltip("method:N"), alt.Tooltip("name:N", title="model"),
               *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("accuracy", "sd", "best_accuracy")),
               alt.Tooltip("best:N", title="best template")]  # fmt: skip
    base, several = alt.Chart(rows), alt.Chart(rows[rows["sd"].notna()])
    layers = [
        several.mark_rule(strokeWidth=2).encode(alt.X("low:Q"), alt.X2("high:Q"), y, offset, colour),
        several.mark_point(size=60, filled=False, strokeWidth=1.4).encode(
            alt.X("best_accuracy:Q"), y, offset, colour, shape, tooltip=tooltip
        ),
        base.mark_point(size=60, filled=True, opacity=1).encode(x, y, offset, colour, shape, tooltip=tooltip),
    ]
    chart = alt.layer(*layers).properties(width=width, height=len(order) * (10 + 12 * len(names)))
    if rows["sd"].notna().any():
        caption = "Lines: one standard deviation over templates or trials; hollow marks: the best of them"
        chart = chart.properties(title=alt.Title(caption, fontSize=11, fontWeight="normal", color=TEXT_GREY))
    return chart


def prefix_chart(accuracies: pd.DataFrame, method: str, *, width: int | str = 420) -> Chart:
    """Draw a panel of figure 6 of Warstadt et al. 2020: a prefix method beside full sentences on the same paradigms.

    `accuracies`: group, method, name (phenomena and overall, titles), accuracy, full. A filled mark is the prefix
    method, a hollow one the full sentence, joined by a line.
    """
    rows = accuracies.assign(label=accuracies["name"], name=accuracies["group"])
    groups = list(rows["name"].unique())
    colour, shape = looks(groups, LEGEND)
    order = list(dict.fromkeys(rows["label"]))
    part = rows[rows["method"] == method]
    y = alt.Y("label:N", sort=order, axis=ROWS)
    offset = alt.YOffset("name:N", sort=groups)
    x = alt.X("accuracy:Q", scale=_scale(rows), axis=SHARE)
    tooltip = [alt.Tooltip("label:N", title="phenomenon"), alt.Tooltip("name:N", title="model"),
               alt.Tooltip("accuracy:Q", format=".3f", title="prefix"),
               alt.Tooltip("full:Q", format=".3f", title="full sentence")]  # fmt: skip
    base = alt.Chart(part)
    layers = [
        base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(x, alt.X2("full:Q"), y, offset, colour),
        base.mark_point(size=50, filled=False, strokeWidth=1.4).encode(alt.X("full:Q"), y, offset, colour, shape),
        base.mark_point(size=50, filled=True, opacity=1).encode(x, y, offset, colour, shape, tooltip=tooltip),
    ]
    height = part["label"].nunique() * (10 + 12 * len(groups))
    caption = f"{method} (filled), full sentence (hollow)"
    return alt.layer(*layers).properties(width=width, height=height, title=caption)


def difference_chart(differences: pd.DataFrame, method: str, *, width: int | str = 420) -> Chart:
    """Draw a panel of figure 6 of Ide et al. 2024: a method's accuracy less that of in_template_lp, over lengths.

    `differences`: group, method, paradigm, length_difference (tokens), accuracy_difference; a point per paradigm.
    """
    rows = differences[differences["method"] == method].rename(columns={"group": "name"})
    colour, shape = looks(list(differences["group"].unique()), LEGEND)
    signed = "replace(datum.label, '-', '−')"
    x = alt.X(
        "length_difference:Q",
        axis=alt.Axis(title="Tokens of the good sentences less those of the bad ones", labelExpr=signed, grid=False),
    )
    y = alt.Y(
        "accuracy_difference:Q",
        axis=alt.Axis(title=f"Accuracy above that of in_template_lp: {method}", format=".1f", tickMinStep=0.1),
    )
    tooltip = [alt.Tooltip("paradigm:N"), alt.Tooltip("name:N", title="model"),
               alt.Tooltip("length_difference:Q", format="+.2f", title="tokens"),
               alt.Tooltip("accuracy_difference:Q", format="+.3f", title="accuracy")]  # fmt: skip
    zero = alt.Chart(pd.DataFrame({"accuracy_difference": [0.0]})).mark_rule(strokeDash=[3, 3], color=GREY).encode(y=y)
    points = alt.Chart(rows).mark_point(size=35, filled=True, opacity=0.7)
    return alt.layer(zero, points.encode(x, y, colour, shape, tooltip=tooltip)).properties(width=width, height=HEIGHT)
