"""Define the interface of causal models, for our own neural models and n-gram models.

network.py implements it for models of transformers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from eval.scorers.base import Execution
from eval.scorers.trees import FloatArray, Forest, Ids, forests
from train.models.base import LanguageModel, State

if TYPE_CHECKING:
    from train.ngram import Ngram

STATES = 256  # number of n-gram states whose distributions are cached, which takes 50 MB with 50,000 words
Progress = Callable[..., Iterable[Any]]  # eval.scorers.base.Scorer.with_progress


class CausalModel(ABC):
    """A model that can compute log-probabilities of the tokens of texts, and of all tokens at a position.

    A torch model reads many texts in a batch, and reads common beginnings only once (trees.py).
    """

    digest: str  # digest of the weights
    vocabulary: int  # number of tokens that it predicts
    positions: int | None = None  # maximum number of tokens that it can read; None: no maximum
    device = torch.device("cpu")
    batch_tokens: int = 1 << 13
    answers_prompts: bool = True

    @abstractmethod
    def start(self, before: list[int]) -> tuple[list[int], State]:
        """Read the tokens `before`, except those that must be read with each text. Return these and the state."""

    @abstractmethod
    def all_logprobs(self, tokens: Tensor, rows: Tensor, columns: Tensor, state: State) -> Tensor:
        """Return ln p (R, V) in nats of every token after R positions in texts (B, T) of equal length."""

    def tree_tokens(self, longest: int) -> int | None:
        """Return the maximum number of tokens in a tree (see `forests`), or None if there is no maximum.

        `longest` is the length of the longest text, in tokens.
        """
        return 0

    def logprobs(self, forest: Forest, state: State) -> Tensor:
        """Return ln p (C,) in nats of the targets of a forest, read after `state`."""
        raise NotImplementedError

    def read_texts(self, texts: list[Ids], first: Ids, state: State, progress: Progress) -> list[FloatArray]:
        """Return, for each text, ln p (nats) of its tokens from position `first`. Texts are read after `state`."""
        limit = self.tree_tokens(max(map(len, texts), default=0))
        capacity = self.batch_tokens if limit is None else min(limit, self.batch_tokens)
        batches = forests(texts, first, capacity, self.batch_tokens)
        results = [np.empty(0)] * len(texts)
        for forest in progress(batches, len(texts), title="scoring" if capacity else "scoring, each text alone"):
            values = self.logprobs(forest, state).double().cpu().numpy() if len(forest.targets) else np.empty(0)
            for text, value in forest.results(values):
                results[text] = value
        return results


class StateModel(CausalModel):
    """A model with a state, trained by pairscale. It is an LSTM, a Transformer-XL or a plug-in's model."""

    def __init__(self, model: LanguageModel, digest: str, execution: Execution):
        self.digest = digest
        self.device = torch.device(execution.device)
        self.model = model.to(self.device).eval()
        self.vocabulary, self.positions = model.vocabulary, model.positions
        self.batch_tokens = execution.batch_tokens

    def start(self, before: list[int]) -> tuple[list[int], State]:
        state = self.model.initial_state(1)
        *context, begin = before
        if context:
            _, state = self.model(torch.tensor([context], device=self.device), state)
        return [begin], state

    def tree_tokens(self, longest: int) -> int | None:
        return self.model.tree_tokens

    def logprobs(self, forest: Forest, state: State) -> Tensor:
        tokens, parents, depths, rows, targets = forest.tensors(self.device)
        hidden = self.model.read_trees(tokens, parents, depths, state).flatten(0, 1)  # (B*T, D)
        # The softmax takes most of the time. It is computed only where needed, and once if several tokens follow.
        after, rows = torch.unique_consecutive(rows, return_inverse=True)
        return self.model.logprobs(hidden[after], targets, rows)

    def all_logprobs(self, tokens: Tensor, rows: Tensor, columns: Tensor, state: State) -> Tensor:
        hidden, _ = self.model(tokens, self.model.expanded(state, len(tokens)))  # (B, T, D)
        return self.model.all_logprobs(hidden[rows, columns])


class NgramModel(CausalModel):
    """An n-gram model. A text begins after `<s>`, and n-grams never include anything before that.

    Therefore `policy.context` doesn't change its scores. KenLM always computes in float32, for any `policy.precision`.
    """

    answers_prompts = False

    def __init__(self, ngram: Ngram):
        self.ngram, self.digest, self.vocabulary = ngram, ngram.digest, len(ngram.tokenizer)
        # Many contexts lead to the same state, because it consists of only a few words.
        self._after = lru_cache(STATES)(ngram.next_logprobs)

    def start(self, before: list[int]) -> tuple[list[int], State]:
        return before[-1:], ()

    def read_texts(self, texts: list[Ids], first: Ids, state: State, progress: Progress) -> list[FloatArray]:
        # States aren't cached for the next text, because looking them up takes longer than computing them with KenLM.
        alone = progress(([text] for text in zip(texts, first.tolist(), strict=True)), len(texts))
        return [np.asarray(self.ngram.logprobs(ids[1:].tolist())[at - 1 :]) for [(ids, at)] in alone]

    def all_logprobs(self, tokens: Tensor, rows: Tensor, columns: Tensor, state: State) -> Tensor:
        places = zip(rows.tolist(), columns.tolist(), strict=True)
        states = (self.ngram.state(tokens[row, 1 : at + 1].tolist()) for row, at in places)
        return torch.from_numpy(np.stack([self._after(state) for state in states]))
