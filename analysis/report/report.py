"""The files of a report: one HTML page that opens without a network, or a document, and its tables and figures."""

import os
import re
from functools import partial
from pathlib import Path
from typing import Any

from analysis.curves.fit import ALL_PAIRS
from analysis.exhibits.figures.curves import learning_curves, slope_chart
from analysis.exhibits.figures.files import write_figure
from analysis.exhibits.figures.style import finished
from analysis.exhibits.sentences.curves import joined
from analysis.exhibits.tables.slopes import slope_table, write_latex
from analysis.page import write_page
from analysis.report.context import page_context
from analysis.report.curves import groups_of
from analysis.report.documents import write_markdown, write_notebook
from analysis.sections.section import Report, Section
from eval.scores.names import benchmark_name
from pairscale.errors import RunError
from pairscale.files import only_process
from pairscale.tables import write_csv


def write_report(folder: Path, report: Report) -> Path:
    """Write the report and, beside it, tables as CSV and LaTeX, figures as SVG, PDF and PNG; return its path.

    Raises RunError where another process is writing it, WriteError where the disk refuses.
    """
    with only_process(folder / ".lock", folder) as alone:
        if not alone:
            raise RunError(f"{folder}: another process is writing this report (process id {os.getpid()} gave way)")
        return _write(folder, report)


def _write(folder: Path, report: Report) -> Path:
    charts: dict[str, dict[str, Any]] = {}
    figure = report.config.analysis.figure
    for section in report.sections.values():
        _write_curves(folder, section, report)
        charts |= {f"{section.label}-{name}": finished(chart) for name, chart in _charts(section).items()}
        prefix = f"{report.file_label(section)}-"
        for exhibit in [*section.first, *section.exhibits]:
            exhibit.write(folder, prefix, figure, **_origin(section, report))
            charts |= exhibit.specifications(prefix)
    for of in report.tables:
        for exhibit in of.exhibits:
            exhibit.write(folder, f"{of.file}-", figure, **of.made_by, benchmark_digest=of.digest[:16])
            charts |= exhibit.specifications(f"{of.file}-")
        write_csv(folder / f"{of.file}-runs.csv", of.runs.drop(columns="manifest").reset_index())
        write_csv(folder / f"{of.file}-problems.csv", of.problems)
    context, path = page_context(report, folder), folder / f"report.{report.config.format}"
    match report.config.format:
        case "html":
            write_page(path, "report.html", charts, context)
        case "md":
            write_markdown(path, context)
        case "ipynb":
            write_notebook(path, context)
    return path


def _charts(section: Section) -> dict[str, Any]:
    """Return the interactive charts, as wide as the page lets them be."""
    unit, people = section.judged.unit, section.people
    charts = {
        f"curve-{i}": learning_curves(section.curves, group, people=people, unit=unit)
        for i, group in enumerate(groups_of(section))
    }
    if section.curves.slopes["slope"].notna().any():
        charts["slopes"] = slope_chart(section.curves.slopes)
    return charts


def _write_curves(folder: Path, section: Section, report: Report) -> None:
    curves, judged = section.curves, section.judged
    label, origin = report.file_label(section), _origin(section, report)
    figure = report.config.analysis.figure
    draw = partial(learning_curves, curves, people=section.people, unit=judged.unit)
    write_figure(folder, f"{label}-curves", [partial(draw, name) for name in groups_of(section)], figure)
    if curves.slopes["slope"].notna().any():
        write_figure(folder, f"{label}-slopes", [partial(slope_chart, curves.slopes)], figure)
    for pairs in curves.slopes["pairs"].unique():
        table = slope_table(curves, pairs)
        name = f"{label}-slopes" if pairs == ALL_PAIRS else f"{label}-slopes-without-unk"
        write_csv(folder / f"{name}.csv", table.assign(**origin))
        caption = _caption(section, pairs, report)
        write_latex(folder / f"{name}.tex", table, caption, f"tab:{name}", report.confidence, figure.narrow)
    write_csv(folder / f"{label}-paradigms.csv", slope_table(curves, level="paradigm").assign(**origin))
    write_csv(folder / f"{label}-accuracies.csv", curves.accuracies.assign(**origin))
    write_csv(folder / f"{label}-points.csv", curves.points.assign(**origin))
    write_csv(folder / f"{label}-runs.csv", judged.runs.drop(columns="manifest").reset_index())
    write_csv(folder / f"{label}-problems.csv", judged.problems)


def _origin(section: Section, report: Report) -> dict[str, str]:
    """Return the columns of every table that record its scores and benchmark."""
    judged = section.judged
    return {"scores": judged.method_names, "ties": report.config.ties, "benchmark_digest": judged.digest[:16]}


def _caption(section: Section, pairs: str, report: Report) -> str:
    """Return the caption of a table of slopes, for a paper."""
    slopes = section.curves.slopes
    methods = sorted(set(slopes.loc[slopes["low"].notna(), "method"]))
    kinds = [kind for kind in ("t", "bootstrap") if any(kind in re.split(r"\W", method) for method in methods)]
    limits = f", with {report.confidence:.0%} intervals for new runs on these pairs" if methods else ""
    limits += f" ({joined(kinds)} intervals)" if kinds else ""
    over = section.judged.over
    names = {"lp": "log-probability", "pll": "pseudo-log-likelihood"}
    score = " or ".join(names.get(name, f"{name} score") for name in section.judged.method_names.split(" or "))
    mean = f", on average over {over}" if over else ""
    free = "" if pairs == ALL_PAIRS else " Pairs without unknown words only."
    return (
        f"Accuracy on {benchmark_name(section.label)} gained per doubling of the training text{limits}. A pair counts "
        f"as right where the good sentence has the higher {score}{mean}; a tie counts as {report.config.ties}.{free}"
    )
