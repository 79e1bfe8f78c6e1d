"""Spellings: the words of a sentence as text, in English (capitals, "an", spaces and marks) or Mandarin."""

from collections.abc import Collection, Sequence
from typing import Protocol

from corpora.grammar.symbols import MARKS
from pairscale.errors import InputError

SPELLINGS = ("english", "mandarin")


class Spelling(Protocol):
    """The spelling of a language."""

    def spell(self, words: Sequence[str]) -> list[str]:
        """Return the first words of a sentence as they are written."""

    def text(self, spelt: Sequence[str]) -> str:
        """Return the text of a sentence, or of its beginning, from spelt words."""

    def length(self, spelt: Sequence[str]) -> int:
        """Return the length that must be equal in both sentences of a pair, besides their number of entries."""


class English:
    """Spaces between words, none before a mark; "an" before a vowel; a capital at the start.

    vowel, consonant: words whose first letter misleads about their first sound ("hour"; "university").
    """

    def __init__(self, vowel: Collection[str] = (), consonant: Collection[str] = ()):
        self._sounds = dict.fromkeys(vowel, True) | dict.fromkeys(consonant, False)

    def spell(self, words: Sequence[str]) -> list[str]:
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
        return "".join(word if word in MARKS else f" {word}" for word in spelt)[1:]

    def length(self, spelt: Sequence[str]) -> int:
        return len(spelt)


class Mandarin:
    """Words without spaces."""

    def spell(self, words: Sequence[str]) -> list[str]:
        return list(words)

    def text(self, spelt: Sequence[str]) -> str:
        return "".join(spelt)

    def length(self, spelt: Sequence[str]) -> int:
        return sum(map(len, spelt))  # characters, as in CLiMP


def spelling_of(name: str, vowel: Collection[str] = (), consonant: Collection[str] = ()) -> Spelling:
    """Return the spelling with this name in grammar.yaml. Raises InputError for an unknown name."""
    match name:
        case "english":
            return English(vowel, consonant)
        case "mandarin":
            return Mandarin()
    raise InputError(f"grammar.yaml: spelling: {name}: must be one of {', '.join(SPELLINGS)}")
