"""Tables of text, row by row: JSON Lines, CSV, TSV and Parquet files, folders of them, data sets of the hub; YAML."""

import csv
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from corpora.sources.lines import COMPRESSIONS, MAX_LINE, decode_line, opened
from eval.benchmarks.config import BenchmarkConfig
from pairscale.console import say
from pairscale.errors import ConfigError, InputError
from pairscale.hub import import_datasets
from pairscale.schema import load_yaml

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


def tables(config: BenchmarkConfig) -> Iterator[Table]:
    """Yield the tables of `config.path` in the order of their paths, or else of `config.dataset`, by subset.

    Raises InputError for files and data sets that are missing, empty, damaged or not of their format (with file and
    line), ConfigError for values that fit no file.
    """
    if config.path is None:
        yield from _hub(config)
        return
    for file in local_files(config):
        yield Table(format_of(file)[0], str(file), file_rows(file, config.delimiter, config.quotes, config.header))


def file_rows(file: Path, delimiter: str | None = None, quotes: bool = True, header: bool = True) -> Iterator[Row]:
    """Yield the rows of a file of one of FORMATS. Raises as `tables`."""
    _, ending = format_of(file)
    if ending == ".jsonl":
        rows = _jsonl(file)
    elif ending == ".parquet":
        rows = _parquet(file)
    else:
        rows = _separated(file, delimiter or DELIMITERS[ending], quotes, header)
    return _some(rows, str(file))


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
        folder = "be a folder, or " if key == "benchmark.path" else ""
        raise ConfigError(f"{key}={file}: must {folder}end in {allowed}")
    return bare.stem, ending


def local_files(config: BenchmarkConfig) -> list[Path]:
    """Return the local files of a benchmark, by path: `path` itself, or `files` in that folder, or all tables in it.

    Raises InputError if there is none, ConfigError for a file of no known format, or a folder of several formats.
    """
    for name in ("revision", "subset", "split"):
        if (value := getattr(config, name)) is not None:
            raise ConfigError(
                f"benchmark.{name}={value}: of a data set of the hub, but benchmark.path={config.path} is read"
            )
    otherwise = f", or benchmark.path=null to read {config.dataset} from the hub" if config.dataset else ""
    wanted = f"{' or '.join(config.files[:2])} files" if config.files else "tables"
    path = given_path(config.name, config.path, f" with its {wanted}", otherwise)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError(f"benchmark.path: no file or folder {path} (with the {wanted} of {config.name}){otherwise}")
    if not (files := _files_in(path, config.files)):
        raise InputError(f"benchmark.path: no {wanted} in {path}{otherwise}")
    return files


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


def _files_in(folder: Path, patterns: list[str] | None) -> list[Path]:
    """Return the files that match a pattern, or all tables if there is none, by path."""
    try:
        files = sorted({file for pattern in patterns or ["*"] for file in folder.glob(pattern)})
    except (NotImplementedError, ValueError) as error:  # of Path.glob for absolute and for empty patterns
        raise ConfigError(f"benchmark.files={patterns}: must be patterns below the folder ({error})") from None
    files = [file for file in files if not file.name.startswith(".")]  # ._x is a Mac's note on x
    if patterns:
        return files
    endings = tuple(f"{ending}{packed}" for ending in FORMATS[:-1] for packed in ("", *COMPRESSIONS))
    files = [file for file in files if file.name.lower().endswith(endings)]
    formats = sorted({format_of(file)[1] for file in files})
    if len(formats) > 1:
        raise ConfigError(
            f"benchmark.path: {folder} holds {' and '.join(formats)} files; say which by benchmark.files=['*.csv']"
        )
    return files


def text_lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yield each line's number (from 1) and text without its end, unpacked. Raises InputError for unreadable files."""
    with opened(file) as (stream, _):
        for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE), b""), start=1):
            yield number, decode_line(line, f"{file}: line {number}")


def _jsonl(file: Path) -> Iterator[Row]:
    for number, line in text_lines(file):
        if line.strip():
            where = f"{file}: line {number}"
            yield Row(where, _json_object(line, where))


def _json_object(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (RecursionError, ValueError) as error:  # also brackets without end, and a number of thousands of digits
        raise InputError(f"{where}: not JSON ({error})") from None
    if not isinstance(row, dict):
        raise InputError(f"{where}: a JSON {type(row).__name__}, must be an object whose keys are the columns")
    return row


def csv_records(file: Path, delimiter: str = ",", quotes: bool = True) -> Iterator[tuple[int, list[str], int]]:
    """Yield the line on which each record of a CSV file begins, and its cells: none for an empty line.

    Third, how many cells stood between blanks or tabs. These are removed, also a blank between a comma and a quotation
    mark: they are no part of a sentence. A quoted cell is kept as it is. It may hold ends of lines, read as line feeds.
    A first line sep=; by which Excel names the delimiter is empty. Raises InputError as `text_lines`, and for open
    quotes.
    """
    named = (1, f"sep={delimiter}")
    record: list[str] = []  # its lines

    def lines() -> Iterator[str]:
        for line in text_lines(file):
            record.append("\n" if line == named else f"{line[1]}\n")
            yield record[-1]

    reader = csv.reader(
        lines(),
        strict=True,
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE,
        skipinitialspace=quotes and delimiter != " ",
    )
    while True:
        number = reader.line_num + 1
        record.clear()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reason = str(error).replace("\t", "tab")
            raise InputError(
                f"{file}: line {number}: not CSV ({reason}); write quotes in a quoted cell twice, or give "
                "benchmark.quotes=false if a benchmark's quotes are text"
            ) from None
        yield number, *_without_blanks("".join(record), cells, quotes, delimiter)


def _without_blanks(record: str, cells: list[str], quotes: bool, delimiter: str) -> tuple[list[str], int]:
    """Return cells without the blanks and tabs around those that are not quoted, and how many had some.

    Blanks before a cell are in the text of the record alone. It says, too, which cells are quoted.
    """
    if not quotes:
        bare = [cell.strip(" \t") for cell in cells]
        return bare, sum(cell != inside for cell, inside in zip(cells, bare, strict=True))
    bare, changed, at = [], 0, 0
    for cell in cells:
        start = at
        while delimiter != " " and record[at] == " ":
            at += 1
        quoted = record[at] == '"'
        bare.append(cell if quoted else cell.strip(" \t"))
        changed += at > start or bare[-1] != cell
        at += len(cell) + 1 + (2 + cell.count('"') if quoted else 0)  # and the delimiter
    return bare, changed


def _separated(file: Path, delimiter: str, quotes: bool, named: bool) -> Iterator[Row]:
    """Yield rows of a CSV or TSV file. Its first row names the columns; if they are not `named`: 0, 1, ..."""
    header: list[str] | None = None
    stripped = 0
    for number, cells, changed in csv_records(file, delimiter, quotes):
        stripped += changed
        if not cells:
            continue
        where = f"{file}: line {number}"
        if header is None and not named:
            header = [str(index) for index in range(len(cells))]
        if header is None:
            header = cells
            twice = sorted({name for name in header if name and header.count(name) > 1})
            if twice:
                raise InputError(f"{where}: two columns named {twice[0]}")
        elif len(cells) != len(header):
            found = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
            raise InputError(f"{where}: {found}, must be {len(header)} ({', '.join(header)})")
        else:
            yield Row(where, dict(zip(header, cells, strict=True)))
    if stripped:
        _say_stripped(file, stripped)


@cache
def _say_stripped(file: Path, cells: int) -> None:
    """Say once how many cells of a file lost blanks; a file may be read once for each run."""
    say(f"{file}: blanks around {cells:,} cell{'s' if cells > 1 else ''} removed")


def _parquet(file: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        for batch in pq.ParquetFile(file).iter_batches(batch_size=1024):
            for cells in batch.to_pylist():
                number += 1
                yield Row(f"{file}: row {number}", cells)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        where = f"{file}: row {number + 1}" if number else str(file)
        raise InputError(f"{where}: not a readable Parquet file ({str(error).splitlines()[0]})") from None


def _hub(config: BenchmarkConfig) -> Iterator[Table]:
    if config.dataset is None:
        raise ConfigError(f"benchmark={config.name}: give benchmark.path=FOLDER or benchmark.dataset=NAME")
    datasets = import_datasets()
    try:
        names = datasets.get_dataset_config_names
        for subset in [config.subset] if config.subset else sorted(names(config.dataset, revision=config.revision)):
            source = f"{config.dataset}: {subset}"
            split = _split(datasets, config, subset)
            rows = (Row(f"{source}: row {number}", cells) for number, cells in enumerate(split, start=1))
            name = config.dataset.rpartition("/")[2] if subset == "default" else subset
            yield Table(name, source, _some(rows, source))
    except (OSError, RuntimeError, ValueError, datasets.exceptions.DatasetsError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"benchmark={config.name} needs {config.dataset} from the Hugging Face hub ({reason}); "
            f"for a local copy give benchmark.path=FOLDER with its files"
        ) from None


def _split(datasets: Any, config: BenchmarkConfig, subset: str) -> Any:
    """Return the rows of a subset: of the requested split, or of the only one."""
    loaded = datasets.load_dataset(config.dataset, subset, split=config.split, revision=config.revision)
    if not isinstance(loaded, dict):
        return loaded
    if len(loaded) != 1:
        splits = ", ".join(loaded)
        raise ConfigError(f"{config.dataset}: {subset}: has the splits {splits}: choose one by benchmark.split=NAME")
    return next(iter(loaded.values()))


def read_yaml(where: str, path: Path, allowed: str = "a YAML file") -> Any:
    """Return the contents of a user's YAML file. Raises InputError, which begins with `where`, if it cannot be read."""
    try:
        return load_yaml(path.expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{where}: cannot be read ({error.strerror}); must be {allowed}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"{where}: not YAML ({' '.join(str(error).split())})") from None
