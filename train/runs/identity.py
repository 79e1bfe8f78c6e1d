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


def _numbers(value: Any) -> Any:
    """Return a configuration as plain data, without the fields that cannot change a number."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (field for field in dataclasses.fields(value) if field.metadata.get("digest", True))
        return {field.name: _numbers(getattr(value, field.name)) for field in fields}
    if isinstance(value, dict):
        return {key: _numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_numbers(item) for item in value]
    return value
