"""What every language model of a study has in common: tokens and a state in, hidden vectors and a state out."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn

from train.config import LstmConfig, ModelConfig, TxlConfig

State = tuple[Tensor, ...]


class LanguageModel(nn.Module):
    """A left-to-right model; logits are hidden @ output_weight.T + output_bias (made in chunks by train/loss.py)."""

    @abstractmethod
    def initial_state(self, batch: int) -> State:
        """State before any token, for `batch` columns, on the model's device."""

    @abstractmethod
    def forward(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Map tokens (B, T) and what came before to hidden vectors (B, T, D) and the state after them, detached."""

    @property
    @abstractmethod
    def output_weight(self) -> Tensor:
        """Output embeddings (V, D)."""

    @property
    @abstractmethod
    def output_bias(self) -> Tensor:
        """Output bias (V,)."""


def build_model(config: ModelConfig, vocabulary: int) -> LanguageModel:
    """A freshly initialised model over `vocabulary` tokens; draws from torch's global generator."""
    from train.lstm import LstmLanguageModel
    from train.txl import TransformerXL

    match config:
        case LstmConfig():
            return LstmLanguageModel(config, vocabulary)
        case TxlConfig():
            return TransformerXL(config, vocabulary)
        case _:
            raise TypeError(f"no model for {type(config).__name__}")


def parameter_count(config: ModelConfig, vocabulary: int) -> int:
    """Number of weights, tied ones once; allocates nothing."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build_model(config, vocabulary).parameters())
