"""Runs forked from a process that has imported torch and Lightning: as those of a new Python in every respect."""

import os
import signal
import subprocess
import sys

import pytest

from pairscale import environment, started_by
from pairscale.command.launchers.forks import Forks
from pairscale.errors import RunError
from pairscale.files import sha256_file
from pairscale.progress import PROGRESS_FILE, read_progress
from tests.support.slurm_cluster import wait_until
from train.runs.folder import study_runs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks only on Linux")
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
TRAIN = [
    "train", "study=s", "model=lstm_tiny", "model.embedding=16", "model.hidden=16", "corpus=toy", "corpus.words=30000",
    "sample.size=2k", "recipe.validation_words=200", "trainer.accelerator=cpu", "model.dropout=0.2",
]  # fmt: skip
LOOK = """
import os, sys
from pairscale.command.rooms import runs
runs().preload()
import torch
print(os.listdir("/proc/self/task") == [str(os.getpid())], "lightning" in sys.modules, torch.cuda.is_initialized())
"""


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    log = tmp_path_factory.mktemp("forks") / "forks.log"
    forks = Forks(environment() | ONE_THREAD, log)
    yield forks
    forks.close()
    assert not log.exists()  # it was empty


def words(folder, *more):
    return [*TRAIN, f"paths.store={folder}/store", f"paths.runs={folder}/runs", *more]


@pytest.mark.slow
def test_what_is_imported_before_a_fork_starts_no_thread_and_no_gpu():
    command = [sys.executable, "-P", "-c", LOOK]
    looked = subprocess.run(command, env=environment() | ONE_THREAD, capture_output=True, text=True, check=True)
    assert looked.stdout.split() == ["True", "True", "False"]


def test_a_fork_has_the_exit_code_and_the_output_of_its_command(forks, tmp_path):
    with (tmp_path / "log").open("wb") as log:
        forked = forks.start(["nosuch"], {}, log)
    expected = subprocess.run(started_by("pairscale", "nosuch"), env=environment(), capture_output=True, text=True)
    assert forked.wait() == expected.returncode == 2
    assert (tmp_path / "log").read_text() == expected.stderr != ""


@pytest.mark.slow
def test_a_fork_trains_the_same_weights_as_a_new_python(forks, tmp_path):
    with (tmp_path / "log").open("wb") as log:
        assert forks.start(words(tmp_path / "forked"), {}, log).wait() == 0
    new = [*started_by("pairscale", *words(tmp_path / "new"))]
    subprocess.run(new, env=environment() | ONE_THREAD, stdin=subprocess.DEVNULL, check=True)
    runs = [study_runs(tmp_path / name / "runs", "s")[0] for name in ("forked", "new")]
    assert sha256_file(runs[0].model.weights) == sha256_file(runs[1].model.weights)
    manifests = [run.read_manifest() for run in runs]
    assert manifests[0]["machine"] == manifests[1]["machine"]  # threads
    assert manifests[0].keys() == manifests[1].keys()


def test_a_fork_has_a_session_signals_and_a_progress_file_of_its_own(forks, tmp_path):
    progress, lines = tmp_path / "0.json", tmp_path / "log"
    with lines.open("wb") as log:
        variables = {PROGRESS_FILE: str(progress)}
        forked = forks.start(words(tmp_path, "recipe.budget.epochs=10000"), variables, log)
        killed = forks.start(words(tmp_path / "killed", "recipe.budget.epochs=10000"), {}, log)
    wait_until(lambda: os.getsid(forked.pid) == forked.pid, "a session of its own")
    killed.send_signal(signal.SIGKILL)  # as the kernel does where memory is short
    assert killed.wait() == -signal.SIGKILL
    try:
        wait_until(lambda: read_progress(progress)[0].what == "training", "a training")
    finally:
        forked.send_signal(signal.SIGINT)
    assert forked.wait() == 130
    assert "SIGINT: saved; the same command goes on from here" in lines.read_text()
    forked.send_signal(signal.SIGINT)  # too late, and no error


def test_a_process_that_cannot_start_is_an_error_that_names_its_output(tmp_path):
    log = tmp_path / "forks.log"
    forks = Forks(environment() | {"PYTHONHOME": "/nowhere"}, log)
    with (tmp_path / "log").open("wb") as output, pytest.raises(RunError, match=r"has died; its output: .*forks\.log"):
        forks.start(["nosuch"], {}, output)
    forks.close()
    assert "PYTHONHOME" in log.read_text()
