"""The matcher beside the definitions of the operators tried on all words, and beside spaCy's DependencyMatcher."""

import itertools
import time

import pytest
import spacy
from hypothesis import assume, given
from hypothesis import strategies as st
from spacy.matcher import DependencyMatcher
from spacy.tokens import Doc

from corpora.annotate.tree import Tree
from corpora.config import FilterConfig
from corpora.constructions.matcher import Matcher
from corpora.constructions.patterns import OPERATORS
from pairscale.errors import ConfigError

VOCAB = spacy.blank("en").vocab
FORMS, LEMMAS, UPOS, TAGS = ("a", "A", "bc"), ("a", "b"), ("NOUN", "VERB"), ("NN", "NNS", "VB")
FEATS, RELATIONS = ("", "Number=Sing", "Number=Plur|Person=3"), ("nsubj", "obj", "root")
TESTS = (
    {},
    {"POS": "NOUN"},
    {"TAG": {"IN": ["NN", "VB"]}},
    {"LOWER": "a"},
    {"ORTH": {"REGEX": "^[AB]"}},
    {"LEMMA": {"NOT_IN": ["b"]}},
    {"MORPH": {"IS_SUPERSET": ["Number=Plur"]}},
    {"MORPH": {"INTERSECTS": ["Number=Sing", "Person=3"]}},
    {"MORPH": "Number=Plur|Person=3"},
    {"DEP": "nsubj", "POS": {"NOT_IN": ["NOUN"]}},
)


@st.composite
def trees(draw, most: int = 7) -> Tree:
    """Draw a tree with one root."""
    size = draw(st.integers(1, most))
    order = draw(st.permutations(range(size)))
    heads = [0] * size
    heads[order[0]] = order[0]
    for place, word in enumerate(order[1:], start=1):
        heads[word] = order[draw(st.integers(0, place - 1))]
    words = [draw(st.sampled_from(FORMS)) for _ in range(size)]
    ends = list(itertools.accumulate((len(word) + 1 for word in words), initial=-1))[1:]
    columns = [[draw(st.sampled_from(values)) for _ in range(size)] for values in (LEMMAS, UPOS, TAGS, FEATS)]
    relations = [draw(st.sampled_from(RELATIONS)) for _ in range(size)]
    starts = [end - len(word) for end, word in zip(ends, words, strict=True)]
    return Tree(" ".join(words), starts, ends, *columns, heads, relations)


@st.composite
def patterns(draw, names: str = "abcd", operators=tuple(OPERATORS)) -> list[dict]:
    size = draw(st.integers(1, len(names)))
    nodes = [{"RIGHT_ID": names[0], "RIGHT_ATTRS": draw(st.sampled_from(TESTS))}]
    for index in range(1, size):
        left = names[draw(st.integers(0, index - 1))]
        joined = {"LEFT_ID": left, "REL_OP": draw(st.sampled_from(operators)), "RIGHT_ID": names[index]}
        nodes.append(joined | {"RIGHT_ATTRS": draw(st.sampled_from(TESTS))})
    return nodes


def holds(operator: str, tree: Tree, a: int, b: int) -> bool:
    """Return True if an operator relates two words, spelled out as spaCy documents it."""
    head = {word: above for word, above in enumerate(tree.heads) if above != word}

    def chain(word):
        return [] if word not in head else [head[word], *chain(head[word])]

    dominance, order = operator.rstrip(".;+-*"), operator.lstrip("<>$")
    related = {
        "": True,
        "<": head.get(a) == b,
        ">": head.get(b) == a,
        "<<": b in chain(a),
        ">>": a in chain(b),
        "$": a != b and a in head and head.get(a) == head.get(b),
    }[dominance]
    ordered = {
        "": True, ".": b - a == 1, ".*": a < b, ";": a - b == 1, ";*": b < a,
        "+": b - a == 1, "-": a - b == 1, "++": a < b, "--": b < a,
    }[order]  # fmt: skip
    return related and ordered


def passes(tree: Tree, word: int, tests: dict) -> bool:
    values = {
        "ORTH": tree.words[word], "LOWER": tree.words[word].lower(), "LEMMA": tree.lemmas[word],
        "POS": tree.upos[word], "TAG": tree.xpos[word], "DEP": tree.relations[word],
    }  # fmt: skip
    features = set(filter(None, tree.feats[word].split("|")))
    for attribute, test in tests.items():
        match test:
            case str() if attribute == "MORPH":
                passed = features == set(test.split("|"))
            case str():
                passed = values[attribute] == test
            case {"IN": allowed}:
                passed = values[attribute] in allowed
            case {"NOT_IN": refused}:
                passed = values[attribute] not in refused
            case {"REGEX": "^[AB]"}:
                passed = values[attribute][0] in "AB"
            case {"IS_SUPERSET": needed}:
                passed = features >= set(needed)
            case {"INTERSECTS": any_of}:
                passed = bool(features & set(any_of))
        if not passed:
            return False
    return True


def brute_force(tree: Tree, pattern: list[dict]) -> list[dict[str, int]]:
    """Return all matches of a pattern: each choice of words for its nodes, tried."""
    names = [node["RIGHT_ID"] for node in pattern]
    matches = []
    for words in itertools.product(range(len(tree)), repeat=len(pattern)):
        match = dict(zip(names, words, strict=True))
        if all(passes(tree, match[node["RIGHT_ID"]], node["RIGHT_ATTRS"]) for node in pattern) and all(
            holds(node["REL_OP"], tree, match[node["LEFT_ID"]], match[node["RIGHT_ID"]]) for node in pattern[1:]
        ):
            matches.append(match)
    return matches


def config(patterns: list, without: list | None = None) -> FilterConfig:
    return FilterConfig(name="test", description="", patterns=patterns, without=without or [])


@given(tree=trees(), pattern=patterns())
def test_occurrences_are_the_anchors_of_all_matches(tree, pattern):
    matches = brute_force(tree, pattern)
    occurrences = Matcher(config([pattern])).occurrences(tree)
    assert [one.words["a"] for one in occurrences] == sorted({match["a"] for match in matches})
    assert all(one.words in matches for one in occurrences)


@given(tree=trees(most=5), pattern=patterns("abc"), without=st.lists(patterns("cadx"), min_size=1, max_size=2))
def test_a_match_that_a_pattern_of_without_extends_is_none(tree, pattern, without):
    names = {node["RIGHT_ID"] for node in pattern}
    without = [other for other in without if other[0]["RIGHT_ID"] in names]

    def extended(match):
        return any(
            all(other_match.get(name, word) == word for name, word in match.items())
            for other in without
            for other_match in brute_force(tree, other)
        )

    matches = [match for match in brute_force(tree, pattern) if not extended(match)]
    occurrences = Matcher(config([pattern], without)).occurrences(tree)
    assert [one.words["a"] for one in occurrences] == sorted({match["a"] for match in matches})
    assert all(one.words in matches for one in occurrences)


def spacy_anchors(tree: Tree, pattern: list[dict]) -> set[int]:
    doc = Doc(
        VOCAB, words=tree.words, lemmas=tree.lemmas, pos=tree.upos, tags=tree.xpos, morphs=tree.feats,
        heads=tree.heads, deps=tree.relations,
    )  # fmt: skip
    # Where arcs cross, spaCy takes a part of some trees for the whole sentence, and finds nothing beyond it.
    (root,) = {word for word in doc if word.head == word}
    assume(root.left_edge.i == 0 and root.right_edge.i == len(doc) - 1)
    matcher = DependencyMatcher(VOCAB)
    matcher.add("test", [pattern])
    return {words[0] for _, words in matcher(doc)}


# spaCy's $ takes the dependents of a root for its siblings, too, which its documentation does not say.
@given(tree=trees(), pattern=patterns(operators=tuple(one for one in OPERATORS if not one.startswith("$"))))
def test_the_anchors_are_those_of_spacy(tree, pattern):
    assert {one.words["a"] for one in Matcher(config([pattern])).occurrences(tree)} == spacy_anchors(tree, pattern)


def test_each_operator_is_spacys():
    assert set(OPERATORS) == set(DependencyMatcher(VOCAB)._ops)


def test_an_anchor_counts_once_by_the_first_pattern_that_matches():
    tree = Tree("a b c", [0, 2, 4], [1, 3, 5], *[["x"] * 3] * 4, [1, 1, 1], ["nsubj", "root", "obj"])
    root = {"RIGHT_ID": "verb", "RIGHT_ATTRS": {"DEP": "root"}}
    child = {"LEFT_ID": "verb", "REL_OP": ">", "RIGHT_ID": "child", "RIGHT_ATTRS": {}}
    subject = {"RIGHT_ID": "verb", "RIGHT_ATTRS": {"DEP": "nsubj"}}
    occurrences = Matcher(config([[root, child], [root], [subject]])).occurrences(tree)
    assert [(one.pattern, one.words) for one in occurrences] == [(0, {"verb": 1, "child": 0}), (2, {"verb": 0})]


def test_a_long_sentence_takes_no_exponential_time():
    size = 200
    tree = Tree("x" * size, [*range(size)], [*range(1, size + 1)], *[["x"] * size] * 4, [0] * size, ["dep"] * size)
    nodes = [{"RIGHT_ID": "n0", "RIGHT_ATTRS": {}}]
    nodes += [
        {"LEFT_ID": f"n{index}", "REL_OP": ".*", "RIGHT_ID": f"n{index + 1}", "RIGHT_ATTRS": {}} for index in range(9)
    ]
    began = time.process_time()
    assert len(Matcher(config([nodes])).occurrences(tree)) == size - 9
    assert time.process_time() - began < 10  # 200 ** 10 combinations would take longer than the universe is old


def test_a_regular_expression_that_takes_too_long_raises_an_error(monkeypatch):
    monkeypatch.setattr("corpora.constructions.patterns.REGEX_SECONDS", 0.05)
    word = "a" * 80 + "b"
    tree = Tree(word, [0], [len(word)], *[["x"]] * 4, [0], ["root"])
    matcher = Matcher(config([[{"RIGHT_ID": "a", "RIGHT_ATTRS": {"ORTH": {"REGEX": "(a|aa)+$"}}}]]))
    with pytest.raises(ConfigError, match=r"patterns\[0\], node 0 \(a\): ORTH: REGEX=\(a\|aa\)\+\$: .* more than"):
        matcher.occurrences(tree)


ANCHOR = {"RIGHT_ID": "a", "RIGHT_ATTRS": {}}


def joined(**other: object) -> list[dict]:
    return [ANCHOR, {"LEFT_ID": "a", "REL_OP": ">", "RIGHT_ID": "b", "RIGHT_ATTRS": {}} | other]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ([], r"not a list of nodes"),
        ([ANCHOR, ANCHOR], r"node 1: .* keys \(RIGHT_ID, RIGHT_ATTRS\)"),
        (joined(RIGHT_ID="a"), r"node 1: RIGHT_ID=a"),
        (joined(LEFT_ID="c"), r"node 1 \(b\): LEFT_ID=c: .* Use a"),
        (joined(REL_OP=">+>"), r"node 1 \(b\): REL_OP=>\+>"),
        (joined(RIGHT_ATTRS=["POS"]), r"node 1 \(b\): RIGHT_ATTRS="),
        (joined(RIGHT_ATTRS={"LENGTH": "3"}), r"node 1 \(b\): attribute=LENGTH"),
        (joined(RIGHT_ATTRS={"POS": "noun"}), r"node 1 \(b\): POS=noun"),
        (joined(RIGHT_ATTRS={"POS": {"IN": "NOUN"}}), r"POS: IN='NOUN'"),
        (joined(RIGHT_ATTRS={"LOWER": {"FUZZY": "a"}}), r"LOWER: predicate=FUZZY"),
        (joined(RIGHT_ATTRS={"MORPH": "Sing"}), r"MORPH=Sing"),
        (joined(RIGHT_ATTRS={"ORTH": {"REGEX": "("}}), r"ORTH: REGEX='\('"),
    ],
)
def test_a_pattern_that_means_nothing_is_refused_by_node(pattern, message):
    with pytest.raises(ConfigError, match=r"filter=test: patterns\[0\].*" + message):
        config([pattern])
