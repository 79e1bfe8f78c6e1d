"""Causal and masked models in one study: a sweep and its report, by the commands that users type."""

import pandas as pd
import pytest

from tests.support.commands import run_command

STUDY = [
    "corpus=toy", "corpus.words=20000", "tokenizer=unigram", "tokenizer.vocab_size=300", "study=families",
    "benchmark=toy", "benchmark.per_paradigm=4", "recipe.budget={epochs:1,words:null}", "recipe.validation_words=200",
    "trainer.accelerator=cpu", "trainer.threads=1", "pool.jobs=2",
    "model=gpt2_tiny,roberta_tiny", "sample.size=2k,4k", "seed=1",
]  # fmt: skip


@pytest.mark.slow
def test_a_study_of_causal_and_masked_models_is_trained_scored_and_reported(tmp_path):
    paths = [f"paths.{name}={tmp_path}/{name}" for name in ("store", "runs", "reports")]
    sweep = run_command("eval", "-m", *STUDY, *paths)
    assert sweep.returncode == 0, sweep.stderr
    report = run_command("analysis", "study=families", *paths)
    assert report.returncode == 0, report.stderr
    assert "lp for GPT-2; pll for RoBERTa" in " ".join(report.stderr.split())
    accuracies = pd.read_csv(tmp_path / "reports" / "families" / "tables" / "accuracies.csv")
    assert accuracies.groupby("curve")["run"].nunique().to_dict() == {"GPT-2": 2, "RoBERTa": 2}
    methods = accuracies.groupby("curve")["method"].unique()
    assert "lp" in methods["GPT-2"]
    assert list(methods["RoBERTa"]) == ["pll"]
