"""Compute unigram log-probabilities of sentences, which are sums of their tokens' log-frequencies in a text.

The text is the whole training sample of the run, or the file `unigrams.text` for a pretrained model. If a token occurs
c times in a text of N tokens, its log-frequency is ln(c / N). For tokens that aren't in the text, c is
`unigrams.unseen`, which is not added to N, so that other log-frequencies are exact. If `<eos>` is scored, it is treated
like any other token.
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

_BATCH = 10_000  # lines to encode at a time


@dataclass(frozen=True)
class Unigrams:
    """The number of times that each token occurs in a text."""

    counts: Counts  # (V,) by token id; tokens with higher ids aren't in the text
    unseen: float  # the count assumed for a token that isn't in the text

    def sums(self, scores: Sequence[TokenScores], skip_unk: bool) -> tuple[FloatArray, Counts]:
        """Return each sentence's unigram log-probability (nats), and its number of tokens that aren't in the text.

        If `skip_unk` is true, `<unk>` tokens are skipped, as with `policy.unk=skip`.
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
    """The text in which the unigrams of a run are counted."""

    run: RunFolder
    config: EvalConfig
    # Part of the metadata of score files. The keys are "of" ("sample", or the name of a file), "digest" and "unseen".
    # If there is no text, the only key is "missing", with the reason.
    described: dict[str, Any]

    @classmethod
    def of(cls, run: RunFolder, config: EvalConfig) -> UnigramSource:
        """Find the text for a run. Raises InputError if the file `unigrams.text` is missing."""
        corpus, named = run.read_manifest().get("corpus"), config.unigrams.text
        missing: str | None = None
        described: dict[str, Any] = {"unseen": config.unigrams.unseen}
        if corpus is not None:
            text = Path(config.paths.store) / str(corpus["name"]) / "text"
            described |= {"of": "sample", "digest": corpus["sample"]["digest"]}
            try:
                if text_manifest(text)["digest"] != corpus["text"]:
                    missing = f"the text in {text} isn't the one that its sample was drawn from"
            except StoreError:
                missing = f"the text of its sample isn't in {text} (paths.store)"
        elif named is None:
            missing = "it is a pretrained model, so give a text for counting tokens with unigrams.text=FILE"
        else:
            file = Path(named).expanduser()
            if not file.is_file():
                raise InputError(f"unigrams.text={named}: this file doesn't exist. Correct the path.")
            described |= {"of": file.name, "digest": sha256_file(file)}
        return cls(run, config, {"missing": missing} if missing else described)

    @property
    def missing(self) -> str | None:
        """The reason why unigrams can't be counted, or None if they can."""
        return self.described.get("missing")

    def count(self, scorer: Scorer) -> Unigrams:
        """Count the tokens in the text, as the scorer reads it. Raises StoreError or InputError if this fails."""
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
        # A masked model has additional tokens with lower ids, for padding and masking.
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
            raise InputError(f"unigrams.text={file}: this file contains no text. Use one with a sentence per line.")
        return counts
