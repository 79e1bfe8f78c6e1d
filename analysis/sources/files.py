"""The files of `path`, the name of the study that they make, and JSON that other programs wrote."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from corpora.sources.lines import opened
from pairscale.errors import ConfigError, InputError

COMMITTED = ("accuracies.csv", "points.csv")  # the table of accuracies in a folder of a study's tables, the first found


def given_files(path: Any, source: str, endings: Sequence[str]) -> list[Path]:
    """Return the files of `path`: a file, a folder (all of its files with one of `endings`, by path) or a list of them.

    From a folder that has one of COMMITTED, a table reads just that file. Raises ConfigError without a path, and
    InputError where there is no such file.
    """
    if path is None or path == []:
        raise ConfigError(f"source={source}: give path=FILE, a folder, or a list of them ({', '.join(endings)}).")
    files: list[Path] = []
    for one in path if isinstance(path, list) else [path]:
        place = Path(str(one)).expanduser()
        if place.is_dir():
            there = sorted(file for file in place.rglob("*") if file.is_file() and not file.name.startswith("."))
            chosen = [file for file in there if file.name.lower().endswith(tuple(endings))]
            committed = [place / name for name in COMMITTED if source == "table" and place / name in chosen]
            if not chosen:
                raise InputError(f"path={one}: no file in this folder ends in {' or '.join(endings)}.")
            files += committed[:1] or chosen
        elif place.is_file():
            files.append(place)
        else:
            raise InputError(f"path={one}: no such file or folder.")
    return files


def study_name(study: str | None, path: Any) -> str:
    """Return the name of the study: `study`, or else that of the first file or folder of `path`."""
    if study is not None:
        return study
    first = Path(str(path[0] if isinstance(path, list) else path))
    name = first.name if first.is_dir() else first.name.partition(".")[0]
    return re.sub(r"[^\w.-]+", "_", name).strip("._-") or "others"


def read_object(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file, which may be compressed. Raises InputError for anything else."""
    with opened(file) as (stream, _):
        return _object(stream.read(), str(file))


def read_lines(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the object of each line. Raises InputError for a line without an object."""
    with opened(file) as (stream, _):
        for number, line in enumerate(stream, start=1):
            if line.strip():
                yield f"{file}:{number}", _object(line, f"{file}:{number}")


def _object(text: bytes, where: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not JSON ({' '.join(str(error).split())[:120]}).") from None
    if not isinstance(data, dict):
        raise InputError(f"{where}: contains a {type(data).__name__}, must contain an object.")
    return data
