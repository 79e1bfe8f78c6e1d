"""The report as Markdown or as a Jupyter notebook, for a paper: the findings, figures and tables of the page."""

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.exhibits.exhibit import TOP
from analysis.exhibits.tables.text import with_minus_signs
from pairscale.files import write_text

LONG = 20  # rows from which a table has only its first ones, and the name of its file


@dataclass(frozen=True)
class Block:
    """A part of a document: Markdown, then a figure and a table, if any.

    figure: name of its files, without their suffix. alternative: the text that stands for it. table: name of its CSV
    file. rows: the table with its caption, as Markdown.
    """

    name: str
    text: str
    figure: str = ""
    alternative: str = ""
    caption: str = ""
    table: str = ""
    rows: str = ""


def write_markdown(path: Path, context: Mapping[str, Any]) -> None:
    """Write a Markdown file that shows the SVG files beside it; `context`: of the page (context.page_context)."""
    texts: list[str] = []
    for block in _blocks(context):
        figure = f"![{block.alternative}]({block.figure}.svg)" if block.figure else ""
        texts += filter(None, [block.text, figure, block.caption, block.rows])
    write_text(path, "\n\n".join(texts) + "\n")


def write_notebook(path: Path, context: Mapping[str, Any]) -> None:
    """Write a notebook (nbformat 4.5) that holds its figures, and reads each table from the CSV file beside it."""
    cells: list[dict[str, Any]] = []
    for block in _blocks(context):
        image = f"{block.figure}.png"
        figure = f"![{block.alternative}](attachment:{image})" if block.figure else ""
        text = "\n\n".join(filter(None, [block.text, figure, block.caption, block.rows]))
        cell = {"cell_type": "markdown", "id": _id(block.name), "metadata": {}, "source": text}
        if block.figure:
            png = b64encode(path.with_name(image).read_bytes()).decode()
            cell["attachments"] = {image: {"image/png": png}}
        cells.append(cell)
        if block.table:
            cells.append(_code(f"{block.name}-table", f"pd.read_csv({block.table!r})"))
    cells.insert(1, _code("imports", "import pandas as pd"))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    notebook = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    write_text(path, json.dumps(notebook, ensure_ascii=False, indent=1) + "\n")


def _code(name: str, source: str) -> dict[str, Any]:
    fixed: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    return {**fixed, "id": _id(name), "source": source}


def _id(name: str) -> str:
    """Return the name of a block as the format allows it: letters, digits, - and _, at most 64."""
    return re.sub(r"[^a-zA-Z0-9_-]", "-", name)[-64:]


def _blocks(context: Mapping[str, Any]) -> Iterator[Block]:
    yield Block("title", f"# {context['question']}\n\nStudy {escaped(context['study'])}.")
    for part in context["parts"]:
        yield Block(f"{part['file']}-first", _first(part), **_figure(part["overview"]))
        for item in part["items"]:
            takeaways = "\n\n".join(_statement(*takeaway) for takeaway in item["takeaways"])
            text = "\n\n".join(filter(None, [f"### {escaped(item['heading'])}", takeaways]))
            yield Block(item["anchor"], text, **_figure(item), **_table(item))
        methods = "\n\n".join(map(escaped, part["methods"]))
        yield Block(f"{part['file']}-limits", f"### Methods and limits\n\n{methods}")
        versions = escaped("; ".join(part["versions"]))  # others' numbers have none
        used = f" The runs used {versions}." if versions else ""
        origin = f"Benchmark digest `{part['digest'][:16]}`.{used}"
        yield Block(f"{part['file']}-provenance", f"### Provenance\n\n{origin}")
    commands = "\n".join(context["commands"])
    yield Block("make-again", f"## Make it again\n\n```sh\n{commands}\n```")


def _first(part: Mapping[str, Any]) -> str:
    """Return what the first screen of the page says of a benchmark."""
    texts = [f"## {escaped(part['name'])}", escaped(f"{part['lead']} {part['extent']}".strip())]
    texts += [_statement(finding.subject, finding.text) for finding in part["findings"]]
    if part["warnings"] or part["ruled_out"]:
        texts.append("**What could carry these results**")
        texts.append("\n".join(f"- {escaped(text)}" for text in [*part["warnings"], part["ruled_out"]] if text))
    return "\n\n".join(texts)


def _figure(item: Mapping[str, Any] | None) -> dict[str, str]:
    if item is None or not item["charts"]:
        return {}
    caption = f"**Figure {item['figure']}.** {escaped(item['about'])}"
    stem = item["files"]["SVG"].removesuffix(".svg")
    return {"figure": stem, "alternative": escaped(f"Figure {item['figure']}: {item['heading']}"), "caption": caption}


def _table(item: Mapping[str, Any]) -> dict[str, str]:
    if not item["rows"]:
        return {} if item["charts"] else {"caption": escaped(item["about"])}
    rows, file = item["rows"], item["files"].get("CSV", "")
    shown = rows if len(rows) <= LONG else rows[:TOP]
    columns = [(i, column) for i, column in enumerate(item["columns"]) if not column["optional"]]
    lines = [_row([column["name"] for _, column in columns])]
    lines.append(_row(["---:" if column["numeric"] else "---" for _, column in columns], escape=False))
    lines += [_row([row[i]["text"] for i, _ in columns]) for row in shown]
    about = f"{item['heading']}: the numbers." if item["charts"] else item["about"]
    terms = [f"{term}: {meaning}" for term, meaning in item["definitions"].items()]
    rest = [f"The first {len(shown)} of {len(rows)} rows; all are in {file}."] if len(shown) < len(rows) else []
    caption = f"**Table {item['number']}.** {escaped(' '.join([about, *terms, *rest]))}"
    return {"table": file, "rows": f"{caption}\n\n" + "\n".join(lines)}


def _row(cells: Sequence[str], escape: bool = True) -> str:
    return f"| {' | '.join(map(escaped, cells) if escape else cells)} |"


def _statement(subject: str, text: str) -> str:
    return f"**{escaped(subject)}**: {escaped(text)}" if subject else escaped(text)


def escaped(text: str) -> str:
    """Return text in which Markdown and HTML see no markup, on one line, with minus signs before numbers."""
    return re.sub(r"([\\`*_\[\]<>|#~$])", r"\\\1", with_minus_signs(" ".join(text.split())))
