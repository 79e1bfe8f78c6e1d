"""Parse the notation of grammars and templates, in which a line consists of symbols.

    Phrase[n, c]             a phrase in grammar.yaml, with the values of its features
    noun.n[class=person]     the form in column n, from a row of noun.tsv that meets the conditions
    near                     the word itself, or a mark
    v:verb.past[frame=x]     a row with a label. In a line, the same label means the same row. v.object means this row's
                             cell in the column `object`, as in noun.n[class=v.object] or NP[n, v.object].

Cells and values are sets separated by "|". column=value is true if they share a value, and column!=value is true if
they don't. A single letter that grammar.yaml declares is a variable. -n is any declared value other than that of n.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from pairscale.errors import InputError

MARKS = frozenset([".", "?", "!", ",", ";", "。", "？", "！", "，", "、", "'s"])  # written without a space before them

Binding = Mapping[str, str]  # values of variables and, after rows are drawn, of references

_SYMBOL = re.compile(
    r"(?:(?P<label>[a-z][a-z0-9_]*):)?(?P<name>[A-Za-z_]+)(?:\.(?P<form>-?[a-z_]+))?(?:\[(?P<arguments>[^\]]*)\])?"
)
_WORD = re.compile(r"[^\W\d_A-Z][^\s\[\]{}/*|=:.]*")  # also matches Mandarin and apostrophes
_PARTS = re.compile(r"[^\s\[\]]+(?:\[[^\]]*\])?")
_VARIABLE = re.compile(r"-?[a-z]")
_REFERENCE = re.compile(r"([a-z][a-z0-9_]*)\.(-?[a-z_]+)")


class Symbol(NamedTuple):
    """A symbol in a line, which is a phrase, a form of a table's row, or a word."""

    name: str
    form: str | None
    arguments: tuple[str, ...]
    label: str | None = None

    @property
    def kind(self) -> str:
        """Either "phrase", "table" or "word"."""
        if self.form is not None:
            return "table"
        return "phrase" if self.name[0].isupper() else "word"

    def references(self) -> Mapping[str, tuple[str, str]]:
        """Return the symbol's references to cells of other rows, as a dictionary from texts to (label, column)."""
        return _references(self.arguments)

    def variables(self) -> set[str]:
        """Return the symbol's variables, such as "n", or "-n" for a value that differs from n."""
        columns = (column for _, column in self.references().values())
        return {value for value in [*_values(self.arguments), *columns, self.form or ""] if _VARIABLE.fullmatch(value)}

    def bind(self, binding: Binding) -> Symbol:
        """Replace the symbol's variables and references with their values in `binding`."""
        arguments = []
        for argument in self.arguments:
            name, equals, values = argument.rpartition("=")
            arguments.append(name + equals + "|".join(_bound(value, binding) for value in values.split("|")))
        form = None if self.form is None else binding.get(self.form, self.form)
        return Symbol(self.name, form, tuple(arguments), self.label)

    def __str__(self) -> str:
        label = f"{self.label}:" if self.label else ""
        form = f".{self.form}" if self.form else ""
        return label + self.name + form + (f"[{', '.join(self.arguments)}]" if self.arguments else "")


def _values(arguments: tuple[str, ...]) -> list[str]:
    return [value for argument in arguments for value in argument.rpartition("=")[2].split("|")]


@lru_cache(maxsize=2**14)  # cached, because a skeleton is bound to many values, few of which are new
def _references(arguments: tuple[str, ...]) -> Mapping[str, tuple[str, str]]:
    matches = ((value, _REFERENCE.fullmatch(value)) for value in _values(arguments))
    return {value: (match[1], match[2]) for value, match in matches if match}


def _bound(value: str, binding: Binding) -> str:
    if value in binding:
        return binding[value]
    reference = _REFERENCE.fullmatch(value)
    return f"{reference[1]}.{binding.get(reference[2], reference[2])}" if reference else value


def parse_symbol(text: str, where: str) -> Symbol:
    """Parse a symbol. A mark such as "." is a word. Raises InputError, with a message that begins with `where`."""
    match = _SYMBOL.fullmatch(text)
    if text in MARKS or (not match and _WORD.fullmatch(text)):
        return Symbol(text, None, ())
    if not match:
        raise InputError(f"{where}: '{text}' is not a symbol. Write a word, Phrase[...] or table.form[column=value].")
    arguments = match["arguments"] or ""
    parts = tuple(filter(None, (part.strip() for part in arguments.split(","))))
    symbol = Symbol(match["name"], match["form"], parts, match["label"])
    if symbol.kind == "word" and (symbol.label or parts):
        raise InputError(f"{where}: '{text}': a word has no label or conditions. To draw a row, write table.form[...].")
    return symbol


def split_symbols(text: str) -> list[str]:
    """Split a line into the texts of its symbols, which are separated by spaces outside brackets."""
    return _PARTS.findall(text)


def parse_symbols(text: str, where: str) -> list[Symbol]:
    """Parse the symbols of a line. Raises InputError, with a message that begins with `where`, if one is invalid."""
    return [parse_symbol(part, where) for part in split_symbols(text)]
