"""The report of `python -m analysis published=true`: the papers' tables and figures from published accuracies."""

from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.config import FigureConfig
from analysis.exhibits.sentences.curves import plural
from analysis.page import numbered, write_page
from analysis.papers.papers import Paper
from pairscale.tables import write_csv

FOLDER = "published"  # of the report
LONGEST = 40  # rows of a table that a terminal shows


def write_reproduction(folder: Path, papers: list[Paper], figure: FigureConfig) -> Path:
    """Write report.html and, beside it, every table as CSV and LaTeX, every figure as SVG, PDF and PNG."""
    charts: dict[str, dict[str, Any]] = {}
    for paper in papers:
        for exhibit in paper.exhibits:
            exhibit.write(folder, figure=figure)
            charts |= exhibit.specifications()
        if len(paper.checks):
            write_csv(folder / f"{paper.name}-statements.csv", paper.checks)
    entries: list[dict[str, Any]] = [
        {
            "name": paper.name,
            "short": paper.short,
            "citation": paper.citation,
            "exhibits": [exhibit.for_page() for exhibit in paper.exhibits],
            "statements": _statements(paper.checks),
            "summary": summary(paper.checks),
        }
        for paper in papers
    ]
    numbered(item for paper in entries for item in paper["exhibits"])
    differing = [
        row | {"place": f"{paper['short']}, {row['place']}"}
        for paper in entries
        for row in paper["statements"]
        if not row["agrees"]
    ]
    path = folder / "report.html"
    write_page(path, "published.html", charts, {"papers": entries, "differing": differing})
    return path


def summary(checks: pd.DataFrame) -> str:
    """Count the statements that follow from the published accuracies, and those of them that follow by our choice."""
    chosen = int((checks["agrees"] & checks["chosen"]).sum())
    by_choice = f", {chosen} of them by a choice of paradigms that the paper does not name" if chosen else ""
    return f"{int(checks['agrees'].sum())} of {plural(len(checks), 'statement')} come out{by_choice}"


def _statements(checks: pd.DataFrame) -> list[dict[str, Any]]:
    """Return statements with both numbers as text: the paper's with its own digits, ours with one more."""
    rows = [{str(key): value for key, value in row.items()} for row in checks.to_dict("records")]
    for row in rows:
        near, bound = row["tolerance"], row["relation"] != "="
        digits = max(2, len(f"{row['value']:g}".partition(".")[2])) if bound or near >= 0.005 else 3
        stated = number_text(row["value"], digits)
        if not bound and 0.005 < near < 0.05:
            stated += f" ± {number_text(near, 3)}"
        row["paper"] = {"=": stated, "<": f"below {stated}", ">": f"above {stated}"}[row["relation"]]
        row["ours"] = number_text(row["ours"], digits + 1)
    return rows


def number_text(value: float, digits: int) -> str:
    """Format .350 and .0522 as papers write numbers below 1; counts whole; from a million on 9.7e+21."""
    if abs(value) >= 1e6:
        return f"{value:.2g}"
    if value == round(value):
        return f"{value:.0f}"
    return f"{value:.{digits}f}".replace("0.", ".", 1).replace("-", "\N{MINUS SIGN}")


def print_reproduction(console: Console, papers: list[Paper]) -> None:
    """Print all tables but the long one of paradigms, then the statements that do not follow."""
    for paper in papers:
        for exhibit in paper.exhibits:
            if len(exhibit.rows()) <= LONGEST:
                console.print(*exhibit.terminal(console.width), "", sep="\n")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name, right in {"statement": False, "where": False, "paper": True, "ours": True}.items():
        table.add_column(name, justify="right" if right else "left", no_wrap=right)
    for paper in papers:
        for row in _statements(paper.checks):
            if not row["agrees"]:
                cells = (row["statement"], f"{paper.short}, {row['place']}", row["paper"], row["ours"])
                table.add_row(*map(Text, cells))
    console.print(Text("Statements that do not come out", "bold"), table, "", sep="\n")
    for paper in papers:
        if len(paper.checks):
            console.print(f"{paper.short}: {summary(paper.checks)}", highlight=False, soft_wrap=True)
