"""The status of a study: states of runs, the grid, and the removal of runs."""

import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import yaml

from analysis.status import __main__ as status_command
from analysis.status.removal import confirmed
from analysis.status.report import MARKS, grid, report
from analysis.status.states import BROKEN, MISSING, RUNNING, SCORED, STOPPED, TRAINED, UNSCORED, run_states
from eval.grid import RequestedRun, read_grid
from eval.scores.files import score_path
from pairscale.command.main import main
from pairscale.files import write_json
from tests.support import ROOT
from tests.support.simulated_study import SimulatedStudy
from train.runs.axes import in_order


@pytest.fixture
def study(tmp_path):
    """Return a grid of two models, sizes and seeds with a run in each state, its folders, and the requested runs."""
    simulated = SimulatedStudy(pairs=5, sizes=("125k", "1M"))
    folders = simulated.write(tmp_path)
    folders[1].update_manifest(status="failed", reason="RunError: loss\n\n  the run diverged \n")
    folders[2].update_manifest(status="unfinished", steps=100)
    folders[2].progress.write_text(json.dumps({"words_seen": 750_000, "words": 3_000_000, "words_per_s": 1000}))
    score_path(folders[3].scores("blimp"), "lp").unlink()
    folders[4].update_manifest(status="unfinished")
    folders[5].update_manifest(scoring_failed={"blimp": "InputError: no folder"})
    blimp = frozenset(["blimp"])
    requested = {folder.path.name: RequestedRun("", simulated.config(*_cell(folder)), blimp) for folder in folders}
    requested["gone"] = RequestedRun(
        "model=txl_tiny sample.size=1M seed=3", simulated.config("txl_tiny", "1M", 3), blimp
    )
    return simulated, tmp_path / simulated.name, folders, requested


def _cell(folder):
    config = yaml.safe_load(folder.config.read_text())
    return config["model"]["name"], config["sample"]["size"], config["seed"]


def test_each_run_has_its_state_and_reason(study):
    _, path, folders, requested = study
    with folders[4].locked():
        states = {state.name: state for state in run_states(path, requested)}
    in_order = [states[folder.path.name].state for folder in folders]
    assert in_order == [SCORED, BROKEN, STOPPED, TRAINED, RUNNING, UNSCORED, SCORED, SCORED]
    assert states["model=txl_tiny sample.size=1M seed=3"].state == MISSING
    assert states[folders[1].path.name].reason == "the run diverged"
    assert states[folders[5].path.name].reason == "scoring on blimp: InputError: no folder"
    stopped = states[folders[2].path.name]
    assert (stopped.seen, stopped.words, stopped.left) == (750_000, 3_000_000, 2250)
    # 3 epochs at the speed of the row's other runs: one at its own size, where there is one
    assert states["model=txl_tiny sample.size=1M seed=3"].left == pytest.approx(3_000_000 / 21_000)


def test_a_run_is_running_if_its_folder_is_locked(study):
    _, path, folders, requested = study
    with folders[0].locked():
        states = {state.name: state for state in run_states(path, requested)}
        assert (states[folders[0].path.name].state, states[folders[0].path.name].doing) == (RUNNING, "scoring")
    assert not folders[0].in_use
    assert {state.state for state in run_states(path, requested) if state.name == folders[4].path.name} == {STOPPED}


def test_reading_a_lock_does_not_stop_a_run_from_starting(study):
    """A reader shares the lock with other readers for a moment."""
    _, _, folders, _ = study
    code = "import sys; from pathlib import Path; from train.runs.folder import RunFolder\n"
    code += "while True: RunFolder(Path(sys.argv[1])).in_use"
    looking = [subprocess.Popen([sys.executable, "-c", code, str(folders[0].path)], cwd=ROOT) for _ in range(2)]
    try:
        for _ in range(50):
            with folders[0].locked():
                pass
    finally:
        for process in looking:
            process.kill()
            process.wait()


def test_a_run_scored_on_another_benchmark_counts_as_trained(study):
    _, path, folders, requested = study
    first = folders[0].path.name
    for benchmarks in ({"toy"}, {"blimp", "toy"}):
        states = run_states(path, requested | {first: replace(requested[first], benchmarks=frozenset(benchmarks))})
        assert {state.run: state.state for state in states}[first] == TRAINED
    assert {state.run: state.state for state in run_states(path, {})}[first] == SCORED


@pytest.mark.parametrize("width", [80, 40])
def test_the_grid_fits_its_width_and_has_a_mark_for_each_run(study, width):
    _, path, _, requested = study
    states = run_states(path, requested)
    lines = [line.plain for line in grid(states, width)]
    assert lines == [
        "           125k  1M",
        "lstm_tiny  #x    ~t",
        "txl_tiny   ~!    ##.",
    ]


def test_a_wide_grid_is_cut_into_blocks_of_80_columns(tmp_path):
    simulated = SimulatedStudy()
    sizes = [f"{125 * 2**n}k" for n in range(10)]
    requested = {
        f"{model}{size}{seed}": RequestedRun(f"{seed}", simulated.config(model, size, seed))
        for model in ("lstm_tiny", "a_model_with_a_name_that_is_longer_than_others")
        for size in sizes
        for seed in range(1, 6)
    }
    lines = [line.plain for line in grid(run_states(tmp_path, requested), 80)]
    assert max(map(len, lines)) <= 80
    assert sum(line.count(MARKS[MISSING]) for line in lines) == 100
    words = " ".join(lines).split()
    assert [size for size in words if size in ("16M", "32M", "64M", "125k")] == ["125k", "16M", "32M", "64M"]


def test_equal_reasons_are_shown_once(study):
    _, path, folders, requested = study
    for folder in folders[6:]:
        folder.update_manifest(status="failed", reason="RunError: loss\nthe run diverged")
    text = "\n".join(line.plain for line in report(path, run_states(path, requested), 80))
    assert text.count("the run diverged") == 1
    assert all(text.count(folder.path.name) == 1 for folder in (folders[1], *folders[6:]))


@pytest.mark.parametrize("with_grid", [True, False])
def test_a_run_with_damaged_files_is_broken_and_other_runs_keep_their_state(study, with_grid):
    _, path, folders, requested = study
    requested = requested if with_grid else {}
    others = {folder.path.name for folder in folders[3:]}
    before = {state.run: state for state in run_states(path, requested) if state.run in others}
    folders[0].config.write_text("a: [")
    folders[1].config.write_text("")
    folders[2].manifest.write_text("[]")
    states = {state.run: state for state in run_states(path, requested)}
    damaged = [states[folder.path.name] for folder in folders[:3]]
    assert [state.state for state in damaged] == [BROKEN] * 3
    reasons = [
        "config.yaml: not readable as YAML",
        "config.yaml: $: expected object",
        "manifest.json: $: expected object",
    ]
    assert all(text in state.reason for text, state in zip(reasons, damaged, strict=True))
    assert {run: state for run, state in states.items() if run in others} == before
    assert len(report(path, list(states.values()), 80)) > 10


def lines_of(path, requested):
    return [line.plain for line in report(path, run_states(path, requested), 80)]


def test_a_failed_run_has_a_remedy_and_no_time_left(study):
    """Its time could be estimated by the speed of its row: a typing error of 500M words gave 221 hours."""
    _, path, folders, requested = study
    for folder in folders[2:5]:
        folder.update_manifest(status="done", words_seen=3_000_000)
    requested.pop("gone")
    lines = lines_of(path, requested)
    (reason,) = [n for n, line in enumerate(lines) if line.strip() == "the run diverged"]
    beside = " ".join(lines[reason:])
    assert "python -m analysis.status study=simulated remove=failed (or remove=RUN)" in beside
    assert not [line for line in lines if line.startswith("left:")]


def test_scores_on_a_part_of_a_benchmark_are_counted_separately(study):
    _, path, folders, requested = study
    for folder in folders[:3]:
        folder.scores("blimp").rename(folder.scores("blimp+pairs-100"))
    assert "scored on blimp 4, blimp+pairs-100 3" in lines_of(path, requested)


def test_a_run_whose_scoring_failed_counts_as_trained_and_shows_its_command(study):
    """The remedy of failed runs would remove it from the study, with its weights."""
    _, path, folders, _ = study
    folders[5].update_manifest(scoring_commands={"blimp": "python -m eval study=simulated benchmark=blimp ties=half"})
    lines = lines_of(path, {})
    beside = lines[lines.index("trained, but scoring failed") :][:4]
    assert [line.strip() for line in beside[1:]] == [
        "scoring on blimp: InputError: no folder",
        folders[5].path.name,
        "to score again, without training: python -m eval study=simulated benchmark=blimp ties=half",
    ]
    assert "8 runs · 3 scored · 1 trained · 1 scoring failed" in lines[0]
    folders[5].update_manifest(scoring_commands={})  # as in a folder of older code
    assert any("training: python -m eval study=simulated benchmark=blimp" in line for line in lines_of(path, {}))


def test_a_run_whose_scoring_failed_is_scored_again_by_its_sweep(swept, capsys):
    assert status(swept[0]) == 0
    assert "to score again, without training: python -m eval -m ...\n" in capsys.readouterr().out


def test_the_report_names_the_folder_even_if_it_does_not_exist(study, tmp_path):
    _, path, _, requested = study
    assert lines_of(path, requested)[1] == f"in {path}"
    gone = tmp_path / "elsewhere" / "simulated"
    assert lines_of(gone, requested)[1] == f"in {gone}: no such folder yet"


@pytest.fixture
def swept(study):
    """Return the path and folders of the study after a sweep stored its grid."""
    _, path, folders, requested = study
    runs = {run: {"point": one.point, "config": one.config} for run, one in requested.items()}
    grid = {"version": 1, "command": "python -m eval -m ...", "benchmark": "blimp", "runs": runs}
    write_json(path / "grid" / "a.json", grid)
    (path / "local").mkdir()
    return path, folders


def status(path, *overrides):
    """Run the command in this process and return its exit code."""
    arguments = ["study=simulated", f"paths.runs={path.parent}", *overrides]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["analysis.status", *arguments])
        with pytest.raises(SystemExit) as ended:
            main("status", status_command.run)
    return ended.value.code


@pytest.mark.parametrize(("remove", "gone"), [("failed", [1]), ("RUN", [6]), ("missing", []), ("study", range(8))])
def test_removed_runs_leave_the_grid_too(swept, remove, gone):
    """`remove=failed` takes only runs whose training failed: one whose scoring failed has weights."""
    path, folders = swept
    removed = folders[6].path.name if remove == "RUN" else remove
    assert status(path, f"remove={removed}", "yes=true") == 0
    expected = [folder for number, folder in enumerate(folders) if number not in gone]
    assert [folder.path.exists() for folder in folders] == [folder in expected for folder in folders]
    if remove == "study":
        assert not path.exists()
        return
    never = set() if remove == "missing" else {"gone"}
    assert set(read_grid(path)) == {folder.path.name for folder in expected} | never
    assert not list(path.glob(".*"))


def test_a_removal_lists_what_it_would_delete(swept, capsys):
    path, folders = swept
    folders[5].weights.write_bytes(b"weights")
    folders[5].scores("blimp").rename(folders[5].scores("blimp+pairs-10"))
    folders[2].checkpoint_folder.mkdir()
    folders[2].checkpoint(5, "0" * 16).write_bytes(b"")
    for number, contents in (
        (5, "(scoring failed): trained weights, scores on blimp+pairs-10"),
        (2, "(stopped): 1 checkpoint, scores on blimp"),
    ):
        assert status(path, f"remove={folders[number].path.name}") == 2
        assert f"{folders[number].path.name} {contents}\n" in capsys.readouterr().out


def test_remove_failed_keeps_a_trained_run(swept, capsys):
    path, folders = swept
    folders[1].update_manifest(status="done")
    assert status(path, "remove=failed", "yes=true") == 2
    assert "training failed in no run of study=simulated; 1 whose scoring failed are trained" in capsys.readouterr().err
    assert folders[5].path.exists()


def test_a_removal_needs_a_confirmation(swept, capsys, monkeypatch):
    path, folders = swept
    assert status(path, "remove=failed") == 2  # nobody to ask: no terminal
    assert "remove: needs a confirmation, and there is no terminal to ask; add yes=true" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    questions = []
    assert not confirmed(False, lambda question: questions.append(question) or "")
    assert confirmed(False, lambda question: "y")
    assert questions == ["Remove them? [y/N] "]
    assert folders[1].path.exists()


def test_a_running_run_is_not_removed(swept, capsys):
    path, folders = swept
    with folders[4].locked():
        assert status(path, "remove=study", "yes=true") == 75
    assert "stop it first, nothing was removed" in capsys.readouterr().err
    assert all(folder.path.exists() for folder in folders)


def test_a_wrong_run_name_is_an_error(swept, capsys):
    path, _ = swept
    assert status(path, "remove=lstm", "yes=true") == 2
    assert "remove=lstm: names no run of study=simulated; must be a run's name" in capsys.readouterr().err


def test_numbers_in_names_sort_by_value():
    names = ["m, memory=128", "m, memory=64", "m, dropout=0.25", "m, dropout=0.3"]
    assert in_order(names) == ["m, dropout=0.25", "m, dropout=0.3", "m, memory=64", "m, memory=128"]


def test_the_command_in_a_pipe_prints_plain_text_without_importing_torch(tmp_path):
    code = """if True:
        import runpy, sys
        try:
            runpy.run_module("analysis.status.__main__", run_name="__main__")
        except SystemExit as end:
            assert not {"torch", "pandas", "lightning"} & set(sys.modules)
            sys.exit(end.code)
    """
    arguments = [sys.executable, "-c", code, "study=blimp_learning_curves", f"paths.runs={tmp_path}"]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "100 runs · 100 missing" in done.stdout
    assert "\x1b" not in done.stdout
    assert max(len(line) for line in done.stdout.splitlines() if not line.startswith("in ")) <= 80  # a path is not cut
