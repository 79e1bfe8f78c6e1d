"""Score files of all kinds of items: their schemas, writer and readers. Measures are computed from them.

    runs/.../scores/<label>/          label: `score_label`, the benchmark's name unless policy or pairs differ
        <method>.parquet              SCORES, one row per pair (and template or trial, where a method has them)
        <method>@<step>.parquet       the same at one point of a trajectory
        items.parquet                 ITEMS, the pairs themselves
        tokens.parquet                TOKENS, per-token log-probabilities of a seeded sample of pairs
        unavailable.json              of generated pairs: the paradigms without pairs in the vocabulary -> reason

Of items that are no pairs there are ANSWERS instead, under their names:

        cloze.parquet                 CLOZE, a row per question of a diagnostic
        topk.parquet                  TOPK, the most probable words of each context that is not drawn at random
        success.parquet               SUCCESS, a row per item and prediction of SyntaxGym's suites
        regions.parquet               REGIONS, a row per region of each sentence of these
        sentences.parquet             SENTENCES, a row per rated sentence, in the order of the table

Surprisals of a text, which is the user's, have a file per model among the reports, and the same as CSV:

    reports/<study>/surprisal/<text>/<run>.parquet      WORDS and the user's own columns

A pair is named by (paradigm, pair_id): BLiMP counts its pairs from 0 in each paradigm. Each file holds its metadata as
one JSON object. Imports no torch, so that the analysis can read scores.
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
# Columns with a value in each row of all files; `_check_scores` has the rules for those of SCORES.
_NEVER_NULL = {"pair_id", "paradigm", "phenomenon", "side", "position", "start", "end", "item", "condition"}


def with_phenomena(scores: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Return scores with the column `phenomenon` of their pairs in `items`."""
    names = ["paradigm", "pair_id"]
    return scores.merge(items[[*names, "phenomenon"]], on=names, validate="many_to_one")


def judged_pairs(method: str, items: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return which pairs (P,) a method judges: those with its flag if ITEMS has one, else all."""
    flag = f"{method}_method"
    if flag not in ITEMS.names:
        return np.ones(len(items), dtype=np.bool_)
    return items[flag].fillna(False).to_numpy(dtype=np.bool_)


def score_path(folder: Path, method: str, step: int | None = None) -> Path:
    """Path of a method's score file in the folder of one benchmark; `step` for a point of a trajectory."""
    return folder / (f"{method}.parquet" if step is None else f"{method}@{step}.parquet")


def pair_scores(folder: Path, step: int | None = None) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each method that judged pairs, and its scores with phenomena: of the model, or of a snapshot after `step`.

    Raises RunError for a damaged file.
    """
    if not (folder / ITEMS_FILE).exists():
        return
    items, _ = read_items(folder)
    for path in sorted(folder.glob("*.parquet")):
        method = path.stem.partition("@")[0]
        if path == score_path(folder, method, step) and path.name not in (ITEMS_FILE, TOKENS_FILE):
            yield method, with_phenomena(read_scores(path)[0], items)


def write_scores(path: Path, scores: pd.DataFrame, metadata: Mapping[str, Any]) -> None:
    """Write SCORES and ScoreMetadata in one move. Raises RunError for a score that is NaN or infinite."""
    table = pa.Table.from_pandas(scores[SCORES.names], schema=SCORES, preserve_index=False)
    _check_scores(path, table, metadata, "the model's weights, or what its scoring computes, overflow")
    _write(path, table, metadata)


def read_scores(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read rows (columns of SCORES) and metadata (ScoreMetadata). Raises RunError for a damaged file."""
    table, metadata = read_score_table(path)
    return table.to_pandas(), metadata


def read_score_table(path: Path, columns: Sequence[str] | None = None) -> tuple[pa.Table, dict[str, Any]]:
    """Return the same as `read_scores`, with the rows as an Arrow table.

    `columns`: read only these, and those that the check of missing scores needs, which is faster.
    """
    needed = None if columns is None else list(dict.fromkeys([*columns, "trial", "good_tokens", "bad_tokens"]))
    table, metadata = _read(path, SCORES, ScoreMetadata, needed)
    _check_scores(path, table, metadata, _AGAIN)
    return table, metadata


def _check_scores(path: Path, table: pa.Table, metadata: Mapping[str, Any], remedy: str) -> None:
    """Raise RunError for scores that are NaN or infinite, and for a missing one that the method must have.

    It may be missing (null) if no token counts: unk=skip, empty text, prefix methods; a log-probability: for votes.
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
    """Write items.parquet: the pairs of a benchmark, with the user's own columns as text.

    The benchmark's name, digest and (if generated) origin are the metadata.
    """
    own = [pa.field(str(column), pa.string()) for column in pairs.columns if column not in ITEMS.names]
    metadata = {"benchmark": {"name": name, "digest": digest, **origin}}
    write_table(folder / ITEMS_FILE, pairs, pa.schema([*ITEMS, *own]), metadata)


def read_items(folder: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read pairs (columns of ITEMS and the user's own) and their benchmark. Raises RunError for a damaged file."""
    return read_table(folder / ITEMS_FILE, ITEMS)


def check_same_pairs(folder: Path, name: str, digest: str) -> None:
    """Raise InputError if a folder holds scores of other pairs than those of `digest`, which must stay."""
    if not (folder / ITEMS_FILE).exists():
        return
    recorded = read_metadata(folder / ITEMS_FILE)["benchmark"]["digest"]
    if recorded != digest:
        raise InputError(
            f"{folder}: holds scores of other pairs (digest {recorded[:8]}) than {name} has now ({digest[:8]}); "
            f"give these another name (benchmark.name), or remove that folder"
        )


def write_unavailable(folder: Path, reasons: Mapping[str, str]) -> None:
    """Write unavailable.json: the paradigms without pairs in the vocabulary of generated pairs -> reason."""
    write_json(folder / UNAVAILABLE_FILE, dict(sorted(reasons.items())))


def read_unavailable(folder: Path) -> dict[str, str]:
    """Read the paradigms without pairs -> reason; {} if all have pairs."""
    path = folder / UNAVAILABLE_FILE
    return read_json(path, dict[str, str], RunError, _AGAIN) if path.exists() else {}


def write_answers(folder: Path, tables: Mapping[str, pd.DataFrame], metadata: Mapping[str, Any]) -> None:
    """Write tables under their names in ANSWERS, in their order, with the same metadata (AnswerMetadata)."""
    for name, table in tables.items():
        write_table(score_path(folder, name), table, ANSWERS[name], metadata)


def read_answer_file(folder: Path, name: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read rows (columns of ANSWERS[name]) and metadata (AnswerMetadata). Raises RunError for a damaged file."""
    return read_table(score_path(folder, name), ANSWERS[name], AnswerMetadata)


def answers_metadata(folder: Path, *names: str) -> dict[str, Any] | None:
    """Read the metadata that files share; None if one is missing or they differ. Raises RunError for a damaged file."""
    paths = [score_path(folder, name) for name in names]
    if not all(path.exists() for path in paths):
        return None
    first, *others = map(read_metadata, paths)
    return first if all(other == first for other in others) else None


def write_words(path: Path, words: pd.DataFrame, metadata: Mapping[str, Any]) -> None:
    """Write the surprisals of a text's words (WORDS and the user's own columns) to a Parquet file and as CSV.

    Raises RunError for one that is NaN or infinite, except for words without a token of their own.
    """
    wrong = words[(words["tokens"] > 0) & ~np.isfinite(words["surprisal"])]
    if len(wrong):
        first = wrong.iloc[0]
        raise RunError(
            f"{path}: the surprisal of {first['word']!r} (word {first['number']} of text {first['text_id']}) is "
            f"{first['surprisal']} ({len(wrong):,} of {len(words):,} words): what the model computes overflows"
        )
    write_csv(path.with_suffix(".csv"), words)
    own = pa.Schema.from_pandas(words.drop(columns=WORDS.names), preserve_index=False)
    write_table(path, words, pa.schema([*WORDS, *own]), metadata)


def read_words(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read surprisals (columns of WORDS and the user's own) and metadata. Raises RunError for a damaged file."""
    return read_table(path, WORDS, AnswerMetadata)


def write_table(path: Path, frame: pd.DataFrame, schema: pa.Schema, metadata: Mapping[str, Any]) -> None:
    """Write the columns of `schema`, with `metadata` and the version of score files, in one move."""
    _write(path, pa.Table.from_pandas(frame[schema.names], schema=schema, preserve_index=False), metadata)


def _write(path: Path, table: pa.Table, metadata: Mapping[str, Any]) -> None:
    text = json.dumps({"version": SCORES_VERSION, **metadata}, ensure_ascii=False)
    with atomic_path(path) as temporary:
        pq.write_table(table.replace_schema_metadata({_METADATA_KEY: text}), temporary, write_page_checksum=True)


def read_table(path: Path, schema: pa.Schema, about: Any = TableMetadata) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read the columns of `schema`, and metadata of the type `about`.

    Raises RunError for a file that is missing, damaged or foreign.
    """
    table, metadata = _read(path, schema, about)
    return table.to_pandas(), metadata


def read_metadata(path: Path) -> dict[str, Any]:
    """Read the metadata of a file, without its rows. Raises RunError for a damaged one."""
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
        raise RunError(f"{path}: without the columns {', '.join(missing)}; {_AGAIN}")
    own = [name for name in table.column_names if schema in (ITEMS, WORDS) and name not in names]
    table = table.select([*names, *own])
    never_null = _NEVER_NULL | set(SIDES) if schema is ITEMS else _NEVER_NULL
    for name in names:
        column, expected = table[name], schema.field(name).type
        if column.type != expected:
            raise RunError(f"{path}: column {name} is {column.type}, must be {expected}; {_AGAIN}")
        if name in never_null and (count := column.null_count):
            raise RunError(f"{path}: column {name} has no value in {count:,} of its {len(table):,} rows; {_AGAIN}")
    return table, metadata


def _metadata(path: Path, schema: pa.Schema, about: Any) -> dict[str, Any]:
    raw = (schema.metadata or {}).get(_METADATA_KEY)
    if raw is None:
        raise RunError(f"{path}: a Parquet file, but not written by pairscale")
    metadata = cast(dict[str, Any], parse_json(raw, about, path, RunError, _AGAIN, SCORES_VERSION))
    del metadata["version"]
    return metadata


def _damaged(path: Path, error: Exception) -> RunError:
    if isinstance(error, FileNotFoundError):
        return RunError(f"{path}: no such score file")
    return RunError(f"{path}: damaged ({str(error).splitlines()[0]}); {_AGAIN}")
