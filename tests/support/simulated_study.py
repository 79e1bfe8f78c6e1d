"""Write the run folders and score files of a simulated study with known learning curves, for tests of the analysis."""

from __future__ import annotations

import csv
import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from eval.scores.files import score_path, write_items, write_scores
from eval.scores.schemas import ITEMS, SCORES
from pairscale.files import sha256_json
from pairscale.sizes import format_size, parse_size
from train.runs.folder import RunFolder

# For each phenomenon: number of paradigms, accuracy at 125k words, and gain per doubling of the training data.
PHENOMENA = {"anaphor_agreement": (2, 0.60, 0.06), "island_effects": (3, 0.50, 0.00), "npi_licensing": (1, 0.55, 0.02)}


LP = {
    "method": "lp",
    "policy": {"context": "none", "context_tokens": 32, "context_text": None, "score_eos": False, "unk": "score"},
    "reference": "treebank",
}


def about(benchmark: str, digest: str = "be" * 32, model: str = "m", **more: Any) -> dict[str, Any]:
    """Return the metadata for a file of scores or answers. `more` replaces or adds values."""
    return {
        "benchmark": {"name": benchmark, "digest": digest}, "model": {"name": model, "digest": "0d" * 32},
        "tokenizer_digest": "70" * 32, "parameters": {}, "policy": {}, "step": None, "sample_words": None, "torch": "2",
    } | more  # fmt: skip


@dataclass
class SimulatedStudy:
    """A simulated study. Each run that it writes is finished and scored."""

    models: tuple[str, ...] = ("lstm_tiny", "txl_tiny")
    sizes: tuple[str, ...] = ("125k", "250k", "500k", "1M")
    seeds: tuple[int, ...] = (1, 2)
    phenomena: dict[str, tuple[int, float, float]] = field(default_factory=lambda: dict(PHENOMENA))
    pairs: int = 50  # number of pairs per paradigm
    run_sd: float = 0.01  # standard deviation of a run's accuracy in a phenomenon
    unk_share: float = 0.0  # share of pairs with <unk> at 125k words, halved by each doubling of the training data
    name: str = "simulated"
    benchmark: str = "blimp"
    overlap: float = 0.0

    def config(self, model: str, size: str, seed: int) -> dict[str, Any]:
        """Return the parts of a resolved configuration that the analysis reads, and some others that it must ignore."""
        return {
            "study": self.name,
            "seed": seed,
            "precision": "fp32",
            "paths": {"runs": f"/somewhere/{seed}"},
            "corpus": {"name": "english", "reference": "treebank", "path": "text.txt"},
            "sample": {"size": size, "count": "words", "unit": "sentence", "nested": False, "seed": None},
            "tokenizer": {"name": "unigram", "kind": "unigram", "fit_on": "train"},
            "model": {"name": model, "seed": None, "layers": 2},
            "recipe": {"name": model, "seed": None, "export": "best", "budget": {"epochs": 3.0, "words": None}},
        }

    def manifest(self, size: str, seed: int) -> dict[str, Any]:
        words, sample = parse_size(size), {"digest": f"{seed:02x}" * 32, "overlap": self.overlap}
        return {
            "status": "done", "sample_words": words, "words_seen": 3 * words, "parameters": 1_300_000,
            "words_per_s": 21_000, "wall_s": words / 7000, "config_digest": "c0ffee" * 8,
            "git": {"commit": "1234567890abcdef", "difference": "", "difference_cut": False},
            "versions": {"python": "3.11.2", "torch": "2.13.0"},
            "machine": {"device": "cpu", "threads": 1, "host": "nowhere"},
            "started": "2026-01-01T10:00:00+00:00", "ended": "2026-01-01T10:05:00+00:00",
            "corpus": {"text": "ab" * 32, "tokenizer": "70" * 32, "sample": sample},
        }  # fmt: skip

    def items(self) -> pd.DataFrame:
        rows = [
            (str(pair), f"{name}_{k}", name, "A cat sleeps .", "A cat sleep .")
            for name, (paradigms, _, _) in self.phenomena.items()
            for k in range(1, paradigms + 1)
            for pair in range(self.pairs)
        ]
        columns = ["pair_id", "paradigm", "phenomenon", "good", "bad"]
        return pd.DataFrame(rows, columns=columns).reindex(columns=ITEMS.names)

    def scores(self, items: pd.DataFrame, doublings: float, rng: np.random.Generator) -> pd.DataFrame:
        """Return scores whose accuracy is on the phenomenon's line (with noise), `doublings` after 125k words."""
        expected = {
            name: start + gain * doublings + rng.normal(0, self.run_sd)
            for name, (_, start, gain) in self.phenomena.items()
        }
        difficulty = np.random.default_rng(7).uniform(size=len(items))  # each pair's difficulty, the same for all runs
        noise = np.clip(difficulty + rng.normal(0, 0.05, len(items)), 0, 1)
        right = noise < items["phenomenon"].map(expected).to_numpy(dtype=float)
        bad = rng.normal(-40, 5, len(items))
        good = bad + np.where(right, 1, -1) * rng.exponential(2, len(items))
        unk = (difficulty * 7919 % 1 < self.unk_share / 2**doublings).astype(int)
        columns = items[["pair_id", "paradigm"]].assign(
            good=good, bad=bad, good_lp=good, bad_lp=bad, good_unk=unk, bad_unk=0
        )
        for side, count in itertools.product(("good", "bad"), ("tokens", "words", "chars")):
            columns[f"{side}_{count}"] = {"tokens": 6, "words": 4, "chars": 14}[count]
        return columns.assign(crit_unk=0).reindex(columns=SCORES.names)

    def write(self, runs: Path, seed: int = 0) -> list[RunFolder]:
        """Write the study to `runs`/<name>. `seed` determines the simulated numbers."""
        rng = np.random.default_rng(seed)
        items = self.items()
        folders = []
        for model, size, run_seed in itertools.product(self.models, self.sizes, self.seeds):
            label = format_size(parse_size(size))
            folder = RunFolder(runs / self.name / f"{model}-english-unigram-{label}-s{run_seed}")
            folder.path.mkdir(parents=True)
            folder.config.write_text(yaml.safe_dump(self.config(model, label, run_seed)))
            folder.update_manifest(**self.manifest(size, run_seed))
            doublings = np.log2(parse_size(size) / 125_000)
            self._metrics(folder, 600 * 0.6**doublings * float(rng.lognormal(0, 0.02)))
            scores = folder.scores(self.benchmark)
            scores.mkdir(parents=True)
            write_items(scores, items, self.benchmark, "be" * 32)
            write_scores(
                score_path(scores, "lp"), self.scores(items, doublings, rng), about(self.benchmark, model=model, **LP)
            )
            folders.append(folder)
        return folders

    def _metrics(self, folder: RunFolder, perplexity: float) -> None:
        with folder.metrics.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["step", "train_nats_per_token", "valid_ppl", "valid_oov_rate"])
            writer.writerows([[1, 7.0, "", ""], [2, "", perplexity, 0.0], [3, "", perplexity * 1.1, 0.0]])


def rewrite_config(folder, **changes):
    config = yaml.safe_load(folder.config.read_text())
    for key, value in changes.items():
        group, _, name = key.partition("__")
        (config[group] if name else config)[name or group] = value
    folder.config.write_text(yaml.safe_dump(config))


def as_revisions(folders, tokens_per_step=1000, path="models/gpt"):
    """Turn simulated runs into checkpoints of one pretrained model. The last one's number of tokens is unknown."""
    for step, folder in enumerate(folders, start=1):
        model = {"name": "hf_causal", "kind": "causal", "path": path, "revision": f"step{step}", "dtype": "fp32"}
        config = yaml.safe_load(folder.config.read_text()) | {"model": model}
        folder.config.write_text(yaml.safe_dump(config))
        folder.manifest.unlink()
        tokens = step * tokens_per_step if folder is not folders[-1] else None
        folder.update_manifest(status="done", tokens=tokens, digest=sha256_json([path, step]))


def as_hub_model(folder, **model):
    """Turn a simulated run into a model from the hub whose training text has an unknown size."""
    config = yaml.safe_load(folder.config.read_text())
    config["model"] = {"name": "hf_masked", "path": "models/bert", "revision": None, "dtype": "fp32"} | model
    folder.config.write_text(yaml.safe_dump(config))
    folder.manifest.unlink()
    folder.update_manifest(status="done", tokens=None)
