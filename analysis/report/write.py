"""Writing a report: the page, its tables and its figures."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.config import FigureConfig
from analysis.page import write_page
from analysis.report.exhibit import Exhibit
from pairscale.errors import RunError
from pairscale.files import only_process, write_text
from pairscale.progress import with_progress
from pairscale.tables import write_csv

REPORT_FORMATS = ("html", "md")
QUESTION = "How does knowledge of grammar grow with text?"


@dataclass
class Part:
    """One benchmark in a report, as its files and its page show it.

    Attributes:
        label: the name of its folder of scores.
        name: the benchmark's name for readers.
        lead: one sentence on what was trained and scored.
        first: the figure of the first screen.
        exhibits: tables and figures, in order.
        findings: the (subject, sentence) pairs of the first screen.
        notes: sentences on what else could explain the numbers.
        methods: paragraphs on how this was computed.
        tables: further tables that are written as CSV files, by name.
    """

    label: str
    name: str
    lead: str
    first: Exhibit | None = None
    exhibits: list[Exhibit] = field(default_factory=list)
    findings: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
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
    """Write report.html (or report.md), and each exhibit into tables/ and figures/; return the path of the page.

    If there are several benchmarks, each has a folder of its own. Tables and figures of an earlier report are removed.

    Args:
        folder: the folder of the report.
        study: the study's name.
        parts: the benchmarks.
        commands: the commands that make this report again.
        figure: the size of figures.
        format: one of REPORT_FORMATS.
        question: the heading of the page.

    Raises:
        RunError: if another process is writing the report.
    """
    with only_process(folder / ".lock", folder) as alone:
        if not alone:
            raise RunError(f"{folder}: another process is writing this report (process {os.getpid()} stopped).")
        places = {part.label: part.label if len(parts) > 1 else "" for part in parts}
        exhibits = [(folder / places[part.label], exhibit) for part in parts for exhibit in part.all_exhibits]
        steps = ((1, one) for one in exhibits)
        for place, exhibit in with_progress(steps, "writing tables and figures", len(exhibits), "exhibits"):
            exhibit.write(place, figure)
        for part in parts:
            for name, table in part.tables.items():
                write_csv(folder / places[part.label] / "tables" / f"{name}.csv", table)
        written = {place / name for place, exhibit in exhibits for name in exhibit.files().values()}
        written |= {folder / places[part.label] / "tables" / f"{name}.csv" for part in parts for name in part.tables}
        listed = folder / ".files"  # what this report wrote, so that the next one removes nothing else
        before = listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else []
        names = {str(file.relative_to(folder)) for file in written}
        for name in set(before) - names:
            (folder / name).unlink(missing_ok=True)
            with suppress(OSError):  # a folder that contains something, or is gone
                for emptied in Path(name).parents[:-1]:
                    (folder / emptied).rmdir()
        write_text(listed, "\n".join(sorted(names)) + "\n")
        path = folder / f"report.{format}"
        write_page(path, {"study": study, "question": question, "parts": parts, "places": places, "commands": commands})
        return path
