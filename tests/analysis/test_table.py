"""The command that writes the long table."""

import pandas as pd
import pytest

from analysis.table import TABLES, run
from tests.support.commands import exit_code
from tests.support.scored_runs import rescore, run_folders
from tests.support.simulated_study import SimulatedStudy


@pytest.fixture
def folder(tmp_path):
    SimulatedStudy(sizes=("125k", "1M"), pairs=5).write(tmp_path)
    rescore(run_folders(tmp_path)[0], method="mean_lp")
    return tmp_path


def table(folder, *words):
    return exit_code("table", run, *words, f"paths.runs={folder}")


@pytest.mark.parametrize(("what", "ending"), [("accuracies", "csv"), ("pairs", "parquet"), ("runs", "csv")])
def test_the_command_writes_the_tables_of_python(folder, what, ending):
    output = folder / f"table.{ending}"
    assert table(folder, "study=simulated", f"what={what}", f"output={output}") == 0
    read = pd.read_csv(output) if ending == "csv" else pd.read_parquet(output)
    expected = TABLES[what]("simulated", folder=folder)
    assert list(read.columns) == list(expected.columns)
    assert read["run"].tolist() == expected["run"].tolist()


def test_filters_ties_and_unfinished_runs(folder, capsys):
    run_folders(folder)[-1].update_manifest(status="failed", reason="x")
    words = ["study=simulated", f"output={folder}/table.csv", "benchmark=blimp", "analysis.method=mean_lp", "ties=half"]
    assert table(folder, *words) == 0
    assert "Left out: 1 failed" in capsys.readouterr().err
    read = pd.read_csv(folder / "table.csv")
    assert (set(read["method"]), read["run"].nunique()) == ({"mean_lp"}, 1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["output=x.csv"], "study=NAME"),
        (["study=simulated"], "output=FILE"),
        (["study=simulated", "output=x.csv", "what=points"], "what=points"),
        (["study=simulated", "output=x.csv", "what=runs", "ties=half"], "does not use ties"),
        (["study=simulated", "output=x.csv", "path=y.csv"], "does not use path"),
    ],
)
def test_a_bad_request_is_one_line_and_code_2(tmp_path, words, message, capsys):
    assert table(tmp_path, *words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
