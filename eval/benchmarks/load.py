"""Benchmarks (files in conf/benchmark/) as tables of minimal pairs."""

import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from corpora.words import count_words
from eval.benchmarks.cells import blanks_note
from eval.benchmarks.config import BenchmarkConfig, ColumnsConfig
from eval.benchmarks.forms.form import OWN, GeneratedPairs, PlacedPair, forms
from eval.benchmarks.known_items import faulty_note, faulty_pairs, unpublished_note
from eval.config import EvalConfig
from eval.scores.schemas import ITEMS
from pairscale.errors import InputError, first_few
from pairscale.files import sha256_json
from pairscale.progress import with_progress

_DTYPES = {item.name: "boolean" if pa.types.is_boolean(item.type) else "str" for item in ITEMS}


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
    assert config.form is not None  # set from the name at the latest
    source = forms()[config.form].read(config)
    if isinstance(source, GeneratedPairs):
        frame = _frame(source.pairs)
        return Benchmark(config.name, frame, _digest(frame), source.origin, source.unavailable)
    whole = _frame(list(source))
    pairs = _selected(whole, config)
    notes = [unpublished_note(config.name, whole), faulty_note(config.name, pairs), *_same_notes(config.name, pairs)]
    notes.append(blanks_note([*pairs["good"], *pairs["bad"]]))
    return Benchmark(config.name, pairs, _digest(pairs), notes=tuple(filter(None, notes)))


def _digest(pairs: pd.DataFrame) -> str:
    return sha256_json(pairs[["paradigm", "pair_id", "phenomenon", "good", "bad"]].to_numpy().tolist())


def _frame(placed: list[PlacedPair]) -> pd.DataFrame:
    frame = pd.DataFrame([pair for _, pair in placed], columns=list(ITEMS.names)).astype(_DTYPES)
    own = pd.DataFrame([pair.get(OWN, {}) for _, pair in placed]).astype("str")
    frame = frame.join(own)
    key = ["paradigm", "pair_id"]
    if (twice := frame.duplicated(key)).any():
        second = int(twice.argmax())
        first = int((frame[key] == frame.loc[second, key]).all(axis=1).argmax())
        paradigm, pair_id = frame.loc[second, key]
        raise InputError(
            f"{placed[second][0]}: paradigm {paradigm} has two pairs {pair_id}, the other: {placed[first][0]}"
        )
    phenomena = frame.groupby("paradigm")["phenomenon"].unique()
    for name, of_it in phenomena[phenomena.str.len() > 1].items():
        raise InputError(f"paradigm {name} is in the phenomena {' and '.join(of_it)}: a paradigm belongs to one")
    return frame.sort_values("paradigm", kind="stable", ignore_index=True)


def _same_notes(name: str, pairs: pd.DataFrame) -> Iterator[str]:
    """Yield sentences on pairs of one sentence, unless all are known to be faulty, and of one but for white space."""
    same = pairs["good"] == pairs["bad"]
    alike = pairs["good"].str.split().str.join(" ") == pairs["bad"].str.split().str.join(" ")
    if same.any() and same.sum() != (faulty_pairs(name, pairs)["reason"] == "same_sentence").sum():
        yield f"{same.sum()} of {len(pairs):,} pairs are one sentence twice, so every model ties: {_few(pairs[same])}"
    if (blank := alike & ~same).any():
        yield f"{blank.sum()} of {len(pairs):,} pairs differ in white space alone: {_few(pairs[blank])}"


def _few(pairs: pd.DataFrame) -> str:
    return first_few([f"{row.paradigm} {row.pair_id}" for row in pairs.itertuples()], 5)


def _selected(pairs: pd.DataFrame, config: BenchmarkConfig) -> pd.DataFrame:
    pairs = pairs[pairs["paradigm"].isin(config.chosen_paradigms(sorted(set(pairs["paradigm"]))))]
    if config.pairs is not None:
        pairs = pairs.groupby("paradigm", sort=False).head(config.pairs)
    return pairs.reset_index(drop=True)


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
