"""Read the lines of UTF-8 text files, plain or compressed."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from pairscale.errors import InputError

COMPRESSIONS = (".gz", ".xz", ".zst", ".bz2")
MAX_LINE = 1 << 26  # in bytes, because a file with longer lines is not text
SPLITS = {"train": "train", "validation": "valid", "valid": "valid", "dev": "valid", "test": "test"}


def check_present(files: Iterable[Path]) -> None:
    """Raise InputError if a file does not exist."""
    for file in files:
        if file.parts[0] == "None":  # ${paths.data} is not set
            raise InputError(
                f"corpus.path: this setting is missing. Set the environment variable PAIRSCALE_DATA to the folder that "
                f"contains {Path(*file.parts[1:])}, or set corpus.path."
            )
        if not file.is_file():
            raise InputError(f"corpus.path={file}: this file does not exist. Correct the path.")


def lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the number (from 1) and the text of each line of a file, which may be compressed.

    Raises InputError if the file is damaged or not UTF-8, or has a line that is longer than 64 MiB.
    """
    with opened(file) as stream:
        for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE), b""), start=1):
            yield number, decode_line(line, f"{file}:{number}")


def decode_line(line: bytes, where: str) -> str:
    """Decode a line without line break and byte order mark. Raises InputError, whose message begins with `where`."""
    if len(line) == MAX_LINE:
        raise InputError(
            f"{where}: this line is longer than {MAX_LINE >> 20} MiB, so the file is probably not text. Use a text "
            "file."
        )
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        byte, position = line[error.start], error.start + 1
        raise InputError(
            f"{where}: this line is not valid UTF-8 (byte 0x{byte:02x} at position {position}). Convert the file to "
            "UTF-8."
        ) from None
    return text.rstrip("\r\n").removeprefix("\ufeff")


def _zstd(raw: IO[bytes]) -> Any:
    import pyarrow as pa  # its reader raises an error for a truncated file

    untyped: Any = pa
    return untyped.CompressedInputStream(untyped.PythonFile(raw, mode="r"), "zstd")


_DECOMPRESSORS: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw),
    ".xz": lzma.LZMAFile,
    ".bz2": bz2.BZ2File,
    ".zst": _zstd,
}


@contextmanager
def opened(file: Path) -> Iterator[IO[bytes]]:
    """Open a file as a stream of bytes, and decompress it if necessary. Raises InputError if it is damaged."""
    try:
        with file.open("rb") as raw:
            stream: Any = _DECOMPRESSORS[file.suffix](raw) if file.suffix in _DECOMPRESSORS else raw
            yield io.BufferedReader(stream, 1 << 20)
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise InputError(f"{file}: this file can't be read to its end ({error}). Replace it.") from error
