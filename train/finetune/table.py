"""Tables of texts with labels: JSON lines, which a model's tokenizer turns into inputs and batches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from corpora.sources.lines import lines
from corpora.tokenizers import EOS, PAD, SPECIAL_TOKENS
from pairscale.command.schemas import nearest
from pairscale.errors import ConfigError, InputError, first_few
from pairscale.schema import parse_json
from train.config import TaskConfig
from train.finetune.pretrained import PretrainedModel
from train.runs.model_folder import LoadedModel

Row = tuple[str, str, str]  # first text, second text ("" if the task has none), label
_COLUMN = re.compile(r"\{([^{}]+)\}")


class Batch(NamedTuple):
    """Inputs (B, T) int64, padded on the right, the place of the last token of each (B,), and classes (B,)."""

    tokens: Tensor
    places: Tensor
    classes: Tensor


@dataclass(frozen=True)
class Items:
    """The rows of a table as a model reads them."""

    ids: list[list[int]]
    classes: Tensor  # (N,) int64
    cut: int  # number of rows whose texts were too long
    padding: int

    def batch(self, rows: Sequence[int]) -> Batch:
        """Return the batch of these rows."""
        chosen = [self.ids[row] for row in rows]
        length = max(map(len, chosen))
        tokens = torch.tensor([ids + [self.padding] * (length - len(ids)) for ids in chosen])
        places = torch.tensor([len(ids) - 1 for ids in chosen])
        return Batch(tokens, places, self.classes[rows])


def read_table(path: str, task: TaskConfig) -> list[Row]:
    """Return the rows of a table. Raises InputError if it is missing or damaged, or lacks a value."""
    if not Path(path).is_file():
        folder = "set PAIRSCALE_DATA to the folder that contains it, or " if path.startswith("None/") else ""
        remedy = f"To fine-tune, {folder}give the tables with task.train=FILE and task.valid=FILE."
        raise InputError(f"{path.removeprefix('None/')}: this file does not exist. {remedy}")
    table = []
    for number, line in lines(Path(path)):
        where = f"{path}: line {number}"
        row = parse_json(line, dict[str, Any], where, InputError, "correct or remove this line")
        label = _cell(row, task.label, where)
        if not isinstance(label, (int, str)) or isinstance(label, bool):
            raise InputError(f"{where}: the label {label!r:.40} must be a whole number or a name.")
        fill = partial(_COLUMN.sub, lambda match, row=row, where=where: str(_cell(row, match[1], where)))
        table.append((fill(task.first), fill(task.second or ""), str(label)))
        if not (table[-1][0].strip() and (task.second is None or table[-1][1].strip())):
            raise InputError(f"{where}: there is an empty text. Remove this line, or write a text.")
    if not table:
        raise InputError(f"{path}: this table has no rows. Write one JSON object per line.")
    return table


def _cell(row: dict[str, Any], column: str, where: str) -> Any:
    if column not in row:
        raise InputError(f"{where}: there is no value for the task's column '{column}'. {nearest(column, row)}")
    if row[column] is None or isinstance(row[column], (list, dict)):
        raise InputError(f"{where}: the value of '{column}' must be a text or a number, not {row[column]!r:.40}.")
    return row[column]


def labels_of(task: TaskConfig, train: Sequence[Row], valid: Sequence[Row]) -> list[str]:
    """Return the labels of a task in order. Raises InputError or ConfigError if the tables don't fit the task."""
    labels = sorted({row[2] for row in train})
    if unknown := sorted({row[2] for row in valid}.difference(labels)):
        raise InputError(
            f"{task.valid}: the label '{unknown[0]}' is not in {task.train}, whose labels are {first_few(labels, 10)}."
        )
    if len(labels) < 2 or (len(labels) > 2 and task.metric == "f1"):
        remedy = "Use task.metric=accuracy or mcc." if len(labels) > 2 else "At least two are needed."
        raise ConfigError(f"{task.train}: the number of different labels is {len(labels)}. {remedy}")
    if len(train) < task.batch or not valid:
        raise ConfigError(
            f"{task.train} has {len(train)} rows, and {task.valid} has {len(valid)}. At least task.batch={task.batch} "
            "and 1 are needed."
        )
    return labels


def encode(
    table: Sequence[Row], labels: Sequence[str], loaded: LoadedModel | PretrainedModel, task: TaskConfig
) -> Items:
    """Return a table as a model reads it: with the tokens of the tokenizer.json in the model's folder.

    Each text follows an `<eos>`, as in training. For a masked model, another one ends the input. Pretrained models read
    the special tokens that their tokenizers add, as in BabyLM's pipeline (GPT-2's adds none). Inputs that are longer
    than `task.tokens`, or than the model can read, are cut as transformers does (truncation="longest_first"). Raises
    InputError if a pretrained model's tokenizer finds no tokens in a row.
    """
    classes = torch.tensor([labels.index(row[2]) for row in table])
    longest, masked = min(task.tokens, loaded.model.positions or task.tokens), loaded.masked
    if isinstance(loaded, PretrainedModel):
        texts = [[row[place] for row in table] for place in range(1 if task.second is None else 2)]
        cut = sum(len(ids) > longest for ids in loaded.tokenizer(*texts, verbose=False)["input_ids"])
        ids = loaded.tokenizer(*texts, truncation="longest_first", max_length=longest)["input_ids"]
        if [] in ids:
            raise InputError(f"Row {ids.index([]) + 1} of a table has no tokens. Remove rows with empty texts.")
        return Items(ids, classes, cut, loaded.model.pad or 0)
    added = SPECIAL_TOKENS if masked else 0  # tokens with lower ids than the tokenizer's
    room = longest - (1 if task.second is None else 2) - masked
    ids, cut = [], 0
    for row in table:
        first, second = ([token + added for token in loaded.tokenizer.encode_raw(text)[0]] for text in row[:2])
        if len(first) + len(second) > room:
            cut += 1
            shorter = min(len(first), len(second), room // 2)
            limits = (shorter, room - shorter) if len(first) <= len(second) else (room - shorter, shorter)
            first, second = first[: limits[0]], second[: limits[1]]
        eos = [EOS + added]
        ids.append(eos + first + (eos + second if task.second is not None else []) + (eos if masked else []))
    return Items(ids, classes, cut, PAD if masked else EOS)
