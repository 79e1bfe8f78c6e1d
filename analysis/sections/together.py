"""Curves together: overall accuracy, a panel for each phenomenon, and the sizes that several studies share."""

from collections.abc import Callable, Mapping
from functools import partial

import pandas as pd

from analysis.curves.fit import ALL_PAIRS, Curves
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.curves import Level, curves_together, overview_chart
from analysis.exhibits.figures.style import MOST_BANDS, Chart, amount_of
from analysis.exhibits.tables.slopes import banded_lines
from analysis.measures.accuracies import PEOPLE
from analysis.sections.pretrained_models import published_beside
from analysis.sections.section import Report, Section, contributes
from analysis.study.judgements import Judgements
from eval.published import OVERALL
from eval.scores.names import benchmark_name


def overview_exhibit(section: Section, confidence: float) -> Exhibit:
    """Return the figure of overall accuracy: the curves of all models beside people and published models."""
    judged, curves = section.judged, section.curves
    beside = published_beside(section.published, judged.label.partition("+")[0])
    if section.respondents:
        beside = section.published[section.published["model"] == PEOPLE]
    beside = beside[beside["level"] == OVERALL]
    levels = [Level(str(row["model"]), float(row["accuracy"])) for row in beside.to_dict("records")]
    about = f"Accuracy on {benchmark_name(judged.label)} against {amount_of(judged.unit)} (logarithmic). "
    about += marks_text(curves, confidence, OVERALL)
    if levels:
        about += " Level lines: accuracies of others, published unless they are people who were asked here."
        about += section.others_on_more
    charts = {"0": partial(overview_chart, curves, levels, unit=judged.unit)}
    return Exhibit("overview", "Overall accuracy", about, charts=charts, columns=1)


def marks_text(curves: Curves, confidence: float, level: str) -> str:
    """Explain the marks and lines of curves of units of a level that are drawn together."""
    marks = "Marks: means over runs; small marks: runs"
    if curves.lines.empty:
        return f"{marks}; lines join the means."
    two = (curves.slopes["sizes"] == 2).all()
    fits = "the differences between two sizes" if two else "the fits whose slopes are given, over the sizes of each"
    lines = f"{marks}; lines: {fits}"
    bands = banded_lines(curves)["low"].notna()
    if bands.any():
        lines += f", with {confidence:.0%} bands for new runs on these pairs, point by point"
        if level == "phenomenon" and curves.slopes["group"].nunique() > MOST_BANDS:
            lines += ", of the curve that is chosen on the page"
    text = f"{lines}."
    if (curves.lines["low"].notna() & ~bands).any():
        text += " Curves of two sizes have no band, only an interval of their difference."
    shown = curves.lines[(curves.lines["pairs"] == ALL_PAIRS) & (curves.lines["level"] == level)]
    if not shown["accuracy"].between(0, 1).all():
        text += " Fitted lines are drawn up to 1 (down to 0), beyond which there are no accuracies."
    return text


def phenomena_exhibit(section: Section, confidence: float) -> Exhibit | None:
    """Return a panel for each phenomenon with the curves of all models; None for a benchmark without phenomena."""
    curves, judged, published = section.curves, section.judged, section.published
    people = published[(published["model"] == PEOPLE) & (published["level"] == "phenomenon")]
    about = (
        f"Accuracy against {amount_of(judged.unit)}, a panel for each phenomenon, a line for each curve. "
        + marks_text(curves, confidence, "phenomenon")
    )
    draw = partial(curves_together, curves, unit=judged.unit)
    about += section.others_on_more if len(people) else ""
    known = dict(zip(people["name"], people["accuracy"], strict=True))
    exhibit = curves_exhibit("together", "Phenomena", about, curves, draw, known, overall=False)
    return exhibit if exhibit.charts else None


def curves_exhibit(
    name: str,
    heading: str,
    about: str,
    curves: Curves,
    draw: Callable[..., Chart],
    people: Mapping[str, float] | None = None,
    overall: bool = True,
) -> Exhibit:
    """Return a panel per phenomenon, a line per curve, by the mean of their slopes, the steepest first.

    `draw`: figures.curves.curves_together with its options. `people`: their accuracy in phenomena where it is known.
    `overall`: a panel of the whole comes first.
    """
    slopes = curves.slopes[curves.slopes["level"].isin(["phenomenon", *(["overall"] if overall else [])])]
    units = slopes.groupby(["level", "name"], sort=False)["slope"].mean().reset_index()
    units = units.assign(later=units["level"] != "overall").sort_values(["later", "slope"], ascending=[True, False])
    known = {name: (people or {})[name] for name in units["name"] if name in (people or {})}
    charts = {str(number): partial(draw, unit, people=known) for number, unit in enumerate(map(str, units["name"]))}
    groups = [str(group) for group in curves.slopes["group"].unique()]
    return Exhibit(name, heading, about, charts=charts, columns=4, legend=groups)


def common_sizes_exhibit(judged: Judgements, curves: Curves) -> Exhibit:
    """Return a table of accuracies at the sizes that several studies share."""
    shared = common_sizes(judged, curves)
    heading = "Accuracy at common sizes"
    if shared.empty:
        about = "The studies have no size in common, so their accuracies compare only along the curves."
        return Exhibit("common-sizes", heading, about)
    about = "Means over the runs of a size, at the sizes of more than one study. A dash: no run of that size."
    return Exhibit("common-sizes", heading, about, shared.rename(columns={"name": "phenomenon"}).drop(columns="level"))


def common_sizes(judged: Judgements, curves: Curves) -> pd.DataFrame:
    """Return accuracies at the sizes that several studies have: level, name, size and a column per group."""
    studies = judged.runs.groupby("size")["study"].nunique()
    at = curves.accuracies
    at = at[(at["pairs"] == ALL_PAIRS) & (at["level"] != "paradigm") & at["size"].isin(studies[studies > 1].index)]
    sizes = list(at.groupby("size")["words"].mean().sort_values().index)
    wide = at.pivot(index=["level", "name", "size"], columns="group", values="accuracy").reset_index()
    order = {"level": wide["level"] != "overall", "name": wide["name"], "size": wide["size"].map(sizes.index)}
    wide = wide.loc[pd.DataFrame(order).sort_values(["level", "name", "size"]).index].reset_index(drop=True)
    groups = [group for group in judged.runs["group"].unique() if group in wide]
    return wide[["level", "name", "size", *groups]].rename_axis(columns=None)


@contributes(-30)
def together(section: Section, report: Report) -> list[Exhibit | None]:
    exhibits = [overview_exhibit(section, report.confidence), phenomena_exhibit(section, report.confidence)]
    return [*exhibits, common_sizes_exhibit(section.judged, section.curves)] if report.several else [*exhibits]
