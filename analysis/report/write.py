"""Writing a report: the page, its tables and its figures."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.config import FigureConfig
from analysis.figures.style import PAGE, finished
from analysis.page import write_page
from analysis.report.exhibit import Exhibit
from pairscale.errors import RunError
from pairscale.files import only_process
from pairscale.progress import with_progress
from pairscale.tables import write_csv

REPORT_FORMATS = ("html", "md")
QUESTION = "How does knowledge of grammar grow with text?"


@dataclass
class Part:
    """One benchmark in a report.

    Attributes:
        label: the name of its folder of scores.
        name: the benchmark's name for readers.
        lead: one sentence on what was trained and scored.
        first: the figure of the first screen.
        exhibits: tables and figures, in order.
        headline, findings, notes, checked: the texts of the first screen; findings are (subject, sentence) pairs.
        methods: paragraphs on how this was computed.
        tables: further tables that are written as CSV files, by name.
    """

    label: str
    name: str
    lead: str
    first: Exhibit | None = None
    exhibits: list[Exhibit] = field(default_factory=list)
    headline: str = ""
    findings: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    checked: str = ""
    methods: Sequence[str] = ()
    tables: dict[str, Any] = field(default_factory=dict)

    @property
    def all_exhibits(self) -> list[Exhibit]:
        return [*([self.first] if self.first else []), *self.exhibits]


def write_report(
    folder: Path,
    study: str,
    parts: Sequence[Part],
    commands: Sequence[str],
    figure: FigureConfig,
    format: str = "html",
    question: str = QUESTION,
) -> Path:
    """Write report.html (or report.md), and each exhibit into tables/ and figures/.

    If there are several benchmarks, each has a folder of its own.

    Args:
        folder: the folder of the report.
        study: the study's name.
        parts: the benchmarks.
        commands: the commands that make this report again.
        figure: the size of figures.
        format: one of REPORT_FORMATS.
        question: the heading of the page.

    Returns:
        The path of the page.

    Raises:
        RunError: if another process is writing the report.
    """
    with only_process(folder / ".lock", folder) as alone:
        if not alone:
            raise RunError(f"{folder}: another process is writing this report (process {os.getpid()} stopped).")
        exhibits = [(part, exhibit) for part in parts for exhibit in part.all_exhibits]
        places = {part.label: folder / part.label if len(parts) > 1 else folder for part in parts}
        steps = ((1, one) for one in exhibits)
        for part, exhibit in with_progress(steps, "writing tables and figures", len(exhibits), "exhibits"):
            exhibit.write(places[part.label], figure)
        for part in parts:
            for name, table in part.tables.items():
                write_csv(places[part.label] / "tables" / f"{name}.csv", table)
        path = folder / f"report.{format}"
        context: dict[str, Any] = {"study": study, "question": question, "parts": _pages(parts), "commands": commands}
        if format == "html":
            context["charts"] = {
                _anchor(part, exhibit, name): finished(draw(frame=PAGE))
                for part, exhibit in exhibits
                for name, draw in exhibit.charts.items()
            }
        write_page(path, context)
        return path


def _anchor(part: Part, exhibit: Exhibit, *chart: str) -> str:
    return "-".join([part.label, exhibit.name, *chart])


def _pages(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Return what the page shows of each part; figures and tables are numbered through the page."""
    figures, tables = 0, 0
    pages = []
    for part in parts:
        folder = f"{part.label}/" if len(parts) > 1 else ""
        items = []
        for exhibit in part.all_exhibits:
            figures, tables = figures + bool(exhibit.charts), tables + bool(exhibit.rows)
            legend = exhibit.legend.to_dict("records") if exhibit.legend is not None else []
            items.append(
                {
                    **vars(exhibit),
                    "exhibit": exhibit,
                    "anchor": _anchor(part, exhibit),
                    "figure": figures,
                    "number": tables,
                    "charts": [_anchor(part, exhibit, name) for name in exhibit.charts],
                    "legend": legend if len(legend) > 1 else [],
                    "files": {kind: f"{folder}{name}" for kind, name in exhibit.files().items()},
                }
            )
        first = items.pop(0) if part.first else None
        pages.append({**vars(part), "anchor": part.label, "first": first, "items": items})
    return pages
