"""Read the questions of a diagnostic from files. A question is a context with a candidate for the next word.

This module doesn't import torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
import numpy as np
import pandas as pd

from eval.benchmarks.config import DiagnosticConfig
from eval.benchmarks.files import Items, file_rows, given_path
from eval.benchmarks.known_items import STRAIGHT, unpublished_questions_note
from eval.diagnostics.diagnostic import diagnostics
from eval.scores.schemas import CLOZE, TOPK
from pairscale.errors import InputError, check_choice
from pairscale.files import sha256_json
from pairscale.sizes import plural

if TYPE_CHECKING:
    from eval.scorers.next_words import NextWords

QUESTIONS = CLOZE.names[: CLOZE.names.index("prob")]  # columns with questions; CLOZE's other columns are answers
Filled = Annotated[str, msgspec.Meta(pattern=r"[^\s|]")]  # a cell that isn't empty; words can be separated by |


class Item(msgspec.Struct):
    """A row of a diagnostic's file. Subclasses declare the other columns and the valid values of their cells."""

    item: Filled


T = TypeVar("T", bound=Item)


def load_questions(config: DiagnosticConfig) -> Items:
    """Read the questions of a diagnostic, one per row, with the columns QUESTIONS.

    Raises InputError for missing files and, with the line, for invalid rows. Raises ConfigError for an unknown
    diagnostic.
    """
    check_choice("benchmark.name", config.name, diagnostics())
    cells = [[question.get(name) for name in QUESTIONS] for question in diagnostics()[config.name].questions(config)]
    frame = pd.DataFrame(cells, columns=QUESTIONS)
    note = unpublished_questions_note(config.name, frame)
    frame = frame.astype({"trial": "Int32", "cloze": "float64", "group": "str"})
    texts = frame["context"].unique().tolist()
    contents = f"{plural(len(texts), 'context')} of {plural(frame['item'].nunique(), 'item')}"
    return Items(frame, texts, sha256_json(cells), contents, notes=(note,) if note else ())


def candidates(questions: pd.DataFrame) -> dict[str, list[str]]:
    """Return the different candidates of each context."""
    words = questions.groupby("context", sort=False)["candidate"].unique()
    return {str(context): list(of_context) for context, of_context in words.items()}


def read_rows(config: DiagnosticConfig, name: str, schema: type[T]) -> list[T]:
    """Read the rows of the file `name`, a tab-separated table whose columns `schema` declares.

    Raises InputError if the file is missing or empty, or if an item is repeated. Also raises it, with the line, if a
    row is invalid.
    """
    file = given_path(config.name, config.path, f" with {name}", f" with {name}") / name
    if not file.is_file():
        raise InputError(f"benchmark.path={config.path}: this folder contains no file {name}. Correct the path.")
    rows: dict[str, T] = {}
    for where, cells in file_rows(file, "\t", quotes=False):
        if config.quote_marks == "straight":
            cells = {column: cell.translate(STRAIGHT) for column, cell in cells.items()}
        try:
            row = msgspec.convert(cells, schema, strict=False)
        except msgspec.ValidationError as reason:
            raise InputError(
                f"{where}: this row isn't in the format of the published {name} ({reason}). Correct it."
            ) from None
        if row.item in rows:
            raise InputError(f"{where}: item {row.item} occurs twice in this file. Remove one of the two rows.")
        rows[row.item] = row
    return list(rows.values())


def answer_rows(questions: pd.DataFrame, answers: Mapping[str, NextWords]) -> dict[str, pd.DataFrame]:
    """Return the rows of score files, with the columns CLOZE and TOPK of eval.scores.schemas.

    `answers` maps contexts to answers. TOPK doesn't include conditions that are drawn at random.
    """
    judged, words, choices = [], [], candidates(questions)
    for context, answer in answers.items():
        of_words = zip(choices[context], answer.logprobs, answer.ranks, answer.tokens, strict=True)
        judged += [(context, *cells) for cells in of_words]
        top = zip(answer.words, np.exp(answer.word_logprobs), strict=True)
        words += [(context, place, *cells) for place, cells in enumerate(top, start=1)]
    columns = ["context", "candidate", "logprob", "rank", "n_tokens"]
    cloze = questions.merge(pd.DataFrame(judged, columns=columns), "left", ["context", "candidate"])
    known = cloze["logprob"].notna()
    ranks = cloze["rank"].astype("Int32").where(known)
    cloze = cloze.assign(prob=np.exp(cloze["logprob"]), rank=ranks, expressible=known)
    fixed = questions[questions["trial"].isna()].drop_duplicates(["item", "condition", "context"])
    topk = fixed.merge(pd.DataFrame(words, columns=["context", "place", "word", "prob"]), on="context")
    return {"topk": topk[TOPK.names], "cloze": cloze[CLOZE.names]}
