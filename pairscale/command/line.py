"""The words of a command line before Hydra reads them: flags, sweeps, dry runs."""

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.errors import HydraException
from omegaconf import DictConfig

from pairscale.command.texts import with_texts
from pairscale.errors import ConfigError

SWEEP = {"-m", "--multirun"}
WITH_VALUE = {"-c", "--cfg", "-p", "--package"}
FLAGS = SWEEP | WITH_VALUE | {"-h", "--help", "--info", "-i", "--resolve", "--run", "-r", "--version"}
SEARCH_PATH = "hydra.searchpath"
CONFIG_DIR = {"--config-dir", "-cd"}
# Dictionaries that take more keys than a YAML file names (conf/model/gpt2.yaml, the names of curves).
OPEN = ("model.config.", "analysis.labels", "analysis.colours")
_COMPOUND = re.compile(r"[\[{'\"]|\w+\(|.*\$\{")  # a list, a dictionary, a call, an interpolation, or quotes already
_SEVERAL = re.compile(r"benchmark=(?P<all>\[\s*(?P<first>[\w/.-]+)\s*(?:,\s*[\w/.-]+\s*)*\])")
_DRY_RUN = re.compile(r"\+*dry_run=(true|yes|on|y|1)", re.IGNORECASE)


def words_for_hydra(words: Sequence[str]) -> list[str]:
    """Return the words with flags first and `--config-dir DIR` as the override that Hydra passes on to runs.

    Several folders become one override, as Hydra reads only one; an earlier folder hides files of a later one. Raises
    ConfigError for an unknown flag and for a folder that does not exist.
    """
    flags: list[str] = []
    overrides: list[str] = []
    folders: list[Path] = []
    rest = list(words)
    while rest:
        flag, equals, value = (word := rest.pop(0)).partition("=")
        if not word.startswith("-"):
            overrides += for_hydra(word)
        elif flag in CONFIG_DIR:
            value = value if equals else rest.pop(0) if rest else ""
            if not Path(value).is_dir() or not value:
                raise ConfigError(
                    f"{flag} {value}: no such folder; must be a folder like conf/, with model/NAME.yaml and so on"
                )
            folders.append(Path(value).resolve())
        elif flag in FLAGS:
            flags.append(word)
            if flag in WITH_VALUE and not equals and rest:
                flags.append(rest.pop(0))
        else:
            key = flag.lstrip("-")
            hint = f"write {key}={value or next(iter(rest), 'VALUE')}" if key else "write key=value"
            raise ConfigError(f"{flag}: no such option; {hint} (--help lists the keys)")
    if folders:
        quoted = [QuotedString(f"file://{folder}", Quote.double).with_quotes() for folder in folders]
        overrides.insert(0, f"{SEARCH_PATH}=[{','.join(quoted)}]")
    return flags + overrides  # Hydra takes no flag between overrides


def for_hydra(override: str) -> list[str]:
    """Return an override as Hydra reads it: one of an open key adds it, and of several benchmarks one is the group's.

    `benchmark=[blimp,climp]` is `benchmark=blimp benchmarks=[blimp,climp]`.
    """
    if several := _SEVERAL.fullmatch(override):
        return [f"benchmark={several['first']}", f"benchmarks={several['all']}"]
    override = with_texts(override)
    return [f"++{override}" if override.startswith(OPEN) else override]


def search_path(overrides: Iterable[str]) -> list[str]:
    """Return the overrides of the search path for configurations, which runs need as well."""
    return [override for override in overrides if override.startswith(f"{SEARCH_PATH}=")]


def own_folders(overrides: Iterable[str]) -> list[Path]:
    """Return the folders of the user's own configurations in `overrides`."""
    parser = OverridesParser.create()
    values = [parser.parse_override(override).value() for override in search_path(overrides)]
    return [Path(str(one).removeprefix("file://")) for value in values if isinstance(value, list) for one in value]


def as_written(words: Sequence[str]) -> list[str]:
    """Return the words with the search path for configurations as `--config-dir DIR`, relative where it can be."""
    own = search_path(words)
    folders = [folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
               for folder in own_folders(own)]  # fmt: skip
    flags = [word for folder in folders for word in ("--config-dir", str(folder))]
    rest = [word for word in words if word not in own]
    at = next((number for number, word in enumerate(rest) if "=" in word), len(rest))
    return [*rest[:at], *flags, *rest[at:]]


def readable(override: str) -> str:
    """Return an override with its value in quotes where Hydra would not read it as one value, else as it is.

    Hydra reads only letters of ASCII without quotes, takes a,b for a sweep, and a=b and a(b) for mistakes.
    """
    key, equals, value = override.partition("=")
    if not equals or _COMPOUND.match(value) or _is_one_value(override):
        return override
    within = f"{key}={QuotedString(value, Quote.single).with_quotes()}"
    return within if _is_one_value(within) else override


def _is_one_value(override: str) -> bool:
    try:
        return not OverridesParser.create().parse_override(override).is_sweep_override()
    except HydraException:
        return False


def with_quotes_hint(override: str) -> str:
    """Say how to quote an override that Hydra cannot read, for the shell too; "" where quotes would not help."""
    if (within := readable(override)) == override:
        return ""
    typed = shlex.quote(within) if re.search(r'["$`\\!]', within) else f'"{within}"'
    return f"{override}: a value with such characters has to be in quotes, within those of the shell: {typed}"


def overrides_of(words: Sequence[str]) -> list[str]:
    """Return all words but the flags."""
    return [word for word in words if not word.startswith("-")]


def is_sweep(words: Sequence[str]) -> bool:
    """Return True if a command line runs a sweep (not, say, --cfg). Raises ConfigError for several experiments."""
    flags = {word for word in words if word.startswith("-")}
    if not flags or not flags <= SWEEP:
        return False
    for word in words:
        if word.lstrip("+").startswith("experiment=") and "," in word:
            raise ConfigError(f"{word}: one experiment at a time, each with the sweep that it declares")
    return True


def is_dry_sweep(words: Sequence[str]) -> bool:
    """Return True if a command line is the dry run of a sweep (Hydra itself takes a fifth of a second a run)."""
    return any(_DRY_RUN.fullmatch(word) for word in words) and is_sweep(words)


def check_whole_sweep(hydra: DictConfig) -> None:
    """Raise ConfigError if a single run leaves axes of its experiment's sweep open, other than the seed."""
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
