"""Unigram log-probabilities of sentences: the sum over tokens of how often each occurs in a text by itself.

The text is the run's own training sample, counted whole, or for a model that comes trained a file (`unigrams.text`).
A token that occurs c times among N has ln(c / N); one that the text lacks counts as `unigrams.unseen` occurrences, and
N stays as it is, so that all others are exact. Where the end of a sentence is scored, it is a token like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from corpora.sources.lines import lines
from corpora.text import text_manifest
from corpora.tokenizers import EOS, SPECIAL_TOKENS, load_tokenizer
from corpora.word_counts import token_counts
from eval.config import EvalConfig
from eval.scorers.base import FloatArray, Scorer, TokenScores
from pairscale.errors import InputError, StoreError
from pairscale.files import sha256_file
from pairscale.progress import working
from train.runs.folder import RunFolder

Counts = npt.NDArray[np.int64]

_BATCH = 10_000  # lines that are encoded at a time


@dataclass(frozen=True)
class Unigrams:
    """Counts (V,) of a text's tokens; tokens beyond V count as unseen."""

    counts: Counts
    unseen: float

    def sums(self, scores: Sequence[TokenScores], skip_unk: bool) -> tuple[FloatArray, Counts]:
        """Return the unigram log-probability (nats) of each sentence, and its number of tokens that the text lacks.

        skip_unk: leave out `<unk>`, as `policy.unk=skip` leaves it out of the log-probability.
        """
        counts = np.append(self.counts, 0)
        logprobs = np.log(np.maximum(counts, self.unseen) / counts.sum())
        totals, lacking = np.zeros(len(scores)), np.zeros(len(scores), np.int64)
        for row, score in enumerate(scores):
            assert len(score.ids) == len(score.logprobs), "scores without the ids of their tokens"
            ids = np.minimum(score.ids[~score.unk] if skip_unk else score.ids, len(self.counts))
            totals[row] = logprobs[ids].sum()
            lacking[row] = (counts[ids] == 0).sum()
        return totals, lacking


@dataclass(frozen=True)
class UnigramSource:
    """The text that unigrams of a run are counted in.

    described: for the metadata of score files: "of" (sample, or the name of a file), "digest" and "unseen"; or
    "missing", why there is no such text.
    """

    run: RunFolder
    config: EvalConfig
    described: dict[str, Any]

    @classmethod
    def of(cls, run: RunFolder, config: EvalConfig) -> UnigramSource:
        """Raises InputError if the file `unigrams.text` is missing."""
        corpus, named = run.read_manifest().get("corpus"), config.unigrams.text
        missing: str | None = None
        described: dict[str, Any] = {"unseen": config.unigrams.unseen}
        if corpus is not None:
            text = Path(config.paths.store) / str(corpus["name"]) / "text"
            described |= {"of": "sample", "digest": corpus["sample"]["digest"]}
            try:
                if text_manifest(text)["digest"] != corpus["text"]:
                    missing = f"{text} is another text than the one of its sample"
            except StoreError:
                missing = f"the text of its sample is not in {text} (paths.store)"
        elif named is None:
            missing = "it comes trained, and unigrams.text names no text to count its tokens in"
        else:
            file = Path(named).expanduser()
            if not file.is_file():
                raise InputError(f"unigrams.text={named}: no such file")
            described |= {"of": file.name, "digest": sha256_file(file)}
        return cls(run, config, {"missing": missing} if missing else described)

    @property
    def missing(self) -> str | None:
        """Why no unigrams can be counted; None if they can."""
        return self.described.get("missing")

    def count(self, scorer: Scorer) -> Unigrams:
        """Count tokens as the run's scorer reads them. Raises StoreError for a damaged text, InputError for a file."""
        assert self.missing is None, self.missing
        with working(f"counting tokens of {self.described['of']}"):
            counts = self._of_sample(scorer) if self.described["of"] == "sample" else self._of_file(scorer)
        return Unigrams(counts, self.config.unigrams.unseen)

    def _of_sample(self, scorer: Scorer) -> Counts:
        tokenizer = load_tokenizer(self.run.model.tokenizer)
        config, manifest, store = self.run.read_config(), self.run.read_manifest(), Path(self.config.paths.store)
        counts = token_counts(config, manifest, store, tokenizer)
        if not scorer.scores_eos(self.config.policy):
            counts[EOS] = 0
        # The ids of a masked model begin with its padding and its mask.
        return np.concatenate([np.zeros(SPECIAL_TOKENS, np.int64), counts]) if scorer.masked else counts

    def _of_file(self, scorer: Scorer) -> Counts:
        file = Path(str(self.config.unigrams.text)).expanduser()
        texts = (line for _, line in lines(file) if line.strip())
        counts = np.zeros(0, np.int64)
        while batch := list(islice(texts, _BATCH)):
            ids = np.concatenate(list(scorer.encode(batch, self.config.policy)))
            more = np.bincount(ids, minlength=len(counts))
            more[: len(counts)] += counts
            counts = more
        if not counts.any():
            raise InputError(f"unigrams.text={file}: holds no tokens")
        return counts
