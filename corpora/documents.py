"""What every source of text gives."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Document:
    """Sentences that belong together, each without line breaks.

    source: where it comes from; splits are drawn within each source.
    split: "train", "valid" or "test" where the source publishes its splits, else None.
    """

    source: str
    sentences: list[str]
    split: str | None = None
