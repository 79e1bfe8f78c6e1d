"""Composition of the configuration: the YAML files of conf/ under the schemas of the rooms, with Hydra."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from pairscale.command import launcher as _launcher  # noqa: F401 (it registers itself)
from pairscale.command.errors import FOLDER, check_keys
from pairscale.command.line import for_hydra, own_folders
from pairscale.command.rooms import register
from pairscale.command.texts import check_files
from pairscale.errors import ConfigError, PairscaleError

REFUSALS = (PairscaleError, HydraException, OmegaConfBaseException)  # errors for values of a command line


def to_config(node: DictConfig) -> Any:
    """Return a composed configuration as dataclasses; ConfigError for values missing or out of range, unknown keys."""
    chosen = node.get("hydra") or HydraConfig.get()
    check_files(chosen, [FOLDER, *own_folders(chosen.overrides.hydra)])
    node = copy.deepcopy(node)
    with open_dict(node):
        node.pop("hydra", None)
    missing = sorted(OmegaConf.missing_keys(node))
    if missing:
        raise ConfigError(f"{', '.join(missing)}: not set and without a default; give {missing[0]}=VALUE")
    config = OmegaConf.to_object(node)
    check_keys(config)
    return config


@contextmanager
def registered() -> Iterator[None]:
    register()
    GlobalHydra.instance().clear()  # a running command's, which it no longer needs, would refuse a second one
    with hydra.initialize_config_dir(str(FOLDER), version_base="1.3"):
        yield


def composed(command: str, overrides: list[str]) -> DictConfig:
    """Return the node of `python -m <command> <overrides>`, with Hydra's own part. Raises Hydra's errors."""
    with registered():
        overrides = [word for override in overrides for word in for_hydra(override)]
        try:
            return _with_values(command, overrides)
        except REFUSALS:  # Hydra's own message, or what only Hydra can read
            return hydra.compose(command, overrides, return_hydra_config=True)


def _with_values(command: str, overrides: list[str]) -> DictConfig:
    """Return the node that Hydra composes from the choices of groups alone, with the values set in a copy of it.

    Hydra itself does the same two steps, but takes a sixth of a second for the first. Raises REFUSALS.
    """
    parsed = OverridesParser.create().parse_overrides(overrides)
    folders = [FOLDER, *own_folders(str(one.input_line) for one in parsed)]
    values = [one for one in parsed if _is_value(one, folders)]
    choices = tuple(str(one.input_line) for one in parsed if one not in values)
    node = copy.deepcopy(_of_choices(command, choices, _versions(folders)))
    for one in values:
        OmegaConf.update(node, one.key_or_group, one.value(), merge=True)
    node.hydra.overrides.task = [one.input_line for one in parsed if not one.is_hydra_override()]
    node.hydra.runtime.cwd = str(Path.cwd())
    return node


def _is_value(override: Override, folders: Sequence[Path]) -> bool:
    """Return True for the plain `key=value` of a key of ours that is no group, in which files are chosen."""
    key = override.key_or_group
    group = any((folder / key).is_dir() for folder in folders)
    group = group or ConfigStore.instance().get_type(key) == ObjectType.GROUP
    special = override.is_hydra_override() or override.is_sweep_override() or override.package is not None
    return override.type == OverrideType.CHANGE and not group and not special


def _versions(folders: Sequence[Path]) -> tuple[tuple[str, int], ...]:
    """Return names and times of the files in groups (none lies deeper: a folder of a user may hold anything else)."""
    files = (path for folder in folders for depth in ("*", "*/*", "*/*/*") for path in folder.glob(f"{depth}.yaml"))
    return tuple(sorted((str(path), path.stat().st_mtime_ns) for path in files if path.is_file()))


@lru_cache(maxsize=64)
def _of_choices(command: str, choices: Sequence[str], files: Sequence[tuple[str, int]]) -> DictConfig:
    """Compose `choices`; `files`, their names and times, are part of the key: what is edited is read again."""
    return hydra.compose(command, list(choices), return_hydra_config=True)


def compose(command: str, overrides: list[str]) -> Any:
    """Return the configuration of `python -m <command> <overrides>`. Raises Hydra's errors."""
    return to_config(composed(command, overrides))
