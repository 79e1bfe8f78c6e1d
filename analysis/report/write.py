"""Write a report: the page, its tables and its figures."""

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
    """The part of a report about one benchmark.

    Attributes:
        label: The name of its folder of scores.
        name: The display name of the benchmark.
        lead: A sentence on what was trained and scored.
        first: The figure at the top.
        exhibits: Tables and figures, in order.
        findings: (subject, sentence) pairs with the main results.
        notes: Notes on other possible explanations of the results.
        methods: Paragraphs on how the results were computed.
        tables: More tables to write as CSV files, by name.
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


def places_of(parts: Sequence[Part]) -> dict[str, str]:
    """Return each part's folder inside the report's folder, by label. A single part has no folder of its own ("")."""
    return {part.label: part.label if len(parts) > 1 else "" for part in parts}


def write_report(
    folder: Path,
    study: str,
    parts: Sequence[Part],
    commands: Sequence[str],
    figure: FigureConfig,
    format: str = "html",
    question: str = QUESTION,
) -> Path:
    """Write report.html or report.md, and the exhibits in tables/ and figures/. Return the path of the page.

    Each part's files are in the folder that `places_of` returns. Tables and figures of an earlier report are removed.

    Args:
        folder: The folder of the report.
        study: The name of the study.
        parts: One part per benchmark.
        commands: The commands that reproduce this report.
        figure: The size of figures.
        format: One of REPORT_FORMATS.
        question: The heading of the page.

    Raises:
        RunError: If another process is writing the report.
    """
    with only_process(folder / ".lock", folder) as alone:
        if not alone:
            raise RunError(f"{folder}: another process is writing this report. Wait until it is done and try again.")
        places = places_of(parts)
        exhibits = [(folder / places[part.label], exhibit) for part in parts for exhibit in part.all_exhibits]
        steps = ((1, one) for one in exhibits)
        for place, exhibit in with_progress(steps, "writing tables and figures", len(exhibits), "exhibits"):
            exhibit.write(place, figure)
        for part in parts:
            for name, table in part.tables.items():
                write_csv(folder / places[part.label] / "tables" / f"{name}.csv", table)
        written = {place / name for place, exhibit in exhibits for name in exhibit.files().values()}
        written |= {folder / places[part.label] / "tables" / f"{name}.csv" for part in parts for name in part.tables}
        listed = folder / ".files"  # the files of this report, so that the next report removes only these
        before = listed.read_text(encoding="utf-8").splitlines() if listed.is_file() else []
        names = {str(file.relative_to(folder)) for file in written}
        for name in set(before) - names:
            (folder / name).unlink(missing_ok=True)
            with suppress(OSError):  # the folder isn't empty, or doesn't exist
                for emptied in Path(name).parents[:-1]:
                    (folder / emptied).rmdir()
        write_text(listed, "\n".join(sorted(names)) + "\n")
        path = folder / f"report.{format}"
        write_page(path, {"study": study, "question": question, "parts": parts, "places": places, "commands": commands})
        return path
