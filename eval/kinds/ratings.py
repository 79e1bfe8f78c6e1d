"""Sentences that people rated (work.py has what all kinds share)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from rich.table import Table
from rich.text import Text

from corpora.words import count_characters, count_words
from eval.benchmarks.cells import blanks_note
from eval.config import EvalConfig
from eval.kinds.work import ItemsWork
from eval.methods.unigrams import UnigramSource
from eval.ratings.config import RatingsConfig
from eval.ratings.measures import measures
from eval.ratings.sentences import Ratings, load_ratings
from pairscale.errors import RunError
from pairscale.tables import plain_table

if TYPE_CHECKING:
    from eval.scorers.base import TokenScores


_SHOWN = 2  # measures whose intervals the terminal has room for


class RatingsWork(ItemsWork):
    """The scores of one run on rated sentences; all of them follow from one file (eval/ratings/scores.py)."""

    files = ("sentences",)
    items: Ratings

    @classmethod
    def read(cls, config: EvalConfig, described: Mapping[str, Any]) -> Ratings:
        """Return the table. Raises as `load_ratings` and `Ratings.check`."""
        assert isinstance(config.benchmark, RatingsConfig)
        ratings = load_ratings(config.benchmark)
        ratings.check()
        return ratings

    @classmethod
    def texts(cls, items: Ratings) -> list[str]:
        return items.rows["sentence"].unique().tolist()

    @cached_property
    def unigrams(self) -> UnigramSource:
        """Where tokens are counted."""
        return UnigramSource.of(self.run, self.config)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"unigrams": self.unigrams.described}

    @property
    def notes(self) -> tuple[str, ...]:
        reason = self.unigrams.missing
        unigrams = f"no norm_lp, slor and morcela, which need unigram probabilities: {reason}" if reason else None
        return tuple(filter(None, (unigrams, self.items.constant, blanks_note(list(self.items.rows["sentence"])))))

    @property
    def contents(self) -> str:
        return f"{len(self.items.rows):,} sentences"

    def rows(self, answers: Mapping[str, TokenScores]) -> dict[str, pd.DataFrame]:
        texts, scores, skip = list(answers), list(answers.values()), self.config.policy.unk == "skip"
        reference = self.described["corpus"]["reference"]
        table = pd.DataFrame(
            {
                "lp": [score.logprobs[~score.unk if skip else slice(None)].sum() for score in scores],
                "tokens": [int((~score.unk).sum()) if skip else len(score.unk) for score in scores],
                "words": [count_words(text, reference) for text in texts],
                "chars": [count_characters(text) for text in texts],
                "unk": [int(score.unk.sum()) for score in scores],
                "unigram_lp": np.nan,
                "unseen": None,
            },
            index=pd.Index(texts, name="sentence"),
        )
        if not np.isfinite(table["lp"]).all():
            raise RunError(f"{self.scorer.name}: its score of a sentence is no number; its weights are damaged")
        if self.unigrams.missing is None:
            table["unigram_lp"], table["unseen"] = self.unigrams.count(self.scorer).sums(scores, skip)
        # Nothing is left of a sentence of nothing but <unk>, or but its end.
        left = [(~score.unk & (score.spans[:, 1] > score.spans[:, 0])).any() for score in scores]
        table.loc[~np.asarray(left) & skip, ["lp", "unigram_lp"]] = np.nan
        return {"sentences": self.items.rows.join(table, on="sentence")}

    @classmethod
    def measures(cls, rows: pd.DataFrame, benchmark: str) -> pd.DataFrame:
        return measures(rows).rename(columns={"measure": "level", "score": "name", "value": "accuracy"})

    def headline(self) -> dict[str, float | str]:
        """Return the first of the measures."""
        first = self.measure().iloc[0]
        return {"note": f"{first['level']} of {first['name']} {first['accuracy']:.3f}"}

    def tables(self, trajectory: list[dict[str, Any]], width: int) -> Iterator[Table]:
        """Yield a row for each score with its measures, and the limits of the first of them."""
        measures = self.measure()
        pairs = f" in {self.items.pairs:,} pairs" if self.items.pairs else ""
        caption = (
            f"{len(self.items.rows):,} sentences{pairs}; 95% intervals: for new ones of this kind; morcela, accuracy "
            "and MCC are cross-validated"
        )
        table = plain_table(self.title + self.scored_already, Text(caption))
        table.add_column("score", no_wrap=True)
        names = list(dict.fromkeys(measures["level"]))
        for number, name in enumerate(names):
            table.add_column(name, justify="right")
            if number < _SHOWN:
                table.add_column("95%", justify="right", no_wrap=True)
        for score, of in measures.groupby("name", sort=False):
            cells = []
            for number, row in enumerate(of.set_index("level").reindex(names).itertuples()):
                cells.append(f"{row.accuracy:.3f}")
                if number < _SHOWN:
                    cells.append(f"{row.low:.2f} to {row.high:.2f}")
            table.add_row(Text(str(score)), *cells)
        yield table
