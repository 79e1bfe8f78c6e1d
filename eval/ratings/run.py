"""One run on rated sentences: the counterpart of eval/pairs.py for single sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from corpora.words import count_characters, count_words
from eval.benchmarks.cells import blanks_note
from eval.config import EvalConfig, recorded_policy, score_label
from eval.diagnostics.run import answer_metadata, compared
from eval.methods.unigrams import UnigramSource
from eval.ratings.config import RatingsConfig
from eval.ratings.files import read_sentences, sentences_metadata, write_sentences
from eval.ratings.measures import measures
from eval.ratings.sentences import Ratings, load_ratings
from eval.ratings.table import ratings_table
from pairscale.errors import RunError
from train.loop.device import set_up_cpu
from train.runs.folder import RunFolder

if TYPE_CHECKING:
    from rich.table import Table

    from eval.scorers.base import Scorer


@dataclass(frozen=True)
class RatingsWork:
    """The scores of one run on rated sentences; `missing` from its file, `unrecorded`: in a file without settings."""

    run: RunFolder
    config: EvalConfig
    scorer: Scorer
    ratings: Ratings
    unigrams: UnigramSource
    folder: Path
    metadata: dict[str, Any]
    missing: bool
    unrecorded: bool

    @staticmethod
    def check_methods(config: EvalConfig) -> None:
        """Accept any methods: all scores of single sentences follow from one file (eval/ratings/scores.py)."""

    @staticmethod
    def check_benchmark(config: EvalConfig) -> None:
        """Read the table. Raises as `load_ratings`."""
        _ratings(config)

    @classmethod
    def of(cls, run: RunFolder, config: EvalConfig, scorer: Scorer) -> RatingsWork:
        """Compare what is requested with the file of a run. Raises as `load_ratings`; RunError for a damaged file."""
        ratings, policy = _ratings(config), config.policy
        unigrams = UnigramSource.of(run, config)
        recorded = recorded_policy(policy, scorer.scores_eos(policy), scorer.pll_shift(policy))
        about = {"name": ratings.name, "digest": ratings.digest}
        metadata = answer_metadata(run, scorer, about, recorded, {"unigrams": unigrams.described})
        folder = run.scores(score_label(config.benchmark, policy))
        status = compared(sentences_metadata(folder), metadata)
        return cls(run, config, scorer, ratings, unigrams, folder, metadata, *status)

    @property
    def unavailable(self) -> Mapping[str, str]:
        """Return {}: all sentences are there."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Return sentences on what is missing, and on what is odd about the table."""
        reason = self.unigrams.missing
        unigrams = f"no norm_lp, slor and morcela, which need unigram probabilities: {reason}" if reason else None
        return tuple(filter(None, (unigrams, self.ratings.constant, blanks_note(list(self.ratings.rows["sentence"])))))

    def described(self) -> str:
        """Return what would be scored, for dry runs."""
        return f"would score {len(self.ratings.rows):,} sentences" if self.missing else "scored already"

    def headline(self) -> dict[str, float | str]:
        """Return what a line about the run says: the first of the measures."""
        first = self._measures().iloc[0]
        return {"note": f"{first['measure']} of {first['score']} {first['value']:.3f}"}

    def score(self) -> None:
        """Score all different sentences in one pass, and write the file."""
        set_up_cpu(self.config.trainer, self.run.read_manifest().get("parameters"))
        rows, policy = self.ratings.rows, self.config.policy
        skip = policy.unk == "skip"
        texts = list(dict.fromkeys(rows["sentence"]))
        scores = self.scorer.score(texts, policy)
        reference = self.run.read_config()["corpus"]["reference"]
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
        write_sentences(self.folder, rows.join(table, on="sentence"), self.metadata)

    def tables(self, trajectory: list[dict[str, Any]], width: int) -> Iterator[Table]:
        """Yield what the terminal shows of the file; ratings have no `trajectory`."""
        title = f"{self.run.path.name} · {self.folder.name}" + ("" if self.missing else " (scored already)")
        yield ratings_table(title, self._measures(), self.ratings)

    def _measures(self) -> pd.DataFrame:
        return measures(read_sentences(self.folder)[0])


def _ratings(config: EvalConfig) -> Ratings:
    assert isinstance(config.benchmark, RatingsConfig)
    ratings = load_ratings(config.benchmark)
    ratings.check()
    return ratings
