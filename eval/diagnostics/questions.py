"""The questions of a diagnostic, contexts and words that may end them, as a table from files. Imports no torch."""

from dataclasses import dataclass
from typing import Annotated, TypeVar

import msgspec
import pandas as pd

from eval.benchmarks.files import file_rows, given_path
from eval.benchmarks.known_items import unpublished_questions_note
from eval.diagnostics.config import DiagnosticConfig
from eval.diagnostics.diagnostic import diagnostics
from pairscale.errors import InputError, check_choice
from pairscale.files import sha256_json

QUESTIONS = ("item", "condition", "trial", "group", "context", "candidate", "role", "cloze")
Filled = Annotated[str, msgspec.Meta(pattern=r"[^\s|]")]  # a cell that is not empty; | separates words in one

_STRAIGHT = str.maketrans("“”‘’", "\"\"''")


class Item(msgspec.Struct):
    """A row of a diagnostic's file. Subclasses declare its other columns, and what their cells may be."""

    item: Filled


T = TypeVar("T", bound=Item)


@dataclass(frozen=True)
class Questions:
    """All questions of a diagnostic.

    rows: item, condition, trial (1, 2, ... of conditions drawn at random, else null), group (cprag: constraint H or L;
    neg: licensing Y or N; else null), context, candidate, role (expected, ..., target, true, false), cloze (share of
    people who gave the candidate; null where not published).
    digest: SHA-256 over them. notes: sentences on what is odd about them.
    """

    rows: pd.DataFrame
    digest: str
    notes: tuple[str, ...] = ()


def load_questions(config: DiagnosticConfig) -> Questions:
    """Read the files of the diagnostic that `config` names.

    Raises InputError for missing files and, with the line, wrong rows, ConfigError for an unknown diagnostic.
    """
    check_choice("benchmark.name", config.name, diagnostics())
    questions = diagnostics()[config.name].questions(config)
    cells = [[question.get(name) for name in QUESTIONS] for question in questions]
    frame = pd.DataFrame(cells, columns=list(QUESTIONS))
    note = unpublished_questions_note(config.name, frame)
    frame = frame.astype({"trial": "Int32", "cloze": "float64", "group": "str"})
    return Questions(frame, sha256_json(cells), (note,) if note else ())


def read_rows(config: DiagnosticConfig, name: str, schema: type[T]) -> list[T]:
    """Return the rows of the file `name`, a table with tabs; `schema` declares its columns.

    Raises InputError for a missing or empty file, a repeated item and, with the line, a row that is not as declared.
    """
    file = given_path(config.name, config.path, f" with {name}", f" with {name}") / name
    if not file.is_file():
        raise InputError(f"benchmark.path: no file {file}")
    rows: dict[str, T] = {}
    for where, cells in file_rows(file, "\t", quotes=False):
        if config.quote_marks == "straight":
            cells = {column: cell.translate(_STRAIGHT) for column, cell in cells.items()}
        try:
            row = msgspec.convert(cells, schema, strict=False)
        except msgspec.ValidationError as reason:
            raise InputError(f"{where}: not a row of {name} as published ({reason})") from None
        if row.item in rows:
            raise InputError(f"{where}: item {row.item} is in the file already")
        rows[row.item] = row
    return list(rows.values())
