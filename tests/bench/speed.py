"""Speed of training, scoring and preparation on this machine, compared with other implementations.

    python tests/bench/speed.py [--parts PART ...] [--rounds N] [--seconds S] [--threads N] [--json FILE]

    published   training steps of the published LSTM and Transformer-XL with 50,000 words, fp32 and bf16: beside the
                plain way (all logits at once), the limit (matrix products, recurrent layers and softmaxes alone) and,
                where the environment has REFERENCE_LSTM=CHECKOUT and REFERENCE_TXL=CHECKOUT, the authors' own scripts
    tiny        the same of the tiny models with 8,000 words
    packed      several tiny models side by side (three and six to a GPU, or one to a core), beside one at a time
    scoring     our LSTM and Transformer-XL, beside one sentence at a time; peers.py has minicons and lm-eval
    commands    --help, and a run beyond its training and scoring
    corpus      the word-level store of --text, and a sample of it

The ways of a row take turns; a figure is the median of the rounds, with the slowest and the fastest. Goals are those of
the project.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby, product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch.nn import functional as F

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:  # started as a script
    sys.path.insert(0, str(ROOT))

from corpora.tokenizers import EOS, fit_tokenizer  # noqa: E402
from eval.scorers.base import Execution  # noqa: E402
from eval.scorers.load import trained_scorer  # noqa: E402
from pairscale.command.compose import compose  # noqa: E402
from tests.bench.commands import Figure, helps, overhead, preparation  # noqa: E402
from tests.bench.packed import packed_cases  # noqa: E402
from tests.bench.training import (  # noqa: E402
    PLAIN,
    PUBLISHED,
    TINY,
    TINY_VOCABULARY,
    VOCABULARY,
    training_cases,
    zipf,
)
from tests.bench.turns import OURS, Case, Way, repeated  # noqa: E402
from train.loop.device import set_up_cpu  # noqa: E402
from train.models.build import build_model  # noqa: E402
from train.runs.model_folder import LoadedModel  # noqa: E402

PARTS = ("published", "tiny", "packed", "scoring", "commands", "corpus")
SENTENCES = 1_000
PLAIN_SENTENCES = 50  # the plain way is slow: a part of them is enough
console = Console(highlight=False, width=130)


def scoring_cases() -> Iterator[Case]:
    for model, vocabulary in product(TINY, (TINY_VOCABULARY, VOCABULARY)):
        yield Case(f"score {model}, {vocabulary // 1000}k words", "sentences", scoring(model, vocabulary))


def scoring(model: str, vocabulary: int) -> dict[str, Way]:
    """Return two ways to score random sentences: our scorer, and one at a time with all logits."""
    numbers = np.random.default_rng(1)
    words = zipf(vocabulary, numbers, SENTENCES * 16)
    ends = np.cumsum(numbers.integers(5, 12, SENTENCES))  # BLiMP's sentences have about eight words
    sentences = [" ".join(f"w{word}" for word in part) for part in np.split(words, ends)[:SENTENCES]]
    config = compose("eval", [f"model={model}", "tokenizer=whitespace"])
    tokenizer = fit_tokenizer(config.tokenizer, map("w{}".format, range(vocabulary)), vocabulary)
    torch.manual_seed(1)
    net = build_model(config.model, len(tokenizer)).eval()
    loaded = LoadedModel(net, tokenizer, config.model, info={}, digest="", tokenizer_digest="")
    scorer = trained_scorer(loaded, model, Execution.of(config))

    @torch.inference_mode()
    def one_by_one() -> float:
        for sentence in sentences[:PLAIN_SENTENCES]:
            ids = torch.tensor([[EOS, *tokenizer.encode(sentence), EOS]])
            hidden, _ = net(ids[:, :-1], net.initial_state(1))
            logprobs = F.linear(hidden, net.output_weight, net.output_bias).log_softmax(-1)
            logprobs.gather(2, ids[:, 1:, None]).sum().item()
        return PLAIN_SENTENCES

    def by_scorer() -> float:
        return len(scorer.score(sentences, config.policy))

    return {OURS: repeated(by_scorer), PLAIN: repeated(one_by_one)}


def machine(threads: int) -> dict[str, Any]:
    """Return a description of the machine."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    processor = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in reversed(lines))}
    flags = [
        flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if flag in processor.get("flags", "").split()
    ]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return {
        "processor": processor.get("model name", platform.processor()),
        "flags": flags,
        "cpus": os.cpu_count(),
        "threads": threads,
        "load": os.getloadavg()[0],
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "commit": commit.stdout.strip() or None,
    }


def rates_table(cases: list[Case]) -> Table:
    names = list(dict.fromkeys(name for case in cases for name in case.rates))
    table = Table("a second", *names, box=None)
    for case in cases:
        columns = [case.rates.get(name, []) for name in names]
        cells = [f"{median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f})" if rates else "" for rates in columns]
        table.add_row(f"{case.name}, {case.unit}", *cells)
    return table


def ratios_table(cases: list[Case]) -> Table:
    names = list(dict.fromkeys(name for case in cases for name in case.ratios()))
    table = Table("ours is faster by", *names, box=None)
    for case in cases:
        cells = []
        for name in names:
            if not (ratios := case.ratios().get(name)):
                cells.append("")
                continue
            goal = f", goal {case.goals[name]:g}" if name in case.goals else ""
            cells.append(f"{median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f}{goal})")
        table.add_row(case.name, *cells)
    return table


def commands_table(figures: list[Figure]) -> Table:
    table = Table("whole commands", "median", "fastest and slowest", "goal", box=None)
    for figure in figures:
        table.add_row(*figure.row())
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["tiny", "scoring", "commands"])
    parser.add_argument("--models", nargs="+", choices=PUBLISHED, default=[*PUBLISHED], help="of the part published")
    parser.add_argument("--threads", type=int, default=1, help="of published and tiny training, and of scoring")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn, one piece of work at least")
    parser.add_argument("--text", type=Path, help="of the part corpus: english.txt.xz, say")
    parser.add_argument("--json", type=Path, help="file for all figures and the description of the machine")
    arguments = parser.parse_args()
    if "corpus" in arguments.parts and arguments.text is None:
        parser.error("--parts corpus needs --text FILE")
    config = compose("train", [f"trainer.threads={arguments.threads}"])
    set_up_cpu(config.trainer)
    checkouts = {
        model: Path(os.environ[f"REFERENCE_{model.upper()}"]).resolve()
        for model in PUBLISHED
        if os.environ.get(f"REFERENCE_{model.upper()}")
    }
    description = machine(arguments.threads)
    console.print(", ".join(f"{key} {value}" for key, value in description.items()))
    makers = {
        "published": lambda: training_cases({m: PUBLISHED[m] for m in arguments.models}, VOCABULARY, checkouts),
        "tiny": lambda: training_cases(TINY, TINY_VOCABULARY, {}),
        "packed": lambda: packed_cases(TINY, TINY_VOCABULARY),
        "scoring": scoring_cases,
    }
    cases: list[Case] = []
    figures: list[Figure] = []

    def save() -> None:
        if arguments.json:
            results = {"machine": description, "training_and_scoring": [case.record() for case in cases]}
            results["commands"] = [figure.record() for figure in figures]
            arguments.json.parent.mkdir(parents=True, exist_ok=True)
            arguments.json.write_text(json.dumps(results, indent=1) + "\n")

    for part in arguments.parts:
        for case in makers[part]() if part in makers else []:
            with console.status(case.name):
                cases.append(case.measure(arguments.rounds, arguments.seconds))
            console.print(ratios_table([case]))
            save()  # so that a failure of a later case loses no figures
    if "commands" in arguments.parts:
        figures += [*helps(arguments.rounds), *overhead(min(3, arguments.rounds))]
    if "corpus" in arguments.parts:
        figures += preparation(arguments.text, min(3, arguments.rounds))
    for _, grouped in groupby(cases, lambda case: tuple(case.rates)):  # cases of the same ways share a table
        alike = list(grouped)
        console.print("", rates_table(alike), "", ratios_table(alike))
    if figures:
        console.print("", commands_table(figures))
    save()


if __name__ == "__main__":
    main()
