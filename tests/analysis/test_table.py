"""The command that writes the long table."""

import pandas as pd
import pytest

from analysis.table import TABLES
from tests.support.commands import run_command
from tests.support.scored_runs import rescore, run_folders
from tests.support.simulated_study import SimulatedStudy


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    SimulatedStudy(sizes=("125k", "1M"), pairs=5).write(folder)
    rescore(run_folders(folder)[0], method="mean_lp")
    return folder


def table(*words):
    done = run_command("analysis.table", *words)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("what", "ending"), [("accuracies", "csv"), ("pairs", "parquet"), ("runs", "csv")])
def test_the_command_writes_the_tables_of_python(folder, tmp_path, what, ending):
    output = tmp_path / f"table.{ending}"
    code, _, stderr = table("study=simulated", f"what={what}", f"output={output}", f"paths.runs={folder}")
    assert code == 0, stderr
    read = pd.read_csv(output) if ending == "csv" else pd.read_parquet(output)
    expected = TABLES[what]("simulated", folder=folder)
    assert list(read.columns) == list(expected.columns)
    assert read["run"].tolist() == expected["run"].tolist()


@pytest.mark.slow
def test_filters_ties_and_unfinished_runs(folder, tmp_path):
    output = tmp_path / "table.csv"
    base = ["study=simulated", f"output={output}", f"paths.runs={folder}", "benchmark=blimp"]
    run_folders(folder)[-1].update_manifest(status="failed", reason="x")
    code, _, stderr = table(*base, "analysis.method=mean_lp", "ties=half")
    assert code == 0, stderr
    assert "left out (1 failed" in stderr
    read = pd.read_csv(output)
    assert (set(read["method"]), read["run"].nunique()) == ({"mean_lp"}, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["output=x.csv"], "study=NAME"),
        (["study=simulated"], "output=FILE"),
        (["study=simulated", "output=x.csv", "what=points"], "what=points"),
        (["study=simulated", "output=x.csv", "what=runs", "ties=half"], "doesn't use ties"),
        (["study=simulated", "output=x.csv", "path=y.csv"], "doesn't use path"),
    ],
)
def test_bad_requests_are_told_in_one_line(folder, words, message):
    code, _, stderr = table(*words, f"paths.runs={folder}")
    assert code == 2
    assert message in stderr
