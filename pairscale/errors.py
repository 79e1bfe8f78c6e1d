"""Define errors that a user can fix. Commands print their message in one line and exit with the error's `exit_code`.

    PairscaleError
    ├── ConfigError   a configuration value is out of range, or two values do not go together
    ├── InputError    a text, benchmark or other file of the user cannot be used
    ├── StoreError    a prepared corpus is damaged, has changed, or has another version
    ├── RunError      a run folder, checkpoint or score file is damaged, in use or missing
    │   └── RunInUse  another process is working on the run (exit code 75: the same command may succeed later)
    └── WriteError    a file cannot be written: disk full, over quota, read-only, no file locks

Every message says what happened, with the value and its place (file, line or configuration key), and then what to do.
"""

import math
import re
from collections.abc import Collection, Sequence

START_AGAIN = 75  # exit code if nothing is wrong but the command must be run again (EX_TEMPFAIL of sysexits.h)
MAX_SEED = 2**63 - 1
MAX_NAME = 64  # length in bytes, because a run folder's name joins three names, a size, a seed and a digest
NAME = re.compile(r"\w(?:[\w. -]*[\w.-])?")


class PairscaleError(Exception):
    """Base class of errors caused by the input, not by the program."""

    exit_code = 2


class ConfigError(PairscaleError):
    """A configuration value is out of range, or two values do not go together."""


class InputError(PairscaleError):
    """The user's file cannot be used."""


class StoreError(PairscaleError):
    """A prepared corpus is damaged, has changed since it was prepared, or has another version."""


class RunError(PairscaleError):
    """A run folder, checkpoint or score file is damaged, in use, or missing."""


class RunInUse(RunError):
    """Another process is working on the run."""

    exit_code = START_AGAIN


class WriteError(PairscaleError):
    """A file cannot be written because the disk is full, over quota, read-only or without file locks."""


def first_few(names: Sequence[str], count: int = 3) -> str:
    """Return the first `count` names and the number of the others, such as "a, b, c and 2 more"."""
    more = len(names) - count
    return ", ".join(names[:count]) + (f" and {more} more" if more > 0 else "")


def check_between(key: str, value: float | None, low: float, high: float) -> None:
    """Raise ConfigError unless the value of a dotted key is None or a number from `low` to `high`."""
    if value is not None and not low <= value <= high:
        raise ConfigError(f"{key}={_short(value)}: this value must be from {_short(low)} to {_short(high)}.")


def check_name(key: str, value: str) -> None:
    """Raise ConfigError unless the value of a dotted key can be part of folder names, labels and run ids."""
    if not NAME.fullmatch(value) or len(value.encode()) > MAX_NAME:
        raise ConfigError(
            f"{key}={value[:80]}: this is used as the name of a folder. Use letters, digits, spaces and . _ - (at most "
            f"{MAX_NAME} bytes), and begin with a letter or digit."
        )


def _short(value: float) -> str:
    if isinstance(value, int) and abs(value) < 10**9:
        return str(value)
    return f"{value:.6g}" if not 1e300 < abs(value) < math.inf else "a number of hundreds of digits"


def check_choice(key: str, value: str, allowed: Collection[str]) -> None:
    """Raise ConfigError unless the value of a dotted key is one of `allowed`."""
    if value not in allowed:
        raise ConfigError(f"{key}={value}: this value must be one of {', '.join(sorted(allowed))}.")


def problem_and_remedy(problem: str, remedy: str) -> str:
    """Join a problem and a remedy as two sentences. Capitalise the remedy unless it begins with a key or a path."""
    first = remedy.partition(" ")[0]
    sentence = remedy.replace(first, first.capitalize(), 1) if first.isalpha() else remedy
    return f"{problem.removesuffix('.')}. {sentence.removesuffix('.')}."


def error_line(error: BaseException) -> str:
    """Return the type of an error and the first line of its message, cut after 200 characters."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {line[:200]}" if line else type(error).__name__
