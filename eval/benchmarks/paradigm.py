"""Generate the minimal pairs of a paradigm from skeletons, which describe both sentences of a pair.

    the noun.n[kind=person] {auxiliary.n[use=perfect] / auxiliary.-n[use=perfect]} Core[participle, n, g] .

For the notation, see corpora/grammar/symbols.py. Braces contain the contrast, {good / bad}. Everything outside braces
is the same in both sentences. Two forms from a table with the same conditions are forms of the same word, and so are
two forms with the same label. "*" before a symbol marks the word that the two-prefix method compares.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from corpora.grammar.engine import Frame, Grammar
from corpora.grammar.lexicon import Entry, NothingFits, Row
from corpora.grammar.symbols import Binding, Symbol, parse_symbols, split_symbols
from pairscale.errors import InputError

KEYS = ("phenomenon", "field", "prefix", "skeleton")  # CLiMP's paradigms have no field
PREFIX_METHODS = ("one", "two", "none")
ATTEMPTS = 20_000  # number of draws without a new pair after which a paradigm is considered exhausted
FIRST_ATTEMPTS = 4_000  # the same for the first pair, because a paradigm that needs more never reaches hundreds
REFILL = 500  # draws that each new pair adds, which limits the average number of draws per pair

_CONTRAST = re.compile(r"\{([^{}]*)\}")
_MACRO = re.compile(r"\$([A-Za-z_]+)")
T = TypeVar("T")
# A skeleton with values for its variables, and the number of parts before the critical word of the good sentence. The
# sides of the skeleton are the good and the bad sentence.
Skeleton = tuple[Frame, int | None]


class Exhausted(InputError):
    """A paradigm has no further pairs."""


class Paradigm:
    """A paradigm with its phenomenon, its prefix method, and skeletons, one of which is drawn for each pair.

    `left_out` maps skeletons with values of variables to the reason why they can't be filled.
    """

    def __init__(self, name: str, description: Mapping[str, Any], grammar: Grammar, where: str | None = None):
        """Read a description. Raises InputError, with a message that begins with `where`, if it is invalid."""
        self.name = name
        self._where = where or f"paradigms.yaml: {name}"
        if {*description, "field"} != set(KEYS) or description["prefix"] not in PREFIX_METHODS:
            raise InputError(
                f"{self._where}: the keys of this paradigm are wrong. Write the keys {', '.join(KEYS)}, and set prefix "
                f"to one, two or none."
            )
        self.phenomenon: str = description["phenomenon"]
        self.field: str | None = description.get("field")
        self.prefix: str = description["prefix"]
        self._grammar = grammar
        self.left_out: dict[str, str] = {}
        skeletons = description["skeleton"]
        texts = [skeletons] if isinstance(skeletons, str) else skeletons
        bound = [self._bind(full) for text in texts for full in self._with_macros(text)]
        self._skeletons = [skeletons for skeletons in bound if skeletons]
        if not self._skeletons:
            raise NothingFits(f"{self._where}: {next(iter(self.left_out.values()))}")

    def pairs(
        self, rng: random.Random, count: int, refused: Callable[[str, str], str | None] = lambda good, bad: None
    ) -> Iterator[dict[str, Any]]:
        """Yield `count` different pairs, with the keys of BLiMP's JSON Lines.

        If `refused` (good, bad) returns a reason, the pair is skipped. Raises Exhausted, with the most frequent
        reasons, after ATTEMPTS draws without a new pair, or FIRST_ATTEMPTS draws without any pair.
        """
        seen: set[str] = set()
        against: Counter[str] = Counter()
        left = FIRST_ATTEMPTS
        written = self._grammar.spelling.text
        while len(seen) < count:
            if not left:
                reasons = "; ".join(f"{number:,} because {reason}" for reason, number in against.most_common(3))
                draws = f"{against.total():,} further draws were rejected"
                raise Exhausted(f"{self._where}: only {len(seen)} pairs can be drawn. {draws} ({reasons})")
            left -= 1
            try:
                good, bad, critical = self._draw(rng)
            except NothingFits as error:
                against[str(error)] += 1
                continue
            sentence = written(good)
            reason = self._unfit(good, bad, sentence in seen) or refused(sentence, written(bad))
            if reason:
                against[reason] += 1
                continue
            yield {
                "sentence_good": sentence,
                "sentence_bad": written(bad),
                "field": self.field,
                "linguistics_term": self.phenomenon,
                "UID": self.name,
                "simple_LM_method": True,
                "one_prefix_method": self.prefix == "one",
                "two_prefix_method": self.prefix == "two",
                "lexically_identical": sorted(map(str.lower, good)) == sorted(map(str.lower, bad)),
                **self._prefixes(good, bad, critical),
                "pairID": str(len(seen)),
            }
            seen.add(sentence)
            against.clear()
            left = min(ATTEMPTS, left + REFILL) if len(seen) > 1 else ATTEMPTS

    def _unfit(self, good: list[str], bad: list[str], seen: bool) -> str | None:
        length = self._grammar.spelling.length
        if len(good) != len(bad) or length(good) != length(bad):
            return "the sentences have different lengths"
        if self._grammar.length is not None and len(good) not in self._grammar.length:
            return "the sentences are too short or too long"
        if good == bad:
            return "the sentences are equal"
        return "the good sentence was drawn before" if seen else None

    def _prefixes(self, good: list[str], bad: list[str], critical: int | None) -> dict[str, str]:
        written = self._grammar.spelling.text
        if self.prefix == "one":
            first = next(index for index, words in enumerate(zip(good, bad, strict=True)) if words[0] != words[1])
            names = ("one_prefix_prefix", "one_prefix_word_good", "one_prefix_word_bad")
            return dict(zip(names, (written(good[:first]), good[first], bad[first]), strict=True))
        if critical is None:
            return {}
        names = ("two_prefix_prefix_good", "two_prefix_prefix_bad", "two_prefix_word")
        return dict(zip(names, (written(good[:critical]), written(bad[:critical]), good[critical]), strict=True))

    def _draw(self, rng: random.Random) -> tuple[list[str], list[str], int | None]:
        """Return the words of both sentences, and the critical word's index. Raises NothingFits if no words fit."""
        frame, before_critical = _one_of(_one_of(self._skeletons, rng), rng)
        contents = self._grammar.fill(frame, rng)
        if self._grammar.lexicon.distinct:
            self._check_distinct(frame, contents)
        parts = [[_words(contents[number], form) for number, form in side] for side in frame.sides]
        good, bad = (self._grammar.spelling.spell([word for part in side for word in part]) for side in parts)
        return good, bad, None if before_critical is None else sum(map(len, parts[0][:before_critical]))

    def _check_distinct(self, frame: Frame, contents: Sequence[Row | list[str]]) -> None:
        used: set[int] = set()
        for draw, content in zip(frame.draws, contents, strict=True):
            if isinstance(content, list):
                rows = [entry.row for entry in {id(word): word for word in content if type(word) is Entry}.values()]
            else:
                rows = [content] if draw.symbol.name in self._grammar.lexicon.distinct else []
            for row in rows:
                if id(row) in used:
                    raise NothingFits(f"the word for {draw.symbol} occurs twice")
                used.add(id(row))

    def _with_macros(self, text: str) -> list[str]:
        """Return the skeleton once for each combination of its macros' texts."""
        macro = _MACRO.search(text)
        if not macro:
            return [text]
        if macro[1] not in self._grammar.macros:
            available = ", ".join(self._grammar.macros) or "none"
            raise InputError(
                f"{self._where}: grammar.yaml has no macro '{macro[0]}'. Define it there. Existing macros: {available}."
            )
        before, after = text[: macro.start()], text[macro.end() :]
        return [full for one in self._grammar.macros[macro[1]] for full in self._with_macros(before + one + after)]

    def _bind(self, text: str) -> list[Skeleton]:
        good: list[Symbol] = []
        bad: list[Symbol] = []
        shared: list[tuple[int, int]] = []  # indices in good and in bad of the common symbols
        before_critical = None
        for index, piece in enumerate(_CONTRAST.split(text)):
            if index % 2:
                sides = piece.split("/")
                if len(sides) != 2:
                    raise InputError(f"{self._where}: '{{{piece}}}' must have two sides: {{good / bad}}.")
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
            raise InputError(
                f"{self._where}: '*' is needed with prefix two, and can't be used otherwise. Mark the critical word "
                f"with '*', or remove '*', in {text}"
            )
        skeletons = []
        try:
            for binding in self._grammar.bindings([*good, *bad], {}):
                try:
                    sides_of = [_keyed(side, symbols, shared, binding) for side, symbols in enumerate((good, bad))]
                    skeletons.append((self._grammar.frame(sides_of), before_critical))
                except NothingFits as error:
                    values = ", ".join(f"{name}={value}" for name, value in binding.items())
                    self.left_out[f"{text} ({values})" if values else text] = str(error)
        except InputError as error:
            raise InputError(f"{self._where}: {error}") from None
        return skeletons


def _words(content: Row | list[str], form: str | None) -> list[str]:
    """Return the words of a phrase, or one form from a table's row."""
    return content if isinstance(content, list) else [content[str(form)]]


def _keyed(
    side: int, symbols: Sequence[Symbol], shared: Sequence[tuple[int, int]], binding: Binding
) -> list[tuple[Hashable, Symbol]]:
    """Return one side's symbols with keys, which are a label, a place that both sides share, or a kind and number."""
    numbers = {places[side]: -number for number, places in enumerate(shared, start=1)}
    counts: Counter[Symbol] = Counter()
    keyed: list[tuple[Hashable, Symbol]] = []
    for place, symbol in enumerate(one.bind(binding) for one in symbols):
        kind = symbol._replace(form=None) if symbol.kind == "table" else symbol
        if place not in numbers:
            counts[kind] += 1
        keyed.append((symbol.label or (kind, numbers.get(place, counts[kind])), symbol))
    return keyed


def _one_of(options: Sequence[T], rng: random.Random) -> T:
    return options[int(rng.random() * len(options))]
