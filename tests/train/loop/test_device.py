"""Devices, precision of products, threads, available cores and memory, and a full GPU."""

import os
from types import SimpleNamespace

import pytest
import torch

import train.loop.device
from pairscale import machine
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, RunError
from pairscale.machine import available_cores, available_memory, fit_memory, idle_cores
from train.loop.device import (
    bf16_warning,
    device_of,
    enough_memory,
    set_up_gpu,
    threads_for,
    without_gradients,
)


@pytest.mark.parametrize(
    ("expected", "parameters", "values"),
    [
        (1, 13_200_000, {}),  # lstm_tiny, 50,000 words
        (7, 71_800_000, {}),  # lstm
        (8, 500_000_000, {}),
        (8, None, {}),  # a pretrained model
        (3, 71_800_000, {"idle": 3}),
        (2, 71_800_000, {"granted": "2"}),
        (4, 71_800_000, {"granted": "4,2"}),  # nested regions
        (7, 71_800_000, {"granted": "no number"}),
        (5, 2_400_000, {"configured": 5}),
        (6, 2_400_000, {"recorded": 6}),  # a resumed run
        (5, 2_400_000, {"recorded": 6, "configured": 5}),
        (4, 500_000_000, {"processes": 2, "idle": 1}),  # ranks ignore idle cores, so that all use the same number
    ],
)
def test_threads_follow_the_models_size_and_the_idle_cores(monkeypatch, expected, parameters, values):
    """On a machine with 8 cores, all of them idle unless `values` says otherwise."""
    monkeypatch.setattr(train.loop.device, "idle_cores", lambda: values.get("idle", 8))
    monkeypatch.setattr(train.loop.device, "available_cores", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if "granted" in values:
        monkeypatch.setenv("OMP_NUM_THREADS", values["granted"])
    more = {key: values[key] for key in ("recorded", "processes") if key in values}
    assert threads_for(SimpleNamespace(threads=values.get("configured")), parameters, **more) == expected


@pytest.mark.parametrize(
    ("groups", "files", "cores", "gib"),
    [
        ("0::/", {"cpu.max": "max 100000"}, 4, 10),
        ("0::/", {"cpu.max": "150000 100000"}, 2, 10),  # one and a half
        ("0::/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 4, 10),
        ("0::/user/job.scope", {"user/job.scope/cpu.max": "50000 100000"}, 1, 10),  # systemd, no namespace
        ("0::/slurm/job/step", {"slurm/job/cpu.max": "300000 100000", "slurm/job/step/cpu.max": "max 100000"}, 3, 10),
        (
            "4:memory:/job\n3:cpu,cpuacct:/job",
            {
                "cpu/job/cpu.cfs_quota_us": "200000",
                "cpu/job/cpu.cfs_period_us": "100000",
                "memory/job/memory.limit_in_bytes": "6442450944",
                "memory/job/memory.usage_in_bytes": "3221225472",
                "memory/job/memory.stat": "cache 9\ninactive_file 1073741824",
            },
            2,
            4,  # 6 GiB of which 3 are used, 1 of them by files
        ),
        ("0::/", {"memory.max": "2147483648", "memory.current": "1073741824", "memory.stat": "anon 1"}, 4, 1),
        ("0::/not/here", {"memory.max": "max", "memory.current": "1073741824", "memory.stat": "anon 1"}, 4, 10),
    ],
)
def test_cores_and_memory_are_limited_by_the_affinity_and_control_groups(
    monkeypatch, tmp_path, groups, files, cores, gib
):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text + "\n")
    (tmp_path / "own").write_text(groups + "\n")
    (tmp_path / "meminfo").write_text("MemTotal: 99 kB\nMemAvailable:   10485760 kB\n")  # 10 GiB
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    monkeypatch.setattr(machine, "PROC_CGROUP", tmp_path / "own")
    monkeypatch.setattr(machine, "PROC_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    assert available_cores() == cores
    assert available_memory() == gib * 2**30
    assert [fit_memory(3, each * 2**30) for each in (0, gib / 2, 99)] == [3, 2, 1]


def test_idle_cores_are_counted_from_their_ticks(monkeypatch):
    """One of three available cores is idle, one for three quarters, one not at all; a fourth is not available."""
    moments = iter(
        [
            "cpu  9 9 9 9\ncpu0 10 0 0 10 0 0 0 0\ncpu1 10 0 0 10 0 0 0 0\ncpu2 5 0 5 5 5 0 0 0\ncpu3 0 0 0 9 0 0 0 0",
            "cpu  9 9 9 9\ncpu0 10 0 0 50 0 0 0 0\ncpu1 20 0 0 40 0 0 0 0\ncpu2 5 40 5 5 5 0 0 0\ncpu3 0 0 0 49 0 0 0",
        ]
    )
    monkeypatch.setattr(machine, "PROC_STAT", SimpleNamespace(read_text=lambda: next(moments)))
    monkeypatch.setattr(machine, "LOOK_SECONDS", 0)
    monkeypatch.setattr(machine, "available_cores", lambda: 3)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2})
    assert idle_cores() == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("cpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0", "cpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0"),  # gVisor
        ("cpu0 1 0 0 1 0 0 0 0\ncpu7 1 0 0 1 0 0 0 0", "cpu0 9 0 0 1 0 0 0 0\ncpu7 9 0 0 1 0 0 0 0"),  # LXC
        ("cpu0 1 0 0\ncpu1 1 0 0", "cpu0 9 0 0\ncpu1 9 0 0"),  # a short line
        ("cpu0 one two 0 1\ncpu1 0 0 0 1", "cpu0 one two 0 1\ncpu1 0 0 0 1"),
    ],
)
def test_useless_tick_counters_leave_all_cores(monkeypatch, before, after):
    following = iter([before, after])
    monkeypatch.setattr(machine, "PROC_STAT", SimpleNamespace(read_text=lambda: next(following)))
    monkeypatch.setattr(machine, "LOOK_SECONDS", 0)
    monkeypatch.setattr(machine, "available_cores", lambda: 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    assert idle_cores() == 2


@pytest.mark.parametrize(
    ("accelerator", "gpus", "needed", "expected"),
    [
        ("auto", 0, 1, "cpu"),
        ("auto", 2, 2, "cuda"),
        ("gpu", 1, 1, "cuda"),
        ("cpu", 2, 4, "cpu"),
        ("gpu", 0, 1, "trainer.accelerator=gpu: no CUDA GPU"),
        ("auto", 0, 2, "trainer.devices=2: .*needs 2 GPUs, but .* has 0"),
    ],
)
def test_the_device_follows_the_accelerator_and_the_gpus(monkeypatch, accelerator, gpus, needed, expected):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    config = compose("train", [f"trainer.accelerator={accelerator}"]).trainer
    if ":" in expected:
        with pytest.raises(ConfigError, match=expected):
            device_of(config, needed)
    else:
        assert device_of(config, needed) == expected


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("scoring", [False, True])
def test_scoring_uses_its_own_precision_of_products_and_restores_that_of_training(training, scoring):
    before = torch.backends.cudnn.allow_tf32
    try:
        set_up_gpu(training)
        with without_gradients(torch.device("cpu"), scoring):
            assert torch.backends.cudnn.allow_tf32 == scoring
            assert torch.is_autocast_enabled("cpu") == scoring
            assert torch.is_inference_mode_enabled()
        assert torch.backends.cudnn.allow_tf32 == training
    finally:
        torch.backends.cudnn.allow_tf32 = before


def test_a_full_gpu_is_a_message_of_one_line():
    with pytest.raises(RunError, match=r"ran out of memory \(.* 2 GiB\); take a smaller batch"):  # noqa: SIM117
        with enough_memory("take a smaller batch"):
            raise torch.OutOfMemoryError("tried to allocate\n  2 GiB")


def test_bf16_without_instructions_for_it_is_told(monkeypatch):
    run = compose("train", ["corpus=toy", "precision=bf16", "trainer.accelerator=cpu"])
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    assert bf16_warning(run).startswith("precision=bf16: this CPU has no bf16 instructions")
    assert bf16_warning(compose("train", ["corpus=toy", "trainer.accelerator=cpu"])) == ""
    assert bf16_warning(compose("train", ["corpus=toy", "precision=bf16", "model=ngram"])) == ""
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True)
    assert bf16_warning(run) == ""
