"""Keys whose type is text: what was typed is kept where Hydra would read a number (1.10, 1e3, 1_000) or a truth value.

YAML reads such numbers, too. What it made of one in a file cannot be undone, so the file is refused.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import yaml
from hydra.conf import HydraConf
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from pairscale.command.schemas import Texts
from pairscale.errors import ConfigError

_PART = re.compile(r"""'[^']*'|"[^"]*"|[][(),]|[^][(),'"]+""")  # quoted text, what stands between values, and these
_SWEPT = "hydra.sweeper.params."
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_EXPONENT = re.compile(r"[-+]?[0-9][0-9_]*e[-+]?[0-9]+", re.IGNORECASE)  # to YAML a text, to OmegaConf a number
_TRUTH = ("true", "false", "yes", "no", "on", "off")
_PACKAGE = re.compile(r"\s*# @package +(\S+)")


def with_texts(override: str) -> str:
    """Return an override of a text key with each value in quotes that Hydra would change or, for a =, refuse.

    >>> with_texts("study=1.10,b"), with_texts("remove=seed=2"), with_texts("seed=1_000")
    ("study='1.10',b", "remove='seed=2'", 'seed=1_000')
    """
    key, equals, value = override.partition("=")
    parts = _PART.findall(value)
    if not equals or "\\" in value or "".join(parts) != value:
        return override
    kept = "".join(map(_quoted, parts))
    return f"{key}={kept}" if kept != value and key.lstrip("+") in text_keys() else override


def _quoted(part: str) -> str:
    text = part.strip()
    try:
        value = OverridesParser.create().parse_rule(text, "primitive")
    except HydraException:
        return part
    is_kept = isinstance(value, (str, QuotedString)) or not _changes(value, text)
    if is_kept and ("=" not in text or "${" in text or text[0] in "'\""):
        return part
    return part.replace(text, QuotedString(text, Quote.single).with_quotes())


def _changes(value: Any, text: str) -> bool:
    """Return True if `value`, which was read from `text`, is no text and would be written in another way."""
    return isinstance(value, (bool, int, float)) and str(value) != text


def text_keys() -> set[str]:
    """Return the dotted keys of all schemas that take a text or a list of texts, by their types."""
    return {key for prefix, schema in _schemas(ConfigStore.instance().repo) for key in _texts(schema, prefix)}


def _schemas(repository: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, entry in repository.items():
        if isinstance(entry, dict):
            yield from _schemas(entry, f"{prefix}{name}.")
        elif prefix.partition(".")[0] != "hydra":
            yield prefix, OmegaConf.get_type(entry.node)


def _texts(schema: Any, prefix: str) -> Iterator[str]:
    if not dataclasses.is_dataclass(schema):
        return
    hints = get_type_hints(schema, include_extras=True)
    for part in dataclasses.fields(schema):
        kinds = [kind for kind in get_args(hints[part.name]) if kind is not type(None)]
        kind = hints[part.name] if get_origin(hints[part.name]) is list or len(kinds) != 1 else kinds[0]
        if hints[part.name] == Texts or kind in (str, list[str]):
            yield f"{prefix}{part.name}"
        yield from _texts(kind, f"{prefix}{part.name}.")


def check_files(hydra: DictConfig | HydraConf, folders: list[Path]) -> None:
    """Raise ConfigError for a file in which a text key has a number that YAML changes.

    The files are the chosen ones of `folders`, and those that they name without a group in `defaults`: Hydra does not
    count these among the choices.
    """
    chosen = {("", str(hydra.job.config_name))}
    for group, options in hydra.runtime.choices.items():
        chosen |= {(group, option) for option in (options if isinstance(options, (list, tuple)) else [options])}
    waiting = sorted((group.partition("@")[0], str(option)) for group, option in chosen)
    for group, option in waiting:  # which grows
        for path in (folder / group / f"{option}.yaml" for folder in folders):
            if path.is_file():
                named = _check_file(path, group, path.stat().st_mtime_ns)
                waiting += [one for one in named if one not in waiting]


@lru_cache(maxsize=1024)
def _check_file(path: Path, group: str, time: int) -> list[tuple[str, str]]:
    """Return group and name of the files that a file has by name alone in its `defaults`. Raises as `check_files`."""
    text = path.read_text(encoding="utf-8")
    package = match[1] if (match := _PACKAGE.match(text)) else "_group_"
    prefix = {"_global_": "", "_group_": group.replace("/", ".")}.get(package, package)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast
    root = yaml.compose(text, loader)
    changed = list(_changed(root, [prefix] if prefix else []))
    keys = text_keys() if changed else set()
    for places, typed, quoted in changed:
        if (key := ".".join(places).removeprefix(_SWEPT)) in keys:
            raise ConfigError(
                f"{path}: {key}: {typed} is read as {'a truth value' if typed.lower() in _TRUTH else 'a number'}, and "
                f"would be changed; to keep it as text, write it in quotes: {places[-1]}: {quoted}"
            )
    return list(_named(root, group))


def _named(root: Any, group: str) -> Iterator[tuple[str, str]]:
    """Yield group and name of each plain text in `defaults`, which is relative to `group` unless it begins with /."""
    for key, value in root.value if isinstance(root, yaml.MappingNode) else ():
        if key.value == "defaults" and isinstance(value, yaml.SequenceNode):
            for entry in value.value:
                if isinstance(entry, yaml.ScalarNode):
                    name = entry.value.partition("@")[0].removesuffix(".yaml")
                    within, _, option = (name if name.startswith("/") else f"{group}/{name}").strip("/").rpartition("/")
                    yield within, option


def _changed(node: Any, places: list[str]) -> Iterator[tuple[list[str], str, str]]:
    """Yield the place and the text of what is read as a number or truth value and changed, and how to quote it."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _changed(value, [*places, str(key.value)])
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _changed(value, places)
    elif isinstance(node, yaml.ScalarNode) and ".".join(places).startswith(_SWEPT):  # Hydra reads it as an override
        parts = _PART.findall(node.value)
        if changed := [part.strip() for part in parts if _quoted(part) != part]:
            yield places, changed[0], f'"{"".join(map(_quoted, parts))}"'
    elif isinstance(node, yaml.ScalarNode) and node.style in (None, "") and _is_changed(node.value, node.tag):
        yield places, node.value, f"'{node.value}'"


def _is_changed(text: str, tag: str) -> bool:
    """Return True if YAML reads a plain text as a number or a truth value that Python writes in another way."""
    kind = tag.rpartition(":")[2]
    if kind == "bool":
        return text not in ("True", "False")
    if kind not in ("int", "float") and not _EXPONENT.fullmatch(text):
        return False
    try:
        return not _WHOLE.fullmatch(text) and str(float(text)) != text
    except ValueError:  # such as 0x10
        return True
