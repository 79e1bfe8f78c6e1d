"""Define two languages: patterns, in the syntax of spaCy's DependencyMatcher, and rules, which rewrite a match.

A pattern is a list of nodes. The first node, the anchor, has the keys RIGHT_ID and RIGHT_ATTRS. The other nodes also
have LEFT_ID and REL_OP, an operator that joins them to an earlier node. RIGHT_ATTRS tests the word. It maps attributes
of an annotation to values, or to dictionaries of PREDICATES. The language and its operators are described at
https://spacy.io/usage/rule-based-matching#dependencymatcher.

A rule is a text with nodes of the pattern in braces. {verb} is the word itself, and {theme...} is the word with all its
dependents, except other nodes of the rule. {noun:other} is another word with a similar frequency and the same part of
speech and features. {-article} and {-clause...} leave out a word or phrase. All other text is copied. The words of a
rule's nodes must be adjacent in the sentence.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from pairscale.errors import ConfigError

ATTRIBUTES = ("ORTH", "TEXT", "LOWER", "LEMMA", "POS", "TAG", "MORPH", "DEP")  # TEXT and ORTH are the same
PREDICATES = ("IN", "NOT_IN", "IS_SUBSET", "IS_SUPERSET", "INTERSECTS", "REGEX")
# https://universaldependencies.org/u/pos
UPOS = ("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ",
        "SYM", "VERB", "X")  # fmt: skip
REGEX_SECONDS = 1.0  # time limit for one word
KNOWN_VALUES = 2**16  # number of attribute values whose results are cached, because words are repeated

Check = Callable[[str], bool]


Heads = Sequence[int]  # index of each word's head; a root is its own head
Relation = Callable[[Heads, int, int], bool]  # heads, A, B


def _governs(heads: Heads, a: int, b: int) -> bool:
    return heads[b] == a and a != b


def _dominates(heads: Heads, a: int, b: int) -> bool:
    for _ in heads:  # no chain can be longer, so the loop ends even if there is a cycle
        if heads[b] == b:
            return False
        b = heads[b]
        if a == b:
            return True
    return False


def _are_siblings(heads: Heads, a: int, b: int) -> bool:
    return heads[a] == heads[b] and a != b and heads[a] != a and heads[b] != b  # a root has no siblings


# Relations between two words of a tree. In "A > B", A is LEFT_ID and B is RIGHT_ID.
OPERATORS: dict[str, Relation] = {
    "<": lambda heads, a, b: _governs(heads, b, a),
    ">": _governs,
    "<<": lambda heads, a, b: _dominates(heads, b, a),
    ">>": _dominates,
    ".": lambda heads, a, b: b == a + 1,
    ".*": lambda heads, a, b: b > a,
    ";": lambda heads, a, b: b == a - 1,
    ";*": lambda heads, a, b: b < a,
    "$+": lambda heads, a, b: b == a + 1 and _are_siblings(heads, a, b),
    "$-": lambda heads, a, b: b == a - 1 and _are_siblings(heads, a, b),
    "$++": lambda heads, a, b: b > a and _are_siblings(heads, a, b),
    "$--": lambda heads, a, b: b < a and _are_siblings(heads, a, b),
    ">+": lambda heads, a, b: b == a + 1 and _governs(heads, a, b),
    ">-": lambda heads, a, b: b == a - 1 and _governs(heads, a, b),
    ">++": lambda heads, a, b: b > a and _governs(heads, a, b),
    ">--": lambda heads, a, b: b < a and _governs(heads, a, b),
    "<+": lambda heads, a, b: b == a + 1 and _governs(heads, b, a),
    "<-": lambda heads, a, b: b == a - 1 and _governs(heads, b, a),
    "<++": lambda heads, a, b: b > a and _governs(heads, b, a),
    "<--": lambda heads, a, b: b < a and _governs(heads, b, a),
}


@dataclass(frozen=True)
class Test:
    """A test of one attribute of a word."""

    attribute: str
    check: Check
    needed: str | None = None  # the value that passes the test, if there is only one


@dataclass(frozen=True)
class Node:
    """A node of a pattern, with its tests and its relation to the earlier node with the index `left`."""

    name: str
    tests: tuple[Test, ...]
    left: int = 0
    relation: Relation = lambda heads, a, b: True


Pattern = tuple[Node, ...]


def compile_patterns(patterns: Any, where: str) -> list[Pattern]:
    """Check and compile a filter's patterns.

    Args:
        patterns: The patterns as plain data.
        where: Their name in error messages, such as "filter=passive: patterns".

    Raises ConfigError, with the number of the pattern and its node, if a pattern is invalid.
    """
    if not isinstance(patterns, list):
        raise ConfigError(f"{where}={patterns!r:.80}: this is not a list. Write a list of patterns (lists of nodes).")
    return [_pattern(pattern, f"{where}[{number}]") for number, pattern in enumerate(patterns)]


def _pattern(nodes: Any, where: str) -> Pattern:
    if not isinstance(nodes, list) or not nodes:
        raise ConfigError(
            f"{where}: this is not a list of nodes. Write a list that begins with {{RIGHT_ID: name, RIGHT_ATTRS: "
            "{...}}."
        )
    compiled: list[Node] = []
    for number, node in enumerate(nodes):
        compiled.append(_node(node, [one.name for one in compiled], f"{where}, node {number}"))
    return tuple(compiled)


def _node(node: Any, before: Sequence[str], where: str) -> Node:
    keys = ["LEFT_ID", "REL_OP", "RIGHT_ID", "RIGHT_ATTRS"] if before else ["RIGHT_ID", "RIGHT_ATTRS"]
    if not isinstance(node, dict) or set(node) != set(keys):
        got = ", ".join(map(str, node)) if isinstance(node, dict) else repr(node)
        position = "The first node" if not before else "A node after the first"
        raise ConfigError(
            f"{where}: this node has the wrong keys ({got or 'none'}). {position} needs exactly the keys "
            f"{', '.join(keys)}."
        )
    name = node["RIGHT_ID"]
    if not isinstance(name, str) or not name or name in before:
        raise ConfigError(
            f"{where}: RIGHT_ID={name}: this is empty, not a string, or the name of an earlier node. Use a new name."
        )
    where = f"{where} ({name})"
    tests = _tests(node["RIGHT_ATTRS"], where)
    if not before:
        return Node(name, tests)
    if node["LEFT_ID"] not in before:
        raise ConfigError(
            f"{where}: LEFT_ID={node['LEFT_ID']}: no earlier node has this RIGHT_ID. Use {' or '.join(before)}."
        )
    _check_among(f"{where}: REL_OP", node["REL_OP"], OPERATORS)
    return Node(name, tests, before.index(node["LEFT_ID"]), OPERATORS[node["REL_OP"]])


def _tests(attributes: Any, where: str) -> tuple[Test, ...]:
    if not isinstance(attributes, dict):
        raise ConfigError(
            f"{where}: RIGHT_ATTRS={attributes!r:.80}: this is not a dictionary. Write one, such as {{POS: VERB}}."
        )
    tests = []
    for attribute, value in attributes.items():
        _check_among(f"{where}: attribute", attribute, ATTRIBUTES)
        place = f"{where}: {attribute}"
        if isinstance(value, str):
            needed = None if attribute == "MORPH" else value
            tests.append(Test(attribute, _check(attribute, "IN", [value], place), needed))
        elif isinstance(value, dict) and value:
            for predicate, operand in value.items():
                _check_among(f"{place}: predicate", predicate, PREDICATES)
                tests.append(Test(attribute, _check(attribute, predicate, operand, f"{place}: {predicate}")))
        else:
            raise ConfigError(
                f"{place}={value!r:.80}: this value is not supported. Use a string, or a dictionary with keys from "
                f"{', '.join(PREDICATES)}."
            )
    return tuple(tests)


def _check(attribute: str, predicate: str, operand: Any, place: str) -> Check:
    """Return the test of a predicate. MORPH is a set of features. Any other attribute is a set with one value."""
    if predicate == "REGEX":
        return _regex(operand, place)
    if not isinstance(operand, list) or not all(isinstance(value, str) for value in operand):
        raise ConfigError(
            f"{place}={operand!r:.80}: this is not a list of strings. Write a list, and put quotes around values such "
            "as no, null and 1."
        )
    for value in operand:
        if attribute == "POS":
            _check_among(place, value, UPOS)
        if attribute == "MORPH" and not all("=" in feature for feature in value.split("|") if value):
            raise ConfigError(f"{place}={value}: this is not a feature. Write a feature such as Number=Sing.")
    split = _features if attribute == "MORPH" else _alone
    values, sets = frozenset(operand), frozenset(map(split, operand))
    checks: dict[str, Check] = {
        "IN": lambda value: split(value) in sets,
        "NOT_IN": lambda value: split(value) not in sets,
        "IS_SUBSET": lambda value: split(value) <= values,
        "IS_SUPERSET": lambda value: split(value) >= values,
        "INTERSECTS": lambda value: not split(value).isdisjoint(values),
    }
    return checks[predicate]


@lru_cache(KNOWN_VALUES)
def _features(value: str) -> frozenset[str]:
    return frozenset(value.split("|")) if value else frozenset()


@lru_cache(KNOWN_VALUES)
def _alone(value: str) -> frozenset[str]:
    return frozenset([value])


def _regex(expression: Any, place: str) -> Check:
    import regex  # slow to import, and most patterns have no regular expression

    try:
        search = regex.compile(expression).search
    except (regex.error, TypeError) as error:
        raise ConfigError(
            f"{place}={expression!r:.80}: this is not a valid regular expression ({error}). Correct it."
        ) from None
    return lru_cache(KNOWN_VALUES)(partial(_found, search, place, expression))


def _found(search: Callable[..., Any], place: str, expression: str, value: str) -> bool:
    try:
        return search(value, timeout=REGEX_SECONDS) is not None
    except TimeoutError:
        raise ConfigError(
            f"{place}={expression}: this expression takes more than {REGEX_SECONDS:g} s for a word of {len(value):,} "
            "characters. Avoid nested repetitions such as (a+)+."
        ) from None


def _check_among(place: str, value: Any, allowed: Collection[str]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise ConfigError(f"{place}={value!s:.80}: this value doesn't exist. Use one of {' '.join(allowed)} instead.")


# Rules

WORD, PHRASE, OTHER = "word", "phrase", "other"
_SLOT = re.compile(r"\{(?P<left_out>-)?(?P<node>[^{}.:-]+)(?P<form>\.\.\.|:other)?\}")
_FORMS = {None: WORD, "...": PHRASE, ":other": OTHER}


@dataclass(frozen=True)
class Slot:
    """A node in a rule."""

    node: str
    form: str  # WORD, PHRASE or OTHER
    left_out: bool = False


Rule = tuple[str | Slot, ...]  # strings to copy, and nodes


def compile_rules(rules: Any, patterns: Sequence[Pattern], where: str) -> list[Rule | None]:
    """Check and compile the rule of each pattern of a filter.

    Args:
        rules: One rule for all patterns, or a list with one rule per pattern. None means no rule.
        patterns: The compiled patterns.
        where: The rules' name in error messages, such as "filter=passive: rewrite".

    Raises ConfigError if a rule is invalid.
    """
    if isinstance(rules, str):
        rules = [rules] * len(patterns)
    if not isinstance(rules, list) or len(rules) != len(patterns):
        raise ConfigError(
            f"{where}={rules!r:.80}: this is not a valid list of rules. Write one rule, or a list with as many rules "
            f"as there are patterns ({len(patterns)})."
        )
    compiled = zip(rules, patterns, strict=True)
    return [_rule(rule, nodes, f"{where}[{number}]") for number, (rule, nodes) in enumerate(compiled)]


def _rule(rule: Any, pattern: Pattern, where: str) -> Rule | None:
    if rule is None:
        return None
    if not isinstance(rule, str):
        raise ConfigError(
            f"{where}={rule!r:.80}: this rule is not a string. Write one, such as '{{verb}} {{theme...}} to "
            "{recipient...}'."
        )
    names = [node.name for node in pattern]
    parts: list[str | Slot] = []
    end = 0
    for match in _SLOT.finditer(rule):
        parts.append(rule[end : match.start()])
        parts.append(Slot(match["node"], _FORMS[match["form"]], bool(match["left_out"])))
        end = match.end()
    parts.append(rule[end:])
    slots = [part for part in parts if isinstance(part, Slot)]
    if any(brace in part for part in parts if isinstance(part, str) for brace in "{}"):
        raise ConfigError(
            f"{where}={rule}: some braces don't contain a node. Write nodes as in {{verb}}, {{theme...}}, "
            "{noun:other} or {-article}."
        )
    for slot in slots:
        if slot.node not in names:
            raise ConfigError(f"{where}={rule}: the pattern has no node '{slot.node}'. Use {' or '.join(names)}.")
    if not slots or len({slot.node for slot in slots}) < len(slots):
        raise ConfigError(
            f"{where}={rule}: this rule contains no node, or one of them twice. Use at least one node, and each only "
            "once."
        )
    return tuple(part for part in parts if part)
