"""The report as Markdown and as a notebook, read by the libraries that others read them with."""

import io
from base64 import b64decode
from dataclasses import replace

import nbformat
import pandas as pd
import pytest
from markdown_it import MarkdownIt
from PIL import Image

from analysis.report.documents import escaped
from analysis.report.report import write_report
from analysis.sections.together import overview_exhibit, phenomena_exhibit
from tests.support.simulated_section import EVIL, report_of, section_of

PARSER = MarkdownIt("commonmark").enable("table")
PHENOMENA = {EVIL: (2, 0.6, 0.05), "island_effects": (12, 0.5, 0.0)}


@pytest.fixture(scope="module")
def section(tmp_path_factory):
    section = section_of(tmp_path_factory.mktemp("runs"), phenomena=PHENOMENA, unk_share=0.3)
    section.first = [overview_exhibit(section, 0.95), phenomena_exhibit(section, 0.95)]
    section.exhibits = section.exhibits[-1:]  # few figures, for a quick test
    return section


def written(section, folder, kind):
    report = report_of(section, commands=["python -m eval -m experiment=simulated"])
    path = write_report(folder, replace(report, config=replace(report.config, format=kind)))
    assert path.name == f"report.{kind}"
    assert not (folder / "report.html").exists()
    return path


def text_of(markdown):
    """Return the text that a reader sees."""
    tokens = [child for token in PARSER.parse(markdown) for child in token.children or []]
    return " ".join("".join(token.content for token in tokens if token.type != "image").split())


def assert_complete(section, markdown):
    """The document has question, findings, warnings, takeaways, commands and tables of the page, and no HTML."""
    text = text_of(markdown).replace("\N{MINUS SIGN}", "-")
    for finding in section.findings:
        assert f"{finding.subject}: {finding.text}" in text
    for part in ("How does knowledge of grammar grow with text?", "Unknown words could explain these results",
                 "Figure 1", "Table 1", "accuracy rises in", "The first 6 of 28 rows", "Wilson"):  # fmt: skip
        assert part in text, part
    commands = [token.content for token in PARSER.parse(markdown) if token.type == "fence"]
    assert commands[-1].startswith("python -m eval -m experiment=simulated\npython -m analysis study=simulated format=")
    html = PARSER.render(markdown)
    assert "alert(1)" in html
    assert "<script" not in html
    slopes = html.partition("<h3>Slopes</h3>")[2].partition("<h3>")[0]
    assert slopes.count("<tr>") == 1 + 6  # two curves of two phenomena and the whole
    assert slopes.count("<td>Overall</td>") == 2


@pytest.mark.slow
def test_markdown_shows_the_findings_with_figures_and_tables(section, tmp_path):
    path = written(section, tmp_path, "md")
    markdown = path.read_text(encoding="utf-8")
    assert_complete(section, markdown)
    tokens = [child for token in PARSER.parse(markdown) for child in token.children or []]
    figures = [token.attrs["src"] for token in tokens if token.type == "image"]
    assert figures[:4] == ["blimp-overview.svg", "blimp-together.svg", "blimp-curves.svg", "blimp-slopes.svg"]
    assert all((tmp_path / figure).read_text(encoding="utf-8").startswith("<svg") for figure in figures)


@pytest.mark.slow
def test_a_notebook_holds_its_figures_and_reads_its_tables(section, tmp_path, monkeypatch):
    path = written(section, tmp_path, "ipynb")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert_complete(section, "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown"))
    attachments = [item for cell in notebook.cells for item in cell.get("attachments", {}).items()]
    assert [name for name, _ in attachments[:2]] == ["blimp-overview.png", "blimp-together.png"]
    for name, content in attachments:
        assert Image.open(io.BytesIO(b64decode(content["image/png"]))).width > 300, name
    monkeypatch.chdir(tmp_path)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert code[0] == "import pandas as pd"
    tables = {source: eval(source, {"pd": pd}) for source in code[1:]}
    assert set(tables["pd.read_csv('blimp-slopes.csv')"]["name"]) >= {"overall", "island_effects"}
    assert sum(len(table) for table in tables.values()) > 30


@pytest.mark.slow
def test_runs_without_versions_are_not_said_to_have_some(section, tmp_path):
    assert "The runs used python 3.11.2, torch 2.13.0." in text_of(
        written(section, tmp_path / "ours", "md").read_text()
    )
    runs = section.judged.runs
    judged = replace(section.judged, runs=runs.assign(manifest=[{} for _ in runs.index]))
    text = text_of(written(replace(section, judged=judged), tmp_path / "others", "md").read_text())
    assert "Benchmark digest" in text
    assert "The runs used" not in text


def test_text_from_data_is_no_markup():
    text = "a|b *c* _d_ [e](f) <g> `h` $i$ ~j~ #k \\l\nm"
    assert text_of(escaped(text)) == "a|b *c* _d_ [e](f) <g> `h` $i$ ~j~ #k \\l m"
    assert "<g>" not in PARSER.render(escaped(text))
