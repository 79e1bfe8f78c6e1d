"""The form `climp`: labelled sentences, in 15 files with a header and one without header or labels."""

from collections.abc import Iterator

from eval.benchmarks.config import BenchmarkConfig, ColumnsConfig
from eval.benchmarks.files import Row, Table, file_rows, local_files
from eval.benchmarks.forms.form import PlacedPair, form
from eval.benchmarks.forms.pairs import read_pairs

BARE = "ba_construction"  # the paradigm whose file has nothing but sentences; its phenomenon is ba
COLUMNS = {"phenomenon": "0", "paradigm": "1", "sentence": "2", "label": "3"}


@form("climp", ("path", "files"))
def climp(config: BenchmarkConfig) -> Iterator[PlacedPair]:
    """Yield the pairs of CLiMP's files, numbered from 0 in each."""
    return read_pairs(_tables(config), ColumnsConfig(**COLUMNS))


def _tables(config: BenchmarkConfig) -> Iterator[Table]:
    for file in local_files(config):
        bare = file.name.startswith(BARE)
        rows = file_rows(file, header=not bare)
        yield Table(file.stem, str(file), _with_labels(rows) if bare else rows)


def _with_labels(rows: Iterator[Row]) -> Iterator[Row]:
    for number, (where, cells) in enumerate(rows):
        yield Row(where, {"0": "ba", "1": BARE, "2": cells["0"], "3": "10"[number % 2]})
