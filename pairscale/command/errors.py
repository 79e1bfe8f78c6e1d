"""One-line messages for errors: our own, those of the file system, and faults of the program."""

import errno
import os
import shlex
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from pairscale import as_typed
from pairscale.console import replace_unprintable
from pairscale.errors import NoCorpus, PairscaleError
from pairscale.files import REFUSED
from pairscale.plugins import whose_fault
from pairscale.progress import close_views

TRACEBACK = "PAIRSCALE_TRACEBACK"  # environment variable: show tracebacks on stderr, too


def describe(error: BaseException) -> str | None:
    """Return the message of an error that the user can mend, in one line; None for a fault of the program."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, NoCorpus):
            from pairscale.command.compose import group_files

            return f"{cause}; available: {', '.join(name for name in group_files('corpus') if name != 'none')}"
        if isinstance(cause, PairscaleError):
            return str(cause)
        if isinstance(cause, OSError) and cause.errno in REFUSED:
            return f"{cause.filename or 'a file'}: {os.strerror(cause.errno)}; {REFUSED[cause.errno]}"
        if isinstance(cause, FileNotFoundError) and _makes_folder(cause):  # below /proc, say
            return f"{cause.filename}: no folder can be created there; {REFUSED[errno.EROFS]}"
        cause = cause.__cause__
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
