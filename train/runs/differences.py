"""What tells a run apart from others of its readable name: changing a value makes another run, and this says which."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from pairscale.errors import RunError
from pairscale.sizes import written
from train.config import RunConfig
from train.runs.folder import RunFolder
from train.runs.identity import at_default

SHOWN = 4  # differing keys in one line


def beside_others(config: RunConfig) -> str | None:
    """One line for a run that begins where others of its name are; None where there are none, or it began before.

    "beside lstm_tiny-toy-word-4k-s1-44471100: model.dropout=0.0 (there 0.2)"
    """
    folder = RunFolder.of(config)
    name = folder.path.name.rpartition("-")[0]
    others = sorted(path.parent for path in folder.path.parent.glob(f"{name}-????????/config.yaml"))
    if folder.manifest.exists() or not others:
        return None
    told = {other: _differing(config, RunFolder(other)) for other in others}
    near = min(others, key=lambda other: len(told[other]))
    keys = told[near] or ["nothing that this version of pairscale knows"]
    keys = [*keys[:SHOWN], *([f"{len(keys) - SHOWN} more"] if len(keys) > SHOWN else [])]
    more = f" (and {len(others) - 1} more)" if len(others) > 1 else ""
    return f"beside {near.name}{more}: {', '.join(keys)}"


def _differing(config: RunConfig, other: RunFolder) -> list[str]:
    """ "key=value (there value)" of all that counts and is not the same in another run's config.yaml."""
    try:
        there = other.read_config()
    except RunError:
        return ["its config.yaml cannot be read"]
    differing = []
    for key, value, default in _counted(config.model.identity(config)[1], ""):
        found: Any = there
        for part in key.split("."):
            found = found[part] if isinstance(found, Mapping) and part in found else _NOTHING
        # A field that joined later is missing in older files, where it was at its default.
        if found != value and not (found is _NOTHING and default):
            differing.append(f"{key}={written(value)} (there {written(found)})")
    return differing


_NOTHING = "not set"


def _counted(value: Any, prefix: str) -> Iterator[tuple[str, Any, bool]]:
    """Dotted key, value, and whether it is at a default that is not in the digest, of all that can change a number."""
    for field in dataclasses.fields(value):
        if not field.metadata.get("digest", True):
            continue
        own = getattr(value, field.name)
        if dataclasses.is_dataclass(own):
            yield from _counted(own, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}", own, bool(field.metadata.get("added")) and at_default(field, own)
