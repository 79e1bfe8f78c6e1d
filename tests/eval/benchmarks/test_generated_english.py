"""Generated English: its lexicon against lemminflect, its paradigms against BLiMP's table, its pairs word by word.

The functions below know nothing of templates: they split a finished sentence into entries of the lexicon (longest
first), and decide by the features of those entries which of two sentences is good.
"""

import csv
import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import lemminflect
import pytest

from corpora.grammar.engine import Grammar
from corpora.grammar.lexicon import MISSING_FORM, read_table
from eval.benchmarks.generated import FOLDER, grammar_of, paradigm_of, paradigms_of
from eval.benchmarks.paradigm import Paradigm
from tests.support import ROOT
from tests.support.english_reader import phrase, read, table

ENGLISH = FOLDER / "english"
PUBLISHED = ROOT / "analysis" / "published" / "blimp_paradigms.csv"
VERB_FORMS = {"third": "VBZ", "past": "VBD", "participle": "VBN", "ing": "VBG"}
# Correct, but not in lemminflect: "lie" (of position), the American form of "smell", "people" beside "persons", "oxen".
BEYOND_LEMMINFLECT = {
    ("lie", "lay"),
    ("lie", "lain"),
    ("smell", "smelled"),
    ("person", "people"),
    ("ox", "oxen"),
}
ENTRIES = 1200
SEEDS = (11, 12, 13)
PAIRS = 40  # of a paradigm and seed

Row = dict[str, str]
Pair = dict[str, Any]


def published() -> dict[str, Row]:
    with PUBLISHED.open(encoding="utf-8", newline="") as lines:
        return {row["paradigm"]: row for row in csv.DictReader(lines)}


@cache
def english() -> Grammar:
    return grammar_of("en")


@cache
def paradigm_named(paradigm: str) -> Paradigm:
    return paradigm_of("en", paradigm, english())


@cache
def pairs(paradigm: str) -> list[Pair]:
    return [pair for seed in SEEDS for pair in paradigm_named(paradigm).pairs(random.Random(seed), PAIRS)]


# Lexicon


def test_tables_have_no_empty_cells_and_no_duplicate_entries() -> None:
    files = sorted((ENGLISH / "lexicon").glob("*.tsv"))
    entries = 0
    for file in files:
        rows = read_table(file)  # raises for a row with a cell too many, too few or empty
        first = next(iter(rows[0]))
        names = [row[first] if row[first] != MISSING_FORM else tuple(row.values()) for row in rows]
        assert len(set(names)) == len(names), f"{file.name}: {sorted(n for n in map(str, names) if names.count(n) > 1)}"
        entries += len(rows)
    assert entries >= ENTRIES


@pytest.mark.parametrize("name", ["verb", "predicate"])
def test_verbs_are_inflected_as_lemminflect_does(name: str) -> None:
    for row in table(name):
        base, *rest = row["base"].split(" ")
        assert len({row["base"], row["third"], row["ing"]}) == 3, row
        for column, tag in VERB_FORMS.items():
            form, *after = row[column].split(" ")
            assert after == rest, row
            right = lemminflect.getInflection(base, tag)
            assert form in right or (base, form) in BEYOND_LEMMINFLECT, (row["base"], column, form, right)
        past, participle = (row[column].split(" ")[0] for column in ("past", "participle"))
        regular = {base + "d"} if base.endswith("e") else {base + "ed", base[:-1] + "ied", base + base[-1] + "ed"}
        kind = "irregular" if past != participle else "regular" if past in regular else "alike"
        assert row["inflection"] == kind, row


def test_nouns_are_inflected_as_lemminflect_does() -> None:
    for row in table("noun"):
        singular, plural = row["singular"], row["plural"]
        if MISSING_FORM in (singular, plural):
            assert row["count"] != "count", row
            continue
        *rest, last = re.split(r"([ -])", singular)
        right = {"".join([*rest, form]) for form in lemminflect.getInflection(last, "NNS")}
        right |= (
            {f"{singular[:-3]}men"} if singular.endswith("man") else set()
        )  # lemminflect does not have all of these
        assert plural in right or (singular, plural) in BEYOND_LEMMINFLECT, (singular, plural, right)


def test_frames_of_verbs_are_consistent() -> None:
    for row in table("verb"):
        frame = set(row["frame"].split("|"))
        assert ("transitive" in frame) == (row["object"] != MISSING_FORM) or "clause" in frame or "question" in frame, (
            row
        )
        assert not frame >= {"objectless", "transitive"}, row
        if "obligatory" in frame:
            assert "transitive" in frame, row
            assert frame.isdisjoint({"drop", "alternating", "either", "intransitive"}), row
        assert row["passive"] == "no" or "transitive" in frame, row


# Paradigms


def test_paradigms_have_the_names_labels_and_flags_of_blimp() -> None:
    rows = published()
    assert set(paradigms_of("en")) == set(rows)
    for paradigm, row in rows.items():
        template = paradigm_named(paradigm)
        prefix = {("1", "0"): "one", ("0", "1"): "two", ("0", "0"): "none"}[row["one_prefix"], row["two_prefix"]]
        labels = (template.phenomenon, template.field, template.prefix)
        assert labels == (row["phenomenon"], row["field"], prefix), paradigm


@pytest.mark.parametrize("paradigm", sorted(published()))
def test_pairs_are_minimal_and_spelt_correctly(paradigm: str) -> None:
    flags = published()[paradigm]
    goods = [pair["sentence_good"] for pair in pairs(paradigm)[:PAIRS]]
    assert len(set(goods)) == PAIRS
    for pair in pairs(paradigm):
        good, bad = str(pair["sentence_good"]), str(pair["sentence_bad"])
        assert good != bad
        for sentence in (good, bad):
            assert re.fullmatch(r"[A-Z][A-Za-z',-]*( [A-Za-z',-]+)*[.?]", sentence), sentence
            for article, word in re.findall(r"\b([Aa]n?) ([A-Za-z]+)", sentence):
                sounds = bool(re.match(r"(?i)(?!uni|use|usu|eur|one|once)[aeiou]|hour|hone|honor|heir", word))
                assert (article.lower() == "an") == sounds, sentence
        if flags["word_shuffling"] == "1":
            assert sorted(good.lower().rstrip(".?").split()) == sorted(bad.lower().rstrip(".?").split()), (good, bad)


def splits(
    paradigm: str, side: str, by: str | None = None
) -> Iterator[tuple[str, list[tuple[set[str], Row, set[str]]]]]:
    """Yield each sentence with its possible readings: (classes of the subject, verb, classes of the object)."""
    for pair in pairs(paradigm):
        tokens = read(str(pair[f"sentence_{side}"]))
        readings = []
        for place, token in enumerate(tokens):
            for _, row in token.rows("verb"):
                if token.rows("adjective") and place and tokens[place - 1].rows("determiner"):  # "some frightened ..."
                    continue
                after = tokens[place + 1 :]
                if by is not None:
                    if not after or after[0].text != by:
                        continue
                    after = after[1:]
                readings.append((phrase(tokens[:place]), row, phrase(after)))
        yield str(pair[f"sentence_{side}"]), readings


def shares(cell: str, classes: set[str]) -> bool:
    return not classes.isdisjoint(cell.split("|"))


def test_good_subjects_and_objects_are_selected_by_their_verb() -> None:
    for sentence, readings in splits("transitive", "good"):
        assert any(shares(verb["subject"], s) and shares(verb["object"], o) for s, verb, o in readings), sentence
    for sentence, readings in splits("passive_1", "good", by="by"):
        fits = [
            shares(verb["object"], s) and shares(verb["subject"], o)
            for s, verb, o in readings
            if verb["passive"] == "yes"
        ]
        assert any(fits), sentence


@pytest.mark.parametrize("paradigm", ["transitive", "causative"])
def test_a_bad_object_follows_a_verb_that_never_has_one(paradigm: str) -> None:
    for sentence, readings in splits(paradigm, "bad"):
        verbs = [verb for _, verb, object_classes in readings if object_classes]
        assert any("objectless" in verb["frame"].split("|") for verb in verbs), sentence


@pytest.mark.parametrize("paradigm", ["intransitive", "drop_argument", "inchoative"])
def test_a_bad_gap_follows_a_verb_that_needs_an_object(paradigm: str) -> None:
    for pair in pairs(paradigm):
        last = read(str(pair["sentence_bad"]))[-1]
        assert any("obligatory" in verb["frame"].split("|") for _, verb in last.rows("verb")), pair["sentence_bad"]


def test_a_bad_subject_is_not_selected_by_its_verb() -> None:
    for good, bad in zip(splits("animate_subject_trans", "good"), splits("animate_subject_trans", "bad"), strict=True):
        assert any(shares(verb["subject"], s) and shares(verb["object"], o) for s, verb, o in good[1]), good[0]
        assert all(not shares(verb["subject"], s) for s, verb, o in bad[1] if s and shares(verb["object"], o)), bad[0]


# Agreement, forms, quantifiers, polarity and ellipsis

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
NUMBERS = ("singular", "plural")


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
