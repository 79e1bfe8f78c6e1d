"""Tables of text, row by row: JSON Lines, CSV, TSV and Parquet files, folders of them, data sets of the hub."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from corpora.sources.lines import COMPRESSIONS, lines
from eval.benchmarks.config import BenchmarkConfig
from pairscale.console import say
from pairscale.errors import ConfigError, InputError
from pairscale.hub import import_datasets

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
TOK = ".tok"  # of the words of Natural Stories, as they are downloaded
DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t", TOK: "\t"}
FORMATS = (".csv", ".jsonl", ".parquet", ".tsv", ".txt")  # the last only if a pattern asks for it: README.txt


class Row(NamedTuple):
    """The cells of one row by column, and where it stands: file and line, or data set, subset and row."""

    where: str
    cells: Mapping[str, Any]


class Table(NamedTuple):
    """The rows of one file, or of one subset of a data set."""

    name: str  # the file's without its endings, or the subset's
    source: str  # for errors
    rows: Iterator[Row]


@dataclass(frozen=True)
class Items:
    """Items that are no pairs: questions of a diagnostic, SyntaxGym's suites, rated sentences.

    Attributes:
        rows: what models are asked; their answers add columns.
        texts: the different texts that a model reads.
        digest: SHA-256 over all that can change a score.
        contents: how many there are: "8 contexts of 3 items".
        notes: sentences on what is odd about them.
    """

    rows: pd.DataFrame
    texts: list[str]
    digest: str
    contents: str
    notes: tuple[str, ...] = field(default=(), kw_only=True)


class Generated(NamedTuple):
    """Pairs that a form draws, already of the paradigms and the number that the configuration requests."""

    pairs: Mapping[str, list[dict[str, Any]]]  # BLiMP's JSON objects by paradigm
    unavailable: Mapping[str, str]  # paradigm -> why it has too few pairs
    origin: Mapping[str, Any]  # what score files record of their making


def tables(config: BenchmarkConfig) -> Iterator[Table]:
    """Yield the tables of `config.path` in the order of their paths, or else of `config.dataset`, by subset.

    Raises InputError for files and data sets that are missing, empty, damaged or not of their format (with file and
    line), ConfigError for values that fit no file.
    """
    if config.path is None:
        yield from _hub(config)
    else:
        for file in local_files(config):
            yield Table(format_of(file)[0], str(file), file_rows(file, config.delimiter, config.quotes, config.header))


def file_rows(file: Path, delimiter: str | None = None, quotes: bool = True, header: bool = True) -> Iterator[Row]:
    """Yield the rows of a file of one of FORMATS. Raises as `tables`."""
    ending = format_of(file)[1]
    if ending in DELIMITERS:
        return _some(_separated(file, delimiter or DELIMITERS[ending], quotes, header), str(file))
    return _some(_jsonl(file) if ending == ".jsonl" else _parquet(file), str(file))


def _some(rows: Iterator[Row], source: str) -> Iterator[Row]:
    empty = True
    for row in rows:
        empty = False
        yield row
    if empty:
        raise InputError(f"{source}: holds no rows")


def format_of(file: Path, key: str = "benchmark.path") -> tuple[str, str]:
    """Return a file's name without its endings, and its format (FORMATS). Raises ConfigError for any other ending.

    key: of the configuration, for the error.

    >>> format_of(Path("pairs/passives.csv.gz"))
    ('passives', '.csv')
    """
    bare = file.with_suffix("") if file.suffix in COMPRESSIONS else file
    ending = bare.suffix.lower()
    if ending not in (*FORMATS, TOK) or (ending == ".parquet" and bare != file):
        allowed = f"{', '.join(FORMATS)}; all but .parquet also in {', '.join(COMPRESSIONS)}"
        raise ConfigError(f"{key}={file}: must end in {allowed}")
    return bare.stem, ending


def local_files(config: BenchmarkConfig) -> list[Path]:
    """Return the local files of a benchmark, by path: `path` itself, or `files` in that folder, or all tables in it.

    Raises InputError if there is none, ConfigError for a file of no known format, or a folder of several formats.
    """
    if given := [name for name in ("revision", "subset", "split") if getattr(config, name) is not None]:
        raise ConfigError(f"benchmark.{given[0]}: of a data set of the hub, but benchmark.path={config.path} is read")
    otherwise = f", or benchmark.path=null to read {config.dataset} from the hub" if config.dataset else ""
    wanted = f"{' or '.join(config.files[:2])} files" if config.files else "tables"
    path = given_path(config.name, config.path, f" with its {wanted}", otherwise)
    if path.is_file():
        return [path]
    try:
        files = sorted({file for pattern in config.files or ["*"] for file in path.glob(pattern)})
    except (NotImplementedError, ValueError) as error:  # of Path.glob for absolute and for empty patterns
        raise ConfigError(f"benchmark.files={config.files}: must be patterns below the folder ({error})") from None
    files = [file for file in files if not file.name.startswith(".")]  # ._x is a Mac's note on x
    if not config.files:
        endings = tuple(f"{ending}{packed}" for ending in FORMATS[:-1] for packed in ("", *COMPRESSIONS))
        files = [file for file in files if file.name.lower().endswith(endings)]
        if len(formats := sorted({format_of(file)[1] for file in files})) > 1:
            several = " and ".join(formats)
            raise ConfigError(f"benchmark.path: {path} holds {several} files; say which by benchmark.files=['*.csv']")
    if not files:
        raise InputError(f"benchmark.path={path}: no such file, or folder with {wanted}{otherwise}")
    return files


def table_of(rows: Iterable[Row]) -> pd.DataFrame:
    """Return the cells of rows, indexed by where they stand; None where a row has nothing."""
    import pandas as pd  # here, so that commands start without it

    rows = list(rows)
    cells = pd.DataFrame([row.cells for row in rows], [row.where for row in rows], dtype=object)
    return cells.where(cells.notna(), None)


def read_column(
    cells: pd.DataFrame, column: str, read: Callable[[Any, str, str], T], key: str = "benchmark.columns"
) -> list[T]:
    """Return the cells of a column as `read` (a function of eval/benchmarks/cells.py) reads them.

    Raises InputError if the column, which `key` of the configuration names, is missing, and as `read`.
    """
    if column not in cells:
        where = str(cells.index[0]).rpartition(": ")[0]
        raise InputError(f"{where}: no column '{column}' ({key}); there are: {', '.join(map(str, cells))}")
    pairs = zip(cells[column].tolist(), cells.index.tolist(), strict=True)
    return [read(cell, where, column) for cell, where in pairs]


def given_path(name: str, path: str | None, contents: str, otherwise: str) -> Path:
    """Return benchmark.path of the benchmark `name`. Raises ConfigError if it is not set, InputError without data."""
    if path is None:
        raise ConfigError(f"benchmark={name}: give benchmark.path=FOLDER{contents}")
    if path.startswith("None/"):  # ${paths.data} is not set
        raise InputError(
            f"benchmark={name}: set PAIRSCALE_DATA to the folder that holds {path.removeprefix('None/')}/, or give "
            f"benchmark.path=FOLDER{otherwise}"
        )
    return Path(path).expanduser()


def _jsonl(file: Path) -> Iterator[Row]:
    for number, line in lines(file):
        if not line.strip():
            continue
        where = f"{file}: line {number}"
        try:
            row = json.loads(line)
        except (RecursionError, ValueError) as error:  # also brackets without end, and a number of thousands of digits
            raise InputError(f"{where}: not JSON ({error})") from None
        if not isinstance(row, dict):
            raise InputError(f"{where}: a JSON {type(row).__name__}, must be an object whose keys are the columns")
        yield Row(where, row)


def _separated(file: Path, delimiter: str, quotes: bool, named: bool) -> Iterator[Row]:
    """Yield rows of a CSV or TSV file. Its first row names the columns; if they are not `named`: 0, 1, ..."""
    header: list[str] | None = None
    for number, cells in _records(file, delimiter, quotes):
        where = f"{file}: line {number}"
        if header is None:
            header = cells if named else [str(index) for index in range(len(cells))]
            if twice := [name for name in header if name and header.count(name) > 1]:
                raise InputError(f"{where}: two columns named {twice[0]}")
            if named:
                continue
        if len(cells) != len(header):
            raise InputError(f"{where}: {len(cells)} cells, must be {len(header)} ({', '.join(header)})")
        yield Row(where, dict(zip(header, cells, strict=True)))


def _records(file: Path, delimiter: str, quotes: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each record of a CSV file begins, and its cells; empty lines are left out.

    Blanks and tabs around cells are no part of a sentence, and are removed; how many cells had some is said. A quoted
    cell is kept as it is, and may hold ends of lines. A first line sep=; by which Excel names the delimiter is empty.
    """
    mark, blank = re.escape(delimiter), " \t".replace(delimiter, "")
    quoted = rf'(?P<blank>[{blank}]*)"(?P<quoted>(?:[^"]|"")*+)"[{blank}]*(?={mark}|\n)|' if quotes else ""
    text = "".join(f"{line}\n" for _, line in lines(file))
    if text.startswith(f"sep={delimiter}\n"):
        text = text[len(delimiter) + 4 :]
    number = line = 1
    cells: list[str] = []
    stripped = 0
    for cell in re.finditer(rf"(?:{quoted}(?P<bare>[^{mark}\n]*))(?P<end>{mark}|\n)", text):
        if (bare := cell["bare"]) is None:
            cells.append(cell["quoted"].replace('""', '"'))
            stripped += bool(cell["blank"])
        elif quotes and bare.lstrip(" \t").startswith('"'):
            raise InputError(
                f"{file}: line {number}: not CSV (a quoted cell without end, or with text around it); write quotes in "
                "a quoted cell twice, or give benchmark.quotes=false if a benchmark's quotes are text"
            )
        elif "\r" in bare:
            raise InputError(f"{file}: line {number}: not CSV (a carriage return that ends no line)")
        else:
            cells.append(bare.strip(" \t"))
            stripped += cells[-1] != bare
        line += cell[0].count("\n")
        if cell["end"] == "\n":
            if cell[0] != "\n" or len(cells) > 1:
                yield number, cells
            number, cells = line, []
    if stripped:
        _say_stripped(file, stripped)


@cache
def _say_stripped(file: Path, cells: int) -> None:
    """Say once how many cells of a file lost blanks; a file may be read once for each run."""
    say(f"{file}: blanks around {cells:,} cell{'s' if cells > 1 else ''} removed")


def _parquet(file: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        batches = pq.ParquetFile(file).iter_batches()
        rows = (row for batch in batches for row in batch.to_pylist())
        yield from (Row(f"{file}: row {number}", cells) for number, cells in enumerate(rows, start=1))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: not a readable Parquet file ({str(error).splitlines()[0]})") from None


def _hub(config: BenchmarkConfig) -> Iterator[Table]:
    """Yield the subsets of a data set of the hub: their split that is asked for, or the only one."""
    if config.dataset is None:
        raise ConfigError(f"benchmark={config.name}: give benchmark.path=FOLDER or benchmark.dataset=NAME")
    datasets = import_datasets()
    dataset, revision = config.dataset, config.revision
    try:
        names = (
            [config.subset] if config.subset else sorted(datasets.get_dataset_config_names(dataset, revision=revision))
        )
        for subset in names:
            source = f"{dataset}: {subset}"
            split = datasets.load_dataset(dataset, subset, split=config.split, revision=revision)
            if isinstance(split, dict):
                if len(split) != 1:
                    raise ConfigError(f"{source}: has the splits {', '.join(split)}: give benchmark.split=NAME")
                (split,) = split.values()
            rows = (Row(f"{source}: row {number}", cells) for number, cells in enumerate(split, start=1))
            yield Table(dataset.rpartition("/")[2] if subset == "default" else subset, source, _some(rows, source))
    except (OSError, RuntimeError, ValueError, datasets.exceptions.DatasetsError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"benchmark={config.name} needs {dataset} from the Hugging Face hub ({reason}); for a local copy give "
            "benchmark.path=FOLDER with its files"
        ) from None
