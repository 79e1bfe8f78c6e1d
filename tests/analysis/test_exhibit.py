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


def test_columns_have_the_names_and_formats_of_readers():
    gap = float("nan")
    table = pd.DataFrame({"name": ["overall", "island_effects"], "slope": [0.0742, -0.5], "low": [0.06, gap],
                          "high": [0.088, gap], "judgments": [1200, 4], "note": [""] * 2})  # fmt: skip
    shown = for_readers(table, "name slope low high judgments note absent")
    texts = Exhibit("slopes", "Slopes", "About.", shown, cells={"slope": slope_text}).texts
    assert list(texts) == ["phenomenon", "slope", "95% interval", "judgments"]
    assert texts.iloc[0].tolist() == ["Overall", "+.074", "[+.060, +.088]", "1,200"]
    assert texts.iloc[1].tolist() == ["Island effects", "\N{MINUS SIGN}.500", "–", "4"]


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
