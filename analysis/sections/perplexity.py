"""Perplexity against training text, and by how much each doubling lowers it."""

import math
from functools import partial

import pandas as pd

from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.curves import perplexity_chart
from analysis.exhibits.tables.text import supported_digits
from analysis.measures.perplexity import perplexity_curves
from analysis.published import published_file
from analysis.sections.section import Report, Section, contributes


@contributes(120)
def perplexity(section: Section, report: Report) -> list[Exhibit]:
    return perplexity_exhibits(section, report.confidence)


def perplexity_exhibits(section: Section, confidence: float) -> list[Exhibit]:
    """Return the figure of perplexity with its fits in words; nothing where no run has a perplexity."""
    runs, unit = section.judged.runs, section.judged.unit
    fits = perplexity_curves(runs, confidence)
    if fits.empty:
        return []
    oov = runs["valid_oov_rate"].max()
    unknown = (
        f"up to {oov:.1%} of its words are unknown to some model; perplexities are comparable only at 0."
        if oov > 0
        else "none of its words is unknown to any model."
    )
    about = [
        f"Validation text of the corpus, total nats per reference word, ends of sentences included; {unknown}",
    ]
    if section.label == "blimp":
        published = published_file("perplexity")
        averages = ", ".join(f"{row.perplexity:,.4g} at {row.words:,.0f} words" for row in published.itertuples())
        source = published["source"].iloc[-1]
        about.append(f"Published averages on another text and vocabulary, for orientation only: {averages} ({source}).")
    charts = {"runs": partial(perplexity_chart, runs, unit=unit)}
    takeaways = [_factor(fit, confidence) for _, fit in fits[fits["factor"].notna()].iterrows()]
    return [Exhibit("perplexity", "Perplexity", " ".join(about), charts=charts, takeaways=takeaways)]


def _factor(fit: pd.Series, confidence: float) -> tuple[str, str]:
    digits, limits = 2, ""
    if not math.isnan(fit["low"]):
        digits = supported_digits(fit["low"], fit["high"])
        limits = f" ({confidence:.0%} interval [{fit['low']:.{digits}f}, {fit['high']:.{digits}f}])"
    return str(fit["group"]), f"Each doubling of the text multiplies perplexity by {fit['factor']:.{digits}f}{limits}."
