"""Models that predict each token from those before it, behind one interface; network.py has those of transformers."""

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

STATES = 256  # of an n-gram model, whose distributions are cached: 50 MB with 50,000 words
Progress = Callable[..., Iterable[Any]]  # eval.scorers.base.Scorer.with_progress


class CausalModel(ABC):
    """A model as two functions: to log-probabilities of the tokens of texts, and to whole distributions.

    A model on torch reads many texts side by side, and their common beginnings once (trees.py).
    """

    digest: str  # of the weights
    vocabulary: int  # tokens that it predicts
    positions: int | None = None  # most tokens that it reads; None: no limit
    device = torch.device("cpu")
    batch_tokens: int = 1 << 13
    answers_prompts: bool = True

    @abstractmethod
    def start(self, before: list[int]) -> tuple[list[int], State]:
        """Return which of the tokens before a text have to be read with it, and the state after the others."""

    @abstractmethod
    def all_logprobs(self, tokens: Tensor, rows: Tensor, columns: Tensor, state: State) -> Tensor:
        """Return ln p (R, V) in nats of every token after R places of texts (B, T) of equal length."""

    def tree_tokens(self, longest: int) -> int | None:
        """Return how many tokens a tree may have (see `forests`), if the longest text has so many; None: no limit."""
        return 0

    def logprobs(self, forest: Forest, state: State) -> Tensor:
        """Return ln p (C,) in nats of the targets of a forest that is read after `state`."""
        raise NotImplementedError

    def read_texts(self, texts: list[Ids], first: Ids, state: State, progress: Progress) -> list[FloatArray]:
        """Return ln p (nats) of the tokens of each text from its `first` on, after those before and `state`."""
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
    """A model that pairscale trained and that carries a state: LSTM, Transformer-XL, one of a plug-in."""

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
        # The softmax is most of the work: it is computed once where several tokens follow, and nowhere else.
        after, rows = torch.unique_consecutive(rows, return_inverse=True)
        return self.model.logprobs(hidden[after], targets, rows)

    def all_logprobs(self, tokens: Tensor, rows: Tensor, columns: Tensor, state: State) -> Tensor:
        hidden, _ = self.model(tokens, self.model.expanded(state, len(tokens)))  # (B, T, D)
        return self.model.all_logprobs(hidden[rows, columns])


class NgramModel(CausalModel):
    """An n-gram model. A text begins after `<s>`, and no n-gram holds what stands before that.

    So `policy.context` changes no score: the begin symbol between context and text hides it. KenLM adds in float32
    whatever `policy.precision` says.
    """

    answers_prompts = False

    def __init__(self, ngram: Ngram):
        self.ngram, self.digest, self.vocabulary = ngram, ngram.digest, len(ngram.tokenizer)
        # Many contexts leave a model of few words in one state, as all orders of a sentence before another do.
        self._after = lru_cache(STATES)(ngram.next_logprobs)

    def start(self, before: list[int]) -> tuple[list[int], State]:
        return before[-1:], ()

    def read_texts(self, texts: list[Ids], first: Ids, state: State, progress: Progress) -> list[FloatArray]:
        # No prefix's state is kept for the next text: looking it up takes longer than asking KenLM again.
        alone = progress(([ids] for ids in texts), len(texts))
        return [np.asarray(self.ngram.logprobs(ids[1:].tolist())) for [ids] in alone]

    def all_logprobs(self, tokens: Tensor, rows: Tensor, columns: Tensor, state: State) -> Tensor:
        places = zip(rows.tolist(), columns.tolist(), strict=True)
        states = (self.ngram.state(tokens[row, 1 : at + 1].tolist()) for row, at in places)
        return torch.from_numpy(np.stack([self._after(state) for state in states]))
