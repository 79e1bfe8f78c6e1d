"""A classifier on the hidden state of one token of a language model."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from corpora.tokenizers import PAD
from train.models.base import LanguageModel
from train.models.huggingface import HuggingFaceModel


class Classifier(nn.Module):
    """A language model, and a head that turns the hidden state of one place of each text into logits of classes.

    The head is that of BabyLM's pipeline of 2026: layer norm, linear layer, GELU, layer norm, dropout, linear layer.
    Its layer norms have no weights. All weights of the model are trained, except those of layers that only predict
    tokens.
    """

    def __init__(self, model: LanguageModel, classes: int, dropout: float):
        """Put a new head on a model. Its weights are drawn from torch's global generator."""
        super().__init__()
        self.model = model
        with torch.no_grad():
            width = self._hidden(torch.full((1, 2), PAD + 2)).shape[-1]
        self.head = nn.Sequential(
            nn.LayerNorm(width, 1e-5, elementwise_affine=False),
            nn.Linear(width, width),
            nn.GELU(),
            nn.LayerNorm(width, 1e-5, elementwise_affine=False),
            nn.Dropout(dropout),
            nn.Linear(width, classes),
        )

    def forward(self, tokens: Tensor, places: Tensor) -> Tensor:
        """Return the logits (B, C) for texts (B, T), padded on the right, from the hidden states at `places` (B,)."""
        hidden = self._hidden(tokens)
        logits: Tensor = self.head(hidden[torch.arange(len(tokens), device=tokens.device), places])
        return logits

    def _hidden(self, tokens: Tensor) -> Tensor:
        """Return the last hidden states (B, T, D), before the layers that predict tokens.

        Only masked models need to know the padding; other models don't look ahead.
        """
        if not isinstance(self.model, HuggingFaceModel):
            hidden: Tensor = self.model(tokens, self.model.initial_state(len(tokens)))[0]
            return hidden
        attended = {} if self.model.pad is None else {"attention_mask": (tokens != self.model.pad).long()}
        states: Tensor = self.model.network.base_model(input_ids=tokens, **attended).last_hidden_state
        return states
