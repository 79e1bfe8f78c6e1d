"""The identity of a run: the part of its configuration that can change its numbers, as a digest and in its name."""

import dataclasses
from typing import Any

from pairscale.files import sha256_json
from train.config import RunConfig


def config_digest(config: RunConfig) -> str:
    """Return the hexadecimal SHA-256 of the part of a configuration that can change the numbers of the run."""
    return sha256_json(_numbers(config.model.identity(config)[1]))


def run_id(config: RunConfig) -> str:
    """Return the readable name of a run, with 8 hex digits of its configuration's digest."""
    return "-".join([*config.model.identity(config)[0], config_digest(config)[:8]])


def at_default(field: dataclasses.Field[Any], value: Any) -> bool:
    """Return True if a value is the default of its dataclass field."""
    factory = field.default_factory
    return bool(value == (field.default if factory is dataclasses.MISSING else factory()))


def _numbers(value: Any) -> Any:
    """Return a configuration as plain data, without the fields that cannot change a number."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {field.name: _numbers(content) for field, content in fields if _counts(field, content)}
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_numbers(item) for item in value]
    return value


def _counts(field: dataclasses.Field[Any], value: Any) -> bool:
    """Return True if a field is part of a run's identity (NOT_IN_DIGEST, ADDED_LATER: pairscale/command/schemas.py)."""
    if field.metadata.get("added", False):
        return not at_default(field, value)
    return bool(field.metadata.get("digest", True))
