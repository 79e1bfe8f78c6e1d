"""A reader of generated English that knows the lexicon but no template: entries of a sentence and their classes."""

from dataclasses import dataclass
from functools import cache

from corpora.grammar.lexicon import read_table
from eval.benchmarks.generated import FOLDER

ENGLISH = FOLDER / "english"
VERB_FORMS = {"third": "VBZ", "past": "VBD", "participle": "VBN", "ing": "VBG"}

Row = dict[str, str]


def table(name: str) -> list[Row]:
    return read_table(ENGLISH / "lexicon" / f"{name}.tsv")


@dataclass(frozen=True)
class Token:
    """An entry of the lexicon in a sentence; `readings` are the (table, column, row) of its form."""

    text: str
    readings: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...]

    def rows(self, name: str) -> list[tuple[str, Row]]:
        """Return its readings in one table: (column, row)."""
        return [(column, dict(row)) for table, column, row in self.readings if table == name]


@cache
def forms() -> dict[str, list[tuple[str, str, tuple[tuple[str, str], ...]]]]:
    columns = {
        "noun": ("singular", "plural"),
        "name": ("word",),
        "verb": ("base", *VERB_FORMS),
        "reflexive": ("word",),
        "adjective": ("word",),
        "determiner": ("singular", "plural"),
    }
    readings: dict[str, list[tuple[str, str, tuple[tuple[str, str], ...]]]] = {}
    for name, form_columns in columns.items():
        for row in table(name):
            for column in form_columns:
                readings.setdefault(row[column].lower(), []).append((name, column, tuple(row.items())))
    return readings


def read(sentence: str) -> list[Token]:
    """Split a sentence into entries, longest first; a word of no entry ("by", "who") is a token without readings."""
    words = sentence.rstrip(".?").replace("'s ", " 's ").split()
    tokens = []
    while words:
        for size in range(min(4, len(words)), 0, -1):
            text = " ".join(words[:size]).lower()
            if size == 1 or text in forms():
                tokens.append(Token(text, tuple(forms().get(text, ()))))
                words = words[size:]
                break
    return tokens


def classes(token: Token) -> set[str]:
    """Return the classes of a token: those of a noun, or `person` for a name."""
    classes = {value for _, row in token.rows("noun") for value in row["class"].split("|")}
    return classes | ({"person"} if token.rows("name") else set())
