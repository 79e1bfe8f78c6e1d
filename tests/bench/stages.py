"""The stages that tests/bench/faults.py disturbs, the processes that run them, and the comparison of folders."""

from __future__ import annotations

import hashlib
import importlib
import json
import multiprocessing
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for _name, _value in {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "COLUMNS": "200"}.items():
    os.environ.setdefault(_name, _value)

CALLS = ("fsync", "mkdir", "rename", "replace", "rmdir", "unlink")
PRELOADED = (
    "torch", "lightning", "pairscale.command.main", "corpora.__main__", "corpora.prepare", "corpora.toy",
    "train.__main__", "train.run", "train.loop.training", "train.runs.model_folder", "train.ngram",
    "eval.__main__", "eval.run", "eval.methods.judging", "eval.methods.builtin.votes", "eval.scorers.ngram",
    "analysis.__main__", "analysis.run", "corpora.run", "train.models.huggingface",
    "transformers.models.gpt2.modeling_gpt2", "transformers.models.roberta.modeling_roberta",
)  # fmt: skip
VOLATILE = {
    "started",
    "ended",
    "attempts",
    "wall_s",
    "cost",
    "words_per_s",
    "damaged_checkpoints",
    "scoring_failed",
    "scoring_commands",
}  # of manifest.json
QUIET = ["trainer.progress=false", "trainer.threads=1", "trainer.accelerator=cpu", "study=s"]
TEXT = ["corpus=toy", "corpus.words=60000", "tokenizer=word"]
SMALL = [*TEXT, *QUIET]
TRAINED = ["recipe.budget.epochs=3", "recipe.batch=8", "recipe.validation_words=500"]
TRAINED += ["recipe.checkpoint_every=1k", "trainer.snapshots=[300,1500,3k,7k]"]  # some at no checkpoint
BLOCKS = [*TRAINED, "recipe.context=20"]
GPT2 = ["model=gpt2_tiny", "model.config.n_embd=24", "model.config.n_layer=2", *BLOCKS]
ROBERTA = ["model=roberta_tiny", "model.config.hidden_size=24", "model.config.num_hidden_layers=2", *BLOCKS]
ROBERTA += ["recipe.packing=sentences", "recipe.validation_words=100"]
TRAINED += ["recipe.bptt=20"]
LSTM = ["model=lstm_tiny", "model.embedding=24", "model.hidden=24", *TRAINED]
TXL = ["model=txl_tiny", "model.layers=2", "model.d_model=24", "model.heads=2", "model.d_head=12", "model.d_inner=32"]
TXL += TRAINED
NGRAM = ["model=ngram", "recipe.validation_words=500"]
BENCHMARK = ["benchmark=toy", "benchmark.per_paradigm=8"]


@dataclass(frozen=True)
class Stage:
    """A command, and the commands that prepare its inputs."""

    name: str
    command: tuple[str, ...]  # package, overrides
    before: tuple[tuple[str, ...], ...] = ()
    checkpoints: bool = False


def stages(ngrams: bool = True) -> list[Stage]:
    """All stages; without KenLM's lmplz those of n-gram models are left out."""
    prepare = ("corpora", *TEXT)

    def train(*overrides: str) -> tuple[str, ...]:
        return ("train", *SMALL, "sample.size=4k", *overrides)

    models = [train(*LSTM), train(*TXL), *([train(*NGRAM)] if ngrams else [])]
    # It names no run, so all runs of the study are scored.
    score = ("eval", *QUIET, *BENCHMARK, "scoring.snapshots=true")
    # Figures take most of the time of an analysis: its study has few of them, trajectories included.
    points = [train(*LSTM, "recipe.budget.epochs=1", f"sample.size={n}k") for n in (2, 4)]
    analysed = (*score, "benchmark.paradigms=[only_npi_licensor_present]", "method=[lp]")
    return [
        Stage("corpora", prepare),
        Stage("train, LSTM", models[0], (prepare,), checkpoints=True),
        Stage("train, Transformer-XL", models[1], (prepare,), checkpoints=True),
        Stage("train, GPT-2", train(*GPT2), (prepare,), checkpoints=True),
        Stage("train, RoBERTa", train(*ROBERTA), (prepare,), checkpoints=True),
        *([Stage("train, 5-gram", models[2], (prepare,))] if ngrams else []),
        Stage("score", score, (prepare, *models)),
        Stage("analysis", ("analysis", "study=s"), (prepare, *points, analysed)),
    ]


def _forked(folder: str, command: list[str], calls: tuple[str, ...], last: int) -> None:
    """Run a command in `folder`, in a new process that dies just before the `last`-th call of one of `calls`."""
    assert "lightning" in sys.modules, "the server has not imported PRELOADED"
    os.chdir(folder)
    log = os.open(log_of(Path(folder)), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    counts: Counter[str] = Counter()

    def counted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*arguments: Any, **options: Any) -> Any:
            counts[name] += 1
            if counts.total() == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return instead

    for name in calls:
        setattr(os, name, counted(name, getattr(os, name)))
    package, *sys.argv[1:] = command
    sys.argv[0] = package
    from pairscale.command.main import main

    try:
        main(package, importlib.import_module(f"{package}.__main__").run)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        calls_of(Path(folder)).write_text(json.dumps(counts))


def log_of(folder: Path) -> Path:
    """Return the path of the output of commands in a folder: beside it, as its disk may be full."""
    return folder.with_name(f"{folder.name}.log")


def calls_of(folder: Path) -> Path:
    """Return the path of the numbers of calls by the last command in a folder."""
    return folder.with_name(f"{folder.name}.calls")


class Commands:
    """Starts commands in processes that have imported everything already."""

    def __init__(self) -> None:
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(list(PRELOADED))
        first = self.context.Process(target=os.getpid)  # starts the server, whose time counts for no stage
        first.start()
        first.join()

    def start(self, folder: Path, command: tuple[str, ...], calls: tuple[str, ...] = (), last: int = 0) -> Any:
        process = self.context.Process(target=_forked, args=(str(folder), list(command), calls, last))
        process.start()
        return process

    def run(self, folder: Path, command: tuple[str, ...], calls: tuple[str, ...] = (), last: int = 0) -> int:
        """Run a command to its end; return its exit code, -9 if it was killed."""
        process = self.start(folder, command, calls, last)
        process.join()
        code = process.exitcode
        process.close()
        return int(code)


_PDF_IN_PAGE = re.compile(rb'"[^"]+\.pdf": ?"[A-Za-z0-9+/=]+"')


def contents(folder: Path) -> dict[str, str]:
    """Return every file of a folder by its path, with a digest of its content without times."""
    digests = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir():
            digests[name] = "a folder"
            continue
        data = path.read_bytes()
        if path.name == "manifest.json":
            values = {key: value for key, value in json.loads(data).items() if key not in VOLATILE}
            data = json.dumps(values, sort_keys=True).encode()
        if path.suffix == ".pdf":
            data = str(len(data)).encode()  # vl-convert writes its objects in any order
        if path.suffix == ".html":
            data = _PDF_IN_PAGE.sub(b"", data)
        digests[name] = hashlib.sha256(data).hexdigest()
    return digests


def difference(expected: dict[str, str], actual: dict[str, str]) -> str | None:
    """Return the differences in one line; None if there are none."""
    differences = [f"lacks {name}" for name in sorted(expected.keys() - actual.keys())]
    differences += [f"left {name}" for name in sorted(actual.keys() - expected.keys())]
    differences += [
        f"differs in {name}" for name in sorted(expected.keys() & actual.keys()) if expected[name] != actual[name]
    ]
    return "; ".join(differences[:5]) or None
