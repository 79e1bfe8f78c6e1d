"""Templates of minimal pairs: one skeleton for both sentences, with the one contrast in braces.

    the noun.n[kind=person] {auxiliary.n[use=perfect] / auxiliary.-n[use=perfect]} Core[participle, n, g] .

The notation is that of grammar.yaml. Braces hold what the good / the bad sentence has. What is written alike on both
sides of braces is the same words; two forms from a table under the same conditions are forms of the same word.
"*" before a symbol marks the word that the two-prefix method compares.
"""

from __future__ import annotations

import random
import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

import yaml

from corpora.errors import InputError
from corpora.toy.grammar import (
    FOLDER,
    Binding,
    Grammar,
    Row,
    Symbol,
    parse_symbols,
    reserved,
    sentence_of,
    spell,
    split_symbols,
    toy_grammar,
)

KEYS = ("phenomenon", "field", "prefix", "skeleton")
PREFIX_METHODS = ("one", "two", "none")
ATTEMPTS = 20_000  # draws without a new pair after which a template counts as exhausted

_CONTRAST = re.compile(r"\{([^{}]*)\}")
T = TypeVar("T")


class Slot(NamedTuple):
    """What is drawn once for a pair: a kind of words (a table's without the form), and which of that kind it is."""

    kind: Symbol
    number: int


class Part(NamedTuple):
    """A slot's place in a sentence; `form`: of a table's row."""

    slot: Slot
    form: str | None


@dataclass(frozen=True)
class Skeleton:
    """A skeleton with values for its variables."""

    good: list[Part]
    bad: list[Part]
    before_critical: int | None  # parts of the good sentence before the critical word
    rows: dict[Symbol, tuple[list[Row], list[float]]]  # kind of slot: rows and their cumulated weights


class Template:
    """A paradigm: what it tests, how, and by what skeletons (one is drawn for each pair).

    Raises InputError, naming the template, for what cannot be read or drawn.
    """

    def __init__(self, name: str, description: Mapping[str, Any], grammar: Grammar):
        self.name = name
        self._where = f"templates.yaml: {name}"
        if set(description) != set(KEYS) or description["prefix"] not in PREFIX_METHODS:
            raise InputError(f"{self._where}: must have {', '.join(KEYS)}, with prefix {'|'.join(PREFIX_METHODS)}")
        self.phenomenon: str = description["phenomenon"]
        self.field: str = description["field"]
        self.prefix: str = description["prefix"]
        self._grammar = grammar
        texts = description["skeleton"]
        self._skeletons = [self._bind(text) for text in ([texts] if isinstance(texts, str) else texts)]

    def pairs(self, rng: random.Random, count: int) -> Iterator[dict[str, Any]]:
        """`count` different pairs, without their numbers. Raises InputError where ATTEMPTS draws bring no new one."""
        seen: set[str] = set()
        for _ in range(count):
            for _ in range(ATTEMPTS):
                good, bad, critical = self._draw(rng)
                sentence = sentence_of(good)
                fits = len(good) == len(bad) and len(good) in self._grammar.length and good != bad
                if fits and reserved(sentence) and sentence not in seen:
                    break
            else:
                raise InputError(f"{self._where}: no more than {len(seen)} pairs can be drawn")
            seen.add(sentence)
            yield {
                "sentence_good": sentence,
                "sentence_bad": sentence_of(bad),
                "field": self.field,
                "linguistics_term": self.phenomenon,
                "UID": self.name,
                "simple_LM_method": True,
                "one_prefix_method": self.prefix == "one",
                "two_prefix_method": self.prefix == "two",
                "lexically_identical": sorted(map(str.lower, good)) == sorted(map(str.lower, bad)),
                **self._prefixes(good, bad, critical),
            }

    def _prefixes(self, good: list[str], bad: list[str], critical: int | None) -> dict[str, str]:
        if self.prefix == "one":
            first = next(index for index, words in enumerate(zip(good, bad, strict=True)) if words[0] != words[1])
            return {
                "one_prefix_prefix": " ".join(good[:first]),
                "one_prefix_word_good": good[first],
                "one_prefix_word_bad": bad[first],
            }
        if critical is not None:
            return {
                "two_prefix_prefix_good": " ".join(good[:critical]),
                "two_prefix_prefix_bad": " ".join(bad[:critical]),
                "two_prefix_word": good[critical],
            }
        return {}

    def _draw(self, rng: random.Random) -> tuple[list[str], list[str], int | None]:
        """Spelt words of both sentences, and the place of the critical word."""
        skeleton = _one_of(_one_of(self._skeletons, rng), rng)
        drawn: dict[Slot, Row | list[str]] = {}
        critical = None
        sentences: tuple[list[str], list[str]] = ([], [])
        for parts, words in zip((skeleton.good, skeleton.bad), sentences, strict=True):
            for index, (slot, form) in enumerate(parts):
                if parts is skeleton.good and index == skeleton.before_critical:
                    critical = len(words)
                if slot not in drawn:
                    drawn[slot] = self._fill(slot.kind, skeleton, rng)
                content = drawn[slot]
                if isinstance(content, dict):
                    assert form is not None, "a row of a table is always asked for in a form"
                    words.append(content[form])
                else:
                    words += content
        return spell(sentences[0]), spell(sentences[1]), critical

    def _fill(self, kind: Symbol, skeleton: Skeleton, rng: random.Random) -> Row | list[str]:
        if kind not in skeleton.rows:
            return self._grammar.draw(kind, rng)
        rows, cumulated = skeleton.rows[kind]
        return rows[bisect(cumulated, rng.random() * cumulated[-1])]

    def _bind(self, text: str) -> list[Skeleton]:
        """Read a skeleton: one for each binding of its variables."""
        good: list[Symbol] = []
        bad: list[Symbol] = []
        shared: list[tuple[int, int]] = []  # places in good and in bad of what both have
        before_critical = None
        for index, piece in enumerate(_CONTRAST.split(text)):
            if index % 2:
                sides = piece.split("/")
                if len(sides) != 2:
                    raise InputError(f"{self._where}: '{{{piece}}}' must be {{good / bad}}")
                good += parse_symbols(sides[0], self._where)
                bad += parse_symbols(sides[1], self._where)
                continue
            for part in split_symbols(piece):
                if part.startswith("*"):
                    before_critical = len(good)
                shared.append((len(good), len(bad)))
                good += parse_symbols(part.lstrip("*"), self._where)
                bad += good[-1:]
        if (before_critical is None) == (self.prefix == "two"):
            raise InputError(f"{self._where}: '*' marks the critical word where prefix is two, and only there: {text}")
        bindings = self._grammar.bindings([*good, *bad], {})
        return [self._skeleton(good, bad, shared, before_critical, binding) for binding in bindings]

    def _skeleton(
        self,
        good: list[Symbol],
        bad: list[Symbol],
        shared: list[tuple[int, int]],
        before_critical: int | None,
        binding: Binding,
    ) -> Skeleton:
        sides = []
        forms: dict[Symbol, set[str]] = {}
        for side, symbols in enumerate((good, bad)):
            numbers = {places[side]: -number for number, places in enumerate(shared, start=1)}
            counts: Counter[Symbol] = Counter()
            parts = []
            for place, symbol in enumerate(bound.bind(binding) for bound in symbols):
                kind = symbol._replace(form=None) if symbol.kind == "table" else symbol
                if place not in numbers:
                    counts[kind] += 1
                parts.append(Part(Slot(kind, numbers.get(place, counts[kind])), symbol.form))
                if symbol.form is not None:
                    forms.setdefault(kind, set()).add(symbol.form)
            sides.append(parts)
        try:
            rows = {kind: self._grammar.rows(kind, needed) for kind, needed in forms.items()}
        except InputError as error:
            raise InputError(f"{self._where}: {error}") from None
        cumulated = {kind: (fit, list(accumulate(weights))) for kind, (fit, weights) in rows.items()}
        return Skeleton(sides[0], sides[1], before_critical, cumulated)


def _one_of(options: Sequence[T], rng: random.Random) -> T:
    return options[int(rng.random() * len(options))]


@lru_cache(maxsize=1)
def toy_templates() -> list[Template]:
    """The templates of templates.yaml. Raises InputError, naming the template, for one that cannot be drawn from."""
    described = yaml.safe_load((FOLDER / "templates.yaml").read_text("utf-8"))
    return [Template(name, description, toy_grammar()) for name, description in described.items()]
