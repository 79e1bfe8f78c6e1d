"""One-line messages for errors: our own, those of the file system, and faults of the program."""

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
from pairscale.files import REFUSED
from pairscale.plugins import whose_fault
from pairscale.progress import close_views

TRACEBACK = "PAIRSCALE_TRACEBACK"  # environment variable: show tracebacks on stderr, too


def describe(error: BaseException) -> str | None:
    """Return the message of an error that the user can mend, in one line; None for a fault of the program."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, PairscaleError):
            return str(cause)
        if isinstance(cause, OSError):
            code, frames = cause.errno, traceback.extract_tb(cause.__traceback__)
            if code == errno.ENOENT and frames and frames[-1].name in ("mkdir", "makedirs"):  # below /proc, say
                return f"{cause.filename}: no folder can be created there; {REFUSED[errno.EROFS]}"
            if code in REFUSED:
                return f"{cause.filename or 'a file'}: {os.strerror(code)}; {REFUSED[code]}"
        cause = cause.__cause__
    return None


def outcome(error: BaseException) -> tuple[str, int]:
    """Return the line for an error and its exit code (listed at `pairscale.command.main.main`).

    That for a fault names the file of its traceback, which PAIRSCALE_TRACEBACK prints as well.
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
    fault = f"unexpected {type(error).__name__}: {f'{error}'[:500]}"
    return one_line(f"{fault} ({whose_fault(error)}; the traceback is in {file.name}; please report it)"), 1


@contextmanager
def one_line_errors(command: str, codes: list[int] | None = None) -> Iterator[None]:
    """Print one line on stderr for an error within the block, and exit if there was one.

    codes: exit codes of the runs of a sweep that failed, of which the smallest is the process's.
    """
    codes = [] if codes is None else codes
    replace_unprintable()
    try:
        yield
    except KeyboardInterrupt:
        print(f"{command}: interrupted; give the same command again to continue", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        line, code = outcome(error)
        print(f"{command}: {line}", file=sys.stderr)
        codes.append(code)
    finally:
        close_views()
        gc.freeze()  # Python looks for garbage at its end, too: among so many objects for a second
    if codes:
        sys.exit(min(codes))


def one_line(text: str) -> str:
    """Return `text` with a space for each line break, control character and half character."""
    return "".join(character if character.isprintable() else " " for character in text).strip()
