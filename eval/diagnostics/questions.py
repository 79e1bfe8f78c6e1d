"""The questions of a diagnostic, contexts and words that may end them, as a table from files. Imports no torch."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from eval.benchmarks.files import given_path
from eval.benchmarks.known_items import unpublished_questions_note
from eval.diagnostics.config import DiagnosticConfig
from eval.diagnostics.diagnostic import diagnostics
from pairscale.errors import InputError, check_choice
from pairscale.files import sha256_json

QUESTIONS = ("item", "condition", "trial", "group", "context", "candidate", "role", "cloze")

_STRAIGHT = str.maketrans("“”‘’", "\"\"''")


@dataclass(frozen=True)
class Questions:
    """All questions of a diagnostic.

    rows: item, condition, trial (1, 2, ... of conditions drawn at random, else null), group (cprag: constraint H or L;
    neg: licensing Y or N; else null), context, candidate, role (expected, ..., target, true, false), cloze (share of
    people who gave the candidate; null where not published).
    digest: SHA-256 over them. notes: sentences on what is odd about them.
    """

    name: str
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
    return Questions(config.name, frame, sha256_json(cells), (note,) if note else ())


@dataclass(frozen=True)
class Row:
    """The cells of a row by column, without white space around them; `where`: file and line."""

    where: str
    cells: dict[str, str]

    def __getitem__(self, column: str) -> str:
        return self.cells[column]

    def letter(self, column: str, letters: str) -> str:
        """Return the cell of a column. Raises InputError unless it is one of `letters`."""
        if self[column] not in tuple(letters):
            raise InputError(f"{self.where}: {column} is {self[column]!r}, must be {' or '.join(letters)}")
        return self[column]

    def share(self, column: str) -> float:
        """Return the number in a column. Raises InputError unless it is from 0 to 1."""
        try:
            value = float(self[column])
        except ValueError:
            value = -1.0
        if not 0 <= value <= 1:
            raise InputError(f"{self.where}: {column} is {self[column]!r}, must be a share of people from 0 to 1")
        return value


def read_rows(config: DiagnosticConfig, name: str, columns: tuple[str, ...]) -> Iterator[Row]:
    """Yield the rows, named by "item", of a table with tabs and `columns`. Raises InputError, with line, for others."""
    file = question_file(config, name)
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8 ({error.reason} at byte {error.start})") from None
    header, *lines = [[cell.strip() for cell in line.split("\t")] for line in text.split("\n")]
    for column in columns:
        if column not in header:
            raise InputError(f"{file}: line 1: no column {column}; got {', '.join(header)}")
    line_of: dict[str, int] = {}
    for number, cells in enumerate(lines, start=2):
        where = f"{file}: line {number}"
        if not any(cells):
            continue
        if len(cells) != len(header):
            raise InputError(f"{where}: {len(cells)} columns, must be {len(header)}")
        row = {column: cells[header.index(column)] for column in columns}
        if config.quote_marks == "straight":
            row = {column: cell.translate(_STRAIGHT) for column, cell in row.items()}
        if empty := [column for column in columns if not row[column].strip("|")]:
            raise InputError(f"{where}: {empty[0]} is empty")
        if row["item"] in line_of:
            raise InputError(f"{where}: item {row['item']} is in line {line_of[row['item']]} already")
        line_of[row["item"]] = number
        yield Row(where, row)
    if not line_of:
        raise InputError(f"{file}: no items in it")


def question_file(config: DiagnosticConfig, name: str) -> Path:
    """Return the path of a diagnostic's file. Raises InputError if it is missing."""
    folder = given_path(config.name, config.path, f" with {name}", f" with {name}")
    if not folder.is_dir():
        raise InputError(f"benchmark.path: no folder {folder} (with {name})")
    if not (folder / name).is_file():
        raise InputError(f"benchmark.path: no file {name} in {folder}")
    return folder / name
