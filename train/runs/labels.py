"""Name curves and interventions so that runs can be told apart, and note differences that names don't show.

A curve is named after its model and each value that differs between the runs of this model. The name of a tokenizer,
corpus or recipe implies its values, which appear only if they differ between runs with the same one. Size and seed are
the axes of every study and never appear in a name. This module does not import pandas.
"""

import dataclasses
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from corpora.config import CONTROL, KEEP_ONLY, NONE, REMOVE, REPLACE
from pairscale.errors import RunError
from pairscale.files import sha256_json
from pairscale.sizes import format_size, parse_size, written
from train.config import RunConfig
from train.runs.folder import RunFolder

FULL_DOSE = "1"  # keep all sentences of the construction, so that the text does not change
FULL_TEXT = "full text"  # name of runs without an intervention in a study that has interventions
LISTED = 4  # how many differing keys a message lists
_SIZE_AND_SEEDS = {"seed", "sample.size", "sample.seed", "model.seed", "recipe.seed"}
_EVERYWHERE = {"tokenizer.name", "corpus.name"}  # if they differ anywhere in a study, all its names include them
_FIRST = ("model.name", "tokenizer.name", "corpus.name", "corpus.reference", "recipe.name", "precision")
_BUDGET = "recipe.budget."
_SIZE = "size"
_ACTIONS = {REMOVE: "{} removed", KEEP_ONLY: "only {}", REPLACE: "{} replaced", CONTROL: "matched control for {}"}

Row = Mapping[str, str]  # the values of one run as text, by key


@dataclasses.dataclass(frozen=True)
class Intervention:
    """The change to a run's training text. The defaults describe the full text.

    `settings` contains the annotation layer, the seed, and the digest of the rewriting rules, by key. Default values,
    and rules that are not used, are "null".
    """

    filter: str = ""  # name of the filter
    action: str = NONE
    dose: str = FULL_DOSE  # share of the construction's sentences that stay, as a fraction
    definition: str = ""  # digest of what the filter searches for
    settings: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "Intervention":
        """Return the intervention in a resolved configuration, or the defaults if there is none."""
        ablate, of = (config.get("ablate") or {}), (config.get("filter") or {})
        action, dose = ablate.get("action", NONE), str(ablate.get("dose", "0"))
        if action == NONE or dose == FULL_DOSE or not of:
            return cls()
        settings = {f"ablate.{key}": written(ablate.get(key)) for key in ("layer", "seed")}
        settings["filter.rewrite"] = sha256_json(of.get("rewrite"))[:8] if action == REPLACE else "null"
        definition = sha256_json([of.get("patterns") or of.get("regex"), of.get("without") or None])[:8]
        return cls(str(of.get("name")), action, dose, definition, tuple(settings.items()))

    def name(self, construction: str) -> str:
        """Name the intervention, such as "npi removed", "matched control for npi" or "npi 1/8 kept".

        `construction` is the name of its filter that `constructions` returns.
        """
        if self.action == NONE:
            return FULL_TEXT
        if self.dose == "0" or self.action == KEEP_ONLY:
            return _ACTIONS[self.action].format(construction)
        dosed = construction if self.action == REMOVE else _ACTIONS[self.action].format(construction)
        return f"{dosed} {self.dose} kept"


def constructions(interventions: Mapping[str, Intervention]) -> tuple[dict[str, str], list[str]]:
    """Name the filter of each run's intervention ("" for the full text), and return notes for the reader.

    If filters with the same name search for different things, each name is followed by the filter's digest.

    Args:
        interventions: the intervention of each run, by run id.

    Returns:
        The name of each run's filter, by run id, and notes on filters that share a name.
    """
    definitions = defaultdict(set)
    for of in interventions.values():
        definitions[of.filter].add(of.definition)
    several = {name: sorted(digests) for name, digests in definitions.items() if len(digests) > 1}
    names = {
        run: f"{of.filter} ({of.definition})" if of.filter in several else of.filter
        for run, of in interventions.items()
    }
    return names, [
        f"{len(digests)} filters called {name} search for different things (digests {', '.join(digests)}), so they "
        "are not compared."
        for name, digests in several.items()
    ]


def _intervention_names(interventions: Mapping[str, Intervention], filter_names: Mapping[str, str]) -> dict[str, str]:
    """Return the name of each run's intervention, by run id, or "" for all runs if no text was changed.

    If interventions with the same name differ in layer, seed or rules, these values are added to the name.
    """
    names = {run: of.name(filter_names[run]) for run, of in interventions.items()}
    if set(names.values()) <= {FULL_TEXT}:
        return dict.fromkeys(names, "")
    settings: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for run, of in interventions.items():
        settings[names[run]] |= set(of.settings)
    keys = {name: [key for key, _ in of] for name, of in settings.items()}
    return {
        run: ", ".join([name, *(f"{key}={of}" for key, of in interventions[run].settings if keys[name].count(key) > 1)])
        for run, name in names.items()
    }


@dataclasses.dataclass(frozen=True)
class CurveNames:
    """The names of curves."""

    names: dict[str, str]  # name of each run's curve, by run id
    bases: dict[str, str]  # the same names without the intervention
    notes: list[str]  # differences that the names don't show


def name_curves(configs: Mapping[str, Mapping[str, Any]]) -> CurveNames:
    """Name the curve of each run, such as "lstm_tiny, dropout=0.2, npi_only removed".

    A key is shortened to its last part if that is unique. A recipe's value that depends only on the size, such as a
    budget that grows with the text, does not split a curve. It is noted instead, and so are differences between models
    that names don't show.

    Args:
        configs: the resolved configuration of each run, by run id.
    """
    rows: dict[str, Row] = {}
    runs_by_model: dict[str, dict[str, Row]] = defaultdict(dict)
    for run, config in configs.items():
        row = {key: written(value) for key, value in flatten(config).items() if _makes_a_curve(key)}
        rows[run] = row | {_SIZE: format_size(parse_size(config["sample"]["size"]))}
        runs_by_model[row["model.name"]][run] = rows[run]
    keys = sorted({key for row in rows.values() for key in row} - {"model.name", _SIZE}, key=_place)
    named_keys: dict[str, list[str]] = defaultdict(list)
    values_by_key: dict[str, set[str]] = defaultdict(set)
    for (model, model_runs), key in itertools.product(runs_by_model.items(), keys):
        if _apart(key, rows if key in _EVERYWHERE else model_runs):
            if key.startswith("recipe.") and key != "recipe.name" and _follows_size(key, model_runs, named_keys[model]):
                values_by_key[key].update(_values(key, model_runs))
            else:
                named_keys[model].append(key)
    prefixes = _prefixes([key for key in keys if any(key in of for of in named_keys.values())])
    bases = {}
    for run, values in rows.items():
        model = values["model.name"]
        parts = {key: values.get(key, "null") for key in named_keys[model]}
        # A budget in words has no epochs, and vice versa.
        texts = [prefixes[key] + of for key, of in parts.items() if of != "null" or not key.startswith(_BUDGET)]
        bases[run] = ", ".join([model, *texts])
    notes = [f"{key} differs between sizes of one curve: {', '.join(sorted(of))}." for key, of in values_by_key.items()]
    if differences := "; ".join(filter(None, (_hidden(key, rows, bases, named_keys) for key in keys))):
        notes.append(f"Curves differ in more than their names: {differences}.")
    interventions = {run: Intervention.of(config) for run, config in configs.items()}
    filter_names, further = constructions(interventions)
    intervention_names = _intervention_names(interventions, filter_names)
    names = {run: ", ".join(filter(None, (base, intervention_names[run]))) for run, base in bases.items()}
    return CurveNames(names, bases, notes + further)


def _apart(key: str, rows: Mapping[str, Row], *also: str) -> list[set[str]]:
    """Return the sets of runs that differ in `key` although they share the name that usually implies its value.

    For example, a recipe's name implies its learning rate. Runs in a set also have equal values of the keys in `also`.
    """
    group = key.partition(".")[0]
    name = f"{group}.name" if group in ("model", "tokenizer", "corpus", "recipe") else ""
    if name == key:
        name = "model.name" if group == "recipe" else ""
    groups: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for run, row in rows.items():
        groups[tuple(row.get(one, "") for one in (name, *also))].add(run)
    return [of for of in groups.values() if len({rows[run].get(key, "null") for run in of}) > 1]


def _follows_size(key: str, rows: Mapping[str, Row], named_keys: Sequence[str]) -> bool:
    """Return True if `key` differs between runs with equal names, but never between such runs of the same size."""
    return bool(_apart(key, rows, *named_keys)) and not _apart(key, rows, *named_keys, _SIZE)


def _hidden(key: str, rows: Mapping[str, Row], names: Mapping[str, str], named_keys: Mapping[str, list[str]]) -> str:
    """Describe how the values of a key differ between names that don't show it, or return "" if the names do.

    A name implies all its values, except for the budget of a recipe.
    """
    having = {run: row for run, row in rows.items() if key in row}
    values_by_name: dict[str, set[str]] = defaultdict(set)
    for run, row in having.items():
        values_by_name[names[run]].add(row[key])
    naming_runs = {run for run, row in having.items() if key in named_keys[row["model.name"]]}
    differing = [set(having)] if key.startswith(_BUDGET) and len(_values(key, having)) > 1 else _apart(key, having)
    if (
        all(naming_runs.issuperset(runs) for runs in differing)
        or len({frozenset(of) for of in values_by_name.values()}) == 1
    ):
        return ""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, values in values_by_name.items():
        groups[" and ".join(in_order(values))].append(name)
    return f"{key} is " + ", ".join(f"{value} ({' | '.join(in_order(groups[value]))})" for value in in_order(groups))


def _values(key: str, rows: Mapping[str, Row]) -> list[str]:
    return sorted({row.get(key, "null") for row in rows.values()})


def _place(key: str) -> tuple[int, str]:
    return _FIRST.index(key) if key in _FIRST else len(_FIRST), key


def _prefixes(keys: list[str]) -> dict[str, str]:
    """Return the prefix of each key's value. This is the key's last part if unique, and "" for tokenizer and corpus."""
    prefixes = {}
    for key in keys:
        last = key.rpartition(".")[2]
        is_unique = sum(other.rpartition(".")[2] == last for other in keys) == 1 and last != "seed"
        prefixes[key] = f"{last if is_unique else key}="
    return prefixes | dict.fromkeys(_EVERYWHERE, "") | {"recipe.name": "recipe="}


def _makes_a_curve(key: str) -> bool:
    is_axis = key in _SIZE_AND_SEEDS or key.partition(".")[0] in ("filter", "ablate")
    return not is_axis and _changes_numbers(key)


def describe_nearest_run(config: RunConfig) -> str | None:
    """Describe how a new run differs from the nearest run that shares its name, or return None if none does."""
    folder = RunFolder.of(config)
    name = folder.path.name.rpartition("-")[0]
    others = sorted(path.parent for path in folder.path.parent.glob(f"{name}-????????/config.yaml"))
    if folder.manifest.exists() or not others:
        return None
    here = dataclasses.asdict(config.of_run())
    differences = {other: _differences(here, other) for other in others}
    near = min(others, key=lambda other: len(differences[other]))
    keys = differences[near] or ["nothing that this version of pairscale knows"]
    keys = [*keys[:LISTED], *([f"{len(keys) - LISTED} more"] if len(keys) > LISTED else [])]
    more = f" ({len(others) - 1} more runs share this name)" if len(others) > 1 else ""
    return f"differs from {near.name}{more} in {', '.join(keys)}"


def _differences(config: Mapping[str, Any], other: Path) -> list[str]:
    """Return "key=value (there VALUE)" for each value that can change results and differs in the run `other`."""
    try:
        there = flatten(RunFolder(other).read_config())
    except RunError:
        return ["unknown values (its config.yaml can't be read)"]
    return [
        f"{key}={written(value)} (there {written(there[key]) if key in there else 'not set'})"
        for key, value in flatten(config).items()
        if _changes_numbers(key) and (key not in there or there[key] != value)
    ]


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a nested configuration as a flat one with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def in_order(names: Iterable[str]) -> list[str]:
    """Sort names alphabetically, but sort numbers in them by size: memory=64 before memory=128."""

    def parts(name: str) -> list[tuple[float, str]]:
        return [
            (float(part), "") if part[:1].isdigit() else (math.inf, part) for part in re.split(r"(\d+(?:\.\d+)?)", name)
        ]

    return sorted(set(names), key=parts)


def _changes_numbers(key: str) -> bool:
    """Return True if a key of a run's configuration can change its results."""
    fields = {field.name for field in dataclasses.fields(RunConfig)}
    return key.partition(".")[0] in fields and not any(f"{key}.".startswith(f"{part}.") for part in _outside_digest())


@cache
def _outside_digest() -> frozenset[str]:
    """Return the keys that are not part of a run's digest, for all types that a group may have."""
    return frozenset(_outside(RunConfig, ""))


def _outside(config: type[Any], prefix: str) -> Iterator[str]:
    types = get_type_hints(config)
    for field in dataclasses.fields(config):
        key, group = f"{prefix}{field.name}", types[field.name]
        if not field.metadata.get("digest", True):
            yield key
        elif isinstance(group, type) and dataclasses.is_dataclass(group):
            yield from _outside(group, f"{key}.")
    for derived in config.__subclasses__() if prefix else ():
        yield from _outside(derived, prefix)
