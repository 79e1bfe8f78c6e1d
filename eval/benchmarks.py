"""Benchmarks as tables of minimal pairs, from a local folder, the Hugging Face hub, or the built-in grammar."""

from __future__ import annotations

import csv
import difflib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from corpora.errors import ConfigError, InputError, check_choice
from corpora.files import sha256_json
from corpora.hub import import_datasets
from eval.config import BenchmarkConfig
from eval.scores import ITEMS

Row = dict[str, Any]

# BLiMP's files tell 13 phenomena; its paper and its published summary count 12.
FOLDED_PHENOMENA = {"s-selection": "argument_structure"}
_FLAGS = ("lexically_identical", "one_prefix_method", "two_prefix_method")
_PREFIXES = tuple(name for name in ITEMS.names if "_prefix_" in name and name not in _FLAGS)
_BLIMP_TEXTS = ("sentence_good", "sentence_bad", "field", "linguistics_term", "UID")

# The one file of CLiMP that has no header: its paradigm is its name, as for the others.
_CLIMP_BARE = {"ba_construction": "ba"}
_CLIMP_COLUMNS = ["", "0", "1", "2", "3"]  # index, phenomenon, paradigm, sentence, label


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

    Raises InputError for a missing folder, a data set that cannot be had, a broken line or a missing field (with file
    and line), ConfigError for a benchmark or paradigm that does not exist.
    """
    check_choice("benchmark.name", config.name, _READERS)
    rows = list(_READERS[config.name](config))
    frame = pd.DataFrame(rows, columns=list(ITEMS.names)).astype(_DTYPES)
    duplicated = frame.duplicated(["paradigm", "pair_id"])
    if duplicated.any():
        first = frame[duplicated].iloc[0]
        raise InputError(f"benchmark={config.name}: paradigm {first.paradigm} has two pairs {first.pair_id}")
    pairs = _selected(frame.sort_values("paradigm", kind="stable", ignore_index=True), config)
    identity = pairs[["paradigm", "pair_id", "phenomenon", "good", "bad"]]
    return Benchmark(config.name, pairs, sha256_json(identity.to_numpy().tolist()))


_DTYPES = {name: "boolean" if name in _FLAGS else "str" for name in ITEMS.names}


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


def _blimp(config: BenchmarkConfig) -> Iterator[Row]:
    if config.path is None:
        yield from _blimp_hub(config)
        return
    for file in _files(config, "*.jsonl"):
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _blimp_row(_json_object(line, f"{file}: line {number}"), f"{file}: line {number}")


def _json_object(line: bytes, where: str) -> Row:
    try:
        row = json.loads(line.decode("utf-8").strip())
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8 ({error.reason} at byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: not JSON ({error.msg}, character {error.pos + 1})") from None
    if not isinstance(row, dict):
        raise InputError(f"{where}: a JSON {type(row).__name__}, must be an object with the fields of a pair")
    return row


def _blimp_row(row: Row, where: str) -> Row:
    """One of BLiMP's JSON objects under our names. The hub spells pairID pair_id, and a number."""
    pair_id = row.get("pairID", row.get("pair_id"))
    if pair_id is None:
        raise InputError(f"{where}: without the field pairID; there are {', '.join(row)}")
    for name in _BLIMP_TEXTS:
        if name not in row:
            raise InputError(f"{where}: without the field {name}; there are {', '.join(row)}")
        if not isinstance(row[name], str) or not row[name].strip():
            raise InputError(f"{where}: {name} is {row[name]!r}, must be text")
    phenomenon = row["linguistics_term"]
    return {
        "pair_id": str(pair_id),
        "paradigm": row["UID"],
        "phenomenon": FOLDED_PHENOMENA.get(phenomenon, phenomenon),
        "field": row["field"].replace("/", "_"),  # the files have both syntax/semantics and syntax_semantics
        "good": row["sentence_good"],
        "bad": row["sentence_bad"],
        **{name: row.get(name) for name in _FLAGS},
        # Two paradigms have a space before two_prefix_word.
        **{name: row[name].strip() if isinstance(row.get(name), str) else None for name in _PREFIXES},
    }


def _blimp_hub(config: BenchmarkConfig) -> Iterator[Row]:
    if config.dataset is None:
        raise ConfigError(f"benchmark={config.name}: give benchmark.path=FOLDER or benchmark.dataset=NAME")
    datasets = import_datasets()
    try:
        for subset in sorted(datasets.get_dataset_config_names(config.dataset)):
            part = datasets.load_dataset(config.dataset, subset, split="train")
            for number, row in enumerate(part, start=1):
                yield _blimp_row(row, f"{config.dataset}: {subset}: row {number}")
    except (OSError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"benchmark={config.name} needs {config.dataset} from the Hugging Face hub ({reason}); "
            f"for a local copy give benchmark.path=FOLDER with its JSON Lines files"
        ) from None


def _climp(config: BenchmarkConfig) -> Iterator[Row]:
    """CLiMP: rows by turns good and bad, in 15 files with a header and one without."""
    for file in _files(config, "*.csv"):
        with file.open(encoding="utf-8", newline="") as lines:
            reader = csv.reader(lines, strict=True)
            try:
                rows = [(reader.line_num, row) for row in reader]
            except UnicodeDecodeError as error:
                raise InputError(f"{file}: not UTF-8 ({error.reason} at byte {error.start})") from None
            except csv.Error as error:
                raise InputError(f"{file}: line {reader.line_num}: not CSV ({error})") from None
        yield from _climp_pairs(file, rows)


def _climp_pairs(file: Path, rows: list[tuple[int, list[str]]]) -> Iterator[Row]:
    """Pairs of one file, from its rows and their line numbers."""
    paradigm = file.stem.removesuffix("_1000")
    bare = paradigm in _CLIMP_BARE
    if not bare and rows[:1] != [(1, _CLIMP_COLUMNS)]:
        raise InputError(f"{file}: line 1: must be the header {','.join(_CLIMP_COLUMNS)}")
    sentences: list[Row] = []
    for number, row in rows[0 if bare else 1 :]:
        wanted = "10"[len(sentences) % 2]
        if bare:
            row = ["", _CLIMP_BARE[paradigm], paradigm, *row, wanted]
        if len(row) != len(_CLIMP_COLUMNS) or not row[3].strip():
            raise InputError(f"{file}: line {number}: must hold {1 if bare else 5} columns with a sentence, got {row}")
        if row[4] != wanted:
            raise InputError(f"{file}: line {number}: label {row[4]}, must be {wanted} (good 1 and bad 0 by turns)")
        sentences.append({"phenomenon": row[1], "paradigm": row[2], "sentence": row[3]})
    if not sentences or len(sentences) % 2:
        raise InputError(f"{file}: {len(sentences)} sentences, must be pairs")
    for index, (good, bad) in enumerate(zip(sentences[::2], sentences[1::2], strict=True)):
        yield {
            "pair_id": str(index),
            "paradigm": good["paradigm"],
            "phenomenon": good["phenomenon"],
            "good": good["sentence"],
            "bad": bad["sentence"],
        }


def _toy(config: BenchmarkConfig) -> Iterable[Row]:
    from corpora.toy import pairs

    if config.seed is None or config.per_paradigm is None:
        raise ConfigError(
            f"benchmark=toy: seed={config.seed} and per_paradigm={config.per_paradigm}: both must be numbers"
        )
    made = enumerate(pairs(config.seed, config.per_paradigm), start=1)
    return (_blimp_row(row, f"toy: pair {number}") for number, row in made)


def _files(config: BenchmarkConfig, pattern: str) -> list[Path]:
    """The local files of a benchmark, by name."""
    name = config.name
    otherwise = f", or benchmark.path=null to read {config.dataset} from the hub" if config.dataset else ""
    if config.path is None:
        raise ConfigError(f"benchmark={name}: give benchmark.path=FOLDER with its {pattern} files")
    if config.path.startswith("None/"):  # ${paths.data} is not set
        raise InputError(
            f"benchmark={name}: set PAIRSCALE_DATA to the folder that holds {config.path.removeprefix('None/')}/, "
            f"or give benchmark.path=FOLDER{otherwise}"
        )
    folder = Path(config.path).expanduser()
    if not folder.is_dir():
        raise InputError(f"benchmark.path: no folder {folder} (with the {pattern} files of {name}){otherwise}")
    files = sorted(folder.glob(pattern))
    if not files:
        raise InputError(f"benchmark.path: no {pattern} files in {folder}{otherwise}")
    return files


_READERS: dict[str, Callable[[BenchmarkConfig], Iterable[Row]]] = {"blimp": _blimp, "climp": _climp, "toy": _toy}
