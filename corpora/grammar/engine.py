"""Read and compile weighted phrase-structure grammars with features and tables of words, and draw sentences from them.

corpora/grammar/symbols.py defines the notation. For each combination of its features' values, a phrase is compiled once
into a weighted choice without features, so that drawing is a walk through choices. A line with labels is filled only
when it is drawn, because its later words depend on the rows that are drawn first.

    grammar.yaml
      variables      The values of each variable, which is a letter.
      phrases        Heading[features]: {line: weight}. All headings that match a phrase are used. A literal feature
                     matches if it shares a value with the phrase's feature.
      zipf           Weights for tables without a column `weight`. The r-th matching row has the weight
                     (r + shift) ** -exponent. With null, all weights are equal.
      length         Minimum and maximum number of words in a sentence, including the final mark. No limits by default.
      document       Minimum and maximum number of sentences per document, if the grammar generates text.
      spelling       Either english or mandarin.
      vowel_sound    Words that begin with a vowel sound but a consonant letter, such as [hour].
      consonant_sound  Words that begin with a consonant sound but a vowel letter, such as [university].
      distinct       Tables whose rows occur only once in a pair, except through a label.
      aliases        Additional names for columns, as table: {form: column}, such as {verb: {singular: third}}.
      macros         Lists of texts by name. A skeleton with $name becomes several skeletons, one per text.
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
    """English spelling, with spaces between words but not before marks, "an" before vowels, and an initial capital."""

    def __init__(self, vowel: Collection[str] = (), consonant: Collection[str] = ()):
        """Store words that begin with a `vowel` sound but a consonant letter ("hour"), or vice versa ("university")."""
        self._sounds = dict.fromkeys(vowel, True) | dict.fromkeys(consonant, False)

    def spell(self, words: Sequence[str]) -> list[str]:
        """Spell the words of a sentence or of its beginning."""
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
        """Join the spelt words of a sentence or of its beginning."""
        return "".join(word if word in MARKS else f" {word}" for word in spelt)[1:]

    def length(self, spelt: Sequence[str]) -> int:
        """Return a sentence's length. Both sentences of a pair must have the same length and number of entries."""
        return len(spelt)


class Mandarin:
    """Mandarin spelling, without spaces between words. It has the same methods as `English`."""

    def spell(self, words: Sequence[str]) -> list[str]:
        return list(words)

    def text(self, spelt: Sequence[str]) -> str:
        return "".join(spelt)

    def length(self, spelt: Sequence[str]) -> int:
        return sum(map(len, spelt))  # in characters, as in CLiMP


@dataclass(slots=True, eq=False)
class Choice:
    """A weighted choice between alternatives."""

    shares: list[float]  # cumulative probabilities
    alternatives: list[str | tuple[str | Choice, ...] | Frame]  # words, reversed sequences, or lines with labels


@dataclass(slots=True, eq=False)
class Draw:
    """One draw for a line. It draws a phrase, or a table's row that has all `forms`."""

    symbol: Symbol
    forms: tuple[str, ...]
    needs: tuple[tuple[str, int, str], ...]  # references to cells of earlier rows: text, number of the draw, column
    sources: dict[tuple[str, ...], Rows | Choice] = field(default_factory=dict)  # what to draw from, by cells in needs


class Part(NamedTuple):
    """A place in a sentence that a draw fills."""

    draw: int  # number of the draw
    form: str | None  # column of the drawn row; None for a phrase


@dataclass(slots=True, eq=False)
class Frame:
    """A line, or the two sides of a template, without variables. It has draws in order, and the parts of each side."""

    draws: list[Draw]
    sides: list[list[Part]]


class Line(NamedTuple):
    """A line under a heading of grammar.yaml."""

    heading: Symbol
    symbols: list[Symbol]
    weight: float


class _Option(NamedTuple):
    """An alternative of a phrase that is being compiled. All options from one line share its weight."""

    alternative: str | tuple[str | Choice, ...] | Frame
    line: int
    weight: float

    def choices(self) -> Iterator[Choice]:
        """Yield the choices that must have alternatives, so that this option can be drawn."""
        if isinstance(self.alternative, Frame):
            sources = (source for draw in self.alternative.draws for source in draw.sources.values())
            yield from (source for source in sources if isinstance(source, Choice))
        elif not isinstance(self.alternative, str):
            yield from (node for node in self.alternative if isinstance(node, Choice))


class Grammar:
    """A grammar over tables of words, which is compiled on demand. `knows` restricts the words as in Lexicon.

    Raises InputError if the grammar is invalid or doesn't fit the tables.
    """

    def __init__(
        self,
        description: Mapping[str, Any],
        tables: Mapping[str, list[Row]],
        knows: Callable[[str], bool] | None = None,
    ):
        if unknown := sorted(set(description) - set(_KEYS)):
            raise InputError(f"grammar.yaml: there is no key '{unknown[0]}'. Use only {', '.join(_KEYS)}.")
        if missing := [key for key in _REQUIRED if key not in description]:
            raise InputError(f"grammar.yaml: the key '{missing[0]}' is missing. Add it.")
        self.variables: dict[str, list[str]] = description["variables"]
        self.length = _range(description.get("length"))
        self.document = _range(description.get("document"))
        sounds = [description.get(key) or () for key in ("vowel_sound", "consonant_sound")]
        spellings: dict[str, English | Mandarin] = {"english": English(*sounds), "mandarin": Mandarin()}
        if (spelling := description.get("spelling", "english")) not in spellings:
            raise InputError(f"grammar.yaml: there is no spelling '{spelling}'. Use {' or '.join(spellings)}.")
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
        self._reasons: dict[Symbol, str] = {}  # why nothing can be drawn for a symbol

    def bindings(self, symbols: Iterable[Symbol], fixed: Binding) -> list[Binding]:
        """Return all combinations of values for the variables of `symbols` that agree with `fixed`.

        Raises InputError if a variable is not declared.
        """
        names = sorted(set().union(*(symbol.variables() for symbol in symbols)))
        base = sorted({name.lstrip("-") for name in names} - set(fixed))
        if undeclared := [name for name in base if name not in self.variables]:
            raise InputError(
                f"'{undeclared[0]}': grammar.yaml doesn't declare this variable. Declare it, or use "
                f"{', '.join(self.variables)}."
            )
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
        """Compile a symbol without variables into a choice. Raises NothingFits, with the reason, if it is empty."""
        if symbol not in self._compiled:
            fresh: dict[Symbol, list[_Option]] = {}
            self._expand(symbol, fresh)
            self._settle(fresh)
        if not self._compiled[symbol].alternatives:
            raise NothingFits(self._reasons[symbol])
        return self._compiled[symbol]

    def _expand(self, symbol: Symbol, fresh: dict[Symbol, list[_Option]]) -> Choice:
        """Return the choice of a symbol. If it is new, collect its alternatives in `fresh`."""
        if symbol in self._compiled:
            return self._compiled[symbol]
        self._compiled[symbol] = choice = Choice([], [])  # first, because a phrase may contain itself
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
        """Return the values of a heading's variables for a phrase, or None if the phrase does not match."""
        if len(heading.arguments) != len(symbol.arguments):
            raise InputError(
                f"grammar.yaml: {symbol} and {heading} have different numbers of features. Correct one of them."
            )
        binding: dict[str, str] = {}
        for pattern, value in zip(heading.arguments, symbol.arguments, strict=True):
            allowed = self.variables.get(pattern, pattern.split("|"))
            shared = "|".join(one for one in value.split("|") if one in allowed)
            if not shared or (pattern in self.variables and binding.setdefault(pattern, shared) != shared):
                return None
        return binding

    def _settle(self, fresh: dict[Symbol, list[_Option]]) -> None:
        """Set the alternatives of the choices in `fresh`, without alternatives that cannot be drawn."""
        alive: set[int] = set()

        def drawable(option: _Option) -> bool:
            return all(choice.alternatives or id(choice) in alive for choice in option.choices())

        changed = True
        while changed:  # a phrase that contains itself can be drawn if one of its other lines can
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
        for symbol in reversed(dead):  # because parts come after the symbols that contain them
            parts = (choice for option in fresh[symbol] for choice in option.choices() if not choice.alternatives)
            reasons = (self._reasons.get(symbols[id(choice)]) for choice in parts)
            self._reasons.setdefault(symbol, next(filter(None, reasons), f"{symbol}: this phrase never ends"))

    def frame(
        self, sides: Sequence[Sequence[tuple[Hashable, Symbol]]], expand: Callable[[Symbol], Choice] | None = None
    ) -> Frame:
        """Compile symbols without variables into a frame.

        Args:
            sides: The symbols of each side with their keys. Symbols with the same key, such as a label, are one draw.
            expand: Function that compiles a phrase. With None, `choice` is used, and dependent symbols are checked to
                be drawable.

        Raises InputError if labels are inconsistent, and NothingFits if nothing can be drawn for a symbol.
        """
        kinds: dict[Hashable, Symbol] = {}  # symbols without their forms and labels
        forms: dict[Hashable, dict[str, None]] = {}
        for key, symbol in itertools.chain.from_iterable(sides):
            kind = symbol._replace(form=None, label=None)
            before = kinds.setdefault(key, kind)
            if before.name != kind.name or ((key in forms) != (symbol.form is not None) and before is not kind):
                raise InputError(f"{symbol} and {before} have the same label. Use another label for one of them.")
            if kind.arguments != before.arguments:  # conditions are combined, but a phrase may have a feature twice
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
        """Raise NothingFits if a draw depends on a single other draw, and nothing can be drawn for any of its rows."""
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
        """Number the draws in the order of the line, but each draw after the draws that it refers to."""
        for kind in kinds.values():
            for text, (label, column) in kind.references().items():
                if label not in forms:
                    raise InputError(
                        f"{kind}: {text}: there is no row '{label}:table.form' in this line. Add it, or use another "
                        "label."
                    )
                self.lexicon.check_columns(kinds[label], [column])
        order: dict[Hashable, int] = {}
        while len(order) < len(kinds):
            waiting = [key for key in kinds if key not in order]
            references = ((key, kinds[key].references().values()) for key in waiting)
            ready = next((key for key, cells in references if all(label in order for label, _ in cells)), None)
            if ready is None:
                raise InputError(
                    f"{', '.join(str(kinds[key]) for key in waiting)}: these labels refer to each other. Remove one of "
                    "the references."
                )
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
        """Draw a row or words for each draw of a frame. Raises NothingFits if nothing fits the rows drawn earlier."""
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
                again = number in seen  # the row has been used, under the same label, so it isn't a second entry
                words.append(content[form] if again else self.lexicon.entry(frame.draws[number].symbol, content, form))
                seen.add(number)
        return words

    def draw(self, symbol: Symbol, rng: random.Random) -> list[str]:
        """Draw random words for a symbol without variables. Raises NothingFits if there are none."""
        return self._walk(self.choice(symbol), rng)

    def _walk(self, choice: Choice, rng: random.Random) -> list[str]:
        words: list[str] = []
        stack: list[str | Choice] = [choice]
        uniform = rng.random  # the only method of Random that returns the same numbers in all versions of Python
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
    """Read a grammar from a folder with grammar.yaml and lexicon/*.tsv. Raises InputError if they are inconsistent.

    `knows` restricts the words as in Lexicon.
    """
    description = yaml.safe_load((folder / "grammar.yaml").read_text("utf-8"))
    tables = {file.stem: read_table(file) for file in sorted((folder / "lexicon").glob("*.tsv"))}
    return Grammar(description, tables, knows)
