"""The interface of language models: tokens and a state in, hidden states and the next state out.

This file, like loss.py and those of our own architectures, travels with the weights of a model
(train/models/travel.py): it imports torch and files that travel, nothing else.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from train.models.loss import AdaptiveVocabulary, all_logprobs, cross_entropy, token_logprobs

State = tuple[Tensor, ...]  # the memory of the text so far, in a form of the model's own


def cpu_has_bf16() -> bool:
    """Return True if this CPU has instructions for products in bfloat16."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


class LanguageModel(nn.Module, ABC):
    """An autoregressive model with an embedding, a body and a softmax over the vocabulary.

    Its output is hidden states, after dropout; `loss` and `logprobs` put the softmax on them, whose logits are
    hidden @ output_weight.T + output_bias, unless embedding and softmax are adaptive (train/models/loss.py).
    """

    tree_tokens: int | None = 0  # of trees that `read_trees` reads; 0: each tree is one text, None: no limit
    carries_state: bool = True  # False: it reads each text from its beginning, as many tokens as it has positions for
    positions: int | None = None  # most tokens that it reads after a state; None: no limit

    def __init__(
        self, vocabulary: int, embedding: int, hidden: int, tied: bool, adaptive: AdaptiveVocabulary | None = None
    ):
        """`tied`: embeddings as output weights (Press & Wolf 2017; Inan et al. 2017). `adaptive` replaces them all."""
        super().__init__()
        self.vocabulary = vocabulary
        self.adaptive = adaptive
        if adaptive is not None:
            return
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.untied = None if tied else nn.Parameter(torch.empty(vocabulary, hidden))
        self.output_bias = nn.Parameter(torch.zeros(vocabulary))  # (V,)

    @property
    def output_weight(self) -> Tensor:
        """(V, D)."""
        return self.embedding.weight if self.untied is None else self.untied

    @property
    def softmax(self) -> tuple[Tensor, Tensor]:
        """Weights (V, D) and bias (V,) that make logits of hidden states."""
        return self.output_weight, self.output_bias

    @abstractmethod
    def initial_state(self, batch: int) -> State:
        """Return the state of `batch` texts before their first token, on the model's device."""

    @abstractmethod
    def forward(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read tokens (B, T) int64 after `state`; return (B, T, D), after dropout, and a state without gradient."""

    def read_trees(self, tokens: Tensor, parents: Tensor, depths: Tensor, state: State) -> Tensor:
        """Return hidden states (B, T, D) of B trees of texts, each token (B, T) read after `state` and its ancestors.

        `parents` (B, T): the place in its row of the token before, -1 at the beginning of a text; parents come before
        their children. `depths` (B, T): the number of tokens before it in its text. `state` is that of one text.

        This default reads trees of one text each. A model that reads tokens which several texts have in common only
        once overrides it, and `tree_tokens`: that is faster, and changes no score.
        """
        hidden: Tensor = self(tokens, self.expanded(state, len(tokens)))[0]
        return hidden

    def expanded(self, state: State, batch: int) -> State:
        """Return the state of one text for `batch` texts; initial states show which dimension is the batch's."""

        def repeated(tensor: Tensor, one: Tensor, two: Tensor) -> Tensor:
            wider = [dim for dim in range(one.dim()) if one.shape[dim] != two.shape[dim]]
            return tensor.repeat_interleave(batch, dim=wider[0]) if wider else tensor

        return tuple(map(repeated, state, self.initial_state(1), self.initial_state(2)))

    def embed(self, tokens: Tensor) -> Tensor:
        """Return the embeddings (B, T, E) of tokens (B, T) int64, before scale and dropout."""
        embedded: Tensor = self.embedding(tokens) if self.adaptive is None else self.adaptive.embed(tokens)
        return embedded

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return the sum of -ln p(target), in nats, of hidden states (N, D) and targets (N,) int64: a scalar."""
        if self.adaptive is not None:
            return self.adaptive.loss(hidden, targets)
        return cross_entropy(hidden, *self.softmax, targets)

    def logprobs(self, hidden: Tensor, targets: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return ln p(target) in nats of targets (N,) int64 after hidden states (M, D), no gradient: (N,), float32.

        `rows` (N,), increasing, names the hidden state that each target follows; without it, M = N.
        """
        if self.adaptive is not None:
            return self.adaptive.logprobs(hidden, targets, rows)
        return token_logprobs(hidden, *self.softmax, targets, rows)

    def all_logprobs(self, hidden: Tensor) -> Tensor:
        """Return ln p in nats of every token after hidden states (N, D), without gradient: (N, V)."""
        if self.adaptive is not None:
            with torch.no_grad():
                return self.adaptive.log_softmax(hidden)
        return all_logprobs(hidden, *self.softmax)


def ancestors(parents: Tensor) -> Tensor:
    """Return (B, T, T) bool from parents (B, T), -1 for none: True at [b, i, j] if j is i or an ancestor of it.

    Parents come before their children.
    """
    batch, length = parents.shape
    above = parents.cpu()
    seen = torch.zeros(batch, length + 1, length, dtype=torch.bool)  # the last row, that of no parent, stays empty
    rows = torch.arange(batch)
    for place in range(length):
        seen[:, place] = seen[rows, above[:, place]]
        seen[:, place, place] = True
    return seen[:, :length].to(parents.device)
