"""Several studies: their curves together, and accuracies at the sizes that they share."""

from __future__ import annotations

from functools import partial

import pandas as pd

from analysis.curves.fit import ALL_PAIRS, Curves
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.curves import curves_together
from analysis.exhibits.tables.text import as_it_is
from analysis.sections.section import Report, Section, contributes
from analysis.study.judgements import Judgements


def together_exhibits(judged: Judgements, curves: Curves, people: float | None, confidence: float) -> list[Exhibit]:
    """Return a panel per phenomenon with the curves of all studies, and a table of the sizes that they share."""
    units = curves.slopes.loc[curves.slopes["level"] != "paradigm", ["level", "name"]].drop_duplicates()
    ordered = units.sort_values("level", key=lambda level: level != "overall", kind="stable")
    names = [str(name) for name in ordered["name"]]
    groups = [str(group) for group in curves.slopes["group"].unique()]

    def draw(name: str, width: int | str) -> object:
        return curves_together(
            curves, name, people=people if name == "overall" else None, unit=judged.unit, width=width,
            legend=width != "container",
        )  # fmt: skip

    figure = Exhibit(
        "together",
        "Curves together",
        f"Accuracy against {judged.unit} of training text, a panel per phenomenon, a line per curve: means over runs, "
        f"with single runs as small marks and {confidence:.0%} intervals over runs as bands. Choose a curve to "
        "see it alone.",
        charts={str(i): partial(draw, name) for i, name in enumerate(names)},
        columns=4,
        legend=groups,
    )
    shared = common_sizes(judged, curves)
    if shared.empty:
        about = "The studies have no size in common, so that their accuracies can be compared along the curves only."
        return [figure, Exhibit("common-sizes", "Accuracy at common sizes", about)]
    table = Exhibit(
        "common-sizes",
        "Accuracy at common sizes",
        "Means over the runs of a size, at the sizes that more than one study has. A dash: no run of that size.",
        shared.rename(columns={"name": "phenomenon"}).drop(columns="level"),
        cells={"size": as_it_is},
        strong=tuple(i for i, level in enumerate(shared["level"]) if level == "overall"),
    )
    return [figure, table]


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
