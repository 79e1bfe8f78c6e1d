"""Read tables row by row from JSON Lines, CSV, TSV and Parquet files, folders of these, and data sets of the hub."""

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
TOK = ".tok"  # ending of the words of Natural Stories as published
DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t", TOK: "\t"}
FORMATS = (".csv", ".jsonl", ".parquet", ".tsv", ".txt")  # .txt is only read if a pattern asks for it (README.txt)


class Row(NamedTuple):
    """The cells of a row by column, and its place: file and line, or data set, subset and row."""

    where: str
    cells: Mapping[str, Any]


class Table(NamedTuple):
    """The rows of one file, or of one subset of a data set."""

    name: str  # name of the file without its endings, or of the subset
    source: str  # what to call it in an error
    rows: Iterator[Row]


@dataclass(frozen=True)
class Items:
    """Items other than pairs: questions of a diagnostic, SyntaxGym suites, or rated sentences.

    Attributes:
        rows: What models are asked; their answers add columns.
        texts: The texts that a model reads, each once.
        digest: SHA-256 of everything that can affect a score.
        contents: How many items there are, such as "8 contexts of 3 items".
        notes: Sentences about anything unusual.
    """

    rows: pd.DataFrame
    texts: list[str]
    digest: str
    contents: str
    notes: tuple[str, ...] = field(default=(), kw_only=True)


class Generated(NamedTuple):
    """Pairs that a form generates, with the paradigms and the number of pairs that the configuration requests."""

    pairs: Mapping[str, list[dict[str, Any]]]  # BLiMP's JSON objects by paradigm
    unavailable: Mapping[str, str]  # for each paradigm with too few pairs, the reason
    origin: Mapping[str, Any]  # what score files record about their generation


def tables(config: BenchmarkConfig) -> Iterator[Table]:
    """Yield the tables in `config.path` in the order of their paths, or the subsets of `config.dataset`.

    Raises InputError, with file and line, if a file or data set is missing, empty, damaged or not in its format, and
    ConfigError for values that don't fit the files.
    """
    if config.path is None:
        yield from _hub(config)
    else:
        for file in local_files(config):
            yield Table(format_of(file)[0], str(file), file_rows(file, config.delimiter, config.quotes, config.header))


def file_rows(file: Path, delimiter: str | None = None, quotes: bool = True, header: bool = True) -> Iterator[Row]:
    """Yield the rows of a file in one of FORMATS. Raises the errors of `tables`."""
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
        raise InputError(f"{source}: has no rows.")


def format_of(file: Path, key: str = "benchmark.path") -> tuple[str, str]:
    """Return a file's name without its endings, and its format (FORMATS). Raises ConfigError for any other ending.

    `key` is the configuration key to name in the error.

    >>> format_of(Path("pairs/passives.csv.gz"))
    ('passives', '.csv')
    """
    bare = file.with_suffix("") if file.suffix in COMPRESSIONS else file
    ending = bare.suffix.lower()
    if ending not in (*FORMATS, TOK) or (ending == ".parquet" and bare != file):
        allowed = f"{', '.join(FORMATS)}. All but .parquet may be compressed ({', '.join(COMPRESSIONS)})"
        raise ConfigError(f"{key}={file}: must end in {allowed}.")
    return bare.stem, ending


def local_files(config: BenchmarkConfig) -> list[Path]:
    """Return the local files of a benchmark, in order: `path` itself, `files` in that folder, or all tables in it.

    Raises InputError if there is none, and ConfigError for an unknown format or a folder with several formats.
    """
    if given := [name for name in ("revision", "subset", "split") if getattr(config, name) is not None]:
        raise ConfigError(
            f"benchmark.{given[0]}={getattr(config, given[0])}: this is for data sets of the hub, but "
            f"benchmark.path={config.path} is a local file or folder. Leave out one of the two."
        )
    otherwise = f", or set benchmark.path=null to read {config.dataset} from the hub" if config.dataset else ""
    wanted = f"{' or '.join(config.files[:2])} files" if config.files else "tables"
    path = given_path(config.name, config.path, f" with its {wanted}", otherwise)
    if path.is_file():
        return [path]
    try:
        files = sorted({file for pattern in config.files or ["*"] for file in path.glob(pattern)})
    except (NotImplementedError, ValueError) as error:  # raised by Path.glob for absolute and for empty patterns
        raise ConfigError(
            f"benchmark.files={config.files}: must be patterns relative to the folder ({error})."
        ) from None
    files = [file for file in files if not file.name.startswith(".")]  # macOS writes metadata about x to ._x
    if not config.files:
        endings = tuple(f"{ending}{packed}" for ending in FORMATS[:-1] for packed in ("", *COMPRESSIONS))
        files = [file for file in files if file.name.lower().endswith(endings)]
        if len(formats := sorted({format_of(file)[1] for file in files})) > 1:
            several = " and ".join(formats)
            raise ConfigError(
                f"benchmark.path={path}: this folder has {several} files. Choose one kind, for example with "
                f"benchmark.files=['*{formats[0]}']"
            )
    if not files:
        can_download = config.download is not None and config.download.address is not None
        fetch = f", or run python -m eval.fetch benchmark={config.name}" if can_download else ""
        raise InputError(
            f"benchmark.path={path}: no such file, and no folder with {wanted}. Correct the path{fetch}{otherwise}."
        )
    return files


def table_of(rows: Iterable[Row]) -> pd.DataFrame:
    """Return the cells of rows as a table, indexed by their places; None for missing cells."""
    import pandas as pd  # imported here so that commands start without it

    rows = list(rows)
    cells = pd.DataFrame([row.cells for row in rows], [row.where for row in rows], dtype=object)
    return cells.where(cells.notna(), None)


def read_column(
    cells: pd.DataFrame, column: str, read: Callable[[Any, str, str], T], key: str = "benchmark.columns"
) -> list[T]:
    """Read the cells of a column with `read`, a function of eval/benchmarks/cells.py.

    Raises InputError if the column is missing, and the errors of `read`. `key` is the configuration key that names the
    column.
    """
    if column not in cells:
        where = str(cells.index[0]).rpartition(": ")[0]
        raise InputError(
            f"{where}: no column '{column}'. Set {key} to one of the columns: {', '.join(map(str, cells))}."
        )
    pairs = zip(cells[column].tolist(), cells.index.tolist(), strict=True)
    return [read(cell, where, column) for cell, where in pairs]


def given_path(name: str, path: str | None, contents: str, otherwise: str) -> Path:
    """Return `path` (benchmark.path) of the benchmark `name`.

    Raises ConfigError if it is not set, and InputError if it is in the folder of data (PAIRSCALE_DATA), which is not
    set. `contents` and `otherwise` complete these messages.
    """
    if path is None:
        raise ConfigError(f"benchmark={name}: no path is set. Add benchmark.path=FOLDER{contents}.")
    if path.startswith("None/"):  # ${paths.data} is not set
        raise InputError(
            f"benchmark={name}: set PAIRSCALE_DATA to the folder that contains {path.removeprefix('None/')}/, or give "
            f"benchmark.path=FOLDER{otherwise}."
        )
    return Path(path).expanduser()


def _jsonl(file: Path) -> Iterator[Row]:
    for number, line in lines(file):
        if not line.strip():
            continue
        where = f"{file}: line {number}"
        try:
            row = json.loads(line)
        except (RecursionError, ValueError) as error:  # RecursionError: thousands of nested brackets
            raise InputError(f"{where}: this line is not JSON ({error}).") from None
        if not isinstance(row, dict):
            raise InputError(f"{where}: is a JSON {type(row).__name__}, but must be an object whose keys are columns.")
        yield Row(where, row)


def _separated(file: Path, delimiter: str, quotes: bool, named: bool) -> Iterator[Row]:
    """Yield the rows of a CSV or TSV file. The first row names the columns if they are `named`, otherwise 0, 1, ..."""
    header: list[str] | None = None
    for number, cells in _records(file, delimiter, quotes):
        where = f"{file}: line {number}"
        if header is None:
            header = cells if named else [str(index) for index in range(len(cells))]
            if twice := [name for name in header if name and header.count(name) > 1]:
                raise InputError(f"{where}: two columns are named {twice[0]}. Rename one of them.")
            if named:
                continue
        if len(cells) != len(header):
            raise InputError(
                f"{where}: has {len(cells)} cells, but the table has {len(header)} columns ({', '.join(header)})."
            )
        yield Row(where, dict(zip(header, cells, strict=True)))


def _records(file: Path, delimiter: str, quotes: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each record of a CSV file, without empty lines.

    Blanks and tabs around cells are removed, because they are not part of a sentence, and their number is printed. A
    quoted cell is kept unchanged and may contain line breaks. A first line such as sep=; with which Excel names the
    delimiter is skipped.
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
                f"{file}: line {number}: not CSV (a quoted cell doesn't end, or has text around it). Double the quotes "
                "in a quoted cell, or set benchmark.quotes=false if the benchmark's quotes are text."
            )
        elif "\r" in bare:
            raise InputError(f"{file}: line {number}: not CSV (a carriage return inside a line).")
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
    """Print how many cells of a file lost blanks, but only once, because each run may read the file."""
    say(f"{file}: removed blanks around {cells:,} cell{'s' if cells > 1 else ''}.")


def _parquet(file: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        batches = pq.ParquetFile(file).iter_batches()
        rows = (row for batch in batches for row in batch.to_pylist())
        yield from (Row(f"{file}: row {number}", cells) for number, cells in enumerate(rows, start=1))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: this is not a readable Parquet file ({str(error).splitlines()[0]}).") from None


def _hub(config: BenchmarkConfig) -> Iterator[Table]:
    """Yield the subsets of a data set of the hub, with the requested split or the only one."""
    if config.dataset is None:
        raise ConfigError(
            f"benchmark={config.name}: no pairs are given. Add benchmark.path=FOLDER, or benchmark.dataset=NAME for a "
            "data set of the hub."
        )
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
                    raise ConfigError(f"{source}: has the splits {', '.join(split)}. Choose one: benchmark.split=NAME")
                (split,) = split.values()
            rows = (Row(f"{source}: row {number}", cells) for number, cells in enumerate(split, start=1))
            yield Table(dataset.rpartition("/")[2] if subset == "default" else subset, source, _some(rows, source))
    except (OSError, RuntimeError, ValueError, datasets.exceptions.DatasetsError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"benchmark={config.name}: cannot load {dataset} from the Hugging Face Hub ({reason}). If you have a local "
            "copy, add benchmark.path=FOLDER with its files."
        ) from None
