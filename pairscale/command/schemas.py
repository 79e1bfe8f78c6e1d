"""Configurations as dataclasses: limits stand in their annotations, and `build` makes an object of plain values.

    @dataclass(kw_only=True)
    class TrainerConfig:
        accelerator: Literal["auto", "cpu", "gpu"]
        threads: Annotated[int, Meta(ge=1, le=4096)] | None = None

What one annotation cannot say, such as two values that do not fit together, is checked in `__post_init__`, which raises
ConfigError. A group of conf/ whose files are of several types, as `model`, has them registered by
`register_types`.
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
MISSING: Any = "???"  # of a value that a file of conf/ leaves to the user
NOT_IN_DIGEST = {"digest": False}  # metadata of a field that cannot change a number: left out of the run's digest
_LARGEST = 1.7976931348623157e308
MOST_MEANT = 3  # keys of one name that a message suggests

TEXTS, SIZED = "texts", "size"  # marks
Texts = Annotated[str | list[str] | None, TEXTS]  # a text, a list of texts, or null
Size = Annotated[str, SIZED]  # of pairscale.sizes.parse_size; 1e6 and 1_000 are read as numbers
Seed = Annotated[int, Meta(ge=0, le=MAX_SEED)]
Share = Annotated[float, Meta(ge=0, le=1)]
Probability = Annotated[float, Meta(ge=0, lt=1)]  # as of dropout
AboveZero = Annotated[float, Meta(gt=0, le=_LARGEST)]
Count = Annotated[int, Meta(ge=0, le=10**12)]
Number = Annotated[int, Meta(ge=1, le=10**12)]

_TYPES: dict[type, dict[str, type]] = {}


def register_types(base: type, **kinds: type) -> None:
    """Give the types that values of class `base` may have, by the name that their key `type` has."""
    _TYPES.setdefault(base, {}).update(kinds)


def types_of(base: type) -> Mapping[str, type]:
    """Return the types of a class by name; {} if it is the only one."""
    return _TYPES.get(base, {})


def listed(texts: str | list[str] | None) -> list[str]:
    """Return the value of a field of the type Texts as a list."""
    return [texts] if isinstance(texts, str) else list(texts or ())


def yaml_of(config: Any) -> str:
    """Return a configuration as YAML."""
    return yaml.safe_dump(dataclasses.asdict(config), sort_keys=False, allow_unicode=True)


def build(schema: type[T], values: Mapping[str, Any], key: str = "") -> T:
    """Return an instance of a dataclass from plain values; `key` is the dotted key of what they are in, with its dot.

    Raises ConfigError for a key that the class does not have (with the nearest one), a missing value, one of another
    type or beyond its limits, and whatever the class raises.
    """
    kind = _choose(schema, values, key)
    hints, required = _hints(kind), _required(kind)
    parts = [part.name for part in dataclasses.fields(cast(Any, kind)) if part.init]
    given = {name: value for name, value in values.items() if name != "type" or "type" in parts}
    for name in given:
        if name not in parts:
            raise ConfigError(f"{key}{name}: no such key; {nearest(name, parts)}")
    if missing := [f"{key}{name}" for name in parts if given.get(name, name in required and MISSING) == MISSING]:
        raise ConfigError(f"{', '.join(missing)}: not set and without a default; give {missing[0]}=VALUE")
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
        raise ConfigError(f"{key}type={shown(name)}: no such type; {nearest(str(name), kinds)}")
    return kinds[name]


def converted(kind: Any, value: Any, key: str) -> Any:
    """Return a value as the annotation `kind` declares it. Raises ConfigError as `build`."""
    options = _options(kind)
    kinds = [one for one, _ in options]
    if value is None and type(None) in kinds:
        return None
    owners = [cast(type, one) for one in kinds if dataclasses.is_dataclass(one)]
    if owners and isinstance(value, Mapping):  # of several, the first that has all that it needs, or else most of it
        return build(min(owners, key=lambda one: len(_required(one) - set(value))), value, f"{key}.")
    if any(SIZED in marks for _, marks in options):
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise ConfigError(f"{key}={shown(value)}: must be a size, such as 125k, 1/8M or 300000")
        return format_size(parse_size(str(value), key))
    hint = ""
    if not owners:
        try:
            return msgspec.convert(value, kind)
        except (msgspec.ValidationError, OverflowError):
            is_read = str in kinds and isinstance(value, (bool, int, float))
            if is_read or (dict[str, str] in kinds and isinstance(value, Mapping)):
                hint = "; in a YAML file, put text that looks like a number or a truth value in quotes"
    raise ConfigError(f"{key}={shown(value)}: must be {in_words(kind)}{hint}")


def shown(value: Any) -> str:
    """Return a value as errors show it."""
    text = "nan" if value != value else written(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def in_words(kind: Any) -> str:
    """Say what an annotation allows: "a whole number from 1 to 4096, or null"."""
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
        return "a list" if arguments[0] is Any else f"a list of which each is {in_words(arguments[0])}"
    if origin is dict and arguments[1] is not Any:
        return f"keys with values, each of which is {in_words(arguments[1])}"
    if origin is dict or kind is dict or dataclasses.is_dataclass(kind):
        return "keys with values"
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


def nearest(name: str, available: Iterable[str]) -> str:
    """Return the one that may have been meant, whatever its capitals; what is available if none is close."""
    names = sorted(available)
    lower = {one.lower(): one for one in names}
    close = difflib.get_close_matches(name.lower(), lower, 1)
    return f"did you mean {lower[close[0]]}?" if close else f"available: {', '.join(names) or 'none'}"


@cache
def text_keys(schema: type) -> frozenset[str]:
    """Return the dotted keys below a class that take a text or a list of texts, whatever their types."""
    return frozenset(key for key, hint in _keys_below(schema, "") if _takes_text(hint))


def nearest_key(name: str, schema: type, top: Collection[str]) -> str:
    """Return the key that may have been meant, which may lie deeper, such as sample.size for `sizes`.

    A key at the `top` goes before deeper ones of its name, such as `seed` before model.seed, and before others that are
    about as close, such as `model` before logger.mode for `modle`. If none is close, return the keys at the top.
    """
    deeper = {key: {key} for key in top}
    for key, _ in _keys_below(schema, ""):
        last = key.rpartition(".")[2]
        deeper.setdefault(last, set()).add(last if last in top else key)
    at_top = [] if name in deeper else difflib.get_close_matches(name.lower(), top, 1, cutoff=0.75)
    close = at_top or difflib.get_close_matches(name.lower(), deeper, 1)
    if close and len(deeper[close[0]]) <= MOST_MEANT:
        return f"did you mean {' or '.join(sorted(deeper[close[0]]))}?"
    return nearest(name, top)


def _keys_below(schema: type, key: str) -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys below a class with their annotations; several types may have one key."""
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
    """Return the types that an annotation allows, each without Annotated, with its marks."""
    if get_origin(hint) is Annotated:
        return _options(hint.__origin__, (*marks, *hint.__metadata__))
    if get_origin(hint) in (Union, types.UnionType):
        return [one for part in get_args(hint) for one in _options(part, marks)]
    return [(hint, marks)]


@cache
def _hints(schema: type) -> dict[str, Any]:
    hints = get_type_hints(schema, include_extras=True)
    return {part.name: hints[part.name] for part in dataclasses.fields(cast(Any, schema))}
