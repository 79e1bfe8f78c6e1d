"""Write files atomically, lock them, and compute digests.

`atomic_path` writes a temporary file, forces it to the disk, and then renames it, so readers never see half a file. The
temporary file of a killed process stays behind until `only_process` removes it.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from pairscale.console import say
from pairscale.errors import WriteError

if TYPE_CHECKING:
    import numpy.typing as npt

_FULL = "Free some space, then run the same command again to continue. The files written so far are intact."
_CLOSED = "Choose a folder that you may write to (paths.store, paths.runs, paths.reports)."
REMEDIES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: _CLOSED,
    errno.ENOTDIR: _CLOSED,
    errno.EACCES: _CLOSED,
    errno.EPERM: _CLOSED,
    errno.ENAMETOOLONG: "Use shorter names, or another folder (paths.runs, paths.store).",
}  # remedies for errors of the file system that a user can fix
LOCK = ".lock"  # name of the lock file of a run's folder
POLL_SECONDS = 0.25  # between attempts to acquire a lock, for which a hundred processes may be waiting
SAY_SECONDS = 10.0  # how long to wait for a lock before printing a message
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)
_TEMPORARY = re.compile(r"\..+\.\d+\.tmp")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError that a user can fix, such as a full disk, into a one-line WriteError that names `path`."""
    try:
        yield
    except OSError as error:
        if error.errno not in REMEDIES:
            raise
        raise WriteError(
            f"{path}: this file cannot be written ({os.strerror(error.errno)}). {REMEDIES[error.errno]}"
        ) from error


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder. Move it to `path` if the block succeeds, or else remove it.

    Raises WriteError if the disk is full, over quota or read-only. It is raised only if the OSError has a number. Some
    libraries lose it (torch, safetensors, numpy's tofile), so let them write to memory first.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with writing(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            _force(temporary)  # otherwise a crash of the machine could leave an empty file
            os.replace(temporary, path)
            _force(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def _force(path: Path) -> None:
    """Wait until the contents of a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL or not path.is_dir():  # some file systems cannot force a folder to the disk
            raise
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON atomically."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_bytes(path: Path, data: bytes | memoryview) -> None:
    """Write a file atomically."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def write_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Write an array in numpy's format atomically."""
    import numpy as np  # imported here, so that commands that don't write arrays start sooner

    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    write_bytes(path, buffer.getbuffer())


@contextmanager
def only_process(lock: Path, folder: Path, wait: float | None = 0.0) -> Iterator[bool]:
    """Acquire `lock` for the block and yield True, or yield False if another process has locked it.

    Temporary files that killed processes left in `folder` are removed first. The lock uses flock, so it is
    released when its process ends. Over NFS, releasing the lock of a lost machine takes a minute or two.

    Args:
        lock: the lock file
        folder: a folder, with its subfolders, that only this process may write to
        wait: seconds to wait for the other process; None: as long as it takes, with a message after a while

    Raises:
        WriteError: if the lock file cannot be written, or its file system has no locks
    """
    held = FileLock(lock, poll_interval=POLL_SECONDS, fallback_to_soft=False)
    with writing(lock):
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            held.acquire(timeout=SAY_SECONDS if wait is None else wait)
        except Timeout:
            if wait is None:
                say(f"Waiting for another process that has locked {lock}.")
                held.acquire(timeout=-1)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            raise WriteError(
                f"{lock}: this file system has no file locks ({os.strerror(error.errno)}), which keep two processes "
                "from writing the same files. Choose a folder on another file system, or mount Lustre with flock."
            ) from error
    if not held.is_locked:
        yield False
        return
    try:
        os.listdir(lock.parent)  # makes NFS look again, because it caches missing files for half a minute
        remove_leftovers(folder)
        yield True
    finally:
        held.release()


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files that killed processes left in a folder and its subfolders.

    Subfolders with a lock of their own are left alone, because another process may be writing there.
    """
    for path in folder.rglob(".*.tmp"):
        inside = path.relative_to(folder).parents[:-1]
        if _TEMPORARY.fullmatch(path.name) and not any((folder / part / LOCK).exists() for part in inside):
            path.unlink(missing_ok=True)


def sha256_file(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_json(value: Any) -> str:
    """Return the hexadecimal SHA-256 of a value's canonical JSON (sorted keys, no spaces)."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
