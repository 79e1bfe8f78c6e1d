"""Files of `torch.save`, read without executing anything.

A pickle is a program that names functions and classes, and loading it calls them. Here every name must be in a list and
stands for a `Record`, which stores its arguments; our own code builds the tensors afterwards. Both formats are read:
the archive of torch 1.6 and later, and the sequence of pickles before it (0.1.10).
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import sys
import zipfile
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from pairscale.errors import InputError

MAX_PICKLE = 64 * 2**20  # bytes, without the tensors' numbers; a vocabulary of a million words takes 40 MB
LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
LEGACY_PROTOCOL = 1001

DTYPES = {
    "DoubleStorage": torch.float64,
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}
_TENSORS = ("torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2")
_PARAMETERS = (
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch.nn.parameter.Parameter",
)
_MODULES = {
    "torch.nn.modules.activation": ("ReLU",),
    "torch.nn.modules.container": ("ModuleList", "ParameterList", "Sequential"),
    "torch.nn.modules.dropout": ("Dropout",),
    "torch.nn.modules.linear": ("Linear",),
    "torch.nn.modules.normalization": ("LayerNorm",),
    "torch.nn.modules.rnn": ("GRU", "LSTM", "RNN"),
    "torch.nn.modules.sparse": ("Embedding",),
    "torch.nn.parallel.data_parallel": ("DataParallel",),
    "torch.nn.backends.thnn": ("_get_thnn_function_backend",),  # an attribute of each module before torch 1.0
    # colorlessgreenRNNs
    "model": ("RNNModel",),
    # transformer-xl/pytorch
    "mem_transformer": (
        "AdaptiveEmbedding",
        "DecoderLayer",
        "MemTransformerLM",
        "MultiHeadAttn",
        "PositionalEmbedding",
        "PositionwiseFF",
        "RelLearnableDecoderLayer",
        "RelLearnableMultiHeadAttn",
        "RelPartialLearnableDecoderLayer",
        "RelPartialLearnableMultiHeadAttn",
    ),
    "proj_adaptive_softmax": ("ProjectedAdaptiveLogSoftmax",),
    "utils.proj_adaptive_softmax": ("ProjectedAdaptiveLogSoftmax",),
    "log_uniform_sampler": ("LogUniformSampler",),
    "data_utils": ("Corpus",),
    "utils.vocabulary": ("Vocab",),
    "vocabulary": ("Vocab",),
}
ADMITTED = frozenset(
    [
        *_TENSORS,
        *_PARAMETERS,
        *(f"torch.{name}" for name in DTYPES),
        *(f"torch.cuda.{name}" for name in DTYPES),
        *(f"{module}.{name}" for module, names in _MODULES.items() for name in names),
    ]
)


class Record:
    """An object in a pickle: the name of its class, the arguments of its construction, and its state."""

    name = ""
    arguments: tuple[Any, ...]
    state: Any

    def __new__(cls, *arguments: Any) -> Record:
        self = super().__new__(cls)
        self.arguments, self.state = arguments, {}
        return self

    def __setstate__(self, state: Any) -> None:
        self.state = state


@dataclass(frozen=True)
class Storage:
    """A part of a stored array: `count` of its `total` numbers, from `start` on."""

    dtype: torch.dtype
    key: str
    total: int
    start: int
    count: int


class _Unpickler(pickle.Unpickler):
    """An unpickler of records, lists, dictionaries, sets, text and numbers, and nothing else."""

    def __init__(self, data: bytes, path: Path):
        super().__init__(io.BytesIO(data), encoding="utf-8")  # text of Python 2, as torch reads it
        self.path = path
        self.classes: dict[str, type] = {}  # of this file alone, as a pickle can set attributes of classes
        self.item_sizes: dict[str, int] = {}  # bytes of a number of each array, by key

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}".replace("__builtin__.", "builtins.", 1)
        if full == "collections.OrderedDict":
            return OrderedDict
        if full == "builtins.set":
            return set
        if full not in self.classes:
            if full == "collections.Counter":
                self.classes[full] = type("Counter", (dict,), {})
            elif full in ADMITTED:
                self.classes[full] = type(name, (Record,), {"name": full})
            else:
                raise InputError(
                    f"{self.path}: refused, as its pickle names {full}, which is no class of a known checkpoint; "
                    "nothing of it was executed"
                )
        return self.classes[full]

    def persistent_load(self, pid: Any) -> Any:
        if isinstance(pid, tuple) and len(pid) == 4 and pid[0] == "module":
            return pid[1]  # a class, with its source
        if not (isinstance(pid, tuple) and len(pid) in (5, 6) and pid[0] == "storage"):
            raise ValueError(f"a reference to {str(pid)[:60]}")
        kind, key, total = pid[1], str(pid[2]), pid[4]
        dtype = DTYPES[kind.name.rpartition(".")[2]]
        _, start, count = (pid[5] if len(pid) == 6 else None) or (None, 0, total)
        for number in (total, start, count):
            _check_count(number)
        if start + count > total:
            raise ValueError(f"part {start} to {start + count} of an array of {total}")
        self.item_sizes[key] = dtype.itemsize
        return Storage(dtype, key, total, start, count)


def _check_count(number: Any) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError(f"{str(number)[:40]} where a size belongs")


def _pickle_end(file: BinaryIO) -> int:
    """Return the end of the pickle that begins here, from its opcodes, without executing them.

    Raises ValueError if it is damaged or has other opcodes than torch.save: extensions, places beyond the memo's end.
    """
    position = file.tell()
    for count, (opcode, argument, at) in enumerate(pickletools.genops(file)):
        if opcode.name.startswith("EXT") or ("PUT" in opcode.name and int(argument or 0) > count):
            raise ValueError(f"opcode {opcode.name} {argument}")
        position = at or 0
    return position + 1  # STOP is one byte


def _unpickled(file: io.BytesIO, path: Path) -> tuple[Any, dict[str, int]]:
    """Return this pickle's contents, and the bytes of a number of each array. Raises InputError if it is damaged."""
    start = file.tell()
    try:
        end = _pickle_end(file)
        file.seek(end)
        unpickler = _Unpickler(file.getvalue()[start:end], path)
        return unpickler.load(), unpickler.item_sizes
    except InputError:
        raise
    except Exception as error:  # a foreign pickle can fail in any way
        raise InputError(f"{path}: cut short, damaged or not written by torch.save ({_reason(error)})") from None


def _reason(error: Exception) -> str:
    """Return an error of another library in one short line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:120]


class TorchFile:
    """A file of `torch.save`: `root` is the saved object; tensors in it are records, whose numbers `tensor` reads."""

    def __init__(self, path: Path):
        """Raise InputError in one line for a file that is missing, damaged or not safe."""
        self.path = path
        self.root: Any = None
        self._arrays: dict[str, Tensor] = {}
        self._archive: zipfile.ZipFile | None = None
        self._folder = ""
        self._places: dict[str, int] = {}  # key -> position of an array in the older format
        if not path.is_file():
            raise InputError(f"{path}: no such file")
        if sys.byteorder != "little":
            raise InputError(f"{path}: its numbers are little-endian, this machine is not")
        if is_archive(path):
            self._open_archive()
        else:
            self._open_sequence()

    def _open_archive(self) -> None:
        try:
            self._archive = zipfile.ZipFile(self.path)
        except Exception as error:  # a foreign file can fail in any way
            raise InputError(f"{self.path}: cut short or damaged ({_reason(error)})") from None
        names = [name for name in self._archive.namelist() if name.endswith("/data.pkl") and name.count("/") == 1]
        if len(names) != 1:
            raise InputError(f"{self.path}: an archive, but not one of torch.save (no data.pkl)")
        self._folder = names[0].removesuffix("data.pkl")
        listed = set(self._archive.namelist())
        if f"{self._folder}constants.pkl" in listed:
            raise InputError(f"{self.path}: a TorchScript program, not a checkpoint of torch.save")
        if f"{self._folder}byteorder" in listed and self._member("byteorder", 6) != b"little":
            raise InputError(f"{self.path}: its numbers are big-endian; save it on a little-endian machine")
        self.root, _ = _unpickled(io.BytesIO(self._member("data.pkl", MAX_PICKLE)), self.path)

    def _member(self, name: str, limit: int) -> bytes:
        """Return a member of the archive. A compressed one, which torch.save never writes, could be of any size."""
        assert self._archive is not None
        try:
            info = self._archive.getinfo(self._folder + name)
            if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
                raise InputError(f"{self.path}: {name} in it is compressed, which torch.save never does")
            if info.file_size > limit:
                raise InputError(
                    f"{self.path}: {name} in it has {info.file_size:,} bytes, at most {limit:,} belong there"
                )
            return self._archive.read(info)
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"{self.path}: cut short or damaged at {name} ({_reason(error)})") from None

    def _open_sequence(self) -> None:
        """Read magic number, protocol, system, structure, and keys of the arrays, each of which follows its length."""
        with self.path.open("rb") as file:
            head = io.BytesIO(file.read(MAX_PICKLE))
            for expected in (LEGACY_MAGIC, LEGACY_PROTOCOL):
                if _unpickled(head, self.path)[0] != expected:
                    raise InputError(f"{self.path}: not a file of torch.save")
            system, _ = _unpickled(head, self.path)
            if not isinstance(system, dict) or system.get("little_endian") is not True:
                raise InputError(f"{self.path}: its numbers are not little-endian")
            self.root, item_sizes = _unpickled(head, self.path)
            keys, _ = _unpickled(head, self.path)
            if not isinstance(keys, list):
                raise InputError(f"{self.path}: damaged (no list of arrays)")
            position, size = head.tell(), self.path.stat().st_size
            for key in map(str, keys):
                file.seek(position)
                length = int.from_bytes(file.read(8), "little")
                self._places[key] = position + 8
                position += 8 + length * item_sizes.get(key, 0)
                if position > size:
                    raise InputError(f"{self.path}: cut short: it has {size:,} bytes, array {key} ends at {position:,}")

    def _array(self, storage: Storage) -> Tensor:
        """Return all numbers of an array, one-dimensional."""
        if storage.key not in self._arrays:
            size = storage.total * storage.dtype.itemsize
            if self._archive is not None:
                data = self._member(f"data/{storage.key}", size)
            else:
                if storage.key not in self._places:
                    raise InputError(f"{self.path}: damaged (array {storage.key} is not in it)")
                if size > self.path.stat().st_size:
                    raise InputError(f"{self.path}: cut short or damaged (array {storage.key} has {size:,} bytes)")
                with self.path.open("rb") as file:
                    file.seek(self._places[storage.key])
                    data = file.read(size)
            if len(data) != size:
                raise InputError(f"{self.path}: cut short (array {storage.key}: {len(data):,} of {size:,} bytes)")
            empty = torch.empty(0, dtype=storage.dtype)
            self._arrays[storage.key] = torch.frombuffer(bytearray(data), dtype=storage.dtype) if size else empty
        array = self._arrays[storage.key]
        if array.dtype != storage.dtype or len(array) != storage.total:
            raise InputError(f"{self.path}: damaged (array {storage.key} is used as two types)")
        return array

    def tensor(self, record: Record) -> Tensor:
        """Return the tensor of a record. Raises InputError in one line if the file does not have it."""
        try:
            while record.name in _PARAMETERS:
                record = record.arguments[0] if record.arguments else record.state[0]  # torch 0.2: in the state
            storage, offset, size, stride = record.arguments[:4]
            if record.name not in _TENSORS or not isinstance(storage, Storage):
                raise ValueError(f"{record.name} where a tensor belongs")
            for number in (offset, *size, *stride):
                _check_count(number)
            if math.prod(size) > storage.count:
                raise ValueError(f"size {list(size)} of {storage.count} numbers")
            array = self._array(storage)[storage.start : storage.start + storage.count]
            # Copied unless contiguous, so that only the size matters from here on.
            return torch.as_strided(array, tuple(size), tuple(stride), array.storage_offset() + offset).contiguous()
        except (AttributeError, LookupError, TypeError, ValueError, RuntimeError, OverflowError) as error:
            raise InputError(f"{self.path}: damaged: a tensor that it cannot hold ({_reason(error)})") from None


def is_archive(path: Path) -> bool:
    """Return True if a file begins as an archive."""
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def is_pickled(path: Path) -> bool:
    """Return True if a file begins as either format of torch.save, which no UTF-8 text can."""
    with path.open("rb") as file:
        return is_archive(path) or file.read(1) == b"\x80"
