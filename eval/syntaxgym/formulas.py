"""Formulas of SyntaxGym: comparisons of surprisals of regions, parsed to a tree. No text of theirs is executed.

    formula     comparison (("&" | "|") comparison)*      & and | are of one rank, from left to right
    comparison  sum (("<" | ">" | "=") sum)?
    sum         product (("+" | "-") product)*
    product     atom (("*" | "/") atom)*
    atom        number | region | "(" formula ")" | "[" formula "]"
    region      "(" (number | "*") ";%" condition "%)"    "*": the whole sentence

As in syntaxgym-core (syntaxgym/prediction.py), which has neither products nor square brackets, and reads no further
than the second part of a < b < c, an error here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from pairscale.errors import InputError

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Surprisals = Mapping[tuple[str, int], FloatArray]  # (condition, number of the region) -> (I,) of I items

EQUAL_RELATIVE, EQUAL_ABSOLUTE = 1e-5, 1e-3  # of "=", as in syntaxgym-core
MAX_LENGTH, MAX_DEPTH = 10_000, 50  # characters, open brackets; a published formula has 250 and 3

_TOKEN = re.compile(
    r"\(\s*(?P<region>[0-9]{1,6}|\*)\s*;\s*%(?P<condition>[\w-]+)%\s*\)"
    r"|(?P<number>[0-9]{1,18}(?:\.[0-9]{0,18})?)|(?P<mark>[-+*/<>=&|()\[\]])"
)
_LEVELS = ("&|", "<>=", "+-", "*/")  # the loosest first
_CLOSING = {"(": ")", "[": "]"}


@dataclass(frozen=True)
class Region:
    """The surprisal of a region of one condition; `number` None: of the whole sentence."""

    condition: str
    number: int | None

    def __call__(self, surprisals: Surprisals) -> Any:
        if self.number is not None:
            return surprisals[self.condition, self.number]
        return sum(values for (condition, _), values in surprisals.items() if condition == self.condition)


@dataclass(frozen=True)
class Number:
    """A constant."""

    value: float

    def __call__(self, surprisals: Surprisals) -> Any:
        return self.value


@dataclass(frozen=True)
class Operation:
    """Operators of one rank between operands, from left to right; `start`, `end`: its place in the formula."""

    first: Node
    rest: tuple[tuple[str, Node], ...]
    start: int
    end: int

    def __call__(self, surprisals: Surprisals) -> Any:
        return reduce(lambda left, part: _apply(part[0], left, part[1](surprisals)), self.rest, self.first(surprisals))

    @property
    def compares(self) -> bool:
        """True if its value is true or false."""
        return self.rest[0][0] in "&|<>="

    @property
    def operands(self) -> list[Node]:
        return [self.first, *(node for _, node in self.rest)]


Node = Region | Number | Operation


def _apply(operator: str, left: Any, right: Any) -> Any:
    match operator:
        case "&":
            return left & right
        case "|":
            return left | right
        case "<":
            return np.less(left, right)
        case ">":
            return np.greater(left, right)
        case "=":
            return np.isclose(left, right, rtol=EQUAL_RELATIVE, atol=EQUAL_ABSOLUTE)
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.divide(left, right)


@dataclass(frozen=True)
class Formula:
    """A prediction of a suite: true or false of each item."""

    text: str
    root: Operation

    @classmethod
    def parse(cls, text: str, where: str = "formula") -> Formula:
        """Raises InputError, which begins with `where`, for a text that is no formula."""
        return cls(text, _Parser(text, where).formula())

    def __call__(self, surprisals: Surprisals) -> BoolArray:
        """Return (I,) whether it holds; a comparison with NaN does not. Raises KeyError for a missing region."""
        return np.asarray(self.root(surprisals), dtype=np.bool_)

    def ties(self, surprisals: Surprisals) -> BoolArray:
        """Return (I,) whether the two sides of a comparison by < or > are equal, as they can be with `<unk>`."""
        equal = [
            np.equal(node.first(surprisals), node.rest[0][1](surprisals))
            for node in _nodes(self.root)
            if isinstance(node, Operation) and node.rest[0][0] in "<>"
        ]
        return np.asarray(np.any(np.broadcast_arrays(*equal), axis=0), dtype=np.bool_) if equal else np.zeros(1, bool)

    @property
    def regions(self) -> list[Region]:
        """The regions that it names, each once."""
        return list(dict.fromkeys(node for node in _nodes(self.root) if isinstance(node, Region)))

    @property
    def comparisons(self) -> list[Formula]:
        """The parts that it joins by "&" alone; itself, where it does not."""
        return [Formula(self.text[node.start : node.end], node) for node in _conjuncts(self.root)]


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    if isinstance(node, Operation):
        for operand in node.operands:
            yield from _nodes(operand)


def _conjuncts(node: Node) -> Iterator[Operation]:
    assert isinstance(node, Operation)
    if all(operator == "&" for operator, _ in node.rest):
        for operand in node.operands:
            yield from _conjuncts(operand)
    else:
        yield node


class _Parser:
    def __init__(self, text: str, where: str):
        self.text, self.where = text, where
        if len(text) > MAX_LENGTH:
            raise InputError(f"{where}: a formula of {len(text):,} characters, must be {MAX_LENGTH:,} at most")
        self.tokens = list(self._tokens())
        self.at, self.depth = 0, 0

    def _tokens(self) -> Iterator[re.Match[str]]:
        place = 0
        while place < len(self.text):
            if self.text[place].isspace():
                place += 1
                continue
            match = _TOKEN.match(self.text, place)
            if match is None:
                raise self._error(place, "a number, (1;%condition%), one of + - * / < > = & | or a bracket")
            yield match
            place = match.end()

    def formula(self) -> Operation:
        root = self._level(0)
        if self.at < len(self.tokens):
            raise self._error(self.tokens[self.at].start(), "an operator, or the end")
        if not _compares(root):
            raise InputError(f"{self.where}: {self.text!r:.80} compares nothing; must have <, > or =")
        assert isinstance(root, Operation)
        return root

    def _level(self, level: int) -> Node:
        """Parse operators of _LEVELS[level] and of the tighter ones between them."""
        if level == len(_LEVELS):
            return self._atom()
        start = self._place
        first = self._checked(level, start, self._level(level + 1))
        rest: list[tuple[str, Node]] = []
        while (mark := self._mark) and mark in _LEVELS[level]:
            self._checked(level, start, first, operand=True)
            if rest and level == 1:
                raise self._error(self._place, "one comparison, joined with others by &")
            self.at += 1
            place = self._place
            rest.append((mark, self._checked(level, place, self._level(level + 1), operand=True)))
        return Operation(first, tuple(rest), start, self.tokens[self.at - 1].end()) if rest else first

    def _checked(self, level: int, place: int, node: Node, operand: bool = False) -> Node:
        """Return an operand. Raises InputError if & or | joins numbers, or others join comparisons."""
        if operand and _compares(node) != (level == 0):
            raise self._error(place, "a comparison beside & and |" if level == 0 else "a number beside + - * / < > =")
        return node

    def _atom(self) -> Node:
        if self.at == len(self.tokens):
            raise self._error(len(self.text), "a number, a region or an open bracket")
        token = self.tokens[self.at]
        self.at += 1
        if token["region"]:
            return Region(token["condition"], None if token["region"] == "*" else int(token["region"]))
        if token["number"]:
            return Number(float(token["number"]))
        mark = token["mark"]
        if mark in "+-" and self.at < len(self.tokens) and self.tokens[self.at]["number"]:
            self.at += 1
            return Number(float(mark + self.tokens[self.at - 1]["number"]))
        if mark not in _CLOSING:
            raise self._error(token.start(), "a number, a region or an open bracket")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self._error(token.start(), f"{MAX_DEPTH} open brackets at most")
        inner = self._level(0)
        if self._mark != _CLOSING[mark]:
            raise self._error(self._place, f"an operator, or {_CLOSING[mark]}")
        self.at += 1
        self.depth -= 1
        return inner

    @property
    def _mark(self) -> str | None:
        return self.tokens[self.at]["mark"] if self.at < len(self.tokens) else None

    @property
    def _place(self) -> int:
        return self.tokens[self.at].start() if self.at < len(self.tokens) else len(self.text)

    def _error(self, place: int, allowed: str) -> InputError:
        got = repr(self.text[place : place + 20]) if place < len(self.text) else "its end"
        return InputError(f"{self.where}: character {place + 1} of the formula: got {got}, must be {allowed}")


def _compares(node: Node) -> bool:
    return isinstance(node, Operation) and node.compares
