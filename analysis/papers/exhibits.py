"""The papers' tables and figures as exhibits, of published models and of a study's groups."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pandas as pd

from analysis.curves.fit import CHANCE
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.accuracies import axis_start, condition_chart, gap_chart, matrix_chart
from analysis.exhibits.figures.style import Chart, Frame
from analysis.exhibits.sentences.curves import joined, plural
from analysis.exhibits.sentences.takeaways import values
from analysis.exhibits.tables.text import as_it_is, count, signed_text, yes
from analysis.measures.accuracies import (
    PEOPLE,
    Conditions,
    against,
    by_condition,
    correlations,
    gaps,
    losses,
    paradigm_table,
    wide,
)
from eval.published import OVERALL


def paradigms_exhibit(name: str, heading: str, about: str, accuracies: pd.DataFrame, known: pd.DataFrame) -> Exhibit:
    """Return BLiMP's table 4; `known`: the published list of paradigms (accuracies.paradigm_table)."""
    table = paradigm_table(accuracies, known)
    models = table.columns.difference(["field", "phenomenon", "paradigm", "one_prefix", "two_prefix"], sort=False)
    below = joined([f"{model} in {int((table[model] < CHANCE).sum())}" for model in models])
    takeaways = [("", f"Below chance, of {plural(len(table), 'paradigm')}: {below}.")]
    return Exhibit(name, heading, about, table, cells={"one_prefix": yes, "two_prefix": yes}, takeaways=takeaways)


def people_exhibit(accuracies: pd.DataFrame) -> Exhibit:
    """Return models above and below people."""
    about = "How far each model lies above people (+) or below, by phenomenon."
    rows = gaps(accuracies)
    table = rows.pivot(index=["level", "name"], columns="model", values="gap")[list(dict.fromkeys(rows["model"]))]
    order = sorted(table.index, key=lambda key: (key[0] != "overall", -table.loc[key].mean()))
    shown = table.loc[order].reset_index().drop(columns="level").rename(columns={"name": "phenomenon"})
    shown = shown.rename_axis(None, axis=1)
    signed = dict.fromkeys(shown.columns[1:], signed_text)
    phenomena = rows[rows["level"] == "phenomenon"]
    charts = {"gaps": partial(gap_chart, phenomena)}
    return Exhibit("blimp-people", "Models and people", about, shown, cells=signed, charts=charts)


def correlation_exhibit(name: str, heading: str, about: str, accuracies: pd.DataFrame) -> Exhibit:
    """Return BLiMP's figure 1, and a row for every two models with the interval of their correlation."""
    rows = correlations(accuracies)
    models = list(dict.fromkeys(rows["model"]))
    first = rows["model"].map(models.index) < rows["other"].map(models.index)
    table = rows[first].reset_index(drop=True)
    domain = (min(0.0, float(rows["r"].min())), 1.0)
    draw = partial(matrix_chart, rows, "model", "other", "r", domain=domain, legend="Pearson's r")
    about = f"{about} Limits: 95%, by Fisher's transformation, over paradigms like these."
    cells = {"model": as_it_is, "other": as_it_is, "paradigms": count}
    cells["r"] = signed_text
    charts = {"matrix": draw}
    return Exhibit(name, heading, about, table, cells=cells, charts=charts, takeaways=_with_people(table))


def _with_people(table: pd.DataFrame) -> list[tuple[str, str]]:
    """Say how each model correlates with people; `table`: model, other, r, low, high."""
    rows = table[table["other"] == PEOPLE]
    ours = rows[~rows["model"].str.endswith("(paper)")]
    rows = ours if len(ours) else rows
    two = partial(signed_text, digits=2)
    return [
        (row["model"], f"r = {two(row['r'])} with people, 95% interval [{two(row['low'])}, {two(row['high'])}].")
        for row in rows.to_dict("records")
    ]


def conditions_exhibit(
    name: str, heading: str, about: str, accuracies: pd.DataFrame, panels: Mapping[str, Conditions]
) -> Exhibit | None:
    """Return BLiMP's figure 3 or 4, panels with the same conditions; None if no model has all paradigms of a panel."""
    rows = by_condition(accuracies, panels)
    if rows.empty:
        return None
    keys = ["panel", "model"]
    conditions, order = list(dict.fromkeys(rows["condition"])), rows[keys].drop_duplicates()
    table = rows.pivot(index=keys, columns="condition", values="accuracy")[conditions].reset_index()
    table = order.merge(table, on=keys).merge(losses(rows), on=keys).rename_axis(None, axis=1)
    shown = list(dict.fromkeys(rows["panel"]))
    low = axis_start(rows["accuracy"])
    charts = {f"panel-{i}": partial(_panel, rows, panel, low) for i, panel in enumerate(shown)}
    takeaways = [
        (str(panel) if len(shown) > 1 else "", f"Loss: {values(of_panel, 'model', 'loss', signed_text)}.")
        for panel, of_panel in table.groupby("panel", sort=False)
    ]
    table = table if len(shown) > 1 else table.drop(columns="panel")
    return Exhibit(name, heading, about, table, charts=charts, takeaways=takeaways)


def _panel(rows: pd.DataFrame, panel: str, low: float, frame: Frame) -> Chart:
    return condition_chart(rows[rows["panel"] == panel], frame=frame, heading=panel, domain=(low, 1.0))


def model_table(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Return CLiMP's table 2: a row per model, the overall accuracy and a column per phenomenon."""
    table = pd.concat([wide(accuracies, OVERALL), wide(accuracies, "phenomenon")]).T
    return table.rename_axis("model", axis=0).rename_axis(None, axis=1).reset_index()


def units_exhibit(name: str, heading: str, about: str, rows: pd.DataFrame) -> Exhibit | None:
    """Compare words with characters; `rows`: kind, size, unit (words, characters), accuracy. None without a pair."""
    rows = rows.sort_values("unit", key=lambda column: column != "words", kind="stable")
    table = against(rows, "unit")
    if table.empty:
        return None
    table["gain"] = table["characters"] - table["words"]
    charts = {"units": _chart(rows.merge(table[["kind", "size"]], on=["kind", "size"]), "size", "unit")}
    return Exhibit(name, heading, about, table, cells={"gain": signed_text}, charts=charts)


def sizes_exhibit(name: str, heading: str, about: str, rows: pd.DataFrame, sizes: Sequence[str]) -> Exhibit | None:
    """Compare the same models on more text, from the smallest of `sizes` up; None where no model has two."""
    rows = rows.sort_values("size", key=lambda column: column.map(list(sizes).index), kind="stable")
    table = against(rows, "size")
    if table.empty:
        return None
    charts = {"sizes": _chart(rows.sort_values(["kind", "unit"], kind="stable"), "unit", "size")}
    return Exhibit(name, heading, about, table, charts=charts)


def _chart(rows: pd.DataFrame, part: str, condition: str) -> Callable[..., Chart]:
    """Return a chart of kinds and `part` by `condition`; its axis leaves room above the marks, in whole tenths."""
    drawn = rows.assign(model=rows["kind"] + " · " + rows[part], condition=rows[condition])
    above = min(1.0, math.ceil(float(rows["accuracy"].max()) * 10 + 0.2) / 10)
    return partial(condition_chart, drawn, domain=(axis_start(rows["accuracy"]), above))
