"""The figure of a plan: power of grids over their cost, with those that no cheaper one beats."""

import altair as alt
import pandas as pd

from analysis.exhibits.figures.style import GREY, PAGE, SIZE_LABEL, Chart, Frame, looks
from analysis.exhibits.sentences.curves import plural

HEIGHT = 300
HOURS, WORDS = "hours", "words"


def power_chart(grids: pd.DataFrame, target: float, over: str = WORDS, *, frame: Frame = PAGE) -> Chart:
    """Draw power over `over`, hours or words: a mark a grid, a line through the best, a ring around the chosen one.

    grids: sizes, seeds, pairs, runs, words, hours, power, upper, best, chosen; without those that have no power.
    """
    grids = grids.assign(kind=[plural(int(seeds), "seed") for seeds in grids["seeds"]])
    kinds = [plural(int(seeds), "seed") for seeds in sorted(grids["seeds"].unique())]
    colour, shape = looks(kinds, "kind")
    name = "Hours of training" if over == HOURS else "Words to train, with repeats"
    label = "format(datum.value, '.3~g')" if over == HOURS else SIZE_LABEL
    axis = alt.Axis(title=name, labelExpr=label, tickCount=frame.ticks(6), grid=False)
    x = alt.X(f"{over}:Q", scale=alt.Scale(type="log", nice=False, padding=14), axis=axis)
    y = alt.Y("power:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title="Power", format=".0%", tickCount=6))
    tooltip = [alt.Tooltip("sizes:N"), alt.Tooltip("seeds:Q"), alt.Tooltip("pairs:Q"), alt.Tooltip("runs:Q")]
    tooltip += [alt.Tooltip("power:Q", format=".1%"), alt.Tooltip("words:Q", format=",.0f")]
    if grids["hours"].notna().all():
        tooltip += [alt.Tooltip("hours:Q", format=",.2f")]
    base = alt.Chart(grids)
    best = alt.Chart(grids[grids["best"]].sort_values(over))
    layers = [
        alt.Chart(pd.DataFrame({"power": [target]})).mark_rule(strokeDash=[3, 3], color=GREY).encode(y=y),
        best.mark_line(strokeWidth=1.5, color=GREY, interpolate="step-after").encode(x, y),
        base.mark_point(filled=False, size=40, opacity=0.75).encode(x, y, colour, shape, tooltip=tooltip),
        best.mark_point(filled=True, size=60, opacity=1).encode(x, y, colour, shape, tooltip=tooltip),
    ]
    if grids["chosen"].any():
        ring = alt.Chart(grids[grids["chosen"]]).mark_point(filled=False, size=320, strokeWidth=2, color=GREY)
        layers.append(ring.encode(x, y, tooltip=tooltip))
    return alt.layer(*layers, width=frame.span, height=frame.height_of_curves(HEIGHT))
