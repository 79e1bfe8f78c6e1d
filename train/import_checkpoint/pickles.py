"""Read files written by `torch.save` without executing anything in them.

A pickle is a program that names functions and classes, and loading it calls them. `torch.load(weights_only=True)` is
safe, but can't read the whole modules that the papers' code saves. Here torch reads the file, which is an archive or a
sequence of pickles. Our own unpickler replaces everything that the pickle names by an inert `Record`.
"""

from __future__ import annotations

import math
import pickle
import tarfile
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import torch
from torch import Tensor

from pairscale.errors import InputError, PairscaleError

# The modules that checkpoints may name, from torch, colorlessgreenRNNs (model) and transformer-xl/pytorch.
KNOWN = (
    "torch",
    "collections",
    "model",
    "mem_transformer",
    "proj_adaptive_softmax",
    "data_utils",
    "vocabulary",
    "utils",
)
_REAL: dict[str, type] = {"collections.OrderedDict": OrderedDict, "builtins.set": set, "__builtin__.set": set}
_TENSORS = ("torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2")
_PARAMETERS = (
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch.nn.parameter.Parameter",
)


class Record:
    """An object in a pickle, with the name of its class, the arguments of its constructor, and its state."""

    name = ""
    arguments: tuple[Any, ...]
    state: Any

    def __new__(cls, *arguments: Any) -> Record:
        self = super().__new__(cls)
        self.arguments, self.state = arguments, {}
        return self

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Unpickler(pickle._Unpickler):  # in Python, because the C version allocates any size that a pickle claims
    def find_class(self, module: str, name: str) -> Any:
        """Return a new inert class for each name, because a pickle can set attributes of classes."""
        full = f"{module}.{name}"
        if full in _REAL:
            return _REAL[full]
        if module.partition(".")[0] not in KNOWN:
            raise InputError(
                f"this file was not loaded, because its pickle names {full}, which no known checkpoint contains. "
                "Nothing in it was executed."
            )
        return type(name, (Record,), {"name": full})


def _inert() -> SimpleNamespace:
    """Return a replacement for the module pickle that torch.load can use for one file.

    The older format lists its arrays after the pickle that names them. If an array is missing there, torch would use
    whatever happens to be in memory, so this raises ValueError.
    """
    named: set[str] = set()

    class Unpickler(_Unpickler):
        def load(self) -> Any:
            persistent_load = getattr(self, "persistent_load", None)

            def noted(saved: tuple[Any, ...]) -> Any:
                if saved[0] == "storage":
                    named.add(saved[2])
                return persistent_load(saved)  # type: ignore[misc]

            self.persistent_load = noted  # type: ignore[method-assign, assignment]
            return super().load()

    def load(file: BinaryIO, **options: Any) -> Any:
        loaded = Unpickler(file, **options).load()
        if named and isinstance(loaded, list) and (lacking := named.difference(loaded)):
            raise ValueError(f"the numbers of {len(lacking)} arrays are missing")
        return loaded

    return SimpleNamespace(__name__="inert", Unpickler=Unpickler, load=load)


@contextmanager
def one_line_errors(path: Path) -> Iterator[None]:
    """Turn any error that a foreign file at `path` causes within the block into a one-line InputError."""
    try:
        yield
    except PairscaleError:
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise InputError(f"{path}: it is damaged, or not a checkpoint that can be imported ({reason}).") from None


def read_torch_file(path: Path) -> Any:
    """Return the object that `torch.save` wrote, with records for class instances. Raises a one-line InputError."""
    if not path.is_file():
        raise InputError(f"{path}: this file does not exist. Correct the path.")
    with one_line_errors(path), path.open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about classes without source code
        _check_form(path)
        try:
            return torch.load(file, "cpu", pickle_module=_inert(), weights_only=False)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def _check_form(path: Path) -> None:
    """Raise ValueError for file formats that torch.load would read without our unpickler."""
    if tarfile.is_tarfile(path):
        raise ValueError("it is a tar archive")
    if _begins_as_archive(path):
        if "constants.pkl" in torch._C.PyTorchFileReader(str(path)).get_all_records():
            raise ValueError("it is a TorchScript program")
        with zipfile.ZipFile(path) as archive:
            if any(member.compress_type for member in archive.infolist()):
                raise ValueError("it is compressed, which torch.save never does, so its contents could have any size")
            if damaged := archive.testzip():
                raise ValueError(f"its part {damaged} was changed")


def tensor_of(record: Any) -> Tensor:
    """Return a record's tensor as a float32 copy. Raises errors of various types if the record is not a tensor."""
    while record.name in _PARAMETERS:
        record = (record.arguments or record.state)[0]  # torch 0.2 puts it in the state
    if record.name not in _TENSORS:
        raise ValueError(f"it has {record.name} instead of a tensor")
    storage, offset, size, stride = record.arguments[:4]
    array = torch.empty(0, dtype=storage.dtype).set_(storage._untyped_storage)
    if math.prod(size) > len(array):
        raise ValueError(f"a tensor of size {list(size)} has only {len(array)} numbers")
    return array.as_strided(size, stride, offset).to(torch.float32, copy=True)


def is_pickled(path: Path) -> bool:
    """Return True if a file starts like one of the two formats that torch.save writes. No UTF-8 text does."""
    with path.open("rb") as file:
        return file.read(1) == b"\x80" or _begins_as_archive(path)


def _begins_as_archive(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


@dataclass(frozen=True)
class Checkpoint:
    """The contents of a checkpoint, which is a pickled module or its state_dict."""

    tensors: dict[str, Tensor]  # float32, by their names in a state_dict
    attributes: dict[str, dict[str, Any]]  # by dotted module name ("" for the model); empty for a state_dict

    def attribute(self, module: str, name: str, otherwise: Any = None) -> Any:
        """Return an attribute of a module, or `otherwise` if the module has no such attribute."""
        return self.attributes.get(module, {}).get(name, otherwise)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint. Raises a one-line InputError if the file is damaged, unsafe or of another kind."""
    root = read_torch_file(path)
    records: dict[str, Any] = {}
    attributes: dict[str, dict[str, Any]] = {}
    with one_line_errors(path):
        if isinstance(root, Record):
            if root.name.endswith(".DataParallel"):
                root = root.state["_modules"]["module"]
            _collect(root, "", records, attributes)
        elif isinstance(root, dict):
            records = {name: value for name, value in root.items() if isinstance(value, Record)}
        tensors = {name.removeprefix("module."): tensor_of(record) for name, record in records.items()}
    if not tensors:
        raise InputError(f"{path}: this file must contain a model or a state_dict.")
    return Checkpoint(tensors, attributes)


def _collect(module: Record, name: str, records: dict[str, Any], attributes: dict[str, dict[str, Any]]) -> None:
    """Collect the records of a module's tensors, by their names in a state_dict, and the attributes of its modules."""
    attributes[name] = module.state
    prefix = f"{name}." if name else ""
    for group in ("_parameters", "_buffers"):
        members = module.state.get(group) or {}
        records |= {f"{prefix}{key}": value for key, value in members.items() if value is not None}
    for key, child in (module.state.get("_modules") or {}).items():
        _collect(child, f"{prefix}{key}", records, attributes)
