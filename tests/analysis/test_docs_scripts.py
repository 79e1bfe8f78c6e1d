"""The scripts in docs/guides run on a study; those of programs that aren't installed are composed."""

import re
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from analysis.reading.config import ReadingConfig
from analysis.reading.files import read_times
from analysis.reading.times import regression_rows
from tests.support import ROOT
from tests.support.child_files import STUDY as CHILD_STUDY
from tests.support.child_files import write_study
from tests.support.reading_files import made_up_table
from tests.support.simulated_study import SimulatedStudy

GUIDES = ROOT / "docs/guides"


def blocks(page, language="python"):
    return re.findall(rf"```{language}\n(.*?)```", (GUIDES / page).read_text(encoding="utf-8"), flags=re.DOTALL)


class StudyOfWords(SimulatedStudy):
    """A study whose sentences end in seven different words."""

    def items(self):
        table = super().items()
        return table.assign(good=[f"A cat sees dog{row % 7}." for row in range(len(table))])


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Work in a folder with the study `mine`."""
    StudyOfWords(name="mine").write(tmp_path / "runs")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def composed(monkeypatch):
    """Put a stand-in for bambi in its place, which isn't installed: it keeps the formula and the data."""
    models = []

    class Model:
        def __init__(self, formula, data, family):
            models.append((formula, data, family))

        def fit(self, random_seed):
            return self

    monkeypatch.setitem(sys.modules, "bambi", SimpleNamespace(Model=Model))
    monkeypatch.setitem(sys.modules, "arviz", SimpleNamespace(summary=lambda fit, var_names: var_names))
    return models


@pytest.mark.slow
def test_models_of_your_own_run(mine, composed, capsys):
    for script in blocks("models_of_your_own.md"):
        assert len(script.strip().splitlines()) <= 13
        exec(compile(script, "models_of_your_own.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "Mixed Linear Model" in printed
    assert "pvalue" in printed
    [(formula, data, family)] = composed
    names = set(re.findall(r"[a-z_]+", formula)) - {"p"}
    assert names <= set(data.columns)
    assert family == "binomial"
    assert data["correct"].le(data["pairs"]).all()
    assert data["doublings"].between(0, 3).all()
    [r] = blocks("models_of_your_own.md", "r")
    names = {"correct", "curve", "paradigm", "run", "pair_id", "sample_words"}
    assert all(name in r for name in names)
    written = pd.read_csv("pairs.csv")
    assert names <= set(written.columns)
    assert written["correct"].isin([True, False]).all()


def test_papers_figures_with_ones_own_models_run(mine, capsys):
    for script in blocks("papers.md"):
        exec(compile(script, "papers.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "lstm_tiny" in printed
    assert "irregular" in printed


def test_words_and_ages_run(tmp_path, monkeypatch, capsys):
    ages = write_study(tmp_path)
    ages.to_csv(tmp_path / "ages.csv", index=False)
    (tmp_path / "runs" / CHILD_STUDY.name).rename(tmp_path / "runs/mine")
    (tmp_path / "reports" / CHILD_STUDY.name).rename(tmp_path / "reports/mine")
    monkeypatch.chdir(tmp_path)
    for script in blocks("words_and_ages.md"):
        exec(compile(script, "words_and_ages.md", "exec"), {"np": np})
    assert "log2(sample_words)" in capsys.readouterr().out


def test_mixed_models_of_reading_times_run(tmp_path, monkeypatch, capsys):
    made_up_table(participants=3).to_csv(tmp_path / "times.csv", index=False)
    words = read_times(tmp_path / "times.csv", ReadingConfig())
    model = {"surprisal": made_up_table()["hidden"], "tokens": 1, "unk": 0, "log_frequency": words["log_frequency"]}
    tables = tmp_path / "reports/mine/reading/times/tables"
    tables.mkdir(parents=True)
    regression_rows(words, {"a run": pd.DataFrame(model)}, ReadingConfig()).to_parquet(tables / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    [script] = blocks("reading_times.md")
    exec(compile(script, "reading_times.md", "exec"), {})
    run, delta, coefficient = capsys.readouterr().out.rsplit(maxsplit=2)
    assert run == "a run"
    assert float(delta) > 0
    assert float(coefficient) == pytest.approx(15, abs=3)  # as made up
