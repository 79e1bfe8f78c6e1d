"""JSON that other programs wrote, with errors in one line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from corpora.sources.lines import opened
from pairscale.errors import InputError


def read_object(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file, which may be compressed. Raises InputError for anything else."""
    with opened(file) as (stream, _):
        text = stream.read()
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: no JSON ({' '.join(str(error).split())[:120]})") from None
    if not isinstance(data, dict):
        raise InputError(f"{file}: holds a {type(data).__name__}, must hold an object")
    return data


def read_lines(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the object of each line. Raises InputError for a line that holds no object."""
    with opened(file) as (stream, _):
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            where = f"{file}:{number}"
            try:
                data = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{where}: no JSON ({' '.join(str(error).split())[:120]})") from None
            if not isinstance(data, dict):
                raise InputError(f"{where}: holds a {type(data).__name__}, must hold an object")
            yield where, data
