"""Training steps of our models, of a plain implementation, of the authors' code, and the limit of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from pairscale.command.compose import compose
from tests.bench.limit import products_alone
from tests.bench.references import AUTHORS
from tests.bench.turns import OURS, Case, Way, repeated
from train.loop.device import set_up_gpu
from train.models.build import build_model

Loss = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

# Batch size, None for the recipe's: 60 texts of 150 tokens need 30 GB.
PUBLISHED = {"lstm": None, "txl": None if torch.cuda.is_available() else 8}
TINY = {"lstm_tiny": None, "txl_tiny": None}
VOCABULARY = 50_000
TINY_VOCABULARY = 8_000
PRECISIONS = ("fp32", "bf16")
LIMIT, PLAIN, REFERENCE = "limit", "plain", "reference"
GOALS = {  # least share of the limit, and least ratio to the speed of the authors' code
    ("lstm", "fp32"): {LIMIT: 0.85, REFERENCE: 1.0},
    ("lstm", "bf16"): {LIMIT: 0.75, REFERENCE: 1.9},
    ("txl", "fp32"): {LIMIT: 0.85, REFERENCE: 1.1},
    ("txl", "bf16"): {LIMIT: 0.75, REFERENCE: 2.0},
}


def training_cases(models: Mapping[str, int | None], vocabulary: int, checkouts: Mapping[str, Path]) -> Iterator[Case]:
    """Yield a case for each model and precision; `checkouts` are folders of the authors' code by model."""
    for model, batch in models.items():
        for precision in PRECISIONS:
            bf16 = precision == "bf16"
            ways: dict[str, Way] = {
                OURS: repeated(step(model, vocabulary, batch, bf16)),
                PLAIN: repeated(step(model, vocabulary, batch, bf16, full_softmax)),
                LIMIT: repeated(products_alone(step(model, vocabulary, batch, bf16))),
            }
            if model in checkouts:
                ways[REFERENCE] = AUTHORS[model](checkouts[model], vocabulary, batch)
            name = f"train {model}, {vocabulary // 1000}k words, {precision}"
            yield Case(name, "tokens", ways, GOALS.get((model, precision), {}))


def full_softmax(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """Return the loss from all logits of the batch at once, with plain autograd."""
    return F.cross_entropy(F.linear(hidden, weight, bias), targets, reduction="sum")


def step(model: str, vocabulary: int, batch: int | None, bf16: bool, loss: Loss | None = None) -> Callable[[], float]:
    """Return one optimiser step of the model's own recipe; units are tokens."""
    config = compose("train", [f"model={model}"])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    net = build_model(config.model, vocabulary).to(device)
    optimizer = config.recipe.optimizer(net.parameters())
    batch, bptt = batch or config.recipe.batch, config.recipe.bptt
    tokens = torch.from_numpy(zipf(vocabulary, np.random.default_rng(1), (batch, bptt + 1))).to(device)
    state = net.initial_state(batch)

    def one() -> float:
        nonlocal state
        targets = tokens[:, 1:].reshape(-1)
        set_up_gpu(bf16)
        with torch.autocast(device, dtype=torch.bfloat16, enabled=bf16):
            hidden, state = net(tokens[:, :-1], state)
            hidden = hidden.flatten(0, 1)
            if loss is None:
                total = net.loss(hidden, targets)
            else:
                total = loss(hidden, net.output_weight, net.output_bias, targets)
        (total / targets.numel()).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(net.parameters(), config.recipe.clip)
        optimizer.step()
        optimizer.zero_grad()
        if device == "cuda":
            torch.cuda.synchronize()
        return targets.numel()

    one()  # a Transformer-XL's memory is full from the second step on
    return one


def zipf(vocabulary: int, numbers: np.random.Generator, size: int | tuple[int, int]) -> npt.NDArray[np.int64]:
    """Draw ids with Zipf's frequencies, as those of words."""
    weights = 1 / np.arange(1, vocabulary + 1)
    return numbers.choice(vocabulary, size, p=weights / weights.sum())
