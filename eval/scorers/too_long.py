"""The error for a text that is longer than a model reads: which text that was is told by whoever knows it."""

from __future__ import annotations

from eval.benchmarks.cells import shown
from pairscale.errors import InputError


class TextTooLong(InputError):
    """A text has more tokens than a model reads; `index`: which of the texts that were given."""

    def __init__(self, name: str, positions: int, text: str, tokens: int, index: int):
        super().__init__(f"{name} reads {positions:,} tokens at most; {shown(text)} has {tokens:,}")
        self.index = index

    def at(self, index: int) -> TextTooLong:
        """The same error about another list of texts."""
        self.index = index
        return self
