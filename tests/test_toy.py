"""The built-in language: what it holds, that text and pairs never meet, and that local statistics do not solve it."""

import math
from collections import Counter, defaultdict
from itertools import islice

import pytest

from corpora.config import SplitConfig, ToyCorpusConfig
from corpora.toy import documents, pairs
from corpora.toy.grammar import FOLDER, read_table, reserved
from corpora.words import words

LOCAL = (
    "determiner_noun_agreement_irregular_1",
    "determiner_noun_agreement_irregular_2",
    "existential_there_quantifiers_1",
    "irregular_past_participle_adjectives",
    "sentential_negation_npi_licensor_present",
)
DISTANT = (
    "distractor_agreement_relational_noun",
    "distractor_agreement_relative_clause",
    "principle_A_c_command",
    "anaphor_number_agreement_distractor",
    "wh_vs_that_no_gap_long_distance",
)


def text(count: int, seed: int = 1) -> list[str]:
    config = ToyCorpusConfig("toy", "treebank", SplitConfig(0, 0.02, 0.02), count, seed)
    return [sentence for document in documents(config) for sentence in document.sentences]


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    return text(60_000)


@pytest.fixture(scope="module")
def benchmark() -> list[dict]:
    return list(pairs(1, 100))


def test_size_of_the_lexicon():
    forms = {cell for file in (FOLDER / "lexicon").glob("*.tsv") for row in read_table(file) for cell in row.values()}
    assert len(forms) > 400


def test_pairs_cover_phenomena_and_differ(benchmark):
    assert len({pair["linguistics_term"] for pair in benchmark}) >= 8
    by_paradigm = Counter(pair["UID"] for pair in benchmark)
    assert set(by_paradigm.values()) == {100}
    assert len({(pair["UID"], pair["sentence_good"]) for pair in benchmark}) == len(benchmark)
    for pair in benchmark:
        good, bad = (words(pair[f"sentence_{side}"], "treebank") for side in ("good", "bad"))
        assert good != bad
        assert len(good) == len(bad)


def test_prefixes_are_beginnings_of_their_sentences(benchmark):
    for pair in benchmark:
        for side in ("good", "bad"):
            sentence = pair[f"sentence_{side}"]
            if pair["one_prefix_method"]:
                start = f"{pair['one_prefix_prefix']} {pair[f'one_prefix_word_{side}']}".strip()
                assert sentence.startswith(start)
            if pair["two_prefix_method"]:
                assert sentence.startswith(f"{pair[f'two_prefix_prefix_{side}']} {pair['two_prefix_word']}")


def test_no_sentence_of_the_pairs_is_in_a_text(sentences, benchmark):
    assert not any(map(reserved, sentences))
    written = set(sentences) | set(text(20_000, seed=2))
    assert all(reserved(pair["sentence_good"]) for pair in benchmark)
    assert not any(pair["sentence_bad"] in written for pair in benchmark)


def test_seeds_decide_and_nothing_else(sentences):
    assert text(2_000) == list(islice(sentences, len(text(2_000))))
    assert text(2_000, seed=2) != text(2_000)
    assert list(pairs(3, 5)) == list(pairs(3, 5))
    assert list(pairs(3, 5)) != list(pairs(4, 5))


def test_words_are_frequent_as_in_natural_text(sentences):
    counts = Counter(word for sentence in sentences for word in words(sentence, "treebank"))
    ranked = [count for _, count in counts.most_common()]
    assert len(ranked) > 400
    assert sum(ranked[:50]) > sum(ranked) / 2


class FiveGram:
    """Interpolated absolute discounting (Ney, Essen and Kneser 1994) of order 5, discount .75."""

    def __init__(self, sentences: list[str]):
        self.counts: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for sentence in sentences:
            padded = ["<s>"] * 4 + words(sentence, "treebank")
            for end in range(4, len(padded)):
                for order in range(5):
                    self.counts[tuple(padded[end - order : end])][padded[end]] += 1

    def probability(self, context: tuple[str, ...], word: str) -> float:
        lower = self.probability(context[1:], word) if context else 1 / len(self.counts[()])
        seen = self.counts.get(context)
        if not seen:
            return lower
        total = seen.total()
        return max(seen[word] - 0.75, 0) / total + 0.75 * len(seen) / total * lower

    def logprob(self, sentence: str) -> float:
        padded = ["<s>"] * 4 + words(sentence, "treebank")
        return sum(math.log(self.probability(tuple(padded[e - 4 : e]), padded[e])) for e in range(4, len(padded)))


def test_a_five_gram_passes_the_local_paradigms_and_fails_the_distant_ones(sentences, benchmark):
    model = FiveGram(sentences)
    right: dict[str, list[bool]] = defaultdict(list)
    for pair in benchmark:
        if pair["UID"] in LOCAL + DISTANT:
            right[pair["UID"]].append(model.logprob(pair["sentence_good"]) > model.logprob(pair["sentence_bad"]))
    accuracy = {name: sum(values) / len(values) for name, values in right.items()}
    assert set(accuracy) == {*LOCAL, *DISTANT}
    assert all(accuracy[name] >= 0.8 for name in LOCAL), accuracy
    assert all(accuracy[name] <= 0.6 for name in DISTANT), accuracy
