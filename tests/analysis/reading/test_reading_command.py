"""`python -m analysis.reading`: from times to tables, a page, and a section of the study's report."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from analysis.measures.reading.regressions import folds_of
from analysis.measures.reading.result import read_results
from tests.support.commands import run_command
from tests.support.reading_files import made_up_table, write_made_up_surprisals
from tests.support.simulated_study import SimulatedStudy

STUDY = SimulatedStudy(models=("lstm_tiny",), pairs=5, sizes=("125k", "250k", "500k"), seeds=(1, 2))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reading")
    STUDY.write(folder / "runs")
    made_up_table().to_csv(folder / "times.csv", index=False)
    return folder


def command(folder, *words):
    paths = [f"paths.{name}={folder / name}" for name in ("runs", "reports", "store")]
    return run_command(
        "analysis.reading", "study=simulated", f"times={folder}/times.csv", "reading.frequency=column", *paths, *words
    )


@pytest.fixture(scope="module")
def written(folder):
    """Return the surprisals of each run, after the command that asked for them."""
    asked = command(folder)
    assert asked.returncode == 2
    words = folder / "reports/simulated/reading/times.jsonl"
    assert f"first: python -m eval.surprisal study=simulated text={words} surprisal.context=document" in asked.stderr
    hidden = made_up_table()["hidden"].to_numpy()
    surprisals = {}
    for seed, run in enumerate(sorted((folder / "runs/simulated").iterdir())):
        file = folder / f"reports/simulated/surprisal/times/{run.name}.parquet"
        surprisals[run.name] = write_made_up_surprisals(file, words, hidden, 0.7, seed)
    return surprisals


@pytest.fixture(scope="module")
def result(folder, written):
    done = command(folder)
    assert done.returncode == 0, done.stderr
    assert "lstm_tiny: " in done.stdout
    [result] = read_results(folder / "reports", "simulated")
    return result


@pytest.mark.slow
def test_delta_of_a_run_is_that_of_a_regression_written_out(result, written):
    words = made_up_table().assign(position=lambda table: table["number"], length=lambda table: table["word"].str.len())
    words["log_frequency"] = np.log2(words["frequency"])
    run, surprisals = next(iter(written.items()))
    words["surprisal"] = surprisals["surprisal"].to_numpy()
    for name in ("length", "log_frequency", "surprisal"):
        words[f"{name}_1"] = words.groupby("text")[name].shift(1)
    words = words[~((words["number"] - 1) % 8).isin([0, 7])].reset_index(drop=True)  # sentences of eight words
    fold = folds_of(words["text"], 10, 1)
    baseline, likelihoods = ["position", "length", "log_frequency", "length_1", "log_frequency_1"], []
    for columns in (baseline, [*baseline, "surprisal", "surprisal_1"]):
        x, of = np.column_stack([np.ones(len(words)), words[columns]]), np.empty(len(words))
        for number in set(fold):
            held = fold == number
            fitted, squares, *_ = np.linalg.lstsq(x[~held], words["time"][~held], rcond=None)
            of[held] = norm.logpdf(words["time"][held], x[held] @ fitted, np.sqrt(squares[0] / (~held).sum()))
        likelihoods.append(of)
    row = result.tables["runs"].set_index("model").loc[run]
    assert row["delta"] == pytest.approx((likelihoods[1] - likelihoods[0]).mean(), abs=1e-9)
    assert row["perplexity"] == pytest.approx(2 ** surprisals["surprisal"].mean())
    assert row["low"] < row["delta"] < row["high"]


def test_tables_say_what_was_fitted_and_left_out(result):
    assert result.settings["baseline"].startswith("time ~ position + length + log_frequency + length_1")
    assert result.settings["full"] == result.settings["baseline"] + " + surprisal + surprisal_1"
    assert result.settings["clusters"] == "sentence"  # of six texts
    assert (result.settings["texts"], result.settings["folds"], result.settings["rows"]) == (6, 6, 180)
    assert result.tables["excluded"]["words"].tolist() == [0, 60, 0, 0, 180]
    assert result.tables["means"]["runs"].tolist() == [2, 2, 2]
    assert set(result.tables["curves"]["axis"]) == {"training text", "perplexity"}


@pytest.mark.slow
def test_the_page_and_the_report_of_the_study_have_the_section(folder, result):
    page = (folder / "reports/simulated/reading/times/report.html").read_text()
    assert "What surprisal adds" in page
    assert result.settings["full"] in page
    done = run_command(
        "analysis", "study=simulated", *[f"paths.{name}={folder / name}" for name in ("runs", "reports")]
    )
    assert done.returncode == 0, done.stderr
    assert "What surprisal adds" in (folder / "reports/simulated/report.html").read_text()


def test_surprisals_of_other_words_or_read_in_another_way_are_refused(folder, written, tmp_path):
    words = folder / "reports/simulated/reading/times.jsonl"
    run = sorted(written)[-1]
    file = folder / f"reports/simulated/surprisal/times/{run}.parquet"
    before = file.read_bytes()
    try:
        hidden = made_up_table()["hidden"].to_numpy()
        write_made_up_surprisals(file, words, hidden, 0.7, 0, context="text")
        asked = command(folder)
        assert asked.returncode == 2
        assert "in different ways: context=" in asked.stderr
        other = tmp_path / "other.jsonl"
        other.write_text(words.read_text().replace('"word": "', '"word": "x', 1))
        write_made_up_surprisals(file, other, hidden, 0.7, 0)
        asked = command(folder)
        assert asked.returncode == 2
        assert "word 1 of text t1 is" in asked.stderr
    finally:
        file.write_bytes(before)


@pytest.mark.slow
def test_mixed_regressions_of_participants_have_a_result_of_their_own(folder, written):
    read = made_up_table(participants=3)
    table = folder / "people.csv"
    read.to_csv(table, index=False)
    words = folder / "reports/simulated/reading/people.jsonl"
    arguments = (f"times={table}", "reading.regression=mixed")
    assert command(folder, *arguments).returncode == 2
    hidden = made_up_table()["hidden"].to_numpy()
    for run in list(written)[:1]:
        file = folder / f"reports/simulated/surprisal/people/{run}.parquet"
        write_made_up_surprisals(file, words, hidden, 0.7, 1)
    done = command(folder, *arguments)
    assert done.returncode == 0, done.stderr
    assert "5 of 6 runs have no surprisals of these words" in done.stderr
    mixed = next(one for one in read_results(folder / "reports", "simulated") if one.name == "people-mixed")
    assert mixed.settings["participants"] == 3
    assert mixed.settings["intercepts"] == "participant"
    assert mixed.settings["rows"] == 3 * 180
    assert pd.notna(mixed.tables["runs"]["low"].iloc[0])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["times=null"], "times=null: give times=FILE"),
        (["times=none.csv"], "times=none.csv: no such file"),
        (["reading.formula='time ~ lenght'"], "reading.formula=time ~ lenght"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(folder, written, words, message):
    asked = command(folder, *words)
    assert asked.returncode == 2
    assert message in asked.stderr
    assert len(asked.stderr.strip().splitlines()) == 1
