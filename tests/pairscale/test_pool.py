"""Sweeps by a pool of processes: runs at a time, threads and GPUs, failures, interrupts; runs that share a process."""

import dataclasses
import json
import os
import signal
import sys

import pytest

import pairscale.command.pool
from eval.__main__ import plan as plan_scoring
from eval.config import of_each_benchmark
from eval.estimate import peak_memory
from pairscale.command.board import Board
from pairscale.command.compose import compose
from pairscale.command.line import Line
from pairscale.command.main import main
from pairscale.command.pool import Job, PoolConfig, check_codes, divide, run_jobs, visible_gpus
from pairscale.errors import ConfigError, RunError, RunInUse
from pairscale.files import sha256_file
from tests.support.commands import Command, run_command
from tests.support.slurm_cluster import wait_until
from train.estimate import PROCESS_BYTES, estimate
from train.plan import Plan
from train.runs.folder import RunFolder, study_runs
from train.sweeps import jobs_of, memory_of, points, run_grid

RUN = [
    "study=s", "model=lstm_tiny", "model.embedding=16", "model.hidden=16", "corpus=toy", "corpus.words=30000",
    "sample.size=2k",
    "recipe.validation_words=200", "trainer.accelerator=cpu",
]  # fmt: skip


def command(tmp_path, *more):
    paths = [f"paths.store={tmp_path}/store", f"paths.runs={tmp_path}/runs"]
    return ["train", "-m", *RUN, *paths, "pool.jobs=2", "pool.threads=1", "seed=1", *more]


@pytest.mark.slow
def test_a_sweep_resumes_after_an_interrupt_and_continues_past_a_failed_run(tmp_path):
    arguments = command(tmp_path, "recipe.budget.epochs=15", "recipe.checkpoint_every=2k", "recipe.batch=99999,8,16")
    process = Command(*arguments)
    wait_until(lambda: process.code is not None or list(tmp_path.glob("runs/s/*/checkpoints/*.ckpt")), "a checkpoint")
    process.kill(signal.SIGINT)
    interrupted = process.wait()
    assert interrupted.returncode == 130, interrupted.stderr
    runs = study_runs(tmp_path / "runs", "s")
    assert not any(run.in_use for run in runs)
    assert sum(run.done for run in runs) < 2

    again = run_command(*arguments)
    assert again.returncode == 2, again.stderr
    runs = study_runs(tmp_path / "runs", "s")
    assert sorted(run.read_manifest()["status"] for run in runs) == ["done", "done", "failed"]
    assert {run.read_manifest()["machine"]["threads"] for run in runs if run.done} == {1}  # small models
    logs = "".join(path.read_text() for path in (tmp_path / "runs" / "s" / "logs").rglob("*.log"))
    assert "Resuming" in logs
    lines = again.stderr.splitlines()
    (failed,) = [n for n, line in enumerate(lines) if line.startswith("[") and "FAILED batch=99999" in line]
    assert "recipe.batch=99999: these are too many columns" in lines[failed + 1]
    assert "1 of 3 runs failed" in lines[-1]


def test_runs_in_use_by_another_process_are_not_failures():
    check_codes([0, 0, 0, 0])
    with pytest.raises(RunInUse, match="2 of 4 runs did not start or finish"):
        check_codes([0, 75, 0, 75])
    with pytest.raises(RunError, match="1 of 4 runs failed, and 2 did not start or finish") as caught:
        check_codes([-9, 75, 0, 75])
    assert caught.value.exit_code == 2


# A worker whose runs are a shell script, with the run's words as its arguments.
WORKER = """
import json, subprocess, sys
for line in sys.stdin:
    run = json.loads(line)
    with open(run["log"], "ab") as log:
        code = subprocess.call(["sh", "-c", sys.argv[1], "run", *run["words"]], stdout=log, stderr=log)
    print(json.dumps({"code": code, "result": {"new": True}}), flush=True)
    if code:
        break
"""


@pytest.fixture
def sweep(tmp_path, monkeypatch, capsys):
    """Return a function that sweeps with a shell script for each run; it returns the exit code and lines of stderr."""

    def sweep(script, command, *words):
        monkeypatch.setattr(pairscale.command.pool, "started_by", lambda module: [sys.executable, "-c", WORKER, script])
        monkeypatch.setattr("train.sweeps.memory_of", lambda command, jobs: 0)
        monkeypatch.setattr(sys, "argv", [command, "-m", *words, f"paths.runs={tmp_path}/runs"])
        with pytest.raises(SystemExit) as caught:
            main(command, lambda config: None, sweep=run_grid)
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
    overrides = ["study=s", *words, "benchmark=toy", "benchmark.per_paradigm=20,30", "pool.jobs=4"]
    code, lines = sweep(ALONE.format(key=key), "eval", *overrides)
    assert code == 0, lines
    runs = 4 if words else 2
    assert lines[0].startswith(f"{runs} runs, {runs // 2} at a time")
    assert len([line for line in lines if "] done " in line and "per_paradigm=" in line]) == runs


def test_a_refused_run_is_reported_once_and_the_others_go_on(sweep):
    code, lines = sweep("exit 0", "eval", *TOY, "model.dropout=0,7", "seed=1,2,3", "pool.jobs=4")
    assert code == 2
    (refused,) = [line for line in lines if "dropout=7" in line]
    assert lines[0] == refused
    assert "(3 of the 6 runs" in refused
    assert len([line for line in lines if line.startswith("[") and "] done " in line]) == 3


def test_a_sweep_of_which_every_run_is_refused_starts_none(sweep, tmp_path):
    for wrong in ("model.dropout=7", "model.dropout=7,8", "pool.jobs=0", "pool.jbos=1"):
        code, lines = sweep("exit 0", "train", *TOY, wrong, "seed=1,2")
        assert (code, len(lines)) == (2, len(wrong.split(","))), lines
        assert all(wrong.partition("=")[0] in line and "bug in pairscale" not in line for line in lines)
        assert not (tmp_path / "runs").exists()


def test_runs_that_wait_do_not_begin_after_an_interrupt(sweep, monkeypatch):
    begun = []
    monkeypatch.setattr(Board, "observe", lambda self, run, state: begun.append(run))
    script = f"kill -INT {os.getpid()}; sleep 1; exit 130"
    code, _ = sweep(script, "train", *TOY, "seed=1,2,3", "pool.jobs=1")
    assert (code, begun) == (130, [0])


def test_a_run_whose_process_dies_has_failed_and_another_process_takes_its_place(sweep):
    """As the kernel kills one where memory is short."""
    script = 'case "$*" in *seed=2*) echo the last words; kill -KILL $PPID; sleep 1;; esac'
    code, lines = sweep(script, "train", *TOY, "seed=1,2,3", "pool.jobs=1")
    assert code == 2
    states = [line.split()[1:4] for line in lines if line.startswith("[")]
    assert states == [["done", "seed", "1"], ["FAILED", "seed", "2"], ["done", "seed", "3"]]
    (reason,) = [line for line in lines if "Its process was killed by SIGKILL" in line]
    assert "memory ran out. The last line of its log: the last words (" in reason


def test_a_process_that_cannot_start_is_a_failure_with_its_own_words(tmp_path, monkeypatch, capsys):
    cannot = [sys.executable, "-c", "raise SystemExit('no module named encodings')"]
    monkeypatch.setattr(pairscale.command.pool, "started_by", lambda module: cannot)
    a_run = [Job(["seed=1"], "a run")]
    assert run_jobs("train", a_run, PoolConfig(), tmp_path, lambda: 0, progress=False) == [1]
    lines = capsys.readouterr().err.splitlines()
    assert lines[2].startswith("[1/1] FAILED a run in ")
    assert "Its process ended with exit code 1. The last line of its log: no module named encodings" in lines[3]


def test_a_sweep_does_not_overwrite_the_logs_of_an_earlier_one(sweep, tmp_path):
    overrides = [*TOY, "seed=1"]
    for text in ("first", "second"):
        _, lines = sweep(f"echo it is the {text}; exit 2", "train", *overrides)
        assert f"it is the {text}" in "".join(lines)
    assert sorted(path.read_text() for path in (tmp_path / "runs/s/logs").rglob("0.log")) == [
        "it is the first\n", "it is the second\n"
    ]  # fmt: skip


def shared(runs, memory=0, **values):
    """Return how a machine is divided among runs."""
    return divide(runs, PoolConfig(**values), lambda: memory)


def jobs(*words, count=1):
    config = compose("train", ["corpus=toy", "model=lstm_tiny", *words])
    on_gpu = config.trainer.accelerator != "cpu" and not config.model.counted
    return [Job([], on_gpu=on_gpu, devices=config.trainer.devices, config=config) for _ in range(count)]


def test_gpus_are_assigned_in_turn(monkeypatch):
    slots = shared(jobs(count=9), gpus=["0", "2"], per_gpu=2)
    assert slots.count == 4
    assert [slots.environment(slot)["CUDA_VISIBLE_DEVICES"] for slot in range(4)] == ["0", "2", "0", "2"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1a,GPU-2b")
    assert visible_gpus() == ["GPU-1a", "GPU-2b"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert visible_gpus() == []
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert "CUDA_VISIBLE_DEVICES" not in shared(jobs(count=9), gpus=[]).environment(0)


@pytest.mark.parametrize(
    ("devices", "per_gpu", "gpus", "expected"),
    [
        (2, 1, "0 1 2 3", ("0,1", "2,3")),
        (2, 2, "0 1 2 3", ("0,1", "2,3")),
        (2, 1, "5 6 7", ("5,6",)),  # one is left over
    ],
)
def test_a_run_on_several_devices_is_assigned_as_many_gpus(devices, per_gpu, gpus, expected):
    runs = jobs(f"trainer.devices={devices}", "recipe.batch=6", count=9)
    slots = shared(runs, gpus=gpus.split(), per_gpu=per_gpu)
    assert (slots.gpus, slots.count) == (expected, len(expected) * per_gpu)
    with pytest.raises(ConfigError, match=r"trainer\.devices=3: only 2 GPUs"):
        shared(jobs("trainer.devices=3", "recipe.batch=6", count=2), gpus=["0", "1"])


@pytest.fixture
def four_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.mark.parametrize("words", [["trainer.accelerator=cpu"], ["model=ngram"]])
def test_runs_on_the_cpu_are_not_limited_by_gpus(four_cores, words):
    slots = shared(jobs(*words, count=9), gpus=["0"])
    assert (slots.count, slots.gpus) == (4, ())


@pytest.mark.parametrize(
    ("values", "most", "granted", "count", "threads"),
    [
        ({}, 9, None, 4, 1),
        ({"threads": 2}, 9, None, 2, 2),
        ({"jobs": 3}, 9, None, 3, 1),
        ({}, 1, None, 1, 4),  # a sweep of one run
        ({"jobs": 9}, 2, None, 2, 2),
        ({}, 1, "3,2", 1, 3),  # OMP_NUM_THREADS
        ({"threads": 4}, 1, "2", 1, 4),
    ],
)
def test_cores_are_divided_among_the_runs_at_a_time(four_cores, monkeypatch, values, most, granted, count, threads):
    if granted:
        monkeypatch.setenv("OMP_NUM_THREADS", granted)
    slots = shared(jobs(count=most), gpus=[], **values)
    assert (slots.count, slots.threads) == (count, threads)


@pytest.mark.parametrize(("values", "gib", "count"), [({}, 1, 4), ({}, 3, 2), ({}, 99, 1), ({"jobs": 4}, 99, 4)])
def test_memory_limits_the_runs_at_a_time(four_cores, monkeypatch, values, gib, count):
    monkeypatch.setattr("pairscale.machine.available_memory", lambda: 6.5 * 2**30)
    assert shared(jobs(count=9), gib * 2**30, gpus=[], **values).count == count


@pytest.mark.slow
def test_the_memory_of_runs_is_taken_from_their_plan_or_weights(tmp_path):
    paths = [f"paths.store={tmp_path}/store", f"paths.runs={tmp_path}/runs"]
    small, large = (jobs(*paths, f"model.hidden={size}", f"model.embedding={size}") for size in (16, 1500))
    planned = dataclasses.replace(large[0].config, dry_run_words_per_s=1000)
    assert memory_of("train", small + large) == estimate(planned).memory_bytes  # in another process
    (tmp_path / "model.safetensors").write_bytes(b"x" * 1000)
    config = compose("eval", ["study=s", "model=hf_causal", f"model.path={tmp_path}"])
    assert memory_of("eval", [Job([], config=config)]) == 1000


@pytest.mark.parametrize("live", [False, True])
def test_the_memory_of_runs_that_are_scored_is_that_of_their_dry_run(tmp_path, monkeypatch, live):
    """On the largest of their benchmarks, and during or after training."""
    (tmp_path / "benchmark").mkdir()
    for name, pairs in (("small", 1), ("large", 3)):
        (tmp_path / "benchmark" / f"{name}.yaml").write_text(
            f"name: {name}\nform: toy\nseed: 1\nper_paradigm: {pairs}\nlanguage: en\n"
        )
    words = [*RUN, "dry_run_words_per_s=1000", *(f"paths.{name}={tmp_path}/{name}" for name in ("store", "runs"))]
    words += ["--config-dir", f"{tmp_path}", "benchmark=[small,large]"]
    words += ["scoring.snapshots=live", "trainer.snapshots=4"] if live else []
    runs = planned("eval", *words)
    training, scoring = estimate(runs[0].config).memory_bytes, PROCESS_BYTES + 128 * 2**20 + 3 * 41 * 12_500
    assert training < scoring
    assert memory_of("eval", runs) == (training + scoring if live else scoring)
    monkeypatch.setattr("eval.__main__.planned", dry := Plan())
    plan_scoring(of_each_benchmark(runs[0].config, Line.of(words, "eval")))
    assert [run.memory_bytes for run in dry.runs] == [training + scoring if live else scoring]
    RunFolder.of(runs[0].config).update_manifest(status="done")
    assert peak_memory(runs) == scoring  # nothing is left to train


def planned(command, *words):
    """Return the jobs of a sweep."""
    return jobs_of(points(command, Line.of(words, command), []))


def test_each_job_of_a_sweep_has_the_folder_and_words_of_its_run(tmp_path):
    fixed = ["corpus=toy", "study=s", f"paths.runs={tmp_path}", "recipe.budget.epochs=2"]
    cells = [(model, size) for model in ("lstm_tiny", "ngram") for size in ("1k", "4k")]
    expected = [[*fixed, f"model={model}", f"sample.size={size}", f"seed={n}"] for model, size in cells for n in (1, 2)]
    made = planned("train", *fixed, "model=lstm_tiny,ngram", "sample.size=1k,4k", "seed=1,2")
    assert [job.words for job in made] == expected
    assert [job.folder for job in made] == [RunFolder.of(compose("train", words)).path for words in expected]
    assert [job.training_words for job in made] == [2000, 2000, 8000, 8000, 1000, 1000, 4000, 4000]
    assert made[0].name == "lstm_tiny, 1k words, seed 1"


def test_a_run_that_a_sweep_names_twice_is_one_job(tmp_path):
    """Runs on the full text have no filter, whatever the axis of filters says; benchmarks are scored apart."""
    swept = ["ablate.action=none,remove", "filter=passive,reflexive", "benchmark=toy,blimp"]
    made = planned("eval", "corpus=toy", "study=s", f"paths.runs={tmp_path}", "model=lstm_tiny", *swept)
    named = [[word.partition("=")[2] for word in job.words[-3:]] for job in made]
    assert named == [
        ["none", "passive", "toy"], ["none", "passive", "blimp"], ["remove", "passive", "toy"],
        ["remove", "passive", "blimp"], ["remove", "reflexive", "toy"], ["remove", "reflexive", "blimp"],
    ]  # fmt: skip
    assert len({job.folder for job in made}) == 3


@pytest.mark.slow
def test_runs_of_one_process_have_the_weights_of_runs_in_processes_of_their_own(tmp_path):
    """A run leaves nothing to the next one in its process: seeds, settings, variables, memory of a state."""
    models = ["lstm_tiny", "txl_tiny", "gpt2_tiny"]
    words = ["study=s", "corpus=toy", "corpus.words=30000", "sample.size=2k", "recipe.validation_words=200",
             "recipe.budget.epochs=1", "trainer.accelerator=cpu", f"paths.store={tmp_path}/store"]  # fmt: skip
    swept = ["-m", f"model={','.join([*models, *models[:1]])}", "seed=1,2", "pool.jobs=1"]
    together = run_command("train", *swept, *words, f"paths.runs={tmp_path}/together")
    assert together.returncode == 0, together.stderr
    for model in models:
        alone = run_command("train", *words, f"model={model}", "seed=2", f"paths.runs={tmp_path}/alone",
                            environment={"OMP_NUM_THREADS": "1"})  # fmt: skip
        assert alone.returncode == 0, alone.stderr
    runs = study_runs(tmp_path / "alone", "s")
    assert len(runs) == 3
    for run in runs:
        other = RunFolder(tmp_path / "together" / "s" / run.path.name)
        assert sha256_file(run.model.weights) == sha256_file(other.model.weights)
        assert run.metrics.read_bytes() == other.metrics.read_bytes()
        machines = [json.loads(one.manifest.read_text())["machine"] for one in (run, other)]
        assert machines[0] == machines[1]  # threads
