"""Define the stages that tests/bench/faults.py disturbs, and compare folders."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

for _name, _value in {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "COLUMNS": "200"}.items():
    os.environ.setdefault(_name, _value)

VOLATILE = {  # keys of manifest.json whose values vary
    "started", "ended", "attempts", "wall_s", "cost", "words_per_s", "damaged_checkpoints", "scoring_failed",
    "scoring_commands",
}  # fmt: skip
QUIET = ["trainer.progress=false", "trainer.threads=1", "trainer.accelerator=cpu", "study=s"]
TEXT = ["corpus=toy", "corpus.words=60000", "tokenizer=word"]
SMALL = [*TEXT, *QUIET]
TRAINED = ["recipe.budget.epochs=3", "recipe.batch=8", "recipe.validation_words=500"]
TRAINED += ["recipe.checkpoint_every=1k", "trainer.snapshots=[300,1500,3k,7k]"]  # some snapshots have no checkpoint
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
    command: tuple[str, ...]  # package and overrides
    before: tuple[tuple[str, ...], ...] = ()
    checkpoints: bool = False


def stages(ngrams: bool = True) -> list[Stage]:
    """Return all stages. If `ngrams` is false (because lmplz is missing), stages of n-gram models are left out."""
    prepare = ("corpora", *TEXT)

    def train(*overrides: str) -> tuple[str, ...]:
        return ("train", *SMALL, "sample.size=4k", *overrides)

    models = [train(*LSTM), train(*TXL), *([train(*NGRAM)] if ngrams else [])]
    # This command doesn't name a run, so all runs of the study are scored.
    score = ("eval", *QUIET, *BENCHMARK, "scoring.snapshots=true")
    # Figures take most of the analysis's time, so its study has only a few figures, including trajectories.
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


_PDF_IN_PAGE = re.compile(rb'"[^"]+\.pdf": ?"[A-Za-z0-9+/=]+"')


def contents(folder: Path) -> dict[str, str]:
    """Return the digest of each file in a folder by path. Values that vary, such as times, are left out."""
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
            data = str(len(data)).encode()  # because vl-convert writes objects in a varying order
        if path.suffix == ".html":
            data = _PDF_IN_PAGE.sub(b"", data)
        digests[name] = hashlib.sha256(data).hexdigest()
    return digests


def difference(expected: dict[str, str], actual: dict[str, str]) -> str | None:
    """Describe the differences in one line, or return None if there are none."""
    differences = [f"lacks {name}" for name in sorted(expected.keys() - actual.keys())]
    differences += [f"left {name}" for name in sorted(actual.keys() - expected.keys())]
    differences += [
        f"differs in {name}" for name in sorted(expected.keys() & actual.keys()) if expected[name] != actual[name]
    ]
    return "; ".join(differences[:5]) or None
