"""Functions that read cells. Each raises InputError, with the row's place (`where`) and column, for an invalid cell."""

import re
from collections.abc import Sequence
from typing import Any

from pairscale.errors import InputError

_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_FLAGS = {"true": True, "false": False, "": None}


def shown(cell: Any) -> str:
    """Return a cell as it is printed in an error."""
    text = repr(cell)
    return text if len(text) <= 80 else f"{text[:77]}..."


def is_empty(cell: Any) -> bool:
    """Return True if a cell is missing or contains only white space."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def check_encodes(text: str, where: str, column: str) -> None:
    """Raise InputError if a text contains NUL or half a surrogate pair, which cannot be written to a file."""
    if _NO_TEXT.search(text):
        raise InputError(
            f"{where}: {column} is {shown(text)}, which contains NUL or half a surrogate pair and so is not valid text."
        )


def sentence_of(cell: Any, where: str, column: str) -> str:
    """Return a sentence unchanged. The cell must contain text, not only white space."""
    if not isinstance(cell, str) or is_empty(cell):
        raise InputError(f"{where}: {column} is {shown(cell)}, but must be text.")
    check_encodes(cell, where, column)
    return cell


def name_of(cell: Any, where: str, column: str) -> str:
    """Return a name or an id, which must be text or a whole number, without white space around it."""
    if type(cell) is int:
        return str(cell)
    if not isinstance(cell, str) or is_empty(cell):
        raise InputError(f"{where}: {column} is {shown(cell)}, but must be text or a whole number.")
    return sentence_of(cell.strip(), where, column)


def label_of(cell: Any, where: str, column: str) -> str:
    """Return a label as case-folded text. It may be a JSON true or false."""
    return name_of(str(cell) if isinstance(cell, bool) else cell, where, column).casefold()


def flag_of(cell: Any, where: str, column: str) -> bool | None:
    """Return the value of a cell that must be true, false or empty (None)."""
    text = "" if is_empty(cell) else str(cell).strip().lower()
    if text not in _FLAGS:
        raise InputError(f"{where}: {column} is {shown(cell)}, but must be true or false.")
    return _FLAGS[text]


def part_of(cell: Any, where: str, column: str) -> str | None:
    """Return a part of a sentence without white space around it, which some of BLiMP's have; None for an empty cell."""
    return None if is_empty(cell) else sentence_of(cell, where, column).strip()


def blanks_note(sentences: Sequence[str]) -> str | None:
    """Return a note on how many sentences begin or end with white space, which models read; None if none does."""
    blank = sum(sentence != sentence.strip() for sentence in sentences)
    if not blank:
        return None
    return f"{blank:,} of {len(sentences):,} sentences begin or end with white space, which is scored."
