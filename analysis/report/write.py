"""Writing a report: the page, its tables and its figures."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.config import FigureConfig
from analysis.formats import with_minus_signs
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
    exhibits: Sequence[Exhibit] = ()
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

    Returns:
        The path of the page.

    Raises:
        RunError: if another process is writing the report.
    """
    with only_process(folder / ".lock", folder) as alone:
        if not alone:
            raise RunError(f"{folder}: another process is writing this report (process {os.getpid()} stopped).")
        places = {part.label: folder / part.label if len(parts) > 1 else folder for part in parts}
        exhibits = [(places[part.label], exhibit) for part in parts for exhibit in part.all_exhibits]
        steps = ((1, one) for one in exhibits)
        for place, exhibit in with_progress(steps, "writing tables and figures", len(exhibits), "exhibits"):
            exhibit.write(place, figure)
        for part in parts:
            for name, table in part.tables.items():
                write_csv(places[part.label] / "tables" / f"{name}.csv", table)
        path = folder / f"report.{format}"
        pages = _items(parts, len(parts) > 1)
        if format == "md":
            write_text(path, _markdown(study, parts, pages, commands))
        else:
            charts = {
                name: chart
                for part in parts
                for exhibit in part.all_exhibits
                for name, chart in exhibit.page_charts(f"{part.label}-").items()
            }
            write_page(path, charts, {"study": study, "question": QUESTION, "parts": pages, "commands": list(commands)})
        return path


def _items(parts: Sequence[Part], several: bool) -> list[dict[str, Any]]:
    """Return the values of report.html for each part; figures and tables are numbered through the page."""
    figures, tables = 0, 0
    pages = []
    for part in parts:
        items = []
        for exhibit in part.all_exhibits:
            rows = 0 if exhibit.table is None else len(exhibit.table)
            figures, tables = figures + bool(exhibit.charts), tables + bool(rows)
            prefix = f"{part.label}/" if several else ""
            legend = exhibit.legend.to_dict("records") if exhibit.legend is not None and len(exhibit.legend) > 1 else []
            items.append(
                {
                    "anchor": f"{part.label}-{exhibit.name}",
                    "heading": exhibit.heading,
                    "about": exhibit.about,
                    "takeaways": list(exhibit.takeaways),
                    "definitions": dict(exhibit.definitions),
                    "table": exhibit.html() if rows else "",
                    "rows": rows,
                    "figure": figures,
                    "number": tables,
                    "charts": [f"{part.label}-{exhibit.name}-{name}" for name in exhibit.charts],
                    "legend": legend,
                    "small": exhibit.columns > 2,
                    "files": {kind: f"{prefix}{name}" for kind, name in exhibit.files().items()},
                }
            )
        pages.append(
            {
                "anchor": part.label,
                "name": part.name,
                "lead": part.lead,
                "headline": part.headline,
                "findings": list(part.findings),
                "notes": list(part.notes),
                "checked": part.checked,
                "methods": list(part.methods),
                "first": items[0] if part.first else None,
                "items": items[1:] if part.first else items,
            }
        )
    return pages


def _markdown(study: str, parts: Sequence[Part], pages: Sequence[dict[str, Any]], commands: Sequence[str]) -> str:
    """Return the report as Markdown that shows the SVG files beside it."""
    blocks = [f"# {QUESTION}", f"Study {_escaped(study)}."]
    for part, page in zip(parts, pages, strict=True):
        blocks += [f"## {_escaped(part.name)}", _escaped(part.lead)]
        blocks += [f"**{_escaped(part.headline)}**"] if part.headline else []
        blocks += [_statement(*finding) for finding in part.findings]
        if part.notes or part.checked:
            listed = [f"- {_escaped(note)}" for note in [*part.notes, part.checked] if note]
            blocks += ["**Before you quote these numbers**", "\n".join(listed)]
        items = [*([page["first"]] if page["first"] else []), *page["items"]]
        for exhibit, item in zip(part.all_exhibits, items, strict=True):
            blocks += [f"### {_escaped(exhibit.heading)}", *(_statement(*takeaway) for takeaway in exhibit.takeaways)]
            if exhibit.charts:
                blocks += [
                    f"![Figure {item['figure']}]({item['files']['SVG']})",
                    f"**Figure {item['figure']}.** {_escaped(exhibit.about)}",
                ]
            if item["rows"]:
                about = "The numbers." if exhibit.charts else exhibit.about
                blocks += [f"**Table {item['number']}.** {_escaped(about)}", _table(exhibit)]
        blocks += [_escaped(text) for text in part.methods]
    listed_commands = "\n".join(commands)
    return "\n\n".join([*blocks, f"## Make it again\n\n```sh\n{listed_commands}\n```"]) + "\n"


def _table(exhibit: Exhibit) -> str:
    texts = exhibit.texts
    rows = [list(map(str, texts.columns)), *texts.to_numpy().tolist()]
    lines = [f"| {' | '.join(map(_escaped, row))} |" for row in rows]
    sides = ["---:" if exhibit.is_numeric(str(name)) else "---" for name in texts]
    return "\n".join([lines[0], f"| {' | '.join(sides)} |", *lines[1:]])


def _statement(subject: str, text: str) -> str:
    return f"**{_escaped(subject)}**: {_escaped(text)}" if subject else _escaped(text)


def _escaped(text: str) -> str:
    """Return text on one line in which Markdown and HTML see no markup."""
    for character in "\\`*_[]<>|#~$":
        text = text.replace(character, f"\\{character}")
    return with_minus_signs(" ".join(text.split()))
