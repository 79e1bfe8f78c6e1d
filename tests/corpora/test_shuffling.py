"""Shuffled samples: the same words in another order, reproducible, and part of a run's name and digest."""

import dataclasses
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from corpora.prepare import prepare
from corpora.samples import shuffled
from corpora.tokenizers import EOS
from corpora.word_counts import sample_counts, token_counts
from corpora.words import words
from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from train.config import run_id

TEXT = ["The cat (old) can't sleep.", "Is it a fox?", "No", "A dog, a cat, a cow"]
CORPUS = ["corpus=toy", "corpus.words=20000", "sample.size=2k", "tokenizer=word", "seed=3"]


def configure(tmp_path, *overrides):
    return compose("train", [*CORPUS, "model=lstm_tiny", f"paths.store={tmp_path}", *overrides])


@given(together=st.booleans(), seed=st.integers(0, 2**32))
def test_all_words_stay_and_each_sentence_keeps_its_length_and_final_mark(together, seed):
    before, after = (
        [words(text, "whitespace" if again else "treebank") for text in texts]
        for again, texts in ((False, TEXT), (True, list(shuffled(TEXT, "treebank", together=together, seed=seed))))
    )
    parted = [[*of[:-1], of[-1][:-1], of[-1][-1]] if of[-1][-1] in ".?" and len(of) > 1 else of for of in after]
    assert [len(of) for of in parted] == [len(of) for of in before]
    assert Counter(word for of in parted for word in of) == Counter(word for of in before for word in of)
    assert [of[-1] for of in parted[:2]] == [".", "?"]
    if not together:
        assert [Counter(of) for of in parted] == [Counter(of) for of in before]


@pytest.mark.parametrize("together", [False, True])
def test_every_order_is_as_likely(together):
    """The six orders of three words, in 6,000 shuffles: a chi-squared test by scipy."""
    orders = Counter(next(shuffled(["a b c ."], "treebank", together=together, seed=seed)) for seed in range(6000))
    assert len(orders) == 6
    assert chisquare(list(orders.values())).pvalue > 0.001


def test_languages_without_spaces_are_joined_without():
    (text,) = shuffled(["他喜欢猫。"], "characters", together=False, seed=1)
    assert sorted(text) == sorted("他喜欢猫。")
    assert text.endswith("。")


@pytest.mark.parametrize("shuffle", ["sentence", "sample"])
def test_a_run_reads_its_sample_shuffled(tmp_path, shuffle):
    plain, mixed = (prepare(configure(tmp_path, *more)) for more in ([], [f"sample.shuffle={shuffle}"]))
    theirs, ours = plain.sample(), mixed.sample()
    assert (theirs.tokens == EOS).nonzero()[0].tolist() == (ours.tokens == EOS).nonzero()[0].tolist()
    assert Counter(theirs.tokens.tolist()) == Counter(ours.tokens.tolist())
    assert theirs.tokens.tolist() != ours.tokens.tolist()
    ends = (theirs.tokens == EOS).nonzero()[0]
    sentences = zip(*(np.split(of.tokens, ends) for of in (theirs, ours)), strict=True)
    same = [Counter(one.tolist()) == Counter(other.tolist()) for one, other in sentences]
    assert all(same) == (shuffle == "sentence")
    assert ours.tokens.dtype == theirs.tokens.dtype
    assert (ours.words, ours.sentences) == (theirs.words, theirs.sentences)
    assert ours.digest != theirs.digest
    assert np.array_equal(prepare(configure(tmp_path, f"sample.shuffle={shuffle}")).sample().tokens, ours.tokens)
    assert mixed.manifest["sample"]["shuffle"] == shuffle


def test_counts_of_a_shuffled_sample_are_those_of_its_text(tmp_path):
    corpus = prepare(configure(tmp_path, "sample.shuffle=sample"))
    config, manifest = dataclasses.asdict(corpus.config), {"corpus": corpus.manifest}
    counted = token_counts(config, manifest, tmp_path, corpus.tokenizer)
    assert np.array_equal(counted, np.bincount(corpus.sample().tokens, minlength=len(corpus.tokenizer)))
    assert sample_counts(config, manifest, tmp_path, "whitespace").total() > 1500


def test_shuffling_names_a_run_and_null_does_not(tmp_path):
    plain, mixed = (run_id(configure(tmp_path, *more)) for more in ([], ["sample.shuffle=sentence"]))
    assert plain == run_id(configure(tmp_path, "sample.shuffle=null"))
    assert mixed.rpartition("-")[0] == f"{plain.rpartition('-')[0]}-shuffle_sentence"
    assert mixed.rpartition("-")[2] != plain.rpartition("-")[2]
    with pytest.raises(ConfigError, match=r"sample\.shuffle=word: .*must be one of .*sentence"):
        configure(tmp_path, "sample.shuffle=word")
