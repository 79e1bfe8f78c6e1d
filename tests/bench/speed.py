"""Tokens a second in training and sentences a second in scoring, beside the plain way of doing the same thing.

    python tests/bench/speed.py [--threads N] [--rounds N] [--seconds S]

Prints one row for each comparison: median, slowest and fastest round of ours and of the plain way, and the ratio of the
medians.
"""

import argparse
import platform
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).parents[2]))

from conf import compose
from corpora.tokenizers import EOS, fit_tokenizer
from eval.scorers import ModelScorer
from train.export import LoadedModel
from train.loss import cross_entropy
from train.models import build_model
from train.recipes import build_optimizer

SENTENCES = 1_000
PLAIN_SENTENCES = 50  # the plain way is slow: a part of them tells

Work = Callable[[], int]  # does a piece of work and returns how many units it held


def full_softmax(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """The plain way: all logits of the batch at once, autograd for the rest."""
    return F.cross_entropy(F.linear(hidden, weight, bias), targets, reduction="sum")


def training(model: str, vocabulary: int, loss: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]) -> Work:
    """One optimiser step of the model's own recipe; units are tokens."""
    config = compose("train", [f"model={model}"])
    torch.manual_seed(1)
    net = build_model(config.model, vocabulary)
    optimizer = build_optimizer(config.recipe, net.parameters())
    batch, bptt = config.recipe.batch, config.recipe.bptt
    tokens = torch.from_numpy(zipf(vocabulary, np.random.default_rng(1), (batch, bptt + 1)))
    state = net.initial_state(batch)

    def step() -> int:
        nonlocal state
        hidden, state = net(tokens[:, :-1], state)
        targets = tokens[:, 1:].reshape(-1)
        total = loss(hidden.flatten(0, 1), net.output_weight, net.output_bias, targets) / targets.numel()
        total.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), config.recipe.clip)
        optimizer.step()
        optimizer.zero_grad()
        return targets.numel()

    return step


def scoring(model: str, vocabulary: int, together: bool) -> Work:
    """One pass over made-up sentences, by our scorer or one sentence at a time with all logits; units are sentences."""
    numbers = np.random.default_rng(1)
    words = zipf(vocabulary, numbers, SENTENCES * 16)
    ends = np.cumsum(numbers.integers(5, 12, SENTENCES))  # BLiMP's sentences have about eight words
    sentences = [" ".join(f"w{word}" for word in part) for part in np.split(words, ends)[:SENTENCES]]
    config = compose("eval", [f"model={model}", "tokenizer=whitespace"])
    tokenizer = fit_tokenizer(config.tokenizer, map("w{}".format, range(vocabulary)), vocabulary)
    torch.manual_seed(1)
    net = build_model(config.model, len(tokenizer)).eval()
    loaded = LoadedModel(net, tokenizer, config.model, info={}, digest="", tokenizer_digest="")
    scorer = ModelScorer(loaded, model, config.scoring.batch_tokens)

    @torch.inference_mode()
    def one_by_one() -> int:
        for sentence in sentences[:PLAIN_SENTENCES]:
            ids = torch.tensor([[EOS, *tokenizer.encode(sentence), EOS]])
            hidden, _ = net(ids[:, :-1], net.initial_state(1))
            logprobs = F.linear(hidden, net.output_weight, net.output_bias).log_softmax(-1)
            logprobs.gather(2, ids[:, 1:, None]).sum().item()
        return PLAIN_SENTENCES

    def by_scorer() -> int:
        return len(scorer.score(sentences, config.policy))

    return by_scorer if together else one_by_one


def zipf(vocabulary: int, numbers: np.random.Generator, size: int | tuple[int, int]) -> npt.NDArray[np.int64]:
    """Ids whose frequency falls with their rank, as that of words does."""
    weights = 1 / np.arange(1, vocabulary + 1)
    return numbers.choice(vocabulary, size, p=weights / weights.sum())


def rate(work: Work, seconds: float) -> float:
    """Units a second over at least `seconds`."""
    done, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        done += work()
    return done / elapsed


def compare(ours: Work, plain: Work, rounds: int, seconds: float) -> tuple[list[float], list[float]]:
    """Rates of both, taking turns, after one unmeasured piece of work each."""
    ours()
    plain()
    pairs = [(rate(ours, seconds), rate(plain, seconds)) for _ in range(rounds)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each round")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    models, vocabularies = ("lstm_tiny", "txl_tiny"), (8_000, 50_000)
    cases = {}
    for model, vocabulary in product(models, vocabularies):
        ways = training(model, vocabulary, cross_entropy), training(model, vocabulary, full_softmax)
        cases[f"train {model} {vocabulary // 1000}k, tokens/s"] = ways
    for model, vocabulary in product(models, vocabularies):
        ways = scoring(model, vocabulary, together=True), scoring(model, vocabulary, together=False)
        cases[f"score {model} {vocabulary // 1000}k, sentences/s"] = ways
    machine = f"{platform.machine()}, torch {torch.__version__}, {arguments.threads} thread(s)"
    table = Table("", "ours", "plain", "ratio", title=machine, title_justify="left", box=None)
    for name, (ours, plain) in cases.items():
        rates = compare(ours, plain, arguments.rounds, arguments.seconds)
        shown = [f"{median(found):,.0f} ({min(found):,.0f} to {max(found):,.0f})" for found in rates]
        table.add_row(name, *shown, f"{median(rates[0]) / median(rates[1]):.2f}")
    Console(highlight=False, width=110).print(table)


if __name__ == "__main__":
    main()
