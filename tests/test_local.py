"""Many runs on one machine: so many at a time, one that fails stops no other, Ctrl-C stops all, and it goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from conf import compose
from conf.launchers import check_all
from conf.launchers.local import LocalLauncher, _visible_gpus
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
    from conf import composed

    node = composed("train", ["corpus=toy", "study=s", "hydra.launcher.gpus=[1]"]).hydra.launcher  # the default
    assert OmegaConf.to_container(node)["gpus"] == [1]
    with pytest.raises(Exception, match="jbos"):
        composed("train", ["hydra/launcher=local", "hydra.launcher.jbos=1"])
    assert RunFolder.of(compose("train", ["hydra/launcher=basic", "corpus=toy"])) == RunFolder.of(
        compose("train", ["corpus=toy"])
    )
