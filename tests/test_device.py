"""Which device, products of how many bits, a GPU's memory; threads and memory that is kept, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from conf import compose
from corpora.errors import ConfigError, RunError
from train.device import device_of, enough_memory, set_up_gpu, without_gradients

PAGES = """
import resource
from types import SimpleNamespace

import torch

from train.device import set_up_cpu


def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(2**26)  # 256 MB, freed at once
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


given_back = sum(faults() for _ in range(4))
set_up_cpu(SimpleNamespace(threads=1))
for _ in range(16):  # until the memory is in one piece: each array is asked for with some bytes more, to be aligned
    faults()
print(torch.get_num_threads(), given_back, sum(faults() for _ in range(4)))
"""


def test_freed_memory_is_kept():
    """An array of 256 MB has 65,536 pages (fewer where the system takes large ones): few are asked for again."""
    done = subprocess.run(
        [sys.executable, "-c", PAGES], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1]
    )
    threads, given_back, kept = map(int, done.stdout.split())
    assert threads == 1
    assert kept < given_back / 2


@pytest.mark.parametrize(
    ("accelerator", "gpus", "needed", "expected"),
    [
        ("auto", 0, 1, "cpu"),
        ("auto", 2, 1, "cuda"),
        ("auto", 2, 2, "cuda"),
        ("gpu", 1, 1, "cuda"),
        ("cpu", 2, 4, "cpu"),
    ],
)
def test_the_device(monkeypatch, accelerator, gpus, needed, expected):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert device_of(compose("train", [f"trainer.accelerator={accelerator}"]).trainer, needed) == expected


@pytest.mark.parametrize(
    ("accelerator", "needed", "told"),
    [
        ("gpu", 1, "trainer.accelerator=gpu: there is no CUDA GPU here"),
        ("gpu", 2, "trainer.devices=2: there are 0 GPUs here"),
        ("auto", 2, "trainer.devices=2: there are 0 GPUs here"),
    ],
)
def test_gpus_that_are_not_there_are_one_line(monkeypatch, accelerator, needed, told):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(ConfigError, match=told):
        device_of(compose("train", [f"trainer.accelerator={accelerator}"]).trainer, needed)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("scoring", [False, True])
def test_scoring_has_products_of_its_own_precision_and_leaves_those_of_training(training, scoring):
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


def test_a_gpu_that_is_full_is_one_line():
    with pytest.raises(RunError, match=r"not enough memory \(tried to allocate 2 GiB\); take a smaller batch"):  # noqa: SIM117
        with enough_memory("take a smaller batch"):
            raise torch.OutOfMemoryError("tried to allocate\n  2 GiB")
