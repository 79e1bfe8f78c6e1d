"""Schema of the section `surprisal`: how `python -m eval.surprisal` reads a file."""

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from pairscale.errors import ConfigError


@dataclass(kw_only=True)
class SurprisalConfig:
    """The columns of a table, and what a model sees before a word."""

    text_column: str = "text"  # a sentence or a longer text a row
    word_column: str = "word"  # if a table has it: a word, or region, a row
    id_column: str = "text_id"  # of the text: consecutive rows of one id, of which texts of words are made
    document_column: str = "document"  # of context=document: consecutive rows of one document
    context: Literal["text", "document"] = "text"  # text: each text is read alone; document: after those before it
    # tokens that are read at a time; null: 1,024, or as many as the model reads
    window: Annotated[int, Meta(ge=2, le=10**6)] | None = None
    step: Annotated[int, Meta(ge=1, le=10**6)] | None = None  # tokens that each further window adds; null: half of it

    def __post_init__(self) -> None:
        columns = [self.text_column, self.word_column, self.id_column, self.document_column]
        if len(set(columns)) < len(columns) or "" in columns:
            raise ConfigError(f"surprisal: columns {', '.join(columns)}: must be four different names")
