"""The values that tell the runs of a study apart, and the names of their curves. Imports no pandas.

Size and seed are the axes of every study; any other key that differs (model, tokenizer, dropout) makes another group.
"""

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_type_hints

from pairscale.sizes import format_size, parse_size, written
from train.config import RunConfig
from train.runs.interventions import KEYS, intervention_names, intervention_of

_SIZE_AND_SEEDS = frozenset({"seed", "sample.size", "sample.seed", "model.seed", "recipe.seed"})
_ALWAYS = ("tokenizer.name", "corpus.name")  # in the name wherever they differ
_STAND_FOR = ("model.name", "tokenizer.name", "corpus.name", "recipe.name")
_NAMES = ("model.name", "tokenizer.name", "corpus.name", "corpus.reference", "recipe.name", "precision")


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a nested configuration by dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def labels(configs: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, str], list[str]]:
    """Return the name of each run's group, by run id, and notes: what `base_labels` returns, and the intervention.

    "lstm_tiny, npi_only removed" beside "lstm_tiny, full text" (train/runs/interventions.py).
    """
    bases, notes = base_labels(configs)
    interventions, further = intervention_names({run: intervention_of(config) for run, config in configs.items()})
    return {run: ", ".join(filter(None, (bases[run], interventions[run]))) for run in bases}, notes + further


def base_labels(configs: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, str], list[str]]:
    """Return the name of each run's group without its intervention, by run id, and notes.

    A name is the model, then every value that differs between runs of the same name so far, and tokenizer and corpus
    wherever they differ. A key appears as its last part if that is unique: "dropout=0.2" for model.dropout. A key of
    the recipe that depends on the size alone (a budget that grows with the text) does not divide a curve; it is noted,
    and so are differences between groups that other keys divide already.
    """
    table = {run: {key: written(value) for key, value in flatten(config).items()} for run, config in configs.items()}
    keys = _axes(dict.fromkeys(key for row in table.values() for key in row))
    values = {key: {run: row.get(key, "null") for run, row in table.items()} for key in keys}
    sizes = {run: format_size(parse_size(row["sample.size"])) for run, row in table.items()}
    names = {run: [row["model.name"]] for run, row in table.items()}
    chosen, notes = [], []
    for key in sorted(keys, key=lambda key: (_NAMES.index(key) if key in _NAMES else len(_NAMES), key)):
        of_name = [(run, () if key in _ALWAYS else tuple(name)) for run, name in names.items()]
        if not _vary(values[key], of_name):
            continue
        of_size = ((run, (*name, sizes[run])) for run, name in names.items())
        if key.startswith("recipe.") and key != "recipe.name" and not _vary(values[key], of_size):
            notes.append(f"{key} differs between sizes of one curve: {', '.join(sorted(set(values[key].values())))}.")
            continue
        chosen.append(key)
        for run, name in names.items():
            name.append(values[key][run])
    short = _short(chosen)
    had = {(row["model.name"], key) for row in table.values() for key in row}
    called = {
        run: ", ".join(
            [
                name[0],
                *(short[key] + value for key, value in zip(chosen, name[1:], strict=True) if _has(had, name[0], key)),
            ]
        )
        for run, name in names.items()
    }
    rest = [key for key in keys if key not in chosen and all(key in row for row in table.values())]
    unnamed = [text for key in rest if (text := _unnamed(key, values, called))]
    return called, notes + ([f"Curves differ in more than their names: {'; '.join(unnamed)}."] if unnamed else [])


def _unnamed(key: str, values: Mapping[str, Mapping[str, str]], names: Mapping[str, str]) -> str:
    """Return a key's values that no name shows; "" if they are equal, or names imply them (never the budget)."""
    of_group: dict[str, set[str]] = {}
    for run, name in names.items():
        of_group.setdefault(name, set()).add(values[key][run])
    if len({frozenset(group) for group in of_group.values()}) == 1:
        return ""
    whose = "model.name" if key == "recipe.name" else f"{key.partition('.')[0]}.name"
    if key.startswith("recipe.budget."):
        whose = ""
    if (
        whose in _STAND_FOR
        and whose in values
        and not _vary(values[key], ((r, (v,)) for r, v in values[whose].items()))
    ):
        return ""
    groups: dict[str, list[str]] = {}
    for name, group in of_group.items():
        groups.setdefault(" and ".join(in_order(group)), []).append(name)
    return f"{key} is " + ", ".join(f"{value} ({' | '.join(in_order(groups[value]))})" for value in in_order(groups))


def _has(had: set[tuple[str, str]], model: str, key: str) -> bool:
    """Return True if a model has a key: n-gram models have no dropout."""
    return not key.startswith("model.") or (model, key) in had


def in_order(names: Iterable[str]) -> list[str]:
    """Return names in alphabetical order, but numbers in them by size: memory=64 before memory=128."""

    def parts(name: str) -> list[tuple[float, str]]:
        return [
            (float(part), "") if part[:1].isdigit() else (math.inf, part) for part in re.split(r"(\d+(?:\.\d+)?)", name)
        ]

    return sorted(set(names), key=parts)


def _short(keys: list[str]) -> dict[str, str]:
    """Return what precedes the value of each key: nothing for a name, else the last part of the key if it is unique."""
    short = {}
    for key in keys:
        last = key.rpartition(".")[2]
        alone = sum(other.rpartition(".")[2] == last for other in keys) == 1 and last != "seed"
        short[key] = "" if last == "name" else f"{last if alone else key}="
    return short


def _vary(values: Mapping[str, str], groups: Iterable[tuple[str, tuple[str, ...]]]) -> bool:
    """Return True if runs of one group differ in a value."""
    seen: dict[tuple[str, ...], str] = {}
    return any(seen.setdefault(group, values[run]) != values[run] for run, group in groups)


def _axes(keys: Iterable[str]) -> list[str]:
    """Return the keys that can make another curve: those of a run that can change a number, without size and seeds."""
    fields = {field.name for field in dataclasses.fields(RunConfig)}
    outside = set(_outside_digest(RunConfig))
    return [
        key
        for key in keys
        if key not in _SIZE_AND_SEEDS
        and key.partition(".")[0] in fields
        and key.partition(".")[0] not in KEYS
        and not any(key == part or key.startswith(f"{part}.") for part in outside)
    ]


def _outside_digest(config: type[Any], prefix: str = "") -> Iterator[str]:
    """Yield the keys outside a run's digest, of all configurations that a group may have."""
    types = get_type_hints(config)
    for field in dataclasses.fields(config):
        key, group = f"{prefix}{field.name}", types[field.name]
        if not field.metadata.get("digest", True):
            yield key
        elif isinstance(group, type) and dataclasses.is_dataclass(group):
            yield from _outside_digest(group, f"{key}.")
    for derived in config.__subclasses__() if prefix else ():
        yield from _outside_digest(derived, prefix)
