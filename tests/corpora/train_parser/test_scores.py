"""Scores of parsed sentences: an example counted by hand, and what must hold for all."""

import random
from dataclasses import replace

import pytest

from corpora.annotate.tree import Tree
from corpora.train_parser.scores import METRICS, scores


def tree(sentence: str, *rows: str) -> Tree:
    """Return a tree of rows "word lemma UPOS XPOS features head relation", with heads numbered from 1."""
    columns = [row.split() for row in rows]
    starts, at = [], 0
    for word, *_ in columns:
        starts.append(sentence.index(word, at))
        at = starts[-1] + len(word)
    ends = [start + len(word) for start, (word, *_) in zip(starts, columns, strict=True)]
    _, lemmas, upos, xpos, feats, heads, relations = (list(column) for column in zip(*columns, strict=True))
    numbers = [int(head) - 1 if head != "0" else place for place, head in enumerate(heads)]
    plain = (["" if value == "_" else value for value in values] for values in (lemmas, upos, xpos, feats))
    return Tree(sentence, starts, ends, *plain, numbers, relations)


SENTENCE = "It isn't seen here."
GOLD = tree(
    SENTENCE,
    "It it PRON PRP Case=Nom|Number=Sing 4 nsubj:pass",
    "is be AUX VBZ Tense=Pres 4 aux:pass",
    "n't not PART RB Polarity=Neg 4 advmod",
    "seen see VERB VBN Tense=Past|VerbForm=Part 0 root",
    "here _ ADV RB _ 4 advmod",
    ". . PUNCT . _ 4 punct",
)
PARSED = tree(
    SENTENCE,
    "It it PRON PRP Number=Sing|Case=Nom|ExtPos=PRON 3 nsubj",  # features in another order, one of them not universal
    "isn't isn't AUX VBZ Tense=Pres 3 aux:pass",  # one word in place of two
    "seen seen VERB VBN Tense=Past 0 root",
    "here hither ADV RB _ 2 advmod",  # its head is no word of the treebank
    ". . PUNCT . _ 4 punct",
)


def test_an_example_counted_by_hand():
    """Six and five words; It, seen, here and . are aligned: F1 of n right words is 2 n / 11."""
    right = {"words": 4, "upos": 4, "xpos": 4, "feats": 3, "lemmas": 3, "uas": 2, "las": 2, "las_subtypes": 1}
    assert scores([GOLD], [PARSED]) == {metric: pytest.approx(2 * number / 11) for metric, number in right.items()}


def test_the_trees_of_the_treebank_are_right():
    assert scores([GOLD, PARSED], [GOLD, PARSED]) == dict.fromkeys(METRICS, 1.0)


def test_a_root_is_right_only_as_a_root():
    other = replace(GOLD, heads=[3, 3, 3, 4, 4, 3], relations=[*GOLD.relations[:3], "advcl", "root", "punct"])
    assert scores([GOLD], [other])["uas"] == pytest.approx(4 / 6)
    assert scores([other], [GOLD])["uas"] == pytest.approx(4 / 6)


def test_words_of_a_contraction_are_aligned_in_order():
    tags, relations = [["X", "Y", "Z"]] * 3, ["a", "b", "root"]
    contraction = Tree("du vin", [0, 0, 3], [2, 2, 6], ["de", "le", "vin"], *tags, [2, 2, 2], relations)
    assert scores([contraction], [contraction]) == dict.fromkeys(METRICS, 1.0)
    whole = Tree("du vin", [0, 3], [2, 6], ["de", "vin"], *[["X", "Z"]] * 3, [1, 1], ["a", "root"])
    assert scores([contraction], [whole])["las"] == pytest.approx(2 * 2 / 5)


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_accuracies_where_words_are_given(seed):
    draw = random.Random(seed)
    heads = [draw.choice([place for place in range(6) if place != word]) for word in range(6)]
    heads[3] = 3
    other = replace(GOLD, heads=heads, upos=draw.sample(GOLD.upos, 6))
    result = scores([GOLD, GOLD], [other, GOLD])
    assert result["words"] == 1
    assert result["upos"] == pytest.approx((6 + sum(map(str.__eq__, GOLD.upos, other.upos))) / 12)
    assert result["uas"] == pytest.approx((6 + sum(map(int.__eq__, GOLD.heads, heads))) / 12)
    assert result["las_subtypes"] <= result["las"] <= result["uas"]
