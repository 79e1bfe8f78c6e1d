"""Compose a configuration. Hydra combines the chosen files of conf/, and then the values that the user typed are set.

A command's schema (pairscale.COMMANDS) declares its keys. An experiment's file can contain values for
several commands, and each command reads its own. A key that the user types must be one of the command's own keys.
"""

import copy
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.types import Glob, Override, OverrideType, Quote, QuotedString
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pairscale import COMMANDS, ROOT
from pairscale.command.line import Line, key_of, parsed
from pairscale.command.schemas import build, nearest, nearest_key, shown, text_keys
from pairscale.errors import ConfigError
from pairscale.plugins import load_plugins
from pairscale.sizes import written

FOLDER = ROOT / "conf"
SWEEP = "sweep"  # key of an experiment's file that lists the axes of its sweep
_LAST = ("sample.size", "seed")  # axes that vary fastest
_NO_OPTION = re.compile(r"Could not (?:load|find) '(?P<group>.+)/(?P<option>[^/']+)'")
_NO_RECIPE = (
    "recipe: the model's file doesn't name a recipe. Begin it with defaults: [/recipe@_global_.recipe: NAME, _self_]"
)
_NOISE = ("full_key", "object_type", "reference_type", "To append", "See https://hydra.cc")


def schema_of(command: str) -> type:
    """Return the dataclass of a command's configuration, after loading plug-ins, which may register types."""
    about = COMMANDS[command]
    found: type = getattr(import_module(f"{about.module.partition('.')[0]}.config"), about.schema)
    load_plugins()
    return found


def compose(command: str, line: Line | Sequence[str]) -> Any:
    """Return the configuration of a command line. Raises ConfigError for wrong keys and values."""
    return build(schema_of(command), composed(command, line))


def composed(command: str, line: Line | Sequence[str], without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the plain values of a command's configuration.

    Args:
        command: one of pairscale.COMMANDS
        line: the command line
        without: dotted keys that may be missing, such as a path that is not part of a run's identity. They become ""

    Raises:
        ConfigError: for wrong keys, missing files in conf/ and values that OmegaConf cannot set
    """
    line = line if isinstance(line, Line) else Line.of(line)
    own = _keys(command)
    choices, values = _divide(command, own, line)
    node = copy.deepcopy(_choose(command, choices, line.folders, _file_times(line.folders)))
    try:
        if "method" in own:
            values = _set_methods(node, values)
        for key, value in values:
            OmegaConf.update(node, key, value, merge=True, force_add=True)
        for key in without:
            above, _, name = key.rpartition(".")
            if (part := OmegaConf.select(node, above)) is not None and OmegaConf.is_missing(part, name):
                OmegaConf.update(node, key, "")
        plain: Any = OmegaConf.to_container(node, resolve=True)
    except OmegaConfBaseException as error:
        raise ConfigError(_explain(error, values)) from error
    _check_files(own, plain)
    if "recipe" in own and "recipe" not in plain and "model" in plain and "~recipe" not in choices:
        raise ConfigError(_NO_RECIPE)
    available = group_files("benchmark", line.folders)
    for name in plain.get("benchmarks") or () if "benchmarks" in own else ():  # checked before any is scored
        if name not in available:
            raise ConfigError(f"There is no benchmark '{shown(name)}'. {nearest(shown(name), available)}")
    return {str(key): value for key, value in plain.items() if key in own}


def _check_files(own: set[str], node: dict[Any, Any]) -> None:
    """Raise ConfigError if a file has a top-level key that no command has."""
    for key in map(str, node):
        if key == "experiment":
            raise ConfigError("experiment: the experiment's file must begin with the line '# @package _global_'.")
        if key not in own and key not in (SWEEP, "help") and not _commands_with(key):
            raise ConfigError(f"Unknown key '{key}' in a configuration file. {nearest(key, own | {SWEEP})}")


def axes_of(command: str, line: Line) -> dict[str, list[str]]:
    """Return the values of a sweep's axes, by key. Axes that the user typed replace or extend the experiment's.

    Axes over keys that only other commands have are left out. Raises ConfigError for invalid axes.
    """
    own, texts = _keys(command), text_keys(schema_of(command))
    typed = {key_of(one): parsed(one, texts) for one in line.overrides}
    experiments = [one for one in line.overrides if key_of(one) == "experiment"]
    if len(experiments) > 1 or (experiments and typed["experiment"].is_sweep_override()):
        raise ConfigError(f"{' '.join(experiments)}: run one experiment at a time, because each has its own sweep.")
    fixed = tuple(one for one in line.overrides if not typed[key_of(one)].is_sweep_override())
    choices, _ = _divide(command, own, Line(fixed, line.folders))
    node = _choose(command, choices, line.folders, _file_times(line.folders))
    swept = _read_axes(OmegaConf.to_container(node[SWEEP]) if SWEEP in node else {}, own)
    for key, one in typed.items():
        if one.is_sweep_override():
            swept[key] = _axis_values(key, one, line.folders)
        elif key in swept:
            swept[key] = [str(one.get_value_element_as_str())]
    return swept


def points_of(command: str, line: Line) -> Iterator[tuple[tuple[str, ...], Line]]:
    """Yield each point of a sweep as the overrides in which it differs from the others, and its whole command line."""
    swept = axes_of(command, line)
    fixed = [one for one in line.overrides if key_of(one) not in swept]
    keys = sorted(swept, key=lambda key: _LAST.index(key) if key in _LAST else -1)
    for values in itertools.product(*(swept[key] for key in keys)):
        varied = tuple(f"{key}={value}" for key, value in zip(keys, values, strict=True))
        yield varied, Line((*fixed, *varied), line.folders, command=command)


def _axis_values(key: str, swept: Override, folders: Sequence[Path]) -> list[str]:
    """Return the values of a sweep over a key. A glob selects the matching files of a group. Raises ConfigError."""
    if key.startswith("pool."):
        raise ConfigError(f"{swept.input_line}: this must be a single value, because it applies to the whole sweep.")
    if isinstance(glob := swept.value(), Glob):
        files = group_files(key, folders)
        if not (chosen := glob.filter(files)):
            raise ConfigError(
                f"{swept.input_line}: this pattern doesn't match any file. Available: {', '.join(files) or 'none'}."
            )
        return list(chosen)
    try:
        return [str(value) for value in swept.sweep_string_iterator()]
    except (HydraException, ValueError) as error:  # interval(0,1), range(1,3,0)
        raise ConfigError(f"{swept.input_line}: this must be a list of values, such as {key}=A,B ({error}).") from error


def _read_axes(axes: Any, own: set[str]) -> dict[str, list[str]]:
    """Return the axes in an experiment's file over keys that the command has. Raises ConfigError."""
    if not isinstance(axes, dict):
        raise ConfigError(f"{SWEEP}={shown(axes)}: this must map keys to lists of values.")
    mine = {}
    for key, values in axes.items():
        if not isinstance(values, list) or not values:
            raise ConfigError(f"{SWEEP}.{key}={shown(values)}: this must be a list with at least one value.")
        if (root := _first_part(str(key))) in own:
            mine[str(key)] = [written(value) for value in values]
        elif not _commands_with(root):
            raise ConfigError(f"{SWEEP}.{key}: no command has the key '{root}'. {nearest(root, own)}")
    return mine


def _first_part(key: str) -> str:
    return re.split(r"[.@/]", key)[0]


def _divide(command: str, own: set[str], line: Line) -> tuple[tuple[str, ...], list[tuple[str, Any]]]:
    """Return the choices of files and the (key, value) pairs of a line. Raises ConfigError for unusable keys."""
    texts = text_keys(schema_of(command))
    choices: list[str] = []
    values: list[tuple[str, Any]] = []
    for typed in line.overrides:
        one = parsed(typed, texts)
        key = one.key_or_group
        if _first_part(key) not in own and _first_part(key) != "experiment":
            raise ConfigError(_explain_key(command, typed, _first_part(key), own))
        if one.is_sweep_override():
            raise ConfigError(
                f"{typed}: commas separate the values of a sweep. Add -m to run it. If this is one value, put quotes "
                f"""around it, inside the shell's quotes: "{key}='{typed.partition("=")[2]}'\""""
            )
        value = None if one.type == OverrideType.DEL else one.value()
        several = key == "benchmark" and "benchmarks" in own
        if not is_group(key, line.folders):
            if one.type == OverrideType.DEL:
                raise ConfigError(f"{typed}: only groups can be left out with ~. Write {key}=null.")
            values.append((key, value))
        elif several and isinstance(value, list) and value:
            choices.append(f"benchmark={value[0]}")
            values.append(("benchmarks", value))
        elif value is None:
            choices += [] if key == "experiment" else [f"~{key}"]
        elif (
            not isinstance(value, str) or value == "" or (key == "experiment" and "experiment" in map(key_of, choices))
        ):
            raise ConfigError(f"{typed}: give one {key}, the name of a file in conf/{key}/.")
        else:
            choices.append(str(one.input_line))
            values += [("benchmarks", None)] if several else []
    return tuple(choices), values


def _explain_key(command: str, typed: str, key: str, own: set[str]) -> str:
    """Explain that a key belongs to another command, or that no command has it."""
    using = _commands_with(key)
    if not using:
        return f"Unknown key '{key}'. {nearest_key(key, schema_of(command), {*own, 'experiment'})}"
    users = " and ".join(f"python -m {COMMANDS[one].module}" for one in using[:2])
    return f"{typed}: python -m {COMMANDS[command].module} does not use {key}, which is a key of {users}. Leave it out."


def _commands_with(key: str) -> list[str]:
    return [one for one, about in COMMANDS.items() if about.schema and key in _keys(one)]


def _keys(command: str) -> set[str]:
    return {part.name for part in fields(schema_of(command))}


def _set_methods(node: DictConfig, values: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Set the chosen methods and their parameters in `node`. Return the other values. Raises ConfigError."""
    chosen = [value for key, value in values if key == "method"]
    names = chosen[-1] if chosen else OmegaConf.to_container(node.method)
    if not isinstance(names, dict):
        names = {written(name): {} for name in (names if isinstance(names, list) else [names])}
    node.method = names
    rest = [(key, value) for key, value in values if key != "method"]
    for key, _ in rest:
        if key.startswith("method.") and (name := key.split(".")[1]) not in node.method:
            raise ConfigError(f"{key}: method={name} is not chosen. {nearest(name, map(str, node.method))}")
    return rest


def is_group(key: str, folders: Sequence[Path] = ()) -> bool:
    """Return True if a key chooses a file in a folder of conf/ or of the user's own folders."""
    return any((folder / key.partition("@")[0]).is_dir() for folder in (*folders, FOLDER))


def group_files(group: str, folders: Sequence[Path] = ()) -> list[str]:
    """Return the names of a group's files in conf/ and in the user's own folders."""
    return sorted({path.stem for folder in (*folders, FOLDER) for path in (folder / group).glob("*.yaml")})


def _file_times(folders: Sequence[Path]) -> tuple[tuple[str, int], ...]:
    """Return the names and times of all groups' files. Deeper folders may contain anything, so they are ignored."""
    files = (path for folder in (*folders, FOLDER) for depth in ("*", "*/*") for path in folder.glob(f"{depth}.yaml"))
    return tuple(sorted((str(path), path.stat().st_mtime_ns) for path in files if path.is_file()))


@lru_cache(maxsize=256)
def _choose(command: str, choices: tuple[str, ...], folders: tuple[Path, ...], files: Any) -> DictConfig:
    """Compose `choices`. `files` (names and times) is part of the cache's key, so that edited files are read again."""
    quoted = ",".join(QuotedString(f"file://{folder}", Quote.double).with_quotes() for folder in folders)
    GlobalHydra.instance().clear()  # in case another library has initialised it
    with hydra.initialize_config_dir(str(FOLDER), version_base="1.3"):
        try:
            node = hydra.compose(command, [*([f"hydra.searchpath=[{quoted}]"] if folders else []), *choices])
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(_explain_refusal(error, folders)) from error
    OmegaConf.set_struct(node, False)
    return node


def _explain_refusal(error: Exception, folders: Sequence[Path]) -> str:
    """Explain an error of Hydra, usually an unknown file, in one line."""
    if "Could not override 'recipe'" in str(error):
        return _NO_RECIPE
    if not (missing := _NO_OPTION.search(str(error))):
        return _explain(error, [])
    group, option = missing["group"], missing["option"]
    if group == "sample":
        return f"sample={option}: set the values of the sample one by one, such as sample.size=125k."
    near = nearest(option, group_files(group, folders))
    if group == "experiment" and not folders:
        near += " To use your own experiments, add --config-dir FOLDER."
    return f"There is no {group.rpartition('/')[2]} '{option}'. {near}"


def _explain(error: Exception, values: Sequence[tuple[str, Any]]) -> str:
    """Explain an error of Hydra or OmegaConf in one line."""
    text = f"{error.__cause__ or ''}\n{error}".partition("Config search path:")[0]
    lines = [line.strip() for line in text.splitlines()]
    said = "; ".join(dict.fromkeys(line for line in lines if line and not line.startswith(_NOISE)))
    said = said.replace(":;", ":").replace(".;", ";")
    if missing := re.search(r"Missing mandatory value: (\S+)", said):
        return f"{missing[1]}: a value is needed, because there is no default. Add {missing[1]}=VALUE."
    with_dollar = [key for key, value in values if "${" in str(value)]
    if not with_dollar:
        return said
    return (
        f"{with_dollar[0]}: {said}. In a value, ${{name}} means the value of the key 'name'. For the text ${{name}} "
        f"itself, write \\${{name}} inside single quotes of the shell: '{with_dollar[0]}=...\\${{name}}...'"
    )
