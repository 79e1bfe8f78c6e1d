"""Questions of diagnostics: the words that a model expects after contexts (work.py has what all kinds share)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from eval.config import EvalConfig
from eval.diagnostics.config import DiagnosticConfig
from eval.diagnostics.measures import measures
from eval.diagnostics.questions import Questions, load_questions
from eval.diagnostics.table import cloze_tables
from eval.kinds.work import ItemsWork
from eval.scores.files import read_answer_file
from eval.scores.schemas import TOPK
from eval.scores.table import percent

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from eval.scorers.base import NextWords

# Parts of the policy that count: no end of a sentence is scored, and a word that is <unk> has no probability.
_POLICY = ("context", "context_tokens", "context_text", "precision", "pll", "pll_shift")


class ClozeWork(ItemsWork):
    """The answers of one run to a diagnostic."""

    files = ("topk", "cloze")
    items: Questions

    @classmethod
    def read(cls, config: EvalConfig, described: Mapping[str, Any]) -> Questions:
        """Return the questions. Raises as `load_questions`."""
        assert isinstance(config.benchmark, DiagnosticConfig)
        return load_questions(config.benchmark)

    @classmethod
    def texts(cls, items: Questions) -> list[str]:
        return items.rows["context"].unique().tolist()

    def ask(self, texts: list[str]) -> Sequence[NextWords]:
        """Return the probabilities of each context's candidates, and the most probable words after it."""
        candidates = self.candidates
        return self.scorer.next_words(texts, [candidates[text] for text in texts], self.top_words, self.config.policy)

    @property
    def candidates(self) -> dict[str, list[str]]:
        """The candidates of each context."""
        return {str(of): list(words) for of, words in self.items.rows.groupby("context")["candidate"].unique().items()}

    @property
    def top_words(self) -> int:
        assert isinstance(self.config.benchmark, DiagnosticConfig)
        return self.config.benchmark.top_words

    @property
    def parameters(self) -> dict[str, Any]:
        return {"top_words": self.top_words}

    @property
    def policy(self) -> dict[str, Any]:
        return {name: value for name, value in super().policy.items() if name in _POLICY and value is not None}

    @property
    def notes(self) -> tuple[str, ...]:
        return self.items.notes

    @property
    def contents(self) -> str:
        return f"{len(self.texts(self.items)):,} contexts of {self.items.rows['item'].nunique()} items"

    def rows(self, answers: Mapping[str, NextWords]) -> dict[str, pd.DataFrame]:
        return {
            "topk": _topk_rows(self.items.rows, answers),
            "cloze": _cloze_rows(self.items.rows, self.candidates, answers),
        }

    @classmethod
    def measures(cls, rows: pd.DataFrame, benchmark: str) -> pd.DataFrame:
        return measures(benchmark, rows)

    def headline(self) -> dict[str, float | str]:
        """Return the first of the diagnostic's measures."""
        first = self.measure().iloc[0]
        return {"note": f"{first['level']} {str(first['name']).replace('_', ' ')} {percent(first['accuracy'])}%"}

    def tables(self, trajectory: list[dict[str, Any]], width: int) -> Iterator[Table | Text | str]:
        assert isinstance(self.config.benchmark, DiagnosticConfig)
        cloze, topk = (read_answer_file(self.folder, name)[0] for name in ("cloze", "topk"))
        title = self.title + self.scored_already
        yield from cloze_tables(title, self.items.name, cloze, topk, self.config.benchmark.show, width)


def _cloze_rows(
    questions: pd.DataFrame, candidates: Mapping[str, list[str]], answers: Mapping[str, NextWords]
) -> pd.DataFrame:
    """Return the columns of eval.scores.schemas.CLOZE; `candidates` and `answers`: of each context."""
    asked = zip(questions["context"], questions["candidate"], strict=True)
    at = [(answers[context], candidates[context].index(candidate)) for context, candidate in asked]
    logprobs = np.asarray([answer.logprobs[place] for answer, place in at])
    ranks = pd.array([answer.ranks[place] for answer, place in at], dtype="Int32")
    known = ~np.isnan(logprobs)
    ranks[~known] = pd.NA
    return questions.assign(
        prob=np.exp(logprobs), rank=ranks, n_tokens=[answer.tokens[place] for answer, place in at], expressible=known
    )


def _topk_rows(questions: pd.DataFrame, answers: Mapping[str, NextWords]) -> pd.DataFrame:
    """Return the columns of eval.scores.schemas.TOPK, of the conditions that are not drawn at random."""
    fixed = questions[questions["trial"].isna()].drop_duplicates(["item", "condition", "context"])
    rows = [
        (item, condition, context, place, word, prob)
        for item, condition, context in fixed[["item", "condition", "context"]].itertuples(index=False)
        for place, (word, prob) in enumerate(
            zip(answers[context].words, np.exp(answers[context].word_logprobs), strict=True), start=1
        )
    ]
    return pd.DataFrame(rows, columns=TOPK.names)
