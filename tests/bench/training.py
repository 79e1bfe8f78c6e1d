"""Time training steps of our models, a plain implementation and the authors' code, and the machine's limit.

A way of doing some work is a function that works for about the given number of seconds. It returns the units done and
the seconds spent. The ways in a case take turns, so that other load on the machine slows all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from pairscale.command.compose import compose
from tests.bench.references import AUTHORS
from train.loop.device import set_up_gpu
from train.models.build import build_model

Way = Callable[[float], tuple[float, float]]
Loss = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]

# Batch sizes. None uses the recipe's batch size. The Transformer-XL's 60 texts of 150 tokens need 30 GB.
PUBLISHED = {"lstm": None, "txl": None if torch.cuda.is_available() else 8}
TINY = {"lstm_tiny": None, "txl_tiny": None}
VOCABULARY = 50_000
TINY_VOCABULARY = 8_000
OURS, LIMIT, PLAIN, REFERENCE = "ours", "limit", "plain", "reference"
GOALS = {  # our smallest ratios to the limit and to the speed of the authors' code
    ("lstm", "fp32"): {LIMIT: 0.85, REFERENCE: 1.0},
    ("lstm", "bf16"): {LIMIT: 0.75, REFERENCE: 1.9},
    ("txl", "fp32"): {LIMIT: 0.85, REFERENCE: 1.1},
    ("txl", "bf16"): {LIMIT: 0.75, REFERENCE: 2.0},
}
LIMITING = {  # operations whose total time is the limit of a step
    "mm", "addmm", "addmm_", "bmm", "baddbmm", "baddbmm_", "_softmax", "_log_softmax", "_log_softmax_backward_data",
    "_softmax_backward_data", "mkldnn_rnn_layer", "mkldnn_rnn_layer_backward", "_cudnn_rnn", "_cudnn_rnn_backward",
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_backward",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_efficient_attention_backward",
    "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_cudnn_attention_backward",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu_backward",
}  # fmt: skip


@dataclass
class Case:
    """Several ways, ours first, with their rates in units per second. `goals` are our smallest ratios to the others."""

    name: str
    unit: str
    ways: Mapping[str, Way]
    goals: Mapping[str, float] = field(default_factory=dict)
    rates: dict[str, list[float]] = field(default_factory=dict)

    def measure(self, rounds: int, seconds: float) -> Case:
        """Time all ways for `rounds` turns each, after a warm-up."""
        try:
            for way in self.ways.values():
                way(0)
            for _ in range(rounds):
                for name, way in self.ways.items():
                    units, spent = way(seconds)
                    self.rates.setdefault(name, []).append(units / spent)
        finally:
            for way in self.ways.values():
                getattr(way, "close", lambda: None)()
            self.ways = {}  # to free the models
        return self

    def ratios(self) -> dict[str, list[float]]:
        """Return the ratios of our rate to each other rate, one per round."""
        others = {name: rates for name, rates in self.rates.items() if name != OURS}
        return {
            name: [one / other for one, other in zip(self.rates[OURS], rates, strict=True)]
            for name, rates in others.items()
        }

    def record(self) -> dict[str, Any]:
        ratios = {name: median(ratios) for name, ratios in self.ratios().items()}
        return {"name": self.name, "unit": self.unit, "per_second": self.rates, "ratio": ratios, "goals": self.goals}


def repeated(step: Callable[[], float]) -> Way:
    """Return a way that repeats a step until the time has passed. The step returns its number of units."""

    def way(seconds: float) -> tuple[float, float]:
        done, started = step(), time.perf_counter()
        if seconds == 0:
            return done, 1.0
        done = 0.0
        while (spent := time.perf_counter() - started) < seconds or done == 0:
            done += step()
        return done, spent

    return way


def training_cases(models: Mapping[str, int | None], vocabulary: int, checkouts: Mapping[str, Path]) -> Iterator[Case]:
    """Yield a case for each model and precision. `checkouts` maps models to the folders of the authors' code."""
    for model, batch in models.items():
        for precision in ("fp32", "bf16"):
            bf16 = precision == "bf16"
            ways: dict[str, Way] = {
                OURS: repeated(step(model, vocabulary, batch, bf16)),
                PLAIN: repeated(step(model, vocabulary, batch, bf16, full_softmax)),
                LIMIT: repeated(limit_of(step(model, vocabulary, batch, bf16))),
            }
            if model in checkouts:
                ways[REFERENCE] = AUTHORS[model](checkouts[model], vocabulary, batch)
            name = f"train {model}, {vocabulary // 1000}k words, {precision}"
            yield Case(name, "tokens", ways, GOALS.get((model, precision), {}))


def full_softmax(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """Compute the loss from all logits of the batch at once, with plain autograd."""
    return F.cross_entropy(F.linear(hidden, weight, bias), targets, reduction="sum")


def step(model: str, vocabulary: int, batch: int | None, bf16: bool, loss: Loss | None = None) -> Callable[[], float]:
    """Return a function that does one optimiser step of the model's own recipe and returns its number of tokens."""
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
        synchronize()
        return targets.numel()

    one()  # a Transformer-XL's memory is full from the second step on
    return one


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


class Recorded(TorchDispatchMode):
    """A mode that records the calls of LIMITING operations while it is active, forward and backward."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ in LIMITING:
            self.calls.append((func, _detached(args), _detached(list((kwargs or {}).items()))))
        return func(*args, **(kwargs or {}))


def limit_of(step: Callable[[], float]) -> Callable[[], float]:
    """Return a step that repeats only the LIMITING calls of `step`, on the same tensors and for as many units."""
    with Recorded() as recorded:
        units = step()
    assert recorded.calls

    def alone() -> float:
        for func, args, kwargs in recorded.calls:
            func(*args, **dict(kwargs))
        synchronize()
        return units

    return alone


def _detached(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach()
    return type(value)(map(_detached, value)) if isinstance(value, (list, tuple)) else value


def zipf(vocabulary: int, numbers: np.random.Generator, size: int | tuple[int, int]) -> npt.NDArray[np.int64]:
    """Draw ids with Zipfian frequencies, like words."""
    weights = 1 / np.arange(1, vocabulary + 1)
    return numbers.choice(vocabulary, size, p=weights / weights.sum())
