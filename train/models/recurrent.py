"""Define the recurrent language models LSTM, GRU and simple RNN.

The LSTM follows Gulordava et al. 2018. BLiMP and CLiMP use the same one.

This file travels with the weights (train/models/travel.py).
"""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from train.models.base import LanguageModel, State, cpu_has_bf16

INITIAL_RANGE = 0.1  # embeddings and output weights are drawn uniformly from -0.1 to 0.1


class LstmLanguageModel(LanguageModel):
    """Embeddings, recurrent layers and a softmax, with dropout on embeddings, between layers and on the output."""

    kind: ClassVar[str] = "lstm"  # first part of the names of the layers' weights
    layer_class: ClassVar[Callable[..., nn.RNNBase]] = nn.LSTM
    states: ClassVar[int] = 2  # number of states per layer: hidden state and cell state
    tree_tokens = None

    def __init__(self, config: Any, vocabulary: int):
        super().__init__(vocabulary, config.embedding, config.hidden, config.tied)
        between_layers = config.dropout if config.layers > 1 else 0.0
        layers = self.layer_class(
            config.embedding, config.hidden, config.layers, batch_first=True, dropout=between_layers
        )
        self.add_module(self.kind, layers)
        self.dropout = nn.Dropout(config.dropout)
        nn.init.uniform_(self.embedding.weight, -INITIAL_RANGE, INITIAL_RANGE)
        nn.init.uniform_(self.output_weight, -INITIAL_RANGE, INITIAL_RANGE)

    @property
    def layers(self) -> nn.RNNBase:
        layers: nn.RNNBase = getattr(self, self.kind)
        return layers

    def initial_state(self, batch: int) -> State:
        """Return zeros for each state, (layers, B, hidden)."""
        zeros = self.output_weight.new_zeros(self.layers.num_layers, batch, self.layers.hidden_size)
        return tuple(zeros.clone() for _ in range(self.states))

    def forward(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        embedded = self.dropout(self.embed(tokens))  # (B, T, E)
        device = embedded.device.type
        autocast = torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
        if autocast and (device == "cuda" or not cpu_has_bf16()):
            # On CUDA, autocast gives these layers float16 even if set to bfloat16, and small gradients would become
            # zero. On CPUs without bfloat16 instructions, these layers don't exist in bfloat16.
            with torch.autocast(device, enabled=False):
                hidden, last = self._read(embedded.float(), tuple(one.float() for one in state))
        else:
            hidden, last = self._read(embedded, state)
        return self.dropout(hidden), tuple(one.detach() for one in last)

    def _read(self, embedded: Tensor, state: State) -> tuple[Tensor, State]:
        if self.training and self.layers.dropout and embedded.is_cuda:
            # cuDNN draws the masks between layers from its own state, which no checkpoint contains. Setting torch's
            # generator makes cuDNN derive a new state from it.
            torch.cuda.set_rng_state(torch.cuda.get_rng_state(embedded.device), embedded.device)
        hidden, last = self.layers(embedded, state if self.states > 1 else state[0])
        return hidden, last if self.states > 1 else (last,)

    def read_trees(self, tokens: Tensor, parents: Tensor, depths: Tensor, state: State) -> Tensor:
        """Read the trees level by level, and start each token from the state of its parent."""
        size = tokens.shape[1]
        above = torch.where(parents < 0, -1, parents + size * torch.arange(len(tokens), device=tokens.device)[:, None])
        above, level = above.flatten(), depths.flatten()
        order = level.argsort(stable=True)
        parts = torch.split(order, torch.bincount(level).tolist())
        within = torch.empty_like(order)  # each token's place within its level
        hidden: list[Tensor] = []
        for number, part in enumerate(parts):
            within[part] = torch.arange(len(part), device=part.device)
            if number == 0:
                state = tuple(one.expand(-1, len(part), -1).contiguous() for one in state)
            else:
                state = tuple(one[:, within[above[part]]] for one in state)
            read, state = self.forward(tokens.flatten()[part, None], state)
            hidden.append(read[:, 0])
        by_level = torch.cat(hidden)
        return torch.empty_like(by_level).index_copy(0, order, by_level).view(*tokens.shape, -1)


class GruLanguageModel(LstmLanguageModel):
    """The same model with gated recurrent units (Cho et al. 2014)."""

    kind = "gru"
    layer_class = nn.GRU
    states = 1


class RnnLanguageModel(LstmLanguageModel):
    """The same model with tanh units (Elman 1990; Mikolov et al. 2010)."""

    kind = "rnn"
    layer_class = nn.RNN
    states = 1
