"""Files of commit c7fa46c: current code reads them and computes the same numbers from them."""

import tarfile

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from analysis import accuracies, unit_accuracies
from analysis.run_states import run_states
from eval.run import score_run
from eval.scores.files import ITEMS_FILE, read_items, read_scores, score_path
from pairscale.command.compose import compose
from tests.support import ROOT
from train.run import train_run
from train.runs.folder import RunFolder
from train.runs.identity import run_id

LABEL = "toy+seed-1+per_paradigm-12+paradigms-1d19f079"
QUIET = ["trainer.progress=false", "trainer.threads=1", "trainer.accelerator=cpu"]
CORPUS = ["corpus=toy", "corpus.version=1", "corpus.words=12000", "corpus.split.valid=0.05", "corpus.split.test=0.05"]
CORPUS += ["tokenizer=word", "tokenizer.vocab_size=200", "recipe.validation_words=300"]
STEPS = ["recipe.batch=8", "recipe.bptt=20"]
LSTM = ["model=lstm_tiny", "model.embedding=8", "model.hidden=8", *STEPS, "recipe.budget.epochs=3"]
LSTM += ["recipe.checkpoint_every=1k", "trainer.snapshots=[1k]", "recipe.warmup=0.05"]  # the default was .05 then
TXL = ["model=txl_tiny", "model.layers=1", "model.d_model=8", "model.heads=2", "model.d_head=4", "model.d_inner=16"]
TXL += ["model.memory=16", *STEPS, "recipe.budget.epochs=1"]
NGRAM = ["model=ngram", "model.order=3"]
METHODS = ("lp", "one_prefix")
RUNS = {
    "lstm_tiny-toy-word-1k-s1-c8ecc8b9": [*LSTM, "sample.size=1k"],
    "lstm_tiny-toy-word-2k-s1-bd5b36a7": [*LSTM, "sample.size=2k"],
    "txl_tiny-toy-word-2k-s1-38c291a7": [*TXL, "sample.size=2k"],
    "ngram-toy-word-2k-s1-77c98032": [*NGRAM, "sample.size=2k"],
}
# Other processors add in another order than the one that wrote the files.
SUMS, WEIGHTS = 1e-6, 1e-5
RESUMED = "lstm_tiny-toy-word-2k-s1-bd5b36a7"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return the folder of runs, store and analysis tables that tests/support/old_runs.sh wrote."""
    folder = tmp_path_factory.mktemp("old")
    with tarfile.open(ROOT / "tests" / "support" / "old_runs.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python before 3.11.4 has none
        archive.extractall(folder)
    return folder


def configure(files, command, study, *overrides):
    paths = [f"paths.runs={files}/runs", f"paths.store={files}/store", f"study={study}"]
    return compose(command, [*QUIET, *CORPUS, *paths, *overrides])


@pytest.mark.parametrize("name", RUNS)
def test_the_ids_of_old_runs_are_unchanged(files, name):
    assert run_id(configure(files, "train", "old", *RUNS[name])) == name
    assert (files / "runs" / "old" / name).is_dir()


def test_the_status_of_an_old_study_is_unchanged(files):
    states = {state.run: state for state in run_states(files / "runs" / "old", {})}
    assert states.keys() == RUNS.keys()
    assert {(state.state, state.scored_on) for state in states.values()} == {("scored", (LABEL,))}
    (stopped,) = run_states(files / "runs" / "interrupted", {})
    assert stopped.state == "stopped"


def test_the_accuracies_of_an_old_study_are_unchanged(files):
    table = accuracies("old", benchmark=LABEL, method="lp", folder=files / "runs")
    units = unit_accuracies(table).groupby(["curve", "size", "level", "name"])["accuracy"].mean()
    written = pd.read_csv(files / "tables" / f"{LABEL}-accuracies.csv").query("pairs == 'all'")
    for row in written.itertuples():
        assert units[row.group, row.size, row.level, row.name] == pytest.approx(row.accuracy, rel=1e-9)


@pytest.mark.parametrize("name", RUNS)
def test_scoring_again_gives_the_same_scores(files, name):
    """The pairs are read from the old score files: the language that they were drawn from has another version now."""
    old = RunFolder(files / "runs" / "old" / name).scores(LABEL)
    pairs = ["benchmark=local", "benchmark.name=again", f"benchmark.path={old / ITEMS_FILE}", "benchmark.language=en"]
    config = configure(files, "eval", "old", *RUNS[name], *pairs, f"method=[{','.join(METHODS)}]")
    run = RunFolder.of(config)
    score_run(run, config)
    for method in METHODS:
        again, before = (read_scores(score_path(where, method))[0] for where in (run.scores("again"), old))
        pd.testing.assert_frame_equal(again, before, rtol=SUMS)
    pd.testing.assert_frame_equal(read_items(run.scores("again"))[0], read_items(old)[0])


def test_an_interrupted_old_run_resumes_without_changing_its_store(files):
    """It ends with the weights, metrics and snapshots of the run that was never interrupted.

    That resuming is exact to the bit is tested where both runs are of one machine (tests/train/).
    """

    def modification_times():
        return {path: path.stat().st_mtime_ns for path in (files / "store").rglob("*") if path.is_file()}

    before = modification_times()
    resumed = train_run(configure(files, "train", "interrupted", *RUNS[RESUMED]))
    whole = RunFolder(files / "runs" / "old" / RESUMED)
    assert resumed.read_manifest()["attempts"] == 2
    assert modification_times() == before
    weights, expected = load_file(resumed.weights), load_file(whole.weights)
    assert weights.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(weights[name], expected[name], rtol=0, atol=WEIGHTS)
    assert resumed.snapshots.keys() == whole.snapshots.keys()
