"""Differences between a run and others of its readable name: the values that make it another run."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from pairscale.errors import RunError
from pairscale.sizes import written
from train.config import RunConfig
from train.runs.folder import RunFolder

SHOWN = 4  # differing keys in one line


def beside_others(config: RunConfig) -> str | None:
    """Return a line for a new run whose name others share, "beside RUN: KEY=VALUE (there OTHER)", else None."""
    folder = RunFolder.of(config)
    name = folder.path.name.rpartition("-")[0]
    others = sorted(path.parent for path in folder.path.parent.glob(f"{name}-????????/config.yaml"))
    if folder.manifest.exists() or not others:
        return None
    differences = {other: _differing(config, RunFolder(other)) for other in others}
    near = min(others, key=lambda other: len(differences[other]))
    keys = differences[near] or ["nothing that this version of pairscale knows"]
    keys = [*keys[:SHOWN], *([f"{len(keys) - SHOWN} more"] if len(keys) > SHOWN else [])]
    more = f" (and {len(others) - 1} more)" if len(others) > 1 else ""
    return f"beside {near.name}{more}: {', '.join(keys)}"


def _differing(config: RunConfig, other: RunFolder) -> list[str]:
    """Return "key=value (there value)" of each value of the digest that differs in another run's config.yaml."""
    try:
        there = other.read_config()
    except RunError:
        return ["its config.yaml cannot be read"]
    differing = []
    for key, value in _counted(config.model.identity(config)[1], ""):
        other_value: Any = there
        for part in key.split("."):
            other_value = other_value[part] if isinstance(other_value, Mapping) and part in other_value else _NOTHING
        if other_value != value:
            differing.append(f"{key}={written(value)} (there {written(other_value)})")
    return differing


_NOTHING = "not set"


def _counted(value: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield dotted key and value of all that can change a number."""
    for field in dataclasses.fields(value):
        if not field.metadata.get("digest", True):
            continue
        own = getattr(value, field.name)
        if dataclasses.is_dataclass(own):
            yield from _counted(own, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}", own
