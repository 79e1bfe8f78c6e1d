"""Several studies: their curves together, and accuracies at the sizes that they share."""

from collections.abc import Callable
from functools import partial

import pandas as pd

from analysis.curves.fit import ALL_PAIRS, Curves
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.curves import curves_together
from analysis.exhibits.figures.style import Chart
from analysis.sections.section import Report, Section, contributes
from analysis.study.judgements import Judgements


def together_exhibits(judged: Judgements, curves: Curves, people: float | None, confidence: float) -> list[Exhibit]:
    """Return a panel per phenomenon with the curves of all studies, and a table of the sizes that they share."""
    figure = curves_exhibit(
        "together",
        "Curves together",
        f"Accuracy against {judged.unit} of training text, a panel per phenomenon, a line per curve: means over runs, "
        f"with single runs as small marks and {confidence:.0%} intervals over runs as bands. Choose a curve to "
        "highlight it.",
        curves,
        partial(curves_together, curves, unit=judged.unit),
        people,
    )
    shared = common_sizes(judged, curves)
    heading = "Accuracy at common sizes"
    if shared.empty:
        about = "The studies have no size in common, so their accuracies compare only along the curves."
        return [figure, Exhibit("common-sizes", heading, about)]
    about = "Means over the runs of a size, at the sizes of more than one study. A dash: no run of that size."
    table = shared.rename(columns={"name": "phenomenon"}).drop(columns="level")
    return [figure, Exhibit("common-sizes", heading, about, table)]


def curves_exhibit(
    name: str, heading: str, about: str, curves: Curves, draw: Callable[..., Chart], people: float | None = None
) -> Exhibit:
    """Return a panel per phenomenon, a line per curve; `draw`: figures.curves.curves_together with its options."""
    units = curves.slopes.loc[curves.slopes["level"] != "paradigm", ["level", "name"]].drop_duplicates()
    units = units.sort_values("level", key=lambda level: level != "overall", kind="stable")

    def panel(unit: str, people: float | None, width: int | str) -> Chart:
        return draw(unit, people=people, width=width, legend=width != "container")

    charts = {
        str(number): partial(panel, unit, people if unit == "overall" else None)
        for number, unit in enumerate(map(str, units["name"]))
    }
    groups = [str(group) for group in curves.slopes["group"].unique()]
    return Exhibit(name, heading, about, charts=charts, columns=4, legend=groups)


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


@contributes(-20)
def together(section: Section, report: Report) -> list[Exhibit]:
    if not report.several:
        return []
    return together_exhibits(section.judged, section.curves, section.people, report.confidence)
