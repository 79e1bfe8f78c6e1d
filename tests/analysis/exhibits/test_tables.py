"""Tables: their contents, and text from data escaped for CSV, LaTeX and the terminal."""

import csv
import io
import re

import hypothesis.strategies as st
import pandas as pd
import pytest
from hypothesis import given
from rich.console import Console

from analysis.config import CurvesConfig
from analysis.curves.fit import fit_curves
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.tables.latex import latex_escape
from analysis.exhibits.tables.slopes import architecture, slope_table, terminal_table, with_published, write_latex
from analysis.exhibits.tables.text import accuracy_text, interval_text, slope_text, title
from analysis.published import published_file
from analysis.study.collect import collect
from analysis.study.judgements import judgements
from eval.questionnaire.agreement import agreement_table
from eval.scores.files import read_items, read_scores
from eval.scores.table import accuracy_table, methods_table, trajectory_table
from pairscale.tables import write_csv
from tests.support.simulated_study import SimulatedStudy

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=100, seed=1)
NAN = float("nan")


@pytest.fixture(scope="module")
def curves(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    SimulatedStudy(pairs=20).write(runs)
    judged = judgements(collect(runs, "simulated"), "blimp", "lp", "wrong")
    curves = fit_curves(judged, CONFIG)
    curves.slopes = with_published(curves.slopes, judged.runs, "blimp")
    return curves


def test_published_numbers_equal_the_papers():
    slopes = published_file("slopes").set_index(["model", "phenomenon"])["slope"]
    assert slopes["LSTM", "anaphor_agreement"] == 0.0623
    assert slopes["Transformer-XL", "island_effects"] == 0.0039
    assert len(slopes) == 9
    assert published_file("perplexity").set_index("words")["perplexity"].to_dict() == {
        125_000: 595, 1_000_000: 212, 8_000_000: 92.8, 64_000_000: 53,
    }  # fmt: skip


def test_published_slopes_stand_beside_the_same_architecture(curves):
    table = slope_table(curves).set_index(["group", "name"])["published_slope"]
    assert table["lstm_tiny", "anaphor_agreement"] == 0.0623
    assert table["txl_tiny", "anaphor_agreement"] == 0.0545
    assert table[:, "overall"].isna().all()
    assert architecture("ngram") is None


def test_other_benchmarks_have_no_published_slopes(curves):
    slopes = curves.slopes.drop(columns=["published_model", "published_slope"])
    runs = pd.DataFrame({"group": ["lstm_tiny", "txl_tiny"], "model": ["lstm_tiny", "txl_tiny"]})
    assert with_published(slopes, runs, "toy")["published_slope"].isna().all()
    assert len(with_published(slopes, runs, "toy")) == len(slopes)


def test_the_slope_table_has_a_row_for_each_phenomenon_of_each_group(curves):
    table = slope_table(curves)
    assert list(table["group"].unique()) == ["lstm_tiny", "txl_tiny"]
    first = table.iloc[:4]
    assert first["name"].iloc[0] == "overall"
    assert first["slope"].iloc[1:].is_monotonic_decreasing
    accuracies = [column for column in table if column.startswith("accuracy ")]
    assert accuracies == ["accuracy 125k", "accuracy 250k", "accuracy 500k", "accuracy 1M"]
    means = curves.points[(curves.points["name"] == "overall") & (curves.points["group"] == "lstm_tiny")]
    assert first["accuracy 1M"].iloc[0] == pytest.approx(means[means["size"] == "1M"]["accuracy"].mean())
    assert len(slope_table(curves, level="paradigm")) == 2 * 7


def test_csv_cells_that_look_like_formulas_are_escaped(tmp_path):
    table = pd.DataFrame({"name": ["=1+1", "@x", "+2", "-3", "plain", "a,b"], "slope": [-0.5, 1, 2, 3, 4, NAN]})
    write_csv(tmp_path / "t.csv", table)
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == ["'=1+1", "'@x", "'+2", "'-3", "plain", "a,b"]
    assert rows[0]["slope"] == "-0.5"  # a number stays one
    assert rows[5]["slope"] == ""


def test_latex_tables_escape_names_and_have_a_cell_for_each_column(tmp_path, curves):
    table = slope_table(curves)
    table.loc[1, "name"] = r"100% of {a} & b\input{x}"
    write_latex(tmp_path / "t.tex", table, "Curves of made_up.", "tab:made up", 0.95)
    text = (tmp_path / "t.tex").read_text()
    assert r"100\% of \{a\} \& b\textbackslash{}input\{x\}" in text
    assert r"\caption{Curves of made\_up.}" in text
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 1
    columns = re.search(r"\\begin\{tabular\}\{(.+)\}$", text, re.MULTILINE)[1]
    columns = re.sub(r">\{.+?\}p\{.+?\}", "p", columns)
    rows = [line for line in text.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {len(columns) - 1}
    assert len(rows) == 1 + len(table)


@given(st.text())
def test_latex_escape_escapes_all_special_characters(text):
    escaped = latex_escape(text)
    for command in (
        r"\textbackslash{}",
        r"\textasciitilde{}",
        r"\textasciicircum{}",
        r"\textless{}",
        r"\textgreater{}",
        r"\ensuremath{-}",
        r"\ensuremath{\pm}",
        r"\ensuremath{\times}",
        r"\ensuremath{\leq}",
        r"\ensuremath{\geq}",
    ):
        escaped = escaped.replace(command, "")
    assert not re.search(r"(?<!\\)[&%$#_{}~^<>]", escaped)
    assert not re.search(r"\\(?![&%$#_{}])", escaped)


def test_names_in_titles():
    assert title("npi_licensing") == "NPI licensing"
    assert title("determiner_noun_agreement") == "Determiner-noun agreement"
    assert title("control_raising") == "Control/raising"
    assert title("filler_gap_dependency") == "Filler-gap dependency"
    assert title("complex_NP_island") == "Complex NP island"


def test_numbers_are_written_as_in_papers():
    assert [accuracy_text(value) for value in (0.7134, 1.0, NAN)] == [".713", "1.000", "–"]
    assert [slope_text(value) for value in (0.0426, -0.0036, 0.0)] == ["+.0426", "-.0036", "+.0000"]
    assert slope_text(-0.001, digits=2) == "-.00"  # below 0, as its interval
    assert interval_text(-0.001, 0.02) == "[-.0010, +.0200]"
    assert interval_text(-0.0011, 0.0194, digits=3) == "[-.001, +.019]"
    assert interval_text(NAN, NAN) == "–"
    assert interval_text(-1e-17, 1e-17) == interval_text(0.0, 0.0) == "[.0000, .0000]"
    assert interval_text(-0.00001, 0.0002) == "[-.0000, +.0002]"  # the sign says that 0 lies within


def test_each_row_has_the_digits_of_its_own_interval():
    """A second curve over two sizes made +.01 [+.01, +.02] of +.010 [+.005, +.015], the overall slope of the first."""
    rows = pd.DataFrame(
        {"phenomenon": ["overall", "binding", "islands"], "slope": [0.0101, 0.0241, 0.02], "low": [0.0051, -0.02, NAN],
         "high": [0.0151, 0.07, NAN]}
    )  # fmt: skip
    shown = Exhibit("slopes", "Slopes", "", rows, cells={"slope": slope_text}).rows()
    assert shown == [
        ["Overall", "+.010", "[+.005, +.015]"], ["Binding", "+.02", "[-.02, +.07]"], ["Islands", "+.020", "–"],
    ]  # fmt: skip


def test_a_long_name_of_a_group_wraps_without_cutting_numbers(curves):
    group = r"lstm_tiny, corpus.filter=(?i)\b(any|ever)[a-z]*\[s]\b, tokenizer.vocab_size=10000"
    table = slope_table(curves)
    table = table[table["group"] == table["group"].iloc[0]].assign(group=group)
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(terminal_table(table, "simulated", 0.95))
    text = console.export_text()
    assert "…" not in text
    assert group.replace(" ", "") in "".join(text.split())
    assert ".0623" in text


def test_terminal_table_fits_80_columns(curves):
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(terminal_table(slope_table(curves), "simulated", 0.95))
    text = console.export_text()
    assert "…" not in text
    assert "[+" in text
    assert ".0623" in text


@pytest.mark.parametrize("name", ["[/x]", "[bold]x[/bold]", ":cat:"])
def test_names_from_a_user_are_not_read_as_markup(name, tmp_path):
    """Paradigms, phenomena, groups and titles appear in the terminal's tables as they are written."""
    folder, *_ = SimulatedStudy(models=("lstm_tiny",), seeds=(1,), pairs=20, phenomena={name: (1, 0.6, 0.05)}).write(
        tmp_path
    )
    scores, _ = read_scores(folder.scores("blimp") / "lp.parquet")
    items, _ = read_items(folder.scores("blimp"))
    assert items["paradigm"].str.startswith(name).all()
    judged = judgements(collect(tmp_path, "simulated"), "blimp", "lp", "wrong")
    slopes = slope_table(fit_curves(judged, CONFIG)).assign(group=name)
    agreed = {"level": "paradigm", "name": name, "raters": 3, "pairs": 2, "judgements": 6, "agreement": 0.9, "low": 0.8,
              "high": 1.0, "majority": 1.0, "ties": 0, "seconds": 2.0}  # fmt: skip
    tables = [
        accuracy_table(name, "mine", scores, items, "wrong"),
        methods_table(name, {name: scores}, items, "wrong"),
        trajectory_table(name, [{"step": 1, "words_seen": 10, "moment": "1", name: 0.5}]),
        agreement_table(name, pd.DataFrame([agreed]), 0.8),
        terminal_table(slopes, name, 0.95),
    ]
    for table in tables:
        console = Console(file=io.StringIO(), width=200, record=True)
        console.print(table)
        shown = console.export_text().lower()
        assert shown.count(title(name).lower()) >= 2, shown  # in the title, and below
