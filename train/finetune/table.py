"""Tables of texts with labels: JSON lines, which a model's tokenizer turns into inputs and batches."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from corpora.sources.lines import lines
from corpora.tokenizers import EOS, PAD, SPECIAL_TOKENS, Tokenizer
from pairscale.command.schemas import nearest
from pairscale.errors import InputError, first_few
from pairscale.files import sha256_file
from train.config import TaskConfig

Label = int | str
Integers = npt.NDArray[np.int64]
_COLUMN = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True)
class Table:
    """The rows of a file: one or two texts each, and the label."""

    path: Path
    texts: list[tuple[str, ...]]
    labels: list[Label]
    digest: str  # SHA-256 of the file

    def classes_of(self, labels: Sequence[Label]) -> Integers:
        """Return the index in `labels` of each row's label (N,). Raises InputError for a label that is not there."""
        if unknown := [label for label in self.labels if label not in labels]:
            raise InputError(
                f"{self.path}: the label {unknown[0]!r} is not in the table to train on, whose labels are "
                f"{first_few([repr(label) for label in labels], 10)}. Correct it, or use another table."
            )
        places = {label: place for place, label in enumerate(labels)}
        return np.array([places[label] for label in self.labels], dtype=np.int64)


class Batch(NamedTuple):
    """Inputs (B, T) int64, padded on the right, the place in each that the classifier reads (B,), and classes (B,)."""

    tokens: Tensor
    places: Tensor
    classes: Tensor


@dataclass(frozen=True)
class Items:
    """The rows of a table as a model reads them."""

    ids: list[list[int]]
    classes: Tensor  # (N,) int64
    cut: int  # number of rows whose texts were too long
    masked: bool  # for a masked model, whose classifier reads the first token instead of the last

    def __len__(self) -> int:
        return len(self.ids)

    def batch(self, rows: Sequence[int] | Integers) -> Batch:
        """Return the batch of these rows."""
        chosen = [self.ids[row] for row in rows]
        length = max(map(len, chosen))
        padding = PAD if self.masked else EOS
        tokens = torch.tensor([ids + [padding] * (length - len(ids)) for ids in chosen])
        places = torch.tensor([0 if self.masked else len(ids) - 1 for ids in chosen])
        return Batch(tokens, places, self.classes[torch.as_tensor(rows)])


def read_table(path: str, task: TaskConfig) -> Table:
    """Read the rows of a table. Raises InputError if it is missing, damaged or empty, or lacks a column."""
    if path.startswith("None/"):  # ${paths.data} is not set
        raise InputError(
            f"task={task.name}: set PAIRSCALE_DATA to the folder that contains {path.removeprefix('None/')}, or give "
            "task.train=FILE and task.valid=FILE."
        )
    file = Path(path).expanduser()
    if not file.is_file():
        raise InputError(f"{file}: file not found. Give the tables with task.train=FILE and task.valid=FILE.")
    texts: list[tuple[str, ...]] = []
    labels: list[Label] = []
    for number, line in lines(file):
        if not line.strip():
            continue
        where = f"{file}: line {number}"
        try:
            row = json.loads(line)
        except (RecursionError, ValueError) as error:
            raise InputError(f"{where}: this line is not JSON ({error}).") from None
        if not isinstance(row, dict):
            raise InputError(f"{where}: must be a JSON object whose keys are columns.")
        label = _cell(row, task.label, where, f"task.label={task.label}")
        if not isinstance(label, (int, str)):
            raise InputError(f"{where}: the label {label!r:.40} must be a whole number or a name.")
        if labels and isinstance(label, str) != isinstance(labels[0], str):
            raise InputError(f"{where}: the label {label!r:.40} is of another type than {labels[0]!r:.40} before it.")
        templates = [("task.first", task.first), ("task.second", task.second)]
        texts.append(tuple(_filled(text, row, where, key) for key, text in templates if text is not None))
        labels.append(label)
    if not texts:
        raise InputError(f"{file}: this table has no rows.")
    return Table(file, texts, labels, sha256_file(file))


def _filled(template: str, row: dict[str, Any], where: str, key: str) -> str:
    return _COLUMN.sub(lambda match: str(_cell(row, match[1], where, f"{key}={template}")), template)


def _cell(row: dict[str, Any], column: str, where: str, used: str) -> Any:
    if row.get(column) is None:
        raise InputError(f"{where}: has no value for '{column}', which {used} uses. {nearest(column, row)}")
    return row[column]


def encode(table: Table, classes: Integers, tokenizer: Tokenizer, masked: bool, longest: int) -> Items:
    """Return a table as a model reads it.

    A text follows an `<eos>`, as in training. So does a second text, and for a masked model another one ends the input.
    The tokens are those of the tokenizer.json in the model's folder. Longer inputs than `longest` tokens are cut as
    transformers does (truncation="longest_first").
    """
    added = SPECIAL_TOKENS if masked else 0  # tokens of the model with lower ids than the tokenizer's
    ids, cut = [], 0
    for texts in table.texts:
        parts = [[token + added for token in tokenizer.encode_raw(text)[0]] for text in texts]
        room = longest - len(parts) - masked
        limits = _limits([len(part) for part in parts], room)
        cut += sum(map(len, parts)) > room
        row = [token for part, limit in zip(parts, limits, strict=True) for token in (EOS + added, *part[:limit])]
        ids.append([*row, EOS + added] if masked else row)
    return Items(ids, torch.as_tensor(classes), cut, masked)


def _limits(lengths: list[int], room: int) -> list[int]:
    """Return how many tokens of one or two texts fit into `room`. The longer text is cut first, then both alike."""
    if sum(lengths) <= room:
        return lengths
    if len(lengths) == 1:
        return [room]
    shorter = min(*lengths, room // 2)
    limits = [shorter, room - shorter]
    return limits if lengths[0] <= lengths[1] else limits[::-1]
