"""Filtered corpora: no training sentence matches, sizes are exact, everything else is as without the filter."""

import itertools
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpora.filters
from corpora.prepare import Corpus, prepare
from corpora.samples import Sample
from corpora.words import count_words
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, StoreError
from pairscale.files import write_json
from train.estimate import estimate
from train.plan import Plan
from train.run import train_run
from train.runs.identity import _numbers, run_id
from train.runs.labels import name_curves

SUBJECTS = ["The dog", "A cat", "No fox", "Every bear"]
VERBS = ["barks", "has ever slept", "never eats", "EVER runs", "saw the lever", "sings for ever and ever"]
SENTENCES = [f"{s} {v} {n} ." for n, s, v in itertools.product(range(30), SUBJECTS, VERBS)]
DOCUMENTS = [SENTENCES[start : start + 8] for start in range(0, len(SENTENCES), 8)]
EVER = r"(?i)\bever\b"
PATTERNS = [EVER, "ever", r"\d5", "^(The|A) ", r"[2468] \.$", "cat|fox"]


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("filters") / "text.txt"
    path.write_text("\n\n".join("\n".join(document) for document in DOCUMENTS), encoding="utf-8")
    return path


def configuration(file: Path, pattern: str | None, *overrides: str):
    options = ["corpus=local", f"corpus.path={file}", f"paths.store={file.parent}/store", "corpus.split.valid=0.1"]
    config = compose("train", [*options, "corpus.split.test=0.1", "tokenizer=word", "model=lstm_tiny", *overrides])
    return replace(config, corpus=replace(config.corpus, filter=pattern))


plain = cache(lambda file: configuration(file, None))  # composing takes half a second


def corpus(file: Path, pattern: str | None, **values) -> Corpus:
    config = plain(file)
    filtered = replace(config, corpus=replace(config.corpus, filter=pattern), sample=replace(config.sample, **values))
    return prepare(filtered)


def text_of(prepared: Corpus, sample: Sample | None = None) -> list[str]:
    sample = sample or prepared.drawn
    sentences = list(prepared.text.sentences(sample.indices.tolist()))
    return sentences + [prepared.text.sentence(index)[:end] for index, end in sample.cuts]


def origin(prepared: Corpus) -> list[int]:
    sample = prepared.drawn
    return sample.indices.tolist() + [index for index, _ in sample.cuts]


@given(
    pattern=st.sampled_from(PATTERNS),
    size=st.integers(1, 900),
    count=st.sampled_from(["words", "characters", "sentences"]),
    unit=st.sampled_from(["sentence", "document"]),
    nested=st.booleans(),
)
def test_no_training_sentence_matches_and_the_size_is_exact(file, pattern, size, count, unit, nested):
    size = size if count != "sentences" else 1 + size % 150
    prepared = corpus(file, pattern, size=str(size), count=count, unit=unit, nested=nested)
    sample = prepared.drawn
    assert {"words": sample.words, "characters": sample.characters, "sentences": sample.sentences}[count] == size
    assert sample.words == sum(count_words(sentence, "treebank") for sentence in text_of(prepared))
    indices = origin(prepared)
    assert not [index for index in indices if re.search(pattern, prepared.text.sentence(index))]
    assert set(indices) <= set(prepared.text.split_sentences("train").tolist())
    # The sample without the filter has the same sentences in the same order, plus the matching ones.
    everything = corpus(
        file, None, size=str(prepared.text.manifest["splits"]["train"]["words"]), unit=unit, nested=True
    )
    if nested:
        unmatched = [index for index in origin(everything) if not re.search(pattern, prepared.text.sentence(index))]
        assert indices == unmatched[: len(indices)]
        last = origin(everything).index(indices[-1])
        skipped = [i for i in origin(everything)[:last] if re.search(pattern, prepared.text.sentence(i))]
        assert sample.skipped_sentences == len(skipped)
        assert sample.skipped_words == sum(count_words(prepared.text.sentence(i), "treebank") for i in skipped)


@given(sizes=st.lists(st.integers(1, 900), min_size=2, max_size=4), unit=st.sampled_from(["sentence", "document"]))
def test_nested_samples_are_still_prefixes_of_larger_ones(file, sizes, unit):
    texts = ["\n".join(text_of(corpus(file, EVER, size=str(n), nested=True, unit=unit))) for n in sorted(sizes)]
    assert all(large.startswith(small) for small, large in itertools.pairwise(texts))


def test_a_filtered_sample_is_reproducible_and_differs_from_other_filters(file):
    first = corpus(file, EVER, size="300")
    assert corpus(file, EVER, size="300").drawn.digest == first.drawn.digest
    assert corpus(file, None, size="300").drawn.digest != first.drawn.digest
    assert corpus(file, "fox", size="300").drawn.digest != first.drawn.digest


def test_held_out_text_is_not_filtered(file):
    with_filter, without = corpus(file, EVER, size="100"), corpus(file, None, size="100")
    for split in ("valid", "test"):
        filtered_part, unfiltered_part = with_filter.held_out(split, 10_000), without.held_out(split, 10_000)
        assert filtered_part.tokens.tolist() == unfiltered_part.tokens.tolist()
        text = with_filter.text
        assert any(re.search(EVER, text.sentence(index)) for index in text.split_sentences(split))
        assert not with_filter.filter.matches[text.split_sentences(split)].any()


def test_only_a_tokenizer_fitted_on_the_sample_depends_on_the_filter(file):
    assert len(corpus(file, EVER, size="300").tokenizer) == len(corpus(file, None, size="300").tokenizer)
    config = configuration(file, EVER, "tokenizer.fit_on=sample", "sample.size=600")
    fitted = prepare(config).tokenizer
    vocabulary = {fitted.token(index) for index in range(len(fitted))}
    assert "never" in vocabulary
    assert "ever" not in vocabulary


def test_the_manifest_counts_the_removed_sentences_and_words(file):
    prepared = corpus(file, EVER, size="300")
    train = list(prepared.text.sentences(prepared.text.split_sentences("train").tolist()))
    removed = [sentence for sentence in train if re.search(EVER, sentence)]
    counts = prepared.manifest["filter"]
    assert counts["pattern"] == EVER
    assert counts["sentences"] == len(removed) > 100
    assert counts["words"] == sum(count_words(sentence, "treebank") for sentence in removed)
    assert 0 < counts["sample"]["sentences"] < len(removed)
    assert prepared.drawn.available == prepared.text.manifest["splits"]["train"]["words"] - counts["words"]
    assert "filter" not in corpus(file, None, size="300").manifest


def test_a_size_above_the_filtered_text_raises_a_one_line_error(file):
    available = corpus(file, EVER, size="1").drawn.available
    assert corpus(file, EVER, size=str(available)).drawn.words == available
    explanation = rf"without the sentences that match corpus\.filter \({available:,}\)"
    message = rf"sample\.size={available + 1}: more words than .* {explanation}"
    with pytest.raises(ConfigError, match=message):
        _ = corpus(file, EVER, size=str(available + 1)).drawn
    with pytest.raises(ConfigError, match=r"without the sentences that match corpus\.filter \(0\)"):
        _ = corpus(file, ".", size="1").drawn


def test_invalid_or_unmatched_patterns_raise_one_line_errors(file):
    with pytest.raises(ConfigError, match=r"corpus\.filter=\(a: not a regular expression \(missing \)"):
        configuration(file, "(a")
    with pytest.raises(ConfigError, match=r"corpus\.filter=zebra: matches no sentence of the train split of local"):
        _ = corpus(file, "zebra", size="1").drawn
    prepared = corpus(file, None, size="1")
    assert not list(prepared.text.folder.parent.glob("filter-*/*.tmp"))


def test_a_pattern_that_takes_too_long_raises_an_error(tmp_path, monkeypatch):
    (tmp_path / "text.txt").write_text("\n\n".join(["a b c ."] * 3 + [f"{'a' * 80}b {n}" for n in range(60)]))
    monkeypatch.setattr(corpora.filters, "LINE_SECONDS", 0.05)
    prepared = corpus(tmp_path / "text.txt", "(a|aa)+$", size="1")
    with pytest.raises(ConfigError, match=r"takes more than .* for one sentence of 8\d characters \(.*text\.txt:\d+\)"):
        _ = prepared.drawn


def test_a_filter_is_prepared_once_and_checked(file, tmp_path, monkeypatch):
    text_file = tmp_path / "text.txt"
    text_file.write_bytes(file.read_bytes())
    folder = corpus(text_file, EVER, size="10").filter
    monkeypatch.setattr("corpora.prepare.write_filter", lambda *_: pytest.fail("written again"))
    reloaded = corpus(text_file, EVER, size="10").filter
    assert (reloaded.matches == folder.matches).all()
    (place,) = (tmp_path / "store" / "local").glob("filter-*")
    manifest = corpora.filters.filter_manifest(place)
    write_json(place / "manifest.json", manifest | {"text": "ab" * 32})
    with pytest.raises(StoreError, match="its text is not the one in its manifest; remove it"):
        _ = corpus(text_file, EVER, size="10").drawn
    write_json(place / "manifest.json", manifest)
    with (place / "matches.npy").open("wb") as damaged:
        np.save(damaged, ~reloaded.matches)
    with pytest.raises(StoreError, match="its digest is not the one in its manifest"):
        _ = corpus(text_file, EVER, size="10").drawn


def test_a_filter_is_part_of_a_runs_id(file):
    assert _numbers(configuration(file, EVER))["corpus"]["filter"] == EVER
    assert run_id(configuration(file, EVER)) != run_id(configuration(file, None))


def test_runs_with_a_filter_are_on_a_curve_of_their_own():
    configs = {}
    for pattern, size in itertools.product((None, EVER), ("125k", "250k")):
        corpus_config = {"name": "english", "filter": pattern}
        configs[f"{pattern}-{size}"] = {
            "model": {"name": "lstm"},
            "corpus": corpus_config,
            "sample": {"size": size},
            "seed": 1,
        }
    names = name_curves(configs).names
    assert set(names.values()) == {"lstm, filter=null", rf"lstm, filter={EVER}"}


def show_plan(config):
    plan = Plan()
    plan.add(estimate(config))
    plan.show()


def test_a_filtered_run_trains_and_the_plan_reports_the_removed_text(file, capsys):
    quick = ["sample.size=600", "recipe.budget.epochs=1", "recipe.validation_words=50", "trainer.progress=false"]
    quick += ["trainer.accelerator=cpu", "trainer.threads=1", f"paths.runs={file.parent}/runs"]
    config = configuration(file, "bear", *quick)
    show_plan(config)
    assert "bear takes an unknown part out of the train split" in capsys.readouterr().out
    folder = train_run(config)
    counts = folder.read_manifest()["corpus"]["filter"]
    assert counts["sentences"] > counts["sample"]["sentences"] > 0
    assert folder.read_manifest()["sample_words"] == 600
    show_plan(config)
    assert f"bear takes {counts['sentences']:,} sentences, {counts['words']:,} words" in capsys.readouterr().out
