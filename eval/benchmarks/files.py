"""Read tables row by row from JSON Lines, CSV, TSV and Parquet files, folders, and data sets on the hub."""

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
from pairscale.sizes import plural

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
TOK = ".tok"  # extension of the published words of Natural Stories
DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t", TOK: "\t"}
FORMATS = (".csv", ".jsonl", ".parquet", ".tsv", ".txt")  # .txt is only read if a pattern matches, unlike README.txt


class Row(NamedTuple):
    """The cells of a row by column, and its place (file and line, or data set, subset and row)."""

    where: str
    cells: Mapping[str, Any]


class Table(NamedTuple):
    """The rows of one file, or of one subset of a data set."""

    name: str  # name of the file without its extensions, or of the subset
    source: str  # description of the table for error messages
    rows: Iterator[Row]


@dataclass(frozen=True)
class Items:
    """Items other than pairs, such as the questions of a diagnostic, SyntaxGym suites, or rated sentences.

    Attributes:
        rows: The questions to models. Their answers are added as further columns.
        texts: The texts that a model reads, each once.
        digest: SHA-256 digest of everything that can affect a score.
        contents: A description of the number of items, such as "8 contexts of 3 items".
        notes: Sentences about anything unusual.
    """

    rows: pd.DataFrame
    texts: list[str]
    digest: str
    contents: str
    notes: tuple[str, ...] = field(default=(), kw_only=True)


class Generated(NamedTuple):
    """Pairs that a form generates, with the requested paradigms and the requested number of pairs."""

    pairs: Mapping[str, list[dict[str, Any]]]  # JSON objects as in BLiMP, by paradigm
    unavailable: Mapping[str, str]  # for each paradigm with too few pairs, the reason
    origin: Mapping[str, Any]  # metadata for score files about the generation of pairs


def tables(config: BenchmarkConfig) -> Iterator[Table]:
    """Yield the tables in `config.path` in the order of their paths, or the subsets of `config.dataset`.

    Raises InputError, with file and line, if a file or data set is missing, empty, damaged or not in its format. Raises
    ConfigError if settings don't fit the files.
    """
    if config.path is None:
        yield from _hub(config)
    else:
        for file in local_files(config):
            yield Table(format_of(file)[0], str(file), file_rows(file, config.delimiter, config.quotes, config.header))


def file_rows(file: Path, delimiter: str | None = None, quotes: bool = True, header: bool = True) -> Iterator[Row]:
    """Yield the rows of a file in one of FORMATS. Raises the same errors as `tables`."""
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
        raise InputError(f"{source}: this table has no rows. Choose another file or data set.")


def format_of(file: Path, key: str = "benchmark.path") -> tuple[str, str]:
    """Return a file's name without its extensions, and its format (FORMATS). Raises ConfigError for other extensions.

    `key` is the configuration key for the error message.

    >>> format_of(Path("pairs/passives.csv.gz"))
    ('passives', '.csv')
    """
    bare = file.with_suffix("") if file.suffix in COMPRESSIONS else file
    ending = bare.suffix.lower()
    if ending not in (*FORMATS, TOK) or (ending == ".parquet" and bare != file):
        allowed = f"{', '.join(FORMATS)}; all except .parquet may be compressed ({', '.join(COMPRESSIONS)})"
        raise ConfigError(f"{key}={file}: files with this extension can't be read. Use {allowed}.")
    return bare.stem, ending


def local_files(config: BenchmarkConfig) -> list[Path]:
    """Return the local files of a benchmark in order, which are `path`, `files` in this folder, or all tables in it.

    Raises InputError if there are no files. Raises ConfigError if a format is unknown or a folder has several formats.
    """
    if given := [name for name in ("revision", "subset", "split") if getattr(config, name) is not None]:
        raise ConfigError(
            f"benchmark.{given[0]}={getattr(config, given[0])}: this setting is for data sets on the hub, but "
            f"benchmark.path={config.path} is a local file or folder. Leave one of them out."
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
            f"benchmark.files={config.files}: these patterns can't be used ({error}). Use relative ones, such as *.csv."
        ) from None
    files = [file for file in files if not file.name.startswith(".")]  # macOS writes metadata about x to ._x
    if not config.files:
        endings = tuple(f"{ending}{packed}" for ending in FORMATS[:-1] for packed in ("", *COMPRESSIONS))
        files = [file for file in files if file.name.lower().endswith(endings)]
        if len(formats := sorted({format_of(file)[1] for file in files})) > 1:
            several = " and ".join(formats)
            raise ConfigError(
                f"benchmark.path={path}: this folder contains {several} files. Choose one kind, for example with "
                f"benchmark.files=['*{formats[0]}']."
            )
    if not files:
        can_download = config.download is not None and config.download.address is not None
        fetch = f", or run python -m eval.fetch benchmark={config.name}" if can_download else ""
        raise InputError(
            f"benchmark.path={path}: there is no such file, nor a folder with {wanted}. Correct the path"
            f"{fetch}{otherwise}."
        )
    return files


def table_of(rows: Iterable[Row]) -> pd.DataFrame:
    """Return the cells of rows as a table, indexed by the rows' places. Missing cells are None."""
    import pandas as pd  # imported here so that commands start without it

    rows = list(rows)
    cells = pd.DataFrame([row.cells for row in rows], [row.where for row in rows], dtype=object)
    return cells.where(cells.notna(), None)


def read_column(
    cells: pd.DataFrame, column: str, read: Callable[[Any, str, str], T], key: str = "benchmark.columns"
) -> list[T]:
    """Read the cells of a column with `read`, a function of eval/benchmarks/cells.py.

    Raises InputError if the column is missing, and the same errors as `read`. `key` is the configuration key that names
    the column.
    """
    if column not in cells:
        where = str(cells.index[0]).rpartition(": ")[0]
        raise InputError(
            f"{where}: there is no column '{column}'. Set {key} to one of these columns: {', '.join(map(str, cells))}."
        )
    pairs = zip(cells[column].tolist(), cells.index.tolist(), strict=True)
    return [read(cell, where, column) for cell, where in pairs]


def given_path(name: str, path: str | None, contents: str, otherwise: str) -> Path:
    """Return `path` (benchmark.path) of the benchmark `name`.

    Raises ConfigError if it is not set. Raises InputError if it is in the data folder, but PAIRSCALE_DATA is not set.
    `contents` and `otherwise` complete these error messages.
    """
    if path is None:
        raise ConfigError(f"benchmark={name}: benchmark.path is not set. Add benchmark.path=FOLDER{contents}.")
    if path.startswith("None/"):  # ${paths.data} is not set
        raise InputError(
            f"benchmark={name}: PAIRSCALE_DATA is not set. Set it to the folder that contains "
            f"{path.removeprefix('None/')}/, or set benchmark.path=FOLDER{otherwise}."
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
            raise InputError(f"{where}: this line is not valid JSON ({error}). Correct it.") from None
        if not isinstance(row, dict):
            raise InputError(f"{where}: this line is a {type(row).__name__}. Write an object whose keys are columns.")
        yield Row(where, row)


def _separated(file: Path, delimiter: str, quotes: bool, named: bool) -> Iterator[Row]:
    """Yield the rows of a CSV or TSV file. If `named`, the first row contains column names, instead of 0, 1, ..."""
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
                f"{where}: this line has {plural(len(cells), 'cell')}, but the table has {len(header)} columns "
                f"({', '.join(header)}). Correct the line, or set benchmark.delimiter or benchmark.quotes."
            )
        yield Row(where, dict(zip(header, cells, strict=True)))


def _records(file: Path, delimiter: str, quotes: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each record of a CSV file, without empty lines.

    Blanks and tabs around cells are removed, because they are not part of a sentence, and the number of these cells is
    printed. A quoted cell is left unchanged, and may contain line breaks. A first line that names the delimiter, such
    as Excel's "sep=;", is skipped.
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
                f"{file}: line {number} is not valid CSV, because a quoted cell doesn't end, or has text around it. "
                "Double the quotes in a quoted cell, or set benchmark.quotes=false if the quotes are part of the text."
            )
        elif "\r" in bare:
            raise InputError(f"{file}: line {number} is not valid CSV. Remove the carriage return from it.")
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
    """Print the number of cells from which blanks were removed. Each run may read the file, so print it only once."""
    say(f"{file}: blanks around {cells:,} cell{'s were' if cells > 1 else ' was'} removed.")


def _parquet(file: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        batches = pq.ParquetFile(file).iter_batches()
        rows = (row for batch in batches for row in batch.to_pylist())
        yield from (Row(f"{file}: row {number}", cells) for number, cells in enumerate(rows, start=1))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{file}: this file can't be read as Parquet ({str(error).splitlines()[0]}). Get a complete copy of it."
        ) from None


def _hub(config: BenchmarkConfig) -> Iterator[Table]:
    """Yield the subsets of a data set on the hub, with the requested split or its only split."""
    if config.dataset is None:
        raise ConfigError(
            f"benchmark={config.name}: there is no benchmark.path or benchmark.dataset. Add benchmark.path=FOLDER, or "
            "benchmark.dataset=NAME for a data set on the hub."
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
                    raise ConfigError(
                        f"{source}: this data set has the splits {', '.join(split)}. Add benchmark.split=NAME."
                    )
                (split,) = split.values()
            rows = (Row(f"{source}: row {number}", cells) for number, cells in enumerate(split, start=1))
            yield Table(dataset.rpartition("/")[2] if subset == "default" else subset, source, _some(rows, source))
    except (OSError, RuntimeError, ValueError, datasets.exceptions.DatasetsError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"benchmark={config.name}: {dataset} can't be loaded from the Hugging Face hub ({reason}). If you have a "
            "local copy, set benchmark.path to its folder."
        ) from None
