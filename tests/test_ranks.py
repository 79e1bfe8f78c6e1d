"""One run on several devices, as two CPU processes: the numbers of one process, exact resume, and no process left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from conf import compose, describe
from corpora.errors import RunError
from tests.test_run import _same_threads, _text, overrides  # noqa: F401 -- fixtures that apply to all
from train.run import train_run
from train.runs import RunFolder

ROOT = Path(__file__).parents[1]
STEPS = ["recipe.batch=8", "recipe.bptt=20", "recipe.checkpoint_every=4k", "recipe.budget.epochs=2"]


def on(tmp_path, devices, runs, model, *more):
    return overrides(tmp_path, model, runs, *STEPS, f"trainer.devices={devices}", *more)


def trained(arguments, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "train", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == code, done.stderr
    return RunFolder.of(compose("train", arguments)), done.stderr


@pytest.mark.parametrize(
    ("model", "more"),
    [
        ("lstm", ["recipe=sgd_plateau", "recipe.lr=2", "recipe.validate_every=3k"]),
        ("txl", ["recipe=adam_cosine", "recipe.lr=0.001", "model.dropout=0.0"]),
        ("txl", ["recipe=adam_cosine", "recipe.lr=0.001", "model.cutoffs=[50]", "model.div_val=2"]),
    ],
    ids=["lstm", "txl", "adaptive"],
)
def test_two_processes_train_as_one_does(tmp_path, model, more):
    """Without dropout the gradients are those of the whole batch but for the order of sums."""
    asked = [*more, "model.dropout=0"]
    alone = train_run(compose("train", on(tmp_path, 1, "alone", model, *asked)))
    both, _ = trained(on(tmp_path, 2, "both", model, *asked))
    assert both.path.name == alone.path.name  # the number of devices is no part of a run's identity
    assert (alone.read_manifest()["devices"], both.read_manifest()["devices"]) == (1, 2)
    assert both.read_manifest()["words_seen"] == alone.read_manifest()["words_seen"]
    left, right = load_file(alone.weights), load_file(both.weights)
    for name in left:
        torch.testing.assert_close(right[name], left[name], rtol=2e-3, atol=2e-4)
    one, two = pd.read_csv(alone.metrics), pd.read_csv(both.metrics)
    pd.testing.assert_frame_equal(one, two, rtol=1e-4)
    assert one["lr"].nunique() > 1  # validation, or the schedule, changed it on all ranks


def test_killed_with_its_ranks_it_ends_as_one_left_alone(tmp_path):
    """Bit for bit, with dropout: each rank has its own states and random numbers back."""
    more = ["recipe=sgd_plateau", "recipe.lr=2", "recipe.budget.epochs=3"]
    alone, _ = trained(on(tmp_path, 2, "alone", "lstm", *more))
    arguments = on(tmp_path, 2, "killed", "lstm", *more)
    killed = RunFolder.of(compose("train", arguments))
    process = subprocess.Popen([sys.executable, "-m", "train", *arguments], cwd=ROOT)
    seen: set[Path] = set()
    while process.poll() is None and len(seen) < 3:
        seen |= set(killed.checkpoints)
        time.sleep(0.001)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(children) == 1
    assert not killed.done, "the run ended before it could be killed"
    deadline = time.monotonic() + 60
    while Path(f"/proc/{children[0]}").exists():  # the other rank does not outlive the first
        assert time.monotonic() < deadline
        time.sleep(0.05)

    with pytest.raises(RunError, match=r"checkpoint is of trainer.devices=2, this is trainer.devices=1: go on with 2"):
        train_run(compose("train", [*arguments, "trainer.devices=1"]))
    trained(arguments)
    left, right = load_file(alone.weights), load_file(killed.weights)
    assert all(torch.equal(left[name], right[name]) for name in left)
    pd.testing.assert_frame_equal(pd.read_csv(alone.metrics), pd.read_csv(killed.metrics), check_exact=True)


def test_ranks_draw_other_dropout(tmp_path):
    """Were the masks of both ranks the same, columns i and i + 4 would be dropped alike."""
    folder, _ = trained(on(tmp_path, 2, "runs", "lstm", "recipe.budget.epochs=1"))
    once, _ = trained(on(tmp_path, 1, "one", "lstm", "recipe.budget.epochs=1"))
    left, right = load_file(folder.weights), load_file(once.weights)
    assert not all(torch.equal(left[name], right[name]) for name in left)


def test_a_sweep_may_train_on_several_devices_run_by_run(tmp_path):
    arguments = on(tmp_path, 2, "runs", "lstm", "seed=1,2", "recipe.budget.epochs=1")
    done = subprocess.run(
        [sys.executable, "-m", "train", "-m", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "runs").glob("*/*/model.safetensors"))) == 2


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["trainer.devices=3"], "trainer.devices=3: the 8 columns of recipe.batch cannot be shared out evenly"),
        (["trainer.devices=0"], "trainer.devices=0: must be above 0"),
    ],
)
def test_what_cannot_be_shared_out_is_refused(tmp_path, more, told):
    with pytest.raises(Exception, match=r"trainer\.devices") as caught:
        compose("train", [*on(tmp_path, 1, "runs", "lstm"), *more])
    assert told in (describe(caught.value) or "")


def test_more_devices_than_gpus_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    config = compose("train", on(tmp_path, 2, "runs", "lstm", "trainer.accelerator=gpu"))
    before = dict(os.environ)
    from train.ranks import Ranks
    from train.run import _strategy

    with pytest.raises(Exception, match=r"trainer\.devices=2: there are 0 GPUs here"):
        _strategy(config, Ranks(0, 2))
    assert dict(os.environ) == before
