"""Define the interface of language models, which map tokens and a state to hidden states and the next state.

This file, loss.py and the files of our own architectures travel with a model's weights (train/models/travel.py). So it
imports only torch and other files that travel.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from train.models.loss import AdaptiveVocabulary, all_logprobs, cross_entropy, token_logprobs

State = tuple[Tensor, ...]  # a model's memory of the text so far; each model has its own form


def cpu_has_bf16() -> bool:
    """Return True if this CPU has instructions for products in bfloat16."""
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


class LanguageModel(nn.Module, ABC):
    """An autoregressive model with an embedding, a body and a softmax over the vocabulary.

    It returns hidden states after dropout, to which `loss` and `logprobs` apply the softmax. The logits are
    hidden @ output_weight.T + output_bias, unless embedding and softmax are adaptive (train/models/loss.py).
    """

    tree_tokens: int | None = 0  # largest tree for `read_trees`, in tokens; 0: trees of one text only, None: no limit
    carries_state: bool = True  # False: each text is read from its beginning, up to the number of positions
    positions: int | None = None  # largest number of tokens that it reads after a state; None: no limit

    def __init__(
        self, vocabulary: int, embedding: int, hidden: int, tied: bool, adaptive: AdaptiveVocabulary | None = None
    ):
        """Create the embedding and the softmax.

        Args:
            vocabulary: number of tokens.
            embedding: width of the embeddings.
            hidden: width of the hidden states.
            tied: use the embeddings as output weights (Press & Wolf 2017; Inan et al. 2017).
            adaptive: an adaptive vocabulary, which replaces embedding and softmax.
        """
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
        """The output weights (V, D)."""
        return self.embedding.weight if self.untied is None else self.untied

    @property
    def softmax(self) -> tuple[Tensor, Tensor]:
        """The weights (V, D) and bias (V,) that turn hidden states into logits."""
        return self.output_weight, self.output_bias

    @abstractmethod
    def initial_state(self, batch: int) -> State:
        """Return the state before the first token of `batch` texts, on the model's device."""

    @abstractmethod
    def forward(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Read tokens (B, T) int64 after `state`. Return hidden states (B, T, D), after dropout, and the next state.

        The next state has no gradient.
        """

    def read_trees(self, tokens: Tensor, parents: Tensor, depths: Tensor, state: State) -> Tensor:
        """Return the hidden states (B, T, D) of B trees of texts. Each token is read after `state` and its ancestors.

        This default reads trees of one text each. A model can override it, and `tree_tokens`, to read tokens that
        several texts share only once. That is faster and doesn't change the scores.

        Args:
            tokens: the tokens of each tree (B, T), int64.
            parents: the place of each token's predecessor in its row (B, T), or -1 at the beginning of a text. Parents
                come before their children.
            depths: the number of tokens before each token in its text (B, T).
            state: the state of a single text.
        """
        hidden: Tensor = self(tokens, self.expanded(state, len(tokens)))[0]
        return hidden

    def expanded(self, state: State, batch: int) -> State:
        """Repeat the state of one text for `batch` texts. Initial states show which dimension is the batch."""

        def repeated(tensor: Tensor, one: Tensor, two: Tensor) -> Tensor:
            wider = [dim for dim in range(one.dim()) if one.shape[dim] != two.shape[dim]]
            return tensor.repeat_interleave(batch, dim=wider[0]) if wider else tensor

        return tuple(map(repeated, state, self.initial_state(1), self.initial_state(2)))

    def embed(self, tokens: Tensor) -> Tensor:
        """Return the embeddings (B, T, E) of tokens (B, T) int64, before scaling and dropout."""
        embedded: Tensor = self.embedding(tokens) if self.adaptive is None else self.adaptive.embed(tokens)
        return embedded

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return the scalar sum of -ln p(target), in nats, for targets (N,) int64 after hidden states (N, D)."""
        if self.adaptive is not None:
            return self.adaptive.loss(hidden, targets)
        return cross_entropy(hidden, *self.softmax, targets)

    def logprobs(self, hidden: Tensor, targets: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return ln p(target) (N,) in nats for targets (N,) int64 after hidden states (M, D), float32 without gradient.

        `rows` (N,), in increasing order, names the hidden state that each target follows. Without it, M = N.
        """
        if self.adaptive is not None:
            return self.adaptive.logprobs(hidden, targets, rows)
        return token_logprobs(hidden, *self.softmax, targets, rows)

    def all_logprobs(self, hidden: Tensor) -> Tensor:
        """Return ln p (N, V) in nats for every token after hidden states (N, D), without gradient."""
        if self.adaptive is not None:
            with torch.no_grad():
                return self.adaptive.log_softmax(hidden)
        return all_logprobs(hidden, *self.softmax)


def ancestors(parents: Tensor) -> Tensor:
    """Return a mask (B, T, T) that is True at [b, i, j] if token j is token i or one of its ancestors.

    `parents` (B, T) contains the place of each token's parent, or -1. Parents come before their children.
    """
    batch, length = parents.shape
    above = parents.cpu()
    seen = torch.zeros(batch, length + 1, length, dtype=torch.bool)  # the last row stays empty (no parent)
    rows = torch.arange(batch)
    for place in range(length):
        seen[:, place] = seen[rows, above[:, place]]
        seen[:, place, place] = True
    return seen[:, :length].to(parents.device)
