"""The command `python -m eval.fetch`: download the files of a benchmark to the folder that `python -m eval` reads.

<benchmark.path>/...           the files
<benchmark.path>/SOURCE.txt    their address, digest and licence
"""

import http.client
import lzma
import os
import re
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple
from urllib.parse import urlsplit

from eval.benchmarks.config import BenchmarkConfig, DownloadConfig
from eval.config import FetchConfig
from pairscale.command.main import main
from pairscale.errors import ConfigError, InputError, error_line
from pairscale.files import sha256_file, writing
from pairscale.progress import shown, with_progress
from pairscale.sizes import plural

SOURCE = "SOURCE.txt"
MOST_BYTES = 2**30  # of an archive, and of its files
WAIT_SECONDS = 20  # for an answer
_BLOCK = 2**16
_TAR = re.compile(r"\.(tar|tgz|tar\.\w+)$")
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError, RuntimeError)
_UNREACHABLE = (OSError, http.client.HTTPException)  # urllib's errors are OSErrors


class Member(NamedTuple):
    """A file in an archive: its name there, its size in bytes, and a function that opens it."""

    name: str
    size: int
    open: Callable[[], IO[bytes]]


def run(config: FetchConfig) -> None:
    """Download the files of `config.benchmark`, unless they are there.

    Raises:
        ConfigError: If the benchmark has no files of its own, or the folder of data isn't set.
        InputError: If the files can't be downloaded, aren't those that the configuration describes, or would replace
            others.
        WriteError: If the folder can't be written.
    """
    benchmark = config.benchmark
    source, path = _source(benchmark), _folder(benchmark)
    if source.address is None:
        raise InputError(
            f"benchmark={benchmark.name}: this benchmark has no address to download from ({source.licence}). Get the "
            f"files from {source.page}, and put them into {path}."
        )
    if path.exists() and (path.is_file() or any(path.iterdir())):
        if path.is_file() or digest_of(path) != source.sha256:
            raise InputError(
                f"{path}: this folder contains files that don't belong to benchmark={benchmark.name}. Move them away, "
                "or choose another folder with benchmark.path=FOLDER."
            )
        print(f"{path}: the files of {benchmark.name} are already here. Licence: {source.licence}.")
        return
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as temporary:
            archive, files = Path(temporary, "archive"), Path(temporary, "files")
            with shown(f"benchmark={benchmark.name}"):
                _download(benchmark, source, path, archive)
            _unpack(source, archive, files)
            if (digest := digest_of(files)) != source.sha256:
                raise InputError(
                    f"{source.address}: these files were damaged on the way, or have changed (SHA-256 {digest} instead "
                    f"of {source.sha256}). Try again. If that doesn't help, see {source.page}."
                )
            number = sum(file.is_file() for file in files.rglob("*"))
            about = {"benchmark": benchmark.name, **vars(source)}
            Path(files, SOURCE).write_text("".join(f"{key}: {value}\n" for key, value in about.items()), "utf-8")
            os.replace(files, path)
    print(f"{path}: {plural(number, 'file')} of {benchmark.name}. Licence: {source.licence} ({source.page}).")


def digest_of(folder: Path) -> str:
    """Return the SHA-256 of a folder: of a line "DIGEST  NAME" for each file, as `sha256sum` prints it, by name."""
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}
    names = sorted(files.keys() - {SOURCE})
    return sha256("".join(f"{sha256_file(files[name])}  {name}\n" for name in names).encode()).hexdigest()


def _source(benchmark: BenchmarkConfig) -> DownloadConfig:
    """Return where the benchmark's files can be downloaded. Raises ConfigError if it has none."""
    if benchmark.download is None:
        hub = f"is read from the Hugging Face Hub ({benchmark.dataset}) when it is scored"
        reason = hub if benchmark.dataset else "has no published files"
        raise ConfigError(f"benchmark={benchmark.name}: this benchmark {reason}, so there is nothing to download.")
    return benchmark.download


def _folder(benchmark: BenchmarkConfig) -> Path:
    """Return the folder for the benchmark's files. Raises ConfigError if it isn't set."""
    if benchmark.path is None or benchmark.path.startswith("None/"):  # ${paths.data} is not set
        raise ConfigError(
            f"benchmark={benchmark.name}: where should its files be? Set PAIRSCALE_DATA to your folder of data, or "
            "give paths.data=FOLDER."
        )
    return Path(benchmark.path).expanduser()


def _download(benchmark: BenchmarkConfig, source: DownloadConfig, path: Path, archive: Path) -> None:
    """Write what `source.address` contains to `archive`. Raises InputError, which says how to get the files by hand."""
    assert source.address is not None
    try:
        with urllib.request.urlopen(source.address, timeout=WAIT_SECONDS) as answer, archive.open("wb") as file:
            expected, received = int(answer.headers.get("Content-Length") or 0), 0
            for block in with_progress(_blocks(answer), "downloading", expected, "bytes"):
                received += len(block)
                if received > MOST_BYTES:
                    raise InputError(
                        f"{source.address}: this file has more than {MOST_BYTES:,} bytes. Download it by hand."
                    )
                with writing(path):
                    file.write(block)
    except _UNREACHABLE as error:
        reason = getattr(error, "reason", error)
        if isinstance(error, urllib.error.HTTPError):
            error.close()
            reason = error
        which = f" of its folder {source.folder}" if source.folder else ""
        raise InputError(
            f"benchmark={benchmark.name}: {source.address} can't be downloaded ({reason}). Download it on another "
            f"machine, and put the files{which} into {path}."
        ) from None


def _blocks(answer: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    while block := answer.read(_BLOCK):
        yield len(block), block


def _unpack(source: DownloadConfig, archive: Path, files: Path) -> None:
    """Write the files in `source.folder` of an archive, or a single file. Raises InputError if that isn't possible."""
    name = PurePosixPath(urlsplit(str(source.address)).path).name
    try:
        if name.endswith(".zip"):
            with zipfile.ZipFile(archive) as zipped:
                infos = [info for info in zipped.infolist() if not info.is_dir()]
                _write(source, [Member(one.filename, one.file_size, partial(zipped.open, one)) for one in infos], files)
        elif _TAR.search(name):
            with archive.open("rb") as file, tarfile.open(fileobj=file) as tarred:
                regular = [info for info in tarred if info.isfile()]
                _write(
                    source,
                    [Member(one.name, one.size, partial(tarfile.ExFileObject, tarred, one)) for one in regular],
                    files,
                )
        else:
            with archive.open("rb") as file:
                _write(source, [Member(name, archive.stat().st_size, lambda: file)], files)
    except _DAMAGED as error:
        raise InputError(f"{source.address}: this file can't be unpacked ({error_line(error)}). Try again.") from None


def _write(source: DownloadConfig, members: list[Member], files: Path) -> None:
    """Write the chosen members of an archive. If all are in one folder, names start there."""
    if (total := sum(member.size for member in members)) > MOST_BYTES:
        raise InputError(
            f"{source.address}: its files have {total:,} bytes, but at most {MOST_BYTES:,} are read. See {source.page}."
        )
    chosen = {PurePosixPath(member.name): member for member in members if not _is_junk(PurePosixPath(member.name))}
    tops = {name.parts[0] for name in chosen}
    single = len(tops) == 1 and all(len(name.parts) > 1 for name in chosen)
    folder = PurePosixPath(*tops if single else (), source.folder)
    for name, member in chosen.items():
        if name.is_absolute() or ".." in name.parts or "\\" in member.name:
            raise InputError(
                f"{source.address}: this archive contains the unsafe name '{member.name}'. See {source.page}."
            )
        if not name.is_relative_to(folder):
            continue
        target = files / name.relative_to(folder)
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            with member.open() as content, target.open("wb") as file:
                shutil.copyfileobj(content, file)


def _is_junk(name: PurePosixPath) -> bool:
    """Return True for what macOS adds to archives, and for other hidden files."""
    return any((part.startswith(".") and part != "..") or part == "__MACOSX" for part in name.parts)


if __name__ == "__main__":
    main("fetch", run)
