"""The exhibits that every benchmark with curves has: learning curves, slopes, and accuracy at the largest sizes.

Their files are written by report.py; those named here are what the page offers to download.
"""

from typing import Any

import pandas as pd

from analysis.curves.fit import ALL_PAIRS
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.curves import OVERALL as OVERALL_LINE
from analysis.exhibits.figures.style import TEXT_GREY, amount_of, phenomenon_style
from analysis.exhibits.sentences import curves as sentences
from analysis.exhibits.sentences.findings import UNCORRECTED
from analysis.exhibits.tables.slopes import slope_name, slope_table
from analysis.exhibits.tables.text import DASH, accuracy_text, p_text, rank_text, slope_text
from analysis.measures.accuracies import PEOPLE
from analysis.sections.section import Report, Section
from analysis.study.judgements import sized
from eval.published import OVERALL
from eval.scores.table import BESIDE
from pairscale.sizes import format_size, readable_size

WIDE = 7  # entries of the legend of curves: beside more names, the page has room for one panel in a row
NEW_PAIRS = "new pairs too"  # column


def groups_of(section: Section) -> list[str]:
    """Return the names of a section's curves, in order."""
    return list(section.curves.slopes["group"].unique())


def curve_items(section: Section, report: Report) -> list[dict[str, Any]]:
    """Return the values of exhibits.html for a section's curves and slopes, as Exhibit.for_page does."""
    file = report.file_label(section)
    slopes = _figures("slopes") if _has_slopes(section) else {}
    slopes |= {"CSV": "slopes.csv", "LaTeX": "slopes.tex"}
    curves = {**_figures("curves"), "means (CSV)": "accuracies.csv", "runs (CSV)": "points.csv"}
    of_groups = [f"{section.label}-curve-{number}" for number in range(len(groups_of(section)))]
    parts: list[tuple[Exhibit, dict[str, str], list[str], list[dict[str, Any]]]] = [
        (_curves(section, report), curves, of_groups, _legend(section)),
        (_slopes(section, report), slopes, [f"{section.label}-slopes"] if _has_slopes(section) else [], []),
        (_paradigms(section, report), {"CSV": "paradigms.csv"}, [], []),
        (_levels(section), {}, [], []),
    ]
    return [
        exhibit.for_page(f"{file}-")
        | {"wide": exhibit.name == "curves" and len(legend) > WIDE}
        | {"files": {kind: f"{file}-{name}" for kind, name in files.items()}, "charts": charts, "legend": legend}
        for exhibit, files, charts, legend in parts
    ]


def _figures(name: str) -> dict[str, str]:
    return {kind: f"{name}.{kind.lower()}" for kind in ("SVG", "PDF", "PNG")}


def _has_slopes(section: Section) -> bool:
    return bool(section.curves.slopes["slope"].notna().any())


def _legend(section: Section) -> list[dict[str, Any]]:
    slopes = section.curves.slopes
    look = phenomenon_style([*slopes.loc[slopes["level"] == "phenomenon", "name"].unique()])
    rows = [{str(key): value for key, value in row.items()} for row in look.to_dict("records")]
    return [*rows, {"name": OVERALL_LINE, "colour": TEXT_GREY, "dash": [1, 0], "stroke": 5}]


def _curves(section: Section, report: Report) -> Exhibit:
    people = f" People: {section.respondents.label}." if section.respondents else ""
    about = f"Accuracy against {amount_of(section.judged.unit)} (logarithmic), a panel for each curve.{people}"
    bands = f"{report.confidence:.0%} interval for new runs on these pairs, of the chosen phenomenon."
    lines = "The fits whose slopes are given"
    if section.curves.lines.empty:
        lines = "Means over the runs of a size"
    elif (section.curves.slopes["sizes"] == 2).all():
        lines, bands = "The differences between two sizes", "Two sizes have none, only an interval of their difference."
    definitions = {
        "Lines": f"{lines}; grey: the whole benchmark.",
        "Marks": "Means over the runs of a size; small ones, of the chosen phenomenon: single runs.",
    }
    if section.curves.lines["low"].notna().any():
        definitions["Band"] = bands
    return Exhibit(
        "curves",
        "Learning curves",
        about,
        takeaways=_extremes(section),
        definitions=definitions,
    )


def _slopes(section: Section, report: Report) -> Exhibit:
    table = slope_table(section.curves)
    table = table.sort_values("level", key=lambda level: level != OVERALL, kind="stable")
    name = slope_name(table)
    published = "published_slope" in table and bool(table["published_slope"].notna().any())
    about = "Accuracy gained per doubling of the text, on these pairs." if _has_slopes(section) else ""
    if published:
        about += (
            " Published: Warstadt et al. 2020, section 6.3, models of the same architecture on 1/8M to 64M words of "
            "Wikipedia; they may differ from ours in size, text and range of sizes."
            + (
                " They are over all paradigms of a phenomenon, of which the study has a part."
                if section.is_part
                else ""
            )
        )
    return Exhibit(
        "slopes",
        "Differences" if name != "slope" else "Slopes",
        " ".join([about, *sentences.slope_notes(table)]).strip(),
        takeaways=[(finding.subject, finding.text) for finding in section.correlations or section.findings],
        definitions=_definitions(section, report, name),
        **_table(section, report, "phenomenon", table),
    )


def _paradigms(section: Section, report: Report) -> Exhibit:
    table = slope_table(section.curves, level="paradigm")
    table = table[table["level"] == "paradigm"].assign(rank=float("nan"))
    what = "Slopes" if slope_name(table) == "slope" else "Differences"
    about = " ".join(
        [
            "The same for each paradigm, a set of pairs made alike.",
            *sentences.rough_limits(table),
            *sentences.without_limits(table),
        ]
    )
    takeaways = [
        (str(group), _directions(rows, report.confidence))
        for group, rows in table.groupby("group", sort=False)
        if rows["low"].notna().any()
    ]
    shown = _table(section, report, "paradigm", table)
    return Exhibit("paradigms", f"{what} by paradigm", about, takeaways=takeaways, **shown)


def _directions(rows: pd.DataFrame, confidence: float) -> str:
    """Count the paradigms that rise and fall; `rows`: of one curve in a `slope_table`."""
    known = rows[rows["low"].notna()]
    rise, fall = int((rows["low"] > 0).sum()), int((rows["high"] < 0).sum())
    of = sentences.plural(len(known), "paradigm") + (" with an interval" if len(known) < len(rows) else "")
    two = slope_name(rows) != "slope"
    up, down = ("is higher at the larger size", "lower") if two else ("rises", "falls")
    return f"accuracy {up} in {rise} of {of} and {down} in {fall} (by {confidence:.0%} intervals, {UNCORRECTED})."


def _extremes(section: Section) -> list[tuple[str, str]]:
    """Return the lowest and the highest phenomenon of each curve at its largest size."""
    at = section.curves.accuracies
    at = at[(at["pairs"] == ALL_PAIRS) & (at["level"] == "phenomenon")]
    takeaways = []
    for group, rows in at.groupby("group", sort=False):
        rows = rows[rows["words"] == rows["words"].max()].sort_values("accuracy")
        lowest, highest = (
            f"{accuracy_text(row['accuracy'])} ({sentences.in_text(row['name'])})"
            for _, row in rows.iloc[[0, -1]].iterrows()
        )
        size = sized(rows["size"].iloc[0], section.judged.unit)
        takeaways.append((str(group), f"mean accuracies at {size} lie between {lowest} and {highest}."))
    return takeaways


def _table(section: Section, report: Report, level: str, table: pd.DataFrame) -> dict[str, Any]:
    """Return the fields of an Exhibit that show a `slope_table`."""
    slope, interval = slope_name(table), f"{report.confidence:.0%} interval"
    sizes = [str(column) for column in table if str(column).startswith("accuracy ")]
    shown = {level: table["name"]}
    if len(groups_of(section)) > 1:
        shown["curve"] = table["group"]
    shown |= {size.removeprefix("accuracy "): table[size] for size in sizes}
    texts: dict[str, list[str]] = {}
    intervals = {interval: ("low", "high"), NEW_PAIRS: ("low_new_pairs", "high_new_pairs")}
    intervals = {heading: limits for heading, limits in intervals.items() if table[limits[0]].notna().any()}
    if table["slope"].notna().any():
        shown |= {slope: table["slope"], **{name: table[name] for limits in intervals.values() for name in limits}}
        if table["r2"].notna().any():
            shown["R²"] = table["r2"]
        if "lack_of_fit" in table and table["lack_of_fit"].notna().any():
            shown["lack of fit, p"] = table["lack_of_fit"]
        if table["rank"].notna().any():
            shown["rank"], texts["rank"] = table["rank"], [rank_text(row) for _, row in table.iterrows()]
        shown["onset"], texts["onset"] = table["onset"], [*map(_size, table["onset"])]
    if "published_slope" in table and table["published_slope"].notna().any():
        shown["published"] = table["published_slope"]
    return {
        "table": pd.DataFrame(shown),
        "cells": {slope: slope_text, "lack of fit, p": p_text, "published": slope_text},
        "texts": texts,
        "intervals": {heading: (slope, *limits) for heading, limits in intervals.items() if slope in shown},
        "optional": [NEW_PAIRS],
    }


def _size(words: float) -> str:
    return DASH if pd.isna(words) else readable_size(format_size(round(words)))


def _definitions(section: Section, report: Report, slope: str) -> dict[str, str]:
    """Return what the columns of slopes mean."""
    interval = f"{report.confidence:.0%} interval"
    if not _has_slopes(section):
        return {}
    definitions = {
        "16k, 1M and so on": f"Mean accuracy of the runs at so many {amount_of(section.judged.unit)}.",
        slope.capitalize(): "Accuracy gained per doubling of the training text.",
        interval: "For new samples of text and new initialisations, on these pairs.",
        "New pairs too": f"{interval} for new samples, initialisations and pairs of the same paradigms.",
        "R²": "Share of the variance of accuracy that the line explains.",
        "Lack of fit, p": "p value of the test of the line: small where accuracies do not lie on one.",
        "Rank": f"1: the steepest phenomenon of its curve; in brackets, the {interval} of the rank, where it is known.",
        "Onset": f"{section.judged.unit.capitalize()} from which on the lower bound of accuracy exceeds the baseline "
        "(methods).",
    }
    table = slope_table(section.curves)
    fields = _table(section, report, "phenomenon", table)
    columns = {name.capitalize() for name in (*fields["table"], *fields["intervals"])} | {"16k, 1M and so on"}
    shown = {term: text for term, text in definitions.items() if term in columns}
    return shown | sentences.cautions_explained(table, report.confidence)


def _levels(section: Section) -> Exhibit:
    """Return accuracy at each group's largest size, beside the published models and people."""
    at = section.curves.accuracies
    at = at[(at["pairs"] == ALL_PAIRS) & (at["level"] != "paradigm")]
    largest = at[at["words"] == at.groupby("group")["words"].transform("max")]
    ours = largest.pivot(index=["level", "name"], columns="group", values="accuracy")[groups_of(section)]
    sizes = largest.drop_duplicates("group").set_index("group")["size"]
    theirs = section.published.pivot(index=["level", "name"], columns="model", values="accuracy")
    beside = BESIDE.get(section.label.partition("+")[0], {}) | ({PEOPLE: PEOPLE} if section.respondents else {})
    columns = sorted((model for model in beside if model in theirs), key=lambda model: model == PEOPLE)
    order = ours.mean(axis=1).sort_values(ascending=False).index
    people = section.respondents.label if section.respondents else "published"
    at_sizes = {group: f"{group} at {sized(sizes[group], section.judged.unit)}" for group in ours.columns}
    names = {name: f"{beside[name]} ({people if name == PEOPLE else 'published'})" for name in columns}
    # Renamed before they are joined: the study may have a model of a published one's name.
    both = ours.rename(columns=at_sizes).join(theirs[columns].rename(columns=names))
    both = both.loc[sorted(order, key=lambda key: key[0] != OVERALL)]
    table = both.reset_index().drop(columns="level")
    table = table.rename(columns={"name": "phenomenon"}).rename_axis(columns=None)
    others = sentences.beside(columns, section.respondents is not None)
    overall = [f"{text}: {accuracy_text(table[text].iloc[0])}" for text in at_sizes.values()]
    known = PEOPLE in names and bool(table[names[PEOPLE]].notna().iloc[0])
    overall += [f"people: {accuracy_text(table[names[PEOPLE]].iloc[0])}"] if known else []
    about = f"Means over the runs at each curve's largest size{f', beside {others}' if others else ''}."
    about += section.others_on_more if columns else ""
    return Exhibit(
        "levels",
        "Accuracy at the largest size",
        about,
        table,
        takeaways=[("Overall", f"{'; '.join(overall)}.")],
    )
