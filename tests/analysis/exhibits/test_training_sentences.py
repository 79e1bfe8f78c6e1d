"""The paragraphs on training hold what a paper has to state."""

from copy import deepcopy

import pandas as pd
import pytest

from analysis.exhibits.sentences.training import comparisons_made, training

CONFIG = {
    "precision": "fp32",
    "model": {"name": "lstm_tiny", "seed": None, "hidden": 128, "layers": 2, "tied": True, "cutoffs": []},
    "recipe": {
        "name": "lstm_tiny", "budget": {"epochs": 5.0, "words": None}, "batch": 8, "bptt": 35, "lr": 0.008, "clip": 1.0,
        "export": "best", "warmup": 0.3, "min_lr": 0.0,
    },
    "sample": {"unit": "sentence"},
    "tokenizer": {"name": "unigram", "kind": "unigram", "fit_on": "train"},
}  # fmt: skip
MANIFEST = {"vocabulary": 4000, "corpus": {"name": "mine", "splits": {"train": {"words": 1_147_448}}}}


def paragraphs(nested=False, overlap=0.17, **second):
    """Return the paragraphs on two curves of two runs each; `second`: parts of the configuration of the second."""
    rows = [
        {"group": group, "size": size, "seed": 1, "sample_words": words, "reference": "treebank", "nested": nested,
         "overlap": overlap, "parameters": 780_192, "manifest": MANIFEST}
        for group in ("a", "b")
        for size, words in (("25k", 25_000), ("50k", 50_000))
    ]  # fmt: skip
    configs = {str(i): deepcopy(CONFIG) for i in range(4)}
    for run in ("2", "3"):
        for part, values in second.items():
            configs[run][part] |= values
    return training(pd.DataFrame(rows, index=list("0123")), configs)


def test_models_recipes_tokenizers_and_samples_are_stated():
    assert paragraphs() == [
        "Models: model=lstm_tiny (LSTM: hidden=128, layers=2, tied=true; 780,192 parameters).",
        "Training: 5 epochs over the sample, batches of 8 × 35 tokens, Adam at a rate of 0.008 (linear warm-up over "
        "30% of the steps, then a cosine to 0), gradients clipped at a norm of 1, the weights of the best validation "
        "are scored, precision fp32.",
        "Tokenizers: unigram, 4,000 entries, fitted on the whole training text, not on the samples.",
        "Samples: 25k and 50k words of text (of 1,147,448 words of mine), 1 seed (1), drawn at random by sentences "
        "without replacement, independently of each other. Two samples of one size share up to 17% of their text.",
    ]


def test_curves_that_differ_are_told_apart():
    models, recipes, *_ = paragraphs(
        model={"tied": False}, recipe={"budget": {"epochs": None, "words": "2M"}, "export": "last"}
    )
    assert models.startswith(
        "Models: a: model=lstm_tiny (LSTM: hidden=128, layers=2, tied=true; 780,192 parameters); b:"
    )
    assert "b: 2M words seen, batches" in recipes
    assert "the last weights" in recipes


@pytest.mark.parametrize(("fit_on", "text"), [("train", "the whole training text"), ("sample", "on each sample")])
def test_the_text_of_the_tokenizer_is_stated(fit_on, text):
    assert text in paragraphs(tokenizer={"fit_on": fit_on})[2]


def test_nested_samples_are_named():
    text = paragraphs(nested=True, overlap=0.0)[3]
    assert text.endswith("nested: those of a seed are parts of its larger ones.")


def test_models_that_come_trained_have_no_paragraph():
    runs = pd.DataFrame({"group": ["gpt"]}, index=["r"])
    assert training(runs, {"r": {"model": {"name": "gpt"}}}) == []


def test_comparisons_are_counted():
    slopes = pd.DataFrame({"pairs": "all", "level": ["overall", *["phenomenon"] * 3], "low": [0.0, 0.0, 0.0, None]})
    differences = pd.DataFrame({"level": ["overall", "phenomenon"], "p_holm": [0.1, 0.2]})
    (text,) = comparisons_made(slopes, differences)
    assert text.startswith(
        "Slopes with intervals: 1 overall, 2 of phenomena and 0 of paradigms, none of them corrected"
    )
    assert text.endswith(
        "Differences between curves: 1 overall and 1 of phenomena, with Holm's correction within each."
    )
