"""`python -m analysis`: the report of a simulated study, its files, and its first screen."""

import json
import re

import pandas as pd
import pytest

from analysis import figure
from analysis.__main__ import run as analyse
from tests.support.commands import exit_code, run_command
from tests.support.simulated_study import SimulatedStudy
from tests.support.studies import EVIL

COMMANDS = {"analysis": analyse, "figure": figure.run}


def words_of(folder):
    return ["study=simulated", f"paths.runs={folder}/runs", f"paths.reports={folder}/reports"]


def code_of(command, folder, *words):
    return exit_code(command, COMMANDS[command], *words_of(folder), *words)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return the folder of a study and what its analysis printed."""
    folder = tmp_path_factory.mktemp("report")
    phenomena = {EVIL: (2, 0.6, 0.05), "=cmd|' /C calc'!A0": (1, 0.5, 0.0)}
    SimulatedStudy(pairs=20, phenomena=phenomena, seeds=(1, 2, 3)).write(folder / "runs")
    labels = 'analysis.labels={lstm_tiny:"Ours & theirs"}'
    done = run_command(
        "analysis", *words_of(folder), labels, "analysis.colours.txl_tiny=black", "analysis.order=[txl_tiny]"
    )
    assert done.returncode == 0, done.stderr
    return folder, done


def test_the_terminal_and_the_files_have_findings_and_slopes(written):
    folder, done = written
    assert re.search(r"Each doubling .* adds about [\d.]+ points \(95% confidence interval", done.stdout)
    report = folder / "reports" / "simulated"
    names = {str(path.relative_to(report)) for path in report.rglob("*") if path.is_file()}
    assert {"report.html", "figures/overall.pdf", "figures/phenomena.svg", "tables/slopes.csv"} <= names
    assert len(names) <= 32
    slopes = report / "tables" / "slopes.csv"
    assert set(pd.read_csv(slopes)["curve"]) == {"Ours & theirs", "Transformer-XL"}
    assert "\n=cmd" not in slopes.read_text()  # no formula for spreadsheets
    assert "black" in (report / "figures" / "overall.svg").read_text()
    assert done.stdout.index("Transformer-XL: ") < done.stdout.index("Ours & theirs: ")  # as analysis.order says


def test_the_page_escapes_text_from_data_and_shows_every_chart_and_its_command(written):
    page = (written[0] / "reports" / "simulated" / "report.html").read_text(encoding="utf-8")
    *charts, vega, ours = re.findall(r"<script[^>]*>(.*?)</script>", page, flags=re.DOTALL)
    visible = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    assert "<" not in "".join(charts)
    assert "alert(1)" not in vega + ours
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in visible
    assert len([json.loads(chart) for chart in charts]) >= 5
    assert "python -m analysis study=simulated" in visible


def test_a_report_in_markdown_on_one_size_says_that_there_is_no_curve_yet(tmp_path):
    SimulatedStudy(pairs=20, models=("lstm_tiny",), sizes=("1M",), seeds=(1,)).write(tmp_path / "runs")
    assert code_of("analysis", tmp_path, "format=md") == 0
    text = (tmp_path / "reports" / "simulated" / "report.md").read_text()
    for part in ("**LSTM**: ", "](figures/overall.svg)", "only one training size", "| phenomenon |"):
        assert part in text


def test_several_benchmarks_have_folders_of_their_own(tmp_path):
    for name in ("blimp", "toy"):
        SimulatedStudy(pairs=20, models=("lstm_tiny",), benchmark=name).write(tmp_path / name)
    for run in (tmp_path / "toy" / "simulated").iterdir():
        (run / "scores" / "toy").rename(tmp_path / "blimp" / "simulated" / run.name / "scores" / "toy")
    (tmp_path / "blimp").rename(tmp_path / "runs")
    assert code_of("analysis", tmp_path) == 0
    report = tmp_path / "reports" / "simulated"
    assert all((report / name / "tables" / "slopes.csv").exists() for name in ("blimp", "toy"))
    (report / "figures").mkdir()
    (report / "figures" / "mine.png").touch()
    assert code_of("analysis", tmp_path, "benchmark=toy") == 0
    assert (report / "tables" / "slopes.csv").exists()
    assert not list(report.glob("*/tables"))  # those of the earlier report are gone
    assert (report / "figures" / "mine.png").exists()


def test_one_figure_has_the_chosen_phenomena_curves_and_size(tmp_path):
    SimulatedStudy(pairs=10).write(tmp_path / "runs")
    words = ["phenomena=[npi_licensing,island_effects]", "curves=[lstm_tiny]", "analysis.figure.width=3.3in"]
    words += ['analysis.labels.lstm_tiny="LSTM, 1 layer"', f"output={tmp_path}/two.svg"]
    assert code_of("figure", tmp_path, *words) == 0
    svg = (tmp_path / "two.svg").read_text()
    assert re.search(r'<svg[^>]* width="316.8"', svg)
    assert svg.index(">NPI licensing<") < svg.index(">Island effects<")
    assert "Transformer-XL" not in svg
    for ending in ("pdf", "png"):
        assert code_of("figure", tmp_path, f"output={tmp_path}/all.{ending}") == 0
    assert (tmp_path / "all.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        ("analysis", ["study=null"], "study=NAME"),
        ("analysis", ["analysis.sections=[slops]"], "slopes"),
        ("analysis", ["analysis.colours.lstm_tiny=blakc"], "analysis.colours.lstm_tiny=blakc"),
        ("analysis", ["analysis.labels={lstm_tny:A}"], "lstm_tiny"),
        ("analysis", ["analysis.confidence=2"], "analysis.confidence"),
        ("analysis", ["analysis.order=[txl_tiny]"], "txl_tiny"),
        ("figure", [], "output=FILE"),
        ("figure", ["output=a.jpg"], ".svg, .pdf or .png"),
        ("figure", ["output=a.svg", "phenomena=[island_effect]"], "island_effects"),
        ("figure", ["output=a.svg", "curves=[lstm]"], "lstm_tiny"),
    ],
)
def test_a_mistake_gives_one_line_and_code_2(tmp_path, command, words, message, capsys):
    SimulatedStudy(pairs=10, sizes=("125k", "250k"), models=("lstm_tiny", "lstm_small")).write(tmp_path / "runs")
    assert code_of(command, tmp_path, *words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "reports").exists()
