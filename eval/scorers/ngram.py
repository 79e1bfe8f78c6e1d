"""The scorer of n-gram models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from corpora.tokenizers import EOS, UNK
from eval.config import PLAIN, PolicyConfig
from eval.scorers.base import TokenScores, resolved_score_eos
from eval.scorers.next_words.answers import NextTokens, NextWordScorer
from eval.scorers.next_words.readings import Question, Readings, left_to_right
from eval.scorers.next_words.whole_words import own_words
from eval.scorers.trees import Ids
from pairscale.progress import with_progress
from train.ngram import Ngram

BATCH_TOKENS = 8192  # of contexts that are looked at together
STATES = 256  # whose distributions are kept: 50 MB with 50,000 words


class NgramScorer(NextWordScorer):
    """An n-gram model. A sentence begins after `<s>`, and no n-gram holds what stands before that.

    So `policy.context` is honoured and changes no score: the begin symbol between context and sentence hides it.
    KenLM adds in float32 whatever `policy.precision` says.
    """

    masked = False

    def __init__(self, ngram: Ngram, name: str, progress: bool = False):
        self.name = name
        self.digest = ngram.digest
        self.tokenizer_digest = ngram.tokenizer_digest
        self.settings: dict[str, Any] = {}
        self.sample_words: int | None = ngram.info.get("sample_words")
        self.tokenizer = ngram.tokenizer
        self.word_level = ngram.tokenizer.word_level
        self.ngram = ngram
        self.progress = progress
        self.device = torch.device("cpu")
        self.batch_tokens = BATCH_TOKENS

    def score(self, sentences: Sequence[str], policy: PolicyConfig = PLAIN) -> list[TokenScores]:
        """Scores in the order of `sentences`; each different one is read once.

        States of a prefix are not kept for the next sentence: looking them up takes longer than asking KenLM again.
        """
        eos = resolved_score_eos(policy, self.word_level)
        different = dict.fromkeys(sentences)
        steps = ((1, sentence) for sentence in different)
        shown = (
            with_progress(steps, f"scoring {self.name}", len(different), "sentences") if self.progress else different
        )
        found = {sentence: self._scored(sentence, eos) for sentence in shown}
        return [found[sentence] for sentence in sentences]

    def _scored(self, sentence: str, eos: bool) -> TokenScores:
        ids, offsets = self.tokenizer.encode_raw(sentence)
        if eos:
            ids, offsets = [*ids, EOS], [*offsets, (len(sentence), len(sentence))]
        logprobs = np.asarray(self.ngram.logprobs(ids), dtype=np.float64)
        spans = np.asarray(offsets, dtype=np.int32).reshape(-1, 2)
        return TokenScores(logprobs, spans, np.asarray(ids, dtype=np.int64) == UNK)

    def _next_tokens(self, questions: Sequence[Question], policy: PolicyConfig) -> tuple[NextTokens, Readings]:
        # Many contexts leave a model of few words in one state, as all orders of a sentence before another do.
        after = lru_cache(STATES)(self.ngram.next_logprobs)

        def read(texts: list[Ids], positions: list[list[int]]) -> Tensor:
            pairs = zip(texts, positions, strict=True)
            states = (self.ngram.state(ids[1 : at + 1]) for ids, columns in pairs for at in columns)
            return torch.from_numpy(np.stack([after(state) for state in states]))

        texts = (self.tokenizer.encode_raw(f"{context} {word}") for context, word in questions)
        model = NextTokens(read, len(self.tokenizer), own_words(self.tokenizer))
        return model, left_to_right(questions, texts, [EOS], UNK)
