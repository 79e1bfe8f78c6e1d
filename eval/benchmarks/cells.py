"""Readers of cells; each raises InputError for other contents, naming the row's place `where` and the `column`."""

from collections.abc import Sequence
from typing import Any

from pairscale.errors import InputError


def shown(cell: Any) -> str:
    """Return a cell as errors show it."""
    text = repr(cell)
    return text if len(text) <= 80 else f"{text[:77]}..."


def check_encodes(text: str, where: str, column: str) -> None:
    """Raise InputError for text with NUL or half a surrogate pair, which no file takes."""
    if "\0" in text:
        raise InputError(f"{where}: {column} is {shown(text)}: the character NUL is no text")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: {column} is {shown(text)}: half a surrogate pair at character {error.start + 1} is no text"
        ) from None


def sentence_of(cell: Any, where: str, column: str) -> str:
    """Return a sentence as it stands in its cell, which must be text and more than white space."""
    if not isinstance(cell, str) or not cell.strip():
        raise InputError(f"{where}: {column} is {shown(cell)}, must be text")
    check_encodes(cell, where, column)
    return cell


def name_of(cell: Any, where: str, column: str) -> str:
    """Return a name or an id without white space around it: text or a whole number."""
    if isinstance(cell, int) and not isinstance(cell, bool):
        return str(cell)
    if not isinstance(cell, str) or not cell.strip():
        raise InputError(f"{where}: {column} is {shown(cell)}, must be text or a whole number")
    return sentence_of(cell.strip(), where, column)


def flag_of(cell: Any, where: str, column: str) -> bool | None:
    """Return the value of a cell that must be true, false or empty (None)."""
    known = {"true": True, "false": False, "": None}
    if cell is None or isinstance(cell, bool):
        return cell
    if isinstance(cell, str) and cell.strip().lower() in known:
        return known[cell.strip().lower()]
    raise InputError(f"{where}: {column} is {shown(cell)}, must be true or false")


def part_of(cell: Any, where: str, column: str) -> str | None:
    """Return a part of a sentence without white space around it (some of BLiMP's have it); None for an empty cell."""
    empty = cell is None or (isinstance(cell, str) and not cell.strip())
    return None if empty else sentence_of(cell, where, column).strip()


def blanks_note(sentences: Sequence[str]) -> str | None:
    """Return a sentence on how many begin or end with white space, which models read; None if none does."""
    blank = sum(sentence != sentence.strip() for sentence in sentences)
    if not blank:
        return None
    return f"{blank:,} of {len(sentences):,} sentences begin or end with white space, which is scored"
