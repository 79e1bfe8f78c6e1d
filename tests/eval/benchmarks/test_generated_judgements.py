"""Kinds of wrong labels that annotators found in generated English, each checked against lists of words.

The lists come from English, not from our lexicon: verbs that dictionaries have both with and without an object,
participles that go with "be", adjectives of states, verbs with two objects, and so on.
"""

import random
import re
from collections.abc import Callable
from functools import cache

import pytest
import yaml

from eval.benchmarks.generated import grammar_of, paradigm_of
from tests.support import ROOT
from tests.support.english_reader import read, table

PAIRS = 250

LISTS = yaml.safe_load((ROOT / "tests" / "eval" / "benchmarks" / "doubtful_english.yaml").read_text("utf-8"))
WORDS = {name: set(words) for name, words in LISTS.items()}


@cache
def pairs(paradigm: str) -> list[tuple[str, str]]:
    template = paradigm_of("en", paradigm, grammar_of("en"))
    drawn = template.pairs(random.Random(17), PAIRS)
    return [(str(pair["sentence_good"]), str(pair["sentence_bad"])) for pair in drawn]


def verbs(sentence: str) -> list[tuple[str, dict[str, str]]]:
    """Return the readings of a sentence's words as verbs: (column, row)."""
    return [reading for token in read(sentence) for reading in token.rows("verb")]


def unambiguous_verbs(good: str, bad: str) -> set[str]:
    """Return the base forms of the words of `bad` that can only be verbs."""
    tokens = [token for token in read(bad) if not token.rows("noun")]
    return {row["base"] for token in tokens for _, row in token.rows("verb")}


def own_verbs(good: str, bad: str) -> set[str]:
    """Return those of them that `good` does not have."""
    return unambiguous_verbs(good, bad) - unambiguous_verbs(bad, good)


def last_verb(good: str, bad: str) -> set[str]:
    """Return the base forms of the verb at the end of `bad`, which must be one."""
    found = {row["base"] for _, row in read(bad)[-1].rows("verb")}
    assert found, bad
    return found


def last_word(good: str, bad: str) -> set[str]:
    return {bad.rstrip(".").split()[-1]}


def own_words(good: str, bad: str) -> set[str]:
    return set(bad.rstrip(".").split()) - set(good.rstrip(".").split())


NO_OBJECT = WORDS["STAND_ALONE"] | WORDS["PSYCH"]
EXCLUDED = [
    # verbs that are good without an object
    ("wh_vs_that_with_gap", last_verb, NO_OBJECT),
    ("wh_vs_that_with_gap_long_distance", last_verb, NO_OBJECT),
    ("drop_argument", last_verb, NO_OBJECT),
    ("intransitive", last_verb, NO_OBJECT | {"evade"}),
    ("inchoative", last_verb, NO_OBJECT),
    ("tough_vs_raising_1", last_verb, NO_OBJECT),
    # both sentences have the same verb
    ("animate_subject_trans", unambiguous_verbs, WORDS["OF_THINGS"]),
    # "planted by the bowl"
    ("animate_subject_passive", unambiguous_verbs, WORDS["OF_THINGS"] | {"plant", "build", "construct", "stash"}),
    ("animate_subject_passive", unambiguous_verbs, {"accompany", "follow", "cut", "hit", "cover", "protect", "kill",
                                                    "meet", "know"}),
    # "which had they believed princes"
    ("left_branch_island_simple_question", unambiguous_verbs, WORDS["OF_WHAT_IT_IS"]),
    ("left_branch_island_echo_question", unambiguous_verbs, WORDS["OF_WHAT_IT_IS"]),
    ("causative", own_verbs, WORDS["WITH_OBJECT_TOO"]),
    ("passive_1", own_verbs, WORDS["WITH_OBJECT_TOO"]),
    ("passive_2", own_verbs, WORDS["WITH_OBJECT_TOO"]),
    ("existential_there_object_raising", own_verbs, {"teach", "force"}),
    ("expletive_it_object_raising", own_verbs, {"teach"}),
    # past forms that some speakers use as participles, and the other way round
    ("irregular_past_participle_verbs", own_words, WORDS["PAST_TO_SOME"]),
    # adjectives that can stand alone
    ("ellipsis_n_bar_1", last_word, WORDS["DEPICTIVE"]),
    ("ellipsis_n_bar_2", last_word, WORDS["DEPICTIVE"] | WORDS["SORTING"]),
]  # fmt: skip


@pytest.mark.parametrize(("paradigm", "of", "excluded"), EXCLUDED)
def test_no_bad_sentence_has_a_word_that_makes_it_good(
    paradigm: str, of: Callable[[str, str], set[str]], excluded: set[str]
) -> None:
    for good, bad in pairs(paradigm):
        assert of(good, bad).isdisjoint(excluded), bad


@pytest.mark.parametrize("paradigm", ["passive_1", "passive_2"])
def test_a_bad_passive_fits_its_subject_and_has_no_participle_that_can_follow_be(paradigm: str) -> None:
    for _, bad in pairs(paradigm):
        tokens = read(bad)
        place = next(
            index
            for index, token in enumerate(tokens)
            if re.fullmatch(r"(is|are|was|were)(n't)?", token.text) and index + 1 < len(tokens)
        )
        assert tokens[place + 1].text.split()[0] not in WORDS["WITH_BE"], bad
        subject = [row for token in tokens[:place] for _, row in token.rows("noun")]
        classes = {value for row in subject for value in row["class"].split("|")}
        classes |= {"person"} if any(token.rows("name") for token in tokens[:place]) else set()
        takes = {value for _, row in tokens[place + 1].rows("verb") for value in row["subject"].split("|")}
        assert classes & takes, bad


def test_the_object_of_a_bad_causative_is_a_possible_subject_of_its_verb() -> None:
    for _, bad in pairs("causative"):
        tokens = read(bad)
        candidates = [
            (row, tokens[index + 1 :])
            for index, token in enumerate(tokens)
            for _, row in token.rows("verb")
            if "objectless" in row["frame"].split("|")
        ]
        classes = [
            {value for token in after for _, noun in token.rows("noun") for value in noun["class"].split("|")}
            | ({"person"} if any(token.rows("name") for token in after) else set())
            for _, after in candidates
        ]
        assert any(
            set(row["subject"].split("|")) & kinds for (row, _), kinds in zip(candidates, classes, strict=True)
        ), bad


NO_GAP = ("wh_vs_that_no_gap", "wh_vs_that_no_gap_long_distance")
QUESTIONS = ("wh_questions_object_gap", "wh_questions_subject_gap", "wh_questions_subject_gap_long_distance")
IRREGULAR = ("irregular_1", "irregular_2", "with_adj_irregular_1", "with_adj_irregular_2")
TOOLS = "chain|knife|knives|hammer|gun|towel|key|brush|statue|tower"
PHRASES = [
    # "they understood what a seamstress tore the scarf" is an exclamation
    *((paradigm, "bad", r"\bwhat an? (?!lot of|few)") for paradigm in (*NO_GAP, *QUESTIONS)),
    # "they warned it to be clear that ..." is good if "it" is an agency
    ("expletive_it_object_raising", "bad", r"to be (sad|clear|certain|lucky) that"),
    *((f"determiner_noun_agreement_{name}", "good", r"(person|people)\.") for name in IRREGULAR),
    # no possible instrument as an agent: "edited by this chain"
    ("animate_subject_passive", "bad", rf"by .*\b({TOOLS})s?\."),
    # no verb of motion: "all princes were there disappearing"
    ("existential_there_quantifiers_2", "good", r"\bthere (disappear|vanish|leav|stay|go|com|arriv|run|exist)ing\b"),
    ("tough_vs_raising_1", "good", r"^(?!.*\b(easy|hard|tough|difficult|impossible) to\b)"),
]


@pytest.mark.parametrize(("paradigm", "side", "phrase"), PHRASES)
def test_a_phrase_that_makes_the_label_doubtful_does_not_occur(paradigm: str, side: str, phrase: str) -> None:
    for good, bad in pairs(paradigm):
        sentence = good if side == "good" else bad
        assert not re.search(phrase, sentence), sentence


@pytest.mark.parametrize(
    "paradigm",
    [
        "regular_plural_subject_verb_agreement_1", "regular_plural_subject_verb_agreement_2",
        "irregular_plural_subject_verb_agreement_1", "distractor_agreement_relative_clause",
        "distractor_agreement_relational_noun",
    ],
)  # fmt: skip
def test_no_bad_verb_form_is_also_a_past_tense(paradigm: str) -> None:
    """A past tense agrees with every subject: "the rival shut up" is good."""
    pasts = {row["past"] for row in table("verb") if row["past"] == row["base"]}
    for good, bad in pairs(paradigm):
        good_words, bad_words = good.rstrip(".").split(), bad.rstrip(".").split()
        first = next(
            index for index, (one, other) in enumerate(zip(good_words, bad_words, strict=True)) if one != other
        )
        start = first + 1 if paradigm.endswith("agreement_2") else first
        assert all(" ".join(bad_words[start : start + size]) not in pasts for size in (1, 2)), bad


@pytest.mark.parametrize(
    "paradigm",
    [
        "wh_questions_object_gap", "wh_vs_that_no_gap", "wh_vs_that_no_gap_long_distance",
        "left_branch_island_simple_question", "left_branch_island_echo_question",
        "coordinate_structure_constraint_complex_left_branch",
    ],
)  # fmt: skip
def test_a_question_word_has_no_possible_gap_beside_the_object(paradigm: str) -> None:
    """Otherwise "what they drew Alexander" and "what they read about the town" are good."""
    for _, bad in pairs(paradigm):
        tokens = read(bad)
        if paradigm.startswith("wh_vs"):  # the clause after the question word
            tokens = tokens[max(i for i, token in enumerate(tokens) if token.text in ("who", "what")) :]
        elif paradigm.startswith("wh_questions"):
            tokens = tokens[next(i for i, token in enumerate(tokens) if token.text in ("who", "what")) :]
        else:
            tokens = tokens[: next((i for i, token in enumerate(tokens) if token.text == "and"), len(tokens))]
        verb_tokens = [token for token in tokens if token.rows("verb") and not token.rows("noun")]
        for token in verb_tokens[-1:]:
            assert {row["base"] for _, row in token.rows("verb")}.isdisjoint(WORDS["DITRANSITIVE"]), bad
            assert token.text.split()[-1] not in WORDS["PREPOSITIONS"], bad


def test_the_tense_of_a_clause_fits_that_of_its_verb() -> None:
    """No "hoped that they travel", "hopes that he had chased"."""
    present = re.compile(r"(is|are|has|have|will|can|must|won't|can't|isn't|aren't|hasn't|haven't|doesn't|don't)$")
    for good, _ in pairs("principle_A_case_1"):
        before, after = re.split(r" that (?=he |she |they )", good, maxsplit=1)
        matrix, inner = before.split(), after.rstrip(".").split()
        pasts = {row["past"] for row in table("verb")} - {row["base"] for row in table("verb")}
        if any(word in pasts for word in matrix[-2:]) and not {"has", "have"} & set(matrix[-3:]):
            assert not present.match(inner[1]), good
            forms = {row[form] for row in table("verb") for form in ("base", "third")}
            verb = {row["past"] for row in table("verb")}
            assert not any(
                " ".join(inner[1 : 1 + size]) in forms and " ".join(inner[1 : 1 + size]) not in verb for size in (1, 2)
            ), good
        elif matrix[-1] in {row["third"] for row in table("verb")}:
            assert inner[1] not in ("had", "would", "could", "was", "were"), good
        assert not {row["base"] for _, row in verbs(before + ".")} & {"hope", "expect", "predict", "pretend"}, good


# Agreement of reflexives

REFLEXIVES = {
    "himself": ("singular", "masculine"),
    "herself": ("singular", "feminine"),
    "themselves": ("plural", "any"),
}


def antecedents(sentence: str) -> list[set[tuple[str, str]]]:
    """Return the (number, gender) that each noun or name of a sentence may have, in order."""
    candidates = []
    tokens = read(sentence)
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if after is not None and token.rows("adjective") and after.rows("noun"):  # "this patient gentleman"
            continue
        agrees = {("singular", gender) for _, row in token.rows("name") for gender in row["gender"].split("|")}
        for column, row in token.rows("noun"):
            genders = row["gender"].split("|") if column == "singular" else ["any"]
            agrees |= {(column, gender) for gender in genders if "person" in row["class"].split("|")}
        if agrees:
            candidates.append(agrees)
    return candidates


@pytest.mark.parametrize(
    ("paradigm", "place", "good", "bad"),
    [
        ("principle_A_domain_1", 1, False, False),  # the nearest subject never binds; the good sentence has a pronoun
        ("principle_A_domain_2", 1, True, False),
        ("principle_A_domain_3", 1, True, False),
        ("principle_A_c_command", 0, True, False),
        ("principle_A_reconstruction", 0, True, True),
        ("anaphor_gender_agreement", 0, True, False),
        ("anaphor_number_agreement", 0, True, False),
    ],
)
def test_reflexives_agree_with_their_antecedent_as_labelled(paradigm: str, place: int, good: bool, bad: bool) -> None:
    for pair in pairs(paradigm):
        for sentence, expected in zip(pair, (good, bad), strict=True):
            reflexive = next((word for word in re.findall(r"\w+", sentence.lower()) if word in REFLEXIVES), None)
            if reflexive is None:
                assert not expected, sentence
                continue
            assert (REFLEXIVES[reflexive] in antecedents(sentence)[place]) == expected, sentence
