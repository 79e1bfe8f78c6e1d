"""One run on several devices, as two CPU processes: the numbers of one process, exact resume, no leftover process."""

from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from pairscale.command.compose import compose
from pairscale.errors import ConfigError, RunError
from tests.support.commands import run_command
from tests.support.killed import children_of, train_and_kill
from tests.support.slurm_cluster import wait_until
from tests.support.small_runs import overrides, trained

pytestmark = pytest.mark.usefixtures("small_text", "same_threads")

STEPS = ["sample.size=6k", "recipe.batch=8", "recipe.checkpoint_every=2k", "recipe.budget.epochs=2"]
GPT2 = ["model.config.resid_pdrop=0", "model.config.embd_pdrop=0", "model.config.attn_pdrop=0"]
ROBERTA = ["model.config.hidden_dropout_prob=0", "model.config.attention_probs_dropout_prob=0"]
LSTM = ["recipe=sgd_plateau", "recipe.lr=2", "recipe.validate_every=3k", "sample.size=12k", "model.dropout=0"]
ADAPTIVE = ["recipe=adam_cosine", "recipe.lr=0.0001", "model.cutoffs=[50]", "model.div_val=2", "model.dropout=0"]
MASKED = ["recipe.packing=sentences", "recipe.validation_words=100", "recipe.validate_every=3k"]


def on(tmp_path, devices, runs, model, *more):
    bptt = ["recipe.bptt=20"] if model in ("lstm", "txl") else []  # of the others it is recipe.context
    return overrides(tmp_path, model, runs, *STEPS, *bptt, f"trainer.devices={devices}", *more)


def run(arguments):
    return trained(compose("train", arguments))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "more"),
    [
        ("txl", ["recipe=adam_cosine", "recipe.lr=0.0001", "model.dropout=0"]),
        ("gpt2", GPT2),
        ("gpt_bert", [*ROBERTA, *MASKED]),
        pytest.param("lstm", LSTM, marks=pytest.mark.release),
        pytest.param("txl", ADAPTIVE, marks=pytest.mark.release),
        pytest.param("roberta", [*ROBERTA, *MASKED], marks=pytest.mark.release),
    ],
    ids=["txl", "gpt2", "gpt_bert", "lstm", "adaptive", "roberta"],
)
def test_two_processes_give_the_weights_of_one(tmp_path, model, more):
    """Without dropout the gradients differ from those of the whole batch only in the order of sums."""
    alone, both = (run(on(tmp_path, devices, f"{devices}", model, *more)) for devices in (1, 2))
    assert both.path.name == alone.path.name  # the number of devices is no part of a run's identity
    assert (alone.read_manifest()["devices"], both.read_manifest()["devices"]) == (1, 2)
    assert both.read_manifest()["words_seen"] == alone.read_manifest()["words_seen"]
    left, right = load_file(alone.model.weights), load_file(both.model.weights)
    for name in left:
        torch.testing.assert_close(right[name], left[name], rtol=2e-3, atol=2e-4)
    one, two = pd.read_csv(alone.metrics), pd.read_csv(both.metrics)
    pd.testing.assert_frame_equal(one, two, rtol=1e-4)
    assert one["lr"].nunique() > 1  # validation, or the schedule, changed it on all ranks


@pytest.mark.slow
def test_resuming_a_killed_run_of_two_ranks_gives_identical_weights(tmp_path):
    """Each rank restores its own states and random numbers, and has its own dropout masks.

    Were the masks of both ranks the same, columns i and i + 4 would be dropped alike, as in one process they are not.
    """
    more = ["recipe=sgd_plateau", "recipe.lr=2", "recipe.budget.epochs=3"]
    alone, of_one = (run(on(tmp_path, devices, f"alone{devices}", "lstm", *more)) for devices in (2, 1))
    arguments = on(tmp_path, 2, "killed", "lstm", *more)
    children: list[int] = []
    killed = train_and_kill(3, arguments, lambda process: children.extend(children_of(process)))
    assert len(children) == 1
    wait_until(lambda: not Path(f"/proc/{children[0]}").exists(), "the end of the other rank", seconds=60)

    with pytest.raises(RunError, match=r"trainer.devices=1: .* written with trainer.devices=2\. Continue with"):
        run([*arguments, "trainer.devices=1"])
    run(arguments)
    left, right, other = (load_file(run.model.weights) for run in (alone, killed, of_one))
    assert all(torch.equal(left[name], right[name]) for name in left)
    assert not all(torch.equal(left[name], other[name]) for name in left)
    pd.testing.assert_frame_equal(pd.read_csv(alone.metrics), pd.read_csv(killed.metrics), check_exact=True)


@pytest.mark.slow
def test_a_sweep_on_several_devices_trains_one_run_after_the_other(tmp_path):
    arguments = on(tmp_path, 2, "runs", "lstm", "recipe.budget.epochs=1")
    done = run_command("train", "-m", *arguments, "seed=1,2")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "runs").glob("*/*/model/model.safetensors"))) == 2


def test_batches_that_devices_cannot_share_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"trainer\.devices=3: .*must divide recipe\.batch=8 evenly"):
        compose("train", [*on(tmp_path, 1, "runs", "lstm"), "trainer.devices=3"])
