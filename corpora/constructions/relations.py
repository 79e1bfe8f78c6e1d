"""The operators of patterns: relations of two words of a tree, those of spaCy's DependencyMatcher (Semgrex's).

https://spacy.io/usage/rule-based-matching#dependencymatcher-operators defines them; "A > B" is written with A on the
left, as LEFT_ID, and B on the right.
"""

from collections.abc import Callable, Sequence

Heads = Sequence[int]  # index of each word's head; a root's is its own
Relation = Callable[[Heads, int, int], bool]  # heads, A, B


def governs(heads: Heads, a: int, b: int) -> bool:
    """Return True if A is the head of B."""
    return heads[b] == a and a != b


def dominates(heads: Heads, a: int, b: int) -> bool:
    """Return True if a chain of heads leads from B up to A."""
    for _ in heads:  # no longer chain exists; a circle would have no end
        if heads[b] == b:
            return False
        b = heads[b]
        if a == b:
            return True
    return False


def are_siblings(heads: Heads, a: int, b: int) -> bool:
    """Return True if A and B have the same head; a root has none."""
    return heads[a] == heads[b] and a != b and heads[a] != a and heads[b] != b


OPERATORS: dict[str, Relation] = {
    "<": lambda heads, a, b: governs(heads, b, a),
    ">": governs,
    "<<": lambda heads, a, b: dominates(heads, b, a),
    ">>": dominates,
    ".": lambda heads, a, b: b == a + 1,
    ".*": lambda heads, a, b: b > a,
    ";": lambda heads, a, b: b == a - 1,
    ";*": lambda heads, a, b: b < a,
    "$+": lambda heads, a, b: b == a + 1 and are_siblings(heads, a, b),
    "$-": lambda heads, a, b: b == a - 1 and are_siblings(heads, a, b),
    "$++": lambda heads, a, b: b > a and are_siblings(heads, a, b),
    "$--": lambda heads, a, b: b < a and are_siblings(heads, a, b),
    ">+": lambda heads, a, b: b == a + 1 and governs(heads, a, b),
    ">-": lambda heads, a, b: b == a - 1 and governs(heads, a, b),
    ">++": lambda heads, a, b: b > a and governs(heads, a, b),
    ">--": lambda heads, a, b: b < a and governs(heads, a, b),
    "<+": lambda heads, a, b: b == a + 1 and governs(heads, b, a),
    "<-": lambda heads, a, b: b == a - 1 and governs(heads, b, a),
    "<++": lambda heads, a, b: b > a and governs(heads, b, a),
    "<--": lambda heads, a, b: b < a and governs(heads, b, a),
}
