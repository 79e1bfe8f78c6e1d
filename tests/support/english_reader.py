"""A reader of generated English that knows the lexicon and no template: entries of a sentence, and what they name."""

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
    """An entry of the lexicon in a sentence; `readings`: (table, column, row) that its form may be."""

    text: str
    readings: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...]

    def rows(self, name: str) -> list[tuple[str, Row]]:
        """Readings as words of a table: (column, row)."""
        return [(column, dict(row)) for found, column, row in self.readings if found == name]


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
    found: dict[str, list[tuple[str, str, tuple[tuple[str, str], ...]]]] = {}
    for name, used in columns.items():
        for row in table(name):
            for column in used:
                found.setdefault(row[column].lower(), []).append((name, column, tuple(row.items())))
    return found


def read(sentence: str) -> list[Token]:
    """The entries of a sentence, longest first; what is none of them ("by", "who") is a token without readings."""
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
    """Classes of what a token names: those of a noun, or a person's name."""
    found = {value for _, row in token.rows("noun") for value in row["class"].split("|")}
    return found | ({"person"} if token.rows("name") else set())


def phrase(tokens: list[Token]) -> set[str]:
    """Classes of the head of a noun phrase: its first noun or name before "of", where the last of several counts."""
    before = [token.text for token in tokens]
    heads = tokens[: before.index("of")] if "of" in before else tokens
    named = [token for token in heads if classes(token)]
    return classes(named[-1]) if named else set()
