"""The code on the pages of docs/ runs on simulated studies; that of bambi runs in tests/test_documentation.py."""

import doctest
import json
import re

import numpy as np
import pandas as pd
import pytest

import analysis
from analysis.reading.config import ReadingConfig
from analysis.reading.files import read_times
from analysis.reading.times import regression_rows
from tests.support import ROOT
from tests.support.ablation_study import write_ablations
from tests.support.child_files import STUDY as CHILD_STUDY
from tests.support.child_files import write_snapshots, write_study
from tests.support.long_table import random_curve
from tests.support.reading_files import made_up_table
from tests.support.simulated_study import SimulatedStudy, rewrite_config

GUIDES = ROOT / "docs/guides"


def blocks(page, language="python"):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


class StudyOfWords(SimulatedStudy):
    """A study whose sentences end in seven different words."""

    def items(self):
        table = super().items()
        return table.assign(good=[f"A cat sees dog{row % 7}." for row in range(len(table))])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the studies and tables that the guides use."""
    folder = tmp_path_factory.mktemp("pages")
    StudyOfWords(name="mine").write(folder / "runs")
    write_ablations(folder / "runs", name="ablation_small", sizes=("125k", "250k"), seeds=(1, 2), pairs=5)
    study = SimulatedStudy(models=("lstm_tiny",), name="ever")
    for run in study.write(folder / "runs"):
        rewrite_config(run, corpus__filter=r"(?i)\b(any|ever)\b")
        run.path.rename(run.path.with_name(f"{run.path.name}-ever"))
    for run in study.write(folder / "runs", seed=1):
        rewrite_config(run, corpus__filter=None)
    made_up_table(participants=3).to_csv(folder / "times.csv", index=False)
    words = read_times(folder / "times.csv", ReadingConfig())
    model = {"surprisal": made_up_table()["hidden"], "tokens": 1, "unk": 0, "log_frequency": words["log_frequency"]}
    tables = folder / "reports/mine/reading/times/tables"
    tables.mkdir(parents=True)
    regression_rows(words, {"a run": pd.DataFrame(model)}, ReadingConfig()).to_parquet(tables / "rows.parquet")
    return folder


@pytest.mark.parametrize(
    ("page", "printed"),
    [
        ("ablation", ""),
        ("acquisition", ""),
        ("methods", ""),
        ("papers", "irregular"),
        ("reading_times", "a run"),
        pytest.param("models_of_your_own", "Mixed Linear Model", marks=pytest.mark.slow),
    ],
)
def test_code_of_guides_runs(folder, page, printed, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    codes = [code for code in blocks(GUIDES / f"{page}.md") if "bambi" not in code]
    assert codes
    for code in codes:
        names = {}
        exec(code, names)
        assert all(len(value) for value in names.values() if isinstance(value, pd.DataFrame))
    assert printed in capsys.readouterr().out


def test_words_and_ages_run(tmp_path, monkeypatch, capsys):
    write_study(tmp_path).to_csv(tmp_path / "ages.csv", index=False)
    (tmp_path / "runs" / CHILD_STUDY.name).rename(tmp_path / "runs/mine")
    (tmp_path / "reports" / CHILD_STUDY.name).rename(tmp_path / "reports/mine")
    monkeypatch.chdir(tmp_path)
    over_sizes, tables, over_training = blocks(GUIDES / "words_and_ages.md")
    exec(over_sizes, {"np": np})
    assert "log2(sample_words)" in capsys.readouterr().out
    contexts = {"bal": [{"context": "The"}, {"context": "A big"}], "dog": [{"context": "my"}]}
    (tmp_path / "cdi_childes.json").write_text(json.dumps(contexts))
    exec(tables, {})
    assert pd.read_csv(tmp_path / "contexts.csv").query("target")["word"].tolist() == ["bal", "bal", "dog"]
    assert pd.read_csv(tmp_path / "alone.csv")["word"].tolist() == ["bal", "dog"]
    run = write_snapshots(tmp_path / "runs/mine", tmp_path / "reports/mine/surprisal/childes", "contexts")
    (tmp_path / "ages.csv").rename(tmp_path / "cdi_human.csv")
    exec(over_training, {})
    assert f"{run} 4 PearsonRResult" in capsys.readouterr().out


def test_the_page_of_statistics_gives_the_slope_of_statsmodels(monkeypatch):
    table = pd.concat([random_curve(5, curve=name, rng=i) for i, name in enumerate(("lstm", "txl"))], ignore_index=True)
    table["benchmark"], table["phenomenon"] = "blimp", table["phenomenon"].map({"p0": "binding", "p1": "ellipsis"})
    judged = table.loc[table.index.repeat(10)].assign(pair_id=np.tile([f"{i}" for i in range(10)], len(table)))
    judged["correct"] = np.random.default_rng(0).uniform(size=len(judged)) < judged["accuracy"]
    monkeypatch.setattr(analysis, "accuracies", lambda *_, **__: table, raising=False)
    monkeypatch.setattr(analysis, "pairs", lambda *_, **__: judged, raising=False)
    names: dict = {}
    for block in blocks(ROOT / "docs/statistics.md"):
        exec(block.replace(".summary()", "").replace("smf.ols", "fit = smf.ols"), names)
    overall = names["slopes"].query("level == 'overall' and curve == 'lstm'").iloc[0]
    assert overall["se"] == pytest.approx(names["fit"].bse["doublings"])
    assert [overall["low"], overall["high"]] == pytest.approx(names["fit"].conf_int().loc["doublings"].tolist())
    assert np.isfinite(overall["high_new_items"])
    assert set(names["needed"]["name"]) == {"overall", "binding", "ellipsis"}


def test_the_guide_to_the_table_runs(tmp_path, monkeypatch):
    SimulatedStudy(name="mine", sizes=("125k",), pairs=2).write(tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    results = doctest.testfile(str(GUIDES / "table.md"), module_relative=False, encoding="utf-8")
    assert results.attempted
    assert not results.failed
