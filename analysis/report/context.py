"""The values of report.html, as dictionaries."""

import dataclasses
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.exhibits.sentences import curves as sentences
from analysis.exhibits.sentences.ablations import ablation_methods
from analysis.exhibits.sentences.methods import methods
from analysis.exhibits.sentences.training import comparisons_made, training
from analysis.page import numbered
from analysis.report.curves import curve_items
from analysis.report.provenance import provenance
from analysis.sections.curves import COMPARISONS
from analysis.sections.people import options
from analysis.sections.section import (
    CHILDREN,
    CURVES,
    DIAGNOSTICS,
    MODELS,
    PLAN,
    RATINGS,
    READING,
    SUITES,
    Report,
    Section,
    TableSection,
)
from analysis.study.combine import SEPARATOR
from analysis.study.sources.source import overrides, sources
from eval.scores.names import benchmark_names
from pairscale.command.line import readable
from pairscale.sizes import written

OVERVIEW = "overview"  # name of the exhibit on the first screen
_QUESTIONS = {
    CURVES: "How does knowledge of grammar grow with text?",
    MODELS: "How well do these models know grammar?",
    DIAGNOSTICS: "What do these models expect?",
    SUITES: "Do these models expect what grammar predicts?",
    RATINGS: "Do these models find good what people find good?",
    PLAN: "How much must be trained to find it?",
    READING: "Does surprisal predict how long people read a word?",
    CHILDREN: "Do models learn words in the order in which children do?",
}


def page_context(report: Report, folder: Path) -> dict[str, Any]:
    """Return all values of the page; `folder`: of the report, beside those of other studies."""
    names = benchmark_names([*report.sections, *(section.label for section in report.tables)])
    parts = [_section(section, report, names) for section in report.sections.values()]
    parts += [_tables(section, names) for section in report.tables]
    kinds = list(dict.fromkeys(part["kind"] for part in parts))
    numbered(item for part in parts for item in [*filter(None, [part["overview"]]), *part["items"]])
    return {
        "study": report.study.name.replace(SEPARATOR, f" {SEPARATOR} "),
        "question": _QUESTIONS[kinds[0]],
        "studies": _studies(report, folder),
        "parts": parts,
        "kinds": kinds,
        "commands": [*report.commands, analysis_command(report)],
    }


def _section(section: Section, report: Report, names: Mapping[str, str]) -> dict[str, Any]:
    judged, config, ties, file = section.judged, report.config.analysis, report.config.ties, report.file_label(section)
    before, after = ([exhibit.for_page(f"{file}-") for exhibit in of] for of in (section.first, section.exhibits))
    overview = next((item for item in before if item["name"] == OVERVIEW), None)
    items = [*(item for item in before if item is not overview), *curve_items(section, report), *after]
    takeaways = {
        "together": [(finding.subject, finding.details) for finding in section.findings if finding.details],
        COMPARISONS: [(finding.subject, finding.full) for finding in section.comparisons],
    }
    for item in items:
        item["takeaways"] = item["takeaways"] or takeaways.get(item["name"], [])
    respondents = [section.respondents.methods_text()] if section.respondents else []
    return {
        "label": section.label,
        "file": file,
        "name": names[section.label],
        "kind": CURVES,
        "lead": sentences.lead(judged),
        "extent": sentences.extent(judged.runs) + ".",
        "findings": [*section.effects, *section.findings, *(section.comparisons if report.several else [])],
        "warnings": sentences.warnings(judged, ties, section.fitted),
        "ruled_out": sentences.ruled_out(judged, section.fitted),
        "overview": overview,
        "items": items,
        "methods": [
            *training(judged.runs, report.study.config),
            *methods(section.fitted, section.curves, config, ties),
            *(ablation_methods(section.ablations, config) if section.ablations else []),
            *comparisons_made(section.curves.slopes, section.tables.get("slope-differences")),
            *respondents,
        ],
        "where": "in the curves",
        **provenance(judged.runs, judged.problems, judged.digest),
    }


def _tables(section: TableSection, names: Mapping[str, str]) -> dict[str, Any]:
    fields = ("label", "file", "kind", "warnings", "methods", "findings")
    return {
        **{name: getattr(section, name) for name in fields},
        "name": f"{names[section.label]}: {section.kind.lower()}" if section.kind == MODELS else names[section.label],
        "lead": section.extent,
        "extent": "",
        "ruled_out": "",
        "overview": None,
        "items": [exhibit.for_page(f"{section.file}-") for exhibit in section.exhibits],
        "where": "here",
        **provenance(section.runs, section.problems, section.digest),
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
            "command": shlex.join(["python", "-m", "analysis", readable(f"study={name}")]),
        }
        for name in names
    ]


def analysis_command(report: Report) -> str:
    """Return the command that writes this report."""
    config = report.config
    source = [] if report.from_files else [f"source={config.source}"]
    source += overrides(config, sources()[config.source].keys)
    chosen = [f"analysis.{name}={written(value)}" for name, value in dataclasses.asdict(config.analysis).items()]
    paths = [f"paths.{name}={getattr(config.paths, name)}" for name in ("runs", "reports")]
    paths = [path for path in paths if path not in ("paths.runs=runs", "paths.reports=reports")]
    form = [] if config.format == "html" else [f"format={config.format}"]
    words = [f"study={report.study.name}", *form, *source, *options(config), *chosen, f"ties={config.ties}", *paths]
    return shlex.join(["python", "-m", "analysis", *map(readable, words)])
