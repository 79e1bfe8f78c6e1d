"""Define the Transformer-XL (Dai et al. 2019, section 3, appendix B), with memory and relative attention.

Layer norms, dropout and initial weights are as in the authors' base model on WikiText-103. Embeddings and softmax are
adaptive (train/models/loss.py) if the configuration has cutoffs, or embeddings narrower than the model. This file
travels with the weights (train/models/travel.py).
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from train.models.base import LanguageModel, State, ancestors
from train.models.loss import AdaptiveVocabulary


def sinusoids(distances: Tensor, d_model: int, dtype: torch.dtype) -> Tensor:
    """Encode distances (L,) as sines and then cosines (L, d_model) (Vaswani et al. 2017, section 3.5)."""
    frequencies = 10000 ** (-torch.arange(0, d_model, 2, device=distances.device, dtype=dtype) / d_model)
    angles = distances[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def distance_scores(query: Tensor, distance: Tensor, blocked: Tensor) -> Tensor:
    """Return terms (b) and (d) of the attention scores, (H, B, T, L), divided by sqrt(d).

    Scores are -inf where a query must not look. As in appendix B of the paper, row i of query @ distance.T contains the
    values of query i, but T-1-i columns too far to the right. Its rows have L+1 numbers, so skipping the first T-1
    numbers and reading rows of L from there shifts every row into place without a copy. Keys after a query receive
    values from blocked columns, which are -inf as required.

    Args:
        query: the queries plus the bias v (H, B, T, d).
        distance: the encoded distances L-1 to 0, and a last row without a distance (H, L+1, d).
        blocked: 0 or -inf for each query and each row of `distance` (T, L+1).
    """
    heads, batch, length, size = query.shape
    keys = distance.shape[1] - 1
    scores = torch.baddbmm(
        blocked.expand(batch, -1, -1).reshape(1, batch * length, keys + 1),
        query.reshape(heads, batch * length, size),
        distance.transpose(1, 2),
        alpha=1 / math.sqrt(size),
    )
    rows = scores.view(heads, batch, length * (keys + 1))
    return rows[..., length - 1 : length - 1 + length * keys].view(heads, batch, length, keys)


def distance_scores_at(query: Tensor, distance: Tensor, index: Tensor, blocked: Tensor) -> Tensor:
    """Return the same scores (H, B, T, L) as `distance_scores` for arbitrary distances.

    `index` (B, T, L) names the row of `distance` (H, R, d) for each query and key. `blocked` (B, T, L) is 0 or -inf.
    """
    scores = torch.einsum("hbtd,hrd->hbtr", query, distance) / math.sqrt(query.shape[-1])
    return scores.gather(-1, index.expand(len(scores), -1, -1, -1)) + blocked


DistanceScores = Callable[[Tensor, Tensor], Tensor]  # takes queries and encoded distances, returns scores


class RelativeAttention(nn.Module):
    """Multi-head attention with the terms (a) to (d) of section 3.3.

    The terms are products: (a) of the contents of query and key, (b) of the query's content and the distance, (c) of
    the bias u and the key's content, and (d) of the bias v and the distance. Terms (a) and (c) are one product, to
    which (b) and (d) are added.
    """

    def __init__(self, config: Any):
        super().__init__()
        self.heads = config.heads
        width = config.heads * config.d_head
        self.query = nn.Linear(config.d_model, width, bias=False)
        self.key_value = nn.Linear(config.d_model, 2 * width, bias=False)
        self.distance = nn.Linear(config.d_model, width, bias=False)
        self.output = nn.Linear(width, config.d_model, bias=False)
        self.dropout = nn.Dropout(config.attention_dropout)

    def forward(
        self, x: Tensor, memory: Tensor, encodings: Tensor, scores: DistanceScores, u: Tensor, v: Tensor
    ) -> Tensor:
        """Attend from x (B, T, D) to memory (B or 1, m, D) and x, with distance encodings (R, D).

        The biases u and v are (H, 1, 1, d).
        """
        # Heads come first, so that the distances, which all texts share, multiply all queries of a head at once.
        query = self.query(x)  # (B, T, H * d)
        at_content, at_distance = (self._by_head(query + bias.flatten().to(query)) for bias in (u, v))  # (H, B, T, d)
        # Memory and x are projected separately, because the memory doesn't need a gradient.
        remembered = self.key_value(memory).expand(len(x), -1, -1).chunk(2, dim=-1)
        latest = self.key_value(x).chunk(2, dim=-1)
        key, value = (
            torch.cat([self._by_head(old), self._by_head(new)], dim=2)  # (H, B, L, d)
            for old, new in zip(remembered, latest, strict=True)
        )
        by_distance = scores(at_distance, self._by_head(self.distance(encodings)))  # (H, B, T, L)
        mixed = self._mix(at_content, key, value, by_distance)
        attended: Tensor = self.output(mixed.permute(1, 2, 0, 3).flatten(2))
        return attended

    def _mix(self, query: Tensor, key: Tensor, value: Tensor, by_distance: Tensor) -> Tensor:
        """Weight values (H, B, L, d) by softmax(query @ key.T / sqrt(d) + by_distance), and return (H, B, T, d)."""
        if not by_distance.requires_grad:
            dropped = self.dropout.p if self.training else 0.0
            # GPU kernels need a mask that begins at a multiple of 16 bytes, which this view of rows may not do.
            whole = torch.contiguous_format
            mask = by_distance if by_distance.device.type == "cpu" else by_distance.clone(memory_format=whole)
            return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropped)
        # If the mask needs a gradient, torch's own function computes in float32 even under autocast, in more passes.
        heads, batch, length, size = query.shape
        query, key, value, by_distance = (part.flatten(0, 1) for part in (query, key, value, by_distance))
        scores = torch.baddbmm(by_distance, query, key.transpose(1, 2), alpha=1 / math.sqrt(size))
        mixed = torch.bmm(self.dropout(scores.softmax(-1)), value)
        return mixed.view(heads, batch, length, size)

    def _by_head(self, x: Tensor) -> Tensor:
        """Return x (..., H * d) as (H, ..., d)."""
        return x.view(*x.shape[:-1], self.heads, x.shape[-1] // self.heads).movedim(-2, 0)


class Layer(nn.Module):
    """Attention and a feed-forward block, each added to its input. `pre_norm` normalises inputs, not sums."""

    def __init__(self, config: Any):
        super().__init__()
        self.attention = RelativeAttention(config)
        self.attention_norm = nn.LayerNorm(config.d_model)
        self.inner = nn.Linear(config.d_model, config.d_inner)
        self.outer = nn.Linear(config.d_inner, config.d_model)
        self.feed_forward_norm = nn.LayerNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.pre_norm = config.pre_norm

    def forward(
        self, x: Tensor, memory: Tensor, encodings: Tensor, scores: DistanceScores, u: Tensor, v: Tensor
    ) -> Tensor:
        if self.pre_norm:
            read, remembered = self.attention_norm(x), self.attention_norm(memory)
            x = x + self.dropout(self.attention(read, remembered, encodings, scores, u, v))
            return x + self._feed_forward(self.feed_forward_norm(x))
        x = self.attention_norm(x + self.dropout(self.attention(x, memory, encodings, scores, u, v)))
        normed: Tensor = self.feed_forward_norm(x + self._feed_forward(x))
        return normed

    def _feed_forward(self, x: Tensor) -> Tensor:
        inner = self.dropout(F.relu(self.inner(x)))
        outer: Tensor = self.dropout(self.outer(inner))
        return outer


class TransformerXL(LanguageModel):
    """Transformer layers that also attend to up to `memory` earlier inputs, without gradient.

    The state has one tensor (B, m, d_model) per layer, with m from 0 to `memory`.
    """

    tree_tokens = 128

    def __init__(self, config: Any, vocabulary: int):
        adaptive = AdaptiveVocabulary(config, vocabulary) if config.adaptive else None
        super().__init__(vocabulary, config.d_model, config.d_model, config.tied, adaptive)
        self.d_model, self.memory = config.d_model, config.memory
        self.same_length, self.clamp_len = config.same_length, config.clamp_len
        self.u = nn.Parameter(torch.empty(config.heads, 1, 1, config.d_head))  # for all layers, as in the base model
        self.v = nn.Parameter(torch.empty(config.heads, 1, 1, config.d_head))
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.dropout = nn.Dropout(config.dropout)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, 0.0, config.initial_sd)
            else:
                nn.init.zeros_(parameter)
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                nn.init.normal_(module.weight, 1.0, config.initial_sd)
        if adaptive is not None:
            adaptive.draw_projections()

    def initial_state(self, batch: int) -> State:
        """Return an empty memory (B, 0, d_model) for each layer."""
        return tuple(self.u.new_zeros(batch, 0, self.d_model) for _ in self.layers)

    def forward(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        length, keys = tokens.shape[1], state[0].shape[1] + tokens.shape[1]
        distances = torch.arange(keys - 1, -2, -1, device=tokens.device)  # the last doesn't belong to a key
        # A query sees everything back to the first key or, with `same_length`, only `memory` places.
        furthest = torch.arange(length, device=tokens.device) + keys - length
        if self.same_length:
            furthest = furthest.clamp(max=self.memory - 1)
        x, encodings, blocked = self._inputs(tokens, distances, (distances >= 0) & (distances <= furthest[:, None]))
        scores = partial(distance_scores, blocked=blocked)  # (T, L+1)
        memories = []
        for layer, memory in zip(self.layers, state, strict=True):
            # This is a copy, because a slice of `x` would keep all of `x` in memory and in checkpoints.
            latest = [memory[:, max(0, keys - self.memory) :], x.detach()[:, max(0, length - self.memory) :]]
            memories.append(torch.cat(latest, dim=1))
            x = layer(x, memory, encodings, scores, self.u, self.v)
        return self.dropout(x), tuple(memories)

    def read_trees(self, tokens: Tensor, parents: Tensor, depths: Tensor, state: State) -> Tensor:
        """Read each row at once. A token attends to the memory and its ancestors, at the distances in its own text."""
        (batch, length), remembered = tokens.shape, state[0].shape[1]
        seen = ancestors(parents)  # (B, T, T)
        before = torch.arange(-remembered, 0, device=tokens.device).expand(batch, -1)
        index = depths[:, :, None] - torch.cat([before, depths], dim=1)[:, None]  # (B, T, m+T): distances
        seen = torch.cat([seen.new_ones(batch, length, remembered), seen], dim=2)
        if self.same_length:
            seen &= index < self.memory
        distances = torch.arange(int(depths.max()) + remembered + 1, device=tokens.device)
        x, encodings, blocked = self._inputs(tokens, distances, seen)
        scores = partial(distance_scores_at, index=index.clamp(min=0), blocked=blocked)
        for layer, memory in zip(self.layers, state, strict=True):
            x = layer(x, memory, encodings, scores, self.u, self.v)
        hidden: Tensor = self.dropout(x)
        return hidden

    def _inputs(self, tokens: Tensor, distances: Tensor, seen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the first layer's inputs (B, T, D), distance encodings (R, D), and a mask, -inf unless `seen`."""
        x = self.dropout(self.embed(tokens) * math.sqrt(self.d_model))
        encodings = self.dropout(sinusoids(distances.clamp(0, self.clamp_len), self.d_model, x.dtype))
        return x, encodings, torch.zeros(seen.shape, dtype=x.dtype, device=x.device).masked_fill_(~seen, -math.inf)
