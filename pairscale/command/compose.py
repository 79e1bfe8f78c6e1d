"""Composition of the configuration: the YAML files of conf/ under the schemas of the rooms, with Hydra."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from pairscale.command.errors import FOLDER, check_keys
from pairscale.command.launchers import local, slurm  # noqa: F401 (they register themselves)
from pairscale.command.rooms import register
from pairscale.errors import ConfigError, PairscaleError

REFUSALS = (PairscaleError, HydraException, OmegaConfBaseException)  # errors for values of a command line


def to_config(node: DictConfig) -> Any:
    """Return a composed configuration as dataclasses; ConfigError for values missing or out of range, unknown keys."""
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
        return hydra.compose(command, overrides, return_hydra_config=True)


def compose(command: str, overrides: list[str]) -> Any:
    """Return the configuration of `python -m <command> <overrides>`. Raises Hydra's errors."""
    return to_config(composed(command, overrides))


def launcher(name: str, overrides: list[str]) -> dict[str, Any]:
    """Return the values of `hydra/launcher=<name>`. Raises Hydra's errors."""
    node = composed("eval", [f"hydra/launcher={name}", *overrides]).hydra.launcher
    values = OmegaConf.to_container(node, resolve=True)
    assert isinstance(values, dict)
    return {str(key): value for key, value in values.items()}
