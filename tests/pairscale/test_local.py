"""The local launcher: runs at a time, threads and GPUs, failures, interrupts, and the time left."""

import os
import signal
import sys
from functools import partial

import pytest
from omegaconf import OmegaConf

import pairscale.command.launchers.local
from pairscale.command.compose import compose, composed
from pairscale.command.launchers import check_all
from pairscale.command.launchers.board import Board
from pairscale.command.launchers.jobs import Work
from pairscale.command.launchers.local import LocalLauncher, Slots, _may_use_gpu, _visible_gpus
from pairscale.command.launchers.remaining import Remaining
from pairscale.command.main import main
from pairscale.errors import ConfigError, RunError, RunInUse
from tests.support.commands import Command, run_command
from tests.support.slurm_cluster import wait_until
from train.estimate import estimate
from train.runs.folder import RunFolder, study_runs
from train.sweeps import job_of, memory_of, training_seconds

RUN = [
    "study=s", "model=lstm_tiny", "model.embedding=16", "model.hidden=16", "corpus=toy", "corpus.words=30000",
    "sample.size=2k",
    "recipe.validation_words=200", "trainer.accelerator=cpu",
]  # fmt: skip


def command(tmp_path, *more):
    paths = [f"paths.store={tmp_path}/store", f"paths.runs={tmp_path}/runs"]
    launcher = ["hydra/launcher=local", "hydra.launcher.jobs=2", "hydra.launcher.threads=1"]  # so the runs are forks
    return ["train", "-m", *RUN, *paths, *launcher, "seed=1", *more]


@pytest.mark.slow
def test_a_sweep_resumes_after_an_interrupt_and_continues_past_a_failed_run(tmp_path):
    arguments = command(tmp_path, "recipe.budget.epochs=15", "recipe.checkpoint_every=2k", "recipe.batch=99999,8,16")
    process = Command(*arguments)
    wait_until(lambda: process.code is not None or list(tmp_path.glob("runs/s/*/checkpoints/*.ckpt")), "a checkpoint")
    process.kill(signal.SIGINT)
    interrupted = process.wait()
    assert interrupted.returncode == 130, interrupted.stderr
    assert "the same command goes on from the last checkpoint" in interrupted.stderr
    runs = study_runs(tmp_path / "runs", "s")
    assert not any(run.in_use for run in runs)
    assert sum(run.done for run in runs) < 2

    again = run_command(*arguments)
    assert again.returncode == 2, again.stderr
    runs = study_runs(tmp_path / "runs", "s")
    assert sorted(run.read_manifest()["status"] for run in runs) == ["done", "done", "failed"]
    assert {run.read_manifest()["machine"]["threads"] for run in runs if run.done} == {1}  # small models
    logs = "".join(path.read_text() for path in (tmp_path / "runs" / "s" / "local").rglob("*.log"))
    assert "resuming" in logs
    lines = again.stderr.splitlines()
    (failed,) = [n for n, line in enumerate(lines) if line.startswith("[") and "FAILED batch=99999" in line]
    assert lines[failed + 1].strip().startswith("pairscale train: recipe.batch=99999: more columns")
    assert lines[-1] == "pairscale train: 1 of 3 runs failed (see above); the same command tries them again"
    assert lines[0].startswith("3 runs, 2 at a time")


def test_runs_in_use_by_another_process_are_not_failures():
    check_all(4, failed=0, unfinished=0)
    with pytest.raises(RunInUse, match=r"2 of 4 runs did not begin or end \(see above\); the same command goes on"):
        check_all(4, failed=0, unfinished=2)
    with pytest.raises(RunError, match="1 of 4 runs failed, and 2 did not begin or end") as caught:
        check_all(4, failed=1, unfinished=2)
    assert caught.value.exit_code == 2


@pytest.fixture
def sweep(tmp_path, monkeypatch, capsys):
    """Return a function that sweeps with a shell script for each run; it returns the exit code and lines of stderr."""

    def sweep(script, command, *words):
        def started(*run):
            return ["sh", "-c", script, "run", *run]

        monkeypatch.setattr(pairscale.command.launchers.local, "started_by", started)
        monkeypatch.setattr(Slots, "forked", False)
        monkeypatch.setattr("train.sweeps.memory_of", lambda jobs: 0)
        monkeypatch.setattr(sys, "argv", [command, "-m", *words, f"paths.runs={tmp_path}/runs"])
        with pytest.raises(SystemExit) as caught:
            main(command, lambda config: None)
        return caught.value.code or 0, capsys.readouterr().err.splitlines()

    monkeypatch.chdir(tmp_path)
    return sweep


TOY = ["study=s", "model=lstm_tiny", "corpus=toy"]
# A run that fails with code 75 if another with the same word KEY... is running.
ALONE = """
for word in "$@"; do case $word in {key}*) lock=$word;; esac; done
mkdir "lock-$lock" || exit 75
sleep 0.3
rmdir "lock-$lock"
"""


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("seed=", ["model=lstm_tiny", "corpus=toy", "seed=1,2", "sample.size=2k"]),
        ("study=", []),  # all runs of a study
    ],
)
@pytest.mark.slow
def test_points_of_one_run_or_study_are_run_one_after_another(sweep, key, words):
    overrides = ["study=s", *words, "benchmark=toy", "benchmark.per_paradigm=20,30", "hydra.launcher.jobs=4"]
    code, lines = sweep(ALONE.format(key=key), "eval", *overrides)
    assert code == 0, lines
    runs = 4 if words else 2
    assert lines[0].startswith(f"{runs} runs, {runs // 2} at a time")
    assert len([line for line in lines if "] done " in line and "per_paradigm=" in line]) == runs


def test_a_refused_point_counts_as_a_run(sweep):
    overrides = [*TOY, "model.dropout=0,7", "seed=1", "hydra.launcher.jobs=4"]
    code, lines = sweep("exit 2", "eval", *overrides)
    assert (code, lines[0][:23]) == (2, "2 runs, 2 at a time, at")


def test_runs_that_wait_do_not_begin_after_an_interrupt(sweep, monkeypatch):
    begun = []
    monkeypatch.setattr(Board, "begin", lambda self, run, state: begun.append(run))
    launcher = ["hydra/launcher=local", "hydra.launcher.jobs=1"]
    code, _ = sweep("kill -INT $PPID; sleep 1; exit 130", "train", *TOY, "seed=1,2,3", *launcher)
    assert (code, begun) == (130, [0])


def test_a_sweep_does_not_overwrite_the_logs_of_an_earlier_one(sweep, tmp_path):
    overrides = [*TOY, "seed=1"]
    for text in ("first", "second"):
        _, lines = sweep(f"echo it is the {text}; exit 2", "train", *overrides)
        assert f"it is the {text}" in "".join(lines)
    assert sorted(path.read_text() for path in (tmp_path / "runs/s/local").rglob("0.log")) == [
        "it is the first\n", "it is the second\n"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("hydra.launcher.jobs=-1", "hydra.launcher.jobs=-1: must be from 1 to 4096"),
        ("hydra.launcher.jobs=0", "hydra.launcher.jobs=0: must be from 1 to 4096"),
        ("hydra.launcher.per_gpu=0", "hydra.launcher.per_gpu=0: must be from 1 to 4096"),
        ("hydra.launcher.threads=-2", "hydra.launcher.threads=-2: must be from 1 to 4096"),
        ("hydra.launcher.jobs=two", "jobs=two"),
        ("study=../../evil", "study=../../evil: names a folder"),
    ],
)
def test_values_out_of_range_are_a_message_of_one_line_and_write_no_files(sweep, tmp_path, word, message):
    overrides = [*TOY, "seed=1,2", "hydra.launcher.gpus=[0]"]
    code, lines = sweep("exit 0", "train", *overrides, word)
    assert (code, len(lines)) == (2, 1), lines
    assert message in lines[0]
    assert "fault of pairscale" not in lines[0]
    assert not [path for path in (tmp_path / "runs").rglob("*") if path.name == "local"]
    assert not (tmp_path.parent / "evil").exists()


def launcher(**values):
    defaults = {"jobs": None, "per_gpu": 1, "gpus": None, "threads": None, "logs": "logs"}
    return LocalLauncher(**defaults | values)


def jobs(*words):
    return [job_of(0, [], compose("train", ["corpus=toy", "model=lstm_tiny", *words]), None)]


def test_gpus_are_assigned_in_turn(monkeypatch):
    slots = launcher(gpus=["0", "2"], per_gpu=2).slots(jobs(), 9)
    assert slots.count == 4
    assert [slots.environment(slot)["CUDA_VISIBLE_DEVICES"] for slot in range(4)] == ["0", "2", "0", "2"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1a,GPU-2b")
    assert _visible_gpus() == ["GPU-1a", "GPU-2b"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert _visible_gpus() == []
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr("train.sweeps.memory_of", lambda jobs: 0)
    assert "CUDA_VISIBLE_DEVICES" not in launcher(gpus=[]).slots(jobs(), 9).environment(0)


@pytest.mark.parametrize(
    ("devices", "per_gpu", "gpus", "expected"),
    [
        (2, 1, "0 1 2 3", ("0,1", "2,3")),
        (2, 2, "0 1 2 3", ("0,1", "2,3")),
        (2, 1, "5 6 7", ("5,6",)),  # one is left over
        (3, 1, "5 6 7", ("5,6,7",)),
    ],
)
def test_a_run_on_several_devices_is_assigned_as_many_gpus(devices, per_gpu, gpus, expected):
    slots = launcher(gpus=gpus.split(), per_gpu=per_gpu).slots(jobs(f"trainer.devices={devices}", "recipe.batch=6"), 9)
    assert (slots.gpus, slots.count) == (expected, len(expected) * per_gpu)


def test_too_few_gpus_for_a_run_are_an_error_before_the_sweep():
    with pytest.raises(ConfigError, match=r"trainer\.devices=3: must be at most 2, the number of GPUs here \(0,1;"):
        launcher(gpus=["0", "1"]).slots(jobs("trainer.devices=3", "recipe.batch=6"), 2)


@pytest.mark.parametrize("words", [["trainer.accelerator=cpu"], ["model=ngram"]])
def test_runs_on_the_cpu_are_not_limited_by_gpus(monkeypatch, words):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    monkeypatch.setattr("train.sweeps.memory_of", lambda jobs: 0)
    slots = launcher(gpus=["0"]).slots(jobs(*words), 9)
    assert (slots.count, slots.gpus) == (4, ())


@pytest.mark.parametrize(
    ("values", "most", "granted", "count", "threads"),
    [
        ({}, 9, None, 4, 1),
        ({"threads": 2}, 9, None, 2, 2),
        ({"jobs": 3}, 9, None, 3, 1),
        ({}, 1, None, 1, 4),  # a sweep of one run
        ({}, 2, None, 2, 2),
        ({"jobs": 9}, 2, None, 2, 2),
        ({}, 1, "2", 1, 2),  # OMP_NUM_THREADS
        ({}, 1, "3,2", 1, 3),
        ({"threads": 4}, 1, "2", 1, 4),
    ],
)
def test_cores_are_divided_among_the_runs_at_a_time(monkeypatch, values, most, granted, count, threads):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    monkeypatch.setattr("train.sweeps.memory_of", lambda jobs: 0)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if granted:
        monkeypatch.setenv("OMP_NUM_THREADS", granted)
    slots = launcher(gpus=[], **values).slots(jobs(), most)
    assert (slots.count, slots.threads) == (count, threads)


@pytest.mark.skipif(sys.platform != "linux", reason="forks only on Linux")
def test_runs_are_forks_where_one_process_with_one_thread_and_no_gpu_can_start_them():
    assert Slots(2, 1).forked
    assert not Slots(2, 2).forked
    assert not Slots(2, 1, ("0",)).forked


def test_runs_that_may_use_a_gpu_are_no_forks(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert _may_use_gpu(jobs())
    assert not _may_use_gpu(jobs("trainer.accelerator=cpu"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert not _may_use_gpu(jobs())


def test_runs_that_train_a_network_here_are_forks(tmp_path):
    model = ["study=s", f"paths.runs={tmp_path}"]
    configs = [compose("eval", [*model, *words]) for words in (
        ["corpus=toy", "model=lstm_tiny"], ["corpus=toy", "model=ngram"], ["model=hf_causal", "model.path=gpt2"]
    )]  # fmt: skip
    assert [job_of(0, [], config, None).preloads for config in configs] == [True, False, False]
    folder = RunFolder.of(configs[0])
    write_finished_run(folder, 1000, 1)
    assert folder.done
    assert not job_of(0, [], configs[0], folder.path).preloads


@pytest.mark.parametrize(("values", "gib", "count"), [({}, 1, 4), ({}, 3, 2), ({}, 99, 1), ({"jobs": 4}, 99, 4)])
def test_memory_limits_the_runs_at_a_time(monkeypatch, values, gib, count):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    monkeypatch.setattr("pairscale.machine.available_memory", lambda: 6.5 * 2**30)
    monkeypatch.setattr("train.sweeps.memory_of", lambda jobs: gib * 2**30)
    assert launcher(gpus=[], **values).slots(jobs(), 9).count == count


@pytest.mark.slow
def test_the_memory_of_runs_is_taken_from_their_plan_or_weights(tmp_path, monkeypatch):
    paths = [f"paths.store={tmp_path}/store", f"paths.runs={tmp_path}/runs"]
    small, large = (jobs(*paths, f"model.hidden={size}", f"model.embedding={size}") for size in (16, 1500))
    expected = estimate(compose("train", ["corpus=toy", "model=lstm_tiny", "model.hidden=1500", "model.embedding=1500",
                                          "dry_run_words_per_s=1000", *paths])).memory_bytes  # fmt: skip
    assert memory_of(small + large) == expected  # in another process
    (tmp_path / "model.safetensors").write_bytes(b"x" * 1000)
    words = ["study=s", "model=hf_causal", f"model.path={tmp_path}"]
    assert memory_of([job_of(0, [], compose("eval", words), None)]) == 1000


def test_the_launchers_values_are_checked_by_its_schema(tmp_path):
    node = composed("train", ["corpus=toy", "study=s", "hydra.launcher.gpus=[1]"]).hydra.launcher  # the default
    assert OmegaConf.to_container(node)["gpus"] == ["1"]
    with pytest.raises(Exception, match="jbos"):
        composed("train", ["hydra/launcher=local", "hydra.launcher.jbos=1"])
    assert RunFolder.of(compose("train", ["hydra/launcher=basic", "corpus=toy"])) == RunFolder.of(
        compose("train", ["corpus=toy"])
    )


def trained_in(folder):
    return partial(training_seconds, folder)


def write_finished_run(folder, words, seconds):
    """Write a run folder whose training took so many seconds."""
    folder.path.mkdir(parents=True)
    folder.update_manifest(status="done", words_seen=words, words_per_s=words / seconds)


def test_the_time_left_is_estimated_from_words_not_runs(tmp_path, monkeypatch):
    """The mean of the two smallest of 16 runs gave 14 x 200 / 2 = 23 minutes instead of an hour."""
    now = 0.0
    monkeypatch.setattr("pairscale.command.launchers.remaining.time.monotonic", lambda: now)
    sizes = [125_000 * 2**power for power in range(4) for _ in range(4)]
    folders = [RunFolder(tmp_path / str(run)) for run in range(len(sizes))]
    works = [Work("m", size * 3.0, trained_in(folder)) for size, folder in zip(sizes, folders, strict=True)]
    remaining = Remaining(works, jobs=2)
    assert remaining.left() is None
    for run in (0, 1):  # 100 s to train 375k words, 100 s to start and to score
        remaining.begins(run)
        write_finished_run(folders[run], 375_000, 100)
        remaining.ends(run, 200.0)
    expected = (2 * 200 + 4 * 300 + 4 * 500 + 4 * 900) / 2
    assert remaining.left() == pytest.approx(expected)
    remaining.begins(2)
    now = 50.0
    assert remaining.left() == pytest.approx(expected - 25)
    remaining.ends(2, None)  # failed at once: no information about the others
    assert remaining.left() == pytest.approx((200 + 4 * 300 + 4 * 500 + 4 * 900) / 2)


def test_the_time_left_of_a_run_at_work_is_its_own(tmp_path, monkeypatch):
    now = 0.0
    monkeypatch.setattr("pairscale.command.launchers.remaining.time.monotonic", lambda: now)
    folder = RunFolder(tmp_path / "a")
    remaining = Remaining([Work("m", 1000.0, trained_in(folder)), Work("m", 4000.0)], jobs=1)
    remaining.begins(0)
    now = 10.0
    remaining.observes(0, rate=50.0, left=19.0)
    assert remaining.left() is None  # its first steps tell nothing
    now = 30.0
    remaining.observes(0, rate=10.0, left=80.0)  # 20 s trained after 10 s of preparation
    assert remaining.left() == pytest.approx(80 + 10 + 400)  # the other one prepares and trains, too
    now = 60.0
    assert remaining.left() == pytest.approx(50 + 410)
    write_finished_run(folder, 1000, 100)
    now = 125.0
    remaining.ends(0, 125.0)  # 15 s of it scoring
    assert remaining.left() == pytest.approx(25 + 400)
    remaining.begins(1)
    now = 135.0
    remaining.observes(1, rate=20.0, left=40.0)
    now = 155.0
    remaining.observes(1, rate=20.0, left=20.0)  # resumed near its end: most was trained before
    assert remaining.left() == pytest.approx(20 + 25)
    now = 185.0
    assert remaining.left() == pytest.approx(15)


def test_the_time_left_of_a_trained_run_is_its_scoring(tmp_path):
    trained = Work("m", 0.0)
    remaining = Remaining([trained, Work("m", 1e6, trained_in(RunFolder(tmp_path))), trained], jobs=1)
    remaining.ends(0, 30.0)
    assert remaining.left() == pytest.approx(60)  # no speed is known yet


def test_the_time_of_another_model_is_estimated_from_the_finished_ones(tmp_path):
    folder = RunFolder(tmp_path / "a")
    write_finished_run(folder, 1_000_000, 500)
    remaining = Remaining([Work("a", 1e6, trained_in(folder)), Work("b", 1e6)], jobs=1)
    remaining.ends(0, 520.0)
    assert remaining.left() == pytest.approx(520)
