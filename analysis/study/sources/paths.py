"""The files of `path`, and the name of the study that they make."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pairscale.errors import ConfigError, InputError


def given_paths(path: Any, source: str, endings: Sequence[str]) -> list[Path]:
    """Return the files of `path`: a file, a folder (all of its files with one of `endings`, by path) or a list of them.

    Raises ConfigError without a path, InputError where there is no such file.
    """
    if path is None or path == []:
        raise ConfigError(f"source={source}: give path=FILE, a folder, or a list of them ({', '.join(endings)})")
    files: list[Path] = []
    for one in path if isinstance(path, list) else [path]:
        place = Path(str(one)).expanduser()
        if place.is_dir():
            there = sorted(file for file in place.rglob("*") if file.is_file() and not file.name.startswith("."))
            chosen = [file for file in there if file.name.lower().endswith(tuple(endings))]
            if not chosen:
                raise InputError(f"path={one}: no file in it ends in {' or '.join(endings)}")
            files += chosen
        elif place.is_file():
            files.append(place)
        else:
            raise InputError(f"path={one}: no such file or folder")
    return files


def study_name(study: str | None, file: Path, path: Any) -> str:
    """Return the name of the study: `study`, or else that of the first file or folder of `path`."""
    if study is not None:
        return study
    first = Path(str(path[0] if isinstance(path, list) else path))
    name = first.name if first.is_dir() else file.name.partition(".")[0]
    return re.sub(r"[^\w.-]+", "_", name).strip("._-") or "others"
