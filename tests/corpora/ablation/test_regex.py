"""Filters by regular expression: what samples lack, the matched control, the listing, and the names of runs."""

import csv
import dataclasses
import itertools
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpora.constructions.matches
from corpora.config import AblateConfig, RegexFilter
from corpora.find import run as find
from corpora.prepare import Corpus, prepare
from corpora.word_counts import sample_again
from corpora.words import count_words, words
from pairscale.command.compose import compose
from pairscale.command.line import Line
from pairscale.errors import ConfigError, StoreError
from pairscale.schema import load_yaml
from tests.support.commands import run_command
from tests.support.small_runs import trained
from train.config import run_id
from train.runs.labels import name_curves

SUBJECTS = ["The dog", "A cat", "No fox", "Every bear"]
VERBS = ["barks", "has ever slept", "never eats", "EVER runs", "saw the lever", "sings for ever and ever"]
SENTENCES = [f"{s} {v} {n} ." for n, s, v in itertools.product(range(30), SUBJECTS, VERBS)]
DOCUMENTS = [SENTENCES[start : start + 8] for start in range(0, len(SENTENCES), 8)]
EVER = r"(?i)\bever\b"
EXPRESSIONS = [EVER, "ever", r"\d5", "^(The|A) ", r"[2468] \.$", "cat|fox"]


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("filters") / "text.txt"
    path.write_text("\n\n".join("\n".join(document) for document in DOCUMENTS), encoding="utf-8")
    return path


def options(file: Path) -> list[str]:
    store = f"paths.store={file.parent}/store"
    return ["corpus=local", f"corpus.path={file}", store, "corpus.split.valid=0.1", "corpus.split.test=0.1"]


@cache  # composing takes half a second
def plain(file: Path):
    return compose("train", [*options(file), "tokenizer=word", "model=lstm_tiny"])


def ablated(file: Path, expression: str | None, action: str = "remove", **values):
    config = plain(file)
    chosen = replace(config, sample=replace(config.sample, **values))
    if expression is None:
        return chosen
    return replace(chosen, filter=RegexFilter(name="mine", regex=expression), ablate=AblateConfig(action=action))


def corpus(file: Path, expression: str | None, action: str = "remove", **values) -> Corpus:
    return prepare(ablated(file, expression, action, **values))


def indices(prepared: Corpus) -> list[int]:
    return prepared.drawn.indices.tolist() + [index for index, _ in prepared.drawn.cuts]


def matching(prepared: Corpus, expression: str, split: str = "train") -> set[int]:
    places = prepared.text.split_sentences(split).tolist()
    return {index for index in places if re.search(expression, prepared.text.sentence(index))}


@given(
    expression=st.sampled_from(EXPRESSIONS),
    size=st.integers(1, 900),
    count=st.sampled_from(["words", "characters", "sentences"]),
    unit=st.sampled_from(["sentence", "document"]),
    nested=st.booleans(),
)
def test_no_training_sentence_matches_and_the_size_is_exact(file, expression, size, count, unit, nested):
    size = size if count != "sentences" else 1 + size % 150
    prepared = corpus(file, expression, size=str(size), count=count, unit=unit, nested=nested)
    sample, drawn = prepared.drawn, indices(prepared)
    assert {"words": sample.words, "characters": sample.characters, "sentences": sample.sentences}[count] == size
    assert not matching(prepared, expression).intersection(drawn)
    assert set(drawn) <= set(prepared.text.split_sentences("train").tolist())
    # The sample of the full text has the same sentences in the same order, and the matching ones.
    words_of_train = str(prepared.text.manifest["splits"]["train"]["words"])
    full = indices(corpus(file, None, size=words_of_train, unit=unit, nested=True))
    if nested:
        assert drawn == [index for index in full if index not in matching(prepared, expression)][: len(drawn)]
        skipped = matching(prepared, expression).intersection(full[: full.index(drawn[-1])])
        assert sample.skipped_sentences == len(skipped)
        assert sample.skipped_words == sum(count_words(prepared.text.sentence(i), "treebank") for i in skipped)


def test_held_out_text_and_its_tokenizer_stay(file):
    removed, full = corpus(file, EVER, size="100"), corpus(file, None, size="100")
    for split in ("valid", "test"):
        assert removed.held_out(split, 10_000).tokens.tolist() == full.held_out(split, 10_000).tokens.tolist()
        assert matching(full, EVER, split)
    config = ablated(file, EVER, size="600")
    fitted = prepare(replace(config, tokenizer=replace(config.tokenizer, fit_on="sample"))).tokenizer
    vocabulary = {fitted.token(index) for index in range(len(fitted))}
    assert "never" in vocabulary
    assert "ever" not in vocabulary


def test_the_control_is_as_many_other_sentences_of_the_same_length_and_frequency(file):
    prepared = corpus(file, EVER, "control", size="300")
    of, skipped = prepared.intervention, prepared.intervention.skipped.tolist()
    matched = matching(prepared, EVER)
    assert len(set(skipped)) == len(matched) > 100
    assert not matched.intersection(skipped)
    assert matched.intersection(indices(prepared))
    # The balance is of words, and of their frequencies in the train split, counted here.
    train = [words(s.lower(), "treebank") for s in prepared.text.sentences(prepared.text.split_sentences("train"))]
    counts = Counter(word for sentence in train for word in sentence)
    for name, chosen in (("removed", sorted(matched)), ("control", skipped)):
        texts = [words(sentence.lower(), "treebank") for sentence in prepared.text.sentences(chosen)]
        assert of.balance[name]["words"] == pytest.approx(np.mean([len(text) for text in texts]))
        means = [np.mean(np.log([counts[word] for word in text])) for text in texts]
        assert of.balance[name]["log_frequency"] == pytest.approx(np.mean(means))


def test_the_manifest_counts_what_was_removed_and_the_sample_is_drawn_again(file):
    prepared = corpus(file, EVER, size="300")
    removed = [prepared.text.sentence(index) for index in matching(prepared, EVER)]
    counts = prepared.manifest["ablation"]
    assert counts["sentences"] == counts["matching"]["sentences"] == len(removed) > 100
    assert counts["words"] == sum(count_words(sentence, "treebank") for sentence in removed)
    assert 0 < counts["sample"]["sentences"] < len(removed)
    assert prepared.drawn.available == prepared.text.manifest["splits"]["train"]["words"] - counts["words"]
    config, store = dataclasses.asdict(prepared.config), prepared.text.folder.parents[1]
    assert sample_again(config, {"corpus": prepared.manifest}, store).drawn.digest == prepared.drawn.digest


def test_a_size_above_what_is_left_is_an_error(file):
    available = corpus(file, EVER, size="1").drawn.available
    assert corpus(file, EVER, size=str(available)).drawn.words == available
    with pytest.raises(
        ConfigError, match=rf"sample\.size={available + 1}: .* only {available:,} words without .*ablate"
    ):
        _ = corpus(file, EVER, size=str(available + 1)).drawn


@pytest.mark.parametrize(
    ("overrides", "words_of_message"),
    [
        (["filter.regex='(a'", "filter.name=a"], ["filter.regex=(a", "regular expression"]),
        (["filter.regex=zebra", "filter.name=a"], ["filter.regex=zebra", "doesn't match any sentence"]),
        (["filter.regex=''", "filter.name=a"], ["filter=a", "leaves out every sentence"]),
        (["filter.regex=ever"], ["filter.name"]),
        (["filter.name=a"], ["filter.regex"]),
        (["filter.regex=ever", "filter.name=a", "ablate.action=replace"], ["ablate.action=replace"]),
        (["filter.regex=ever", "filter.name=a", "ablate.layer=spacy"], ["ablate.layer=spacy"]),
        (["filter.regex=ever", "filter.name=a/b"], ["filter.name"]),
        (["corpus.filter=ever"], ["Unknown key 'corpus.filter'"]),
    ],
)
def test_what_cannot_be_done_is_an_error(file, overrides, words_of_message):
    with pytest.raises(ConfigError) as error:
        prepare(compose("corpora", [*options(file), "ablate.action=remove", "sample.size=10", *overrides])).sample()
    assert all(part in str(error.value) for part in words_of_message)


def test_a_filter_without_an_action_is_said(file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    done = run_command("corpora", *options(file), "filter.name=mine", "filter.regex=fox")
    assert "filter=mine isn't used" in done.stdout
    assert ablated(file, EVER).unused_filter is None


def test_a_filter_in_a_file_may_have_a_description_and_a_source(file, tmp_path):
    (tmp_path / "filter").mkdir()
    about = "name: mine\ndescription: of foxes\nsource: a paper\nregex: fox\nparadigms: {toy: [transitive]}\n"
    (tmp_path / "filter" / "mine.yaml").write_text(about)
    line = Line.of([*options(file), "filter=mine", "--config-dir", str(tmp_path)], "corpora")
    assert compose("corpora", line).filter == RegexFilter(
        name="mine", regex="fox", description="of foxes", source="a paper", paradigms={"toy": ["transitive"]}
    )


def test_find_refuses_an_expression(file):
    with pytest.raises(ConfigError, match=r"filter\.regex=fox: .* searches trees"):
        find(compose("find", [*options(file), "filter.name=mine", "filter.regex=fox"]))


def test_an_expression_that_takes_too_long_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "text.txt").write_text("\n\n".join(["a b c ."] * 3 + [f"{'a' * 80}b {n}" for n in range(60)]))
    monkeypatch.setattr(corpora.constructions.matches, "LINE_SECONDS", 0.05)
    with pytest.raises(ConfigError, match=r"takes more than .* for one sentence of 8\d characters \(.*text\.txt:\d+\)"):
        _ = corpus(tmp_path / "text.txt", "(a|aa)+$", size="1").drawn


def test_a_text_is_searched_once_and_matches_are_checked(file, tmp_path, monkeypatch):
    text_file = tmp_path / "text.txt"
    text_file.write_bytes(file.read_bytes())
    found = corpus(text_file, EVER, size="10").intervention.matching.tolist()
    monkeypatch.setattr("corpora.constructions.matches._matching_sentences", lambda *_: pytest.fail("searched again"))
    assert corpus(text_file, EVER, size="10").intervention.matching.tolist() == found
    (place,) = (tmp_path / "store" / "local").glob("matches-*")
    np.save(place / "sentences.npy", np.arange(3))
    with pytest.raises(StoreError, match="'digest' differs from the folder's manifest"):
        _ = corpus(text_file, EVER, size="10").intervention


def test_runs_of_different_expressions_and_actions_have_ids_and_curves_of_their_own(file):
    configs = [ablated(file, None), *(ablated(file, e, a) for e in (EVER, "fox") for a in ("remove", "control"))]
    configs.append(ablated(file, "fox", "none"))
    ids = [run_id(config) for config in configs]
    assert len(set(ids)) == 5
    assert ids[-1] == ids[0]
    assert "-mine-remove-" in ids[1]
    removed = {action: dataclasses.asdict(ablated(file, EVER, action)) for action in ("none", "remove", "control")}
    assert set(name_curves(removed).names.values()) == {
        "lstm_tiny, full text",
        "lstm_tiny, mine removed",
        "lstm_tiny, matched control for mine",
    }


def test_the_command_counts_and_lists_what_is_left_out(file, tmp_path):
    listing = tmp_path / "removed.csv"
    ablation = ["filter.name=foxes", "filter.regex=fox", "ablate.action=control", f"ablate.listing={listing}"]
    done = run_command("corpora", *options(file), "tokenizer=word", "sample.size=10", *ablation)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(listing.read_text(encoding="utf-8").splitlines()))
    text = (file.parent / "store" / "local" / "text" / "text.txt").read_text(encoding="utf-8").splitlines()
    matched = matching(corpus(file, None, size="10"), "fox")
    assert f"{len(matched)} of" in done.stdout
    assert {int(row["control_of"]) - 1 for row in rows} == matched
    assert all(text[int(row["line"]) - 1] == row["sentence"] and "fox" not in row["sentence"] for row in rows)


def test_a_run_without_the_construction_trains(file):
    quick = ["sample.size=600", "recipe.budget.epochs=1", "recipe.validation_words=50", "trainer.progress=false"]
    quick += ["trainer.accelerator=cpu", "trainer.threads=1", f"paths.runs={file.parent}/runs", "ablate.action=remove"]
    words_typed = [
        *options(file),
        "tokenizer=word",
        "model=lstm_tiny",
        *quick,
        "filter.name=bears",
        "filter.regex=bear",
    ]
    folder = trained(compose("train", words_typed))
    manifest = folder.read_manifest()
    assert manifest["sample_words"] == 600
    assert manifest["corpus"]["ablation"]["sentences"] > manifest["corpus"]["ablation"]["sample"]["sentences"] > 0
    assert load_yaml((folder.path / "config.yaml").read_text())["filter"]["regex"] == "bear"
