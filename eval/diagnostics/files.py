"""Files of a model's answers to a diagnostic: schema, writer, readers (measures: eval/diagnostics/measures.py).

    runs/.../scores/<label>/
        cloze.parquet     CLOZE, one row per question (eval/diagnostics/questions.py)
        topk.parquet      TOPK, the most probable words of each context that is not drawn at random

Imports no torch, so that the analysis can read them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from eval.scores.files import read_metadata, read_table, write_table
from pairscale.errors import RunError

CLOZE_FILE = "cloze.parquet"
TOPK_FILE = "topk.parquet"

CLOZE = pa.schema(
    [
        ("item", pa.string()),
        ("condition", pa.string()),  # how the context is changed, or which of an item's contexts it is
        ("trial", pa.int32()),  # of a condition that is drawn at random; else null
        ("group", pa.string()),  # of items: cprag constraint H or L, neg licensing Y or N; else null
        ("context", pa.string()),
        ("candidate", pa.string()),
        ("role", pa.string()),  # of the candidate: expected, ..., target, true, false
        ("cloze", pa.float64()),  # share of people who gave the candidate; null: not published
        ("prob", pa.float64()),  # null: the model cannot express the candidate
        ("rank", pa.int32()),  # 1 + number of whole words that are more probable; null as above
        ("n_tokens", pa.int32()),
        ("expressible", pa.bool_()),  # false: <unk> among its tokens, or none at all
    ]
)
TOPK = pa.schema(
    [
        ("item", pa.string()),
        ("condition", pa.string()),
        ("context", pa.string()),
        ("place", pa.int32()),  # 1: the most probable whole word
        ("word", pa.string()),
        ("prob", pa.float64()),
    ]
)
METADATA = (
    "parameters",  # top_words
    "policy",  # the parts that count here
    "benchmark",  # {"name", "digest"}
    "model",  # {"name", "digest"}
    "tokenizer_digest",
    "step",  # null: the exported model
    "sample_words",  # null: unknown
    "torch",  # version
)


def write_cloze(folder: Path, cloze: pd.DataFrame, topk: pd.DataFrame, metadata: Mapping[str, Any]) -> None:
    """Write both files with the same `metadata` (keys of METADATA), cloze.parquet last."""
    write_answers(folder, {TOPK_FILE: (topk, TOPK), CLOZE_FILE: (cloze, CLOZE)}, metadata)


def write_answers(
    folder: Path, tables: Mapping[str, tuple[pd.DataFrame, pa.Schema]], metadata: Mapping[str, Any]
) -> None:
    """Write tables under their names, in their order, with the same `metadata` (keys of METADATA)."""
    if missing := [key for key in METADATA if key not in metadata]:
        raise ValueError(f"{folder}: metadata without {', '.join(missing)}")
    for name, (table, schema) in tables.items():
        write_table(folder / name, table, schema, metadata)


def read_cloze(folder: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read rows (columns of CLOZE) and metadata (keys of METADATA). Raises RunError for a damaged file."""
    return read_answers(folder / CLOZE_FILE, CLOZE)


def read_answers(path: Path, schema: pa.Schema) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read the columns of `schema` and metadata (keys of METADATA). Raises RunError for a damaged file."""
    frame, metadata = read_table(path, schema)
    if missing := [key for key in METADATA if key not in metadata]:
        raise RunError(f"{path}: metadata without {', '.join(missing)}; remove the file to score again")
    return frame, metadata


def read_topk(folder: Path) -> pd.DataFrame:
    """Read topk.parquet: rows (columns of TOPK). Raises RunError for a damaged file."""
    return read_table(folder / TOPK_FILE, TOPK)[0]


def cloze_metadata(folder: Path) -> dict[str, Any] | None:
    """Read the metadata of both files, None if one is missing or they differ. Raises RunError for a damaged file."""
    return shared_metadata(folder / TOPK_FILE, folder / CLOZE_FILE)


def shared_metadata(first: Path, second: Path) -> dict[str, Any] | None:
    """Read the metadata that two files share; None and errors as of `cloze_metadata`."""
    if not (first.exists() and second.exists()):
        return None
    one, other = read_metadata(first), read_metadata(second)
    return other if one == other else None
