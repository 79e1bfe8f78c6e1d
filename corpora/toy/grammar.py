"""The engine: tables of words and a weighted phrase-structure grammar with features, from readable files.

The notation stands at the head of grammar.yaml. Phrases are compiled once for each combination of their features'
values into weighted choices without features, so drawing a sentence is only walking through them.
"""

from __future__ import annotations

import csv
import itertools
import random
import re
import zlib
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from corpora.errors import InputError

FOLDER = Path(__file__).parent
MISSING_FORM = "-"
RESERVED_SHARE = 8  # one sentence in so many is left to the benchmark

Binding = Mapping[str, str]  # values of variables
Row = dict[str, str]  # of a table of words: column to cell

_SYMBOL = re.compile(r"(?P<name>[A-Za-z_]+)(?:\.(?P<form>-?[a-z]+))?(?:\[(?P<arguments>[^\]]*)\])?")
_PARTS = re.compile(r"[^\s\[\]]+(?:\[[^\]]*\])?")
_VARIABLE = re.compile(r"-?[a-z]")


class Symbol(NamedTuple):
    """What a line of the grammar consists of: a phrase, a word of a table (with a form), or the word itself."""

    name: str
    form: str | None
    arguments: tuple[str, ...]

    @property
    def kind(self) -> str:
        """One of "phrase", "table", "word"."""
        if self.form is not None:
            return "table"
        return "phrase" if self.name[0].isupper() else "word"

    def variables(self) -> set[str]:
        """Names of the variables in it, "-n" for a value other than that of n."""
        values = [value for argument in self.arguments for value in argument.split("=")[-1].split("|")]
        return {value for value in [*values, self.form or ""] if _VARIABLE.fullmatch(value)}

    def bind(self, binding: Binding) -> Symbol:
        """The same with values for variables."""
        arguments = []
        for argument in self.arguments:
            name, equals, values = argument.rpartition("=")
            arguments.append(name + equals + "|".join(binding.get(value, value) for value in values.split("|")))
        form = None if self.form is None else binding.get(self.form, self.form)
        return Symbol(self.name, form, tuple(arguments))

    def __str__(self) -> str:
        form = f".{self.form}" if self.form else ""
        return self.name + form + (f"[{', '.join(self.arguments)}]" if self.arguments else "")


def parse_symbol(text: str, where: str) -> Symbol:
    """Read one symbol; a mark such as "." is a word. Raises InputError, telling `where`, for what is none."""
    if text in (".", "?"):
        return Symbol(text, None, ())
    match = _SYMBOL.fullmatch(text)
    if not match:
        raise InputError(f"{where}: '{text}' is no symbol: a word, Phrase[...] or table.form[column=value]")
    arguments = match["arguments"] or ""
    return Symbol(match["name"], match["form"], tuple(filter(None, (part.strip() for part in arguments.split(",")))))


def split_symbols(text: str) -> list[str]:
    """The symbols of a line, which spaces divide (but not those in brackets)."""
    return _PARTS.findall(text)


def parse_symbols(text: str, where: str) -> list[Symbol]:
    """Read the symbols of a line. Raises InputError, telling `where`."""
    return [parse_symbol(part, where) for part in split_symbols(text)]


@dataclass(slots=True, eq=False)
class Choice:
    """Alternatives, each a word or a sequence (last first, as a stack takes them), with cumulated shares."""

    shares: list[float]
    alternatives: list[str | tuple[str | Choice, ...]]


class Line(NamedTuple):
    heading: Symbol
    symbols: list[Symbol]
    weight: float


class Grammar:
    """A lexicon (table name to rows) and phrases, compiled as they are asked for."""

    def __init__(self, description: Mapping[str, Any], lexicon: Mapping[str, list[Row]]):
        self.variables: dict[str, list[str]] = description["variables"]
        self.length = range(description["length"][0], description["length"][1] + 1)
        self.document = range(description["document"][0], description["document"][1] + 1)
        self._zipf: dict[str, float] = description["zipf"]
        self._lexicon = lexicon
        self._lines: dict[str, list[Line]] = {}
        for heading, lines in description["phrases"].items():
            left = parse_symbol(heading, f"grammar.yaml: {heading}")
            for text, weight in lines.items():
                line = Line(left, parse_symbols(text, f"grammar.yaml: {heading}: {text}"), weight)
                self._lines.setdefault(left.name, []).append(line)
        self._compiled: dict[Symbol, Choice] = {}

    def bindings(self, symbols: Iterable[Symbol], given: Binding) -> list[Binding]:
        """All ways to give values to the variables of `symbols`, those of `given` as they are."""
        names = sorted(set().union(*(symbol.variables() for symbol in symbols)))
        base = sorted({name.lstrip("-") for name in names} - set(given))
        others = [name for name in names if name.startswith("-")]
        found: list[Binding] = []
        for values in itertools.product(*(self.variables[name] for name in base)):
            bound = {**given, **dict(zip(base, values, strict=True))}
            other_values = [[value for value in self.variables[x[1:]] if value != bound[x[1:]]] for x in others]
            for rest in itertools.product(*other_values):
                found.append({**bound, **dict(zip(others, rest, strict=True))})
        return found

    def rows(self, symbol: Symbol, forms: Iterable[str]) -> tuple[list[Row], list[float]]:
        """The rows of a table that meet a symbol's conditions and have all `forms`, and their weights.

        Raises InputError where there is no such table or column, or no row is left.
        """
        rows = self._lexicon.get(symbol.name)
        conditions = [argument.partition("=")[::2] for argument in symbol.arguments]
        columns = [*(column for column, _ in conditions), *forms]
        if not rows or not set(columns) <= set(rows[0]):
            raise InputError(f"{symbol}: no table '{symbol.name}' with the columns {', '.join(columns)} in the lexicon")
        fit = [
            row
            for row in rows
            if all(row[column] in values.split("|") for column, values in conditions)
            and all(row[form] != MISSING_FORM for form in forms)
        ]
        if not fit:
            raise InputError(f"{symbol}: no row of the table '{symbol.name}' fits")
        if "weight" in fit[0]:
            return fit, [float(row["weight"]) for row in fit]
        shift, exponent = self._zipf["shift"], self._zipf["exponent"]
        return fit, [(rank + shift) ** -exponent for rank in range(1, len(fit) + 1)]

    def choice(self, symbol: Symbol) -> Choice:
        """A symbol without variables as a choice. Raises InputError where nothing can be drawn."""
        if symbol not in self._compiled:
            self._compiled[symbol] = made = Choice([], [])  # before its parts: phrases may contain themselves
            if symbol.kind == "word":
                weighted: list[tuple[str | tuple[str | Choice, ...], float]] = [(symbol.name, 1.0)]
            elif symbol.kind == "table":
                assert symbol.form is not None
                rows, weights = self.rows(symbol, [symbol.form])
                weighted = list(zip([row[symbol.form] for row in rows], weights, strict=True))
            else:
                weighted = list(self._alternatives(symbol))
            total = sum(weight for _, weight in weighted)
            made.alternatives = [alternative for alternative, _ in weighted]
            made.shares = [share / total for share in itertools.accumulate(weight for _, weight in weighted)]
            made.shares[-1] = 1.0
        return self._compiled[symbol]

    def _alternatives(self, symbol: Symbol) -> Iterator[tuple[str | tuple[str | Choice, ...], float]]:
        matched = False
        for line in self._lines.get(symbol.name, []):
            given = self._match(line.heading, symbol)
            if given is None:
                continue
            matched = True
            bindings = self.bindings(line.symbols, given)
            for binding in bindings:
                parts = [part.bind(binding) for part in line.symbols]
                nodes = [part.name if part.kind == "word" else self.choice(part) for part in parts]
                yield tuple(reversed(nodes)), line.weight / len(bindings)
        if not matched:
            raise InputError(f"grammar.yaml: no heading fits {symbol}")

    def _match(self, heading: Symbol, symbol: Symbol) -> Binding | None:
        if len(heading.arguments) != len(symbol.arguments):
            raise InputError(f"grammar.yaml: {symbol} has not as many features as {heading}")
        given: dict[str, str] = {}
        for pattern, value in zip(heading.arguments, symbol.arguments, strict=True):
            if pattern not in self.variables:
                if pattern != value:
                    return None
            elif value not in self.variables[pattern] or given.setdefault(pattern, value) != value:
                return None
        return given

    def draw(self, symbol: Symbol, rng: random.Random) -> list[str]:
        """Words of a symbol without variables."""
        words: list[str] = []
        stack: list[str | Choice] = [self.choice(symbol)]
        uniform = rng.random  # of all of random's methods, the one whose numbers no version of Python may change
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                words.append(node)
            else:
                alternative = node.alternatives[bisect(node.shares, uniform())]
                if isinstance(alternative, str):
                    words.append(alternative)
                else:
                    stack.extend(alternative)
        return words


def spell(words: Sequence[str]) -> list[str]:
    """Words as they are written in a sentence: "an" before a vowel, a capital at the start."""
    spelt = list(words)
    for index, word in enumerate(words[:-1]):
        if word == "a" and words[index + 1][0] in "aeiou":
            spelt[index] = "an"
    spelt[0] = spelt[0][0].upper() + spelt[0][1:]
    return spelt


def sentence_of(spelt: Sequence[str]) -> str:
    """Spelt words, the last of which is the final mark, as a sentence."""
    return " ".join(spelt[:-1]) + spelt[-1]


def reserved(sentence: str) -> bool:
    """Whether a sentence is kept for the benchmark, whatever the seeds: no text contains it."""
    return zlib.crc32(sentence.encode()) % RESERVED_SHARE == 0


def read_table(file: Path) -> list[Row]:
    """Rows of a table of words. Raises InputError, with the line, for a row that has another number of cells."""
    with file.open(encoding="utf-8", newline="") as lines:
        header, *rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header) or not all(row):
            raise InputError(f"{file}:{number}: must hold {len(header)} cells ({', '.join(header)}), got {row}")
    return [dict(zip(header, row, strict=True)) for row in rows]


@lru_cache(maxsize=1)
def toy_grammar() -> Grammar:
    """The grammar of grammar.yaml over the tables of lexicon/. Raises InputError where they do not fit together."""
    description = yaml.safe_load((FOLDER / "grammar.yaml").read_text("utf-8"))
    lexicon = {file.stem: read_table(file) for file in sorted((FOLDER / "lexicon").glob("*.tsv"))}
    return Grammar(description, lexicon)
