"""Errors that a user can mend: the command line prints one line and exits with the error's `exit_code`.

    PairscaleError
    ├── ConfigError   a configuration value that is out of range or does not fit another
    ├── InputError    a text, benchmark or other file of the user that cannot be used
    ├── StoreError    a prepared corpus that is damaged, changed or of another version
    ├── RunError      a run folder, checkpoint or score file that is damaged, busy or missing
    │   └── RunInUse  another process is working on the run (exit code 75: the same command may succeed later)
    └── WriteError    a file that cannot be written: disk full, over quota, read-only, without locks

Every message says what was received, what is allowed, and where (file, line or configuration key).
"""

import math
import re
from collections.abc import Collection, Sequence

START_AGAIN = 75  # exit code: nothing is wrong, start the same command again (EX_TEMPFAIL of sysexits.h)
MAX_SEED = 2**63 - 1
MAX_NAME = 64  # bytes: a folder's name joins three names, a size, a seed and a digest
NAME = re.compile(r"\w(?:[\w. -]*[\w.-])?")


class PairscaleError(Exception):
    """Base class of errors caused by the input, not by the program."""

    exit_code = 2


class ConfigError(PairscaleError):
    """A configuration value is out of range, or two values do not fit together."""


class InputError(PairscaleError):
    """A file given by the user cannot be used."""


class StoreError(PairscaleError):
    """A prepared corpus is damaged, changed since it was prepared, or of another version."""


class RunError(PairscaleError):
    """A run folder, checkpoint or score file is damaged, in use, or missing."""


class RunInUse(RunError):
    """Another process is working on the run."""

    exit_code = START_AGAIN


class WriteError(PairscaleError):
    """A file cannot be written: the disk is full, over quota, read-only or without locks."""


def first_few(names: Sequence[str], count: int = 3) -> str:
    """Return the first `count` names for a message, and how many more there are."""
    more = len(names) - count
    return ", ".join(names[:count]) + (f" and {more} more" if more > 0 else "")


def check_between(key: str, value: float | None, low: float, high: float) -> None:
    """Raise ConfigError unless `value` is a number from `low` to `high`, or null; `key` is the dotted key."""
    if value is not None and not low <= value <= high:
        raise ConfigError(f"{key}={_short(value)}: must be from {_short(low)} to {_short(high)}.")


def check_name(key: str, value: str) -> None:
    """Raise ConfigError unless `value`, of dotted `key`, can name a folder and stand in labels (+) and run ids (-)."""
    if not NAME.fullmatch(value) or len(value.encode()) > MAX_NAME:
        raise ConfigError(
            f"{key}={value[:80]}: names a folder; must consist of letters, digits, _ . - and spaces, begin with a "
            f"letter or digit, and have at most {MAX_NAME} bytes."
        )


def _short(value: float) -> str:
    if isinstance(value, int) and abs(value) < 10**9:
        return str(value)
    return f"{value:.6g}" if not 1e300 < abs(value) < math.inf else "a number of hundreds of digits"


def check_choice(key: str, value: str, allowed: Collection[str]) -> None:
    """Raise ConfigError unless `value` is one of `allowed`; `key` is the dotted configuration key."""
    if value not in allowed:
        raise ConfigError(f"{key}={value}: must be one of {', '.join(sorted(allowed))}.")


def error_line(error: BaseException) -> str:
    """Return the type and the first line of an error's message, at most 200 characters of it."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {line[:200]}" if line else type(error).__name__
