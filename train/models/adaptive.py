"""Embeddings and softmax of a large vocabulary in clusters of falling frequency: rare words get few numbers, seldom.

The softmax is that of Grave et al. 2017, section 4 (of two levels: the frequent words and one entry for each cluster of
rarer ones; then the words of a cluster), the embeddings those of Baevski and Auli 2019, section 3 (cluster i has
`embedding // div_val**i` numbers a word, projected to the model's width). Probabilities are exact, over the whole
vocabulary. Ids must be ordered by falling frequency for it to be fast; it is right in any order.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pairscale.errors import ConfigError
from train.models.config import TxlConfig
from train.models.loss import all_logprobs, cross_entropy, token_logprobs


class AdaptiveVocabulary(nn.Module):
    """Words by cluster, C of them: cluster i has the ids from `starts[i]` to `starts[i + 1]`, of width w_i.

    Cluster 0 is the head, whose softmax has C-1 further entries, one for each other cluster. Projections (D, w_i) from
    and to the model's width D are there unless all clusters have it.
    """

    def __init__(self, config: TxlConfig, vocabulary: int):
        """Weights are left for the model to draw. Raises ConfigError for cutoffs that the vocabulary does not reach."""
        super().__init__()
        if config.cutoffs and config.cutoffs[-1] >= vocabulary:
            raise ConfigError(f"model.cutoffs={config.cutoffs}: must be below {vocabulary}, the size of the vocabulary")
        self.starts = [0, *config.cutoffs, vocabulary]
        self.width = config.d_model
        sizes = [end - start for start, end in zip(self.starts, self.starts[1:], strict=False)]
        widths = config.widths
        projected = config.div_val > 1 or widths[0] != config.d_model
        self.tables = nn.ParameterList(torch.empty(size, width) for size, width in zip(sizes, widths, strict=True))
        self.untied = None if config.tied else nn.ParameterList(torch.empty_like(table) for table in self.tables)
        self.biases = nn.ParameterList(torch.zeros(size) for size in sizes)
        self.cluster_weight = nn.Parameter(torch.empty(len(sizes) - 1, widths[0]))
        self.cluster_bias = nn.Parameter(torch.zeros(len(sizes) - 1))
        shapes = [(config.d_model, width) for width in widths] if projected else []
        own = shapes[:1] if config.tied_projections else shapes  # as published, the head's is its own in any case
        self.projections = nn.ParameterList(torch.empty(shape) for shape in shapes)
        self.output_projections = nn.ParameterList(torch.empty(shape) for shape in own)

    def draw_projections(self) -> None:
        """From N(0, 1/w_i): embeddings and logits are then as large as those of a model without projections."""
        for projection in (*self.projections, *self.output_projections):
            nn.init.normal_(projection, 0.0, projection.shape[1] ** -0.5)

    def embed(self, tokens: Tensor) -> Tensor:
        """Embeddings of tokens, any shape, int64: (..., D)."""
        flat = tokens.reshape(-1)
        embedded = self.tables[0].new_zeros(len(flat), self.width)
        for cluster, table in enumerate(self.tables):
            rows = self._rows(flat, cluster)
            found = F.embedding(flat[rows] - self.starts[cluster], table)
            if self.projections:
                found = F.linear(found, self.projections[cluster])
            embedded.index_copy_(0, rows, found.to(embedded.dtype))  # autocast may have made them smaller
        shaped: Tensor = embedded.view(*tokens.shape, self.width)
        return shaped

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Sum of -ln p(target) in nats of hidden states (N, D) and targets (N,), in bounded memory as
        train.models.loss.
        """
        total = cross_entropy(self._projected(hidden, 0), *self._head(), self._head_targets(targets))
        for cluster in range(1, len(self.tables)):
            rows = self._rows(targets, cluster)
            states = self._projected(hidden[rows], cluster)
            total = total + cross_entropy(states, *self._tail(cluster), targets[rows] - self.starts[cluster])
        return total

    @torch.no_grad()
    def logprobs(self, hidden: Tensor, targets: Tensor, rows: Tensor | None = None) -> Tensor:
        """ln p(target) in nats of targets (N,) after hidden states (M, D), without gradient; as `token_logprobs`."""
        result = token_logprobs(self._projected(hidden, 0), *self._head(), self._head_targets(targets), rows)
        if rows is None:
            rows = torch.arange(len(hidden), device=hidden.device)
        for cluster in range(1, len(self.tables)):
            chosen = self._rows(targets, cluster)
            followed, place = torch.unique_consecutive(rows[chosen], return_inverse=True)
            states = self._projected(hidden[followed], cluster)
            within = targets[chosen] - self.starts[cluster]
            result[chosen] += token_logprobs(states, *self._tail(cluster), within, place)
        return result

    def all_logprobs(self, hidden: Tensor) -> Tensor:
        """ln p in nats of every token after hidden states (N, D), without gradient: (N, V)."""
        head = all_logprobs(self._projected(hidden, 0), *self._head())
        parts = [head[:, : self.starts[1]]]
        for cluster in range(1, len(self.tables)):
            within = all_logprobs(self._projected(hidden, cluster), *self._tail(cluster))
            parts.append(head[:, self.starts[1] + cluster - 1, None] + within)
        return torch.cat(parts, dim=1)

    def _rows(self, ids: Tensor, cluster: int) -> Tensor:
        """Places in ids (N,) of those of a cluster."""
        return ((ids >= self.starts[cluster]) & (ids < self.starts[cluster + 1])).nonzero().squeeze(1)

    def _head_targets(self, targets: Tensor) -> Tensor:
        """Words of the head as they are, others as their cluster's entry after them."""
        bounds = torch.tensor(self.starts[1:-1], device=targets.device, dtype=targets.dtype)
        cluster = torch.bucketize(targets, bounds, right=True)
        return torch.where(cluster == 0, targets, self.starts[1] + cluster - 1)

    def _head(self) -> tuple[Tensor, Tensor]:
        """Weights (n_0 + C - 1, w_0) and biases of the head's softmax."""
        weight, bias = self._tail(0)
        return torch.cat([weight, self.cluster_weight]), torch.cat([bias, self.cluster_bias])

    def _tail(self, cluster: int) -> tuple[Tensor, Tensor]:
        """Weights (n, w) and biases (n,) of the words of a cluster."""
        tables = self.tables if self.untied is None else self.untied
        return tables[cluster], self.biases[cluster]

    def _projected(self, hidden: Tensor, cluster: int) -> Tensor:
        """Hidden states (N, D) in the width of a cluster (N, w)."""
        if not self.projections:
            return hidden
        own = cluster < len(self.output_projections)
        projection: Tensor = (self.output_projections if own else self.projections)[cluster]
        return hidden @ projection
