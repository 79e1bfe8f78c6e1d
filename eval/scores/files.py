"""Write and read the score files of all kinds of benchmarks, from which accuracies and other measures are computed.

    runs/.../scores/<label>/          <label>: benchmark name and settings that aren't the default (`score_label`)
        <method>.parquet              SCORES, one row per pair (and per template or trial, if a method has them)
        <method>@<step>.parquet       the same for a snapshot
        items.parquet                 ITEMS, the pairs themselves
        tokens.parquet                TOKENS, per-token log-probabilities of a random sample of pairs
        unavailable.json              reasons why paradigms have no generated pairs in the vocabulary

Benchmarks that don't consist of pairs have the files of ANSWERS instead:

        cloze.parquet                 CLOZE, one row per question of a diagnostic
        topk.parquet                  TOPK, the most probable next words, if the contexts aren't drawn at random
        success.parquet               SUCCESS, one row per item and prediction of a SyntaxGym suite
        regions.parquet               REGIONS, one row per region of each sentence of a suite
        sentences.parquet             SENTENCES, one row per rated sentence, in the order of the table

The surprisals of a user's text are in the folder of reports, with one Parquet and one CSV file per model:

    reports/<study>/surprisal/<text>/<run>.parquet      WORDS and the user's own columns

A pair is identified by (paradigm, pair_id), because BLiMP numbers its pairs from 0 in each paradigm. Each file contains
its metadata as a JSON object. This module doesn't import torch, so that the analysis can read scores.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from eval.scores.schemas import ANSWERS, ITEMS, SCORES, SIDES, WORDS, AnswerMetadata, ScoreMetadata, TableMetadata
from pairscale.errors import InputError, RunError
from pairscale.files import atomic_path, write_json
from pairscale.schema import parse_json, read_json
from pairscale.tables import write_csv

SCORES_VERSION = 1
ITEMS_FILE = "items.parquet"
TOKENS_FILE = "tokens.parquet"
UNAVAILABLE_FILE = "unavailable.json"
_METADATA_KEY = b"pairscale"
_AGAIN = "Remove this file and score again."
_OVERFLOW = "The model probably overflows. Try fp32 (model.dtype, policy.precision)."
# Columns that must have a value in every row. `_check_scores` checks the scores themselves.
_NEVER_NULL = {"pair_id", "paradigm", "phenomenon", "side", "position", "start", "end", "item", "condition"}


def with_phenomena(scores: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Add the columns phenomenon, ties and unk_wrong from `items` to scores."""
    names = ["paradigm", "pair_id"]
    columns = [*names, *(name for name in ("phenomenon", "ties", "unk_wrong") if name in items)]
    return scores.merge(items[columns], on=names, validate="many_to_one")


def judged_pairs(method: str, items: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return which pairs (P,) a method judges. These are all pairs, unless ITEMS has a flag for the method."""
    flag = f"{method}_method"
    if flag not in ITEMS.names:
        return np.ones(len(items), dtype=np.bool_)
    return items[flag].fillna(False).to_numpy(dtype=np.bool_)


def score_path(folder: Path, method: str, step: int | None = None) -> Path:
    """Return the path of a method's score file in a benchmark's folder, for a snapshot if `step` is given."""
    return folder / (f"{method}.parquet" if step is None else f"{method}@{step}.parquet")


def pair_scores(folder: Path, step: int | None = None) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each method that judged pairs, with its scores and their phenomena.

    The scores come from the exported model, or from the snapshot at `step`. Raises RunError if a file is damaged.
    """
    if not (folder / ITEMS_FILE).exists():
        return
    items, _ = read_items(folder)
    for path in sorted(folder.glob("*.parquet")):
        method = path.stem.partition("@")[0]
        if path == score_path(folder, method, step) and path.name not in (ITEMS_FILE, TOKENS_FILE):
            yield method, with_phenomena(read_scores(path)[0], items)


def write_scores(path: Path, scores: pd.DataFrame, metadata: Mapping[str, Any]) -> None:
    """Write SCORES and ScoreMetadata atomically. Raises RunError if a score is NaN or infinite."""
    table = pa.Table.from_pandas(scores[SCORES.names], schema=SCORES, preserve_index=False)
    _check_scores(path, table, metadata, _OVERFLOW)
    _write(path, table, metadata)


def read_scores(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read rows (columns of SCORES) and metadata (ScoreMetadata). Raises RunError if the file is damaged."""
    table, metadata = read_score_table(path)
    return table.to_pandas(), metadata


def read_score_table(path: Path, columns: Sequence[str] | None = None) -> tuple[pa.Table, dict[str, Any]]:
    """Read a score file like `read_scores`, but return its rows as an Arrow table.

    Reading only some `columns` is faster. The columns that are needed to check for missing scores are always read.
    """
    needed = None if columns is None else list(dict.fromkeys([*columns, "trial", "good_tokens", "bad_tokens"]))
    table, metadata = _read(path, SCORES, ScoreMetadata, needed)
    _check_scores(path, table, metadata, _AGAIN)
    return table, metadata


def _check_scores(path: Path, table: pa.Table, metadata: Mapping[str, Any], remedy: str) -> None:
    """Raise RunError if a score is NaN or infinite, or missing although the method must produce it.

    A score may be missing (null) if no token is scored, as with unk=skip, an empty text or a prefix method. Votes have
    no log-probabilities.
    """
    vote = ~table["trial"].is_null().to_numpy()
    prefix = metadata["method"] in ("one_prefix", "two_prefix")
    for side in SIDES:
        empty = np.nan_to_num(table[f"{side}_tokens"].to_numpy()) == 0
        optional = np.full(len(table), prefix or metadata["policy"].get("unk") == "skip") | empty
        for name, may_be_null in ((side, optional), (f"{side}_lp", vote)):
            if name not in table.column_names:
                continue
            values, null = table[name].to_numpy(), table[name].is_null().to_numpy()
            wrong = np.where(null, ~may_be_null, ~np.isfinite(values))
            if not wrong.any():
                continue
            row = int(wrong.argmax())
            value = "missing" if null[row] else f"{values[row]}"
            pair = f"pair {table['pair_id'][row]} of {table['paradigm'][row]}"
            raise RunError(
                f"{path}: the column {name} is invalid in {wrong.sum():,} of {len(wrong):,} rows. For example, it is "
                f"{value} for {pair}. {remedy}"
            )


def write_items(folder: Path, pairs: pd.DataFrame, name: str, digest: str, **origin: Any) -> None:
    """Write the pairs of a benchmark to items.parquet, with the user's own columns as text.

    The metadata contain the benchmark's name and digest, and the origin of generated pairs.
    """
    own = [pa.field(str(column), pa.string()) for column in pairs.columns if column not in ITEMS.names]
    metadata = {"benchmark": {"name": name, "digest": digest, **origin}}
    lists = pairs[["options", "contexts"]].astype(object)
    pairs = pairs.assign(**lists.where(lists.notna(), None))
    write_table(folder / ITEMS_FILE, pairs, pa.schema([*ITEMS, *own]), metadata)


def read_items(folder: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read pairs (columns of ITEMS and the user's own) and metadata. Raises RunError if the file is damaged."""
    return read_table(folder / ITEMS_FILE, ITEMS)


def check_same_pairs(folder: Path, name: str, digest: str) -> None:
    """Raise InputError if a folder contains scores of pairs with another digest, because these must be kept."""
    if not (folder / ITEMS_FILE).exists():
        return
    recorded = read_metadata(folder / ITEMS_FILE)["benchmark"]["digest"]
    if recorded != digest:
        raise InputError(
            f"{folder}: the pairs of {name} have changed since these scores were computed (digest {recorded[:8]}, now "
            f"{digest[:8]}). Rename the new pairs with benchmark.name=NAME, or remove this folder."
        )


def write_unavailable(folder: Path, reasons: Mapping[str, str]) -> None:
    """Write unavailable.json, which maps the paradigms without generated pairs in the vocabulary to reasons."""
    write_json(folder / UNAVAILABLE_FILE, dict(sorted(reasons.items())))


def read_unavailable(folder: Path) -> dict[str, str]:
    """Read the reasons why paradigms have no pairs, or {} if all have pairs. Raises RunError for a damaged file."""
    path = folder / UNAVAILABLE_FILE
    return read_json(path, dict[str, str], RunError, _AGAIN) if path.exists() else {}


def write_answers(folder: Path, tables: Mapping[str, pd.DataFrame], metadata: Mapping[str, Any]) -> None:
    """Write tables, which are named as in ANSWERS, each with the same metadata (AnswerMetadata)."""
    for name, table in tables.items():
        write_table(score_path(folder, name), table, ANSWERS[name], metadata)


def read_answer_file(folder: Path, name: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read rows (columns of ANSWERS[name]) and metadata (AnswerMetadata). Raises RunError if the file is damaged."""
    return read_table(score_path(folder, name), ANSWERS[name], AnswerMetadata)


def answers_metadata(folder: Path, *names: str) -> dict[str, Any] | None:
    """Read the metadata that files share. Return None if a file is missing or if the files' metadata differ.

    Raises RunError if a file is damaged.
    """
    paths = [score_path(folder, name) for name in names]
    if not all(path.exists() for path in paths):
        return None
    first, *others = map(read_metadata, paths)
    return first if all(other == first for other in others) else None


def write_words(path: Path, words: pd.DataFrame, metadata: Mapping[str, Any]) -> None:
    """Write the surprisals of words (WORDS and the user's own columns) as Parquet and as CSV.

    Raises RunError if a surprisal is NaN or infinite and the word has at least one token of its own.
    """
    wrong = words[(words["tokens"] > 0) & ~np.isfinite(words["surprisal"])]
    if len(wrong):
        first = wrong.iloc[0]
        raise RunError(
            f"{path}: {len(wrong):,} of {len(words):,} words have an invalid surprisal. For example, it is "
            f"{first['surprisal']} for {first['word']!r} (word {first['number']} of text {first['text_id']}). "
            f"{_OVERFLOW}"
        )
    write_csv(path.with_suffix(".csv"), words)
    own = pa.Schema.from_pandas(words.drop(columns=WORDS.names), preserve_index=False)
    write_table(path, words, pa.schema([*WORDS, *own]), metadata)


def read_words(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read surprisals (columns of WORDS and the user's own) and metadata. Raises RunError if the file is damaged."""
    return read_table(path, WORDS, AnswerMetadata)


def write_table(path: Path, frame: pd.DataFrame, schema: pa.Schema, metadata: Mapping[str, Any]) -> None:
    """Write the columns of `schema`, `metadata` and the version of score files atomically."""
    _write(path, pa.Table.from_pandas(frame[schema.names], schema=schema, preserve_index=False), metadata)


def _write(path: Path, table: pa.Table, metadata: Mapping[str, Any]) -> None:
    text = json.dumps({"version": SCORES_VERSION, **metadata}, ensure_ascii=False)
    with atomic_path(path) as temporary:
        pq.write_table(table.replace_schema_metadata({_METADATA_KEY: text}), temporary, write_page_checksum=True)


def read_table(path: Path, schema: pa.Schema, about: Any = TableMetadata) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read the columns of `schema`, and metadata of the type `about`.

    Raises RunError if the file is missing or damaged, or wasn't written by pairscale.
    """
    table, metadata = _read(path, schema, about)
    return table.to_pandas(), metadata


def read_metadata(path: Path) -> dict[str, Any]:
    """Read only the metadata of a file. Raises RunError if the file is damaged."""
    try:
        return _metadata(path, pq.read_schema(path), TableMetadata)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from None


def _read(
    path: Path, schema: pa.Schema, about: Any, columns: Sequence[str] | None = None
) -> tuple[pa.Table, dict[str, Any]]:
    try:
        table = pq.read_table(path, columns=columns, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from None
    metadata = _metadata(path, table.schema, about)
    names = schema.names if columns is None else columns
    if missing := [name for name in names if name not in table.column_names]:
        raise RunError(f"{path}: this file has no column {', '.join(missing)}. {_AGAIN}")
    own = [name for name in table.column_names if schema in (ITEMS, WORDS) and name not in names]
    table = table.select([*names, *own])
    never_null = _NEVER_NULL | set(SIDES) if schema is ITEMS else _NEVER_NULL
    for name in names:
        column, expected = table[name], schema.field(name).type
        if column.type != expected:
            raise RunError(f"{path}: column {name} has the type {column.type}, but must have {expected}. {_AGAIN}")
        if name in never_null and (count := column.null_count):
            raise RunError(f"{path}: column {name} is empty in {count:,} of {len(table):,} rows. {_AGAIN}")
    return table, metadata


def _metadata(path: Path, schema: pa.Schema, about: Any) -> dict[str, Any]:
    raw = (schema.metadata or {}).get(_METADATA_KEY)
    if raw is None:
        raise RunError(f"{path}: this Parquet file was not written by pairscale. Move it out of the folder.")
    metadata = cast(dict[str, Any], parse_json(raw, about, path, RunError, _AGAIN, SCORES_VERSION))
    del metadata["version"]
    return metadata


def _damaged(path: Path, error: Exception) -> RunError:
    if isinstance(error, FileNotFoundError):
        return RunError(f"{path}: this score file doesn't exist. Score the run again to create it.")
    return RunError(f"{path}: this file is damaged ({str(error).splitlines()[0]}). {_AGAIN}")
