"""Score files of SyntaxGym's suites: schema, writer, readers (measures: eval/syntaxgym/measures.py).

    runs/.../scores/<label>/
        success.parquet    SUCCESS, a row per item and prediction, and per comparison that a prediction joins by "&"
        regions.parquet    REGIONS, a row per region of each sentence

Imports no torch, so that the analysis can read them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from eval.diagnostics.files import read_answers, shared_metadata, write_answers

SUCCESS_FILE = "success.parquet"
REGIONS_FILE = "regions.parquet"

SUCCESS = pa.schema(
    [
        ("suite", pa.string()),
        ("circuit", pa.string()),  # null: in none of Hu et al. 2020
        ("item", pa.int64()),
        ("prediction", pa.int32()),  # from 1, in the suite's order
        ("comparison", pa.int32()),  # from 1; null: the whole prediction
        ("formula", pa.string()),  # of the prediction, or of the comparison
        ("success", pa.bool_()),
        ("tie", pa.bool_()),  # the sides of a comparison by < or > are equal, which is no success
        ("unk", pa.int32()),  # <unk> in the regions that the formula names
    ]
)
REGIONS = pa.schema(
    [
        ("suite", pa.string()),
        ("item", pa.int64()),
        ("condition", pa.string()),
        ("region", pa.int32()),  # from 1
        ("name", pa.string()),
        ("content", pa.string()),
        ("surprisal", pa.float64()),  # bits, summed over its tokens
        ("tokens", pa.int32()),
        ("unk", pa.int32()),  # of these
    ]
)


def write_success(folder: Path, success: pd.DataFrame, regions: pd.DataFrame, metadata: Mapping[str, Any]) -> None:
    """Write both files with the same `metadata` (keys of eval.diagnostics.files.METADATA), success.parquet last."""
    write_answers(folder, {REGIONS_FILE: (regions, REGIONS), SUCCESS_FILE: (success, SUCCESS)}, metadata)


def read_success(folder: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read rows (columns of SUCCESS) and metadata. Raises RunError for a damaged file."""
    return read_answers(folder / SUCCESS_FILE, SUCCESS)


def read_regions(folder: Path) -> pd.DataFrame:
    """Read the surprisal of each region (columns of REGIONS). Raises RunError for a damaged file."""
    return read_answers(folder / REGIONS_FILE, REGIONS)[0]


def success_metadata(folder: Path) -> dict[str, Any] | None:
    """Read the metadata of both files, None if one is missing or they differ. Raises RunError for a damaged file."""
    return shared_metadata(folder / REGIONS_FILE, folder / SUCCESS_FILE)
