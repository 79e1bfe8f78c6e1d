"""One-line messages for errors: our own, those of Hydra, OmegaConf and the file system, and faults of the program."""

import dataclasses
import difflib
import errno
import os
import re
import shlex
import sys
import tempfile
import traceback
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hydra.errors import HydraException, OverrideParseException
from omegaconf.errors import InterpolationResolutionError, OmegaConfBaseException, UnsupportedInterpolationType

from pairscale import ROOT, as_typed
from pairscale.command.line import own_folders, with_quotes_hint
from pairscale.command.schemas import stored_names
from pairscale.console import replace_unprintable
from pairscale.errors import ConfigError, NoCorpus, PairscaleError
from pairscale.files import REFUSED
from pairscale.plugins import whose_fault
from pairscale.progress import close_views

FOLDER = ROOT / "conf"
_NOISE = ("full_key", "object_type", "reference_type", "To append", "See https://hydra.cc")
TRACEBACK = "PAIRSCALE_TRACEBACK"  # environment variable: show tracebacks on stderr, too
_NO_OPTION = re.compile(r"Could not (?:load|find) '(?P<group>.+)/(?P<option>[^/']+)'")


def describe(error: BaseException) -> str | None:
    """Return the message of an error that the user can mend, in one line; None for a fault of the program."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, NoCorpus):
            return f"{cause}; {_among('', [name for name in configurations('corpus') if name != 'none'])}"
        if isinstance(cause, PairscaleError):
            return str(cause)
        if isinstance(cause, OSError) and cause.errno in REFUSED:  # of a library, such as Hydra making its folder
            return f"{cause.filename or 'a file'}: {os.strerror(cause.errno)}; {REFUSED[cause.errno]}"
        if isinstance(cause, FileNotFoundError) and _makes_folder(cause):  # below /proc, say
            return f"{cause.filename}: no folder can be created there; {REFUSED[errno.EROFS]}"
        if isinstance(cause, OmegaConfBaseException) and str(cause).startswith(f"Key '{cause.key}' not in "):
            return _no_such_key(str(cause.full_key), _keys(cause.object_type))
        if isinstance(cause, OmegaConfBaseException) and str(cause).startswith(f"Key '{cause.key}' is not in struct"):
            return _no_such_key(str(cause.full_key), cause.parent_node or ())
        if isinstance(cause, ValueError) and "integer string conversion" in str(cause):
            return "a number has more than 4,300 digits; no key takes such a large one"
        if isinstance(cause, ValueError) and "Config group override must be a string" in str(cause):
            return "GROUP=null: a group takes the name of a file in conf/GROUP; leave it out, or write ~GROUP for none"
        if isinstance(cause, OverrideParseException) and (hint := with_quotes_hint(cause.override)):
            return hint
        # Hydra and OmegaConf leave some causes in the context alone.
        follows = isinstance(cause, (HydraException, OmegaConfBaseException))
        cause = cause.__cause__ or (cause.__context__ if follows else None)
    if isinstance(error, (InterpolationResolutionError, UnsupportedInterpolationType)):
        return (
            f"{error.full_key}: {str(error).splitlines()[0]}; ${{name}} in a value stands for the value of the key "
            f"'name'. For the text ${{name}} itself write \\${{name}}, within single quotes of the shell: "
            f"'{error.full_key}=...\\${{name}}...'"
        )
    if isinstance(error, (HydraException, OmegaConfBaseException)):
        if missing := _NO_OPTION.search(str(error)):
            group, option = missing["group"], missing["option"]
            return f"{group}={option}: no such {group.rpartition('/')[2]}; {_among(option, configurations(group))}"
        text = f"{error.__cause__ or ''}\n{error}".partition("Config search path:")[0]
        lines = [line.strip() for line in text.splitlines()]
        useful = [line for line in lines if line and not line.startswith(_NOISE)]
        return "; ".join(dict.fromkeys(useful)).replace(":;", ":")
    return None


def _makes_folder(error: BaseException) -> bool:
    """Return True if creating a folder failed."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].name in ("mkdir", "makedirs")


def describe_fault(error: BaseException) -> str:
    """Return the line for a fault, naming the file of its traceback, which PAIRSCALE_TRACEBACK prints as well."""
    lines = "".join(traceback.format_exception(error))
    if os.environ.get(TRACEBACK):
        print(lines, end="", file=sys.stderr)
    with tempfile.NamedTemporaryFile(
        "w", prefix="pairscale-", suffix=".log", delete=False, encoding="utf-8", errors="backslashreplace"
    ) as file:
        file.write(f"{shlex.join(sys.argv)}\n{lines}")
    message = f"{error}"[:500]
    return (
        f"unexpected {type(error).__name__}: {message} ({whose_fault(error)}; the traceback is in {file.name}; "
        "please report it)"
    )


def outcome(error: BaseException) -> tuple[str, int]:
    """Return the line for an error and its exit code (listed at `pairscale.command.main.main`)."""
    line = describe(error)
    if line is None:
        return one_line(describe_fault(error)), 1
    return as_typed(one_line(line)), getattr(error, "exit_code", PairscaleError.exit_code)


@contextmanager
def one_line_errors(command: str) -> Iterator[None]:
    """Exit with one line on stderr, as `main.main` does, for a command without a configuration."""
    replace_unprintable()
    try:
        yield
    except KeyboardInterrupt:
        print(f"{command}: interrupted", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        line, code = outcome(error)
        print(f"{command}: {line}", file=sys.stderr)
        sys.exit(code)
    finally:
        close_views()


def one_line(text: str) -> str:
    """Return `text` with a space for each line break, control character and half character."""
    return "".join(character if character.isprintable() else " " for character in text).strip()


def check_keys(config: Any, where: str = "") -> None:
    """Raise ConfigError for a key that `+` added to a configuration and no code reads."""
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        known = {part.name for part in dataclasses.fields(config)}
        for key in sorted(vars(config).keys() - known):
            raise ConfigError(_no_such_key(f"{where}{key}", known))
        config = {name: getattr(config, name) for name in sorted(known)}
    if isinstance(config, dict):
        for name, value in config.items():
            check_keys(value, f"{where}{name}.")


def _keys(owner: Any) -> list[str]:
    return [part.name for part in dataclasses.fields(owner)]


def _no_such_key(key: str, known: Collection[str]) -> str:
    above, _, name = key.rpartition(".")
    return f"{key}: no such key; {_among(name, sorted(known)) if known else f'{above} has none'}"


def configurations(group: str, overrides: Sequence[str] | None = None) -> list[str]:
    """Return the names in a configuration group: ours, and those of the folders in `overrides` (or this command)."""
    folders = [FOLDER, *own_folders(sys.argv[1:] if overrides is None else overrides)]
    return sorted(stored_names(group) | {path.stem for folder in folders for path in (folder / group).glob("*.yaml")})


def _among(name: str, available: list[str]) -> str:
    """Return the available names, and the one that may have been meant, whatever its capitals."""
    lower = {one.lower(): one for one in available}
    close = difflib.get_close_matches(name.lower(), lower, 1)
    return f"{f'did you mean {lower[close[0]]}? ' if close else ''}available: {', '.join(available)}"
