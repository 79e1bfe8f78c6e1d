"""Time and memory of whole commands: --help, preparing a corpus, drawing a sample, the overhead of a run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGES = ("train", "eval", "analysis", "corpora")
# Runs a command and prints its peak memory in KiB.
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
LIBRARIES = """
import gc
gc.set_threshold(50_000, 20, 20)  # as pairscale.command.main.main does, and at its end
import lightning
gc.freeze()
"""


@dataclass
class Figure:
    """Values of one figure, one a round; `goal` is the largest value allowed."""

    name: str
    unit: str
    values: list[float]
    goal: float | None = None

    def record(self) -> dict[str, Any]:
        return {"name": self.name, "unit": self.unit, "values": self.values, "goal": self.goal}

    def row(self) -> list[str]:
        spread = f"{min(self.values):,.2f} to {max(self.values):,.2f}"
        goal = "" if self.goal is None else f"at most {self.goal:g}"
        return [self.name, f"{median(self.values):,.2f} {self.unit}", spread, goal]


def measured(*arguments: str) -> tuple[float, float]:
    """Run `python ...`; return its seconds, from start to end, and its peak memory in GB."""
    # Let Python cache compiled modules: containers often forbid it, and every command would compile ours again.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    command = [sys.executable, "-c", MEASURED, sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return time.perf_counter() - started, float(done.stdout) * 1024 / 1e9


def helps(rounds: int) -> list[Figure]:
    """Measure `--help` of each command, after one call that fills the caches."""
    figures = []
    for package in PACKAGES:
        measured("-m", package, "--help")
        seconds = [measured("-m", package, "--help")[0] for _ in range(rounds)]
        figures.append(Figure(f"python -m {package} --help", "s", seconds, 1.5 if package == "train" else None))
    return figures


def overhead(rounds: int) -> list[Figure]:
    """Measure the seconds of a run that are neither training nor scoring.

    The time of a run is linear in its epochs and in the pairs that it is scored on; two points of each give its value
    at zero: for a run in its own process, and for a further run of a sweep in a running process. Importing torch and
    Lightning is measured for comparison.
    """
    separate, further, libraries = [], [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            _run(folder, "prepared", 1, 10)
            short = _run(folder, "short", 1, 10)
            training = (_run(folder, "trained", 5, 10) - short) / 4
            scoring = (_run(folder, "scored", 1, 50) - short) / 4
            separate.append(short - training - scoring)
            further.append((_run(folder, "several", 1, 10, "1,2,3,4,5") - short) / 4 - training - scoring)
            libraries.append(measured("-c", LIBRARIES)[0])
    return [
        Figure("a run of its own, but for training and scoring", "s", separate, 5.0),
        Figure("importing torch and Lightning alone", "s", libraries),
        Figure("a further run of a sweep, but for training and scoring", "s", further, 5.0),
    ]


def _run(folder: Path, study: str, epochs: int, pairs: int, seeds: str = "1") -> float:
    values = ["model=lstm_tiny", "corpus=toy", "sample.size=16k", f"recipe.budget.epochs={epochs}", f"seed={seeds}"]
    values += ["benchmark=toy", f"benchmark.per_paradigm={pairs}", f"study={study}", "trainer.progress=false"]
    values += [f"paths.{name}={folder / name}" for name in ("store", "runs", "reports")]
    return measured("-m", "eval", "-m", *values)[0]


def preparation(text: Path, rounds: int) -> list[Figure]:
    """Measure a word-level store of a text, and a sample of 64M words of it, ready for training."""
    seconds, memory, sample = [], [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as temporary:
            values = ["corpus=local", "corpus.name=bench", f"corpus.path={text}", "tokenizer=word"]
            values.append(f"paths.store={temporary}")
            took, peak = measured("-m", "corpora", *values)
            seconds.append(took)
            memory.append(peak)
            nothing = measured("-c", "import pairscale.command.main, corpora.prepare")[0]
            sample.append(measured("-c", SAMPLE, *values, "sample.size=64M")[0] - nothing)
    return [
        Figure(f"a word-level store of {text.name}", "s", seconds, 240.0),
        Figure("its memory", "GB", memory, 2.0),
        Figure("a sample of 64M words of it", "s", sample, 5.0),
    ]
