"""The axes of a sweep: the values that a command line, or the experiment that it names, sweeps over."""

from collections.abc import Sequence

from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig

from pairscale.command.compose import composed, registered
from pairscale.command.errors import FOLDER, configurations
from pairscale.command.texts import with_texts
from pairscale.errors import ConfigError


def grid(experiment: str, overrides: Sequence[str] = ()) -> dict[str, list[str]]:
    """Return the axes of an experiment: configuration key (or group) -> values. Raises ConfigError if it is unknown.

    `overrides` add axes, or replace those of the same name, as on the command line.
    """
    known = configurations("experiment", overrides)
    if experiment not in known:
        raise ConfigError(f"experiment={experiment}: no such experiment; available: {', '.join(known)}")
    return axes_of("train", [f"experiment={experiment}", *overrides])[0]


def axes_of(command: str, overrides: list[str]) -> tuple[dict[str, list[str]], DictConfig]:
    """Return a sweep's axes (key -> values), an experiment's first, and the composed node of everything else."""
    with registered():
        parser = OverridesParser.create(GlobalHydra.instance().config_loader())  # which knows what a glob stands for
        overrides = [with_texts(override) for override in overrides]
    by_key = {parsed.get_key_element(): parsed for parsed in parser.parse_overrides(overrides)}
    fixed = [parsed.input_line for parsed in by_key.values() if not parsed.is_sweep_override()]
    node = composed(command, [str(line) for line in fixed])
    params = node.hydra.sweeper.params or {}
    swept = {str(key): parser.parse_override(f"{key}={values}") for key, values in params.items()}
    axes = {}
    for key, parsed in (
        swept | {key: one for key, one in by_key.items() if key in swept or one.is_sweep_override()}
    ).items():
        if parsed.is_sweep_override():
            axes[key] = [str(value) for value in parsed.sweep_string_iterator()]
        else:
            axes[key] = [str(parsed.get_value_element_as_str())]
    return axes, node


def is_experiment(study: str) -> bool:
    """Return True if conf/experiment/ has a file of this study's name."""
    return (FOLDER / "experiment" / f"{study}.yaml").exists()
