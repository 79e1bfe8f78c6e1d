"""The LSTM language model of Gulordava et al. 2018, the word-level model of BLiMP and CLiMP."""

import torch
from torch import Tensor, nn

from train.models.base import LanguageModel, State
from train.models.config import LstmConfig
from train.models.dropout import Dropout

INITIAL_RANGE = 0.1  # embeddings and output weights are drawn uniformly from -0.1 to 0.1


class LstmLanguageModel(LanguageModel):
    """Embeddings, a stack of LSTM layers, a softmax; dropout on embeddings, between layers and on the output."""

    def __init__(self, config: LstmConfig, vocabulary: int):
        super().__init__(vocabulary, config.embedding, config.hidden, config.tied)
        between_layers = config.dropout if config.layers > 1 else 0.0
        self.lstm = nn.LSTM(config.embedding, config.hidden, config.layers, batch_first=True, dropout=between_layers)
        self.dropout = Dropout(config.dropout)
        nn.init.uniform_(self.embedding.weight, -INITIAL_RANGE, INITIAL_RANGE)
        nn.init.uniform_(self.output_weight, -INITIAL_RANGE, INITIAL_RANGE)

    def initial_state(self, batch: int) -> State:
        """Return zeros: hidden and cell state, each (layers, B, hidden)."""
        zeros = self.output_weight.new_zeros(self.lstm.num_layers, batch, self.lstm.hidden_size)
        return zeros, zeros.clone()

    def forward(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        embedded = self.dropout(self.embed(tokens))  # (B, T, E)
        if embedded.device.type == "cuda" and torch.is_autocast_enabled("cuda"):
            # Autocast gives the layers float16 even if set to bfloat16: small gradients would become zero.
            with torch.autocast("cuda", enabled=False):
                hidden, (last_hidden, last_cell) = self.lstm(embedded.float(), (state[0].float(), state[1].float()))
        else:
            hidden, (last_hidden, last_cell) = self.lstm(embedded, (state[0], state[1]))
        return self.dropout(hidden), (last_hidden.detach(), last_cell.detach())

    def read_trees(self, tokens: Tensor, parents: Tensor, depths: Tensor, state: State) -> Tensor:
        """Read level by level, each token in the state of its parent."""
        size = tokens.shape[1]
        above = torch.where(parents < 0, -1, parents + size * torch.arange(len(tokens), device=tokens.device)[:, None])
        above, level = above.flatten(), depths.flatten()
        order = level.argsort(stable=True)
        parts = torch.split(order, torch.bincount(level).tolist())
        within = torch.empty_like(order)  # place of a token among those of its level
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
