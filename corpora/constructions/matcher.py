"""Match a filter's patterns to trees.

Patterns have the same meaning as in spaCy's DependencyMatcher, which finds the same matches but takes at least seven
times as long on the trees of UD English EWT. It tries every combination of words that pass the node tests, which can be
words ** nodes combinations.

Our algorithm treats a pattern as a tree, because each node is joined to only one earlier node. From the leaves up, a
word stays a candidate for a node only if each node joined to it has a candidate in the right relation. The candidates
that are left at the anchor are the anchors of matches. They are found in O(nodes x words ** 2) (Yannakakis 1981), and
any choice from the anchor down completes the match.

An occurrence of a construction is a word that is the anchor of a match. It belongs to the first pattern that matches.
Its other nodes are the first words, in the order of the sentence, that complete the match.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from corpora.annotate.tree import Tree
from corpora.config import FilterConfig
from corpora.constructions.patterns import Node, Pattern

Candidates = list[list[int]]  # candidate words for each node of a pattern, ascending

_COLUMNS: dict[str, Callable[[Tree], Sequence[str]]] = {
    "ORTH": lambda tree: tree.words,
    "TEXT": lambda tree: tree.words,
    "LOWER": lambda tree: [word.lower() for word in tree.words],
    "LEMMA": lambda tree: tree.lemmas,
    "POS": lambda tree: tree.upos,
    "TAG": lambda tree: tree.xpos,
    "MORPH": lambda tree: tree.feats,
    "DEP": lambda tree: tree.relations,
}


@dataclass(frozen=True)
class Occurrence:
    """A match of a pattern."""

    pattern: int  # index of the pattern in the filter
    words: dict[str, int]  # word index for each node by name, beginning with the anchor


class Matcher:
    """A matcher, which finds the occurrences of a filter's patterns in trees."""

    def __init__(self, config: FilterConfig):
        """Compile the patterns. Raises ConfigError if one is invalid."""
        patterns, without = config.compiled()
        self._patterns = [_Restricted(pattern, without) for pattern in patterns]

    def occurrences(self, tree: Tree) -> list[Occurrence]:
        """Return the occurrences of the construction in a tree, in the order of the patterns and once per anchor.

        Raises ConfigError if a regular expression takes too long.
        """
        words = _Words(tree)
        first: dict[int, Occurrence] = {}
        for number, pattern in enumerate(self._patterns):
            for anchor, match in pattern.matches(words):
                first.setdefault(anchor, Occurrence(number, match))
        return list(first.values())


class _Words(dict[str, Sequence[str]]):
    """The words of a tree by attribute. An attribute is read when a test first needs it."""

    def __init__(self, tree: Tree):
        super().__init__()
        self.tree = tree

    def __missing__(self, attribute: str) -> Sequence[str]:
        self[attribute] = _COLUMNS[attribute](self.tree)
        return self[attribute]


class _Restricted:
    """A pattern, and the exceptions (patterns in `without`) whose anchor is one of its nodes."""

    def __init__(self, pattern: Pattern, without: Sequence[Pattern]):
        self.nodes = pattern
        names = {node.name for node in pattern}
        self._needed = [(test.attribute, test.needed) for node in pattern for test in node.tests if test.needed]
        self._without = [(other, _shared(pattern, other)) for other in without if other[0].name in names]
        # The nodes that determine whether an exception applies, and the nodes between them and the anchor. Only their
        # combinations are tried, because the choice of words for other nodes makes no difference.
        decisive = {0} | {index for _, shared in self._without for index in shared.values()}
        for index in reversed(range(len(pattern))):
            if index in decisive:
                decisive.add(pattern[index].left)
        self._decisive = sorted(decisive)
        self._others = [index for index in range(len(pattern)) if index not in decisive]

    def matches(self, words: _Words) -> Iterator[tuple[int, dict[str, int]]]:
        """Yield the anchor of each match, and the first match with it as a dictionary from node names to words."""
        if not all(value in words[attribute] for attribute, value in self._needed):
            return  # this quickly excludes most sentences
        heads = words.tree.heads
        candidates = _consistent(self.nodes, _passing(self.nodes, words), heads)
        if not candidates[0]:
            return
        excluded = [(other, shared, _passing(other, words)) for other, shared in self._without]
        excluded = [(other, shared, passing) for other, shared, passing in excluded if all(passing)]
        for anchor in candidates[0]:
            for match in self._completed({0: anchor}, self._decisive[1:], candidates, heads):
                if any(_extends(other, shared, passing, match, heads) for other, shared, passing in excluded):
                    continue
                whole = next(self._completed(match, self._others, candidates, heads))
                yield anchor, {node.name: whole[index] for index, node in enumerate(self.nodes)}
                break

    def _completed(
        self, match: dict[int, int], nodes: Sequence[int], candidates: Candidates, heads: Sequence[int]
    ) -> Iterator[dict[int, int]]:
        """Yield each way to add words for `nodes` to a match. The nodes that they are joined to must have words."""
        if not nodes:
            yield match
            return
        node = self.nodes[nodes[0]]
        for word in candidates[nodes[0]]:
            if node.relation(heads, match[node.left], word):
                yield from self._completed(match | {nodes[0]: word}, nodes[1:], candidates, heads)


def _shared(pattern: Pattern, other: Pattern) -> dict[int, int]:
    """Return the nodes that two patterns share by name, mapping indices in `other` to indices in `pattern`."""
    names = {node.name: index for index, node in enumerate(pattern)}
    return {index: names[node.name] for index, node in enumerate(other) if node.name in names}


def _extends(
    other: Pattern, shared: Mapping[int, int], passing: Candidates, match: Mapping[int, int], heads: Sequence[int]
) -> bool:
    """Return True if `other` matches with the words that the match already assigns to shared nodes."""
    candidates = [
        words if index not in shared else [match[shared[index]]] if match[shared[index]] in words else []
        for index, words in enumerate(passing)
    ]
    return bool(_consistent(other, candidates, heads)[0])


def _passing(nodes: Sequence[Node], words: _Words) -> Candidates:
    """Return the words that pass each node's tests. If a node has none, all later nodes get none."""
    candidates: Candidates = []
    for node in nodes:
        passing = list(range(len(words.tree))) if not candidates or candidates[-1] else []
        for test in node.tests:
            column = words[test.attribute]
            passing = [word for word in passing if test.check(column[word])]
        candidates.append(passing)
    return candidates


def _consistent(nodes: Pattern, passing: Candidates, heads: Sequence[int]) -> Candidates:
    """Keep each node's passing words for which all nodes joined to it, directly or indirectly, can be matched."""
    if not all(passing):
        return [[] for _ in nodes]
    candidates = list(passing)
    for index in reversed(range(1, len(nodes))):
        left, relation = nodes[index].left, nodes[index].relation
        candidates[left] = [a for a in candidates[left] if any(relation(heads, a, b) for b in candidates[index])]
    return candidates
