"""Generated Mandarin: no kinds of pairs that annotators rejected, enough variety, no words that reveal the label."""

import random
import re
from collections import Counter
from functools import cache

import pytest

from corpora.grammar.lexicon import NothingFits, read_table
from eval.benchmarks.generated import grammar_of, paradigm_of, paradigms_of
from tests.support import ROOT


@cache
def paradigm_named(paradigm):
    return paradigm_of("zh", paradigm, grammar_of("zh"))


def draw_pairs(paradigm, seed, count):
    pairs = paradigm_named(paradigm).pairs(random.Random(seed), count)
    return [(pair["sentence_good"], pair["sentence_bad"]) for pair in pairs]


def contrast(good, bad):
    """Return the first characters that differ."""
    return next((a, b) for a, b in zip(good, bad, strict=True) if a != b)


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


def test_bad_passives_have_many_different_verbs():
    verbs = Counter(bad.split("被")[1] for good, bad in draw_pairs("passive_formal", 13, 2000))
    assert verbs.most_common(1)[0][1] < 0.12 * 2000
    assert len(verbs) >= 80


@pytest.mark.parametrize("paradigm", ["classifier", "classifier_adj", "classifier_clause"])
def test_classifiers_are_about_equally_frequent_in_good_and_bad_sentences(paradigm):
    """The total variation distance between their distributions is below 0.2."""
    contrasts = [contrast(*pair) for pair in draw_pairs(paradigm, 14, 2000)]
    good, bad = (Counter(side) for side in zip(*contrasts, strict=True))
    assert sum(abs(good[word] - bad[word]) for word in good | bad) / 2 / 2000 < 0.2
    assert min(bad["位"], bad["名"]) > 20  # of persons, too


def test_coverbs_of_one_side_also_occur_on_the_other():
    pairs = draw_pairs("coverb_with", 15, 1000)
    for side, words in ((1, "和与"), (0, "在")):
        assert sum(any(word in pair[side] for word in words) for pair in pairs) > 100


def test_a_demonstrative_after_the_clause_does_not_reveal_the_good_sentence():
    """If 的 precedes 这 or 那 in the object of the good sentence, it does so in the subject of both."""
    occurrences = [
        [bool(re.search("的[这那]", sentence)) for sentence in pair]
        for pair in draw_pairs("head_final_clause", 17, 1000)
    ]
    assert 300 < sum(good for good, _ in occurrences) < 600
    assert all(good == bad for good, bad in occurrences)


@pytest.mark.parametrize("paradigm", paradigms_of("zh"))
def test_at_least_96_percent_of_draws_are_distinct(paradigm):
    spell = grammar_of("zh").spelling.text
    rng, sentences, draws = random.Random(16), set(), 0
    while draws < 2000:
        try:
            good, _, _ = paradigm_named(paradigm)._draw(rng)
        except NothingFits:
            continue
        sentences.add(spell(good))
        draws += 1
    assert len(sentences) > 0.96 * draws
