"""The values that tell the runs of a study apart, and the names of their curves. Imports no pandas.

Size and seed are the axes of every study; any other key that differs (model, tokenizer, dropout) makes another group.
"""

import dataclasses
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, get_type_hints

from pairscale.sizes import format_size, parse_size, written
from train.config import RunConfig
from train.runs.interventions import KEYS, intervention_names, intervention_of

_SIZE_AND_SEEDS = frozenset({"seed", "sample.size", "sample.seed", "model.seed", "recipe.seed"})
_ALWAYS = ("tokenizer.name", "corpus.name")  # in the name wherever they differ
_BUDGET = "recipe.budget."
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

    A name is the model, then every value that differs between the runs of this model, and tokenizer and corpus wherever
    they differ. What follows from such a name is left out: the size of the vocabulary, where tokenizers differ. A key
    appears as its last part if that is unique: "dropout=0.2" for model.dropout. A key of the recipe that depends on the
    size alone (a budget that grows with the text) does not divide a curve; it is noted, and so are differences between
    models that no name shows.
    """
    table = {run: {key: written(value) for key, value in flatten(config).items()} for run, config in configs.items()}
    keys = _axes(dict.fromkeys(key for row in table.values() for key in row))
    keys.sort(key=lambda key: (_NAMES.index(key) if key in _NAMES else len(_NAMES), key))
    values = {key: {run: row.get(key, "null") for run, row in table.items()} for key in keys}
    sizes = {run: format_size(parse_size(row["sample.size"])) for run, row in table.items()}
    groups: dict[str, tuple[str, ...]] = {run: (row["model.name"],) for run, row in table.items()}
    following, notes = set(), []
    for key in keys:
        if not _vary(values[key], groups.items()):
            continue
        of_size = ((run, (*group, sizes[run])) for run, group in groups.items())
        if key.startswith("recipe.") and key != "recipe.name" and not _vary(values[key], of_size):
            notes.append(f"{key} differs between sizes of one curve: {', '.join(sorted(set(values[key].values())))}.")
            following.add(key)
            continue
        groups = {run: (*group, values[key][run]) for run, group in groups.items()}
    runs_of: dict[str, list[str]] = {}
    for run, row in table.items():
        runs_of.setdefault(row["model.name"], []).append(run)
    shown = {
        model: [key for key in keys if key not in following and _is_named(key, values, runs)]
        for model, runs in runs_of.items()
    }
    short = _short([key for key in keys if any(key in of for of in shown.values())])
    names = {
        run: ", ".join(
            [model, *(short[key] + values[key][run] for key in shown[model] if _says(key, values[key][run]))]
        )
        for model, runs in runs_of.items()
        for run in runs
    }
    hidden = []
    for key in keys:
        having = {run: name for run, name in names.items() if key in table[run]}
        told = {run for model, runs in runs_of.items() if key in shown[model] for run in runs}
        hidden.append(_hidden(key, values, having, told))
    differences = "; ".join(filter(None, hidden))
    return names, notes + ([f"Curves differ in more than their names: {differences}."] if differences else [])


def _is_named(key: str, values: Mapping[str, Mapping[str, str]], runs: Sequence[str]) -> bool:
    """Return True if a key is in the names of the runs of one model: it varies, and does not follow from a name."""
    if key in _ALWAYS:
        return len(set(values[key].values())) > 1
    return any(len({values[key][run] for run in of}) > 1 for of in _by_name(key, values, runs))


def _says(key: str, value: str) -> bool:
    """Return False for a null of the budget: a budget of words has no epochs, and the other way round."""
    return value != "null" or not key.startswith(_BUDGET)


def _by_name(key: str, values: Mapping[str, Mapping[str, str]], runs: Iterable[str]) -> Collection[list[str]]:
    """Return runs in groups of one name that stands for a key: a recipe's for its rate, a model's for its recipe."""
    name = "model.name" if key == "recipe.name" else f"{key.partition('.')[0]}.name"
    of = values.get(name, {}) if name in _STAND_FOR else {}
    groups: dict[str, list[str]] = {}
    for run in runs:
        groups.setdefault(of.get(run, ""), []).append(run)
    return groups.values()


def _hidden(key: str, values: Mapping[str, Mapping[str, str]], names: Mapping[str, str], told: set[str]) -> str:
    """Return a key's values where names do not show how they differ, else "".

    names: of the runs that have the key. told: runs whose names show it. What a name stands for follows from it, but
    for the budget of a recipe.
    """
    of_group: dict[str, set[str]] = {}
    for run, name in names.items():
        of_group.setdefault(name, set()).add(values[key][run])
    compared = [list(names)] if key.startswith(_BUDGET) else _by_name(key, values, names)
    differing = [runs for runs in compared if len({values[key][run] for run in runs}) > 1]
    if all(told.issuperset(runs) for runs in differing) or len({frozenset(of) for of in of_group.values()}) == 1:
        return ""
    groups: dict[str, list[str]] = {}
    for name, group in of_group.items():
        groups.setdefault(" and ".join(in_order(group)), []).append(name)
    return f"{key} is " + ", ".join(f"{value} ({' | '.join(in_order(groups[value]))})" for value in in_order(groups))


def in_order(names: Iterable[str]) -> list[str]:
    """Return names in alphabetical order, but numbers in them by size: memory=64 before memory=128."""

    def parts(name: str) -> list[tuple[float, str]]:
        return [
            (float(part), "") if part[:1].isdigit() else (math.inf, part) for part in re.split(r"(\d+(?:\.\d+)?)", name)
        ]

    return sorted(set(names), key=parts)


def _short(keys: list[str]) -> dict[str, str]:
    """Return what precedes the value of each key: its last part if that is unique; nothing for tokenizer and corpus."""
    short = {}
    for key in keys:
        last = key.rpartition(".")[2]
        alone = sum(other.rpartition(".")[2] == last for other in keys) == 1 and last != "seed"
        short[key] = "recipe=" if key == "recipe.name" else "" if last == "name" else f"{last if alone else key}="
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
