"""Optimisers and learning-rate schedules. What changes with the step alone is computed from it, not stored."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import nn

from train.config import AdamCosineConfig, RecipeConfig, SgdPlateauConfig


def build_optimizer(config: RecipeConfig, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """The optimiser of a recipe; where the rate follows a schedule it is set before each step."""
    match config:
        case SgdPlateauConfig():
            return torch.optim.SGD(parameters, lr=config.lr)
        case AdamCosineConfig():
            return torch.optim.Adam(parameters, lr=config.lr, fused=True)  # one pass over the weights
        case _:
            raise TypeError(f"no optimiser for {type(config).__name__}")


def scheduled_rate(config: RecipeConfig, step: int, total_steps: int) -> float | None:
    """Learning rate of step `step` (from 0) of `total_steps`, or None where validation sets it.

    Cosine decay to `min_lr` at the end of the run (Dai et al. 2019, released code), after a linear warm-up over a share
    of the steps.
    """
    match config:
        case AdamCosineConfig():
            warmup = config.warmup * total_steps
            if step < warmup:
                return config.lr * (step + 1) / (warmup + 1)
            progress = (step - warmup) / max(1.0, total_steps - warmup)
            return config.min_lr + 0.5 * (config.lr - config.min_lr) * (1 + math.cos(math.pi * progress))
        case _:
            return None


def rate_after_validation(config: RecipeConfig, rate: float, improved: bool) -> float:
    """Learning rate after a validation: a plateau recipe divides it when the loss did not fall (Gulordava 2018)."""
    match config:
        case SgdPlateauConfig() if not improved:
            return rate / config.divide_by
        case _:
            return rate
