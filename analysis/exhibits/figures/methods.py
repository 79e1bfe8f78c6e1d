"""Figures of accuracy by judgement method and by predictor."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from analysis.curves.fit import CHANCE
from analysis.exhibits.figures.dots import Dots, numbers, reference
from analysis.exhibits.figures.labels import end_labels
from analysis.exhibits.figures.style import (
    GREY,
    MOST_BANDS,
    PAGE,
    Chart,
    Frame,
    accuracy_axis,
    accuracy_limits,
    level_accuracy_axis,
    looks,
    style,
)

HEIGHT = 260
_LIMITS = ["accuracy", "low", "high"]
_SIGNED = "replace(datum.label, '-', '−')"


def named_lines(
    rows: pd.DataFrame,
    x: alt.X,
    y: alt.Y,
    tooltip: list[alt.Tooltip],
    frame: Frame,
    beside: Sequence[Chart] = (),
) -> Chart:
    """Draw a line with a band for each name (columns name, at, accuracy, low, high), named where it ends.

    Of more than MOST_BANDS lines, the one that is pointed at has its band; on paper none.
    `y`: an axis of accuracies with a domain. `beside`: layers under the lines; chance (.5) if there are none.
    """
    names = list(rows["name"].unique())
    colour, shape = looks(names, "name", legend=False)
    dash = alt.StrokeDash("name:N", scale=alt.Scale(domain=names, range=list(style(names)["dash"])), legend=None)
    ends = rows.loc[rows.groupby("name")["at"].idxmax()].rename(columns={"at": "words"})
    height = frame.height_of_curves(HEIGHT, len(ends))
    many = len(names) > MOST_BANDS
    hovered = alt.selection_point(name="hovered", fields=["name"], on="pointerover", empty=False)
    opacity = alt.OpacityValue(**alt.condition(hovered, alt.value(0.25), alt.value(0)) if many else alt.value(0.12))
    base = alt.Chart(rows)
    bands = base.mark_area(clip=True).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), colour, opacity)
    chance = alt.Chart(pd.DataFrame({"accuracy": [CHANCE]})).mark_rule(strokeDash=[3, 3], color=GREY).encode(y=y)
    layers = [
        *(beside or [chance]),
        *([bands] if frame.on_page or not many else []),
        base.mark_line(strokeWidth=2).encode(x, y, colour, dash),
        base.mark_point(size=40, filled=True, opacity=1).encode(x, y, colour, shape, tooltip=tooltip),
        *end_labels(ends, tuple(y["scale"]["domain"]), height, colour, alt.OpacityValue(1)),
    ]
    chart = alt.layer(*layers, width=frame.span, height=height)
    return chart.add_params(hovered) if many and frame.on_page else chart


def bands_note(names: pd.Series) -> str:
    """Return what a caption says of the intervals of `named_lines` where too many to be drawn."""
    if names.nunique() <= MOST_BANDS:
        return ""
    return " The table has the intervals of all lines; the figure, that of the line which is pointed at on the page."


def predictor_chart(accuracies: pd.DataFrame, predictor: str, label: str, *, log: bool, frame: Frame = PAGE) -> Chart:
    """Draw one panel of figure 2 of Warstadt et al. 2020: accuracy over a predictor, a line per group.

    `accuracies`: as of analysis.measures.predictors.accuracy_by_predictor, all predictors, whose panels have one axis
    of accuracies. `label` and `log` are those of the predictor's axis.
    """
    rows = accuracies[accuracies["predictor"] == predictor].rename(columns={"group": "name", "x": "at"})
    scale = alt.Scale(type="log", nice=False) if log else alt.Scale(zero=False, nice=False)
    form = "~s" if log else ",~r"
    axis = alt.Axis(title=label[:1].upper() + label[1:], format=form, tickCount=5, grid=False)
    tooltip = [alt.Tooltip("name:N", title="curve"), alt.Tooltip("at:Q", format=",.4~r", title=predictor)]
    tooltip += [*numbers("accuracy", "low", "high"), *numbers("judgements", form=",")]
    x = alt.X("at:Q", scale=scale, axis=axis)
    return named_lines(rows, x, accuracy_axis(accuracy_limits(accuracies[_LIMITS])), tooltip, frame)


def length_chart(accuracies: pd.DataFrame, *, frame: Frame = PAGE, heading: str = "") -> Chart:
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
    lines = named_lines(rows, alt.X("at:Q", axis=axis), accuracy_axis(accuracy_limits(rows[_LIMITS])), tooltip, frame)
    return lines.properties(title=heading)


def method_chart(accuracies: pd.DataFrame, *, frame: Frame = PAGE) -> Chart:
    """Draw table 3 of Ide et al. 2024: a row per method, a mark per group, a line of one deviation to either side.

    `accuracies`: group, method, accuracy, sd (over templates or trials; NaN where there are none), best, best_accuracy.
    The best template is a hollow mark.
    """
    middle, sd = accuracies["accuracy"], accuracies["sd"]
    rows = accuracies.assign(low=middle - sd, high=middle + sd)
    dots = Dots(rows, list(rows["method"].unique()), "method")
    x = level_accuracy_axis(accuracy_limits(rows[[*_LIMITS, "best_accuracy"]]))
    tooltip = [alt.Tooltip("method:N"), alt.Tooltip("group:N", title="model")]
    tooltip += [*numbers("accuracy", "sd", "best_accuracy"), alt.Tooltip("best:N", title="best template")]
    points = dots.points(x, tooltip)
    several = rows[rows["sd"].notna()]
    if several.empty:
        return dots.chart(reference(CHANCE, dashed=True), points, frame=frame)
    best = dots.points(alt.X("best_accuracy:Q"), tooltip, filled=False, of=several)
    note = "Lines: one standard deviation over templates or trials; hollow marks: the best of them"
    return dots.chart(reference(CHANCE, dashed=True), dots.lines("low", "high"), best, points, frame=frame, note=note)


def prefix_chart(accuracies: pd.DataFrame, method: str, *, frame: Frame = PAGE) -> Chart:
    """Draw a panel of figure 6 of Warstadt et al. 2020: a prefix method beside full sentences on the same paradigms.

    `accuracies`: group, method, name (phenomena and overall, titles), accuracy, full. A filled mark is the prefix
    method, a hollow one the full sentence, joined by a line.
    """
    rows = accuracies[accuracies["method"] == method]
    order = dict.fromkeys(accuracies["name"])
    dots = Dots(
        accuracies, [name for name in order if name in set(rows["name"])]
    )  # a group has one colour in all panels
    x = level_accuracy_axis(accuracy_limits(accuracies[["accuracy", "full"]]))
    tooltip = [alt.Tooltip("name:N", title="phenomenon"), alt.Tooltip("group:N", title="model")]
    tooltip += [alt.Tooltip("accuracy:Q", format=".3f", title="prefix")]
    tooltip += [alt.Tooltip("full:Q", format=".3f", title="full sentence")]
    full = dots.points(alt.X("full:Q"), tooltip, filled=False, of=rows)
    layers = [reference(CHANCE, dashed=True), dots.lines("accuracy", "full", opacity=0.6, of=rows), full]
    layers.append(dots.points(x, tooltip, of=rows))
    return dots.chart(*layers, frame=frame, title=f"{method} (filled), full sentence (hollow)")


def difference_chart(differences: pd.DataFrame, method: str, *, frame: Frame = PAGE) -> Chart:
    """Draw a panel of figure 6 of Ide et al. 2024: a method's accuracy less that of in_template_lp, over lengths.

    `differences`: group, method, paradigm, length_difference (tokens), accuracy_difference; a point per paradigm.
    """
    rows = differences[differences["method"] == method]
    length = alt.Axis(
        title="Tokens of the good sentences less those of the bad ones", labelExpr=_SIGNED, tickCount=5, grid=False
    )
    accuracy = alt.Axis(title="Accuracy above that of in_template_lp", format=".1f", tickMinStep=0.1)
    y = alt.Y("accuracy_difference:Q", axis=accuracy)
    tooltip = [alt.Tooltip("paradigm:N"), alt.Tooltip("group:N", title="model")]
    tooltip += [alt.Tooltip("length_difference:Q", format="+.2f", title="tokens")]
    tooltip += [alt.Tooltip("accuracy_difference:Q", format="+.3f", title="accuracy")]
    zero = alt.Chart(pd.DataFrame({"accuracy_difference": [0.0]})).mark_rule(strokeDash=[3, 3], color=GREY).encode(y=y)
    points = alt.Chart(rows).mark_point(size=35, filled=True, opacity=0.7)
    x = alt.X("length_difference:Q", axis=length)
    points = points.encode(x, y, *looks(list(differences["group"].unique())), tooltip=tooltip)
    return alt.layer(zero, points, width=frame.span, height=frame.height_of_curves(HEIGHT), title=method)
