"""Documents, as every source of text yields them."""

from dataclasses import dataclass


@dataclass(slots=True)
class Document:
    """Sentences that belong together, each without line breaks. Splits are drawn within each `source` (its name).

    split: "train", "valid" or "test" if the source publishes its splits, else None.
    """

    source: str
    sentences: list[str]
    split: str | None = None
