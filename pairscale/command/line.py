"""The words of a command line, looked at before Hydra reads them: flags, sweeps, dry runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString
from omegaconf import DictConfig

from pairscale.errors import ConfigError

SWEEP = {"-m", "--multirun"}
WITH_VALUE = {"-c", "--cfg", "-p", "--package"}
FLAGS = SWEEP | WITH_VALUE | {"-h", "--help", "--info", "-i", "--resolve", "--run", "-r", "--version"}
SEARCH_PATH = "hydra.searchpath"
CONFIG_DIR = {"--config-dir", "-cd"}
_DRY_RUN = re.compile(r"\+*dry_run=(true|yes|on|y|1)", re.IGNORECASE)


def words_for_hydra(words: Sequence[str]) -> list[str]:
    """The same words, flags first, with `--config-dir DIR` as the override that means it and that runs can be given.

    Several folders become one override, as Hydra reads only one; what an earlier one holds hides that of a later one.
    Raises ConfigError for a flag that there is none of, and for a folder that does not exist.
    """
    flags: list[str] = []
    overrides: list[str] = []
    folders: list[Path] = []
    rest = list(words)
    while rest:
        flag, given, value = (word := rest.pop(0)).partition("=")
        if not word.startswith("-"):
            overrides.append(word)
        elif flag in CONFIG_DIR:
            value = value if given else rest.pop(0) if rest else ""
            if not Path(value).is_dir() or not value:
                raise ConfigError(
                    f"{flag} {value}: no such folder; a folder as conf/ is, with model/NAME.yaml and so on"
                )
            folders.append(Path(value).resolve())
        elif flag in FLAGS:
            flags.append(word)
            if flag in WITH_VALUE and not given and rest:
                flags.append(rest.pop(0))
        else:
            key = flag.lstrip("-")
            told = f"values are given as {key}={value or next(iter(rest), 'VALUE')}" if key else "values are key=value"
            raise ConfigError(f"{flag}: no such option; {told} (--help lists what there is)")
    if folders:
        quoted = [QuotedString(f"file://{folder}", Quote.double).with_quotes() for folder in folders]
        overrides.insert(0, f"{SEARCH_PATH}=[{','.join(quoted)}]")
    return flags + overrides  # Hydra takes no flag between overrides


def search_path(overrides: Iterable[str]) -> list[str]:
    """The overrides that say where configurations are looked for: of Hydra's own those that a run needs too."""
    return [override for override in overrides if override.startswith(f"{SEARCH_PATH}=")]


def own_folders(overrides: Iterable[str]) -> list[Path]:
    """Folders of the user's own configurations that `overrides` name."""
    parser = OverridesParser.create()
    values = [parser.parse_override(override).value() for override in search_path(overrides)]
    return [Path(str(one).removeprefix("file://")) for value in values if isinstance(value, list) for one in value]


def overrides_of(words: Sequence[str]) -> list[str]:
    """All but the flags."""
    return [word for word in words if not word.startswith("-")]


def is_sweep(words: Sequence[str]) -> bool:
    """True if a command line is a sweep, and nothing else (that prints the configuration, say).

    Raises ConfigError for several experiments: Hydra would sweep over the values of none of them.
    """
    flags = {word for word in words if word.startswith("-")}
    if not flags or not flags <= SWEEP:
        return False
    for word in words:
        if word.lstrip("+").startswith("experiment=") and "," in word:
            raise ConfigError(f"{word}: one experiment at a time, each with the sweep that it declares")
    return True


def is_dry_sweep(words: Sequence[str]) -> bool:
    """True if a command line asks what a sweep would take. Hydra itself takes a fifth of a second for each run."""
    return any(_DRY_RUN.fullmatch(word) for word in words) and is_sweep(words)


def check_whole_sweep(hydra: DictConfig) -> None:
    """Raise ConfigError where one run is started of an experiment that sweeps what the command line does not fix.

    `hydra`: Hydra's part of a composed configuration. The seed may stay what it is without an experiment.
    """
    axes = [str(key) for key in hydra.sweeper.params or {}]
    fixed = {re.split(r"[=@]", override.lstrip("+~"))[0] for override in hydra.overrides.task}
    loose = [key for key in axes if key != "seed" and key not in fixed]
    if loose:
        name = hydra.runtime.choices.get("experiment")
        raise ConfigError(
            f"experiment={name}: sweeps {', '.join(axes)}; -m runs all of it (python -m {hydra.job.name} -m "
            f"{shlex.join([*search_path(hydra.overrides.hydra), *hydra.overrides.task])}), or give one run its own "
            f"{' and '.join(f'{key}=VALUE' for key in loose)}"
        )
