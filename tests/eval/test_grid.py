"""The grid of a study, written by its sweeps: requested runs that never began are reported as missing."""

import dataclasses
import json
import shlex
import sys

import pytest

from analysis import accuracies
from analysis.run_states import run_states
from eval.tasks import record_tasks
from pairscale.command.compose import compose
from pairscale.command.line import Line
from pairscale.command.main import main
from pairscale.errors import ConfigError, RunError
from tests.support.expected_runs import expected_runs
from train.config import run_id
from train.runs.folder import RunFolder
from train.sweeps import names_a_run, points, requested_runs, run_grid, study_commands, write_grid

RUN = ["study=mine", "model=lstm_tiny", "corpus=toy", "recipe.lr=0.5"]  # no experiment


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """A function that sweeps without training; it returns the configurations of the runs and the exit code."""

    def sweep(command, *overrides, dry=False):
        monkeypatch.setattr(sys, "argv", [command, "-m", *overrides, f"paths.runs={tmp_path}", "pool.jobs=1"])
        configs = []

        def run_jobs(command, jobs, *_):
            configs.extend(job.config for job in jobs)
            return [0] * len(jobs)

        monkeypatch.setattr("train.sweeps.run_jobs", run_jobs)
        monkeypatch.setattr("pairscale.command.line._current", Line())  # restored after the test
        with pytest.raises(SystemExit) as end:
            main(command, configs.append, sweep=run_grid)
        return configs, end.value.code

    return sweep


@pytest.mark.slow
def test_a_sweep_writes_its_grid_before_it_begins(sweep, tmp_path):
    configs, code = sweep("eval", *RUN, "sample.size=2k,4k", "seed=1,2", "benchmark=toy")
    assert code == 0
    requested = requested_runs(tmp_path, "mine")
    assert set(requested) == {run_id(config) for config in configs}
    assert len(requested) == 4
    for name, request in requested.items():
        assert run_id(compose("eval", [*RUN, *shlex.split(request.point)])) == name
        assert request.benchmarks == {"toy"}
        (command,) = request.commands
        assert shlex.split(command) == ["python", "-m", "eval", "-m", *RUN, *sys.argv[6:]]
    states = run_states(tmp_path / "mine", requested)
    assert [state.state for state in states] == ["missing"] * 4
    assert {state.words for state in states} == {2_000 * 5, 4_000 * 5}  # five epochs
    with pytest.raises(RunError, match="no run is finished"):
        accuracies("mine", folder=tmp_path)


@pytest.mark.slow
def test_another_sweep_adds_to_the_grid_but_a_repeated_one_does_not(sweep, tmp_path):
    sweep("train", *RUN, "sample.size=2k", "seed=1,2")
    sweep("train", *RUN, "sample.size=2k", "seed=2,1")
    assert len(list((tmp_path / "mine" / "grid").iterdir())) == 1
    sweep("eval", *RUN, "sample.size=2k", "seed=2,3", "benchmark=toy")
    sweep("eval", *RUN, "sample.size=2k", "seed=2,3", "benchmark=climp")
    requested = requested_runs(tmp_path, "mine")
    benchmarks = {
        request.config["seed"]: (sorted(request.benchmarks), len(request.commands)) for request in requested.values()
    }
    assert benchmarks == {1: ([], 1), 2: (["climp", "toy"], 3), 3: (["climp", "toy"], 2)}


@pytest.mark.parametrize(
    "overrides",
    [
        [*RUN, "seed=1,2", "dry_run=true"],
        ["study=mine", "benchmark=toy,climp"],  # scores existing runs
        ["model=lstm_tiny", "corpus=toy", "seed=1,2"],  # no study
        ["study=mine", "model=hf_causal", "model.path=here,there", "model.revisions=[step1,step2]"],
    ],
)
@pytest.mark.slow
def test_commands_that_request_no_runs_of_a_study_write_no_grid(sweep, tmp_path, overrides):
    _, code = sweep("eval", *overrides)
    assert code == 0
    assert not list(tmp_path.rglob("grid"))


@pytest.mark.slow
def test_a_study_without_sweeps_has_the_grid_of_the_experiment_of_its_name(sweep, tmp_path):
    requested = requested_runs(tmp_path, "demo")
    assert {run: request.point for run, request in requested.items()} == expected_runs("demo")
    assert {request.benchmarks for request in requested.values()} == {frozenset(["toy"])}
    sweep("eval", "experiment=demo", "model=lstm_tiny", "seed=7")
    assert {
        (request.config["model"]["name"], request.config["seed"])
        for request in requested_runs(tmp_path, "demo").values()
    } == {("lstm_tiny", 7)}
    assert requested_runs(tmp_path, "neither") == {}


def test_the_tasks_of_a_handwritten_job_array_are_a_grid(tmp_path):
    fixed = ["experiment=demo", "study='by hand'", f"paths.runs={tmp_path}"]
    lines = [[*fixed, f"seed={seed}"] for seed in ("1", "2", "x")]
    (tmp_path / "tasks.txt").write_text("".join(f"{line[-1]}\t{shlex.join(line)}\n" for line in lines))
    record_tasks(tmp_path / "tasks.txt")
    requested = requested_runs(tmp_path, "by hand")
    assert list(requested) == [run_id(compose("eval", line)) for line in lines[:2]]
    assert "slurm/run.sbatch" in next(iter(requested.values())).commands[0]


def test_the_grid_has_the_settings_of_a_run_but_nothing_of_the_machine(tmp_path):
    config = compose("train", ["study=mine", "corpus=toy", "model=lstm_tiny", f"paths.runs={tmp_path}"])
    write_grid(RunFolder.of(config).path.parent, {"seed=1": config}, None, "python -m train -m ...")
    (path,) = tmp_path.rglob("grid/*.json")
    (run,) = json.loads(path.read_text())["runs"].values()
    settings = dataclasses.asdict(config)
    assert {"model", "corpus", "recipe", "sample", "tokenizer", "seed"} <= set(run["config"])
    assert all(settings[key] == value for key, value in run["config"].items())
    assert str(tmp_path) not in json.dumps(run)


def test_a_sweep_over_seeds_or_globs_names_its_runs():
    assert [names_a_run(point.line) for point in points("eval", Line(("study=mine", "seed=1,2")))] == [True] * 2
    globbed = Line(("model=glob(lstm_t*)", "seed=range(1,3)"))
    assert [(point.config.model.name, point.config.seed) for point in points("train", globbed)] == [
        ("lstm_tiny", 1),
        ("lstm_tiny", 2),
    ]
    with pytest.raises(ConfigError, match=r"model=glob\(nothing\*\): .*lstm_tiny"):
        list(points("train", Line(("model=glob(nothing*)",))))
    with pytest.raises(ConfigError, match=r"seed=x: .*must be a whole number"):
        list(points("train", Line(("seed=1,x",))))


def composed_runs(command):
    """Return the ids of the runs that a printed command would make."""
    python, flag, module, sweep, *overrides = shlex.split(command)
    assert (python, flag, sweep) == ("python", "-m", "-m")
    return {run_id(point.config) for point in points(module, Line.of(overrides))}


@pytest.mark.slow
def test_printed_commands_make_the_runs_of_the_study_again(sweep, tmp_path):
    """The command "python -m eval study=mine" would only score existing runs."""
    first, _ = sweep("eval", *RUN, "sample.size=2k,4k", "seed=1,2", "benchmark=toy")
    second, _ = sweep("eval", *RUN[:3], "recipe.lr=0.1,0.2", "sample.size=2k", "seed=1", "benchmark=toy")
    commands = study_commands(tmp_path, "mine")
    assert len(commands) == 2
    assert set.union(*map(composed_runs, commands)) == {run_id(config) for config in [*first, *second]}

    of_experiment = study_commands(tmp_path, "demo")
    assert of_experiment == ["python -m eval -m experiment=demo"]
    assert composed_runs(of_experiment[0]) == set(expected_runs("demo"))


def test_commands_that_scored_further_benchmarks_follow_with_the_folder_as_typed(sweep, tmp_path, monkeypatch):
    """The page gave no command for pairs that were scored after the sweep."""
    (config,) = sweep("eval", *RUN, "sample.size=2k", "seed=1", "benchmark=toy")[0]
    run = RunFolder.of(config)
    for label in ("toy+seed-1", "mine", "blimp+pairs-3"):
        run.scores(label).mkdir(parents=True)
    (tmp_path / "my_conf").mkdir()
    monkeypatch.chdir(tmp_path)
    run.config.write_text("model: {}")
    typed = Line.of(["--config-dir", "my_conf", "study=mine", "benchmark=local"])
    run.update_manifest(scoring_commands={"mine": f"python -m eval {typed.written}"})
    _, *scoring = study_commands(tmp_path, "mine")
    assert scoring == [
        "# Runs were also scored on blimp+pairs-3, by a command that was not recorded.",
        "python -m eval --config-dir my_conf study=mine benchmark=local",
    ]


def test_runs_of_no_sweep_are_listed_after_the_commands_of_each_studys_own_grid(sweep, tmp_path):
    sweep("train", *RUN[1:], "sample.size=2k", "seed=1", "study=mine,other")
    (mine,), (other,) = requested_runs(tmp_path, "mine"), requested_runs(tmp_path, "other")
    assert mine == other
    run = RunFolder.of(compose("train", [*RUN, "sample.size=4k", f"paths.runs={tmp_path}"]))
    run.path.mkdir(parents=True)
    run.config.write_text("model: {}")
    command, comment = study_commands(tmp_path, "mine")
    assert command.startswith("python -m train -m ")
    assert comment.startswith("# One run ")
    assert str(run.config) in comment
