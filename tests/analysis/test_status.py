"""The status of a study: the state, time and cost of its runs, and the removal of runs."""

import io
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
import yaml
from rich.console import Console

from analysis import status as command
from analysis.run_states import run_states
from analysis.status import remove_runs, report, select
from eval.scores.files import read_scores, score_path
from pairscale.errors import ConfigError
from pairscale.files import write_json
from tests.support import ROOT
from tests.support.commands import exit_code
from tests.support.scored_runs import rescore
from tests.support.simulated_study import SimulatedStudy
from train.sweeps import read_grid


@pytest.fixture
def study(tmp_path):
    """Return the path of a study with a run in each state, its run folders, and the runs that a sweep requested."""
    simulated = SimulatedStudy(pairs=5, sizes=("125k", "1M"))
    folders, path = simulated.write(tmp_path), tmp_path / simulated.name
    folders[1].update_manifest(status="failed", reason="RunError: loss\n\n  the run diverged \n")
    folders[2].update_manifest(status="unfinished", steps=100)
    folders[2].progress.write_text(json.dumps({"words_seen": 750_000, "words": 3_000_000, "words_per_s": 1000}))
    score_path(folders[3].scores("blimp"), "lp").unlink()
    folders[4].update_manifest(status="unfinished")
    folders[5].update_manifest(scoring_failed={"blimp": "InputError: no folder"}, scoring_commands={})
    runs = {one.path.name: {"point": "", "config": yaml.safe_load(one.config.read_text())} for one in folders}
    runs["gone"] = {"point": "sample.size=1M seed=3", "config": simulated.config("txl_tiny", "1M", 3)}
    grid = {"version": 1, "command": "python -m eval -m ...", "benchmark": "blimp", "runs": runs}
    write_json(path / "grid" / "a.json", grid)
    (path / "local").mkdir()
    return path, folders, read_grid(path)


def lines_of(path, requested):
    console = Console(file=io.StringIO(), width=1000, markup=False)
    for part in report(path, run_states(path, requested)):
        console.print(part)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_each_run_has_its_state_and_reason(study):
    path, folders, requested = study
    with folders[4].locked():
        states = {one.run: one for one in run_states(path, requested)}
    in_order = [states[folder.path.name] for folder in folders]
    found = ", ".join(one.state for one in in_order)
    assert found == "scored, failed, stopped, trained, running, scoring failed, scored, scored"
    assert states["gone"].state == "missing"
    assert in_order[1].reason == "training: the run diverged"
    assert in_order[5].reason == "scoring on blimp: InputError: no folder"
    assert (in_order[2].seen, in_order[2].words, in_order[2].left) == (750_000, 3_000_000, 2250)
    assert states["gone"].left == pytest.approx(3_000_000 / 21_000)  # three epochs at the speed of its curve
    with folders[0].locked():
        (running,) = [one for one in run_states(path, requested) if one.state == "running"]
    assert (running.run, running.seen, running.left) == (folders[0].path.name, 375_000, 0)  # it is being scored
    assert not folders[0].in_use


def test_a_run_in_training_shows_its_latest_accuracies(study):
    path, folders, requested = study
    training = folders[4]
    for step in range(1, 11):  # ten snapshots, each with one more right pair than the one before
        wrong = 10 - step
        rescore(training, partial(_with_wrong, wrong), f"lp@{step}", words_seen=1000 * step)
    with training.locked():
        (running,) = [one for one in run_states(path, requested) if one.state == "running"]
    words, _, shares = running.early.removeprefix("correct after ").partition(" words: blimp ")
    assert words == "3,000, 4,000, 5,000, 6,000, 7,000, 8,000, 9,000, 10,000"
    pairs = len(_with_wrong(0, read_scores(score_path(training.scores("blimp"), "lp"))[0]))
    assert shares == ", ".join(f"{100 * (pairs - wrong) / pairs:.1f}" for wrong in range(7, -1, -1)) + "% (lp)"


def _with_wrong(wrong, rows):
    """Return scores of as many pairs, with the first `wrong` of them wrong and the others right."""
    return rows.assign(good=0.0, bad=[1.0] * wrong + [-1.0] * (len(rows) - wrong))


def test_reading_a_lock_does_not_stop_a_run_from_starting(study):
    """A reader holds the lock together with other readers, for a moment."""
    _, folders, _ = study
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


def test_the_report_has_marks_times_costs_reasons_and_commands(study):
    """Time: 125,000 and 1,000,000 words at 7,000 words/s, rounded to seconds, as the simulated manifests have it."""
    path, folders, requested = study
    folders[7].update_manifest(machine={"device": "NVIDIA H100"}, wall_s=43.0, cost={"gpu_hours": 0.5})
    folders[6].update_manifest(cost={"gpu_hours": 1.0, "core_hours": 30.0})
    rows = [" ".join(line.split()) for line in lines_of(path, requested)]
    first = rows.index("curve size runs time per run cost per run words/s device disk per run") + 1
    assert rows[first] == "lstm_tiny 125k #x 18 s 21,000 cpu 0 MiB"
    assert rows[first + 3] == "txl_tiny 1M ##. 1 min 33 s 0.75 GPU hours, 30 core hours 21,000 cpu, NVIDIA H100 0 MiB"
    assert "training time so far: 43 s on NVIDIA H100" in rows
    for number, text in ((1, "the run diverged"), (2, "750,000 of 3,000,000 words · 1,000 words/s, 37 min 30 s left")):
        assert any(folders[number].path.name in row and text in row for row in rows)
    assert any("python -m eval study=simulated benchmark=blimp" in row for row in rows)
    for folder in folders[2:5]:
        folder.update_manifest(status="done", words_seen=3_000_000)
    requested.pop("gone")  # what remains has failed: a typing error of 500M words once gave 221 hours
    assert not any(line.startswith("left:") for line in lines_of(path, requested))


def test_the_report_counts_fine_tunings(study):
    path, folders, requested = study
    assert not any("fine-tuned" in line for line in lines_of(path, requested))
    for number, (task, state) in enumerate([("rte", "done"), ("rte", "unfinished"), ("rte", "done"), ("wsc", "done")]):
        tuned = folders[number % 2].finetuned(task, number)
        tuned.path.mkdir(parents=True)
        tuned.update_manifest(status=state)
    tuned = folders[0].finetuned("wsc", 9)
    tuned.path.mkdir(parents=True)
    tuned.manifest.write_text("{")
    tasks = "rte (2 done), rte (1 unfinished), wsc (1 done), wsc (1 unfinished)"
    assert f"fine-tuned on {tasks}" in lines_of(path, requested)


def test_a_run_counts_as_scored_once_all_requested_benchmarks_are(study):
    path, folders, requested = study
    first = folders[0].path.name
    for benchmarks, state in (({"toy"}, "trained"), ({"blimp", "toy"}, "trained"), ({"blimp"}, "scored")):
        changed = requested | {first: replace(requested[first], benchmarks=frozenset(benchmarks))}
        assert {one.run: one.state for one in run_states(path, changed)}[first] == state
    assert {one.run: one.state for one in run_states(path, {})}[first] == "scored"


def test_damaged_files_damage_one_run(study):
    path, folders, requested = study
    folders[0].config.write_text("a: [")
    folders[2].manifest.write_text("[]")
    for expected in (requested, {}):
        states = {one.run: one for one in run_states(path, expected)}
        found = [states[folder.path.name].state for folder in folders[:4]]
        assert found == ["damaged", "failed", "damaged", "trained"]
        assert "config.yaml: " in states[folders[0].path.name].reason
        assert any("manifest.json" in line for line in lines_of(path, expected))


# Removal


def status(path, *overrides):
    """Run the command and return its exit code."""
    return exit_code("status", command.run, "study=simulated", f"paths.runs={path.parent}", *overrides)


@pytest.mark.parametrize(
    ("remove", "gone"),
    [
        ("failed", [1]),  # only those whose training failed: the one whose scoring failed has weights
        ("stopped", [2, 4]),
        ("study", range(8)),
        ("lstm_tiny-english-unigram-1M-s1", [2]),
        ("[seed=2,model=lstm_tiny,failed]", [0, 1, 2, 3, 5, 7]),
        ("size=1/8M", [0, 1, 4, 5]),
    ],
)
def test_removed_runs_leave_the_grid_too(study, remove, gone):
    path, folders, _ = study
    assert status(path, f"remove={remove}", "yes=true") == 0
    kept = [folder for number, folder in enumerate(folders) if number not in gone]
    assert [folder for folder in folders if folder.path.exists()] == kept
    if remove == "study":
        assert not path.exists()
    else:
        assert set(read_grid(path)) == {"gone", *(folder.path.name for folder in kept)}


@pytest.mark.parametrize("remove", ["[seed=2,seed=9]", "sede=2", "failed"])
def test_a_value_that_names_no_run_is_one_clear_line(study, remove, capsys):
    path, folders, _ = study
    folders[1].update_manifest(status="done")  # the run whose scoring failed has weights
    assert status(path, f"remove={remove}", "yes=true") == 2
    error = capsys.readouterr().err
    assert f"{remove.rpartition(',')[2].strip(']')}: this doesn't match" in error
    assert error.count("\n") == 1
    assert all(folder.path.exists() for folder in folders)


def test_a_removal_lists_its_runs_and_asks_once(study, capsys, monkeypatch):
    path, folders, requested = study
    with folders[4].locked():
        assert status(path, "remove=study", "yes=true") == 75  # one of its runs is running
    config = {"model": {"seed": 1}, "sample": {"seed": 1}}
    with pytest.raises(ConfigError, match="remove=seed=1"):  # of the two
        select([replace(one, config=config) for one in run_states(path, requested)], ["seed=1"])
    capsys.readouterr()
    assert status(path, "remove=seed=2") == 2  # there is no terminal to ask in
    printed = capsys.readouterr()
    assert printed.out.count("-s2") == 4
    assert "yes=true" in printed.err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for answer, kept in (("", 8), ("y", 4)):
        monkeypatch.setattr("builtins.input", lambda question, answer=answer: answer)
        assert status(path, "remove=seed=2") == 0
        assert sum(folder.path.exists() for folder in folders) == kept


def test_a_part_of_what_only_an_experiment_requests_is_not_removed(study):
    path, folders, requested = study
    states = run_states(path, requested)
    shutil.rmtree(path / "grid")
    with pytest.raises(ConfigError, match="experiment=simulated"):
        remove_runs(path, [one for one in states if one.state in ("missing", "failed")])
    assert all(folder.path.exists() for folder in folders)


def test_the_command_in_a_pipe_prints_plain_text_without_importing_torch(tmp_path):
    code = """if True:
        import runpy, sys
        try:
            runpy.run_module("analysis.status", run_name="__main__")
        except SystemExit as end:
            assert not {"torch", "pandas", "lightning"} & set(sys.modules)
            sys.exit(end.code)
    """
    arguments = [sys.executable, "-c", code, "study=demo", f"paths.runs={tmp_path}"]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "runs: 20 · 20 missing (.)" in done.stdout
    assert "\x1b" not in done.stdout
