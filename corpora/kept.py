"""Write folders of the store once, even if several processes try, and check them when they are read.

Each folder contains a manifest.json, which is written last. It records what the folder was made from and the digests of
its files.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from pairscale.errors import StoreError
from pairscale.files import only_process, sha256_file, sha256_json, write_array, write_json
from pairscale.schema import Digest, read_json

MANIFEST = "manifest.json"  # written last
ARRAYS_VERSION = 1

Arrays = dict[str, npt.NDArray[Any]]


@contextmanager
def written_once(folder: Path, last: str = MANIFEST) -> Iterator[bool]:
    """Yield True if this process must write the files of a folder. The folder is then locked for other processes.

    `last` is the name of the file that is written last.
    """
    if (folder / last).exists():
        yield False
        return
    with only_process(folder.parent / f".{folder.name}.lock", folder, wait=None):
        yield not (folder / last).exists()


def read_manifest(folder: Path, version: int, schema: type[Any]) -> dict[str, Any]:
    """Read the manifest of a folder and check it against a TypedDict. Raises StoreError if it is missing or damaged."""
    remedy = f"remove {folder} to prepare it again"
    return dict(read_json(folder / MANIFEST, schema, StoreError, remedy, version))


def check_recorded(folder: Path, recorded: Mapping[str, Any], actual: Mapping[str, Any]) -> None:
    """Raise StoreError if a value differs from the one that the folder's manifest records under the same name."""
    for name, value in actual.items():
        if value != recorded.get(name):
            raise StoreError(
                f"{folder}: the value of '{name}' differs from the folder's manifest. Remove the folder to prepare it "
                "again."
            )


def file_digest(path: Path) -> str | None:
    """Return the SHA-256 of a file, or None if the file does not exist."""
    return sha256_file(path) if path.exists() else None


class _ArraysManifest(TypedDict):
    """The schema of the part of a manifest that is the same for all kept arrays."""

    arrays: list[str]
    digest: Digest


def kept_arrays(
    folder: Path, made: Mapping[str, Any], make: Callable[[], tuple[Arrays, Mapping[str, Any]]]
) -> tuple[Arrays, dict[str, Any]]:
    """Return a folder's arrays by name (each is saved as NAME.npy) and its manifest. Make them if they are missing.

    Args:
        folder: The folder, store/<corpus>/<name>-<digest>.
        made: What the arrays depend on, as plain data; recorded in the manifest.
        make: Function that returns the arrays, and additional values for the manifest.

    Raises the same errors as `make`, and StoreError if the arrays are damaged or were made from something else.
    """
    with written_once(folder) as missing:
        if missing:
            arrays, about = make()
            for name, array in arrays.items():
                write_array(folder / f"{name}.npy", array)
            manifest = {"version": ARRAYS_VERSION, **made, **about, "arrays": list(arrays)}
            write_json(folder / MANIFEST, {**manifest, "digest": _digest(folder, list(arrays))})
    manifest = read_manifest(folder, ARRAYS_VERSION, _ArraysManifest)
    check_recorded(folder, manifest, {**made, "digest": _digest(folder, manifest["arrays"])})
    return {name: np.load(folder / f"{name}.npy") for name in manifest["arrays"]}, manifest


def _digest(folder: Path, names: list[str]) -> str:
    return sha256_json([file_digest(folder / f"{name}.npy") for name in names])
