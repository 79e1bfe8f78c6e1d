"""Read cells of tables. If a cell is invalid, each function raises InputError with the row's place and the column."""

import re
from collections.abc import Sequence
from typing import Any

from pairscale.errors import InputError

_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_FLAGS = {"true": True, "false": False, "": None}


def shown(cell: Any) -> str:
    """Format a cell for an error message, with at most 80 characters."""
    text = repr(cell)
    return text if len(text) <= 80 else f"{text[:77]}..."


def is_empty(cell: Any) -> bool:
    """Return True if a cell is missing or contains only white space."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def check_encodes(text: str, where: str, column: str) -> None:
    """Raise InputError if a text contains NUL or half a surrogate pair, because these can't be written to a file."""
    if _NO_TEXT.search(text):
        raise InputError(
            f"{where}: {column} is not valid text: {shown(text)}. Remove NUL characters and halves of surrogate pairs."
        )


def sentence_of(cell: Any, where: str, column: str) -> str:
    """Return a sentence unchanged. The cell must contain text other than white space."""
    if not isinstance(cell, str) or is_empty(cell):
        raise InputError(f"{where}: {column} is {shown(cell)}, but must be text. Correct this cell.")
    check_encodes(cell, where, column)
    return cell


def name_of(cell: Any, where: str, column: str) -> str:
    """Return a name or an id, without white space around it. The cell must contain text or a whole number."""
    if type(cell) is int:
        return str(cell)
    if not isinstance(cell, str) or is_empty(cell):
        raise InputError(f"{where}: {column} is {shown(cell)}, but must be text or a whole number. Correct this cell.")
    return sentence_of(cell.strip(), where, column)


def label_of(cell: Any, where: str, column: str) -> str:
    """Return a label as case-folded text. The cell may also contain true or false in JSON."""
    return name_of(str(cell) if isinstance(cell, bool) else cell, where, column).casefold()


def flag_of(cell: Any, where: str, column: str) -> bool | None:
    """Return True, False, or None for an empty cell."""
    text = "" if is_empty(cell) else str(cell).strip().lower()
    if text not in _FLAGS:
        raise InputError(f"{where}: {column} is {shown(cell)}, but must be true or false. Correct this cell.")
    return _FLAGS[text]


def part_of(cell: Any, where: str, column: str) -> str | None:
    """Return a part of a sentence, without the white space that BLiMP may have around it, or None if it is empty."""
    return None if is_empty(cell) else sentence_of(cell, where, column).strip()


def blanks_note(sentences: Sequence[str]) -> str | None:
    """Return a note if sentences begin or end with white space, because models read it, and None otherwise."""
    blank = sum(sentence != sentence.strip() for sentence in sentences)
    if not blank:
        return None
    return f"{blank:,} of {len(sentences):,} sentences begin or end with white space. It is scored with the sentence."
