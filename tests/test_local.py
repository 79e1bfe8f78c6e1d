"""Many runs on one machine: so many at a time, one that fails stops no other, Ctrl-C stops all, and it goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from conf import compose, composed
from conf.launchers import check_all
from conf.launchers.local import LocalLauncher, _visible_gpus
from conf.launchers.remaining import Remaining, Work
from corpora.errors import RunError, RunInUse
from train.runs import RunFolder, study_runs

ROOT = Path(__file__).parents[1]
RUN = [
    "study=s", "model=lstm_tiny", "model.embedding=16", "model.hidden=16", "corpus=toy", "corpus.words=30000",
    "sample.size=2k",
    "recipe.validation_words=200", "trainer.accelerator=cpu",
]  # fmt: skip


def command(tmp_path, *more):
    paths = [f"paths.store={tmp_path}/store", f"paths.runs={tmp_path}/runs"]
    launcher = ["hydra/launcher=local", "hydra.launcher.jobs=2"]
    return [sys.executable, "-m", "train", "-m", *RUN, *paths, *launcher, *more]


@pytest.mark.slow
def test_a_run_that_fails_stops_no_other_and_is_told(tmp_path):
    arguments = command(tmp_path, "recipe.budget.epochs=1", "recipe.batch=99999,8,16", "seed=1")
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    runs = study_runs(tmp_path / "runs", "s")
    assert sorted(run.read_manifest()["status"] for run in runs) == ["done", "done", "failed"]
    lines = done.stderr.splitlines()
    (told,) = [n for n, line in enumerate(lines) if line.startswith("[") and "FAILED recipe.batch=99999" in line]
    assert lines[told + 1].strip().startswith("pairscale train: recipe.batch=99999: more columns")
    assert lines[-1] == "pairscale train: 1 of 3 runs failed (told above); the same command tries them again"
    assert lines[0].startswith("3 runs, 2 at a time")
    assert {run.read_manifest()["machine"]["threads"] for run in runs if run.done} == {1}  # small models


@pytest.mark.slow
def test_an_interrupt_stops_all_and_the_same_command_goes_on(tmp_path):
    arguments = command(tmp_path, "recipe.budget.epochs=15", "recipe.checkpoint_every=2k", "seed=1,2,3")
    process = subprocess.Popen(arguments, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 200
    while not list((tmp_path / "runs").glob("s/*/checkpoints/*.ckpt")) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=200)
    assert process.returncode == 130, told
    assert "the same command goes on from the last checkpoint" in told
    runs = study_runs(tmp_path / "runs", "s")
    assert not any(run.in_use for run in runs)
    assert not all(run.done for run in runs) or len(runs) < 3
    again = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=400)
    assert again.returncode == 0, again.stderr
    assert [run.read_manifest()["status"] for run in study_runs(tmp_path / "runs", "s")] == ["done"] * 3
    logs = "".join(path.read_text() for path in (tmp_path / "runs" / "s" / "local").glob("*.log"))
    assert "resuming" in logs


def test_runs_that_another_process_is_at_work_on_are_not_failures():
    check_all(4, failed=0, unfinished=0)
    with pytest.raises(RunInUse, match=r"2 of 4 runs did not begin or end \(told above\); the same command goes on"):
        check_all(4, failed=0, unfinished=2)
    with pytest.raises(RunError, match="1 of 4 runs failed, and 2 did not begin or end") as caught:
        check_all(4, failed=1, unfinished=2)
    assert caught.value.exit_code == 2


def launcher(**values):
    given = {"jobs": None, "per_gpu": 3, "gpus": None, "threads": None, "logs": "logs"} | values
    return LocalLauncher(**given)


def test_gpus_are_shared_out_by_turns(monkeypatch):
    made = launcher(gpus=[0, 2], per_gpu=2)
    assert made.jobs == 4
    assert [made._environment(slot)["CUDA_VISIBLE_DEVICES"] for slot in range(4)] == ["0", "2", "0", "2"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1a,GPU-2b")
    assert _visible_gpus() == ["GPU-1a", "GPU-2b"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert _visible_gpus() == []
    assert "CUDA_VISIBLE_DEVICES" not in {key for key in launcher(gpus=[])._environment(0) if key not in os.environ}


@pytest.mark.parametrize(("values", "jobs", "threads"), [({}, 4, 1), ({"threads": 2}, 2, 2), ({"jobs": 3}, 3, 1)])
def test_cores_are_shared_out(monkeypatch, values, jobs, threads):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    made = launcher(gpus=[], **values)
    assert (made.jobs, made.threads) == (jobs, threads)


def test_the_values_are_in_conf(tmp_path):
    node = composed("train", ["corpus=toy", "study=s", "hydra.launcher.gpus=[1]"]).hydra.launcher  # the default
    assert OmegaConf.to_container(node)["gpus"] == [1]
    with pytest.raises(Exception, match="jbos"):
        composed("train", ["hydra/launcher=local", "hydra.launcher.jbos=1"])
    assert RunFolder.of(compose("train", ["hydra/launcher=basic", "corpus=toy"])) == RunFolder.of(
        compose("train", ["corpus=toy"])
    )


def finished(folder, words, seconds):
    """A run folder whose training took so many seconds."""
    folder.path.mkdir(parents=True)
    folder.update_manifest(status="done", words_seen=words, words_per_s=words / seconds)


def test_the_time_left_goes_by_words_and_not_by_the_number_of_runs(tmp_path, monkeypatch):
    """Two of the smallest of 16 runs: their mean said 14 x 200 / 2 = 23 minutes of an hour."""
    now = 0.0
    monkeypatch.setattr("conf.launchers.remaining.time.monotonic", lambda: now)
    sizes = [125_000 * 2**power for power in range(4) for _ in range(4)]
    works = [Work("m", size * 3.0, RunFolder(tmp_path / str(run))) for run, size in enumerate(sizes)]
    remaining = Remaining(works, jobs=2)
    assert remaining.left() is None
    for run in (0, 1):  # 100 s to train 375k words, 100 s to start and to score
        remaining.begins(run)
        finished(works[run].folder, 375_000, 100)
        remaining.ends(run, 200.0)
    expected = (2 * 200 + 4 * 300 + 4 * 500 + 4 * 900) / 2
    assert remaining.left() == pytest.approx(expected)
    remaining.begins(2)
    now = 50.0
    assert remaining.left() == pytest.approx(expected - 25)
    remaining.ends(2, None)  # failed at once: it says nothing of the others
    assert remaining.left() == pytest.approx((200 + 4 * 300 + 4 * 500 + 4 * 900) / 2)


def test_a_run_that_is_trained_is_only_to_be_scored(tmp_path):
    trained = Work("m", 0.0)
    remaining = Remaining([trained, Work("m", 1e6, RunFolder(tmp_path)), trained], jobs=1)
    remaining.ends(0, 30.0)
    assert remaining.left() == pytest.approx(60)  # of the words nothing is known yet


def test_another_model_is_taken_to_be_like_those_that_ended(tmp_path):
    folder = RunFolder(tmp_path / "a")
    finished(folder, 1_000_000, 500)
    remaining = Remaining([Work("a", 1e6, folder), Work("b", 1e6)], jobs=1)
    remaining.ends(0, 520.0)
    assert remaining.left() == pytest.approx(520)


def test_the_works_of_a_sweep_are_those_of_its_runs(tmp_path):
    task = ["corpus=toy", "study=s", "model=lstm_tiny,ngram", "recipe.budget.epochs=2", "sample.size=1k,4k", "seed=1,2"]
    made = launcher(gpus=[])
    made.config = composed("train", ["corpus=toy", "study=s"])
    made.config.hydra.overrides.task = [*task, f"paths.runs={tmp_path}"]
    jobs = [["corpus=toy", "study=s", f"model={model}", f"sample.size={size}", f"seed={seed}"]
            for model in ("lstm_tiny", "ngram") for size in ("1k", "4k") for seed in (1, 2)]  # fmt: skip
    works = made._works(jobs)
    assert [work.words for work in works] == [2000, 2000, 8000, 8000, 1000, 1000, 4000, 4000]
    assert len({work.kind for work in works}) == 2
    assert len({work.folder.path for work in works}) == 8
