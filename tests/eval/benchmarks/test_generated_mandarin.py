"""Generated Mandarin: pairs are analysed with the lexicon's tables alone, without the templates."""

import csv
import random
import re
from collections import Counter
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.grammar.lexicon import MISSING_FORM, read_table
from eval.benchmarks.generated import FOLDER, grammar_of, paradigm_of, paradigms_of
from tests.support import ROOT

MANDARIN = FOLDER / "mandarin"
PHENOMENA = {
    "anaphor_agreement_gender": "anaphor_agreement",
    "ba_construction": "ba",
    "binding_gender": "binding",
    "classifier": "classifier",
    "classifier_adj": "classifier",
    "classifier_clause": "classifier",
    "coverb_instrument": "coverb",
    "coverb_with": "coverb",
    "filler_gap_dependency": "filler_gap_dependency",
    "head_final_clause": "head_final",
    "passive_formal": "passive",
    "verb_complement_direction": "verb_complement",
    "verb_complement_duration": "verb_complement",
    "verb_complement_frequency": "verb_complement",
    "verb_complement_res_adj": "verb_complement",
    "verb_complement_res_verb": "verb_complement",
}  # named as in the files of CLiMP
TABLES = {file.stem: read_table(file) for file in sorted((MANDARIN / "lexicon").glob("*.tsv"))}
WRITTEN = {"他": "masculine", "她": "feminine", "它": "neuter"}
seeds = st.integers(0, 2**32 - 1)
many = settings(deadline=None, max_examples=25)


def entries(table):
    return {row["word"]: row for row in TABLES[table]}


def cell(row, *columns):
    """Return all values in the cells of some columns."""
    return {value for column in columns for value in row[column].split("|")} - {MISSING_FORM}


@cache
def paradigm_named(paradigm):
    return paradigm_of("zh", paradigm, grammar_of("zh"))


def draw_pairs(paradigm, seed, count=40):
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


# The tables


def test_paradigms_and_phenomena_are_those_of_climp():
    assert paradigms_of("zh") == sorted(PHENOMENA)
    assert {name: paradigm_named(name).phenomenon for name in PHENOMENA} == PHENOMENA
    with (ROOT / "eval" / "published" / "climp.csv").open(encoding="utf-8", newline="") as lines:
        published = {row["name"] for row in csv.DictReader(lines) if row["level"] == "phenomenon"}
    assert set(PHENOMENA.values()) == published


def test_the_lexicon_has_no_duplicates_and_no_empty_cells():
    assert sum(map(len, TABLES.values())) >= 700
    for name, rows in TABLES.items():
        words = [row["word"] for row in rows]
        assert len(words) == len(set(words)), name
        for row in rows:
            assert all(row.values()), row
            assert int(row["length"]) == len(row["word"]) if "length" in row else name == "name"
            assert 0 <= int(row["band"]) <= 8


def test_tables_refer_to_existing_entries_of_each_other():
    classifiers, complements = entries("classifier"), entries("complement")
    classes = {value for row in TABLES["noun"] for value in cell(row, "class")}
    directions, coverbs = entries("direction"), entries("coverb")
    assert {row["classifier"] for row in TABLES["demonstrative"]} <= {*classifiers, MISSING_FORM}
    for row in TABLES["noun"]:
        assert cell(row, "classifier") <= set(classifiers), row
        assert not cell(row, "classifier") & cell(row, "also"), row
        assert cell(row, "ride") <= set(coverbs)
    for row in TABLES["verb"]:
        assert cell(row, "adjective") <= {word for word, c in complements.items() if c["kind"] == "adjective"}, row
        assert cell(row, "complement") <= {word for word, c in complements.items() if c["kind"] == "verb"}, row
        assert not cell(row, "adjective", "complement") & cell(row, "impossible"), row
        assert cell(row, "impossible") <= set(complements), row
        assert cell(row, "direction") <= set(directions), row
        assert cell(row, "subject", "object", "patient", "on", "for", "activity", "habit") <= classes, row
        assert not (cell(row, "passive") and cell(row, "never")), row
    for table in ("adjective", "classifier", "complement", "resumptive"):
        assert all(cell(row, "of") <= classes for row in TABLES[table]), table


# All paradigms


@pytest.mark.parametrize("paradigm", sorted(PHENOMENA))
def test_a_thousand_pairs_are_distinct_and_of_equal_length(paradigm):
    pairs = draw_pairs(paradigm, 1, 1000)
    assert len(set(pairs)) == 1000
    assert all(len(good) == len(bad) and good != bad for good, bad in pairs)
    assert not any(mark in good + bad for good, bad in pairs for mark in " -|[]。")
    assert pairs == draw_pairs(paradigm, 1, 1000)
    assert pairs != draw_pairs(paradigm, 2, 1000)


@pytest.mark.parametrize(
    ("paradigm", "words"),
    [("anaphor_agreement_gender", "他她它"), ("binding_gender", "他她")],
)
def test_pronouns_are_equally_frequent_in_good_and_bad_sentences(paradigm, words):
    pairs = draw_pairs(paradigm, 3, 1000)
    for word in words:
        share = [sum(sentence[-3] == word for sentence in side) / len(pairs) for side in zip(*pairs, strict=True)]
        assert abs(share[0] - share[1]) < 0.07, (word, share)


# Each phenomenon


@many
@given(seeds)
def test_reflexives_agree_with_the_subject_only_in_good_sentences(seed):
    for good, bad in draw_pairs("anaphor_agreement_gender", seed):
        row, _ = head(good)
        assert cell(row, "gender") == {WRITTEN[good[-3]]}, good
        assert WRITTEN[bad[-3]] not in cell(row, "gender"), bad
        assert good[:-3] == bad[:-3]
        assert good[-2:] == bad[-2:] == "自己"


@many
@given(seeds)
def test_reflexives_are_bound_by_the_subject_only_in_good_sentences(seed):
    for good, bad in draw_pairs("binding_gender", seed):
        subject, rest = head(good)
        met = rest.removeprefix("在")
        verb = longest(entries("verb"), met)
        other, after = head(met[len(verb) :])
        assert after.startswith(("之后", "之前")), good
        assert cell(subject, "gender") == {WRITTEN[good[-3]]}, good
        assert cell(other, "gender") == {WRITTEN[bad[-3]]}, bad
        assert contrast(good, bad)[1] == (good[-3], bad[-3])


@pytest.mark.parametrize("paradigm", ["classifier", "classifier_adj", "classifier_clause"])
@many
@given(seeds)
def test_classifiers_fit_the_noun_only_in_good_sentences(paradigm, seed):
    nouns, classifiers = entries("noun"), entries("classifier")
    for good, bad in draw_pairs(paradigm, seed):
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


@many
@given(seeds)
def test_ba_is_good_and_bei_is_bad(seed):
    for good, bad in draw_pairs("ba_construction", seed):
        before, words, after = contrast(good, bad)
        assert words == ("把", "被")
        assert cell(head(before)[0], "gender") <= {"masculine", "feminine"}  # a person
        nouns, verbs = entries("noun"), entries("verb")
        objects = [noun for noun in nouns if noun in after and not cell(nouns[noun], "class") & {"person", "animal"}]
        assert objects, good
        assert any(verb in after and cell(row, "ba") for verb, row in verbs.items()), good


@pytest.mark.parametrize("paradigm", ["coverb_instrument", "coverb_with"])
@many
@given(seeds)
def test_coverbs_fit_their_noun_only_in_good_sentences(paradigm, seed):
    coverbs, nouns = entries("coverb"), entries("noun")
    for good, bad in draw_pairs(paradigm, seed):
        _, (right, wrong), after = contrast(good, bad)
        if paradigm == "coverb_with":
            use, unfit = "with" if right in "和跟与同" else "for", {"never"}
            head(after)  # a person
        else:
            row = nouns[longest(nouns, after)]
            use = "tool" if cell(row, "tool") and right in "用拿" else "ride"
            unfit = cell(row, "tool" if use == "tool" else "class")
            assert use == "tool" or right in cell(row, "ride"), good
        assert cell(coverbs[right], use) == {"yes"}, good
        assert cell(coverbs[wrong], use) & unfit, bad


@many
@given(seeds)
def test_topics_are_resumed_only_in_good_sentences(seed):
    nouns, resumptives = entries("noun"), entries("resumptive")
    for good, bad in draw_pairs("filler_gap_dependency", seed):
        topic = nouns[longest(nouns, good.split("，")[0], at_end=True)]
        resumptive, other = longest(resumptives, good, at_end=True), nouns[longest(nouns, bad, at_end=True)]
        assert good.removesuffix(resumptive) == bad.removesuffix(other["word"]), good
        assert other["word"] != topic["word"]
        resumed_classes = cell(resumptives[resumptive], "of")
        if "goods" in resumed_classes:
            assert not cell(topic, "class") & cell(other, "class"), bad
            assert not {"person", "animal", "place", "nature"} & (cell(topic, "class") | cell(other, "class")), bad
        else:  # the same kind, but not a part of the topic
            assert resumed_classes & cell(topic, "class") & cell(other, "class"), bad
            assert not cell(topic, "whole"), bad
            assert "part" not in cell(other, "whole"), bad


@many
@given(seeds)
def test_relative_clauses_precede_their_noun_only_in_good_sentences(seed):
    nouns = entries("noun")
    for good, bad in draw_pairs("head_final_clause", seed):
        assert sorted(good) == sorted(bad)
        assert bad.endswith("过的"), bad
        phrase = good.rpartition("过的")[2]
        clause = good.removesuffix(phrase)
        noun = longest([*nouns, *entries("name")], phrase, at_end=True)
        assert not any(f"{verb}了{phrase}" in bad for verb in ("发现", "看见", "见到")), bad  # they take clauses too
        after = bad[bad.rindex(phrase) + len(phrase) :]
        if noun not in nouns:  # 老师张伟 and 王强这位老师 would be phrases, 王强你们 persons
            assert after[0] in "我你", bad
            assert not after.startswith("你们"), bad
        elif "person" in cell(nouns[noun], "class"):
            assert after[0] in "这那", bad
        assert any(clause[:at] + phrase + clause[at:] == bad for at in range(len(clause))), good


@many
@given(seeds)
def test_passive_verbs_are_transitive_only_in_good_sentences(seed):
    verbs = entries("verb")
    for good, bad in draw_pairs("passive_formal", seed):
        _, right = good.removesuffix("了").split("被")
        _, wrong = bad.removesuffix("了").split("被")
        assert cell(verbs[right], "passive"), good
        assert not cell(verbs[wrong], "object", "passive"), bad
        subject, _ = head(good)
        kinds = cell(subject, "class") if "class" in subject else {"person"}
        assert kinds & cell(verbs[right], "object"), good
        assert kinds & cell(verbs[wrong], "subject"), bad


@pytest.mark.parametrize("paradigm", ["verb_complement_res_adj", "verb_complement_res_verb"])
@many
@given(seeds)
def test_result_complements_fit_their_verb_only_in_good_sentences(paradigm, seed):
    column = "adjective" if paradigm.endswith("adj") else "complement"
    verbs, complements = entries("verb"), entries("complement")
    for good, bad in draw_pairs(paradigm, seed):
        before, (right, wrong), _ = contrast(good, bad)
        row = verbs[longest(verbs, before, at_end=True)]
        assert right in cell(row, column), good
        assert wrong not in cell(row, "adjective", "complement"), bad
        assert wrong in cell(row, "impossible"), bad
        assert len(right) == int(complements[wrong]["length"]), bad


@many
@given(seeds)
def test_directional_complements_fit_their_verb_only_in_good_sentences(seed):
    verbs, directions = entries("verb"), entries("direction")
    for good, bad in draw_pairs("verb_complement_direction", seed):
        right, wrong = good[-2:], bad[-2:]
        assert good[:-2] == bad[:-2]
        candidates = [row for verb, row in verbs.items() if f"{verb}了" in good and cell(row, "direction")]
        assert any(right in cell(row, "direction") for row in candidates), good
        assert directions[wrong]["kind"] == "quality", bad


@many
@given(seeds)
def test_time_expressions_fit_their_verb_only_in_good_sentences(seed):
    times, verbs = entries("time"), entries("verb")
    for paradigm, kinds in (
        ("verb_complement_duration", ("duration", "every")),
        ("verb_complement_frequency", ("every", "instant")),
    ):
        for good, bad in draw_pairs(paradigm, seed):
            right, wrong = (only_match(times, sentence) for sentence in (good, bad))
            assert (times[right]["kind"], times[wrong]["kind"]) == kinds, (good, bad)
            assert good.replace(right, wrong) == bad
            if paradigm.endswith("frequency"):
                verb = verbs[longest(verbs, good.split("都", 1)[1])]
                assert times[right]["span"] in cell(verb, "rate"), good


def only_match(words, text):
    matches = [word for word in words if word in text]
    assert len(matches) == 1, (text, matches)
    return matches[0]


def test_the_analysis_detects_broken_pairs():
    """The functions above do not accept every sentence."""
    nouns = entries("noun")
    assert "辆" not in cell(nouns["书"], "classifier", "also")
    assert cell(head("王秀兰的儿子批评了")[0], "gender") == {"masculine"}
    assert cell(head("这家公司证明了")[0], "gender") == {"neuter"}
    assert contrast("他买了一本书", "他买了一辆书") == ("他买了一", ("本", "辆"), "书")


# Kinds of pairs that annotators rejected, variety, and words that would reveal the label

REJECTED = read_table(ROOT / "tests" / "eval" / "benchmarks" / "rejected_mandarin.tsv")


@pytest.mark.parametrize("paradigm", sorted({row["paradigm"] for row in REJECTED}))
def test_no_pair_is_of_a_kind_that_annotators_rejected(paradigm):
    """Each pattern is a kind of wrong or doubtful pairs, recognised by words that are written in the table."""
    sentences = [sentence for pair in draw_pairs(paradigm, 11, 1000) for sentence in pair]
    for row in REJECTED:
        if row["paradigm"] == paradigm:
            assert not [one for one in sentences if re.search(row["pattern"], one)], row["why"]


@pytest.mark.parametrize(
    ("verb", "subjects"),
    [
        ("倒塌", "堂庙馆院站殿堡狱厂店校行市桥厅"), ("开花", "花瑰树竹子菊荷牡丹百合郁金香松柳大桃苹果"),
        ("行驶", "车船艇军舰轮列巴士"), ("起飞", "机"), ("沉没", "船艇舰轮"), ("生锈", "匙刀剑枪锤币门车头子"),
    ],
)  # fmt: skip
def test_a_bad_passive_breaks_only_one_rule(verb, subjects):
    """Its subject fits the verb in the active voice."""
    ends = (f"被{verb}了", *(f"{word}被{verb}了" for word in ("已经", "终于", "昨天", "后来", "果然")))
    for _, bad in draw_pairs("passive_formal", 12, 4000):
        if bad.endswith(ends[0]):
            before = bad.removesuffix(next(end for end in reversed(ends) if bad.endswith(end)))
            assert before[-1] in subjects, bad


@pytest.mark.parametrize("paradigm", ["classifier", "classifier_adj", "classifier_clause"])
def test_classifiers_are_about_equally_frequent_in_good_and_bad_sentences(paradigm):
    """The total variation distance between their distributions is below 0.2."""
    contrasts = [contrast(*pair)[1] for pair in draw_pairs(paradigm, 14, 2000)]
    good, bad = (Counter(side) for side in zip(*contrasts, strict=True))
    assert sum(abs(good[word] - bad[word]) for word in good | bad) / 2 / 2000 < 0.2
    assert min(bad["位"], bad["名"]) > 20  # of persons, too
