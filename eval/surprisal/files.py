"""Files of surprisals: Parquet, with what they were made of, and the same as CSV."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pairscale.errors import RunError
from pairscale.files import atomic_path
from pairscale.schema import Digest, checked
from pairscale.tables import write_csv

VERSION = 1
COLUMNS = (
    "text_id", "number", "word", "surprisal", "surprisal_nats", "uncorrected", "entropy", "rank", "tokens", "unk",
)  # fmt: skip
AGAIN = "remove the file to make it again"
_KEY = b"pairscale"


class Made(TypedDict):
    """Schema of the metadata. text: digest of the file; reading: the section `surprisal`; settings: as of scores."""

    version: int
    text: Digest
    model: dict[str, str]
    tokenizer_digest: str
    settings: dict[str, Any]
    policy: dict[str, Any]
    reading: dict[str, Any]


def write_surprisals(path: Path, words: pd.DataFrame, made: Mapping[str, Any]) -> None:
    """Write COLUMNS, and further ones of the user's table, to a Parquet file with keys of Made, and to a CSV file.

    Raises RunError for a surprisal that is NaN or infinite, but for a word without a token of its own.
    """
    wrong = words[(words["tokens"] > 0) & ~np.isfinite(words["surprisal"])]
    if len(wrong):
        first = wrong.iloc[0]
        raise RunError(
            f"{path}: the surprisal of {first['word']!r} (word {first['number']} of text {first['text_id']}) is "
            f"{first['surprisal']} ({len(wrong):,} of {len(words):,} words): what the model computes overflows"
        )
    write_csv(path.with_suffix(".csv"), words)
    table = pa.Table.from_pandas(words, preserve_index=False)
    table = table.replace_schema_metadata({_KEY: json.dumps(made, ensure_ascii=False).encode()})
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary, write_page_checksum=True)


def read_surprisals(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the rows of a Parquet file and what they were made of (Made). Raises RunError for a damaged one."""
    try:
        table = pq.read_table(path, page_checksum_verification=True)
        made = json.loads((table.schema.metadata or {})[_KEY])
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise RunError(f"{path}: not a readable file of surprisals ({str(error).splitlines()[0]}); {AGAIN}") from None
    checked(made, Made, path, RunError, AGAIN)
    if made["version"] > VERSION:
        raise RunError(f"{path}: of version {made['version']}, this pairscale reads up to {VERSION}; {AGAIN}")
    if missing := [name for name in COLUMNS if name not in table.column_names]:
        raise RunError(f"{path}: without the column {missing[0]}; {AGAIN}")
    return table.to_pandas(), made
