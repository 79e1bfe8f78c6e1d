"""Schema of the section `find`."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from pairscale.command.schemas import Seed


@dataclass(kw_only=True)
class FindConfig:
    """What python -m corpora.find shows of a filter's matches."""

    show: Annotated[int, Meta(ge=0, le=10**6)] = 20  # matching sentences of the train split, drawn at random
    tree: bool = False  # show their trees, too, with the names of the pattern's nodes
    sheet: str | None = None  # a CSV file of sentences to judge: written if it does not exist, else read
    sentences: Annotated[int, Meta(ge=1, le=10**5)] = 100  # of the sheet: as many that match and as many that do not
    seed: Seed = 1  # draws the sentences
