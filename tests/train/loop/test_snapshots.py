"""Snapshots of a run: their steps, their independence of the training, resuming, and their scores."""

import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from eval import load_scorer, surprisals
from eval.run import score_run
from eval.scorers.base import Execution
from eval.scorers.load import trained_scorer
from eval.scores.files import read_metadata, read_scores, read_words, score_path
from eval.surprisal.run import run as write_surprisals
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, RunError
from tests.bench.stages import SMALL, TRAINED, contents, difference
from tests.support.small_runs import trained
from train.config import run_id
from train.loop.batches import Columns
from train.loop.snapshots import Snapshots, load_snapshot, moments
from train.loop.training import LanguageModelling
from train.recipes import BudgetConfig, RecipeConfig
from train.runs.folder import RunFolder
from train.runs.model_folder import load_model

WITHOUT = [option for option in TRAINED if not option.startswith("trainer.snapshots")]
RUN = [*SMALL, "sample.size=4k", "model=lstm_tiny", "model.embedding=24", "model.hidden=24", *WITHOUT]
RUN += ["benchmark=toy", "benchmark.per_paradigm=4", "method=[lp]"]
SNAPSHOTS = ["trainer.snapshots=4"]


@pytest.fixture
def configure(tmp_path, monkeypatch):
    """Return a function that configures a short run with checkpoints every 1,000 words, in the test's own folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    return lambda *more: compose("eval", [*RUN, *more])


def batches(epochs, tokens=1000, words=500):
    """Return batches of 4 columns in steps of 10 tokens: 25 steps an epoch, each of 20 words."""
    recipe = RecipeConfig(
        name="r", budget=BudgetConfig(epochs=epochs), batch=4, bptt=10, lr=1.0, clip=1.0, export="last",
        validation_words=1,
    )  # fmt: skip
    return Columns(np.zeros(tokens, np.uint16), words, recipe)


def test_moments_are_the_first_steps_that_reach_them():
    assert moments(None, batches(2)) == {}
    # 1000 words seen in all: 500, 250, 125 and 62.5 of them are seen in 25, 12.5, 6.25 and 3.15 steps.
    assert moments(5, batches(2)) == {4: "1/16", 7: "1/8", 13: "1/4", 25: "1/2", 50: "end"}
    # The first step sees 20 words, and more than one moment: it has the last of them.
    assert list(moments(12, batches(2)).items())[:2] == [(1, "1/64"), (2, "1/32")]
    assert moments(["0.1k", 600, "5k"], batches(2)) == {5: "100", 30: "600", 50: "end"}


def test_log2_is_the_untrained_model_and_the_powers_of_two_of_steps():
    steps = {0: "step 0", 1: "step 1", 2: "step 2", 4: "step 4", 8: "step 8", 16: "step 16", 32: "step 32", 50: "end"}
    assert moments("log2", batches(2)) == steps
    assert moments("log2", batches(0.32)) == {0: "step 0", 1: "step 1", 2: "step 2", 4: "step 4", 8: "end"}
    assert moments("log2", batches(0)) == {}


def test_babylm_is_the_challenges_words():
    """A run of 1.3 billion words, in steps of 10k words, has all of them; one of 12.34 million those within it."""
    millions = [*range(1, 11), *range(20, 101, 10), *range(200, 1001, 100)]
    expected = {100 * million: f"{million}M" for million in millions}
    large = batches(1300, tokens=4000, words=10**6)
    assert moments("babylm", large) == {**expected, 130_000: "end"}
    within = {step: moment for step, moment in expected.items() if step <= 1000}
    assert moments("babylm", batches(12.34, tokens=4000, words=10**6)) == {**within, 1234: "end"}


@pytest.mark.parametrize("value", ["0", "true", "[]", "10k", "[10k,x]"])
def test_wrong_values_of_snapshots_are_refused(value):
    with pytest.raises(ConfigError, match=r"trainer\.snapshots=.*: this "):
        compose("train", [f"trainer.snapshots={value}"])


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory):
    """Return a finished run with snapshots, which exported its last weights."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        patched.setattr(torch, "set_num_threads", lambda _: None)
        run = trained(compose("eval", [*RUN, "recipe.export=last", *SNAPSHOTS]))
        return RunFolder(folder / run.path)


def test_snapshots_change_nothing_and_the_last_is_the_final_model(configure, finished_run):
    plain = configure("recipe.export=last")
    assert run_id(plain) == run_id(configure("recipe.export=last", *SNAPSHOTS)) == finished_run.path.name
    alone, files = contents(trained(plain).path), contents(finished_run.path)
    others = {name: digest for name, digest in files.items() if not name.startswith("snapshots")}
    assert len(files) - len(others) == 5  # the folder and four files
    assert difference(alone | {"config.yaml": files["config.yaml"]}, others) is None
    final, exported = load_file(list(finished_run.snapshots.values())[-1]), load_file(finished_run.model.weights)
    assert final.keys() == exported.keys()
    assert all(torch.equal(final[name], exported[name]) for name in final)
    words = finished_run.read_manifest()["words_seen"]
    for (step, moment), share in zip(
        zip(finished_run.snapshots, ["1/8", "1/4", "1/2", "end"], strict=True), (8, 4, 2, 1), strict=True
    ):
        about = load_snapshot(finished_run, step).info
        assert (about["step"], about["moment"]) == (step, moment)
        assert words / share <= about["words_seen"] < words / share + 8 * 20  # the tokens of one step


class Stopped(Exception):
    """Raised to stop a run in the middle, as a signal would."""


def train_to_snapshot(number, config, monkeypatch):
    """Return the run of `config`, stopped after its `number`-th snapshot."""
    write, written = Snapshots.write, []

    def stopping(self, model, step):
        write(self, model, step)
        written.append(step)
        if len(written) == number:
            raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(Snapshots, "write", stopping)
        with pytest.raises(Stopped):
            trained(config)
    run = RunFolder.of(config)
    assert list(run.snapshots) == written
    return run


@pytest.mark.parametrize("number", range(1, 5))
def test_a_run_killed_between_a_snapshot_and_a_checkpoint_resumes_exactly(configure, finished_run, monkeypatch, number):
    """A snapshot of a later step, which the run has yet to reach, does not disturb it."""
    config = configure("recipe.export=last", *SNAPSHOTS)
    run = train_to_snapshot(number, config, monkeypatch)
    run.snapshot(max(finished_run.snapshots), "0" * 16).write_bytes(b"of a run on another machine")
    trained(config)
    assert difference(contents(finished_run.path), contents(run.path)) is None


@pytest.mark.parametrize("number", [1, 3])
def test_a_resumed_run_keeps_the_snapshot_of_its_untrained_model(configure, monkeypatch, capsys, number):
    """`number` snapshots are written before it stops: before its first checkpoint, and after it."""
    short = ["recipe.export=last", "recipe.checkpoint_every=100", "trainer.snapshots=log2"]
    config = configure(*short, "recipe.budget.epochs=0.2")
    run = train_to_snapshot(number, config, monkeypatch)
    assert len(run.checkpoints) == (0 if number == 1 else 1)
    trained(config)
    assert "missing" not in capsys.readouterr().err
    assert list(run.snapshots)[:4] == [0, 1, 2, 4]
    loaded = load_snapshot(run, 0)
    assert (loaded.info["words_seen"], loaded.info["moment"]) == (0, "step 0")
    untrained = trained(configure(*short, "recipe.budget.epochs=0"))
    initial = load_model(untrained.model).model.state_dict()
    assert all(torch.equal(weight, initial[name]) for name, weight in loaded.model.state_dict().items())


def test_a_run_that_began_without_snapshots_warns_of_missing_ones(configure, monkeypatch, capsys):
    end = LanguageModelling.on_train_batch_end

    def ended(self, *arguments):
        end(self, *arguments)
        if self.state.step == 50:
            raise Stopped

    with monkeypatch.context() as patched:
        patched.setattr(LanguageModelling, "on_train_batch_end", ended)
        with pytest.raises(Stopped):
            trained(configure())
    run = trained(configure(*SNAPSHOTS))
    assert "are missing (1/8, 1/4, 1/2)" in " ".join(capsys.readouterr().err.split())
    assert len(run.snapshots) == 1
    other = configure("seed=2", "scoring.snapshots=true")
    run = trained(other)
    trained(configure("seed=2", *SNAPSHOTS))
    assert "was trained without snapshots, which are written during training" in " ".join(
        capsys.readouterr().err.split()
    )
    score_run(run, other)
    assert "has no snapshots to score" in capsys.readouterr().out


def test_a_damaged_or_missing_snapshot_is_an_error(finished_run, tmp_path):
    run = RunFolder(shutil.copytree(finished_run.path, tmp_path / "run"))
    (first, path), *_ = run.snapshots.items()
    with pytest.raises(RunError, match=rf"no snapshot after 9999 steps\. .*: {first}, "):
        load_snapshot(run, 9999)
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(RunError, match=rf"{path.name}: this file was cut short or changed"):
        load_snapshot(run, first)


def test_each_snapshot_is_scored_once_with_its_own_weights(configure, capsys):
    config = configure("recipe.export=last", "scoring.snapshots=true", *SNAPSHOTS)
    run = trained(config)
    score_run(run, config)
    folder = next(run.scores("").iterdir())
    final, metadata = read_scores(score_path(folder, "lp"))
    assert (metadata["step"], "words_seen" in metadata) == (None, False)
    steps = list(run.snapshots)
    for step in steps:
        rows, described = read_scores(score_path(folder, "lp", step))
        assert described["step"] == step
        assert described["model"]["digest"] == load_snapshot(run, step).digest != metadata["model"]["digest"]
        for key in ("policy", "parameters", "benchmark", "tokenizer_digest"):
            assert described[key] == metadata[key]
        same = np.array_equal(rows[["good", "bad"]].to_numpy(), final[["good", "bad"]].to_numpy())
        assert same == (step == steps[-1])
    assert described["words_seen"] == load_model(run.model).info["words_seen"]
    accuracy = (final["good"] > final["bad"]).groupby(final["paradigm"]).mean().mean()
    shown = capsys.readouterr().out.splitlines()[-1].split()
    assert shown == [f"{described['words_seen']:,}", f"{100 * accuracy:.1f}"]
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    score_run(run, config)
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    score_path(folder, "lp", steps[1]).unlink()
    score_run(run, config)
    assert read_metadata(score_path(folder, "lp", steps[1]))["step"] == steps[1]


def test_each_snapshot_has_its_own_surprisals(finished_run, tmp_path, capsys):
    text = tmp_path / "two.txt"
    text.write_text("The cats sleep near a dog .\nThe cat sleeps .\n")
    paths = [f"paths.runs={finished_run.path.parents[1]}", f"paths.reports={tmp_path}", "trainer.progress=false"]
    words = ["study=" + finished_run.path.parent.name, f"text={text}", "scoring.snapshots=true", *paths]
    write_surprisals(compose("surprisal", words))
    folder = tmp_path / finished_run.path.parent.name / "surprisal/two"
    name = finished_run.path.name
    expected = {score_path(folder, name, step) for step in (None, *finished_run.snapshots)}
    assert set(folder.glob("*.parquet")) == expected
    lines = text.read_text().splitlines()
    for step in finished_run.snapshots:
        rows, made = read_words(score_path(folder, name, step))
        loaded = load_snapshot(finished_run, step)
        assert (made["step"], made["words_seen"]) == (step, loaded.info["words_seen"])
        alone = surprisals(trained_scorer(loaded, "m", Execution(100)), lines)
        assert rows["surprisal"].to_numpy() == pytest.approx(alone["surprisal"].to_numpy())
    final = read_words(score_path(folder, name))[0]
    pd.testing.assert_frame_equal(final, rows)  # the last snapshot is the model
    pd.testing.assert_frame_equal(final, surprisals(load_scorer(finished_run), lines))
    assert f"{name}@1/8" in capsys.readouterr().out
    pretrained = ["model=hf_causal", "model.path=gpt2", "study=null"]
    with pytest.raises(ConfigError, match=r"scoring\.snapshots=true"):
        write_surprisals(compose("surprisal", [*words[1:], *pretrained]))
