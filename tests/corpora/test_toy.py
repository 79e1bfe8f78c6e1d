"""The toy language: its text, its pairs, and the digests that pin both to a version.

That pairs are correct and of fair difficulty was tested when version 2 was made: a digest changes with any word.
"""

import collections
import hashlib
import json
import random
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.config import SplitConfig, ToyCorpusConfig
from corpora.grammar.engine import Grammar
from corpora.grammar.symbols import Symbol, parse_symbol
from corpora.toy import VERSION, documents, is_reserved
from corpora.words import count_words
from eval.benchmarks.toy import pairs, toy_paradigms
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError
from train.config import run_id


def config(words: int, seed: int = 1) -> ToyCorpusConfig:
    split = SplitConfig(seed=0, valid=0.02, test=0.02)
    return ToyCorpusConfig(name="toy", reference="treebank", split=split, words=words, seed=seed, version=VERSION)


def sentences_of(words: int, seed: int = 1) -> list[str]:
    return [sentence for document in documents(config(words, seed)) for sentence in document.sentences]


def words_of(sentence: str) -> list[str]:
    return [*sentence[:-1].split(), sentence[-1]]


@lru_cache(maxsize=1)
def text() -> list[str]:
    return sentences_of(100_000)


@lru_cache(maxsize=1)
def benchmark() -> list[dict[str, Any]]:
    return list(pairs(seed=1, per_paradigm=100))


# The language


def test_text_has_the_requested_length_and_well_formed_sentences() -> None:
    text_documents = list(documents(config(20_000)))
    sentences = [sentence for document in text_documents for sentence in document.sentences]
    counts = [count_words(sentence, "treebank") for sentence in sentences]
    assert 0 <= sum(counts) - 20_000 < 14
    assert counts == [len(words_of(sentence)) for sentence in sentences]
    assert all(4 <= count <= 14 for count in counts)
    assert all(5 <= len(document.sentences) <= 20 for document in text_documents[:-1])
    assert {document.source for document in text_documents} == {"toy"}
    for sentence in sentences:
        assert sentence[0].isupper()
        assert sentence[-1] in ".?"
        assert sentence == " ".join(sentence.split())


def test_text_depends_only_on_its_seed() -> None:
    assert (
        sentences_of(5_000, seed=3)
        == sentences_of(5_000, seed=3)
        == sentences_of(9_000, seed=3)[: len(sentences_of(5_000, seed=3))]
    )
    assert sentences_of(5_000, seed=3) != sentences_of(5_000, seed=4)


# The pairs


def test_no_pair_is_in_any_text() -> None:
    in_pairs = {pair[key] for seed in (1, 2) for pair in pairs(seed, 50) for key in ("sentence_good", "sentence_bad")}
    for seed in range(5):
        assert not in_pairs & set(sentences_of(50_000, seed))
    assert all(is_reserved(pair["sentence_good"]) for pair in benchmark())
    assert not any(is_reserved(sentence) for sentence in text())


@settings(max_examples=5)
@given(st.integers(0, 2**40))
def test_pairs_are_new_minimal_and_fit_their_prefix_method(seed: int) -> None:
    drawn = list(pairs(seed, 4))
    assert drawn == list(pairs(seed, 4))
    assert len(drawn) == 4 * len(toy_paradigms())
    assert len({(pair["UID"], pair["sentence_good"]) for pair in drawn}) == len(drawn)
    for pair in drawn:
        good, bad = words_of(pair["sentence_good"]), words_of(pair["sentence_bad"])
        assert len(good) == len(bad)
        assert good != bad
        assert pair["lexically_identical"] == (
            sorted(" ".join(good).lower().split()) == sorted(" ".join(bad).lower().split())
        )
        assert not (pair["one_prefix_method"] and pair["two_prefix_method"])
        assert pair["one_prefix_method"] == ("one_prefix_prefix" in pair)
        assert pair["two_prefix_method"] == ("two_prefix_word" in pair)
        if pair["one_prefix_method"]:
            assert pair["sentence_good"].startswith(f"{pair['one_prefix_prefix']} {pair['one_prefix_word_good']}")
            assert pair["sentence_bad"].startswith(f"{pair['one_prefix_prefix']} {pair['one_prefix_word_bad']}")
            place = len(pair["one_prefix_prefix"].split())
            assert good[place] != bad[place]
            assert good[place + 1 :] == bad[place + 1 :]
        if pair["two_prefix_method"]:
            assert pair["sentence_good"].startswith(f"{pair['two_prefix_prefix_good']} {pair['two_prefix_word']}")
            assert pair["sentence_bad"].startswith(f"{pair['two_prefix_prefix_bad']} {pair['two_prefix_word']}")


def test_a_larger_benchmark_contains_the_smaller_one() -> None:
    few = {(pair["UID"], pair["pairID"]): pair for pair in pairs(7, 3)}
    many = {(pair["UID"], pair["pairID"]): pair for pair in pairs(7, 5)}
    assert len(many) == 5 * len(toy_paradigms())
    assert few.items() <= many.items()


# Errors in a grammar, a template or a table


def small_grammar(phrases: dict[str, dict[str, float]]) -> Grammar:
    description = {
        "zipf": {"shift": 1, "exponent": 1},
        "length": [1, 9],
        "document": [1, 2],
        "variables": {"n": ["singular", "plural"], "g": ["masculine", "feminine", "neuter"]},
        "phrases": phrases,
    }
    nouns = [
        {"singular": "boy", "plural": "boys", "gender": "masculine"},
        {"singular": "-", "plural": "twins", "gender": "feminine"},
    ]
    return Grammar(description, {"noun": nouns})


def test_features_are_shared_within_a_line() -> None:
    grammar = small_grammar(
        {"S": {"Det[n] noun.n[gender=g|masculine]": 1}, "Det[singular]": {"one": 1}, "Det[plural]": {"two": 1}}
    )
    rng = random.Random(0)
    counts = collections.Counter(" ".join(grammar.draw(Symbol("S", None, ()), rng)) for _ in range(3000))
    # g is drawn evenly; feminine adds the twins, at weight 1/3 beside the boys' 1/2
    expected = {"one boy": 1 / 2, "two boys": 1 / 2 * (2 / 3 + 1 / 3 * 3 / 5), "two twins": 1 / 2 * 1 / 3 * 2 / 5}
    assert {text: count / 3000 for text, count in counts.items()} == pytest.approx(expected, abs=0.03)


def test_a_minus_sign_draws_another_value_of_a_variable() -> None:
    bound = small_grammar({}).bindings([parse_symbol("X[g, -g]", "here")], {"g": "neuter"})
    assert [binding["-g"] for binding in bound] == ["masculine", "feminine"]


@pytest.mark.parametrize(
    ("phrases", "message"),
    [
        ({"S": {"NP": 1}}, "no heading fits NP"),
        ({"S": {"noun.plural[gender=neuter]": 1}}, "noun.plural[gender=neuter]: no row of the table 'noun' fits"),
        ({"S": {"noun.dual": 1}}, "no table 'noun' with the columns dual"),
        ({"S": {"verb.past": 1}}, "no table 'verb'"),
        ({"S": {"NP[n]": 1}, "NP": {"x": 1}}, "NP[singular] and NP have different numbers of features"),
        ({"S": {"N-P": 1}}, "grammar.yaml: S: N-P: 'N-P' is not a symbol"),
    ],
)
def test_a_bad_grammar_raises_a_one_line_error(phrases: dict[str, dict[str, float]], message: str) -> None:
    with pytest.raises(InputError) as raised:
        small_grammar(phrases).choice(Symbol("S", None, ()))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_only_the_present_version_is_written_and_its_runs_have_their_own_ids() -> None:
    overrides = ["corpus=toy", "model=lstm_tiny", "sample.size=2k"]
    present, earlier = (compose("train", [*overrides, *more]) for more in ([], ["corpus.version=1"]))
    assert present.corpus.version == VERSION
    assert run_id(present) != run_id(earlier)
    message = rf"corpus.version=1: only version {VERSION} of the toy language can be generated"
    with pytest.raises(ConfigError, match=message):
        next(documents(earlier.corpus))


def test_a_language_that_changes_has_a_new_version() -> None:
    """With other digests, VERSION and conf/corpus/toy.yaml must say one more, so that runs do not mix."""
    config = compose("corpora", ["corpus=toy", "corpus.words=50000"]).corpus
    sentences = [sentence for document in documents(config) for sentence in document.sentences]
    written = json.dumps(sentences), json.dumps(list(pairs(5, 50)))
    assert (VERSION, *(hashlib.sha256(text.encode()).hexdigest()[:16] for text in written)) == (
        2,
        "93045ea582f54432",
        "9c5e16c3bf3a64b1",
    )
