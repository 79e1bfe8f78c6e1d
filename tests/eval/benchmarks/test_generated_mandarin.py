"""Generated Mandarin: pairs are analysed with the lexicon's tables alone, without the templates."""

import csv
import random
import re
from collections import Counter
from functools import cache

import pytest

from corpora.grammar.lexicon import MISSING_FORM, read_table
from eval.benchmarks.generated import FOLDER, grammar_of, paradigm_of, paradigms_of
from tests.support import ROOT

MANDARIN = FOLDER / "mandarin"
TABLES = {file.stem: read_table(file) for file in sorted((MANDARIN / "lexicon").glob("*.tsv"))}
PARADIGMS = paradigms_of("zh")
WRITTEN = {"他": "masculine", "她": "feminine", "它": "neuter"}


def entries(table):
    return {row["word"]: row for row in TABLES[table]}


def cell(row, *columns):
    """Return all values in the cells of some columns."""
    return {value for column in columns for value in row[column].split("|")} - {MISSING_FORM}


@cache
def paradigm_named(paradigm):
    return paradigm_of("zh", paradigm, grammar_of("zh"))


def draw_pairs(paradigm, seed=1, count=1000):
    pairs = paradigm_named(paradigm).pairs(random.Random(seed), count)
    return [(pair["sentence_good"], pair["sentence_bad"]) for pair in pairs]


def contrast(good, bad):
    """Split two sentences into the part before, (good, bad) and the part after their difference."""
    start = next(index for index, (a, b) in enumerate(zip(good, bad, strict=True)) if a != b)
    end = next(index for index, (a, b) in enumerate(zip(good[::-1], bad[::-1], strict=True)) if a != b)
    stop = len(good) - end
    return good[:start], (good[start:stop], bad[start:stop]), good[stop:]


def longest(words, text, at_end=False):
    """Return the longest of `words` that the text begins (or ends) with."""
    candidates = [word for word in words if (text.endswith(word) if at_end else text.startswith(word))]
    assert candidates, text
    return max(candidates, key=len)


def head(text):
    """Return the row of the head of the noun phrase at the start of a text, and the text after it."""
    names, nouns = entries("name"), entries("noun")
    starts = [name for name in names if text.startswith(name)]
    if starts:
        name = max(starts, key=len)
        rest = text[len(name) :]
        if not rest.startswith("的"):
            return names[name], rest
        rest = rest[1:]
    else:
        rest = text[len(longest(entries("demonstrative"), text)) :]
        if not any(rest.startswith(noun) for noun in nouns):  # "那家银行", "那家小的银行"
            rest = rest[len(longest(entries("classifier"), rest)) :]
        if adjectives := [f"{word}的" for word in entries("adjective") if rest.startswith(f"{word}的")]:
            rest = rest[len(adjectives[0]) :]
    noun = longest(nouns, rest)
    return nouns[noun], rest[len(noun) :]


def test_paradigms_are_those_of_climp():
    with (ROOT / "eval" / "published" / "climp.csv").open(encoding="utf-8", newline="") as lines:
        published = {row["name"] for row in csv.DictReader(lines) if row["level"] == "phenomenon"}
    phenomena = {name: paradigm_named(name).phenomenon for name in PARADIGMS}
    assert set(phenomena.values()) == published
    assert all(name.startswith(phenomenon) for name, phenomenon in phenomena.items())


@pytest.mark.parametrize("paradigm", PARADIGMS)
def test_a_thousand_pairs_are_distinct_and_of_equal_length(paradigm):
    pairs = draw_pairs(paradigm)
    assert len(set(pairs)) == 1000
    assert all(len(good) == len(bad) and good != bad for good, bad in pairs)
    assert not any(mark in good + bad for good, bad in pairs for mark in " -|[]。")


@pytest.mark.parametrize(
    "paradigm", ["anaphor_agreement_gender", "binding_gender", "classifier", "classifier_adj", "classifier_clause"]
)
def test_the_words_that_differ_are_about_equally_frequent_in_good_and_bad_sentences(paradigm):
    """The total variation distance between their distributions is below 0.2."""
    contrasts = [contrast(*pair)[1] for pair in draw_pairs(paradigm, 14, 2000)]
    good, bad = (Counter(side) for side in zip(*contrasts, strict=True))
    assert sum(abs(good[word] - bad[word]) for word in good | bad) / 2 / 2000 < 0.2


def test_reflexives_agree_with_the_subject_only_in_good_sentences():
    for good, bad in draw_pairs("anaphor_agreement_gender"):
        row, _ = head(good)
        assert cell(row, "gender") == {WRITTEN[good[-3]]}, good
        assert WRITTEN[bad[-3]] not in cell(row, "gender"), bad
        assert good[:-3] == bad[:-3]
        assert good[-2:] == bad[-2:] == "自己"


def test_reflexives_are_bound_by_the_subject_only_in_good_sentences():
    for good, bad in draw_pairs("binding_gender"):
        subject, rest = head(good)
        met = rest.removeprefix("在")
        verb = longest(entries("verb"), met)
        other, after = head(met[len(verb) :])
        assert after.startswith(("之后", "之前")), good
        assert cell(subject, "gender") == {WRITTEN[good[-3]]}, good
        assert cell(other, "gender") == {WRITTEN[bad[-3]]}, bad
        assert contrast(good, bad)[1] == (good[-3], bad[-3])


@pytest.mark.parametrize("paradigm", ["classifier", "classifier_adj", "classifier_clause"])
def test_classifiers_fit_the_noun_only_in_good_sentences(paradigm):
    nouns, classifiers = entries("noun"), entries("classifier")
    for good, bad in draw_pairs(paradigm):
        before, (right, wrong), after = contrast(good, bad)
        assert before.endswith("一"), good
        row = nouns[longest(nouns, after, at_end=True)]
        between = after.removesuffix(row["word"])
        match paradigm:
            case "classifier":
                assert not between, good
            case "classifier_adj":
                assert between.removesuffix("的") in entries("adjective"), good
            case _:
                assert between.endswith("的"), good
                pronoun = any(between.startswith(word) for word in entries("pronoun"))  # which takes no classifier
                assert "person" in cell(row, "class") or pronoun or "person" not in cell(classifiers[wrong], "of"), bad
        assert cell(classifiers[right], "kind") == cell(classifiers[wrong], "kind") == {"narrow"}, good
        assert right in cell(row, "classifier"), good
        assert wrong not in cell(row, "classifier", "also"), bad
        assert not cell(classifiers[wrong], "of") & cell(row, "class"), bad
        assert wrong not in "个种些", bad


def test_passive_verbs_are_transitive_only_in_good_sentences():
    verbs = entries("verb")
    for good, bad in draw_pairs("passive_formal"):
        _, right = good.removesuffix("了").split("被")
        _, wrong = bad.removesuffix("了").split("被")
        assert cell(verbs[right], "passive"), good
        assert not cell(verbs[wrong], "object", "passive"), bad
        subject, _ = head(good)
        kinds = cell(subject, "class") if "class" in subject else {"person"}
        assert kinds & cell(verbs[right], "object"), good
        assert kinds & cell(verbs[wrong], "subject"), bad


@pytest.mark.parametrize("paradigm", ["verb_complement_res_adj", "verb_complement_res_verb"])
def test_result_complements_fit_their_verb_only_in_good_sentences(paradigm):
    column = "adjective" if paradigm.endswith("adj") else "complement"
    verbs, complements = entries("verb"), entries("complement")
    for good, bad in draw_pairs(paradigm):
        before, (right, wrong), _ = contrast(good, bad)
        row = verbs[longest(verbs, before, at_end=True)]
        assert right in cell(row, column), good
        assert wrong not in cell(row, "adjective", "complement"), bad
        assert wrong in cell(row, "impossible"), bad
        assert len(right) == int(complements[wrong]["length"]), bad


def test_directional_complements_fit_their_verb_only_in_good_sentences():
    verbs, directions = entries("verb"), entries("direction")
    for good, bad in draw_pairs("verb_complement_direction"):
        right, wrong = good[-2:], bad[-2:]
        assert good[:-2] == bad[:-2]
        candidates = [row for verb, row in verbs.items() if f"{verb}了" in good and cell(row, "direction")]
        assert any(right in cell(row, "direction") for row in candidates), good
        assert directions[wrong]["kind"] == "quality", bad


# Kinds of pairs that annotators rejected, variety, and words that would reveal the label

REJECTED = read_table(ROOT / "tests" / "eval" / "benchmarks" / "rejected_mandarin.tsv")


@pytest.mark.parametrize("paradigm", sorted({row["paradigm"] for row in REJECTED}))
def test_no_pair_is_of_a_kind_that_annotators_rejected(paradigm):
    """Each pattern is a kind of wrong or doubtful pairs, recognised by words that are written in the table."""
    sentences = [sentence for pair in draw_pairs(paradigm, 11) for sentence in pair]
    for row in REJECTED:
        if row["paradigm"] == paradigm:
            assert not [one for one in sentences if re.search(row["pattern"], one)], row["why"]
