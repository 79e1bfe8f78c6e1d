"""Figures of published SG scores: by corpus and architecture, and against perplexity."""

import altair as alt
import pandas as pd

from analysis.exhibits.figures.style import PAGE, Chart, Frame, looks

_SCORE = alt.Y("score:Q", scale=alt.Scale(domain=[0, 1], nice=False), axis=alt.Axis(title="SG score", tickCount=6))


def corpus_chart(runs: pd.DataFrame, heading: str, *, frame: Frame = PAGE) -> Chart:
    """Draw scores by corpus, a line through the means of each architecture, a mark for each run.

    `runs`: architecture, corpus (in order of size), seed, score.
    """
    runs = runs.rename(columns={"architecture": "name"})  # by which the page's legend highlights
    x = alt.X("corpus:N", sort=list(dict.fromkeys(runs["corpus"])), axis=alt.Axis(title="Corpus", labelAngle=0))
    colour, shape = looks(list(dict.fromkeys(runs["name"])), "name", legend=False)
    means = runs.groupby(["name", "corpus"], sort=False, as_index=False)["score"].mean()
    tooltip = [alt.Tooltip("name:N", title="architecture"), "corpus:N", "seed:N", alt.Tooltip("score:Q", format=".3f")]
    layers = [
        alt.Chart(means).mark_line(strokeWidth=2).encode(x, _SCORE, colour),
        alt.Chart(runs).mark_point(filled=True, size=40, opacity=0.8).encode(x, _SCORE, colour, shape, tooltip=tooltip),
    ]
    return alt.layer(*layers, title=heading, width=frame.span, height=frame.height_of_curves(260))


def perplexity_score_chart(runs: pd.DataFrame, *, frame: Frame = PAGE) -> Chart:
    """Draw scores against perplexity, on a logarithmic axis; `runs`: as above, with perplexity."""
    colour, shape = looks(list(dict.fromkeys(runs["architecture"])), "architecture")
    axis = alt.Axis(title="Perplexity of the test text", format=",.0f", tickCount=6)
    x = alt.X("perplexity:Q", scale=alt.Scale(type="log", nice=True), axis=axis)
    tooltip = ["architecture:N", "corpus:N", "seed:N", alt.Tooltip("perplexity:Q", format=".1f")]
    marks = alt.Chart(runs).mark_point(filled=True, size=50, opacity=0.8)
    chart = marks.encode(x, _SCORE, colour, shape, tooltip=[*tooltip, alt.Tooltip("score:Q", format=".3f")])
    return chart.properties(width=frame.span, height=frame.height_of_curves(300))
