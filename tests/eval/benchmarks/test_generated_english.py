"""Generated English: its lexicon against lemminflect, its paradigms against BLiMP's table, its pairs word by word.

The functions below know nothing of templates: they split a finished sentence into entries of the lexicon (longest
first) and judge agreement and selection by the features of those entries.
"""

import csv
import random
import re
from collections.abc import Iterator
from functools import cache

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
Pair = dict[str, object]


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


def test_verbs_have_five_forms() -> None:
    for row in [*table("verb"), *table("predicate")]:
        forms = [row["base"], *(row[column] for column in VERB_FORMS)]
        assert MISSING_FORM not in forms
        assert len({row["base"], row["third"], row["ing"]}) == 3, row
        assert all(form.split(" ")[1:] == row["base"].split(" ")[1:] for form in forms), row


@pytest.mark.parametrize("name", ["verb", "predicate"])
def test_verbs_are_inflected_as_lemminflect_does(name: str) -> None:
    for row in table(name):
        base = row["base"].split(" ")[0]
        for column, tag in VERB_FORMS.items():
            form = row[column].split(" ")[0]
            right = lemminflect.getInflection(base, tag)
            assert form in right or (base, form) in BEYOND_LEMMINFLECT, (row["base"], column, form, right)


@pytest.mark.parametrize("name", ["verb", "predicate"])
def test_the_column_inflection_fits_the_forms(name: str) -> None:
    for row in table(name):
        base, past, participle = (row[column].split(" ")[0] for column in ("base", "past", "participle"))
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
        for side, expected in (("good", good), ("bad", bad)):
            sentence = str(pair[f"sentence_{side}"])
            reflexive = next((word for word in re.findall(r"\w+", sentence.lower()) if word in REFLEXIVES), None)
            if reflexive is None:
                assert not expected, sentence
                continue
            assert (REFLEXIVES[reflexive] in antecedents(sentence)[place]) == expected, sentence
