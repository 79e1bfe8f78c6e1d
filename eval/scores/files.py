"""Write and read the score files of all kinds of benchmarks. Accuracies and other measures are computed from them.

    runs/.../scores/<label>/          `score_label`: the benchmark's name, with settings that aren't the default
        <method>.parquet              SCORES, one row per pair (and per template or trial, if a method has them)
        <method>@<step>.parquet       the same for a snapshot
        items.parquet                 ITEMS, the pairs themselves
        tokens.parquet                TOKENS, per-token log-probabilities of a random sample of pairs
        unavailable.json              for generated pairs: paradigms without pairs in the vocabulary -> reason

Benchmarks that don't consist of pairs have the files of ANSWERS instead:

        cloze.parquet                 CLOZE, one row per question of a diagnostic
        topk.parquet                  TOPK, the most probable words after each context that isn't drawn at random
        success.parquet               SUCCESS, one row per item and prediction of a SyntaxGym suite
        regions.parquet               REGIONS, one row per region of each sentence of a suite
        sentences.parquet             SENTENCES, one row per rated sentence, in the order of the table

The surprisals of a user's text are among the reports, with one Parquet file per model and the same as CSV:

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
_AGAIN = "remove the file to score again"
# Columns that must have a value in every row. `_check_scores` has the rules for the scores themselves.
_NEVER_NULL = {"pair_id", "paradigm", "phenomenon", "side", "position", "start", "end", "item", "condition"}


def with_phenomena(scores: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Add the columns phenomenon, ties and unk_wrong of the pairs in `items` to scores."""
    names = ["paradigm", "pair_id"]
    columns = [*names, *(name for name in ("phenomenon", "ties", "unk_wrong") if name in items)]
    return scores.merge(items[columns], on=names, validate="many_to_one")


def judged_pairs(method: str, items: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return which pairs (P,) a method judges. If ITEMS has a flag for the method, it selects them, otherwise all."""
    flag = f"{method}_method"
    if flag not in ITEMS.names:
        return np.ones(len(items), dtype=np.bool_)
    return items[flag].fillna(False).to_numpy(dtype=np.bool_)


def score_path(folder: Path, method: str, step: int | None = None) -> Path:
    """Return the path of a method's score file in a benchmark's folder; with `step`, the file of a snapshot."""
    return folder / (f"{method}.parquet" if step is None else f"{method}@{step}.parquet")


def pair_scores(folder: Path, step: int | None = None) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each method that judged pairs, with its scores and their phenomena.

    The scores are those of the exported model, or of the snapshot after `step`. Raises RunError if a file is damaged.
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
    _check_scores(path, table, metadata, "the model overflows, which fp32 may avoid (model.dtype, policy.precision)")
    _write(path, table, metadata)


def read_scores(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read rows (columns of SCORES) and metadata (ScoreMetadata). Raises RunError if the file is damaged."""
    table, metadata = read_score_table(path)
    return table.to_pandas(), metadata


def read_score_table(path: Path, columns: Sequence[str] | None = None) -> tuple[pa.Table, dict[str, Any]]:
    """Read the same as `read_scores`, with the rows as an Arrow table.

    Reading only some `columns` is faster. The columns that are needed to check for missing scores are always read.
    """
    needed = None if columns is None else list(dict.fromkeys([*columns, "trial", "good_tokens", "bad_tokens"]))
    table, metadata = _read(path, SCORES, ScoreMetadata, needed)
    _check_scores(path, table, metadata, _AGAIN)
    return table, metadata


def _check_scores(path: Path, table: pa.Table, metadata: Mapping[str, Any], remedy: str) -> None:
    """Raise RunError if a score is NaN or infinite, or missing although the method must have it.

    A score may be missing (null) if no token counts, as with unk=skip, an empty text or a prefix method. Votes have no
    log-probabilities.
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
            raise RunError(f"{path}: {name} is {value} for {pair} ({wrong.sum():,} of {len(wrong):,} rows); {remedy}")


def write_items(folder: Path, pairs: pd.DataFrame, name: str, digest: str, **origin: Any) -> None:
    """Write the pairs of a benchmark to items.parquet, with the user's own columns as text.

    The metadata are the benchmark's name and digest, and the origin of generated pairs.
    """
    own = [pa.field(str(column), pa.string()) for column in pairs.columns if column not in ITEMS.names]
    metadata = {"benchmark": {"name": name, "digest": digest, **origin}}
    lists = pairs[["options", "contexts"]].astype(object)
    pairs = pairs.assign(**lists.where(lists.notna(), None))
    write_table(folder / ITEMS_FILE, pairs, pa.schema([*ITEMS, *own]), metadata)


def read_items(folder: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read pairs (columns of ITEMS and the user's own) and their benchmark. Raises RunError if the file is damaged."""
    return read_table(folder / ITEMS_FILE, ITEMS)


def check_same_pairs(folder: Path, name: str, digest: str) -> None:
    """Raise InputError if a folder contains scores of other pairs than those with `digest`, which must be kept."""
    if not (folder / ITEMS_FILE).exists():
        return
    recorded = read_metadata(folder / ITEMS_FILE)["benchmark"]["digest"]
    if recorded != digest:
        raise InputError(
            f"{folder} contains scores of other pairs (digest {recorded[:8]}) than {name} has now ({digest[:8]}). Give "
            "the new pairs another name with benchmark.name=NAME, or remove the folder."
        )


def write_unavailable(folder: Path, reasons: Mapping[str, str]) -> None:
    """Write unavailable.json: for generated pairs, the paradigms without pairs in the vocabulary -> reason."""
    write_json(folder / UNAVAILABLE_FILE, dict(sorted(reasons.items())))


def read_unavailable(folder: Path) -> dict[str, str]:
    """Read the paradigms without pairs -> reason; {} if all have pairs. Raises RunError if the file is damaged."""
    path = folder / UNAVAILABLE_FILE
    return read_json(path, dict[str, str], RunError, _AGAIN) if path.exists() else {}


def write_answers(folder: Path, tables: Mapping[str, pd.DataFrame], metadata: Mapping[str, Any]) -> None:
    """Write tables, named as in ANSWERS, with the same metadata (AnswerMetadata)."""
    for name, table in tables.items():
        write_table(score_path(folder, name), table, ANSWERS[name], metadata)


def read_answer_file(folder: Path, name: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read rows (columns of ANSWERS[name]) and metadata (AnswerMetadata). Raises RunError if the file is damaged."""
    return read_table(score_path(folder, name), ANSWERS[name], AnswerMetadata)


def answers_metadata(folder: Path, *names: str) -> dict[str, Any] | None:
    """Read the metadata that files share. Return None if a file is missing or their metadata differ.

    Raises RunError if a file is damaged.
    """
    paths = [score_path(folder, name) for name in names]
    if not all(path.exists() for path in paths):
        return None
    first, *others = map(read_metadata, paths)
    return first if all(other == first for other in others) else None


def write_words(path: Path, words: pd.DataFrame, metadata: Mapping[str, Any]) -> None:
    """Write the surprisals of words (WORDS and the user's own columns) as Parquet and as CSV.

    Raises RunError if a surprisal is NaN or infinite, except for words without a token of their own.
    """
    wrong = words[(words["tokens"] > 0) & ~np.isfinite(words["surprisal"])]
    if len(wrong):
        first = wrong.iloc[0]
        raise RunError(
            f"{path}: the surprisal of {first['word']!r} (word {first['number']} of text {first['text_id']}) is "
            f"{first['surprisal']} ({len(wrong):,} of {len(words):,} words); the model overflows, which fp32 "
            "may avoid (model.dtype, policy.precision)"
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
        raise RunError(f"{path}: the columns {', '.join(missing)} are missing; {_AGAIN}")
    own = [name for name in table.column_names if schema in (ITEMS, WORDS) and name not in names]
    table = table.select([*names, *own])
    never_null = _NEVER_NULL | set(SIDES) if schema is ITEMS else _NEVER_NULL
    for name in names:
        column, expected = table[name], schema.field(name).type
        if column.type != expected:
            raise RunError(f"{path}: column {name} is {column.type}, but must be {expected}; {_AGAIN}")
        if name in never_null and (count := column.null_count):
            raise RunError(f"{path}: column {name} has no value in {count:,} of its {len(table):,} rows; {_AGAIN}")
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
        return RunError(f"{path}: score file not found.")
    return RunError(f"{path}: this file is damaged ({str(error).splitlines()[0]}); {_AGAIN}")
