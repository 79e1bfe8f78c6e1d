"""Print errors in one line, including errors of the file system and bugs in the program."""

import errno
import gc
import os
import shlex
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from pairscale import as_typed
from pairscale.console import replace_unprintable
from pairscale.errors import PairscaleError
from pairscale.files import REMEDIES
from pairscale.plugins import whose_bug
from pairscale.progress import close_views

TRACEBACK = "PAIRSCALE_TRACEBACK"  # environment variable: if set, tracebacks of bugs are printed to stderr too


def describe(error: BaseException) -> str | None:
    """Return the message of an error that the user can fix, or None for a bug in the program."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, PairscaleError):
            return str(cause)
        if isinstance(cause, OSError):
            code, frames = cause.errno, traceback.extract_tb(cause.__traceback__)
            if code == errno.ENOENT and frames and frames[-1].name in ("mkdir", "makedirs"):  # such as below /proc
                return f"{cause.filename}: this folder cannot be created. {REMEDIES[errno.EROFS]}"
            if code in REMEDIES:
                return f"{cause.filename or 'A file'}: {os.strerror(code)}. {REMEDIES[code]}"
        cause = cause.__cause__
    return None


def outcome(error: BaseException) -> tuple[str, int]:
    """Return a one-line message for an error, and its exit code (see `pairscale.command.main.main`).

    For a bug, write the traceback to a file, which the message names. If PAIRSCALE_TRACEBACK is set, print it as well.
    """
    if (line := describe(error)) is not None:
        return as_typed(one_line(line)), getattr(error, "exit_code", PairscaleError.exit_code)
    lines = "".join(traceback.format_exception(error))
    if os.environ.get(TRACEBACK):
        print(lines, end="", file=sys.stderr)
    with tempfile.NamedTemporaryFile(
        "w", prefix="pairscale-", suffix=".log", delete=False, encoding="utf-8", errors="backslashreplace"
    ) as file:
        file.write(f"{shlex.join(sys.argv)}\n{lines}")
    bug = f"unexpected {type(error).__name__}: {f'{error}'[:500]}"
    where = f"This is a bug in {whose_bug(error)}"
    return one_line(f"{bug}. {where}. Please report it with its traceback, which is in {file.name}"), 1


@contextmanager
def one_line_errors(command: str, codes: list[int] | None = None) -> Iterator[None]:
    """If the block raises an error, print one line to stderr and exit with the error's exit code.

    `codes` are the exit codes of runs that failed in a sweep. The process exits with the smallest of all codes.
    """
    codes = [] if codes is None else codes
    replace_unprintable()
    try:
        yield
    except KeyboardInterrupt:
        print(f"{command}: this command was interrupted. Run the same command again to continue.", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        line, code = outcome(error)
        print(f"{command}: {line}", file=sys.stderr)
        codes.append(code)
    finally:
        close_views()
        gc.freeze()  # otherwise Python spends a second at exit looking for garbage among so many objects
    if codes:
        sys.exit(min(codes))


def one_line(text: str) -> str:
    """Replace each line break, control character and lone surrogate in `text` by a space."""
    return "".join(character if character.isprintable() else " " for character in text).strip()
