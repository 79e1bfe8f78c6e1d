"""Read JSON and YAML files and check them against a schema.

A schema is a msgspec.Struct, a dataclass or a TypedDict with limits in its annotations (Annotated[int, Meta(ge=1)]).
An error is one line that names the file and the place in it:

    runs/mine/lstm-.../manifest.json: $.corpus.words: expected int, got str. Remove the run's folder to train it again.

Undeclared keys are allowed, because a later version may add some. A TypedDict keeps them.
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

from pairscale.errors import PairscaleError, problem_and_remedy

T = TypeVar("T")
ErrorType = Callable[[str], PairscaleError]  # an error class, or a function from a message to an error

_LARGEST = 1.7976931348623157e308
_DIGEST = r"\A[0-9a-f]{64}\Z"
_FOLDER_NAME = r"\A(?!\.+\Z)[^/\\\x00-\x1f\x7f]{1,255}\Z"

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Positive = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Finite = Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]
NonNegative = Annotated[float, Meta(ge=0, le=_LARGEST)]
Share = Annotated[float, Meta(ge=0, le=1)]
Digest = Annotated[str, Meta(pattern=_DIGEST)]  # hexadecimal SHA-256
# A folder's name in a file that someone else may have written. Such a name must not lead out of the parent folder.
FolderName = Annotated[str, Meta(pattern=_FOLDER_NAME)]

_IN_WORDS = {
    f"str matching regex {_DIGEST!r}": "64 hexadecimal digits",
    f"str matching regex {_FOLDER_NAME!r}": r"the name of a folder, without / and \,",
    "object missing required field": "this key is missing:",
    f"float >= {-_LARGEST}": "a finite number",
    f"float <= {_LARGEST}": "a finite number",
}
MAX_DEPTH = 50  # levels of nested YAML; our own files have at most five
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")  # a key or an index in a place such as $.a[0]
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = "half a character, \\ud800 to \\udfff without its other half"
_SET = "tag:yaml.org,2002:set"
_CLOSING = (yaml.MappingEndEvent, yaml.SequenceEndEvent)
_OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
# libyaml's loader is ten times as fast as PyYAML's own.
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_json(path: Path, schema: type[T], error: ErrorType, remedy: str, version: int | None = None) -> T:
    """Return the contents of a JSON file as the type `schema`.

    Raises `error`, in one line that ends with `remedy`, if the file is missing or damaged, has another "version", or
    does not fit the schema.
    """
    return parse_json(_read_bytes(path, error, remedy), schema, path, error, remedy, version)


def parse_json(
    text: str | bytes, schema: type[T], where: Path | str, error: ErrorType, remedy: str, version: int | None = None
) -> T:
    """Parse JSON text from `where` as the type `schema`. Raises the same errors as `read_json`."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        data = json.loads(text)
        if _SURROGATE.search(text):
            json.dumps(data, ensure_ascii=False).encode()  # raises UnicodeEncodeError for half a character
    except (ValueError, RecursionError) as reason:
        raise error(problem_and_remedy(f"{where}: this can't be read as JSON ({_reason(reason)})", remedy)) from None
    return checked(data, schema, where, error, remedy, version)


def read_yaml(path: Path, schema: type[T], error: ErrorType, remedy: str) -> T:
    """Read a YAML file as the type `schema`, without running code. Raises the same errors as `read_json`."""
    try:
        data = load_yaml(_read_bytes(path, error, remedy).decode())
    except (yaml.YAMLError, ValueError, RecursionError) as reason:
        raise error(problem_and_remedy(f"{path}: this can't be read as YAML ({_reason(reason)})", remedy)) from None
    return checked(data, schema, path, error, remedy)


def load_yaml(text: str) -> Any:
    """Return the plain data of a YAML text.

    Raises yaml.YAMLError or ValueError for invalid YAML, deep nesting, half a character, sets, and aliases. A few lines
    with aliases can expand to more than fits into memory.
    """
    return pickle.loads(_load(text))  # a separate copy for each caller


@lru_cache(maxsize=256)
def _load(text: str) -> bytes:
    """Return the pickled data of a YAML text. This is cached, because one command reads a run's files several times."""
    depth = 0
    for event in yaml.parse(text, _SafeLoader):
        depth += isinstance(event, _OPENING) - isinstance(event, _CLOSING)
        line = event.start_mark.line + 1 if event.start_mark else 0
        if depth > MAX_DEPTH:
            raise ValueError(f"line {line} is nested more than {MAX_DEPTH} levels deep")
        if isinstance(event, yaml.ScalarEvent) and any("\ud800" <= character <= "\udfff" for character in event.value):
            raise ValueError(f"line {line} contains {_HALF}")
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"line {line}: aliases (*{event.anchor}) are not supported. Write out the value")
        if isinstance(event, yaml.MappingStartEvent) and event.tag == _SET:
            raise ValueError(f"line {line}: sets (!!set) are not supported, because they have no order. Write a list")
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
    """Convert plain data from `where`, at the place `root`, to `schema`. Raises the same errors as `read_json`."""
    if version is not None and isinstance(data, dict) and data.get("version") != version:
        problem = f"{where}: this file has version {data.get('version')!r:.40}, but pairscale reads version {version}"
        raise error(problem_and_remedy(problem, remedy))
    try:
        converted = msgspec.convert(data, schema)
    except msgspec.ValidationError as reason:
        raise error(problem_and_remedy(f"{where}: {root}{_explain(str(reason), data)[1:]}", remedy)) from None
    except RecursionError:
        raise error(problem_and_remedy(f"{where}: this is nested too deeply", remedy)) from None
    except PairscaleError as reason:  # from a dataclass that checks its values
        raise error(problem_and_remedy(f"{where}: {reason}", remedy)) from None
    # msgspec drops keys that a TypedDict does not declare.
    return cast(T, data) if is_typeddict(schema) else converted


def _read_bytes(path: Path, error: ErrorType, remedy: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise error(problem_and_remedy(f"{path}: this file does not exist", remedy)) from None
    except OSError as reason:
        raise error(problem_and_remedy(f"{path}: this file cannot be read ({reason.strerror})", remedy)) from None


def _explain(text: str, data: Any) -> str:
    """Return the place of an error, msgspec's message about it, and the value if that is a number or a text."""
    text, _, place = text.replace("`", "").partition(" - at ")
    place = place or "$"
    text = text[0].lower() + text[1:]
    for written, words in _IN_WORDS.items():
        text = text.replace(written, words)
    if place.startswith("key in "):
        return f"{place.removeprefix('key in ')}: a key: {text}"
    with suppress(LookupError, TypeError, ValueError):  # the exact place is unknown, as in [...]
        for key, index in _STEP.findall(place):
            data = data[int(index)] if index else data[key]
        if ", got " not in text and isinstance(data, (str, float, int)):
            text += f", got {data!r:.60}"
    return f"{place}: {text}"


def _reason(reason: BaseException) -> str:
    if isinstance(reason, RecursionError):
        return "it is nested too deeply"
    if isinstance(reason, UnicodeEncodeError):
        return _HALF
    return " ".join(str(reason).split())[:200]
