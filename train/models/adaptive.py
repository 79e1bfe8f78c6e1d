"""Adaptive embeddings and softmax: a vocabulary in clusters of falling frequency, the rarer ones narrower.

The softmax is that of Grave et al. 2017, section 4 (two levels: the frequent words and one entry for each cluster of
rarer ones; then the words of a cluster), the embeddings those of Baevski and Auli 2019, section 3 (cluster i has
embeddings of width `embedding // div_val**i`, projected to the model's width). Probabilities are exact, over the whole
vocabulary. They are correct for ids in any order, and fast if ids are ordered by falling frequency.

This file travels with the weights (train/models/travel.py).
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from train.models.loss import cross_entropy, token_logprobs


class AdaptiveVocabulary(nn.Module):
    """Words in C clusters: cluster i has the ids from `starts[i]` to `starts[i + 1]`, of width w_i.

    Cluster 0 is the head, whose softmax has C-1 further entries, one for each other cluster. Projections (D, w_i) from
    and to the model's width D exist unless all clusters have it.
    """

    def __init__(self, config: Any, vocabulary: int):
        """Leave the weights for the model to draw."""
        super().__init__()
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
        own = shapes[:1] if config.tied_projections else shapes  # as published, the head's is never tied
        self.projections = nn.ParameterList(torch.empty(shape) for shape in shapes)
        self.output_projections = nn.ParameterList(torch.empty(shape) for shape in own)

    def draw_projections(self) -> None:
        """Draw from N(0, 1/w_i), so that embeddings and logits are as large as without projections."""
        for projection in (*self.projections, *self.output_projections):
            nn.init.normal_(projection, 0.0, projection.shape[1] ** -0.5)

    def embed(self, tokens: Tensor) -> Tensor:
        """Return the embeddings (..., D) of tokens (...) int64."""
        flat = tokens.reshape(-1)
        embedded = self.tables[0].new_zeros(len(flat), self.width)
        for cluster, table in enumerate(self.tables):
            rows = self._rows(flat, cluster)
            own = F.embedding(flat[rows] - self.starts[cluster], table)
            if self.projections:
                own = F.linear(own, self.projections[cluster])
            embedded.index_copy_(0, rows, own.to(embedded.dtype))  # autocast may have lowered their precision
        shaped: Tensor = embedded.view(*tokens.shape, self.width)
        return shaped

    def loss(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return the sum of -ln p(target), in nats, of hidden states (N, D) and targets (N,): a scalar."""
        total = cross_entropy(self._projected(hidden, 0), *self._head(), self._head_targets(targets))
        for cluster in range(1, len(self.tables)):
            rows = self._rows(targets, cluster)
            states = self._projected(hidden[rows], cluster)
            total = total + cross_entropy(states, *self._tail(cluster), targets[rows] - self.starts[cluster])
        return total

    @torch.no_grad()
    def logprobs(self, hidden: Tensor, targets: Tensor, rows: Tensor | None = None) -> Tensor:
        """Return ln p(target) in nats of targets (N,) after hidden states (M, D) as `token_logprobs`."""
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

    def log_softmax(self, hidden: Tensor) -> Tensor:
        """Return ln p in nats of every token after hidden states (..., D): (..., V), float32 or better."""
        exact = torch.promote_types(hidden.dtype, torch.float32)
        head = F.linear(self._projected(hidden, 0), *self._head()).log_softmax(-1, dtype=exact)
        parts = [head[..., : self.starts[1]]]
        for cluster in range(1, len(self.tables)):
            logits = F.linear(self._projected(hidden, cluster), *self._tail(cluster))
            within = logits.log_softmax(-1, dtype=exact)
            parts.append(head[..., self.starts[1] + cluster - 1, None] + within)
        return torch.cat(parts, dim=-1)

    def _rows(self, ids: Tensor, cluster: int) -> Tensor:
        """Return the places in ids (N,) of those of a cluster."""
        inside: Tensor = (ids >= self.starts[cluster]) & (ids < self.starts[cluster + 1])
        return inside.nonzero().squeeze(1)

    def _head_targets(self, targets: Tensor) -> Tensor:
        """Return the head's entries of targets: words of the head, and the clusters of others."""
        bounds = torch.tensor(self.starts[1:-1], device=targets.device, dtype=targets.dtype)
        cluster = torch.bucketize(targets, bounds, right=True)
        return torch.where(cluster == 0, targets, self.starts[1] + cluster - 1)

    def _head(self) -> tuple[Tensor, Tensor]:
        """Return weights (n_0 + C - 1, w_0) and biases of the head's softmax."""
        weight, bias = self._tail(0)
        return torch.cat([weight, self.cluster_weight]), torch.cat([bias, self.cluster_bias])

    def _tail(self, cluster: int) -> tuple[Tensor, Tensor]:
        """Return weights (n, w) and biases (n,) of the words of a cluster."""
        tables = self.tables if self.untied is None else self.untied
        return tables[cluster], self.biases[cluster]

    def _projected(self, hidden: Tensor, cluster: int) -> Tensor:
        """Return hidden states (N, D) in the width of a cluster: (N, w)."""
        if not self.projections:
            return hidden
        own = cluster < len(self.output_projections)
        projection: Tensor = (self.output_projections if own else self.projections)[cluster]
        return hidden @ projection
