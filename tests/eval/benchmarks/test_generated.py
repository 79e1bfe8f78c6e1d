"""Generated pairs: properties that hold for every paradigm and every seed, and the options of benchmark=generated."""

import json
import random
import shutil
from collections import Counter
from functools import lru_cache

import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from corpora.grammar.lexicon import NothingFits
from corpora.words import words
from eval.benchmarks.config import BenchmarkConfig
from eval.benchmarks.generated import FOLDER, grammar_of, origin_of, paradigm_of, paradigms_of
from eval.benchmarks.generated.vocabulary import Vocabulary
from eval.benchmarks.load import load_benchmark
from eval.benchmarks.paradigm import ATTEMPTS, Exhausted
from eval.generate import write
from pairscale.errors import ConfigError

NAME = "determiner_noun_agreement_1"
ALL = [(language, name) for language in ("en", "zh") for name in paradigms_of(language)]

# The languages' data


@lru_cache(maxsize=2)
def grammar(language):
    return grammar_of(language)


@lru_cache
def of(language, name):
    return paradigm_of(language, name, grammar(language))


def draw_pairs(language, name, seed, count):
    return list(of(language, name).pairs(random.Random(f"{seed}:{name}"), count))


@settings(max_examples=60)
@given(st.sampled_from(ALL), st.integers(0, 2**40))
def test_pairs_are_minimal_new_and_fit_their_flags(paradigm, seed):
    language, name = paradigm
    pairs = draw_pairs(*paradigm, seed, 10)
    assert pairs == draw_pairs(*paradigm, seed, 10)
    assert pairs[:4] == draw_pairs(*paradigm, seed, 4)
    assert len({pair["sentence_good"] for pair in pairs}) == 10
    for pair in pairs:
        good, bad = pair["sentence_good"], pair["sentence_bad"]
        assert good != bad
        assert pair["UID"] == name
        assert not (pair["one_prefix_method"] and pair["two_prefix_method"])
        assert pair["one_prefix_method"] == ("one_prefix_prefix" in pair)
        assert pair["two_prefix_method"] == ("two_prefix_word" in pair)
        if language == "zh":
            assert len(good) == len(bad)
            continue
        assert good[-1] in ".?"
        assert good == " ".join(good.split())
        assert " - " not in f"{good} {bad}"  # a form that a table lacks
        assert good[0].isupper()
        if pair["one_prefix_method"]:
            prefix = pair["one_prefix_prefix"]
            assert good.startswith(f"{prefix} {pair['one_prefix_word_good']}".strip())
            assert bad.startswith(f"{prefix} {pair['one_prefix_word_bad']}".strip())
            assert pair["one_prefix_word_good"] != pair["one_prefix_word_bad"]
        if pair["two_prefix_method"]:
            prefixes = [pair["two_prefix_prefix_good"], pair["two_prefix_prefix_bad"]]
            assert prefixes[0] != prefixes[1]
            for sentence, prefix in zip((good, bad), prefixes, strict=True):
                assert sentence.startswith(f"{prefix} {pair['two_prefix_word']}")


@settings(max_examples=30)
@given(st.sampled_from([name for language, name in ALL if language == "en"]), st.integers(0, 2**40), st.data())
def test_generated_pairs_have_only_words_of_the_vocabulary(name, seed, data):
    """The vocabulary has at least half of the rare words of some pairs, and all others."""
    texts = [pair[f"sentence_{side}"] for pair in draw_pairs("en", name, seed, 60) for side in ("good", "bad")]
    counts = Counter(word for text in texts for word in words(text, "treebank"))
    rare = sorted(word for word, count in counts.items() if count <= 6)
    unknown = set(data.draw(st.lists(st.sampled_from(rare), max_size=len(rare) // 2)) if rare else [])
    vocabulary = Vocabulary({word: count for word, count in counts.items() if word not in unknown}, "treebank")
    try:
        template = paradigm_of("en", name, grammar_of("en", vocabulary.knows))
        pairs = list(template.pairs(random.Random(seed), 3, vocabulary.unknown_word))
    except (Exhausted, NothingFits):
        assume(False)
    for pair in pairs:
        for side in ("good", "bad"):
            assert set(words(pair[f"sentence_{side}"], "treebank")) <= set(vocabulary.counts)


# benchmark=generated


def config(**more):
    return BenchmarkConfig(name="generated", **{"language": "en", "pairs": 5, "seed": 1, **more})


def test_labels_of_generated_benchmarks_show_their_settings():
    assert config(pairs=1000).label == "generated+en"
    assert config(pairs=1000, vocabulary="study", min_count=5).label == "generated+en+study-k5"
    assert config(pairs=1000, vocabulary="run", min_count=2).label == "generated+en+run-k2"
    assert config(vocabulary="a/my words.txt", seed=2).label == "generated+en+words-my_words+seed-2+pairs-5"
    assert config(pairs=1000, language="zh").label == "generated+zh"
    assert config(pairs=1000, vocabulary="w.txt", min_count=5).label == "generated+en+words-w"
    assert config(pairs=1000, vocabulary="w.txt", min_count=40).label == "generated+en+words-w-k40"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"language": "fr"}, "must be one of en, zh"), ({"pairs": None}, "benchmark.pairs=None"),
        ({"vocabulary": "study"}, "benchmark.min_count=null"),
        ({"paradigms": ["anaphor_gender"]}, "Did you mean anaphor_gender_agreement"),
        ({"per_paradigm": 3}, "form=generated doesn't use this key"),
    ],
)  # fmt: skip
def test_invalid_settings_raise_errors(more, message):
    with pytest.raises(ConfigError) as raised:
        load_benchmark(config(**more))
    assert message in str(raised.value)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_generated_pairs_written_to_files_load_as_a_blimp_benchmark(language, tmp_path):
    settings = config(language=language, paradigms=paradigms_of(language)[:2], pairs=7)
    write(settings, tmp_path)
    reloaded = load_benchmark(BenchmarkConfig(name="mine", path=str(tmp_path)))
    generated = load_benchmark(settings)
    assert reloaded.digest == generated.digest
    pd.testing.assert_frame_equal(reloaded.pairs, generated.pairs)
    assert json.loads((tmp_path / "manifest.json").read_text())["license"] == "CC0-1.0"


def test_a_paradigm_that_cannot_be_drawn_fails_early():
    draws = []
    pairs = paradigm_of("zh", "classifier", grammar_of("zh")).pairs(
        random.Random(1), 5, lambda good, bad: draws.append(good) or "of no use"
    )
    with pytest.raises(Exhausted, match=r"0 pairs .* of no use"):
        next(pairs)
    assert len(draws) < ATTEMPTS / 4


def test_a_new_paradigm_changes_no_digest_of_the_others(tmp_path, monkeypatch):
    before = origin_of(config(), [NAME], None)
    shutil.copytree(FOLDER / "english", tmp_path / "english")
    monkeypatch.setattr("eval.benchmarks.generated.FOLDER", tmp_path)
    paradigms = tmp_path / "english" / "paradigms"
    (paradigms / "another.yaml").write_text((paradigms / f"{NAME}.yaml").read_text())
    assert origin_of(config(), [NAME], None) == before
    (paradigms / f"{NAME}.yaml").write_text("changed")
    after = origin_of(config(), [NAME], None)
    assert after["lexicon"] == before["lexicon"]
    assert after["paradigms"][NAME] != before["paradigms"][NAME]
