"""Benchmarks (files in conf/benchmark/) as tables of minimal pairs."""

import dataclasses
import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from corpora.words import count_words
from eval.benchmarks.cells import blanks_note
from eval.benchmarks.config import BenchmarkConfig, ColumnsConfig
from eval.benchmarks.form import Generated, Row, Table, forms
from eval.benchmarks.known_items import faulty_note, faulty_pairs, unpublished_note
from eval.benchmarks.pairs import read_pairs
from eval.config import EvalConfig
from pairscale.errors import first_few
from pairscale.files import sha256_json
from pairscale.progress import with_progress


@dataclass(frozen=True)
class Benchmark:
    """Pairs and the fingerprint of them.

    pairs: the columns of eval.scores.schemas.ITEMS and the user's own, by paradigm, then in the source's order;
    (paradigm, pair_id) is unique. digest: SHA-256 over paradigm, pair_id, phenomenon and the two sentences of all
    pairs. origin: of generated pairs (eval/benchmarks/generated/making.py). unavailable: paradigm -> why it has no
    pairs. notes: sentences on what is odd about the pairs.
    """

    name: str
    pairs: pd.DataFrame
    digest: str
    origin: Mapping[str, Any] = field(default_factory=dict)
    unavailable: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def described(self) -> dict[str, Any]:
        """What score files record of it."""
        return {"name": self.name, "digest": self.digest, **self.origin}


def load_benchmark(config: BenchmarkConfig) -> Benchmark:
    """Read the benchmark that `config` names.

    Raises InputError, with file and line, for missing or damaged data, ConfigError for values that do not fit it.
    """
    source = forms()[str(config.form)].read(config)
    if isinstance(source, Generated):
        rows = (Row(name, pair) for name, pairs in source.pairs.items() for pair in pairs)
        pairs = read_pairs([Table(config.name, config.name, rows)], config)
        return Benchmark(config.name, pairs, _digest(pairs), source.origin, source.unavailable)
    whole = read_pairs(source, config)
    pairs = whole[whole["paradigm"].isin(config.chosen_paradigms(sorted(set(whole["paradigm"]))))]
    if config.pairs is not None:
        pairs = pairs.groupby("paradigm", sort=False).head(config.pairs)
    pairs = pairs.reset_index(drop=True)
    blanks = blanks_note([*pairs["good"], *pairs["bad"]])
    notes = (
        unpublished_note(config.name, whole),
        faulty_note(config.name, pairs),
        _same_note(config.name, pairs),
        blanks,
    )
    return Benchmark(config.name, pairs, _digest(pairs), notes=tuple(filter(None, notes)))


def _digest(pairs: pd.DataFrame) -> str:
    return sha256_json(pairs[["paradigm", "pair_id", "phenomenon", "good", "bad"]].to_numpy().tolist())


def _same_note(name: str, pairs: pd.DataFrame) -> str | None:
    """Return a sentence on pairs of one sentence; None if there is none, or all are known to be faulty."""
    same = pairs[pairs["good"] == pairs["bad"]]
    if len(same) == (faulty_pairs(name, pairs)["reason"] == "same_sentence").sum():
        return None
    few = first_few([f"{row.paradigm} {row.pair_id}" for row in same.itertuples()], 5)
    return f"{len(same)} of {len(pairs):,} pairs are one sentence twice, so every model ties: {few}"


def drawn_pairs(pairs: pd.DataFrame, count: str, seed: int) -> npt.NDArray[np.int64]:
    """Return positions of `count` pairs (or "all") drawn from each paradigm, increasing; the same for every model."""
    if count == "all":
        return np.arange(len(pairs))
    rng = np.random.default_rng(seed)
    groups = pairs.groupby("paradigm", sort=True).indices.values()
    return np.sort(np.concatenate([rng.permutation(np.sort(group))[: int(count)] for group in groups]))


def benchmark_key(config: EvalConfig, described: Mapping[str, Any]) -> str:
    """Return the argument of `loaded_benchmark` for the run of the configuration `described`, whose words may count."""
    from eval.benchmarks.generated.vocabulary import resolved

    return json.dumps(dataclasses.asdict(resolved(config.benchmark, described, config.paths.runs, config.paths.store)))


@functools.lru_cache(maxsize=2)
def loaded_benchmark(key: str) -> Benchmark:
    """Read a benchmark once in a process that scores many runs."""
    values = json.loads(key)
    return load_benchmark(BenchmarkConfig(**values | {"columns": ColumnsConfig(**values["columns"])}))


@functools.lru_cache(maxsize=2)
def word_counts(key: str, reference: str) -> dict[str, int]:
    """Return the number of reference words of each different sentence of a benchmark."""
    pairs = loaded_benchmark(key).pairs
    texts = dict.fromkeys([*pairs["good"], *pairs["bad"]])
    counted = with_progress(((1, text) for text in texts), "counting words", len(texts), "sentences")
    return {text: count_words(text, reference) for text in counted}
