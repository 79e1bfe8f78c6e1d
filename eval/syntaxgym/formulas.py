"""Parse SyntaxGym formulas, which compare the surprisals of regions, into a tree. They are not executed as code.

    formula     comparison (("&" | "|") comparison)*      & and | have the same precedence, and associate to the left
    comparison  sum ("<" | ">" | "=") sum
    sum         product (("+" | "-") product)*
    product     atom (("*" | "/") atom)*
    atom        number | region | "(" any of these ")" | "[" any of these "]"
    region      "(" (number | "*") ";%" condition "%)"    "*" means the whole sentence

This follows syntaxgym-core (syntaxgym/prediction.py), with two differences. Products and square brackets are allowed.
Also, a < b < c is an error, while syntaxgym-core ignores its last part.
"""

from __future__ import annotations

import dataclasses
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from pairscale.errors import InputError

Surprisals = Any  # a mapping or DataFrame from (condition, region's number) to the surprisals (I,) of I items

MAX_TOKENS = 300  # to limit the depth of the tree; published formulas have about 40
_TOKEN = re.compile(
    r"\(\s*(?P<region>[0-9]{1,6}|\*)\s*;\s*%(?P<condition>[\w-]+)%\s*\)"
    r"|(?P<number>[0-9]{1,18}(?:\.[0-9]{0,18})?)|(?P<mark>\S|\Z)"
)
_CLOSING = {"(": ")", "[": "]"}
_JOINING, _COMPARING = 0, 1  # precedence of operators, lowest first
_OPERATORS: dict[str, tuple[int, Any]] = {
    "&": (_JOINING, np.logical_and),
    "|": (_JOINING, np.logical_or),
    "<": (_COMPARING, np.less),
    ">": (_COMPARING, np.greater),
    "=": (_COMPARING, partial(np.isclose, rtol=1e-5, atol=1e-3)),  # as in syntaxgym-core
    "+": (2, np.add),
    "-": (2, np.subtract),
    "*": (3, np.multiply),
    "/": (3, np.divide),
}


class Region(NamedTuple):
    """A region of a condition's sentence, or the whole sentence if `number` is None."""

    condition: str
    number: int | None

    def __call__(self, surprisals: Surprisals) -> Any:
        """Return (I,) the region's surprisals. Raises KeyError if the region doesn't exist."""
        if self.number is not None:
            return surprisals[self.condition, self.number]
        return sum(values for (condition, _), values in surprisals.items() if condition == self.condition)


@dataclass(frozen=True)
class Formula:
    """An operator with two operands. A suite's prediction is a formula that is true or false."""

    text: str
    operator: str
    operands: tuple[Node, Node]

    @classmethod
    def parse(cls, text: str, where: str = "formula") -> Formula:
        """Parse a prediction. If the text is not one, raises InputError with a message that begins with `where`."""
        tokens = deque(_TOKEN.finditer(text))
        try:
            formula = _operations(tokens) if len(tokens) <= MAX_TOKENS else None
        except ValueError:
            formula = None
        if not isinstance(formula, Formula) or not _is_truth(formula) or len(tokens) > 1:
            raise InputError(
                f"{where}: {text!r:.80} is not a formula. Compare regions with <, > or =, as in (2;%good%) + "
                f"(3;%good%) < (3;%bad%). Join comparisons with & and |. A formula has at most {MAX_TOKENS} parts."
            )
        return dataclasses.replace(formula, text=text)

    def __call__(self, surprisals: Surprisals) -> Any:
        """Return (I,) the formula's values, True or False for a prediction. Comparisons with NaN are False."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return _OPERATORS[self.operator][1](*self._values(surprisals))

    def _values(self, surprisals: Surprisals) -> list[Any]:
        return [node if isinstance(node, float) else node(surprisals) for node in self.operands]

    def ties(self, surprisals: Surprisals) -> Any:
        """Return (I,) whether both sides of any comparison with < or > are equal, which can happen with `<unk>`."""
        compared = [node for node in self._nodes() if isinstance(node, Formula) and node.operator in "<>"]
        return reduce(np.logical_or, (np.equal(*node._values(surprisals)) for node in compared), np.False_)

    @property
    def regions(self) -> list[Region]:
        """The regions in the formula, each once."""
        return list(dict.fromkeys(node for node in self._nodes() if isinstance(node, Region)))

    @property
    def comparisons(self) -> list[Formula]:
        """The parts that the formula joins with "&", or the formula itself if there are no such parts."""
        if self.operator != "&":
            return [self]
        return [part for side in self.operands if isinstance(side, Formula) for part in side.comparisons]

    def _nodes(self) -> Iterator[Node]:
        yield self
        for operand in self.operands:
            yield from operand._nodes() if isinstance(operand, Formula) else [operand]


Node = Formula | Region | float


def _operations(tokens: deque[re.Match[str]], rank: int = _JOINING) -> Node:
    """Parse operations of at least the precedence `rank`, from left to right. Raises ValueError for anything else."""
    start, left = tokens[0].start(), _atom(tokens)
    while (mark := tokens[0]["mark"]) in _OPERATORS and (of_mark := _OPERATORS[mark][0]) >= rank:
        tokens.popleft()
        right = _operations(tokens, of_mark + 1)
        if not _is_truth(left) == _is_truth(right) == (of_mark == _JOINING):
            raise ValueError(mark)
        left = Formula(tokens[0].string[start : tokens[0].start()].rstrip(), mark, (left, right))
    return left


def _atom(tokens: deque[re.Match[str]]) -> Node:
    token = tokens.popleft()
    if token["region"]:
        return Region(token["condition"], None if token["region"] == "*" else int(token["region"]))
    if token["number"]:
        return float(token["number"])
    mark = token["mark"]
    if mark in ("+", "-") and tokens[0]["number"]:
        return float(mark + tokens.popleft()["number"])
    inner = _operations(tokens) if mark in _CLOSING else None
    if inner is None or tokens.popleft()["mark"] != _CLOSING[mark]:
        raise ValueError(mark)
    return inner


def _is_truth(node: Node) -> bool:
    return isinstance(node, Formula) and _OPERATORS[node.operator][0] <= _COMPARING
