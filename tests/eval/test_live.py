"""Scoring snapshots while a run is trained: the same scores and weights as afterwards, and failures of either side."""

import signal
import sys
import time
from pathlib import Path

import pytest

import eval.live
from analysis.run_states import run_states
from eval.live import beside_training
from eval.scores.accuracy import accuracies
from eval.scores.files import pair_scores, score_path
from pairscale.command.compose import compose
from tests.bench.stages import LSTM, SMALL, contents, difference
from tests.support.commands import Command
from tests.support.killed import children_of
from tests.support.offline_wandb import hide_account, offline_runs
from tests.support.small_runs import trained
from train.runs.folder import RunFolder

OPTIONS = [*SMALL, "sample.size=4k", *LSTM, "recipe.budget.epochs=10", "recipe.export=last", "trainer.snapshots=4"]
OPTIONS += ["benchmark=toy", "benchmark.per_paradigm=4", "method=[lp,mean_lp]"]


def wait_for(condition, seconds=120):
    """Wait until a condition is true. Fail after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "It didn't happen."
        time.sleep(0.001)


def evaluate(folder, snapshots):
    """Start to train and score a run in a folder. Return its process and its run folder."""
    paths = [f"paths.{name}={folder}/{name}" for name in ("store", "runs")]
    options = [*OPTIONS, *paths, f"scoring.snapshots={snapshots}", "logger=wandb"]
    return Command("eval", *options), RunFolder.of(compose("eval", options))


@pytest.mark.slow
def test_a_killed_run_that_was_scored_while_trained_ends_with_the_same_files(tmp_path, monkeypatch):
    hide_account(monkeypatch, tmp_path)
    process, run = evaluate(tmp_path / "live", "live")
    wait_for(lambda: run.snapshots)
    process.kill(signal.SIGSTOP)  # training waits until its first snapshot has been scored
    assert not run.done
    scoring = children_of(process)[0]
    first = next(iter(run.snapshots))
    wait_for(lambda: list(run.scores("").glob(f"*/mean_lp@{first}.parquet")))
    (folder,) = run.scores("").iterdir()
    (state,) = run_states(run.path.parent, {})
    correct = {method: accuracies(scores).iloc[-1]["accuracy"] for method, scores in pair_scores(folder, first)}
    shown = "; ".join(f"{folder.name} {share:.1%} ({method})" for method, share in sorted(correct.items()))
    assert (state.state, state.scored_on) == ("running", ())
    assert state.early.startswith("correct after ")
    assert state.early.endswith(f" words: {shown}")
    process.kill(signal.SIGKILL)
    process.wait()
    wait_for(lambda: not Path(f"/proc/{scoring}").exists())

    process, run = evaluate(tmp_path / "live", "live")
    assert process.wait().returncode == 0
    process, other = evaluate(tmp_path / "afterwards", "true")
    assert process.wait().returncode == 0
    for part in ("model", "snapshots", "scores"):
        assert difference(contents(other.path / part), contents(run.path / part)) is None
    assert len(list(run.scores("").glob("*/lp@*.parquet"))) == 4
    for root in ("live", "afterwards"):
        (tracked,) = [one for one in offline_runs(tmp_path / root).values() if one.job_type == "eval"]
        points = {point["words_seen"]: point for point in tracked.history}
        assert len(points) == 4
        key = f"snapshots/{folder.name}/mean_lp/overall"
        assert float(points[min(points, key=float)][key]) == correct["mean_lp"]


def test_a_failure_to_score_is_one_sentence_and_does_not_stop_training(tmp_path, monkeypatch, capfd):
    paths = [f"paths.{name}={tmp_path}/{name}" for name in ("store", "runs")]
    config = compose("eval", [*OPTIONS, *paths, "scoring.snapshots=live"])
    run = trained(config)
    first, second, *_ = run.snapshots
    run.snapshots[second].write_bytes(b"damaged")
    printed = []

    def said():
        printed.append(capfd.readouterr().err)
        return "scored after it" in "".join(printed)

    with beside_training([config]):
        wait_for(said)
    text = " ".join("".join(printed).split())
    assert "scoring during training failed. Training isn't affected" in text
    assert "this file was cut short or changed" in text
    (folder,) = run.scores("").iterdir()
    assert score_path(folder, "lp", first).exists()
    assert not score_path(folder, "lp", second).exists()

    monkeypatch.setattr(eval.live, "started_by", lambda _: [sys.executable, "-c", "raise SystemExit(3)"])
    with beside_training([config]):
        pass
    assert "ended with exit code 3" in capfd.readouterr().err


def test_scoring_beside_a_training_that_ends_leaves_nothing_behind(tmp_path, monkeypatch):
    hide_account(monkeypatch, tmp_path)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)  # so that it is read again
    options = [*OPTIONS, *(f"paths.{name}={tmp_path}/{name}" for name in ("store", "runs")), "scoring.snapshots=live"]
    config = compose("eval", options)
    run = trained(config)
    with beside_training([compose("eval", [*options, "logger=wandb"])]):
        pass  # nothing is scored any more
    assert not run.scores("").exists()
    assert not (run.path / "wandb").exists()

    def stop():
        with beside_training([config]):
            wait_for(lambda: list(run.scores("").glob("*/*@*.parquet")))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert not list(temporary.rglob("tokenizer*"))
