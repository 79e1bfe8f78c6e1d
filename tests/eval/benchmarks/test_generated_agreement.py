"""Labels of the generated English pairs on agreement, forms, quantifiers, polarity and ellipsis.

The functions below know nothing of templates: they look up the words of a finished sentence in the lexicon's tables
and decide by their features which of the two sentences is good.
"""

import random
import re
from functools import cache
from typing import Any

import pytest

from corpora.grammar.engine import Grammar
from corpora.grammar.lexicon import read_table
from eval.benchmarks.generated import FOLDER, grammar_of, paradigm_of

SEEDS = (1, 2, 3, 4)
PAIRS = 40  # of a paradigm and seed
NUMBERS = ("singular", "plural")
SUBJECT_VERB = {
    "regular_plural_subject_verb_agreement_1": "regular",
    "irregular_plural_subject_verb_agreement_1": "irregular",
    "regular_plural_subject_verb_agreement_2": "regular",
    "irregular_plural_subject_verb_agreement_2": "irregular",
    "distractor_agreement_relational_noun": None,
    "distractor_agreement_relative_clause": None,
}
DETERMINER_NOUN = [
    f"determiner_noun_agreement_{name}"
    for name in (
        "1", "2", "irregular_1", "irregular_2", "with_adjective_1", "with_adj_2", "with_adj_irregular_1",
        "with_adj_irregular_2",
    )
]  # fmt: skip
Words = list[str]


@cache
def table(name: str) -> list[dict[str, str]]:
    return read_table(FOLDER / "english" / "lexicon" / f"{name}.tsv")


@cache
def grammar() -> Grammar:
    return grammar_of("en")


def pairs(paradigm: str) -> list[dict[str, Any]]:
    template = paradigm_of("en", paradigm, grammar())
    return [pair for seed in SEEDS for pair in template.pairs(random.Random(seed), PAIRS)]


def sides(paradigm: str) -> list[tuple[Words, Words]]:
    """Return the words of good and bad sentences, without punctuation, in lower case except names."""
    sentences = []
    for pair in pairs(paradigm):
        good, bad = (re.findall(r"[A-Za-z'-]+", pair[side]) for side in ("sentence_good", "sentence_bad"))
        for words in (good, bad):
            if words[0] not in column("name", "word"):
                words[0] = words[0].lower()
            words[:] = ["a" if word == "an" else word for word in words]
        sentences.append((good, bad))
    return sentences


@cache
def column(name: str, form: str) -> frozenset[str]:
    return frozenset(row[form] for row in table(name))


def numbers(word: str) -> set[str]:
    """Return the numbers that a noun, name or demonstrative may have."""
    possible = {number for number in NUMBERS if word in column("noun", number)}
    if word in column("name", "word"):
        possible.add("singular")
    demonstratives = [row for row in table("determiner") if row["kind"] == "demonstrative"]
    return possible | {number for number in NUMBERS for row in demonstratives if row[number] == word}


def verb_numbers(words: Words) -> set[str]:
    """Return the numbers of subjects of the finite auxiliary or verb at the start of `words`."""
    possible = {number for number in NUMBERS for row in table("auxiliary") if row[number] == words[0]}
    for form, number in (("third", "singular"), ("base", "plural")):
        possible |= {number for entry in column("verb", form) if entry.split() == words[: len(entry.split())]}
    return possible


def subject(words: Words) -> tuple[str, int]:
    """Return the first noun or name of a sentence, after a determiner and an adjective if any, and its position."""
    if words[0] in column("name", "word"):
        return words[0], 0
    determiners = sorted((row[number] for row in table("determiner") for number in NUMBERS), key=len, reverse=True)
    length = next(len(one.split()) for one in determiners if one.split() == words[: len(one.split())])
    if words[length] in column("adjective", "word") and numbers(words[length + 1]):
        length += 1
    return words[length], length


@pytest.mark.parametrize("paradigm", SUBJECT_VERB)
def test_verbs_agree_with_the_head_of_their_subject_only_in_good_sentences(paradigm: str) -> None:
    good_numbers = []
    for good, bad in sides(paradigm):
        first = next(index for index, (one, other) in enumerate(zip(good, bad, strict=True)) if one != other)
        (noun, place), (wrong, _) = subject(good), subject(bad)
        verb = first if first != place else place + 1
        assert (noun == wrong) == (first != place), (good, bad)
        assert numbers(noun) == verb_numbers(good[verb:]), good
        assert numbers(wrong).isdisjoint(verb_numbers(bad[verb:])), bad
        if paradigm.startswith("distractor"):
            assert numbers(good[verb - 1]).isdisjoint(numbers(noun)), good
        kind = SUBJECT_VERB[paradigm]
        if kind and noun not in column("name", "word"):
            assert kind in {row["inflection"] for row in table("noun") if noun in (row["singular"], row["plural"])}
        good_numbers += numbers(noun)
    assert 0.3 < good_numbers.count("plural") / len(good_numbers) < 0.7


@pytest.mark.parametrize("paradigm", DETERMINER_NOUN)
def test_demonstratives_agree_with_their_nouns_only_in_good_sentences(paradigm: str) -> None:
    good_numbers = []
    for good, bad in sides(paradigm):
        determiner = -3 if "adj" in paradigm else -2
        assert numbers(good[determiner]) == numbers(good[-1]), good
        assert numbers(bad[determiner]).isdisjoint(numbers(bad[-1])), bad
        place = -1 if paradigm.endswith("1") else determiner
        assert [one == other for one, other in zip(good, bad, strict=True)].index(False) == len(good) + place
        kind = "irregular" if "irregular" in paradigm else "regular"
        assert kind in {row["inflection"] for row in table("noun") if good[-1] in (row["singular"], row["plural"])}
        if "adj" in paradigm:
            assert good[-2] in column("adjective", "word")
        good_numbers += numbers(good[-1])
    assert 0.3 < good_numbers.count("plural") / len(good_numbers) < 0.7


def test_irregular_verbs_have_wrong_forms_only_in_bad_sentences() -> None:
    verbs = [row for row in table("verb") if row["inflection"] == "irregular"]
    for pair in pairs("irregular_past_participle_verbs"):
        forms = (pair["one_prefix_word_good"], pair["one_prefix_word_bad"])
        assert forms in {(row["past"], row["participle"]) for row in verbs if row["participle"] != row["base"]}
    for good, bad in sides("irregular_past_participle_adjectives"):
        assert (bad[1], good[1]) in {(row["past"], row["participle"]) for row in verbs}
        assert numbers(good[2]) == verb_numbers(good[3:4]), good


def test_weak_quantifiers_follow_there_and_superlatives_follow_no_only_as_labelled() -> None:
    strength = {row[number]: row["strength"] for row in table("determiner") for number in NUMBERS}

    def strong(words: Words) -> bool:
        return next(strength[one] for one in sorted(strength, key=len, reverse=True)
                    if one.split() == words[: len(one.split())]) == "strong"  # fmt: skip

    for good, bad in sides("existential_there_quantifiers_1"):
        assert good[0] == "there"
        assert not strong(good[2:])
        assert strong(bad[2:])
    for good, bad in sides("existential_there_quantifiers_2"):
        assert strong(good)
        assert good[3] == "there"
        assert bad[0] == "there"
        assert strong(bad[2:])
    superlative = r"\bat (least|most)\b"
    for good, bad in sides("superlative_quantifiers_1"):
        assert good[0] == bad[0] == "no"
        assert re.search(r"\b(more|fewer) than\b", " ".join(good))
        assert re.search(superlative, " ".join(bad))
    for good, bad in sides("superlative_quantifiers_2"):
        assert bad[0] == "no"
        assert good[0] != "no"
        assert re.search(superlative, " ".join(good))


def licensed(sentence: str) -> bool:
    """Return True if "ever" has a licensor: a question, or "not" or an initial "only" in its own clause."""
    words = sentence.lower().split()
    clause = words[: words.index("ever")]
    if "who" in clause:  # "ever" is after the relative clause of the subject, so only its left neighbour counts
        return clause[0] == "only" or clause[-1] == "not"
    return sentence.endswith("?") or clause[0] == "only" or "not" in clause


@pytest.mark.parametrize(
    "paradigm",
    [
        "matrix_question_npi_licensor_present", "npi_present_1", "npi_present_2", "only_npi_licensor_present",
        "only_npi_scope", "sentential_negation_npi_licensor_present", "sentential_negation_npi_scope",
    ],
)  # fmt: skip
def test_ever_is_licensed_only_in_good_sentences(paradigm: str) -> None:
    for pair in pairs(paradigm):
        good, bad = pair["sentence_good"], pair["sentence_bad"]
        assert not re.search(r"\b(no|(?<!a )few|never|any)\b|n't\b", bad.lower()), bad
        assert not licensed(bad), bad
        assert " ever " not in good if paradigm.startswith("npi_present") else licensed(good), good


def test_a_noun_is_left_out_after_an_adjective_only_in_bad_sentences() -> None:
    adjectives = column("adjective", "word")
    for paradigm in ("ellipsis_n_bar_1", "ellipsis_n_bar_2"):
        for good, bad in sides(paradigm):
            assert bad[-1] in adjectives, bad
            assert good[-1] not in adjectives, good
    for good, _ in sides("ellipsis_n_bar_2"):
        assert good[-1] in column("noun", "plural"), good
