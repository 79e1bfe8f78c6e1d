"""benchmark=generated: its options, and settings that are rejected before anything is drawn or loaded."""

import json
import random
import shutil
from collections import Counter

import pytest

from corpora.grammar.engine import Grammar
from corpora.grammar.lexicon import NothingFits
from corpora.words import words
from eval.benchmarks.config import BenchmarkConfig
from eval.benchmarks.generated import FOLDER, grammar_of, making, paradigm_of
from eval.benchmarks.generated.vocabulary import read_vocabulary, resolved
from eval.benchmarks.load import load_benchmark
from eval.benchmarks.paradigm import ATTEMPTS, Exhausted, Paradigm
from eval.generate import write
from pairscale.errors import ConfigError, StoreError

NAME = "determiner_noun_agreement_1"


def config(**more):
    return BenchmarkConfig(name="generated", **{"language": "en", "pairs": 5, "seed": 1, "paradigms": [NAME], **more})


@pytest.fixture(scope="module")
def counts():
    """Counts of the words of 2,000 pairs."""
    pairs = paradigm_of("en", NAME, grammar_of("en")).pairs(random.Random(1), 2000)
    return Counter(
        word for pair in pairs for key in ("good", "bad") for word in words(pair[f"sentence_{key}"], "treebank")
    )


def vocabulary(tmp_path, lines):
    file = tmp_path / "mine.tsv"
    file.write_text("".join(f"{line}\n" for line in lines))
    return str(file)


def test_min_count_excludes_the_rare_words_of_a_file_with_counts(tmp_path, counts):
    file = vocabulary(tmp_path, (f"{word}\t{count}" for word, count in counts.items()))
    benchmark = load_benchmark(config(vocabulary=file, min_count=8, pairs=200))
    words_of_pairs = {
        word for text in [*benchmark.pairs["good"], *benchmark.pairs["bad"]] for word in words(text, "treebank")
    }
    assert min(counts[word] for word in words_of_pairs) >= 8
    assert benchmark.origin["vocabulary"]["words"] == sum(count >= 8 for count in counts.values())
    assert benchmark.origin["min_count"] == 8
    with pytest.raises(ConfigError, match=r"min_count=1000000: no word of .* occurs so often"):
        load_benchmark(config(vocabulary=file, min_count=10**6))


def test_the_manifest_has_min_count_only_if_it_was_applied(tmp_path, counts):
    file = vocabulary(tmp_path, counts)
    write(config(vocabulary=file, min_count=40), tmp_path / "pairs")
    manifest = json.loads((tmp_path / "pairs" / "manifest.json").read_text())
    assert "min_count" not in manifest
    assert manifest["vocabulary"]["words"] == len(counts)


def test_a_vocabulary_without_capitals_ignores_case(tmp_path, counts):
    lower = sorted({word.lower() for word in counts})
    benchmark = load_benchmark(config(vocabulary=vocabulary(tmp_path, lower)))
    assert len(benchmark.pairs) == 5
    assert benchmark.pairs["good"].str[0].str.isupper().all()  # the sentences are written as always
    uncased = read_vocabulary(tmp_path / "mine.tsv", "en")
    assert uncased.knows("These")
    assert uncased.unknown_word("These zzz .") == "zzz"
    cased = read_vocabulary(tmp_path.joinpath(vocabulary(tmp_path, [*lower, "Harold"])), "en")
    assert cased.unknown_word("These .") == "These"
    of_samples = read_vocabulary(tmp_path.joinpath(vocabulary(tmp_path, ["# reference=treebank: x", *lower])), "en")
    assert of_samples.unknown_word("These .") == "These"  # a model that never saw it reads <unk>


def test_a_paradigm_that_cannot_be_drawn_fails_early():
    draws = []
    pairs = paradigm_of("zh", "classifier", grammar_of("zh")).pairs(
        random.Random(1), 5, lambda good, bad: draws.append(good) or "of no use"
    )
    with pytest.raises(Exhausted, match=r"no more than 0 pairs can be drawn: of .* of no use"):
        next(pairs)
    assert len(draws) < ATTEMPTS / 4


def test_conditions_that_no_row_meets_raise_an_error_before_drawing():
    tables = {
        "noun": [{"word": "book", "kind": "thing"}, {"word": "tea", "kind": "drink"}],
        "verb": [{"word": "eat", "of": "meal"}],
    }
    grammar = Grammar({"variables": {}, "phrases": {}, "zipf": None}, tables)
    description = {"phenomenon": "x", "prefix": "none", "skeleton": "{n:noun.word[] verb.word[of=n.kind] / x y}"}
    with pytest.raises(NothingFits, match=r"verb\[of=(thing|drink)\]: no row of the table 'verb' fits"):
        Paradigm("mine", description, grammar)


def test_a_vocabulary_of_a_sample_needs_its_text(tmp_path):
    settings = config(vocabulary="run", min_count=5)
    run_config = {"model": {"name": "lstm"}, "corpus": {"name": "toy", "reference": "treebank"}}
    with pytest.raises(StoreError) as raised:
        resolved(settings, run_config, tmp_path / "runs", tmp_path / "store")
    message = str(raised.value)
    assert f"the text of corpus=toy is not in {tmp_path / 'store'}" in message
    assert "python -m corpora corpus=toy" in message
    assert "remove" not in message


def test_a_new_paradigm_changes_no_digest_of_the_others(tmp_path, monkeypatch):
    before = making.Source.of(config()).origin
    shutil.copytree(FOLDER / "english", tmp_path / "english")
    monkeypatch.setattr(making, "FOLDER", tmp_path)
    paradigms = tmp_path / "english" / "paradigms"
    (paradigms / "another.yaml").write_text((paradigms / f"{NAME}.yaml").read_text())
    assert making.Source.of(config()).origin == before
    (paradigms / f"{NAME}.yaml").write_text("changed")
    after = making.Source.of(config()).origin
    assert after["lexicon"] == before["lexicon"]
    assert after["paradigms"][NAME] != before["paradigms"][NAME]
