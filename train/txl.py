"""The Transformer-XL of Dai et al. 2019 (section 3 and appendix): memory, and attention over relative distances."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from train.config import TxlConfig
from train.models import LanguageModel, State

INITIAL_SD = 0.02  # all weights are drawn from N(0, 0.02), gains of layer norms from N(1, 0.02)


def sinusoids(distances: Tensor, d_model: int) -> Tensor:
    """Encodings (L, d_model) of distances (L,): sines, then cosines, of geometric frequencies (Vaswani et al. 2017)."""
    frequencies = 10000 ** (-torch.arange(0, d_model, 2, device=distances.device, dtype=torch.float32) / d_model)
    angles = torch.outer(distances.float(), frequencies)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)[:, :d_model]


def relative_shift(scores: Tensor) -> Tensor:
    """Move row i of (B, H, T, L) left by T-1-i, from columns by distance to columns by key (appendix B of the paper).

    Column c of the input belongs to distance L-1-c. Entries for keys after the query are meaningless.
    """
    batch, heads, queries, keys = scores.shape
    padded = F.pad(scores, (1, 0)).view(batch, heads, keys + 1, queries)
    return padded[:, :, 1:].view(batch, heads, queries, keys)


class RelativeAttention(nn.Module):
    """Multi-head attention with the terms (a) to (d) of section 3.3.

    (a) content of query and key, (b) content of the query and distance, (c) bias u and content of the key, (d) bias v
    and distance. Terms (a) and (c) are the product inside `scaled_dot_product_attention`, (b) and (d) its mask.
    """

    def __init__(self, config: TxlConfig):
        super().__init__()
        self.heads, self.d_head = config.heads, config.d_head
        width = config.heads * config.d_head
        self.query = nn.Linear(config.d_model, width, bias=False)
        self.key_value = nn.Linear(config.d_model, 2 * width, bias=False)
        self.distance = nn.Linear(config.d_model, width, bias=False)
        self.output = nn.Linear(width, config.d_model, bias=False)
        self.attention_dropout = config.attention_dropout

    def forward(self, x: Tensor, past: Tensor, encodings: Tensor, blocked: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """Attend from x (B, T, D) to past and x (B, L, D).

        `encodings` (L, D) are those of the distances L-1 to 0, `blocked` (T, L) is -inf where a query may not look,
        u and v are (H, 1, d_head).
        """
        batch, length, _ = x.shape
        query = self.query(x).view(batch, length, self.heads, self.d_head).transpose(1, 2)  # (B, H, T, d)
        key_value = self.key_value(past).view(batch, past.shape[1], 2, self.heads, self.d_head)
        key, value = key_value.permute(2, 0, 3, 1, 4)  # (B, H, L, d) each
        distance = self.distance(encodings).view(-1, self.heads, self.d_head).permute(1, 2, 0)  # (H, d, L)
        scale = 1 / math.sqrt(self.d_head)
        by_distance = relative_shift((query + v) @ distance) * scale + blocked  # (B, H, T, L)
        mixed = F.scaled_dot_product_attention(
            query + u,
            key,
            value,
            attn_mask=by_distance.to(query.dtype),
            dropout_p=self.attention_dropout if self.training else 0.0,
            scale=scale,
        )
        return self.output(mixed.transpose(1, 2).reshape(batch, length, -1))


class Layer(nn.Module):
    """Attention and a feed-forward block, each added to its input and then normalised."""

    def __init__(self, config: TxlConfig):
        super().__init__()
        self.attention = RelativeAttention(config)
        self.attention_norm = nn.LayerNorm(config.d_model)
        self.inner = nn.Linear(config.d_model, config.d_inner)
        self.outer = nn.Linear(config.d_inner, config.d_model)
        self.feed_forward_norm = nn.LayerNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, past: Tensor, encodings: Tensor, blocked: Tensor, u: Tensor, v: Tensor) -> Tensor:
        attended = self.attention(x, past, encodings, blocked, u, v)
        x = self.attention_norm(x + self.dropout(attended))
        inner = self.dropout(F.relu(self.inner(x)))
        return self.feed_forward_norm(x + self.dropout(self.outer(inner)))


class TransformerXL(LanguageModel):
    """Layers that see their own inputs of up to `memory` earlier tokens, which get no gradient.

    The state holds one tensor (B, m, d_model) a layer; m grows from 0 to `memory`.
    """

    def __init__(self, config: TxlConfig, vocabulary: int):
        super().__init__()
        self.d_model, self.memory = config.d_model, config.memory
        self.same_length, self.clamp_len = config.same_length, config.clamp_len
        self.embedding = nn.Embedding(vocabulary, config.d_model)
        self.u = nn.Parameter(torch.empty(config.heads, 1, config.d_head))
        self.v = nn.Parameter(torch.empty(config.heads, 1, config.d_head))
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.dropout = nn.Dropout(config.dropout)
        self.output = nn.Linear(config.d_model, vocabulary)
        if config.tied:
            self.output.weight = self.embedding.weight
        for parameter in self.parameters():
            nn.init.normal_(parameter, 0.0, INITIAL_SD)
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                nn.init.normal_(module.weight, 1.0, INITIAL_SD)
            if isinstance(module, (nn.LayerNorm, nn.Linear)) and module.bias is not None:
                nn.init.zeros_(module.bias)

    @property
    def output_weight(self) -> Tensor:
        return self.output.weight

    @property
    def output_bias(self) -> Tensor:
        return self.output.bias

    def initial_state(self, batch: int) -> State:
        """Empty memories, each (B, 0, d_model)."""
        weight = self.embedding.weight
        return tuple(weight.new_zeros(batch, 0, self.d_model) for _ in self.layers)

    def forward(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        length, remembered = tokens.shape[1], state[0].shape[1]
        total = remembered + length
        distances = torch.arange(total - 1, -1, -1, device=tokens.device)
        clamped = distances if self.clamp_len is None else distances.clamp(max=self.clamp_len)
        encodings = self.dropout(sinusoids(clamped, self.d_model))
        blocked = self._blocked(length, remembered, tokens.device)

        x = self.dropout(self.embedding(tokens) * math.sqrt(self.d_model))
        memories = []
        for layer, memory in zip(self.layers, state, strict=True):
            past = torch.cat([memory.to(x.dtype), x], dim=1)
            memories.append(past[:, max(0, total - self.memory) :].detach())
            x = layer(x, past, encodings, blocked, self.u, self.v)
        return self.dropout(x), tuple(memories)

    def _blocked(self, length: int, remembered: int, device: torch.device) -> Tensor:
        """(T, L): 0 where query i may look at key j, -inf at later keys and, with same_length, at those too far back."""
        back = (
            torch.arange(length, device=device)[:, None] + remembered - torch.arange(length + remembered, device=device)
        )
        hidden = back < 0
        if self.same_length:
            hidden |= back >= max(1, self.memory)
        return torch.zeros(hidden.shape, device=device).masked_fill_(hidden, -math.inf)
