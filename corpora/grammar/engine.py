"""A weighted phrase-structure grammar with features, over tables of words, from readable files.

corpora/grammar/symbols.py defines the notation. Each phrase is compiled once for each combination of its features'
values into a weighted choice without features, so that drawing is a walk through choices. Only a line with labels is
filled as it is drawn, since its later words depend on the rows that are drawn first.

    grammar.yaml
      variables      letter: its values
      phrases        Heading[features]: {line: weight}; all headings that match a phrase are used, a literal feature if
                     it shares a value with the phrase's
      zipf           weights of tables without a column `weight`: the r-th matching row has
                     (r + shift) ** -exponent; null: equal weights
      length         of a sentence in words, the final mark included: minimum and maximum; absent: any
      document       sentences per document, minimum and maximum, if the language writes text
      spelling       english | mandarin
      vowel_sound    words that begin with a vowel's sound, but not its letter: [hour]; consonant_sound: [university]
      distinct       tables whose rows occur once in a pair, except through a label
      aliases        table: {form: column}, further names of columns: {verb: {singular: third}}
      macros         name: texts; a skeleton with $name stands for several skeletons, one with each text
"""

from __future__ import annotations

import itertools
import random
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from corpora.grammar.lexicon import MISSING_FORM, Lexicon, NothingFits, Row, read_table, with_aliases
from corpora.grammar.symbols import MARKS, Binding, Symbol, parse_symbol, parse_symbols
from pairscale.errors import InputError

_REQUIRED = ("variables", "phrases", "zipf")
_KEYS = (
    *_REQUIRED, "length", "document", "spelling", "vowel_sound", "consonant_sound", "distinct", "aliases", "macros"
)  # fmt: skip

Rows = tuple[list[Row], list[float]]  # matching rows, and their cumulative weights


class English:
    """Spaces between words, none before a mark; "an" before a vowel; a capital at the start.

    vowel, consonant: words whose first letter misleads about their first sound ("hour"; "university").
    """

    def __init__(self, vowel: Collection[str] = (), consonant: Collection[str] = ()):
        self._sounds = dict.fromkeys(vowel, True) | dict.fromkeys(consonant, False)

    def spell(self, words: Sequence[str]) -> list[str]:
        """Return the first words of a sentence as they are written."""
        spelt = list(words)
        for index, word in enumerate(words[:-1]):
            if (word == "a" or word.endswith(" a")) and self._begins_with_vowel(words[index + 1]):
                spelt[index] = f"{word}n"
        spelt[0] = spelt[0][0].upper() + spelt[0][1:]
        return spelt

    def _begins_with_vowel(self, word: str) -> bool:
        first = word.split(" ", 1)[0].lower()
        return self._sounds.get(first, first[0] in "aeiou")

    def text(self, spelt: Sequence[str]) -> str:
        """Return the text of a sentence, or of its beginning, from spelt words."""
        return "".join(word if word in MARKS else f" {word}" for word in spelt)[1:]

    def length(self, spelt: Sequence[str]) -> int:
        """Return the length that must be equal in both sentences of a pair, besides their number of entries."""
        return len(spelt)


class Mandarin:
    """Words without spaces; its methods are those of `English`."""

    def spell(self, words: Sequence[str]) -> list[str]:
        return list(words)

    def text(self, spelt: Sequence[str]) -> str:
        return "".join(spelt)

    def length(self, spelt: Sequence[str]) -> int:
        return sum(map(len, spelt))  # characters, as in CLiMP


@dataclass(slots=True, eq=False)
class Choice:
    """Alternatives (a word, a sequence with its last part first, or a line with labels) and cumulative shares."""

    shares: list[float]
    alternatives: list[str | tuple[str | Choice, ...] | Frame]


@dataclass(slots=True, eq=False)
class Draw:
    """One draw of a line: a row of a table that has all `forms`, or a phrase.

    needs: references in the symbol to cells of rows that are drawn before: text, number of that draw, column.
    sources: the rows or choice to draw from, by those cells.
    """

    symbol: Symbol
    forms: tuple[str, ...]
    needs: tuple[tuple[str, int, str], ...]
    sources: dict[tuple[str, ...], Rows | Choice] = field(default_factory=dict)


class Part(NamedTuple):
    """A draw's place in a sentence; form: of a table's row, None for a phrase."""

    draw: int
    form: str | None


@dataclass(slots=True, eq=False)
class Frame:
    """A line, or the two sides of a template, without variables: its draws in order, and their places on each side."""

    draws: list[Draw]
    sides: list[list[Part]]


class Line(NamedTuple):
    """A line below a heading of grammar.yaml."""

    heading: Symbol
    symbols: list[Symbol]
    weight: float


class _Option(NamedTuple):
    """An alternative of a phrase that is being compiled; the options of a line share the line's weight."""

    alternative: str | tuple[str | Choice, ...] | Frame
    line: int
    weight: float

    def choices(self) -> Iterator[Choice]:
        """Yield the choices that must have alternatives for this option to be drawable."""
        if isinstance(self.alternative, Frame):
            sources = (source for draw in self.alternative.draws for source in draw.sources.values())
            yield from (source for source in sources if isinstance(source, Choice))
        elif not isinstance(self.alternative, str):
            yield from (node for node in self.alternative if isinstance(node, Choice))


class Grammar:
    """A grammar over tables of words, which is compiled as it is used; `knows` restricts the words as in Lexicon.

    Raises InputError for a grammar that is wrong or does not fit the tables.
    """

    def __init__(
        self,
        description: Mapping[str, Any],
        tables: Mapping[str, list[Row]],
        knows: Callable[[str], bool] | None = None,
    ):
        if unknown := sorted(set(description) - set(_KEYS)):
            raise InputError(f"grammar.yaml: unknown key {unknown[0]}; allowed: {', '.join(_KEYS)}")
        if missing := [key for key in _REQUIRED if key not in description]:
            raise InputError(f"grammar.yaml: no key {missing[0]}; required: {', '.join(_REQUIRED)}")
        self.variables: dict[str, list[str]] = description["variables"]
        self.length = _range(description.get("length"))
        self.document = _range(description.get("document"))
        sounds = [description.get(key) or () for key in ("vowel_sound", "consonant_sound")]
        spellings: dict[str, English | Mandarin] = {"english": English(*sounds), "mandarin": Mandarin()}
        if (spelling := description.get("spelling", "english")) not in spellings:
            raise InputError(f"grammar.yaml: spelling: {spelling}: must be one of {', '.join(spellings)}")
        self.spelling = spellings[spelling]
        self.macros: dict[str, list[str]] = description.get("macros") or {}
        tables = {**tables}
        for table, names in (description.get("aliases") or {}).items():
            tables[table] = with_aliases(table, tables.get(table, []), names)
        self.lexicon = Lexicon(tables, description["zipf"], description.get("distinct") or (), knows)
        self._lines: dict[str, list[Line]] = {}
        for heading, lines in description["phrases"].items():
            left = parse_symbol(heading, f"grammar.yaml: {heading}")
            for text, weight in lines.items():
                line = Line(left, parse_symbols(text, f"grammar.yaml: {heading}: {text}"), weight)
                self._lines.setdefault(left.name, []).append(line)
        self._compiled: dict[Symbol, Choice] = {}
        self._reasons: dict[Symbol, str] = {}  # why a symbol has nothing to draw

    def bindings(self, symbols: Iterable[Symbol], fixed: Binding) -> list[Binding]:
        """Return all values of the variables of `symbols` that agree with `fixed`; InputError if one is undeclared."""
        names = sorted(set().union(*(symbol.variables() for symbol in symbols)))
        base = sorted({name.lstrip("-") for name in names} - set(fixed))
        if undeclared := [name for name in base if name not in self.variables]:
            raise InputError(f"'{undeclared[0]}': no such variable in grammar.yaml: {', '.join(self.variables)}")
        others = [name for name in names if name.startswith("-")]
        bindings: list[Binding] = []
        for values in itertools.product(*(self.variables[name] for name in base)):
            bound = {**fixed, **dict(zip(base, values, strict=True))}
            other_values = [
                [value for value in self.variables[x[1:]] if value not in bound[x[1:]].split("|")] for x in others
            ]
            for rest in itertools.product(*other_values):
                bindings.append({**bound, **dict(zip(others, rest, strict=True))})
        return bindings

    def choice(self, symbol: Symbol) -> Choice:
        """Return a symbol without variables as a choice. Raises NothingFits, with the reason, if it has none."""
        if symbol not in self._compiled:
            fresh: dict[Symbol, list[_Option]] = {}
            self._expand(symbol, fresh)
            self._settle(fresh)
        if not self._compiled[symbol].alternatives:
            raise NothingFits(self._reasons[symbol])
        return self._compiled[symbol]

    def _expand(self, symbol: Symbol, fresh: dict[Symbol, list[_Option]]) -> Choice:
        """Return the choice of a symbol, whose alternatives are collected in `fresh` if it is new."""
        if symbol in self._compiled:
            return self._compiled[symbol]
        self._compiled[symbol] = choice = Choice([], [])  # before its parts: phrases may contain themselves
        fresh[symbol] = []
        try:
            if symbol.kind == "word":
                self.lexicon.check_known(symbol.name)
                fresh[symbol] = [_Option(symbol.name, 0, 1.0)]
            elif symbol.kind == "table":
                fresh[symbol] = list(self._entries(symbol))
            else:
                fresh[symbol] = list(self._alternatives(symbol, fresh))
        except NothingFits as error:
            self._reasons[symbol] = str(error)
        except InputError:
            for unfinished in fresh:
                self._compiled.pop(unfinished, None)
            raise
        return choice

    def _entries(self, symbol: Symbol) -> Iterator[_Option]:
        assert symbol.form is not None
        for number, (row, weight) in enumerate(zip(*self.lexicon.rows(symbol, [symbol.form]), strict=True)):
            yield _Option(self.lexicon.entry(symbol, row, symbol.form), number, weight)

    def _alternatives(self, symbol: Symbol, fresh: dict[Symbol, list[_Option]]) -> Iterator[_Option]:
        lines = [(line, self._match(line.heading, symbol)) for line in self._lines.get(symbol.name, [])]
        if all(match is None for _, match in lines):
            error = NothingFits if MISSING_FORM in symbol.arguments else InputError  # such as a row without an object
            raise error(f"grammar.yaml: no heading fits {symbol}")
        for number, (line, match) in enumerate(lines):
            for binding in self.bindings(line.symbols, match) if match is not None else ():
                parts = [part.bind(binding) for part in line.symbols]
                try:
                    if any(part.label for part in parts):
                        side = [(part.label or place, part) for place, part in enumerate(parts)]
                        frame = self.frame([side], lambda part: self._expand(part, fresh))
                        yield _Option(frame, number, line.weight)
                    else:
                        yield _Option(self._sequence(parts, fresh), number, line.weight)
                except NothingFits as error:
                    self._reasons.setdefault(symbol, str(error))

    def _sequence(self, parts: list[Symbol], fresh: dict[Symbol, list[_Option]]) -> tuple[str | Choice, ...]:
        nodes: list[str | Choice] = []
        for part in parts:
            if part.kind == "word":
                self.lexicon.check_known(part.name)
            nodes.append(part.name if part.kind == "word" else self._expand(part, fresh))
        return tuple(reversed(nodes))

    def _match(self, heading: Symbol, symbol: Symbol) -> Binding | None:
        """Return the values of a heading's variables in a phrase; None if the phrase does not match it."""
        if len(heading.arguments) != len(symbol.arguments):
            raise InputError(f"grammar.yaml: {symbol}: must have as many features as {heading}")
        binding: dict[str, str] = {}
        for pattern, value in zip(heading.arguments, symbol.arguments, strict=True):
            allowed = self.variables.get(pattern, pattern.split("|"))
            shared = "|".join(one for one in value.split("|") if one in allowed)
            if not shared or (pattern in self.variables and binding.setdefault(pattern, shared) != shared):
                return None
        return binding

    def _settle(self, fresh: dict[Symbol, list[_Option]]) -> None:
        """Set the alternatives of the choices of `fresh`, without those that cannot be drawn."""
        alive: set[int] = set()

        def drawable(option: _Option) -> bool:
            return all(choice.alternatives or id(choice) in alive for choice in option.choices())

        changed = True
        while changed:  # a phrase that contains itself lives by its other lines
            dead = [symbol for symbol in fresh if id(self._compiled[symbol]) not in alive]
            changed = False
            for symbol in dead:
                if any(map(drawable, fresh[symbol])):
                    alive.add(id(self._compiled[symbol]))
                    changed = True
        remaining = {symbol: list(filter(drawable, options)) for symbol, options in fresh.items()}
        for symbol, options in remaining.items():
            sharing = Counter(option.line for option in options)
            weights = [option.weight / sharing[option.line] for option in options]
            choice, total = self._compiled[symbol], sum(weights)
            choice.alternatives = [option.alternative for option in options]
            choice.shares = [share / total for share in itertools.accumulate(weights)]
            choice.shares[-1:] = [1.0] if options else []
        symbols = {id(choice): symbol for symbol, choice in self._compiled.items()} if dead else {}
        for symbol in reversed(dead):  # parts come after what they are parts of
            parts = (choice for option in fresh[symbol] for choice in option.choices() if not choice.alternatives)
            reasons = (self._reasons.get(symbols[id(choice)]) for choice in parts)
            self._reasons.setdefault(symbol, next(filter(None, reasons), f"{symbol}: has no end"))

    def frame(
        self, sides: Sequence[Sequence[tuple[Hashable, Symbol]]], expand: Callable[[Symbol], Choice] | None = None
    ) -> Frame:
        """Return symbols without variables, each with a key, as a frame; the same key, such as a label, is one draw.

        Raises InputError for labels that do not fit together, NothingFits if nothing can be drawn for a symbol.
        """
        kinds: dict[Hashable, Symbol] = {}  # without form and label
        forms: dict[Hashable, dict[str, None]] = {}
        for key, symbol in itertools.chain.from_iterable(sides):
            kind = symbol._replace(form=None, label=None)
            before = kinds.setdefault(key, kind)
            if before.name != kind.name or ((key in forms) != (symbol.form is not None) and before is not kind):
                raise InputError(f"{symbol}: its label is also that of {before}")
            if kind.arguments != before.arguments:  # conditions add up; a phrase may have the same feature twice
                kinds[key] = kind._replace(arguments=tuple(dict.fromkeys([*before.arguments, *kind.arguments])))
            if symbol.form is not None:
                forms.setdefault(key, {})[symbol.form] = None
        order = self._order(kinds, forms)
        draws = []
        for key in order:
            kind = kinds[key]
            needs = tuple((text, order[label], column) for text, (label, column) in kind.references().items())
            draw = Draw(kind, tuple(forms.get(key, ())), needs)
            if not needs:
                draw.sources[()] = self._source(draw, (), expand or self.choice)
            elif draw.forms:
                self.lexicon.check_columns(kind, draw.forms)
            draws.append(draw)
        if expand is None:
            self._check_dependents(draws)
        return Frame(draws, [[Part(order[key], symbol.form) for key, symbol in side] for side in sides])

    def _check_dependents(self, draws: Sequence[Draw]) -> None:
        """Raise NothingFits for a draw that refers to one other draw, no row of which leaves anything to draw."""
        for draw in draws:
            referents = {number for _, number, _ in draw.needs}
            source = draws[referents.pop()].sources.get(()) if len(referents) == 1 else None
            if isinstance(source, tuple):
                for last, row in enumerate(source[0], start=1 - len(source[0])):
                    try:
                        self._source(draw, tuple(row[column] for _, _, column in draw.needs), self.choice)
                        break
                    except NothingFits:
                        if not last:
                            raise

    def _order(self, kinds: Mapping[Hashable, Symbol], forms: Mapping[Hashable, Any]) -> dict[Hashable, int]:
        """Number the draws in the order of the line, but each after those that it refers to."""
        for kind in kinds.values():
            for text, (label, column) in kind.references().items():
                if label not in forms:
                    raise InputError(f"{kind}: {text}: no row '{label}:table.form' in the line")
                self.lexicon.check_columns(kinds[label], [column])
        order: dict[Hashable, int] = {}
        while len(order) < len(kinds):
            waiting = [key for key in kinds if key not in order]
            references = ((key, kinds[key].references().values()) for key in waiting)
            ready = next((key for key, cells in references if all(label in order for label, _ in cells)), None)
            if ready is None:
                raise InputError(f"{', '.join(str(kinds[key]) for key in waiting)}: labels refer to each other")
            order[ready] = len(order)
        return order

    def _source(self, draw: Draw, cells: tuple[str, ...], expand: Callable[[Symbol], Choice]) -> Rows | Choice:
        texts = (text for text, _, _ in draw.needs)
        symbol = draw.symbol.bind(dict(zip(texts, cells, strict=True)))
        if not draw.forms:
            return expand(symbol)
        rows, weights = self.lexicon.rows(symbol, draw.forms)
        return rows, list(itertools.accumulate(weights))

    def fill(self, frame: Frame, rng: random.Random) -> list[Row | list[str]]:
        """Return a row, or words, for each draw of a frame. Raises NothingFits if none fits the earlier rows."""
        contents: list[Row | list[str]] = []
        for draw in frame.draws:
            cells = tuple([contents[number][column] for _, number, column in draw.needs])  # type: ignore[call-overload]
            source = draw.sources.get(cells)
            if source is None:
                draw.sources[cells] = source = self._source(draw, cells, self.choice)
            if isinstance(source, Choice):
                contents.append(self._walk(source, rng))
            else:
                rows, weights = source
                contents.append(rows[bisect(weights, rng.random() * weights[-1])])
        return contents

    def _line(self, frame: Frame, rng: random.Random) -> list[str]:
        contents = self.fill(frame, rng)
        words: list[str] = []
        seen = set()
        for number, form in frame.sides[0]:
            content = contents[number]
            if isinstance(content, list):
                words += content
            else:
                assert form is not None, "a part with a row has a form"
                again = number in seen  # by its label: the same row, which is no second entry
                words.append(content[form] if again else self.lexicon.entry(frame.draws[number].symbol, content, form))
                seen.add(number)
        return words

    def draw(self, symbol: Symbol, rng: random.Random) -> list[str]:
        """Return random words for a symbol without variables. Raises NothingFits if there are none."""
        return self._walk(self.choice(symbol), rng)

    def _walk(self, choice: Choice, rng: random.Random) -> list[str]:
        words: list[str] = []
        stack: list[str | Choice] = [choice]
        uniform = rng.random  # the one method of random whose numbers are the same in all versions of Python
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                words.append(node)
            else:
                alternative = node.alternatives[bisect(node.shares, uniform())]
                if isinstance(alternative, str):
                    words.append(alternative)
                elif isinstance(alternative, tuple):
                    stack.extend(alternative)
                else:
                    words += self._line(alternative, rng)
        return words


def _range(bounds: Sequence[int] | None) -> range | None:
    return None if bounds is None else range(bounds[0], bounds[1] + 1)


def read_grammar(folder: Path, knows: Callable[[str], bool] | None = None) -> Grammar:
    """Return the grammar of a folder: grammar.yaml over lexicon/*.tsv. Raises InputError if they do not fit."""
    description = yaml.safe_load((folder / "grammar.yaml").read_text("utf-8"))
    tables = {file.stem: read_table(file) for file in sorted((folder / "lexicon").glob("*.tsv"))}
    return Grammar(description, tables, knows)
