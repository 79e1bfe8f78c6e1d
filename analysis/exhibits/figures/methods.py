"""Figures of accuracy by judgement method and by predictor."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from analysis.exhibits.figures.dots import Dots, numbers
from analysis.exhibits.figures.labels import end_labels
from analysis.exhibits.figures.style import GREY, Chart, looks

HEIGHT = 260
SHARE = alt.Axis(title="Accuracy", format=".1f", tickCount=6, tickMinStep=0.1)
_SIGNED = "replace(datum.label, '-', '−')"


def named_lines(
    rows: pd.DataFrame,
    x: alt.X,
    domain: tuple[float, float],
    tooltip: list[alt.Tooltip],
    beside: Sequence[Chart] = (),
    share: alt.Axis = SHARE,
) -> Chart:
    """Draw a line with a band for each name (columns name, at, accuracy, low, high), named where it ends.

    `beside`: layers under the lines; chance (.5), where the axis shows it, if there are none. `share`: the axis of
    accuracies.
    """
    colour, shape = looks(list(rows["name"].unique()), "name", legend=False)
    scale = alt.Scale(domain=list(domain), nice=False, zero=False)
    y = alt.Y("accuracy:Q", scale=scale, axis=share)
    ends = rows.loc[rows.groupby("name")["at"].idxmax()].rename(columns={"at": "words"})
    base = alt.Chart(rows)
    chance = alt.Chart(pd.DataFrame({"accuracy": [0.5]})).mark_rule(strokeDash=[3, 3], color=GREY).encode(y=y)
    layers = [
        *(beside or ([chance] if domain[0] < 0.5 else [])),
        base.mark_area(opacity=0.12, clip=True).encode(x, alt.Y("low:Q", scale=scale), alt.Y2("high:Q"), colour),
        base.mark_line(strokeWidth=2).encode(x, y, colour),
        base.mark_point(size=40, filled=True, opacity=1).encode(x, y, colour, shape, tooltip=tooltip),
        *end_labels(ends, domain, HEIGHT, colour, alt.value(1)),
    ]
    return alt.layer(*layers).properties(height=HEIGHT)


def axis_limits(rows: pd.DataFrame) -> tuple[float, float]:
    """Return limits of an axis: whole tenths around all accuracies and chance."""
    low, high = np.floor(rows["accuracy"].min() * 10) / 10, np.ceil(rows["accuracy"].max() * 10) / 10
    return float(max(0.0, min(low, 0.4))), float(min(1.0, max(high, 0.6)))


def _scale(rows: pd.DataFrame) -> alt.Scale:
    return alt.Scale(domain=list(axis_limits(rows)), nice=False, zero=False)


def predictor_chart(
    accuracies: pd.DataFrame, predictor: str, label: str, *, log: bool, width: int | str = 250
) -> Chart:
    """Draw one panel of figure 2 of Warstadt et al. 2020: accuracy over a predictor, a line per group.

    `accuracies`: as of analysis.measures.predictors.accuracy_by_predictor, all predictors, whose panels have one axis
    of accuracies. `label` and `log` are those of the predictor's axis.
    """
    rows = accuracies[accuracies["predictor"] == predictor].rename(columns={"group": "name", "x": "at"})
    scale = alt.Scale(type="log", nice=False) if log else alt.Scale(zero=False, nice=False)
    axis = alt.Axis(title=label[:1].upper() + label[1:], format=",~r", tickCount=5, grid=False)
    tooltip = [alt.Tooltip("name:N", title="curve"), alt.Tooltip("at:Q", format=",.4~r", title=predictor)]
    tooltip += [*numbers("accuracy", "low", "high"), *numbers("judgements", form=",")]
    lines = named_lines(rows, alt.X("at:Q", scale=scale, axis=axis), axis_limits(accuracies), tooltip)
    return lines.properties(width=width)


def length_chart(accuracies: pd.DataFrame, *, width: int | str = 420, heading: str = "") -> Chart:
    """Draw figure 2 of Ide et al. 2024: accuracy over the difference of lengths, a line per method.

    `accuracies`: as of analysis.measures.methods.accuracy_by_difference.
    """
    rows = accuracies.rename(columns={"method": "name", "difference": "at"})
    ends = int(rows["at"].abs().max())
    axis = alt.Axis(
        title="Tokens of the good sentence less those of the bad one",
        values=sorted({sign * value for sign in (-1, 1) for value in (0, ends // 2, ends)}),  # apart on a phone, too
        grid=False,
        labelExpr=f"abs(datum.value) == {ends} ? (datum.value < 0 ? '≤ −' : '≥ ') + abs(datum.value) : {_SIGNED}",
    )
    tooltip = [alt.Tooltip("name:N", title="method"), alt.Tooltip("at:Q", title="difference")]
    tooltip += [*numbers("accuracy", "low", "high"), *numbers("judgements", form=",")]
    lines = named_lines(rows, alt.X("at:Q", axis=axis), axis_limits(rows), tooltip)
    return lines.properties(width=width, title=heading)


def method_chart(accuracies: pd.DataFrame, *, width: int | str = 420) -> Chart:
    """Draw table 3 of Ide et al. 2024: a row per method, a mark per group, a line of one deviation to either side.

    `accuracies`: group, method, accuracy, sd (over templates or trials; NaN where there are none), best, best_accuracy.
    The best template is a hollow mark.
    """
    middle, sd = accuracies["accuracy"], accuracies["sd"]
    rows = accuracies.assign(low=middle - sd, high=middle + sd)
    dots = Dots(rows, list(rows["method"].unique()), "method")
    x = alt.X("accuracy:Q", scale=_scale(rows), axis=SHARE)
    tooltip = [alt.Tooltip("method:N"), alt.Tooltip("group:N", title="model")]
    tooltip += [*numbers("accuracy", "sd", "best_accuracy"), alt.Tooltip("best:N", title="best template")]
    points = dots.points(x, tooltip)
    several = rows[rows["sd"].notna()]
    if several.empty:
        return dots.chart(points, width=width)
    best = dots.points(alt.X("best_accuracy:Q"), tooltip, filled=False, of=several)
    note = "Lines: one standard deviation over templates or trials; hollow marks: the best of them"
    return dots.chart(dots.lines("low", "high"), best, points, width=width, note=note)


def prefix_chart(accuracies: pd.DataFrame, method: str, *, width: int | str = 420) -> Chart:
    """Draw a panel of figure 6 of Warstadt et al. 2020: a prefix method beside full sentences on the same paradigms.

    `accuracies`: group, method, name (phenomena and overall, titles), accuracy, full. A filled mark is the prefix
    method, a hollow one the full sentence, joined by a line.
    """
    rows = accuracies[accuracies["method"] == method]
    order = dict.fromkeys(accuracies["name"])
    dots = Dots(
        accuracies, [name for name in order if name in set(rows["name"])]
    )  # a group has one colour in all panels
    x = alt.X("accuracy:Q", scale=_scale(accuracies), axis=SHARE)
    tooltip = [alt.Tooltip("name:N", title="phenomenon"), alt.Tooltip("group:N", title="model")]
    tooltip += [alt.Tooltip("accuracy:Q", format=".3f", title="prefix")]
    tooltip += [alt.Tooltip("full:Q", format=".3f", title="full sentence")]
    full = dots.points(alt.X("full:Q"), tooltip, filled=False, of=rows)
    layers = [dots.lines("accuracy", "full", opacity=0.6, of=rows), full, dots.points(x, tooltip, of=rows)]
    return dots.chart(*layers, width=width, title=f"{method} (filled), full sentence (hollow)")


def difference_chart(differences: pd.DataFrame, method: str, *, width: int | str = 420) -> Chart:
    """Draw a panel of figure 6 of Ide et al. 2024: a method's accuracy less that of in_template_lp, over lengths.

    `differences`: group, method, paradigm, length_difference (tokens), accuracy_difference; a point per paradigm.
    """
    rows = differences[differences["method"] == method]
    length = alt.Axis(title="Tokens of the good sentences less those of the bad ones", labelExpr=_SIGNED, grid=False)
    accuracy = alt.Axis(title=f"Accuracy above that of in_template_lp: {method}", format=".1f", tickMinStep=0.1)
    y = alt.Y("accuracy_difference:Q", axis=accuracy)
    tooltip = [alt.Tooltip("paradigm:N"), alt.Tooltip("group:N", title="model")]
    tooltip += [alt.Tooltip("length_difference:Q", format="+.2f", title="tokens")]
    tooltip += [alt.Tooltip("accuracy_difference:Q", format="+.3f", title="accuracy")]
    zero = alt.Chart(pd.DataFrame({"accuracy_difference": [0.0]})).mark_rule(strokeDash=[3, 3], color=GREY).encode(y=y)
    points = alt.Chart(rows).mark_point(size=35, filled=True, opacity=0.7)
    x = alt.X("length_difference:Q", axis=length)
    points = points.encode(x, y, *looks(list(differences["group"].unique())), tooltip=tooltip)
    return alt.layer(zero, points).properties(width=width, height=HEIGHT)
