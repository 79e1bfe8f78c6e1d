"""Sweeps that are started again, and runs beside others of their name: which runs start, and what is reported."""

import pytest

from eval.scores.files import score_path
from pairscale.command.compose import axes_of, compose
from pairscale.command.line import Line
from pairscale.command.schemas import yaml_of
from pairscale.files import write_text
from tests.support.commands import run_command
from tests.support.expected_runs import expected_runs
from train.runs.folder import RunFolder
from train.runs.labels import beside_others

TINY = [
    "study=s", "model=lstm_tiny", "model.embedding=16", "model.hidden=16", "sample.size=2k", "corpus=toy",
    "corpus.words=30000",
    "recipe.budget.epochs=1", "recipe.validation_words=200", "benchmark=toy", "benchmark.per_paradigm=3",
    "method=[lp]", "trainer.progress=false", "trainer.threads=1", "trainer.accelerator=cpu",
]  # fmt: skip


def run_sweep(*overrides, code=0):
    """Run a sweep of `eval` and return its stderr."""
    done = run_command("eval", "-m", *overrides)
    assert done.returncode == code, done.stderr
    return done.stderr


@pytest.mark.slow
def test_a_sweep_that_is_started_again_does_only_the_unfinished_work(tmp_path):
    """Seed 1 is done, 2 was stopped, 3 failed in training, 4 in scoring, and 5 never began."""
    words = [*TINY, f"paths.store={tmp_path}/store", f"paths.runs={tmp_path}/runs"]
    runs = {seed: RunFolder.of(compose("eval", [*words, f"seed={seed}"])) for seed in range(1, 6)}

    def state(run):
        return run.model.weights.stat().st_mtime_ns, run.read_manifest()["attempts"]

    run_sweep(*words, "seed=1,2,3,4")
    (label,) = {path.name for path in runs[1].scores("").iterdir()}
    runs[2].update_manifest(status="unfinished")
    runs[3].update_manifest(status="failed", reason="RuntimeError: out of memory")
    damaged = score_path(runs[4].scores(label), "lp")
    damaged.write_bytes(b"cut short")
    before = {seed: state(runs[seed]) for seed in (1, 4)}

    stderr = run_sweep(*words, "seed=1,2,3,4,5", code=2)  # a damaged score file is reported, not overwritten
    assert "lp.parquet" in stderr
    assert list(runs[4].read_manifest()["scoring_failed"]) == [label]
    assert {seed: state(runs[seed]) for seed in (1, 4)} == before
    assert [state(runs[seed])[1] for seed in (2, 3, 5)] == [2, 2, 1]
    assert runs[3].read_manifest()["reason"] is None
    assert all(score_path(runs[seed].scores(label), "lp").exists() for seed in (1, 2, 3, 5))

    damaged.unlink()
    run_sweep(*words, "seed=4")
    assert runs[4].read_manifest()["scoring_failed"] == {}
    assert damaged.stat().st_size > 100
    folders = {path.name for path in runs[1].path.parent.iterdir() if path.is_dir()}
    assert folders == {"grid", "logs", *(run.path.name for run in runs.values())}


@pytest.fixture
def neighbour(tmp_path):
    """Return a function that configures runs of a study with one run, of dropout 0.2, and that run's folder."""

    def config(*overrides):
        return compose("train", ["study=s", "corpus=toy", "model=lstm_tiny", f"paths.runs={tmp_path}", *overrides])

    first = config()
    write_text(RunFolder.of(first).config, yaml_of(first))
    return config, RunFolder.of(first)


def test_a_changed_value_is_reported_when_its_run_begins(neighbour):
    config, first = neighbour
    message = beside_others(config("model.dropout=0.5", "recipe.lr=1", "trainer.threads=1", "paths.store=/elsewhere"))
    assert message == f"beside {first.path.name}: model.dropout=0.5 (there 0.2), recipe.lr=1.0 (there 0.008)"
    assert beside_others(config("seed=2", "model.dropout=0.5")) is None  # of another name: nothing to confuse it with
    RunFolder.of(config("model.dropout=0.5")).update_manifest(status="unfinished")
    assert beside_others(config("model.dropout=0.5")) is None  # it began before


def test_a_new_run_is_compared_with_the_most_similar_one(neighbour):
    config, first = neighbour
    far = RunFolder.of(config("model.layers=3", "recipe.lr=1", "sample.nested=true"))
    write_text(
        far.config, first.config.read_text().replace("nested: false", "nested: true").replace("layers: 2", "layers: 3")
    )
    message = beside_others(config("model.dropout=0.5"))
    assert message == f"beside {first.path.name} (and 1 more): model.dropout=0.5 (there 0.2)"


def test_sizes_written_as_fractions_name_the_same_runs():
    """1/8M is 125k, in the ids of the published grid too."""
    runs = expected_runs("blimp_learning_curves")
    assert len(runs) == 100
    assert all("/" not in run for run in runs)
    assert axes_of("eval", Line.of(["experiment=blimp_learning_curves"]))["sample.size"][0] == "1/8M"
