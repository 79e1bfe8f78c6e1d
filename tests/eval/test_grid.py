"""The grid that a study's sweeps leave in its folder: what was asked for and never began is told as missing."""

import dataclasses
import json
import shlex
import sys

import pytest

from analysis.status.states import MISSING, run_states
from analysis.study.collect import collect
from eval.grid import RequestedRun, read_grid, write_grid
from eval.sweeps import names_a_run, points, requested_runs, study_commands
from eval.tasks import record_tasks
from pairscale.command.compose import compose
from pairscale.command.main import main
from pairscale.errors import ConfigError, RunError
from tests.support.expected_runs import expected_runs
from tests.support.simulated_study import SimulatedStudy
from train.runs.folder import RunFolder
from train.runs.identity import run_id

GIVEN = ["study=mine", "model=lstm_tiny", "corpus=toy", "recipe.lr=0.5"]  # no experiment


@pytest.fixture
def swept(tmp_path, monkeypatch):
    """Sweep, with runs that do nothing but note their configurations; returns these and the exit code."""

    def sweep(command, *overrides, dry=False):
        monkeypatch.setattr(sys, "argv", [command, "-m", *overrides, f"paths.runs={tmp_path}", "hydra/launcher=basic"])
        begun = []
        with pytest.raises(SystemExit) as end:
            main(command, begun.append)
        return begun, end.value.code

    return sweep


def test_a_sweep_keeps_what_it_asks_for_before_it_begins(swept, tmp_path):
    begun, code = swept("eval", *GIVEN, "sample.size=2k,4k", "seed=1,2", "benchmark=toy")
    assert code == 0
    asked = requested_runs(tmp_path, "mine")
    assert set(asked) == {run_id(config) for config in begun}
    assert len(asked) == 4
    for run, one in asked.items():
        assert run_id(compose("eval", [*GIVEN, *shlex.split(one.point)])) == run
        assert one.benchmarks == {"toy"}
        (typed,) = one.commands
        assert shlex.split(typed) == ["python", "-m", "eval", "-m", *GIVEN, *sys.argv[6:]]
    states = run_states(tmp_path / "mine", asked)
    assert [state.state for state in states] == [MISSING] * 4
    assert {state.words for state in states} == {2_000 * 5, 4_000 * 5}  # five epochs
    with pytest.raises(RunError, match=r"no run in .* is done"):
        collect(tmp_path, "mine", {run: one.point for run, one in asked.items()})


@pytest.mark.slow
def test_another_sweep_adds_to_the_grid_and_the_same_one_does_not(swept, tmp_path):
    swept("train", *GIVEN, "sample.size=2k", "seed=1,2")
    swept("train", *GIVEN, "sample.size=2k", "seed=2,1")
    assert len(list((tmp_path / "mine" / "grid").iterdir())) == 1
    swept("eval", *GIVEN, "sample.size=2k", "seed=2,3", "benchmark=toy")
    swept("eval", *GIVEN, "sample.size=2k", "seed=2,3", "benchmark=climp")
    asked = requested_runs(tmp_path, "mine")
    found = {one.config["seed"]: (sorted(one.benchmarks), len(one.commands)) for one in asked.values()}
    assert found == {1: ([], 1), 2: (["climp", "toy"], 3), 3: (["climp", "toy"], 2)}


def test_a_value_that_is_refused_stops_no_other_run(swept, tmp_path):
    begun, code = swept("train", *GIVEN, "sample.size=2k,none", "model.hidden=16,-1", "model.embedding=16", "seed=1")
    assert code == 2
    assert [(config.sample.size, config.model.hidden) for config in begun] == [("2k", 16)]
    assert set(requested_runs(tmp_path, "mine")) == {run_id(begun[0])}


@pytest.mark.parametrize(
    "overrides",
    [
        [*GIVEN, "seed=1,2", "dry_run=true"],
        ["study=mine", "benchmark=toy,climp"],  # of whatever runs there are
        ["model=lstm_tiny", "corpus=toy", "seed=1,2"],  # no study
        ["study=mine", "model=hf_causal", "model.path=here,there", "model.revisions=[step1,step2]"],
    ],
)
def test_what_asks_for_no_run_of_a_study_keeps_nothing(swept, tmp_path, overrides):
    _, code = swept("eval", *overrides)
    assert code == 0
    assert not list(tmp_path.rglob("grid"))


def test_an_experiment_of_the_studys_name_is_what_is_asked_for_where_no_sweep_was(swept, tmp_path):
    asked = requested_runs(tmp_path, "demo")
    assert {run: one.point for run, one in asked.items()} == expected_runs("demo")
    assert {one.benchmarks for one in asked.values()} == {frozenset(["toy"])}
    swept("eval", "experiment=demo", "model=lstm_tiny", "seed=7")
    assert {(one.config["model"]["name"], one.config["seed"]) for one in requested_runs(tmp_path, "demo").values()} == {
        ("lstm_tiny", 7)
    }
    assert requested_runs(tmp_path, "neither") == {}


def test_two_studies_of_one_sweep_have_a_grid_each(swept, tmp_path):
    swept("train", *GIVEN[1:], "sample.size=2k", "seed=1", "study=one,two")
    (one,), (two,) = requested_runs(tmp_path, "one"), requested_runs(tmp_path, "two")
    assert one == two


def test_runs_that_never_began_are_in_the_row_of_those_that_did(tmp_path):
    """And the report lists them."""
    simulated = SimulatedStudy(pairs=5, models=("lstm_tiny",), sizes=("125k",), seeds=(1,))
    simulated.write(tmp_path)
    shown = {f"seed={seed}": simulated.config("lstm_tiny", "125k", seed) for seed in (1, 2)}
    asked = {name: RequestedRun(name, config) for name, config in shown.items()}
    states = run_states(tmp_path / "simulated", asked)
    assert len({(state.label, state.size) for state in states}) == 1


def test_the_tasks_of_an_array_by_hand_are_a_grid(tmp_path):
    fixed = ["experiment=demo", "study='by hand'", f"paths.runs={tmp_path}"]
    lines = [[*fixed, f"seed={seed}"] for seed in ("1", "2", "x")]
    (tmp_path / "tasks.txt").write_text("".join(f"{line[-1]}\t{shlex.join(line)}\n" for line in lines))
    record_tasks(tmp_path / "tasks.txt")
    asked = requested_runs(tmp_path, "by hand")
    assert list(asked) == [run_id(compose("eval", line)) for line in lines[:2]]
    assert "slurm/run.sbatch" in next(iter(asked.values())).commands[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not readable as JSON"),
        ("[]", r"\$: expected object, got array"),
        ('{"version": 9}', "version 9, this code reads 1"),
        ('{"version": 1, "benchmark": null, "command": "", "runs": {"r": {}}}', r"\$.runs\[...\]: without point"),
    ],
)
def test_another_file_is_told_in_one_line(tmp_path, text, told):
    (tmp_path / "grid").mkdir()
    (tmp_path / "grid" / "a.json").write_text(text)
    with pytest.raises(RunError, match=rf"a\.json: {told}") as caught:
        read_grid(tmp_path)
    assert "\n" not in str(caught.value)


def test_what_is_kept_says_what_a_run_is_and_nothing_of_the_machine(tmp_path):
    config = compose("train", ["study=mine", "corpus=toy", "model=lstm_tiny", f"paths.runs={tmp_path}"])
    write_grid(RunFolder.of(config).path.parent, {"seed=1": config}, None, "python -m train -m ...")
    (path,) = tmp_path.rglob("grid/*.json")
    (run,) = json.loads(path.read_text())["runs"].values()
    whole = dataclasses.asdict(config)
    assert {"model", "corpus", "recipe", "sample", "tokenizer", "seed"} <= set(run["config"])
    assert all(whole[key] == value for key, value in run["config"].items())
    assert str(tmp_path) not in json.dumps(run)


def test_points_have_the_values_that_name_them():
    """A sweep over nothing but seeds names runs, also in a dry run."""
    assert [names_a_run(node.hydra) for _, node, _ in points("eval", ["study=mine", "seed=1,2"])] == [True] * 2
    assert {config.model.name for _, _, config in points("train", ["model=glob(lstm_t*)", "seed=range(1,3)"])} == {
        "lstm_tiny"
    }
    with pytest.raises(ConfigError, match="seed=x: must be a whole number"):
        list(points("train", ["seed=1,x"]))


def composed_runs(command):
    """Ids of the runs that a printed command makes."""
    python, flag, module, sweep, *overrides = shlex.split(command)
    assert (python, flag, sweep) == ("python", "-m", "-m")
    return {run_id(config) for _, _, config in points(module, overrides)}


def test_commands_that_are_printed_make_the_runs_of_the_study_again(swept, tmp_path):
    """The report printed "python -m eval study=mine": it scores what is there, and trains nothing."""
    begun, _ = swept("eval", *GIVEN, "sample.size=2k,4k", "seed=1,2", "benchmark=toy")
    more, _ = swept("eval", *GIVEN[:3], "recipe.lr=0.1,0.2", "sample.size=2k", "seed=1", "benchmark=toy")
    commands = study_commands(tmp_path, "mine")
    assert len(commands) == 2
    assert set.union(*map(composed_runs, commands)) == {run_id(config) for config in [*begun, *more]}

    of_experiment = study_commands(tmp_path, "demo")
    assert of_experiment == ["python -m eval -m experiment=demo"]
    assert composed_runs(of_experiment[0]) == set(expected_runs("demo"))


def test_a_run_of_no_sweep_is_named_beside_the_commands(swept, tmp_path):
    swept("train", *GIVEN, "sample.size=2k", "seed=1")
    alone = RunFolder.of(compose("train", [*GIVEN, "sample.size=4k", f"paths.runs={tmp_path}"]))
    alone.path.mkdir(parents=True)
    alone.config.write_text("model: {}")
    sweep, comment = study_commands(tmp_path, "mine")
    assert sweep.startswith("python -m train -m study=mine")
    assert comment == f"# of no sweep; its values: {alone.config}"
