"""The values of report.html, as dictionaries."""

import dataclasses
import shlex
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.curves.fit import ALL_PAIRS
from analysis.exhibits.figures.curves import OVERALL as OVERALL_LINE
from analysis.exhibits.figures.style import TEXT_GREY, phenomenon_style
from analysis.exhibits.sentences import curves as sentences
from analysis.exhibits.sentences.methods import methods
from analysis.exhibits.tables.slopes import slope_name, slope_table
from analysis.exhibits.tables.text import rank_text, table_digits
from analysis.measures.accuracies import OVERALL, PEOPLE
from analysis.report.provenance import provenance
from analysis.sections.people import options
from analysis.sections.section import CURVES, Report, Section, TableSection
from analysis.study.combine import SEPARATOR
from analysis.study.judgements import sized
from eval.scores.table import BESIDE
from pairscale.sizes import written


def page_context(report: Report, folder: Path) -> dict[str, Any]:
    """Return all values of the page; `folder`: of the report, beside those of other studies."""
    kinds = dict.fromkeys(section.kind for section in report.tables)
    return {
        "study": report.study.name.replace(SEPARATOR, f" {SEPARATOR} "),
        "studies": _studies(report, folder),
        "sections": [_section(section, report) for section in report.sections.values()],
        "tables": [_tables(section) for section in report.tables],
        "kinds": [*([CURVES] if report.sections else []), *kinds],
        "commands": [*report.commands, analysis_command(report)],
    }


def groups_of(section: Section) -> list[str]:
    """Return the names of a section's curves, in order."""
    return list(section.curves.slopes["group"].unique())


def _section(section: Section, report: Report) -> dict[str, Any]:
    judged, curves, config, ties = section.judged, section.curves, report.config.analysis, report.config.ties
    table = slope_table(curves)
    paradigms = slope_table(curves, level="paradigm")
    phenomena = curves.slopes.loc[curves.slopes["level"] == "phenomenon", "name"].unique()
    look = phenomenon_style([*phenomena])
    of_paradigms = paradigms[paradigms["level"] == "paradigm"]
    file = report.file_label(section)
    respondents = [section.respondents.methods_text()] if section.respondents else []
    return {
        "label": section.label,
        "file": file,
        "unit": judged.unit,
        "extent": sentences.extent(judged.runs),
        "people": section.respondents.label if section.respondents else "",
        "pairs": judged.n_pairs,
        "findings": section.findings,
        "warnings": sentences.warnings(judged, ties),
        "methods": [*methods(judged, curves, config, ties), *respondents],
        "confidence": f"{config.confidence:.0%}",
        "groups": groups_of(section),
        "legend": [*look.to_dict("records"), {"name": OVERALL_LINE, "colour": TEXT_GREY, "dash": [1, 0], "stroke": 5}],
        "sizes": [str(column).removeprefix("accuracy ") for column in table if str(column).startswith("accuracy ")],
        "slopes": table.assign(rank_text=table.apply(rank_text, axis=1)).to_dict("records"),
        "paradigms": of_paradigms.assign(rank_text="").to_dict("records"),
        "paradigm_count": f"All {sentences.plural(of_paradigms['name'].nunique(), 'paradigm')}",
        "slope_name": slope_name(table),
        "digits": table_digits(table["low"], table["high"]),
        "ranked": bool(table["r2"].notna().any()),
        "fit_tested": "lack_of_fit" in table,
        "published_slopes": "published_slope" in table and bool(table["published_slope"].notna().any()),
        "has_slopes": bool(table["slope"].notna().any()),
        "notes": sorted({f"{row['group']}: {row['note']}" for row in table.to_dict("records") if row["note"]}),
        "levels": _levels(section),
        "first": [exhibit.for_page(f"{file}-") for exhibit in section.first],
        "exhibits": [exhibit.for_page(f"{file}-") for exhibit in section.exhibits],
        **provenance(judged.runs, judged.problems, judged.digest),
    }


def _tables(section: TableSection) -> dict[str, Any]:
    names = ("label", "file", "kind", "extent", "warnings", "methods", "findings")
    return {
        **{name: getattr(section, name) for name in names},
        "exhibits": [exhibit.for_page(f"{section.file}-") for exhibit in section.exhibits],
        **provenance(section.runs, section.problems, section.digest),
    }


def _levels(section: Section) -> dict[str, Any]:
    """Return accuracy at each group's largest size, beside the published models and people: columns and rows."""
    at = section.curves.accuracies
    at = at[(at["pairs"] == ALL_PAIRS) & (at["level"] != "paradigm")]
    largest = at[at["words"] == at.groupby("group")["words"].transform("max")]
    ours = largest.pivot(index=["level", "name"], columns="group", values="accuracy")[groups_of(section)]
    sizes = largest.drop_duplicates("group").set_index("group")["size"]
    theirs = section.published.pivot(index=["level", "name"], columns="model", values="accuracy")
    beside = BESIDE.get(section.label.partition("+")[0], {}) | ({PEOPLE: PEOPLE} if section.respondents else {})
    columns = sorted((model for model in beside if model in theirs), key=lambda model: model == PEOPLE)
    both = ours.join(theirs[columns])
    order = both[ours.columns].mean(axis=1).sort_values(ascending=False).index
    rows = [
        {"level": level, "name": name, "values": [float(value) for value in both.loc[(level, name)]]}
        for level, name in sorted(order, key=lambda key: key[0] != OVERALL)
    ]
    people = section.respondents.label if section.respondents else "published"
    unit = section.judged.unit
    return {
        "columns": [
            *({"name": group, "ours": True, "detail": f"at {sized(sizes[group], unit)}"} for group in ours.columns),
            *(
                {"name": beside[name], "ours": False, "detail": people if name == PEOPLE else "published"}
                for name in columns
            ),
        ],
        "rows": rows,
        "beside": sentences.beside(columns, section.respondents is not None),
    }


def _studies(report: Report, folder: Path) -> list[dict[str, Any]]:
    """Return the extent of each of several studies, in the order of the report's name, and if it has its own report."""
    runs = [section.judged.runs for section in report.sections.values()]
    names = sorted({name for of in runs for name in of["study"]}, key=report.study.name.find)
    if len(names) < 2:
        return []
    table = pd.concat(runs)
    table = table[~table.index.duplicated()]
    return [
        {
            "name": name,
            "extent": sentences.extent(table[table["study"] == name]),
            "report": (folder.parent / name / "report.html").exists(),
            "command": f"python -m analysis study={shlex.quote(name)}",
        }
        for name in names
    ]


def analysis_command(report: Report) -> str:
    """Return the command that writes this report."""
    config = report.config
    source = [] if report.from_files else [f"source={config.source}", f"project={config.project}"]
    chosen = [f"analysis.{name}={written(value)}" for name, value in dataclasses.asdict(config.analysis).items()]
    words = [f"study={report.study.name}", *source, *options(config), *chosen, f"ties={config.ties}"]
    return shlex.join(["python", "-m", "analysis", *words])
