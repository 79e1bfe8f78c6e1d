"""Schema of the section `surprisal`: how `python -m eval.surprisal` reads a file."""

from dataclasses import dataclass

from pairscale.errors import ConfigError, check_between, check_choice

CONTEXTS = ("text", "document")


@dataclass
class SurprisalConfig:
    """The columns of a table, and what a model sees before a word."""

    text_column: str = "text"  # a sentence or a longer text a row
    word_column: str = "word"  # if a table has it: a word, or region, a row
    id_column: str = "text_id"  # of the text: consecutive rows of one id, of which texts of words are made
    document_column: str = "document"  # of context=document: consecutive rows of one document
    context: str = "text"  # text: each text is read alone; document: after those before it
    window: int | None = None  # tokens that are read at a time; null: 1,024, or as many as the model reads
    step: int | None = None  # tokens that each further window adds; null: half of it

    def __post_init__(self) -> None:
        check_choice("surprisal.context", self.context, CONTEXTS)
        check_between("surprisal.window", self.window, 2, 10**6)
        check_between("surprisal.step", self.step, 1, 10**6)
        columns = [self.text_column, self.word_column, self.id_column, self.document_column]
        if len(set(columns)) < len(columns) or "" in columns:
            raise ConfigError(f"surprisal: columns {', '.join(columns)}: must be four different names")
