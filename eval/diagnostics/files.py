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
    missing = [key for key in METADATA if key not in metadata]
    if missing:
        raise ValueError(f"{CLOZE_FILE}: metadata without {', '.join(missing)}")
    write_table(folder / TOPK_FILE, topk, TOPK, metadata)
    write_table(folder / CLOZE_FILE, cloze, CLOZE, metadata)


def read_cloze(folder: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read rows (columns of CLOZE) and metadata (keys of METADATA). Raises RunError for a damaged file."""
    frame, metadata = read_table(folder / CLOZE_FILE, CLOZE)
    missing = [key for key in METADATA if key not in metadata]
    if missing:
        raise RunError(f"{folder / CLOZE_FILE}: metadata without {', '.join(missing)}; remove the file to score again")
    return frame, metadata


def read_topk(folder: Path) -> pd.DataFrame:
    """Read topk.parquet: rows (columns of TOPK). Raises RunError for a damaged file."""
    return read_table(folder / TOPK_FILE, TOPK)[0]


def cloze_metadata(folder: Path) -> dict[str, Any] | None:
    """Read the metadata of both files, None if one is missing or they differ. Raises RunError for a damaged file."""
    paths = (folder / TOPK_FILE, folder / CLOZE_FILE)
    if not all(path.exists() for path in paths):
        return None
    topk, cloze = (read_metadata(path) for path in paths)
    return cloze if cloze == topk else None
