"""The contents of a checkpoint in either format: tensors by name, and the attributes of its modules."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pairscale.errors import InputError
from train.import_checkpoint.pickles import Record, TorchFile
from train.models.config import ModelConfig

MAX_NAMES = 100_000  # modules and tensors of a model; published ones have a few hundred


@dataclass(frozen=True)
class Imported:
    """A configuration of ours and the state_dict that fits it."""

    config: ModelConfig
    weights: dict[str, Tensor]


@dataclass
class Contents:
    """Tensors, float32, by their names in a state_dict; `take` removes them, so that a rest shows another model.

    `attributes` of each module by its dotted name, "" for the model; None for a bare state_dict.
    """

    path: Path
    tensors: dict[str, Tensor]
    attributes: dict[str, dict[str, Any]] | None

    def take(self, name: str, *shape: int | None) -> Tensor:
        """Remove and return the tensor of a name and shape (None: any length). Raises InputError for any other."""
        tensor = self.tensors.pop(name, None)
        if tensor is None:
            raise InputError(f"{self.path}: has no {name}; it is not a checkpoint of this kind")
        fits = len(shape) == tensor.dim() and all(
            want in (None, got) for want, got in zip(shape, tensor.shape, strict=True)
        )
        if not fits:
            allowed = " x ".join("any" if size is None else str(size) for size in shape)
            raise InputError(f"{self.path}: {name} is {' x '.join(map(str, tensor.shape))}, must be {allowed}")
        return tensor

    def size(self, name: str) -> int:
        """Return the length of the one-dimensional tensor of a name. Raises InputError for any other."""
        tensor = self.take(name, None)
        self.tensors[name] = tensor
        return len(tensor)

    def count(self, pattern: str) -> int:
        """Return the number of tensors whose names match."""
        return sum(re.fullmatch(pattern, name) is not None for name in self.tensors)

    def drop(self, name: str) -> None:
        """Drop a tensor that scoring does not need, if there is one of this name."""
        self.tensors.pop(name, None)

    def attribute(self, module: str, name: str, kind: type, otherwise: Any = None) -> Any:
        """Return an attribute of a module, or `otherwise`. Raises InputError for one of another type."""
        value = (self.attributes or {}).get(module, {}).get(name, otherwise)
        allowed = (int, float) if kind is float else kind
        if value is not otherwise and not isinstance(value, allowed):
            raise InputError(f"{self.path}: {module or 'the model'}.{name} is {str(value)[:40]}, not a {kind.__name__}")
        return value

    def check_empty(self) -> None:
        """Raise InputError if a tensor is left, as it is another model then."""
        if self.tensors:
            names = ", ".join(list(self.tensors)[:3])
            raise InputError(f"{self.path}: {names}: part of no model that can be imported")


def read_contents(path: Path) -> Contents:
    """Read a checkpoint. Raises InputError in one line for a file that is damaged or not safe."""
    file = TorchFile(path)
    root = file.root
    attributes: dict[str, dict[str, Any]] | None = None
    if isinstance(root, Record) and root.name.endswith(".DataParallel") and isinstance(root.state, dict):
        root = (root.state.get("_modules") or {}).get("module")
    if isinstance(root, Record):
        attributes = {}
        records = _named_records(root, attributes, path)
    elif isinstance(root, dict) and all(isinstance(name, str) for name in root):
        records = {name: value for name, value in root.items() if isinstance(value, Record)}
    else:
        raise InputError(f"{path}: holds a {type(root).__name__}, must hold a model or a state_dict")
    tensors = {name.removeprefix("module."): file.tensor(record) for name, record in records.items()}
    if not tensors:
        raise InputError(f"{path}: holds neither a model nor a state_dict: no tensor under a name")
    return Contents(path, {name: tensor.to(torch.float32) for name, tensor in tensors.items()}, attributes)


def _named_records(root: Record, attributes: dict[str, dict[str, Any]], path: Path) -> dict[str, Record]:
    """Return the records of a pickled module's tensors by name as in a state_dict; add the modules' `attributes`."""
    records: dict[str, Record] = {}
    waiting = [("", root)]
    while waiting:
        name, module = waiting.pop()
        if not (isinstance(module, Record) and isinstance(module.state, dict)):
            raise InputError(f"{path}: damaged ({name or 'the whole'} is no module)")
        if len(attributes) + len(records) > MAX_NAMES:
            raise InputError(f"{path}: more than {MAX_NAMES:,} modules and tensors")
        attributes[name] = module.state
        prefix = f"{name}." if name else ""
        for group in ("_parameters", "_buffers", "_modules"):
            held = module.state.get(group) or {}
            if not isinstance(held, dict):
                raise InputError(f"{path}: damaged ({prefix}{group} is no dictionary)")
            members = {f"{prefix}{key}": value for key, value in held.items() if value is not None}
            if group == "_modules":
                waiting += members.items()
            else:
                records |= members
    return records
