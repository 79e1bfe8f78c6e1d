"""Figures of what surprisal adds to regressions of reading times, over training text and over perplexity."""

import altair as alt
import pandas as pd

from analysis.exhibits.figures.style import GREY, MOST_BANDS, PAGE, Chart, Frame, looks, size_axis

HEIGHT = 280
THOUSANDTHS = "Added log-likelihood (1/1000 nats a word)"


def delta_chart(
    runs: pd.DataFrame, means: pd.DataFrame, over: str, *, unit: str = "words", frame: Frame = PAGE
) -> Chart:
    """Draw deltas over `over`, sample_words or perplexity: a mark for each run, a line through means, with its band.

    runs: model, group, size, seed, sample_words, perplexity, delta, low, high; means: group, size, sample_words,
    perplexity, runs, delta, low, high; all in thousandths of a nat.
    """
    runs, means = (table[table[over].notna()] for table in (runs, means))
    names = list(dict.fromkeys([*means["group"], *runs["group"]]))
    colour, shape = looks(names)
    if over == "sample_words":
        x = size_axis(over, means[over], unit)
    else:
        axis = alt.Axis(title="Perplexity per word of the texts", format=",.0f", tickCount=frame.ticks(6), grid=False)
        x = alt.X(f"{over}:Q", scale=alt.Scale(type="log", base=2, nice=False, padding=12), axis=axis)
    y = alt.Y("delta:Q", scale=alt.Scale(zero=True, nice=True), axis=alt.Axis(title=THOUSANDTHS, tickCount=6))
    number = [alt.Tooltip(f"{name}:Q", format="+.3f") for name in ("delta", "low", "high")]
    at = [alt.Tooltip("size:N"), alt.Tooltip("perplexity:Q", format=",.1f")]
    of_runs = [alt.Tooltip("model:N"), alt.Tooltip("seed:N"), *at, *number]
    of_means = [alt.Tooltip("group:N"), alt.Tooltip("runs:Q"), *at, *number]
    base = alt.Chart(means)
    bands = base.mark_area(opacity=0.12).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), colour)
    layers = [
        alt.Chart(pd.DataFrame({"delta": [0]})).mark_rule(strokeDash=[3, 3], color=GREY).encode(y=y),
        *([bands] if means["group"].nunique() <= MOST_BANDS else []),
        base.mark_line(strokeWidth=2).encode(x, y, colour),
        base.mark_point(filled=True, size=50, opacity=1).encode(x, y, colour, shape, tooltip=of_means),
        alt.Chart(runs).mark_point(filled=False, size=30, opacity=0.7).encode(x, y, colour, shape, tooltip=of_runs),
    ]
    return alt.layer(*layers, width=frame.span, height=frame.height_of_curves(HEIGHT))
