"""Runs: identity, skipping, exact resume after SIGKILL, and failures."""

import json
from functools import partial
from hashlib import sha256

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from eval.run import check_benchmark
from pairscale.command.compose import compose
from pairscale.errors import InputError, RunError
from tests.support.killed import train_and_kill
from tests.support.small_runs import overrides, trained
from train.config import run_id
from train.runs.folder import RunFolder
from train.runs.provenance import cost
from train.sweeps import write_grid

pytestmark = pytest.mark.usefixtures("small_text", "same_threads")


COLUMNS = ["recipe.bptt=20", "recipe.lr=0.005"]
SGD, ADAM = ["recipe=sgd_plateau", *COLUMNS], ["recipe=adam_cosine", *COLUMNS]
MASKED = ["recipe.packing=sentences", "recipe.validation_words=100"]
FAMILIES = {
    "lstm": SGD, "txl": ADAM, "gpt2": [], "gru": COLUMNS, "opt": [], "gpt_neox": [], "llama": [], "mamba": [],
    "bert": MASKED, "roberta": MASKED, "gpt_bert": MASKED,
    "deberta_v2": [*MASKED, "sample.size=4k", "recipe.checkpoint_every=1333"],
}  # fmt: skip
MARKS = {"lstm": ()} | dict.fromkeys(("gru", "opt", "llama", "mamba", "bert", "deberta_v2"), pytest.mark.release)


@pytest.mark.parametrize(
    ("model", "more"),
    [
        *(pytest.param(*case, id=case[0], marks=MARKS.get(case[0], pytest.mark.slow)) for case in FAMILIES.items()),
        pytest.param("lstm", ADAM, id="lstm, Adam", marks=pytest.mark.slow),
        pytest.param("txl", SGD, id="txl, SGD", marks=pytest.mark.slow),
    ],
)
def test_resuming_a_killed_run_gives_identical_weights(tmp_path, model, more):
    more = ["recipe.batch=8", "recipe.checkpoint_every=4k", *more]
    alone = trained(compose("train", overrides(tmp_path, model, "alone", *more)))

    arguments = overrides(tmp_path, model, "killed", *more)
    killed = train_and_kill(5, arguments)  # of 9: in the middle of the second epoch
    step = torch.load(killed.checkpoints[0], weights_only=True)["step"]
    assert killed.checkpoints[0].name.startswith(f"{step}-")
    assert 0 < step < json.loads(killed.manifest.read_text())["steps"]

    trained(compose("train", arguments))
    assert killed.read_manifest()["attempts"] == 2
    left, right = load_file(alone.model.weights), load_file(killed.model.weights)
    assert left.keys() == right.keys()
    assert all(torch.equal(left[name], right[name]) for name in left)
    pd.testing.assert_frame_equal(pd.read_csv(alone.metrics), pd.read_csv(killed.metrics), check_exact=True)


def test_a_finished_run_is_skipped_and_a_changed_one_is_another_run(tmp_path):
    config = compose("train", overrides(tmp_path, "lstm", "runs"))
    folder = trained(config)
    manifest = folder.read_manifest()
    assert manifest["status"] == "done"
    assert manifest["sample_words"] == 12_000
    assert manifest["words_seen"] == 36_000
    before = folder.model.weights.stat().st_mtime_ns
    trained(config)
    assert folder.model.weights.stat().st_mtime_ns == before
    assert run_id(compose("train", overrides(tmp_path, "lstm", "elsewhere"))) == folder.path.name
    assert run_id(compose("train", overrides(tmp_path, "lstm", "runs", "recipe.lr=0.1"))) != folder.path.name


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_clipping_bounds_the_steps_of_sgd(tmp_path, precision):
    """At a rate of 1, n steps move the weights by at most n times the clip; all gradients here exceed it."""
    ends = {}
    for clip in ("1e-6", "2e-6", "1"):
        more = ["recipe=sgd_plateau", "recipe.batch=8", "recipe.bptt=20", "recipe.lr=1", "recipe.budget.epochs=1"]
        more += [f"recipe.clip={clip}", f"precision={precision}", "recipe.export=last"]
        folder = trained(compose("train", overrides(tmp_path, "lstm", "runs", *more)))
        ends[clip] = torch.cat([weight.flatten() for weight in load_file(folder.model.weights).values()])
    steps = int(pd.read_csv(folder.metrics)["step"].iloc[-1])
    assert 0 < (ends["2e-6"] - ends["1e-6"]).norm() <= steps * 3e-6
    assert (ends["1"] - ends["1e-6"]).norm() > 1e-1


@pytest.mark.parametrize(
    "model", ["txl", *(pytest.param(name, marks=pytest.mark.slow) for name in ("gpt2", "roberta"))]
)
def test_bf16_trains_and_is_another_run(tmp_path, model):
    more = ["recipe.budget.epochs=1", "recipe.validation_words=100"]
    runs = [
        trained(compose("train", overrides(tmp_path, model, "runs", *more, f"precision={precision}")))
        for precision in ("bf16", "fp32")
    ]
    assert all(tensor.dtype == torch.float32 for tensor in load_file(runs[0].model.weights).values())
    assert runs[0].path.name != runs[1].path.name
    rounded, exact = (run.read_manifest()["best_nats_per_word"] for run in runs)
    assert 0 < abs(rounded - exact) < 0.01 * exact


def test_a_run_is_not_resumed_on_another_text(tmp_path):
    """A finished run or a checkpoint is refused if another text has replaced its own."""
    config = compose("train", overrides(tmp_path, "lstm", "runs", "recipe.budget.epochs=1"))
    folder = trained(config)
    manifest = folder.read_manifest()
    folder.update_manifest(corpus=manifest["corpus"] | {"text": "ab" * 32})
    with pytest.raises(RunError, match=r"training text \(digest abababab\) is not the one"):
        trained(config)
    folder.update_manifest(status="unfinished", sample_digest="cd" * 32)
    folder.checkpoint_folder.mkdir()
    checkpoint = folder.checkpoint(3, sha256(b"").hexdigest())
    checkpoint.write_bytes(b"")
    with pytest.raises(RunError, match=rf"{checkpoint.name}: .* a different sample of text"):
        trained(config)


def train_without_text(tmp_path, *more):
    """Return the folder of a run after `trained` failed for its missing text."""
    config = compose("train", overrides(tmp_path, "lstm", "runs", f"corpus.path={tmp_path}/none.txt", *more))
    with pytest.raises(InputError, match=r"none\.txt"):
        trained(config)
    return RunFolder.of(config)


def test_a_missing_text_leaves_no_run_folder(tmp_path):
    folder = train_without_text(tmp_path)
    assert not folder.path.parent.exists()
    (folder.path / "scores").mkdir(parents=True)
    (folder.path / "scores" / "mine.txt").write_text("mine")
    train_without_text(tmp_path)
    assert {path.name for path in folder.path.rglob("*") if path.is_file()} == {".lock", "mine.txt"}


def test_a_missing_text_leaves_an_unfinished_run_unchanged(tmp_path):
    config = compose("train", overrides(tmp_path, "lstm", "runs"))
    folder = RunFolder.of(config)
    folder.path.mkdir(parents=True)
    folder.config.write_text("seed: 1\n")
    folder.update_manifest(status="unfinished", attempts=3, git={"commit": "a", "difference": None})
    before = (folder.config.read_bytes(), folder.manifest.read_bytes())
    assert train_without_text(tmp_path).path == folder.path
    assert (folder.config.read_bytes(), folder.manifest.read_bytes()) == before


def test_a_run_of_a_sweep_records_why_it_failed(tmp_path):
    config = compose("train", overrides(tmp_path, "lstm", "runs"))
    folder = RunFolder.of(config)
    write_grid(folder.path.parent, {"seed=1": config}, None, "python -m train -m ...")
    assert train_without_text(tmp_path).read_manifest()["status"] == "failed"


def test_the_benchmark_is_checked_before_training(tmp_path):
    """A mistyped path would otherwise be reported after days of training."""
    config = compose("eval", overrides(tmp_path, "lstm", "runs", f"benchmark.path={tmp_path}/no_blimp"))
    with pytest.raises(InputError, match="no_blimp"):
        trained(config, check=partial(check_benchmark, config))
    assert not RunFolder.of(config).path.exists()


def test_the_cost_of_attempts_on_several_devices_adds_up():
    spent = cost({}, 3600, "cuda:0", 2, 8)
    assert spent == {"gpu_hours": 2.0}
    spent = cost(spent, 1800, "cuda:0", 1, 8)
    assert cost(spent, 900, "cpu", 1, 8) == {"gpu_hours": 2.5, "core_hours": 2.0}
