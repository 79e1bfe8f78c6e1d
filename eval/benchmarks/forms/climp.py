"""The form `climp`: rows by turns good and bad, in 15 files with a header and one without."""

from collections.abc import Iterator
from pathlib import Path

from eval.benchmarks.cells import sentence_of
from eval.benchmarks.config import BenchmarkConfig
from eval.benchmarks.files import csv_records, local_files
from eval.benchmarks.forms.form import PlacedPair, form
from eval.benchmarks.forms.labelled import LabelledSentence, by_turns
from pairscale.errors import InputError

# The one file of CLiMP that has no header: its paradigm is its name, as for the others.
_BARE = {"ba_construction": "ba"}
_COLUMNS = ["", "0", "1", "2", "3"]  # index, phenomenon, paradigm, sentence, label


@form("climp", ("path",))
def climp(config: BenchmarkConfig) -> Iterator[PlacedPair]:
    """Yield the pairs of CLiMP's files, numbered from 0 in each."""
    for file in local_files(config, "*.csv"):
        pairs = by_turns(list(_sentences(file)), ("1", "0"), str(file))
        for index, (where, pair) in enumerate(pairs):
            yield where, {"pair_id": str(index), **pair}


def _sentences(file: Path) -> Iterator[LabelledSentence]:
    paradigm = file.stem.removesuffix("_1000")
    bare = paradigm in _BARE
    for index, (number, row, _) in enumerate(csv_records(file)):
        where = f"{file}: line {number}"
        if not bare and index == 0:
            if row != _COLUMNS:
                raise InputError(f"{where}: must be the header {','.join(_COLUMNS)}")
            continue
        if bare:
            row = ["", _BARE[paradigm], paradigm, *row, "10"[index % 2]]
        if len(row) != len(_COLUMNS) or not row[3].strip():
            raise InputError(f"{where}: must hold {1 if bare else 5} columns with a sentence, got {row}")
        text = sentence_of(row[3], where, "the sentence")
        yield LabelledSentence(where, row[4], text, {"paradigm": row[2], "phenomenon": row[1]}, {})
