"""Reading JSON and YAML files, checked against a declared schema.

A schema is a msgspec.Struct, a dataclass or a TypedDict; limits stand in its annotations (Annotated[int, Meta(ge=1)]).
An error is one line that names the file and the place in it:

    runs/mine/lstm-.../manifest.json: $.corpus.words: expected int, got str; remove the run's folder to train it again

Undeclared keys are no error, since a later version may add some; a TypedDict keeps them.
"""

import json
import pickle
import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, is_typeddict

import msgspec
import yaml
from msgspec import Meta

from pairscale.errors import PairscaleError

T = TypeVar("T")
ErrorType = Callable[[str], PairscaleError]  # a class of these errors, or a function from a message to one

_LARGEST = 1.7976931348623157e308
_DIGEST = r"\A[0-9a-f]{64}\Z"
_FOLDER_NAME = r"\A(?!\.+\Z)[^/\\\x00-\x1f\x7f]{1,255}\Z"

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Positive = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Finite = Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]
NonNegative = Annotated[float, Meta(ge=0, le=_LARGEST)]
Share = Annotated[float, Meta(ge=0, le=1)]
Digest = Annotated[str, Meta(pattern=_DIGEST)]  # hexadecimal SHA-256
# The name of a folder in a file that someone else may have written: it cannot lead out of the folder above.
FolderName = Annotated[str, Meta(pattern=_FOLDER_NAME)]

_IN_WORDS = {
    f"str matching regex {_DIGEST!r}": "64 hexadecimal digits",
    f"str matching regex {_FOLDER_NAME!r}": r"the name of a folder, without / and \,",
    "object missing required field": "without",
    f"float >= {-_LARGEST}": "a finite number",
    f"float <= {_LARGEST}": "a finite number",
}
MAX_DEPTH = 50  # of nested YAML: the deepest of ours has five levels
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")  # a key or an index of a place
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = "half a character, \\ud800 to \\udfff without its other half"
_SET = "tag:yaml.org,2002:set"
_CLOSING = (yaml.MappingEndEvent, yaml.SequenceEndEvent)
_OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
# libyaml's is ten times as fast.
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_json(path: Path, schema: type[T], error: ErrorType, remedy: str, version: int | None = None) -> T:
    """Return a JSON file's contents as `schema` declares.

    Raises `error`, in one line that ends with `remedy`, if it is missing, damaged, of another "version" or schema.
    """
    return parse_json(_read_bytes(path, error, remedy), schema, path, error, remedy, version)


def parse_json(
    text: str | bytes, schema: type[T], where: Path | str, error: ErrorType, remedy: str, version: int | None = None
) -> T:
    """Return the contents of JSON text from `where` as `schema` declares them; errors as in `read_json`."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        data = json.loads(text)
        if _SURROGATE.search(text):
            json.dumps(data, ensure_ascii=False).encode()  # raises UnicodeEncodeError for half a character
    except (ValueError, RecursionError) as reason:
        raise error(f"{where}: not readable as JSON ({_reason(reason)}); {remedy}") from None
    return checked(data, schema, where, error, remedy, version)


def read_yaml(path: Path, schema: type[T], error: ErrorType, remedy: str) -> T:
    """Return the contents of a YAML file as `schema` declares them; tags run no code. Errors as in `read_json`."""
    try:
        data = load_yaml(_read_bytes(path, error, remedy).decode())
    except (yaml.YAMLError, ValueError, RecursionError) as reason:
        raise error(f"{path}: not readable as YAML ({_reason(reason)}); {remedy}") from None
    return checked(data, schema, path, error, remedy)


def load_yaml(text: str) -> Any:
    """Return the plain data of a YAML text.

    Raises yaml.YAMLError or ValueError for invalid YAML, deep nesting, half a character, sets, and aliases: a few lines
    of them can stand for more than any memory holds.
    """
    return pickle.loads(_load(text))  # a copy of its own for each caller


@lru_cache(maxsize=256)
def _load(text: str) -> bytes:
    """Return the pickled data of a YAML text: a study's run folders are read several times by one command."""
    depth = 0
    for event in yaml.parse(text, _SafeLoader):
        depth += isinstance(event, _OPENING) - isinstance(event, _CLOSING)
        line = event.start_mark.line + 1 if event.start_mark else 0
        if depth > MAX_DEPTH:
            raise ValueError(f"line {line}: nested more than {MAX_DEPTH} deep")
        if isinstance(event, yaml.ScalarEvent) and any("\ud800" <= character <= "\udfff" for character in event.value):
            raise ValueError(f"line {line}: {_HALF}")
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"line {line}: aliases (*{event.anchor}) are not read; write the value out")
        if isinstance(event, yaml.MappingStartEvent) and event.tag == _SET:
            raise ValueError(f"line {line}: sets (!!set) are not read, as they have no order; write a list")
    return pickle.dumps(yaml.load(text, _SafeLoader))


def checked(
    data: Any,
    schema: type[T],
    where: Path | str,
    error: ErrorType,
    remedy: str,
    version: int | None = None,
    root: str = "$",
) -> T:
    """Return plain data from `where`, at the place `root` in it, as `schema` declares; errors as in `read_json`."""
    if version is not None and isinstance(data, dict) and data.get("version") != version:
        raise error(f"{where}: version {data.get('version')!r:.40}, this code reads {version}; {remedy}")
    try:
        converted = msgspec.convert(data, schema)
    except msgspec.ValidationError as reason:
        raise error(f"{where}: {root}{_explain(str(reason), data)[1:]}; {remedy}") from None
    except RecursionError:
        raise error(f"{where}: nested too deeply; {remedy}") from None
    except PairscaleError as reason:  # of a dataclass that checks its values
        raise error(f"{where}: {reason}; {remedy}") from None
    # msgspec leaves out what a TypedDict does not declare.
    return cast(T, data) if is_typeddict(schema) else converted


def _read_bytes(path: Path, error: ErrorType, remedy: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise error(f"{path}: missing; {remedy}") from None
    except OSError as reason:
        raise error(f"{path}: cannot be read ({reason.strerror}); {remedy}") from None


def _explain(text: str, data: Any) -> str:
    """Return msgspec's message with the place before it and the value, if a number or a text, after it."""
    text, _, place = text.replace("`", "").partition(" - at ")
    place = place or "$"
    text = text[0].lower() + text[1:]
    for written, words in _IN_WORDS.items():
        text = text.replace(written, words)
    if place.startswith("key in "):
        return f"{place.removeprefix('key in ')}: a key: {text}"
    with suppress(LookupError, TypeError, ValueError):  # the place is unknown, as that of one of many: [...]
        for key, index in _STEP.findall(place):
            data = data[int(index)] if index else data[key]
        if ", got " not in text and isinstance(data, (str, float, int)):
            text += f", got {data!r:.60}"
    return f"{place}: {text}"


def _reason(reason: BaseException) -> str:
    if isinstance(reason, RecursionError):
        return "nested too deeply"
    if isinstance(reason, UnicodeEncodeError):
        return _HALF
    return " ".join(str(reason).split())[:200]
