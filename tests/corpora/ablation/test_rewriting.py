"""Rewriting rules: on sentences written by hand, and what is no rule."""

from collections import Counter

import pytest

from corpora.ablation.rewriting import Lexicon, kind_of, rewrite
from corpora.annotate.parsers.conllu import tree_of
from corpora.annotate.tree import Tree
from corpora.config import FilterConfig
from corpora.constructions.matcher import Matcher
from corpora.sources.conllu import conllu_sentences
from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from tests.support import ROOT

TREES = ROOT / "tests" / "corpora" / "constructions" / "trees"
# Of the sentences in trees/NAME.conllu with the construction; None: left out.
REWRITTEN = {
    "determiner_noun": {
        "This dog barks.": "The dog barks.",
        "She likes these books.": "She likes the books.",
        "We left that night.": "We left the night.",
    },
    "determiner_adjective_noun": {
        "Those big dogs bark.": "The big dogs bark.",
        "She likes this new car.": "She likes the new car.",
        "These two old books fell.": None,
    },
    "ditransitive_prepositional": {
        "He sold his car to a friend.": "He sold a friend his car.",
        "They sent to us all the letters.": "They sent us all the letters.",
        "The book was given to Mary.": None,
    },
    "ditransitive_double_object": {
        "She gave me a book.": "She gave a book to me.",
        "Please send the teacher your letter.": "Please send your letter to the teacher.",
        "The book that I gave her fell.": None,
    },
    "aann": {
        "We spent a beautiful five days in Rome.": "We spent five beautiful days in Rome.",
        "It cost an astonishing fifty dollars.": "It cost fifty astonishing dollars.",
        "A mere two people came.": "Two mere people came.",
    },
    "superlative_quantifier": {
        "We saw at least three foxes.": "We saw three foxes.",
        "It takes at most ten minutes.": "It takes ten minutes.",
        "She paid at least $ 40.": "She paid $ 40.",
    },
    "agreement_across_pp": {
        "The key to the door broke.": "The key broke.",
        "Two friends of my teachers are ill.": "Two friends are ill.",
        "The cat from the farm was seen.": "The cat was seen.",
    },
    "agreement_across_relative_clause": {
        "The dog that barks sleeps.": "The dog sleeps.",
        "The book we bought was cheap.": "The book was cheap.",
        "The teacher of the girls who won laughed.": "The teacher of the girls laughed.",
    },
}


def trees(name: str) -> list[Tree]:
    return [tree_of(sentence, sentence.text) for sentence in conllu_sentences(TREES / f"{name}.conllu")]


def rewritten(name: str, lexicon: Lexicon | None = None) -> dict[str, str | None]:
    """Return the new form of each sentence of trees/NAME.conllu that has the construction."""
    config = compose("find", [f"filter={name}"]).filter
    matcher, rules = Matcher(config), config.rules()
    forms = {}
    for tree in trees(name):
        if occurrences := matcher.occurrences(tree):
            forms[tree.sentence] = rewrite(tree, [(rules[one.pattern], one.words) for one in occurrences], lexicon)
    return forms


@pytest.mark.parametrize("name", REWRITTEN)
def test_rules_of_the_filters_give_the_forms_that_a_person_wrote(name):
    assert rewritten(name) == REWRITTEN[name]


def lexicon_of(trees: list[Tree], excluded: set[str]) -> Lexicon:
    counts: dict = {}
    for tree in trees:
        for word, text in enumerate(tree.words):
            of = counts.setdefault(kind_of(tree, word), Counter())
            of[text.lower()] += 1
    return Lexicon(counts, excluded, seed=3)


SUBJECT = """\
# text = {0} run.
1	{0}	{1}	NOUN	NNS	Number=Plur	2	nsubj	_	_
2	run	run	VERB	VBP	_	0	root	_	SpaceAfter=No
3	.	.	PUNCT	.	_	2	punct	_	_
"""


def plurals(tmp_path, *words: str) -> list[Tree]:
    path = tmp_path / "plurals.conllu"
    path.write_text("\n".join(SUBJECT.format(word, word.lower()) for word in words) + "\n", encoding="utf-8")
    return [tree_of(sentence, sentence.text) for sentence in conllu_sentences(path)]


def test_another_word_is_of_the_same_kind_and_about_as_frequent(tmp_path):
    # Ten plurals are nearer in frequency to "men" (twice) than "dogs" (50 times): it is none of the ten nearest.
    near = [f"foxe{letter}s" for letter in "abcdefghij"]
    of = plurals(tmp_path, *["dogs"] * 50, *near * 2, "Men", "men", "women", "owls", "owls")
    lexicon = lexicon_of(of, {"men", "women"})
    (men,) = (tree for tree in of if tree.words[0] == "Men")
    other = lexicon.other(men, 0)
    assert other is not None
    assert other.lower() in near
    assert other[0] == "F"
    assert lexicon.other(men, 0) == other  # each time
    assert lexicon.other(men, 1) is None  # no other verb
    owls = next(tree for tree in of if tree.words[0] == "owls")
    assert lexicon.other(owls, 0) is None  # no other noun that begins with a vowel


def test_a_construction_is_replaced_by_another_word_of_its_kind(tmp_path):
    of = plurals(tmp_path, "men", "dogs")
    forms = [rewrite(tree, [(RULE, {"subject": 0})], lexicon_of(of, {"men"})) for tree in of]
    assert forms[0] == "Dogs run."  # as it begins the sentence
    assert forms[1] is None  # nothing else is there


RULE = FilterConfig(
    name="men",
    description="men",
    patterns=[[{"RIGHT_ID": "subject", "RIGHT_ATTRS": {"DEP": "nsubj"}}]],
    rewrite="{subject:other}",
).rules()[0]


def test_a_sentence_is_left_out_where_rules_overlap_or_one_pattern_has_none(tmp_path):
    (tree,) = plurals(tmp_path, "dogs")
    lexicon = lexicon_of([tree, *plurals(tmp_path, "cats")], set())
    assert rewrite(tree, [(RULE, {"subject": 0}), (RULE, {"subject": 0})], lexicon) is None
    assert rewrite(tree, [(RULE, {"subject": 0}), (None, {"subject": 1})], lexicon) is None


PATTERN = [{"RIGHT_ID": "verb", "RIGHT_ATTRS": {"POS": "VERB"}}]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("{verb} {theme}", r"rewrite\[0\]={verb} {theme}: the pattern has no node 'theme'. Use verb"),
        ("{verb", r"braces .* a node.* {verb}, {theme\.\.\.}, {noun:other} or {-article}"),
        ("{verb:passive}", "braces .* a node"),
        ("run", "=run: .* at least one node"),
        ("{verb} {verb}", "={verb} {verb}: .* each only once"),
        (["{verb}", "{verb}"], r"=\['{verb}', '{verb}'\]: .* rules as there are patterns \(1\)"),
        ([3], r"\[0\]=3: .* string"),
        (3, r"rewrite=3: .* patterns \(1\)"),
    ],
)
def test_what_is_no_rule_is_told(rule, message):
    with pytest.raises(ConfigError, match=f"filter=mine: rewrite.*{message.removeprefix('rewrite')}"):
        FilterConfig(name="mine", description="mine", patterns=[PATTERN], rewrite=rule)
