"""Build configurations, which are dataclasses with limits in their annotations, from plain values.

    @dataclass(kw_only=True)
    class TrainerConfig:
        accelerator: Literal["auto", "cpu", "gpu"]
        threads: Annotated[int, Meta(ge=1, le=4096)] | None = None

`__post_init__` checks what an annotation cannot express, such as two values that do not go together, and raises
ConfigError. If the files of a group in conf/ have several types, as in `model`, `register_types` registers them.
"""

import dataclasses
import difflib
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec
import yaml
from msgspec import Meta

from pairscale.errors import MAX_SEED, ConfigError
from pairscale.sizes import format_size, parse_size, written

T = TypeVar("T")
MISSING: Any = "???"  # the value of a key in conf/ that the user has to set
NOT_IN_DIGEST = {"digest": False}  # metadata of a field that cannot change a run's results
_LARGEST = 1.7976931348623157e308
MOST_SUGGESTED = 3  # keys with the same name that a message suggests

TEXTS, SIZED = "texts", "size"  # marks in annotations
Texts = Annotated[str | list[str] | None, TEXTS]  # a text, a list of texts, or null
Size = Annotated[str, SIZED]  # text for pairscale.sizes.parse_size, such as 125k; 1e6 and 1_000 are read as numbers
Seed = Annotated[int, Meta(ge=0, le=MAX_SEED)]
Share = Annotated[float, Meta(ge=0, le=1)]
Probability = Annotated[float, Meta(ge=0, lt=1)]  # such as dropout
AboveZero = Annotated[float, Meta(gt=0, le=_LARGEST)]
Count = Annotated[int, Meta(ge=0, le=10**12)]
Number = Annotated[int, Meta(ge=1, le=10**12)]

_TYPES: dict[type, dict[str, type]] = {}


def register_types(base: type, **kinds: type) -> None:
    """Register types for values of class `base`. The keywords are the values of the key `type` in a file."""
    _TYPES.setdefault(base, {}).update(kinds)


def types_of(base: type) -> Mapping[str, type]:
    """Return the registered types of a class by name, or {} if there are none."""
    return _TYPES.get(base, {})


def listed(texts: str | list[str] | None) -> list[str]:
    """Return the value of a field of type Texts as a list."""
    return [texts] if isinstance(texts, str) else list(texts or ())


def yaml_of(config: Any) -> str:
    """Return a configuration as YAML."""
    return yaml.safe_dump(dataclasses.asdict(config), sort_keys=False, allow_unicode=True)


def build(schema: type[T], values: Mapping[str, Any], key: str = "") -> T:
    """Return an instance of a dataclass from plain values.

    Args:
        schema: the dataclass, or a class whose types are registered
        values: field -> plain value, as in a YAML file
        key: the dotted key of `values` with a final dot, for messages

    Raises:
        ConfigError: for an unknown key, a missing value, or a value of the wrong type or outside its limits, or
            any error that the class itself raises
    """
    kind = _choose(schema, values, key)
    hints, required = _hints(kind), _required(kind)
    parts = [part.name for part in dataclasses.fields(cast(Any, kind)) if part.init]
    given = {name: value for name, value in values.items() if name != "type" or "type" in parts}
    for name in given:
        if name not in parts:
            raise ConfigError(f"Unknown key '{key}{name}'. {nearest(name, parts, key)}")
    if missing := [f"{key}{name}" for name in parts if given.get(name, name in required and MISSING) == MISSING]:
        example = " ".join(f"{name}={'PATH' if name.endswith('path') else 'VALUE'}" for name in missing)
        raise ConfigError(f"{', '.join(missing)}: a value is needed, because there is no default. Add {example}.")
    return cast(T, kind(**{name: converted(hints[name], value, f"{key}{name}") for name, value in given.items()}))


def _required(schema: type) -> set[str]:
    """Return the names of the fields of a dataclass that have no default."""
    none = dataclasses.MISSING
    parts = dataclasses.fields(cast(Any, schema))
    return {part.name for part in parts if part.default is none and part.default_factory is none}


def _choose(schema: type, values: Mapping[str, Any], key: str) -> type:
    kinds = types_of(schema)
    if not kinds:
        return schema
    name = values.get("type")
    if name is None and schema in kinds.values():
        return schema
    if not isinstance(name, str) or name not in kinds:
        raise ConfigError(f"{key}type={shown(name)}: there is no such type. {nearest(str(name), kinds)}")
    return kinds[name]


def converted(kind: Any, value: Any, key: str) -> Any:
    """Convert a value to the type that the annotation `kind` declares. Raises the same errors as `build`."""
    options = _options(kind)
    kinds = [one for one, _ in options]
    if value is None and type(None) in kinds:
        return None
    owners = [cast(type, one) for one in kinds if dataclasses.is_dataclass(one)]
    if owners and isinstance(value, Mapping):  # if several fit, the first that lacks the fewest values
        return build(min(owners, key=lambda one: len(_required(one) - set(value))), value, f"{key}.")
    if any(SIZED in marks for _, marks in options):
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise ConfigError(f"{key}={shown(value)}: this value must be a size, such as 300000, 125k or 1/8M.")
        return format_size(parse_size(str(value), key))
    hint = ""
    if not owners:
        try:
            return msgspec.convert(value, kind)
        except (msgspec.ValidationError, OverflowError):
            is_read = str in kinds and isinstance(value, (bool, int, float))
            if is_read or (dict[str, str] in kinds and isinstance(value, Mapping)):
                hint = " In a YAML file, put quotes around text that looks like a number or a truth value."
    raise ConfigError(f"{key}={shown(value)}: this value must be {in_words(kind)}.{hint}")


def shown(value: Any) -> str:
    """Return a value as error messages show it, cut after 80 characters."""
    text = "nan" if value != value else written(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def in_words(kind: Any) -> str:
    """Describe what an annotation allows, such as "a whole number from 1 to 4096, or null"."""
    options = _options(kind)
    parts = [_in_words(one, marks) for one, marks in options if one is not type(None)]
    return " or ".join(parts) + (", or null" if len(parts) < len(options) else "")


def _in_words(kind: Any, marks: tuple[Any, ...]) -> str:
    limits = next((mark for mark in marks if isinstance(mark, Meta)), Meta())
    origin, arguments = get_origin(kind), get_args(kind)
    if limits.description:
        return limits.description
    if origin is Literal:
        return ("one of " if len(arguments) > 1 else "") + ", ".join(map(str, arguments))
    if origin is list:
        return "a list" if arguments[0] is Any else f"a list in which each item is {in_words(arguments[0])}"
    if origin is dict and arguments[1] is not Any:
        return f"a mapping of keys to values, each of which is {in_words(arguments[1])}"
    if origin is dict or kind is dict or dataclasses.is_dataclass(kind):
        return "a mapping of keys to values"
    name = {int: "a whole number", float: "a number", bool: "true or false", str: "text", list: "a list"}
    return name.get(kind, str(kind)) + _limits(limits)


def _limits(meta: Meta) -> str:
    if meta.ge is None and meta.gt is None:
        return ""
    low, to = (f" from {_plain(meta.ge)}", "to") if meta.ge is not None else (f" above {_plain(meta.gt)}", "and")
    if meta.lt is not None:
        return f"{low} {to} below {_plain(meta.lt)}"
    if meta.le is None or meta.le >= _LARGEST:
        return low
    return f"{low} to {_plain(meta.le)}" if meta.ge is not None else f"{low}, at most {_plain(meta.le)}"


def _plain(limit: float | None) -> str:
    if limit == MAX_SEED:
        return "2**63 - 1"
    return f"{limit:,}" if isinstance(limit, int) else f"{limit:g}"


def nearest(name: str, available: Iterable[str], prefix: str = "") -> str:
    """Return a sentence that suggests the most similar name (after `prefix`), or else lists what is available."""
    names = sorted(available)
    lower = {one.lower(): one for one in names}
    close = difflib.get_close_matches(name.lower(), lower, 1)
    return f"Did you mean '{prefix}{lower[close[0]]}'?" if close else f"Available: {', '.join(names) or 'none'}."


@cache
def text_keys(schema: type) -> frozenset[str]:
    """Return the dotted keys below a class for a text or a list of texts, in any of its registered types."""
    return frozenset(key for key, hint in _keys_below(schema, "") if _takes_text(hint))


def nearest_key(name: str, schema: type, top: Collection[str]) -> str:
    """Return a sentence that suggests a similar key, which may be deeper, such as sample.size for `sizes`.

    A top-level key is preferred to a deeper key of the same name (`seed` to model.seed). It is also preferred to other
    keys that are about as similar (for `modle`, `model` to logger.mode). If no key is similar, list the top-level keys.
    """
    deeper = {key: {key} for key in top}
    for key, _ in _keys_below(schema, ""):
        last = key.rpartition(".")[2]
        deeper.setdefault(last, set()).add(last if last in top else key)
    at_top = [] if name in deeper else difflib.get_close_matches(name.lower(), top, 1, cutoff=0.75)
    close = at_top or difflib.get_close_matches(name.lower(), deeper, 1)
    if close and len(deeper[close[0]]) <= MOST_SUGGESTED:
        return "Did you mean {}?".format(" or ".join(f"'{key}'" for key in sorted(deeper[close[0]])))
    return nearest(name, top)


def _keys_below(schema: type, key: str) -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys below a class with their annotations. Several types may have the same key."""
    for kind in dict.fromkeys([schema, *types_of(schema).values()]):
        for name, hint in _hints(kind).items():
            yield f"{key}{name}", hint
            for one, _ in _options(hint):
                if dataclasses.is_dataclass(one):
                    yield from _keys_below(cast(type, one), f"{key}{name}.")


def _takes_text(hint: Any) -> bool:
    options = [(one, marks) for one, marks in _options(hint) if one is not type(None)]
    marked = {mark for _, marks in options for mark in marks if isinstance(mark, str)}
    kinds = [one for one, _ in options]
    return TEXTS in marked or (SIZED not in marked and (str in kinds or kinds == [list[str]]))


def _options(hint: Any, marks: tuple[Any, ...] = ()) -> list[tuple[Any, tuple[Any, ...]]]:
    """Return the types that an annotation allows, each with its marks but without Annotated."""
    if get_origin(hint) is Annotated:
        return _options(hint.__origin__, (*marks, *hint.__metadata__))
    if get_origin(hint) in (Union, types.UnionType):
        return [one for part in get_args(hint) for one in _options(part, marks)]
    return [(hint, marks)]


@cache
def _hints(schema: type) -> dict[str, Any]:
    hints = get_type_hints(schema, include_extras=True)
    return {part.name: hints[part.name] for part in dataclasses.fields(cast(Any, schema))}
