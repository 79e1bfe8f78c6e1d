"""Signals during training: the run saves at the end of the step and resumes from there bit for bit."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from safetensors.torch import load_file

from pairscale.command.compose import compose
from pairscale.errors import START_AGAIN, RunInUse
from tests.support import ROOT
from tests.support.commands import Command, run_command
from tests.support.slurm_cluster import TOY, paths, wait_until
from tests.support.small_runs import for_training, trained
from train.loop.preemption import SIGNALS
from train.loop.training import LanguageModelling
from train.runs.folder import RunFolder
from train.runs.provenance import git_state

RUN = [*for_training(TOY), "seed=1", "model.embedding=16", "model.hidden=16", "recipe.budget.epochs=2"]
RUN += ["trainer.progress=false"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("preemption")


@pytest.fixture(scope="module")
def alone(store):
    return trained(compose("train", [*RUN, *paths(store), f"paths.runs={store}/alone"]))


def start(store: Path, runs: Path, **environment: str) -> tuple[Command, RunFolder]:
    """Start the run in another process, paused at each step while runs/hold exists, and wait for a checkpoint."""
    runs.mkdir()
    (runs / "hold").touch()
    arguments = [*RUN, *paths(store), f"paths.runs={runs}"]
    values = {"PYTHONPATH": str(ROOT), "HELD_PAUSE": "0.05"} | environment
    held = ROOT / "tests" / "support" / "held_python.py"
    process = Command(held, runs / "hold", "-um", "train", *arguments, environment=values)
    folder = RunFolder.of(compose("train", arguments))
    wait_until(lambda: bool(list(folder.path.glob("checkpoints/*.ckpt"))) or process.code is not None, "a checkpoint")
    assert process.code is None, process.output()
    return process, folder


def assert_goes_on_to_the_same_end(store: Path, runs: Path, folder: RunFolder, alone: RunFolder) -> None:
    assert folder.read_manifest()["status"] == "unfinished"
    before = folder.read_manifest()
    trained(compose("train", [*RUN, *paths(store), f"paths.runs={runs}"]))
    manifest = folder.read_manifest()
    assert manifest["attempts"] == 2
    assert manifest["wall_s"] > before["wall_s"] > 0
    assert manifest["cost"]["core_hours"] > before["cost"]["core_hours"] > 0
    left, right = load_file(alone.model.weights), load_file(folder.model.weights)
    assert all(left[name].equal(right[name]) for name in left)
    assert alone.metrics.read_bytes() == folder.metrics.read_bytes()


@pytest.mark.parametrize(("number", "code"), [("USR2", START_AGAIN), ("TERM", 128 + signal.SIGTERM), ("INT", 130)])
@pytest.mark.slow
def test_a_signal_saves_the_run_and_ends_it(store, tmp_path, alone, number, code):
    process, folder = start(store, tmp_path / "runs")
    process.kill(getattr(signal, f"SIG{number}"))
    done = process.wait()
    assert done.returncode == code, done.stderr
    assert f"Received SIG{number}: the run is saved" in done.stderr
    assert_goes_on_to_the_same_end(store, tmp_path / "runs", folder, alone)


def test_sigterm_in_a_slurm_job_saves_the_run_and_training_continues(store, tmp_path, alone):
    """SLURM requeues only jobs that it kills: one that ends by itself counts as finished."""
    process, folder = start(store, tmp_path / "runs", SLURM_JOB_ID="7")
    message = "Received SIGTERM: the run is saved, and training continues"
    for times in (1, 2):
        process.kill(signal.SIGTERM)
        wait_until(lambda times=times: process.output().count(message) == times, f"the run to say so {times} times")
    assert process.code is None
    process.kill(signal.SIGKILL)
    process.wait()
    assert_goes_on_to_the_same_end(store, tmp_path / "runs", folder, alone)


@pytest.mark.parametrize("last", [False, True])
def test_an_earlier_signal_handler_is_called_after_saving(store, tmp_path, monkeypatch, last):
    """The handler of a program that calls trained; at the last step, when the run is done. All are restored."""
    config = compose("train", [*RUN, *paths(store), f"paths.runs={tmp_path}", "recipe.budget.epochs=1"])
    folder = RunFolder.of(config)
    heard, end = [], LanguageModelling.on_train_batch_end

    def after_step(self, *arguments):
        if self.state.step == (len(self.batches) if last else 30):
            os.kill(os.getpid(), signal.SIGUSR2)
        end(self, *arguments)

    monkeypatch.setattr(LanguageModelling, "on_train_batch_end", after_step)
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGUSR2, lambda *_: heard.append((folder.done, bool(folder.checkpoints))))
    try:
        ours = signal.getsignal(signal.SIGUSR2)
        assert trained(config).done
        assert heard == [(last, not last)]
        assert signal.getsignal(signal.SIGUSR2) is ours
        assert signal.getsignal(signal.SIGTERM) == before[signal.SIGTERM]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_run_in_use_ends_with_the_exit_code_for_try_again(store, tmp_path):
    arguments = [*RUN, *paths(store), f"paths.runs={tmp_path}"]
    with RunFolder.of(compose("train", arguments)).locked():
        done = run_command("train", *arguments)
    assert done.returncode == START_AGAIN == RunInUse.exit_code
    assert "another process is working" in done.stderr


def test_the_recorded_difference_is_that_of_the_whole_checkout(tmp_path, monkeypatch):
    """Bytes that are not UTF-8 are recorded with replacements."""
    for name, data in {"train/a.py": b"# caf\xe9\n", "conf/model/b.yaml": b"1\n", "eval/c.py": b"1\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    commit = ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "m", "--allow-empty"]
    for command in (["init", "-q"], commit, ["add", "train", "conf"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    monkeypatch.setattr("train.runs.provenance.__file__", str(tmp_path / "train" / "provenance.py"))
    state = git_state.__wrapped__()
    assert "+++ b/train/a.py" in state["difference"]
    assert "+# caf\ufffd" in state["difference"]
    assert "+++ b/conf/model/b.yaml" in state["difference"]
    assert state["untracked"] == ["eval/c.py"]
