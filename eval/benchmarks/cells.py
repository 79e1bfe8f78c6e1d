"""Readers of cells; each raises InputError for other contents, naming the row's place `where` and the `column`."""

import re
from collections.abc import Sequence
from typing import Any

from pairscale.errors import InputError

_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_FLAGS = {"true": True, "false": False, "": None}


def shown(cell: Any) -> str:
    """Return a cell as errors show it."""
    text = repr(cell)
    return text if len(text) <= 80 else f"{text[:77]}..."


def is_empty(cell: Any) -> bool:
    """Return True for a missing cell, and for one of white space."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def check_encodes(text: str, where: str, column: str) -> None:
    """Raise InputError for text with NUL or half a surrogate pair, which no file takes."""
    if _NO_TEXT.search(text):
        raise InputError(f"{where}: {column} is {shown(text)}: NUL and half a surrogate pair are no text")


def sentence_of(cell: Any, where: str, column: str) -> str:
    """Return a sentence as it stands in its cell, which must be text and more than white space."""
    if not isinstance(cell, str) or is_empty(cell):
        raise InputError(f"{where}: {column} is {shown(cell)}, must be text")
    check_encodes(cell, where, column)
    return cell


def name_of(cell: Any, where: str, column: str) -> str:
    """Return a name or an id without white space around it: text or a whole number."""
    if type(cell) is int:
        return str(cell)
    if not isinstance(cell, str) or is_empty(cell):
        raise InputError(f"{where}: {column} is {shown(cell)}, must be text or a whole number")
    return sentence_of(cell.strip(), where, column)


def label_of(cell: Any, where: str, column: str) -> str:
    """Return a label as text that is compared without regard to case; true and false may be those of JSON."""
    return name_of(str(cell) if isinstance(cell, bool) else cell, where, column).casefold()


def flag_of(cell: Any, where: str, column: str) -> bool | None:
    """Return the value of a cell that must be true, false or empty (None)."""
    text = "" if is_empty(cell) else str(cell).strip().lower()
    if text not in _FLAGS:
        raise InputError(f"{where}: {column} is {shown(cell)}, must be true or false")
    return _FLAGS[text]


def part_of(cell: Any, where: str, column: str) -> str | None:
    """Return a part of a sentence without white space around it (some of BLiMP's have it); None for an empty cell."""
    return None if is_empty(cell) else sentence_of(cell, where, column).strip()


def blanks_note(sentences: Sequence[str]) -> str | None:
    """Return a sentence on how many begin or end with white space, which models read; None if none does."""
    blank = sum(sentence != sentence.strip() for sentence in sentences)
    if not blank:
        return None
    return f"{blank:,} of {len(sentences):,} sentences begin or end with white space, which is scored"
