"""Sentences that people rated (work.py has what all kinds share)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain, zip_longest
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
from pairscale.errors import InputError, RunError
from pairscale.tables import filled_table

if TYPE_CHECKING:
    from eval.scorers.base import TokenScores

_SHOWN = 2  # measures whose intervals the terminal has room for
_CAPTION = "95% intervals: for new sentences of this kind; morcela, accuracy and MCC are cross-validated"


class RatingsWork(ItemsWork):
    """The scores of one run on rated sentences; all of them follow from one file (eval/ratings/scores.py)."""

    files = ("sentences",)
    items: Ratings

    @classmethod
    def read(cls, config: EvalConfig, described: Mapping[str, Any]) -> Ratings:
        """Return the table. Raises as `load_ratings`, and InputError if nothing can agree with it."""
        assert isinstance(config.benchmark, RatingsConfig)
        ratings = load_ratings(config.benchmark)
        if len(ratings.rows) < 3 or ratings.rows[["rating", "label"]].nunique().max() < 2:
            raise InputError(
                f"benchmark={config.benchmark.name}: agreement needs three or more sentences whose ratings or labels "
                f"differ; there are {len(ratings.rows)}, with the ratings {ratings.rows['rating'].unique()[:3]}"
            )
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
        missing = f"no norm_lp, slor and morcela, which need unigram probabilities: {self.unigrams.missing}"
        blanks = blanks_note(list(self.items.rows["sentence"]))
        return (*([missing] if self.unigrams.missing else []), *([blanks] if blanks else []))

    @property
    def contents(self) -> str:
        pairs = self.items.rows["pair"].nunique()
        return f"{len(self.items.rows):,} sentences" + (f" in {pairs:,} pairs" if pairs else "")

    def rows(self, answers: Mapping[str, TokenScores]) -> dict[str, pd.DataFrame]:
        scores, skip = list(answers.values()), self.config.policy.unk == "skip"
        counted = [~score.unk | (not skip) for score in scores]
        reference = self.described["corpus"]["reference"]
        table = pd.DataFrame(
            {
                "lp": [score.logprobs[of].sum() for score, of in zip(scores, counted, strict=True)],
                "tokens": [int(of.sum()) for of in counted],
                "words": [count_words(text, reference) for text in answers],
                "chars": [count_characters(text) for text in answers],
                "unk": [int(score.unk.sum()) for score in scores],
                "unigram_lp": np.nan,
                "unseen": None,
            },
            index=pd.Index(answers, name="sentence"),
        )
        if not np.isfinite(table["lp"]).all():
            raise RunError(f"{self.scorer.name}: its score of a sentence is no number; its weights are damaged")
        if self.unigrams.missing is None:
            table["unigram_lp"], table["unseen"] = self.unigrams.count(self.scorer).sums(scores, skip)
        # With unk=skip, nothing is left of a sentence of nothing but <unk>, or but its end.
        has_text = [(of & (np.diff(score.spans)[:, 0] > 0)).any() for score, of in zip(scores, counted, strict=True)]
        if skip:
            table.loc[~np.asarray(has_text), ["lp", "unigram_lp"]] = np.nan
        return {"sentences": self.items.rows.join(table, on="sentence")}

    @classmethod
    def measures(cls, rows: pd.DataFrame, benchmark: str) -> pd.DataFrame:
        return measures(rows)

    def headline(self) -> dict[str, float | str]:
        """Return the first of the measures."""
        first = self.measure().iloc[0]
        return {"note": f"{first['level']} of {first['name']} {first['accuracy']:.3f}"}

    def tables(self, trajectory: list[dict[str, Any]], width: int) -> Iterator[Table]:
        """Yield a row for each score with its measures, and the limits of the first of them."""
        measures, lines = self.measure(), []
        for name, of in measures.groupby("name", sort=False):
            limits = [f"{low:.2f} to {high:.2f}" for low, high in of[["low", "high"]].to_numpy()[:_SHOWN]]
            cells = zip_longest(of["accuracy"].map("{:.3f}".format), limits, fillvalue="")
            lines.append([str(name), *chain.from_iterable(cells)])
        headings = chain.from_iterable((level, "95%") for level in measures["level"].unique())
        table = filled_table(["score", *headings], lines, ["score"])
        table.title, table.caption = Text(self.title + self.scored_already), Text(f"{self.contents}; {_CAPTION}")
        yield table
