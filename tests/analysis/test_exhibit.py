"""Exhibits: what readers see of a table, in HTML and LaTeX, whatever text is in it."""

import re
import subprocess

import pandas as pd
import pytest

from analysis.config import FigureConfig
from analysis.formats import slope_text
from analysis.report.exhibit import Exhibit, for_readers
from tests.support.studies import EVIL

NAMES = ("100%", "a_b", "x & y", "#1", "~", "^2", "back\\slash", "{", "}", "$5", "\\input{/etc/passwd}", "<|>", EVIL)


def test_limits_are_one_column_with_the_digits_that_they_support():
    gap = float("nan")
    table = {"phenomenon": ["overall", "island_effects"], "slope": [0.0742, -0.5], "low": [0.06, gap],
             "high": [0.088, gap], "runs": [10, 4]}  # fmt: skip
    texts = Exhibit("slopes", "Slopes", "About.", pd.DataFrame(table), cells={"slope": slope_text}).texts
    assert list(texts) == ["phenomenon", "slope", "95% interval", "runs"]
    assert texts.iloc[0].tolist() == ["Overall", "+.074", "[+.060, +.088]", "10"]
    assert texts.iloc[1].tolist() == ["Island effects", "\N{MINUS SIGN}.500", "–", "4"]


def test_columns_have_the_names_and_formats_of_readers():
    table = pd.DataFrame({"name": ["binding"], "judgments": [1200], "factor": [0.7612], "error": [0.01], "note": [""]})
    shown = for_readers(table, "factor name note judgments error absent")
    assert list(shown) == ["factor per doubling", "phenomenon", "judgments", "error of prediction"]
    assert Exhibit("t", "T", "About.", shown).texts.iloc[0].tolist() == ["0.761", "Binding", "1,200", "+.010"]


@pytest.mark.slow
def test_latex_compiles_with_any_text(pdflatex, tmp_path):
    table = pd.DataFrame({"paradigm": NAMES, "good": NAMES, "accuracy": [-0.5] * len(NAMES)})
    exhibit = Exhibit("t", "T & <|>", "About 50% of $x_1$.", table, definitions={"#": "a_b"})
    exhibit.write(tmp_path, FigureConfig())
    source = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\\input{tables/t.tex}\\end{document}"
    (tmp_path / "paper.tex").write_text(source)
    command = [pdflatex, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    text = subprocess.run(
        ["pdftotext", "-layout", tmp_path / "paper.pdf", "-"], capture_output=True, text=True, check=True
    ).stdout
    shown = re.sub(r"\s", "", text)
    for name in ("100%", "x&y", "#1", "$5", "/etc/passwd", "50%", "<script>alert(1)"):
        assert name in shown, name
