"""The scorer of n-gram models."""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from eval.config import PolicyConfig
from eval.scorers.base import Execution, FloatArray
from eval.scorers.next_words.answers import Read
from eval.scorers.own import TrainedScorer
from eval.scorers.trees import Ids
from train.ngram import Ngram

STATES = 256  # whose distributions are cached: 50 MB with 50,000 words


class NgramScorer(TrainedScorer):
    """An n-gram model. A sentence begins after `<s>`, and no n-gram holds what stands before that.

    So `policy.context` is honoured and changes no score: the begin symbol between context and sentence hides it.
    KenLM adds in float32 whatever `policy.precision` says.
    """

    def __init__(self, ngram: Ngram, name: str, progress: bool = False):
        super().__init__(ngram, name, Execution(progress=progress))
        self.ngram = ngram

    def _logprobs(
        self, texts: list[Ids], first: list[int], policy: PolicyConfig, chat: bool = False
    ) -> list[FloatArray]:
        # No prefix's state is kept for the next text: looking it up takes longer than asking KenLM again.
        alone = self.with_progress(([ids] for ids in texts), len(texts))
        return [np.asarray(self.ngram.logprobs(ids.tolist())) for [ids] in alone]

    def _reader(self, policy: PolicyConfig) -> Read:
        # Many contexts leave a model of few words in one state, as all orders of a sentence before another do.
        after = lru_cache(STATES)(self.ngram.next_logprobs)

        def read(texts: list[Ids], positions: list[list[int]]) -> Tensor:
            pairs = zip(texts, positions, strict=True)
            states = (self.ngram.state(ids[1 : at + 1]) for ids, columns in pairs for at in columns)
            return torch.from_numpy(np.stack([after(state) for state in states]))

        return read
