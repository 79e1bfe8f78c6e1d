"""Measure the speed of training and of commands on this machine, compared with other ways of doing the same work.

    python tests/bench/speed.py [--parts PART ...] [--rounds N] [--seconds S] [--threads N] [--json FILE]

    published   training steps of the published LSTM and Transformer-XL with 50,000 words, in fp32 and bf16, compared
                with a plain implementation (all logits at once) and the limit (only matrix products, recurrent layers
                and softmaxes). If REFERENCE_LSTM=CHECKOUT and REFERENCE_TXL=CHECKOUT are set in the environment, they
                are also compared with the authors' scripts.
    tiny        the same for the tiny models with 8,000 words
    commands    --help, and the time of a run without training and scoring
    corpus      a word-level store of --text, and a sample of it

Ways that are compared take turns. A figure is the median over the rounds, with the slowest and the fastest. Goals are
our own.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:  # started as a script
    sys.path.insert(0, str(ROOT))

from pairscale.command.compose import compose  # noqa: E402
from tests.bench.training import (  # noqa: E402
    OURS,
    PUBLISHED,
    TINY,
    TINY_VOCABULARY,
    VOCABULARY,
    Case,
    training_cases,
)
from train.loop.device import set_up_cpu  # noqa: E402

PARTS = ("published", "tiny", "commands", "corpus")
PACKAGES = ("train", "eval", "analysis", "corpora")
# This code runs a command and prints its peak memory in KiB.
MEASURED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""
SAMPLE = """
import sys
from pairscale.command.compose import compose
from corpora.prepare import prepare
sample = prepare(compose("train", sys.argv[1:])).sample()
print(sample.words, int(sample.tokens[-1]))
"""
console = Console(highlight=False, width=130)


def figure(name: str, unit: str, values: list[float], goal: float | None = None) -> dict[str, Any]:
    """Describe a measurement of whole commands with one value per round. `goal` is the largest acceptable value."""
    return {"name": name, "unit": unit, "values": values, "goal": goal}


def measured(*arguments: str) -> tuple[float, float]:
    """Run `python ...` and return its time from start to end in seconds, and its peak memory in GB."""
    # Let Python cache compiled modules. Containers often forbid this, so every command would compile ours again.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    command = [sys.executable, "-c", MEASURED, sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return time.perf_counter() - started, float(done.stdout) * 1024 / 1e9


def commands(rounds: int) -> Iterator[dict[str, Any]]:
    """Measure `--help`, and the time of a run without training and scoring.

    A run's time is linear in its epochs and in the number of scored pairs, so its value at zero follows from two
    measurements of each. We measure a run in its own process, and another run of a sweep in a running process.
    """
    for package in PACKAGES:
        measured("-m", package, "--help")  # fills the caches
        seconds = [measured("-m", package, "--help")[0] for _ in range(rounds)]
        yield figure(f"python -m {package} --help", "s", seconds, 1.5 if package == "train" else None)
    separate, further = [], []
    for _ in range(min(3, rounds)):
        with tempfile.TemporaryDirectory() as folder:
            _run(folder, "prepared", 1, 10)
            short = _run(folder, "short", 1, 10)
            work = (_run(folder, "trained", 5, 10) - short) / 4 + (_run(folder, "scored", 1, 50) - short) / 4
            separate.append(short - work)
            further.append((_run(folder, "several", 1, 10, "1,2,3,4,5") - short) / 4 - work)
    yield figure("a run in its own process, without training and scoring", "s", separate, 5.0)
    yield figure("a further run of a sweep, without training and scoring", "s", further, 5.0)


def _run(folder: str, study: str, epochs: int, pairs: int, seeds: str = "1") -> float:
    values = ["model=lstm_tiny", "corpus=toy", "sample.size=16k", f"recipe.budget.epochs={epochs}", f"seed={seeds}"]
    values += ["benchmark=toy", f"benchmark.per_paradigm={pairs}", f"study={study}", "trainer.progress=false"]
    values += [f"paths.{name}={folder}/{name}" for name in ("store", "runs", "reports")]
    return measured("-m", "eval", "-m", *values)[0]


def preparation(text: Path, rounds: int) -> Iterator[dict[str, Any]]:
    """Measure the preparation of a text's word-level store, and of a sample of 64M words for training."""
    seconds, memory, sample = [], [], []
    for _ in range(min(3, rounds)):
        with tempfile.TemporaryDirectory() as folder:
            values = ["corpus=local", "corpus.name=bench", f"corpus.path={text}", "tokenizer=word"]
            values.append(f"paths.store={folder}")
            took, peak = measured("-m", "corpora", *values)
            seconds.append(took)
            memory.append(peak)
            nothing = measured("-c", "import pairscale.command.main, corpora.prepare")[0]
            sample.append(measured("-c", SAMPLE, *values, "sample.size=64M")[0] - nothing)
    yield figure(f"a word-level store of {text.name}", "s", seconds, 240.0)
    yield figure("its memory", "GB", memory, 2.0)
    yield figure("a sample of 64M words of it", "s", sample, 5.0)


def machine(threads: int) -> dict[str, Any]:
    """Return a description of the machine."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    processor = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in reversed(lines))}
    known = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return {
        "processor": processor.get("model name", platform.processor()),
        "flags": [flag for flag in known if flag in processor.get("flags", "").split()],
        "cpus": os.cpu_count(),
        "threads": threads,
        "load": os.getloadavg()[0],
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "commit": commit.stdout.strip() or None,
    }


def spread(values: list[float], digits: int) -> str:
    return f"{median(values):,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def case_table(case: Case) -> Table:
    """Return a table of the rates in a case, and of our speed relative to each of them."""
    table = Table(f"{case.name}", f"{case.unit}/s", "ours is faster by", "goal", box=None)
    for name, rates in case.rates.items():
        ratio = spread(case.ratios()[name], 2) if name != OURS else ""
        table.add_row(name, spread(rates, 0), ratio, f"{case.goals[name]:g}" if name in case.goals else "")
    return table


def figures_table(figures: list[dict[str, Any]]) -> Table:
    table = Table("whole commands", "median", "goal", box=None)
    for of in figures:
        goal = "" if of["goal"] is None else f"at most {of['goal']:g}"
        table.add_row(of["name"], f"{spread(of['values'], 2)} {of['unit']}", goal)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["tiny", "commands"])
    parser.add_argument(
        "--models", nargs="+", choices=PUBLISHED, default=[*PUBLISHED], help="models for the part published"
    )
    parser.add_argument("--threads", type=int, default=1, help="threads for training")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="time per turn, which includes at least one step")
    parser.add_argument("--text", type=Path, help="text for the part corpus, such as english.txt.xz")
    parser.add_argument("--json", type=Path, help="file to write all figures and a description of the machine to")
    arguments = parser.parse_args()
    if "corpus" in arguments.parts and arguments.text is None:
        parser.error("--parts corpus needs a text. Add --text FILE.")
    set_up_cpu(compose("train", [f"trainer.threads={arguments.threads}"]).trainer)
    named = {model: os.environ.get(f"REFERENCE_{model.upper()}") for model in PUBLISHED}
    checkouts = {model: Path(folder).resolve() for model, folder in named.items() if folder}
    results: dict[str, Any] = {"machine": machine(arguments.threads), "training": [], "commands": []}
    console.print(", ".join(f"{key} {value}" for key, value in results["machine"].items()))
    makers = {
        "published": lambda: training_cases({m: PUBLISHED[m] for m in arguments.models}, VOCABULARY, checkouts),
        "tiny": lambda: training_cases(TINY, TINY_VOCABULARY, {}),
        "commands": lambda: commands(arguments.rounds),
        "corpus": lambda: preparation(arguments.text, arguments.rounds),
    }
    for part in arguments.parts:
        for made in makers[part]():
            if isinstance(made, Case):
                results["training"].append(made.measure(arguments.rounds, arguments.seconds).record())
                console.print(case_table(made), "")
            else:
                results["commands"].append(made)
                console.print(figures_table([made]), "")
            if arguments.json:  # written after each case, so that a later failure loses no figures
                arguments.json.parent.mkdir(parents=True, exist_ok=True)
                arguments.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
