"""The questions of a diagnostic, contexts and words that may end them, as a table from files. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
import numpy as np
import pandas as pd

from eval.benchmarks.files import file_rows, given_path
from eval.benchmarks.known_items import unpublished_questions_note
from eval.diagnostics.config import DiagnosticConfig
from eval.diagnostics.diagnostic import diagnostics
from eval.scores.schemas import CLOZE, TOPK
from pairscale.errors import InputError, check_choice
from pairscale.files import sha256_json
from pairscale.sizes import plural

if TYPE_CHECKING:
    from eval.scorers.next_words import NextWords

QUESTIONS = CLOZE.names[: CLOZE.names.index("prob")]  # what is asked; the other columns of CLOZE are answers
Filled = Annotated[str, msgspec.Meta(pattern=r"[^\s|]")]  # a cell that is not empty; | separates words in one

_STRAIGHT = str.maketrans("“”‘’", "\"\"''")


class Item(msgspec.Struct):
    """A row of a diagnostic's file. Subclasses declare its other columns, and what their cells may be."""

    item: Filled


T = TypeVar("T", bound=Item)


@dataclass(frozen=True)
class Questions:
    """All questions of a diagnostic.

    Attributes:
        rows: a question each, columns QUESTIONS (eval.scores.schemas.CLOZE says what they are).
        digest: SHA-256 over them.
        notes: sentences on what is odd about them.
    """

    rows: pd.DataFrame
    digest: str
    notes: tuple[str, ...] = ()

    @cached_property
    def candidates(self) -> dict[str, list[str]]:
        """The candidates of each context."""
        words = self.rows.groupby("context", sort=False)["candidate"].unique()
        return {str(context): list(candidates) for context, candidates in words.items()}

    @property
    def texts(self) -> list[str]:
        """The different contexts."""
        return list(self.candidates)

    @property
    def contents(self) -> str:
        return f"{plural(len(self.texts), 'context')} of {plural(self.rows['item'].nunique(), 'item')}"


def load_questions(config: DiagnosticConfig) -> Questions:
    """Read the files of the diagnostic that `config` names.

    Raises InputError for missing files and, with the line, wrong rows, ConfigError for an unknown diagnostic.
    """
    check_choice("benchmark.name", config.name, diagnostics())
    questions = diagnostics()[config.name].questions(config)
    cells = [[question.get(name) for name in QUESTIONS] for question in questions]
    frame = pd.DataFrame(cells, columns=QUESTIONS)
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


def answer_rows(questions: Questions, answers: Mapping[str, NextWords]) -> dict[str, pd.DataFrame]:
    """Return the rows of score files, columns CLOZE and TOPK (eval.scores.schemas), from the answer to each context.

    The most probable words (TOPK) are of conditions that are not drawn at random.
    """
    judged, words = [], []
    for context, answer in answers.items():
        candidates = zip(questions.candidates[context], answer.logprobs, answer.ranks, answer.tokens, strict=True)
        judged += [(context, *cells) for cells in candidates]
        top = zip(answer.words, np.exp(answer.word_logprobs), strict=True)
        words += [(context, place, *cells) for place, cells in enumerate(top, start=1)]
    columns = ["context", "candidate", "logprob", "rank", "n_tokens"]
    cloze = questions.rows.merge(pd.DataFrame(judged, columns=columns), "left", ["context", "candidate"])
    known = cloze["logprob"].notna()
    ranks = cloze["rank"].astype("Int32").where(known)
    cloze = cloze.assign(prob=np.exp(cloze["logprob"]), rank=ranks, expressible=known)
    fixed = questions.rows[questions.rows["trial"].isna()].drop_duplicates(["item", "condition", "context"])
    topk = fixed.merge(pd.DataFrame(words, columns=["context", "place", "word", "prob"]), on="context")
    return {"topk": topk[TOPK.names], "cloze": cloze[CLOZE.names]}
