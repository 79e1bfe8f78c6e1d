"""Trackers that fail: the job goes on with the same numbers and exit code, and the first error is reported once."""

import errno
import json
import os
import signal
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import wandb

from pairscale.command.compose import compose
from pairscale.errors import START_AGAIN, ConfigError, RunError
from tests.support import ROOT
from tests.support.commands import Command, run_command
from tests.support.offline_wandb import hide_account
from tests.support.slurm_cluster import wait_until
from tests.support.small_runs import for_training, trained
from train.runs.folder import RunFolder
from train.trackers import tracker as trackers
from train.trackers.tracker import Job, LoggerConfig, Tracker, tracked

SMALL = [
    "corpus=toy", "corpus.words=60000", "tokenizer=word", "sample.size=8k", "model=lstm_tiny", "model.embedding=16",
    "model.hidden=16", "recipe.validation_words=500", "recipe.budget.epochs=3", "trainer.threads=1",
    "trainer.accelerator=cpu", "trainer.progress=false", "benchmark=toy", "benchmark.per_paradigm=4", "method=[lp]",
    "study=s",
]  # fmt: skip
METHODS = {
    "log": ({"words_seen": 1.0},),
    "summarise": ({"a": 1, "t": pd.DataFrame({"a": [1]})},),
    "chart": ("i", Path("i.png")),
    "artifact": ("m", "model", [Path("m")]),
}


@pytest.fixture(autouse=True)
def _no_account(monkeypatch, tmp_path):
    hide_account(monkeypatch, tmp_path)


@pytest.fixture
def failing(monkeypatch):
    """Register a tracker whose methods named in `failing.on` raise ConnectionResetError; return its class."""

    class Failing(Tracker):
        on: tuple[str, ...] = ()
        called: list[str] = []  # noqa: RUF012

        def __init__(self, logger, job):
            super().__init__(logger, job)
            self.does("start")

        def does(self, name):
            self.called.append(name)
            if name in self.on:
                raise ConnectionResetError(f"lost\nat {name}")

    for name in (*METHODS, "finish"):
        setattr(Failing, name, lambda self, *_, name=name, **__: self.does(name))
    monkeypatch.setitem(trackers._TRACKERS, "failing", Failing)
    return Failing


def use(folder, error=None):
    """Call each method of a tracker twice in its block, which then raises `error`."""
    with tracked(LoggerConfig(name="failing"), Job("train", "a-run", "s", folder, {})) as tracker:
        for words in (1.0, 2.0):
            for name, arguments in (METHODS | {"log": ({"words_seen": words},)}).items():
                getattr(tracker, name)(*arguments)
        if error is not None:
            raise error


@pytest.mark.parametrize("method", ["start", *METHODS, "finish"])
def test_the_first_error_is_reported_once_and_the_tracker_is_only_finished(failing, tmp_path, capsys, method):
    failing.on = (method, "finish")
    use(tmp_path / "new")
    calls = ["start", *METHODS, *METHODS, "finish"]
    calls = calls[: calls.index(method) + 1]
    assert failing.called == (calls if method in ("start", "finish") else [*calls, "finish"])
    (line,) = capsys.readouterr().err.splitlines()
    assert "logger=failing" in line
    assert f"ConnectionResetError: lost at {method}" in line
    log = (tmp_path / "new" / "tracking.log").read_text()
    assert log.count("Traceback") == 1
    assert f"lost\nat {method}" in log


@pytest.mark.parametrize("error", [SystemExit(START_AGAIN), KeyboardInterrupt(), ConfigError("no")])
def test_a_lost_tracker_does_not_hide_how_its_job_ends(failing, tmp_path, error):
    failing.on = ("log", "finish")
    with pytest.raises(type(error)) as raised:
        use(tmp_path, error)
    assert raised.value is error


def test_a_tracker_may_refuse_its_configuration(failing, tmp_path):
    failing.does = lambda self, name: (_ for _ in ()).throw(ConfigError("no key"))
    with pytest.raises(ConfigError, match="no key"):
        use(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("error", "begun", "stops"),
    [
        (json.JSONDecodeError("Expecting value", "<html>", 0), False, False),  # a proxy's page
        (wandb.errors.CommError("no network"), False, True),
        (wandb.errors.CommError("no network"), True, False),
        (wandb.errors.UsageError("no such entity"), True, True),
    ],
)
def test_only_a_refusal_or_a_new_run_that_must_be_online_stops_a_run(monkeypatch, tmp_path, error, begun, stops):
    def refuse(**_):
        raise error

    monkeypatch.setattr(wandb, "init", refuse)
    if begun:
        (tmp_path / "wandb").mkdir()
    job = Job("train", "a-run", "s", tmp_path, {})
    logger = compose("train", [*for_training(overrides(tmp_path, "wandb")), "logger.mode=online"]).logger
    done = []
    with pytest.raises(RunError) if stops else nullcontext(), tracked(logger, job):
        done.append(1)
    assert bool(done) is not stops


class _Hanging:
    """A W&B run whose methods answer after a minute."""

    settings = SimpleNamespace(mode="online")
    summary: dict[str, float] = {}  # noqa: RUF012

    def define_metric(self, *_, **__):
        pass

    def __getattr__(self, name):
        return lambda *_, **__: threading.Event().wait(60)


@pytest.mark.parametrize("begins", [True, False])
def test_a_w_and_b_that_hangs_is_given_up(monkeypatch, tmp_path, capsys, begins):
    for name in ("CALL_SECONDS", "UPLOAD_SECONDS"):
        monkeypatch.setattr(f"train.trackers.wandb.{name}", 0.2)
    monkeypatch.setattr("train.trackers.wandb._answer.__defaults__", (0.2,))
    monkeypatch.setattr(wandb, "init", lambda **_: _Hanging() if begins else threading.Event().wait(60))
    logger, done = LoggerConfig(name="wandb", mode="offline"), []
    start = time.monotonic()
    with tracked(logger, Job("train", "a-run", "s", tmp_path, {})) as tracker:
        for words in range(1, 100):
            tracker.log({"words_seen": words})
        done.append(1)
    assert done
    assert time.monotonic() - start < 5
    assert capsys.readouterr().err.count("W&B did not answer within 0.") == 1


HUNG = """
import os, signal, sys, time
import train.trackers.wandb as tracker
from train.loop.training import LanguageModelling
train = LanguageModelling.training_step
def stopping(self, batch, batch_idx):
    if self.state.step == 20:
        import wandb
        tracker.CALL_SECONDS = tracker.UPLOAD_SECONDS = 2
        tracker._answer.__defaults__ = (2,)
        os.kill(wandb.setup().ensure_service()._proc._process.pid, signal.SIGSTOP)
    return train(self, batch, batch_idx)
LanguageModelling.training_step = stopping
import runpy
sys.argv[0] = "train"
runpy.run_module("train", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
def test_a_command_whose_w_and_b_process_hangs_ends_with_exit_code_0(tmp_path):
    script = tmp_path / "hung.py"
    script.write_text(HUNG)
    arguments = for_training(overrides(tmp_path / "tracked", "wandb"))
    done = run_command(script, *arguments, environment={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("tracking failed (TimeoutError: ") == 1
    alone = trained(compose("train", for_training(overrides(tmp_path / "alone", "csv"))))
    assert_same_run(RunFolder.of(compose("train", for_training(overrides(tmp_path / "tracked", "wandb")))), alone)


def overrides(folder, logger):
    paths = [f"paths.{name}={folder}/{name}" for name in ("store", "runs", "reports")]
    return [*SMALL, *paths, f"paths.store={folder.parent}/store", f"logger={logger}"]


def assert_same_run(left: RunFolder, right: RunFolder) -> None:
    assert left.read_manifest()["status"] == right.read_manifest()["status"] == "done"
    assert left.model.weights.read_bytes() == right.model.weights.read_bytes()
    assert left.metrics.read_bytes() == right.metrics.read_bytes()


def test_w_and_b_that_cannot_start_its_process_stops_no_run(tmp_path, monkeypatch, capsys):
    """SLURM's signal may come before it has begun."""
    import wandb

    (tmp_path / "wandb-core").write_text("#!/bin/sh\nkill -TERM $$\n")
    (tmp_path / "wandb-core").chmod(0o755)
    monkeypatch.setattr("wandb.sdk.lib.service.service_process.get_core_path", lambda: str(tmp_path / "wandb-core"))
    wandb.teardown()
    assert trained(compose("train", for_training(overrides(tmp_path / "tracked", "wandb")))).done
    assert capsys.readouterr().err.count("tracking failed") == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # of TensorBoard's own thread
def test_a_tensorboard_on_a_full_disk_stops_no_run(tmp_path, monkeypatch, capsys):
    from tensorboard.summary.writer.record_writer import RecordWriter

    write, written = RecordWriter.write, []

    def full(self, data):
        written.append(data)
        if len(written) > 9:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, data)

    monkeypatch.setattr(RecordWriter, "write", full)
    assert trained(compose("train", for_training(overrides(tmp_path / "tracked", "tensorboard")))).done
    assert capsys.readouterr().err.count("tracking failed (OSError: [Errno 28]") == 1


def end_service(process: int, number: int) -> None:
    """Send a signal to the W&B process of a process, and wait for its end."""
    threads = Path(f"/proc/{process}/task").glob("*/children")
    children = [Path("/proc", pid) for thread in threads for pid in thread.read_text().split()]
    (service,) = [path for path in children if b"wandb-core" in (path / "cmdline").read_bytes()]
    os.kill(int(service.name), number)
    wait_until(lambda: not service.exists() or not (service / "cmdline").read_bytes(), "the end of W&B")  # or a zombie


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_command_whose_w_and_b_ends_has_exit_code_0(tmp_path, number):
    (tmp_path / "tracked").mkdir()
    process, run = held(tmp_path / "tracked", "eval")
    end_service(process.pid, number)
    (tmp_path / "tracked" / "hold").unlink()
    done = process.wait()
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("tracking failed") == 1
    assert "Traceback" not in done.stderr
    run_command("eval", *overrides(tmp_path / "alone", "csv")).check_returncode()
    alone = RunFolder.of(compose("train", for_training(overrides(tmp_path / "alone", "csv"))))
    assert_same_run(run, alone)
    scores = [next(one.path.glob("scores/*/lp.parquet")) for one in (run, alone)]
    pd.testing.assert_frame_equal(*map(pd.read_parquet, scores), check_exact=True)


def held(folder: Path, command: str) -> tuple[Command, RunFolder]:
    """Start a run with W&B that pauses at each step while folder/hold exists, and wait for its first points."""
    (folder / "hold").touch()
    arguments = [*overrides(folder, "wandb"), "recipe.checkpoint_every=2k"]
    arguments = for_training(arguments) if command == "train" else arguments
    values = {"PYTHONPATH": str(ROOT), "HELD_PAUSE": "0.05"}
    script = ROOT / "tests" / "support" / "held_python.py"
    process = Command(script, folder / "hold", "-um", command, *arguments, environment=values)
    run = RunFolder.of(compose(command, arguments))
    wait_until(lambda: bool(run.checkpoints) or process.code is not None, "a checkpoint")
    assert process.code is None, process.output()
    return process, run


@pytest.mark.slow
def test_a_stopped_command_that_has_lost_w_and_b_is_started_again(tmp_path):
    (tmp_path / "tracked").mkdir()
    process, run = held(tmp_path / "tracked", "train")
    end_service(process.pid, signal.SIGKILL)
    process.kill(signal.SIGUSR2)
    done = process.wait()
    assert done.returncode == START_AGAIN, done.stderr
    assert "Traceback" not in done.stderr
    assert run.read_manifest()["status"] == "unfinished"
    arguments = for_training(overrides(tmp_path / "tracked", "wandb"))
    run_command("train", *arguments, "recipe.checkpoint_every=2k").check_returncode()
    alone = trained(
        compose("train", [*for_training(overrides(tmp_path / "alone", "csv")), "recipe.checkpoint_every=2k"])
    )
    assert_same_run(run, alone)
