"""Frequencies of a benchmark's words in the text that a run was trained on."""

import dataclasses
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from analysis.measures.word_frequency import (
    accuracy_by_frequency,
    among_most_frequent,
    pair_frequencies,
    pair_words,
)
from analysis.published import published_file
from analysis.sections.word_frequency import WORDS, frequency_exhibits
from analysis.study.collect import collect
from analysis.study.judgements import judgements
from corpora.prepare import prepare
from corpora.word_counts import Counts, sample_counts
from corpora.words import words
from eval.scores.files import read_items, write_items
from pairscale.command.compose import compose
from pairscale.errors import StoreError
from tests.support.simulated_study import SimulatedStudy

SENTENCES = ["the cat sleeps .", "a dog sees the cat .", "the dog sleeps near a cat .", "the gnu runs ."]


@pytest.fixture
def store(tmp_path):
    text = "\n\n".join("\n".join(SENTENCES[i // 4**k % 4] for k in range(5)) for i in range(400))
    (tmp_path / "text.txt").write_text(text + "\n")
    return tmp_path / "store"


def run_of(store, *overrides):
    """Return the configuration and manifest in a run's folder, and its corpus."""
    paths = [f"corpus.path={store.parent}/text.txt", f"paths.store={store}", "corpus=local", "corpus.name=mine"]
    config = compose("corpora", [*paths, "tokenizer=word", *overrides])
    corpus = prepare(config)
    return dataclasses.asdict(config), {"corpus": corpus.manifest}, corpus


@pytest.mark.parametrize("overrides", [[], ["corpus.filter=gnu"], ["sample.unit=document"]])
def test_counts_are_those_of_the_runs_own_sample(store, overrides):
    """A sample of 1,003 words ends within a sentence."""
    config, manifest, corpus = run_of(store, "sample.size=1003", "seed=3", *overrides)
    tokens = corpus.sample().tokens
    tokenizer = corpus.tokenizer
    expected = Counter(tokenizer.token(int(token)) for token in tokens)
    counts = sample_counts(config, manifest, store, "treebank")
    assert counts.words == 1003 == sum(counts.of.values())
    assert counts.sentences == counts.of_sentences == corpus.drawn.sentences
    for word in ("the", "cat", "gnu", "."):
        assert counts.of[word] == expected[word], word
    assert (counts.of["gnu"] == 0) == (overrides == ["corpus.filter=gnu"])


def test_a_large_sample_is_counted_in_part(store):
    config, manifest, corpus = run_of(store, "sample.size=2000", "seed=1")
    counts = sample_counts(config, manifest, store, "treebank", most=10)
    expected = Counter()
    for index in corpus.drawn.indices[:10]:
        expected.update(words(corpus.text.sentence(int(index)), "treebank"))
    assert counts.of == expected
    assert (counts.sentences, counts.of_sentences) == (10, corpus.drawn.sentences)


def test_another_text_is_refused(store):
    config, manifest, _ = run_of(store, "sample.size=1000", "seed=1")
    with pytest.raises(StoreError, match="its sample has another digest"):
        sample_counts(config | {"seed": 2}, manifest, store, "treebank")
    with pytest.raises(StoreError, match=r"manifest\.json: missing"):
        sample_counts(config, manifest, store.parent / "nowhere", "treebank")


def test_frequencies_of_pairs_are_per_million_words():
    items = pd.DataFrame(
        [("p", "0", "a cat sleeps", "a dog sleeps"), ("p", "1", "sleeps a cat", "a cat sleeps")],
        columns=["paradigm", "pair_id", "good", "bad"],
    )
    counts = Counts(Counter({"a": 6, "sleeps": 3, "dog": 1}), 10, 1, 1)
    frequencies = pair_frequencies(pair_words(items, "whitespace"), counts)
    assert frequencies["rarest"].tolist() == [0.5e5, 0.5e5]  # the cat, which does not occur: half of one in ten
    assert frequencies.loc[0, ["differing", "ratio"]].tolist() == pytest.approx([0.5e5, 0.5 / 1.5])
    assert frequencies.loc[1, ["differing", "ratio"]].isna().all()  # another order of the same words


def test_accuracy_in_bins_is_a_mean_of_outcomes():
    rng = np.random.default_rng(1)
    rarest = np.exp(rng.normal(size=1000))
    frequencies = pd.DataFrame({"paradigm": "p", "rarest": rarest, "differing": np.nan, "ratio": 1.0})
    outcomes = {run: rng.random(1000).round() for run in ("a", "b")}
    judged = {run: (frequencies, outcome) for run, outcome in outcomes.items()}
    accuracies = accuracy_by_frequency(pd.DataFrame({"group": ["g", "g"]}, index=["a", "b"]), judged)
    # `differing` is unknown for all pairs, and `ratio` does not vary
    assert accuracies["predictor"].tolist() == ["rarest"] * 10
    assert accuracies["judgements"].tolist() == [200] * 10
    lowest = frequencies["rarest"].rank() <= 100
    assert accuracies["accuracy"].iloc[0] == pytest.approx(np.mean([outcome[lowest] for outcome in outcomes.values()]))


def test_shares_of_words_among_the_most_frequent():
    counts = Counts(Counter({f"w{i}": 2000 - i for i in range(1500)}), 10**6, 1, 1)
    shares = among_most_frequent(["w0", "w99", "w100", "w1200", "none"], counts)
    assert shares["rank"].tolist() == [100, 200, 500, 1000, 1500]
    assert shares["words"].tolist() == [2, 3, 3, 3, 4]
    assert shares["share"].iloc[-1] == 4 / 5
    tied = Counts(Counter({"a": 1, "b": 1, "c": 1, "d": 5}), 8, 1, 1)
    assert tied.ranks == {"d": 1, "a": 3, "b": 3, "c": 3}


def climp(tmp_path, store, monkeypatch):
    """Return a simulated study of CLiMP with English words, trained on samples of the store."""
    monkeypatch.setitem(WORDS, "climp", "treebank")
    simulated = SimulatedStudy(pairs=40, benchmark="climp", models=("lstm_tiny",), sizes=("1k", "2k"))
    folders = simulated.write(tmp_path / "runs")
    for folder in folders:
        config = folder.read_config()
        size, seed = config["sample"]["size"], config["seed"]
        written, manifest, _ = run_of(store, f"sample.size={size}", f"seed={seed}")
        folder.config.write_text(yaml.safe_dump(config | {name: written[name] for name in ("corpus", "sample")}))
        corpus = folder.read_manifest()["corpus"]
        folder.update_manifest(corpus=corpus | {"sample": manifest["corpus"]["sample"]})
        items, metadata = read_items(folder.scores("climp"))
        goods = [SENTENCES[i % 4] for i in range(len(items))]
        bads = [good.replace("cat", "gnu") if "cat" in good else good.replace("gnu", "cat") for good in goods]
        write_items(folder.scores("climp"), items.assign(good=goods, bad=bads), **metadata["benchmark"])
    study = collect(tmp_path / "runs", "simulated")
    return study, judgements(study, "climp", "lp", "wrong")


def test_a_study_has_sections_of_its_vocabulary_and_of_accuracy_by_frequency(tmp_path, store, monkeypatch):
    study, judged = climp(tmp_path, store, monkeypatch)
    vocabulary, accuracy = frequency_exhibits(study, judged, str(store))
    assert set(vocabulary.table["text"]) == {"1k", "2k"}
    known = published_file("climp_words").iloc[0]
    assert (known["words"], known["of"], known["rank"]) == (1055, 3456, 5000)
    assert "1,055 of 3,456 words are among the 5,000 most frequent" in vocabulary.about
    table = accuracy.table
    whole = table[table["predictor"] == "ratio"]
    assert whole["judgements"].sum() == 2 * judged.n_pairs  # two seeds at the largest size
    mean = judged.outcome[(judged.runs["size"] == "2k").to_numpy()].mean()
    assert np.average(whole["accuracy"], weights=whole["judgements"]) == pytest.approx(mean)
    assert not any(sentence in accuracy.about + vocabulary.about for sentence in SENTENCES)


def test_a_sentence_says_that_the_text_is_missing(tmp_path, store, monkeypatch):
    study, judged = climp(tmp_path, store, monkeypatch)
    (only,) = frequency_exhibits(study, judged, str(tmp_path / "nowhere"))
    assert only.table is None
    assert "trained on (paths.store=" in only.about
    assert Path(tmp_path / "nowhere").exists() is False
    judged.label = "blimp"
    assert frequency_exhibits(study, judged, str(store)) == []
