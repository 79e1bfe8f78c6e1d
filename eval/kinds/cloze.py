"""Questions of diagnostics: the words that a model expects after contexts (work.py has what all kinds share)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from rich.text import Text

from eval.config import EvalConfig
from eval.diagnostics.config import DiagnosticConfig
from eval.diagnostics.measures import measures
from eval.diagnostics.questions import Questions, load_questions
from eval.kinds.work import ItemsWork
from eval.published import COLUMNS, read_published
from eval.scores.files import read_answer_file
from eval.scores.schemas import CLOZE, TOPK
from eval.scores.table import WIDTH, measures_table, percent

if TYPE_CHECKING:
    from rich.table import Table

    from eval.scorers.base import NextWords

# Parts of the policy that count: no end of a sentence is scored, and a word that is <unk> has no probability.
_POLICY = ("context", "context_tokens", "context_text", "precision", "pll", "pll_shift")
_BESIDE = ("BERT base", "BERT large")  # of Ettinger 2020, uncased; for terminals that have room
_CAPTION = (
    "per cent; ±: deviation of trials; 95% intervals: for new items of this kind; a tie is wrong, and a word "
    "that the model cannot express; known: without such items"
)


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
        top_words = self.parameters["top_words"]
        return self.scorer.next_words(texts, [candidates[text] for text in texts], top_words, self.config.policy)

    @property
    def candidates(self) -> dict[str, list[str]]:
        """The candidates of each context."""
        return {str(of): list(words) for of, words in self.items.rows.groupby("context")["candidate"].unique().items()}

    @property
    def parameters(self) -> dict[str, Any]:
        assert isinstance(self.config.benchmark, DiagnosticConfig)
        return {"top_words": self.config.benchmark.top_words}

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
        """Return the rows of both files; the most probable words are of conditions that are not drawn at random."""
        questions, candidates = self.items.rows, self.candidates
        tables = []
        for context, answer in answers.items():
            columns = {"logprob": answer.logprobs, "rank": answer.ranks, "n_tokens": answer.tokens}
            tables.append(pd.DataFrame({"context": context, "candidate": candidates[context], **columns}))
        cloze = questions.merge(pd.concat(tables), "left", ["context", "candidate"])
        known = cloze["logprob"].notna()
        ranks = cloze["rank"].astype("Int32").where(known)
        cloze = cloze.assign(prob=np.exp(cloze["logprob"]), rank=ranks, expressible=known)
        fixed = questions[questions["trial"].isna()].drop_duplicates(["item", "condition", "context"])
        words = [
            (context, place, word, prob)
            for context, answer in answers.items()
            for place, (word, prob) in enumerate(zip(answer.words, np.exp(answer.word_logprobs), strict=True), start=1)
        ]
        topk = fixed.merge(pd.DataFrame(words, columns=["context", "place", "word", "prob"]), on="context")
        return {"topk": topk[TOPK.names], "cloze": cloze[CLOZE.names]}

    @classmethod
    def measures(cls, rows: pd.DataFrame, benchmark: str) -> pd.DataFrame:
        return measures(benchmark, rows)

    def headline(self) -> dict[str, float | str]:
        """Return the first of the diagnostic's measures."""
        first = self.measure().iloc[0]
        return {"note": f"{first['level']} {str(first['name']).replace('_', ' ')} {percent(first['accuracy'])}%"}

    def tables(self, trajectory: list[dict[str, Any]], width: int) -> Iterator[Table | Text]:
        """Yield the measures beside published ones, and the words that the model cannot express."""
        published = read_published(self.config.benchmark.name, (*COLUMNS, "sd"))
        ours, theirs = (of.assign(name=of["name"].str.replace("_", " ")) for of in (self.measure(), published))
        beside = {model: model for model in _BESIDE} if width >= WIDTH else {}
        title, names = self.title + self.scored_already, {"level": "measure", "name": "contexts"}
        yield measures_table(title, _CAPTION, ours, theirs, names, beside)
        unknown = read_answer_file(self.folder, "cloze")[0].query("~expressible")
        items = unknown.groupby("candidate", sort=False)["item"].unique()
        if len(items):
            words = ", ".join(f"{word} ({', '.join(of)})" for word, of in items.items())
            yield Text(f"not expressible, {len(items)} words of {unknown['item'].nunique()} items: {words}")
