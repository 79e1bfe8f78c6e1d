"""Tables of reports in LaTeX: they compile with any names, and fit the page."""

import re
import subprocess

import pandas as pd
import pytest

from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.tables.curves import curve_tables
from analysis.exhibits.tables.latex import latex_table
from analysis.exhibits.tables.slopes import slope_table, write_latex
from analysis.papers.papers import reproduce
from analysis.report.report import write_report
from analysis.sections.curves import curve_exhibits
from tests.support.simulated_section import CONFIG, EVIL, report_of, section_of

NAMES = (
    "100%",
    "a_b",
    "x & y",
    "#1",
    "~",
    "^2",
    "back\\slash",
    "{",
    "}",
    "$5",
    "\\input{/etc/passwd}",
    "<|>",
    "\u2212.5 \u00b1 1",
)


def set_in_latex(pdflatex, folder, tables, options="", most=10):
    """Return the text of a document with the tables, compiled by LaTeX; no line is `most` points too wide."""
    inputs = "\n".join(f"\\input{{{path}}}\\clearpage" for path in tables)
    source = f"\\documentclass[{options}]{{article}}\n"
    source += "\\usepackage{array,booktabs,graphicx,longtable,pdflscape}\n\\begin{document}\n"
    (folder / "paper.tex").write_text(f"{source}{inputs}\n\\end{{document}}\n")
    command = [pdflatex, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Float too large" not in done.stdout
    log = (folder / "paper.log").read_text(errors="replace")
    wide = [float(points) for points in re.findall(r"Overfull .hbox \(([\d.]+)pt too wide", log)]
    assert max(wide, default=0) < most, wide
    return subprocess.run(
        ["pdftotext", "-layout", folder / "paper.pdf", "-"], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.slow
def test_every_table_of_a_report_compiles(pdflatex, tmp_path):
    phenomena = dict.fromkeys((*NAMES, EVIL), (2, 0.5, 0.02))
    section = section_of(tmp_path / "runs", phenomena=phenomena)
    section.exhibits += curve_exhibits(curve_tables(section.judged, section.published, CONFIG), 0.95)
    write_report(tmp_path / "report", report_of(section))
    tables = sorted((tmp_path / "report").glob("*.tex"))
    assert {"blimp-slopes.tex", "blimp-comparisons.tex"} <= {path.name for path in tables}
    text = set_in_latex(pdflatex, tmp_path, tables)
    shown = re.sub(r"\s", "", text)
    for name in ("100%", "Ab", "X&y", "#1", "ˆ2", r"Back\slash", "$5", r"\input{/etc/passwd}", "alert(1)", "95%"):
        assert name in shown, name


@pytest.mark.parametrize("rows", [3, 200])
def test_long_tables_run_over_pages_and_wide_ones_fit_one(pdflatex, tmp_path, rows):
    sentence = "The essay about the bank had not sounded like itself before the vote."
    table = pd.DataFrame({"paradigm": ["anaphor_gender"] * rows, "good": sentence, "bad": sentence, "margin": -0.5})
    table[[f"lstm_tiny, unigram, dropout={i}" for i in range(2)]] = 0.25
    (tmp_path / "t.tex").write_text(Exhibit("t", "Hardest", "About.", table).latex("tab:t"))
    text = set_in_latex(pdflatex, tmp_path, [tmp_path / "t.tex"])
    assert text.count("Anaphor") == rows


def test_every_table_of_the_papers_fits_its_page(pdflatex, tmp_path):
    exhibits = [exhibit for paper in reproduce() for exhibit in paper.exhibits if exhibit.table is not None]
    for exhibit in exhibits:
        (tmp_path / f"{exhibit.name}.tex").write_text(exhibit.latex(f"tab:{exhibit.name}"))
    text = set_in_latex(pdflatex, tmp_path, sorted(tmp_path.glob("*.tex")))
    assert {"blimp-table4", "climp-table2", "methods-table3"} <= {exhibit.name for exhibit in exhibits}
    assert text.count("Superlative") == 2  # its columns are broken into lines


@pytest.mark.parametrize(("columns", "sideways"), [(6, False), (12, False), (24, True)])
def test_many_columns_turn_their_headings_and_then_the_page(pdflatex, tmp_path, columns, sideways):
    names = [f"meta-llama/Llama-3.{i}-8B-Instruct, in_template_lp" for i in range(columns)]
    table = pd.DataFrame({"phenomenon": ["determiner_noun_agreement", "overall"], **dict.fromkeys(names, 0.123)})
    (tmp_path / "t.tex").write_text(tex := Exhibit("t", "Models", "About.", table).latex("tab:t"))
    assert ("landscape" in tex) == sideways
    needed = re.search(r"usepackage\{(.*)\}", tex)[1].split(",")
    for package, command in {"graphicx": "rotatebox", "longtable": "{longtable}", "pdflscape": "{landscape}"}.items():
        assert (package in needed) == (command in tex)
    set_in_latex(pdflatex, tmp_path, [tmp_path / "t.tex"])


PHENOMENA_OF_PAPERS = dict.fromkeys(("determiner_noun_agreement", "filler_gap_dependency", *"abcdefgh"), (2, 0.5, 0.02))


@pytest.fixture(scope="module")
def slopes(tmp_path_factory):
    section = section_of(tmp_path_factory.mktemp("slopes"), phenomena=PHENOMENA_OF_PAPERS)
    curves = section.curves
    curves.slopes = curves.slopes.assign(published_model="LSTM", published_slope=0.031)
    return slope_table(curves)


@pytest.mark.parametrize("options", ["twocolumn", "onecolumn"])
@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("curves", [1, 2, 6])
def test_slopes_fit_a_column_and_a_page(pdflatex, slopes, tmp_path, options, narrow, curves):
    groups = list(slopes["group"].unique())
    assert len(groups) == 2
    one = slopes[slopes["group"] == groups[0]]
    long = "lstm_tiny, tokenizer=unigram, recipe=long, model.tied=false"
    table = {1: one, 2: slopes, 6: pd.concat([one.assign(group=f"{long} {i}") for i in range(6)])}[curves]
    write_latex(tmp_path / "t.tex", table, "Slopes.", "tab:t", 0.95, narrow)
    text = set_in_latex(pdflatex, tmp_path, [tmp_path / "t.tex"], options, most=0.5)
    tex = (tmp_path / "t.tex").read_text()
    assert "longtable" not in tex
    assert tex.count("caption") == (6 if curves == 6 else 1)  # a float for each curve where one is no page
    assert tex.count("begin{table*}") == (0 if narrow else tex.count("caption"))
    assert text.count("Overall") == curves
    assert all(name in tex for name in ("Slope", "interval", "Published", r"+.0310"))
    assert ("125k" in tex, "Rank" in tex) == (not narrow, not narrow)


def test_a_long_table_says_what_it_needs_in_two_columns():
    table = pd.DataFrame({"paradigm": ["a"] * 60, "accuracy": 0.5})
    long, short = (Exhibit("t", "Long", "", table[:rows]).latex("tab:t", narrow=True) for rows in (60, 5))
    assert r"\onecolumn before it" in long
    assert r"\begin{table}" in short
    assert "longtable" not in short


def test_a_groups_name_is_escaped(pdflatex, tmp_path):
    (tmp_path / "t.tex").write_text(latex_table(["a", "b"], [(r"100% \x_{y}", [["1", "2"]])], "50% & more", "tab:x"))
    assert "100%" in set_in_latex(pdflatex, tmp_path, [tmp_path / "t.tex"])


def test_a_long_caption_leaves_less_room_for_rows(pdflatex, tmp_path):
    table = pd.DataFrame({"paradigm": ["anaphor_gender"] * 40, "accuracy": 0.5})
    for about in ("About.", "What it shows, at length. " * 60):
        tex = Exhibit("t", "Long", about, table).latex("tab:t")
        assert ("longtable" in tex) == (about != "About.")
        (tmp_path / "t.tex").write_text(tex)
        assert set_in_latex(pdflatex, tmp_path, [tmp_path / "t.tex"]).count("Anaphor") == 40
