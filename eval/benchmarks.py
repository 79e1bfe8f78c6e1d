"""Benchmarks as tables of minimal pairs, from local files, the Hugging Face hub, or the built-in grammar.

A benchmark is a file in conf/benchmark/; eval/forms.py says how the rows of its form are pairs, eval/readers.py how
rows come out of files and data sets.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from corpora.errors import ConfigError, InputError
from corpora.files import sha256_json
from eval.config import BenchmarkConfig
from eval.forms import FLAGS, FORM_READERS
from eval.scores import ITEMS

_DTYPES = {name: "boolean" if name in FLAGS else "str" for name in ITEMS.names}


@dataclass(frozen=True)
class Benchmark:
    """Pairs and the fingerprint of them.

    pairs: the columns of eval.scores.ITEMS, by paradigm, then in the source's order; (paradigm, pair_id) is unique.
    digest: SHA-256 over paradigm, pair_id, phenomenon and the two sentences of all pairs.
    """

    name: str
    pairs: pd.DataFrame
    digest: str


def load_benchmark(config: BenchmarkConfig) -> Benchmark:
    """Read the benchmark that `config` names.

    Raises InputError for a missing file or folder, a data set that cannot be had, a broken line, a missing column or a
    cell that holds no text (with file and line), ConfigError for values that do not fit and for a paradigm that does
    not exist.
    """
    assert config.form is not None  # set from the name at the latest
    found = list(FORM_READERS[config.form](config))
    frame = pd.DataFrame([pair for _, pair in found], columns=list(ITEMS.names)).astype(_DTYPES)
    duplicated = frame.duplicated(["paradigm", "pair_id"])
    if duplicated.any():
        second = int(duplicated.to_numpy().argmax())
        names = frame.loc[second, ["paradigm", "pair_id"]]
        first = int((frame[["paradigm", "pair_id"]] == names).all(axis=1).to_numpy().argmax())
        raise InputError(
            f"{found[second][0]}: paradigm {names['paradigm']} has two pairs {names['pair_id']}, "
            f"the other: {found[first][0]}"
        )
    pairs = _selected(frame.sort_values("paradigm", kind="stable", ignore_index=True), config)
    identity = pairs[["paradigm", "pair_id", "phenomenon", "good", "bad"]]
    return Benchmark(config.name, pairs, sha256_json(identity.to_numpy().tolist()))


def _selected(pairs: pd.DataFrame, config: BenchmarkConfig) -> pd.DataFrame:
    if config.paradigms is not None:
        known = sorted(set(pairs["paradigm"]))
        for name in config.paradigms:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=3) or known[:3]
                raise ConfigError(
                    f"benchmark.paradigms: {config.name} has no paradigm '{name}'; near it: {', '.join(near)}"
                )
        pairs = pairs[pairs["paradigm"].isin(config.paradigms)]
    if config.pairs is not None:
        pairs = pairs.groupby("paradigm", sort=False).head(config.pairs)
    return pairs.reset_index(drop=True)


def drawn_pairs(pairs: pd.DataFrame, count: str, seed: int) -> npt.NDArray[np.int64]:
    """Positions of `count` pairs (or "all") drawn from each paradigm, increasing; the same for every model."""
    if count == "all":
        return np.arange(len(pairs))
    rng = np.random.default_rng(seed)
    groups = pairs.groupby("paradigm", sort=True).indices.values()
    return np.sort(np.concatenate([rng.permutation(np.sort(group))[: int(count)] for group in groups]))
