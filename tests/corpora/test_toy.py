"""The toy language: its text, and pairs that are correct, new, balanced and of fair difficulty."""

import collections
import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.config import SplitConfig, ToyCorpusConfig
from corpora.grammar.engine import Choice
from corpora.grammar.symbols import Symbol
from corpora.toy import VERSION, documents, is_reserved, toy_grammar
from corpora.words import count_words
from eval.benchmarks.toy import pairs, toy_paradigms
from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from train.runs.identity import run_id

# Paradigms whose good and bad words are close to what decides between them, and ones where they are far from it.
LOCAL = [
    "regular_plural_subject_verb_agreement_1", "irregular_plural_subject_verb_agreement_1",
    "determiner_noun_agreement_1", "determiner_noun_agreement_2", "determiner_noun_agreement_irregular_1",
    "determiner_noun_agreement_irregular_2", "transitive", "passive_1", "irregular_past_participle_adjectives",
    "left_branch_island_simple_question", "coordinate_structure_constraint_object_extraction",
    "sentential_negation_npi_licensor_present", "existential_there_quantifiers_1",
]  # fmt: skip
DISTANT = [
    "distractor_agreement_relational_noun", "distractor_agreement_relative_clause", "wh_vs_that_long_distance",
    "determiner_noun_agreement_with_adjective_1", "determiner_noun_agreement_with_adj_2", "anaphor_gender_agreement",
    "anaphor_number_agreement_distractor", "principle_A_c_command", "principle_A_domain_2", "principle_A_domain_3",
]  # fmt: skip


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
    short, long = sentences_of(5_000, seed=3), sentences_of(9_000, seed=3)
    assert short == sentences_of(5_000, seed=3) == long[: len(short)]
    assert short != sentences_of(5_000, seed=4)


def test_word_frequencies_are_zipf_like() -> None:
    counts = collections.Counter(word for sentence in text() for word in words_of(sentence))
    ranked = [count for _, count in counts.most_common()]
    points = [(math.log(rank), math.log(ranked[rank - 1])) for rank in range(5, 500)]
    mean_x, mean_y = (sum(axis) / len(points) for axis in zip(*points, strict=True))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    assert -1.5 < slope < -0.7


def test_a_language_that_changes_has_a_new_version() -> None:
    """With other digests, VERSION and conf/corpus/toy.yaml must say one more, so that runs do not mix."""
    written = json.dumps(sentences_of(50_000)), json.dumps(list(pairs(5, 50)))
    assert (VERSION, *(hashlib.sha256(text.encode()).hexdigest()[:16] for text in written)) == (
        2,
        "93045ea582f54432",
        "9c5e16c3bf3a64b1",
    )


def test_only_the_present_version_is_written_and_its_runs_have_their_own_ids() -> None:
    overrides = ["corpus=toy", "model=lstm_tiny", "sample.size=2k"]
    present, earlier = (compose("train", [*overrides, *more]) for more in ([], ["corpus.version=1"]))
    assert present.corpus.version == VERSION
    assert run_id(present) != run_id(earlier)
    with pytest.raises(ConfigError, match=f"corpus.version=1: .*version {VERSION} only"):
        next(documents(earlier.corpus))


# The pairs


def test_no_pair_is_in_any_text() -> None:
    in_pairs = {pair[key] for seed in (1, 2) for pair in pairs(seed, 50) for key in ("sentence_good", "sentence_bad")}
    for seed in range(5):
        assert not in_pairs & set(sentences_of(50_000, seed))
    assert all(is_reserved(pair["sentence_good"]) for pair in benchmark())
    assert not any(is_reserved(sentence) for sentence in text())


class Recognizer:
    """An independent top-down parser of the compiled choices of the grammar."""

    def __init__(self) -> None:
        self.start = toy_grammar().choice(Symbol("Sentence", None, ()))
        self.words: dict[int, set[str]] = {}

    def accepts(self, sentence: str) -> bool:
        words = [{"an": "a", "An": "A"}.get(word, word) for word in words_of(sentence)]
        return any(
            len(words) in self.ends(self.start, 0, [first, *words[1:]], {}) for first in {words[0], words[0].lower()}
        )

    def ends(
        self, node: str | Choice, start: int, words: list[str], cache: dict[tuple[int, int], set[int]]
    ) -> set[int]:
        """Return the positions where a node that begins at `start` may end."""
        if isinstance(node, str):
            return {start + 1} if words[start : start + 1] == [node] else set()
        key = id(node), start
        if key not in cache:
            plain = self.words.setdefault(id(node), {option for option in node.alternatives if isinstance(option, str)})
            cache[key] = {start + 1} if start < len(words) and words[start] in plain else set()
            for option in node.alternatives:
                if isinstance(option, tuple):
                    reached = {start}
                    for part in reversed(option):
                        reached = set().union(*(self.ends(part, place, words, cache) for place in reached))
                    cache[key] = cache[key] | reached
        return cache[key]


def test_good_sentences_are_in_the_grammar_and_bad_ones_are_not() -> None:
    recognizer = Recognizer()
    assert all(map(recognizer.accepts, text()[:100]))
    assert not recognizer.accepts("The boys sleeps.")
    for pair in pairs(seed=2, per_paradigm=3):
        assert recognizer.accepts(pair["sentence_good"]), pair
        assert not recognizer.accepts(pair["sentence_bad"]), pair


@settings(max_examples=5)
@given(st.integers(0, 2**40))
def test_pairs_are_new_minimal_and_fit_their_prefix_method(seed: int) -> None:
    drawn = list(pairs(seed, 4))
    assert drawn == list(pairs(seed, 4))
    assert len({(pair["UID"], pair["sentence_good"]) for pair in drawn}) == len(drawn) == 4 * len(toy_paradigms())
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
        for side in ("good", "bad"):
            sentence = pair[f"sentence_{side}"]
            if pair["one_prefix_method"]:
                assert sentence.startswith(f"{pair['one_prefix_prefix']} {pair[f'one_prefix_word_{side}']}")
            if pair["two_prefix_method"]:
                assert sentence.startswith(f"{pair[f'two_prefix_prefix_{side}']} {pair['two_prefix_word']}")
        if pair["one_prefix_method"]:
            place = len(pair["one_prefix_prefix"].split())
            assert good[place] != bad[place]
            assert good[place + 1 :] == bad[place + 1 :]


def test_a_larger_benchmark_contains_the_smaller_one() -> None:
    few = {(pair["UID"], pair["pairID"]): pair for pair in pairs(7, 3)}
    many = {(pair["UID"], pair["pairID"]): pair for pair in pairs(7, 5)}
    assert len(many) == 5 * len(toy_paradigms())
    assert few.items() <= many.items()


def test_paradigms_are_those_of_blimp(real_data: Path) -> None:
    keys = ("linguistics_term", "simple_LM_method", "one_prefix_method", "two_prefix_method")
    toy_pairs = {pair["UID"]: pair for pair in benchmark()}
    files = [file for file in (real_data / "blimp").glob("*.jsonl") if file.stem in toy_pairs]
    assert len(files) >= 35
    for file in files:
        with file.open(encoding="utf-8") as lines:
            blimp_pair = json.loads(next(lines))
        toy_pair = toy_pairs[blimp_pair["UID"]]
        assert {key: toy_pair[key] for key in keys} == {key: blimp_pair[key] for key in keys}, blimp_pair["UID"]
        assert toy_pair["field"] == blimp_pair["field"].replace("/", "_")


# Difficulty and fairness


def means(values: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return the mean of each paradigm. Paradigms with and without a gap share one mean.

    The good word of one is the bad word of the other, so a cue that helps in one hurts in the other.
    """
    grouped: dict[str, list[float]] = {}
    for name, value in values:
        grouped.setdefault(name.replace("_with_gap", "").replace("_no_gap", ""), []).append(value)
    return {name: sum(group) / len(group) for name, group in grouped.items()}


def scored(score: Any) -> Iterator[tuple[str, float, float]]:
    for pair in benchmark():
        yield pair["UID"], score(words_of(pair["sentence_good"])), score(words_of(pair["sentence_bad"]))


def test_word_frequency_does_not_tell_good_from_bad() -> None:
    counts = collections.Counter(word for sentence in text() for word in words_of(sentence))

    def score(words: list[str]) -> float:
        return sum(math.log(counts[word] + 0.5) for word in words)

    differences = means((name, good - bad) for name, good, bad in scored(score))
    assert max(map(abs, differences.values())) < 0.75, differences


def test_five_grams_pass_local_paradigms_and_fail_distant_ones() -> None:
    """By a model with Witten-Bell's smoothing (Chen & Goodman 1999, section 2.4)."""
    grams = collections.Counter[tuple[str, ...]]()
    history, followers = collections.Counter[tuple[str, ...]](), collections.Counter[tuple[str, ...]]()

    def windows(words: list[str]) -> Iterator[tuple[str, ...]]:
        padded = ["<s>"] * 4 + words + ["</s>"]
        return (tuple(padded[end - 5 : end]) for end in range(5, len(padded) + 1))

    for sentence in text():
        grams.update(window[start:] for window in windows(words_of(sentence)) for start in range(5))
    for gram, count in grams.items():
        history[gram[:-1]] += count
        followers[gram[:-1]] += 1

    def probability(gram: tuple[str, ...]) -> float:
        if not gram:
            return 1 / followers[()]
        known, types = history[gram[:-1]], followers[gram[:-1]]
        lower = probability(gram[1:])
        return (grams[gram] + types * lower) / (known + types) if known else lower

    def score(words: list[str]) -> float:
        return sum(map(math.log, map(probability, windows(words))))

    assert sum(probability(("<s>", "These", *word)) for word in grams if len(word) == 1) == pytest.approx(1)
    accuracy = means((name, float(good > bad)) for name, good, bad in scored(score))
    assert {name: accuracy[name] for name in LOCAL if accuracy[name] < 0.75} == {}
    assert sum(accuracy[name] for name in LOCAL) / len(LOCAL) > 0.9
    assert {name: accuracy[name] for name in DISTANT if accuracy[name] > 0.65} == {}
    assert sum(accuracy[name] for name in DISTANT) / len(DISTANT) < 0.55
