"""The score file of rated sentences: schema, writer, reader (measures: eval/ratings/measures.py).

    runs/.../scores/<label>/
        sentences.parquet     SENTENCES, a row per sentence, in the order of the table

Imports no torch, so that the analysis can read it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from eval.diagnostics.files import read_answers, write_answers
from eval.scores.files import read_metadata

FILE = "sentences.parquet"
SENTENCES = pa.schema(
    [
        ("sentence", pa.string()),
        ("rating", pa.float64()),  # people's; null: the table has none
        ("label", pa.bool_()),  # true: good; null: the table has none
        ("pair", pa.string()),  # of a good and a bad sentence; null: in no pair
        ("lp", pa.float64()),  # nats; of masked models the pseudo-log-likelihood; null: unk=skip leaves no token
        ("unigram_lp", pa.float64()),  # nats, of the tokens that count in lp; null: no text to count them in
        ("tokens", pa.int32()),  # that count, <eos> among them where it is scored
        ("words", pa.int32()),  # of the corpus's reference tokenizer
        ("chars", pa.int32()),  # that are not white space
        ("unk", pa.int32()),  # tokens that were <unk>, skipped ones too
        ("unseen", pa.int32()),  # tokens that the text of the unigrams lacks; null as unigram_lp
    ]
)
# Beside the keys of eval.diagnostics.files.METADATA, "parameters" has "unigrams" (eval.methods.unigrams.UnigramSource).


def write_sentences(folder: Path, rows: pd.DataFrame, metadata: Mapping[str, Any]) -> None:
    """Write the columns of SENTENCES and the keys of eval.diagnostics.files.METADATA in one move."""
    write_answers(folder, {FILE: (rows, SENTENCES)}, metadata)


def read_sentences(folder: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read rows (columns of SENTENCES) and metadata. Raises RunError for a damaged file."""
    return read_answers(folder / FILE, SENTENCES)


def sentences_metadata(folder: Path) -> dict[str, Any] | None:
    """Read the metadata, None if there is no such file. Raises RunError for a damaged one."""
    return read_metadata(folder / FILE) if (folder / FILE).exists() else None
