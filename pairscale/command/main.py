"""The frame of all commands: compose the configuration, run, print errors in one line, and exit."""

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml

from pairscale.command.compose import compose, composed, points_of
from pairscale.command.errors import one_line_errors, outcome
from pairscale.command.help import show_help
from pairscale.command.line import Line, set_current
from pairscale.errors import PairscaleError
from pairscale.version import version_text

NEED_ARGUMENTS = ("corpora", "annotate", "find", "train", "eval", "fetch", "analysis")  # alone, they print their help


def main(
    command: str,
    run: Callable[[Any], None],
    finish: Callable[[], None] = lambda: None,
    sweep: Callable[[str, Line, "Session"], None] | None = None,
) -> NoReturn:
    """Call `run` with the configuration of the command line, then `finish`, and exit.

    A failing run does not stop a sweep, but the exit code reports it. Exit codes: 0; 2 for an error that the user can
    fix (one line on stderr); 75 if another process is working on the run; 1 for a bug (one line that names the file of
    its traceback); 130 for an interrupt. train/loop/preemption.py lists those of signals.

    Args:
        command: one of pairscale.COMMANDS
        run: does the work of one configuration
        finish: called at the end
        sweep: runs the points of a sweep (-m); without it, `run` is called for one point after the other
    """
    arguments = sys.argv[1:]
    session = Session(command, run)
    with one_line_errors(f"pairscale {command}", session.exit_codes):
        if {"--help", "-h"} & set(arguments) or (not arguments and command in NEED_ARGUMENTS):
            show_help(command)
            if not arguments:
                raise PairscaleError("This command needs arguments. Start from one of the examples above.")
            sys.exit(0)
        if "--version" in arguments:
            print(version_text())
            sys.exit(0)
        # Importing torch and Lightning makes 400,000 objects that stay. Looking for garbage among them again and again
        # would take a fifth of the time to start.
        gc.set_threshold(50_000, 20, 20)
        # This has to be set before torch is imported. A thread that waits then leaves its core to other work
        # (docs/benchmarks.md).
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        line = Line.of(arguments, command)
        set_current(line)
        if line.shows:
            print(yaml.safe_dump(composed(command, line), sort_keys=False, allow_unicode=True), end="")
        elif not line.sweeps:
            run(compose(command, line))
        elif sweep is not None:
            sweep(command, line, session)
        else:
            for _, point in points_of(command, line):
                session.attempt(point, lambda point=point: compose(command, point))  # type: ignore[misc]
        finish()
    sys.exit(0)


@dataclass
class Session:
    """One process of a command, with the exit codes of runs that failed and the errors that it has printed."""

    command: str
    run: Callable[[Any], None]
    exit_codes: list[int] = field(default_factory=list)
    reported: set[str] = field(default_factory=set)

    def attempt(self, point: Line, config: Callable[[], Any]) -> None:
        """Run one configuration of a sweep. If it fails, print the error unless another run had the same."""
        set_current(point)
        try:
            self.run(config())
        except Exception as error:
            self._report(*outcome(error))

    def report_refused(self, errors: Sequence[Exception], runs: int) -> None:
        """Print why some runs of a sweep cannot start: each reason once, with the number of its runs."""
        for (line, code), number in Counter(map(outcome, errors)).items():
            which = f"{'all' if number == runs else number} of the {runs} runs"
            rest = "no run was started" if len(errors) == runs else "the others continue"
            self._report(line + (f" ({which}; {rest})" if runs > 1 else ""), code)

    def _report(self, line: str, code: int) -> None:
        self.exit_codes.append(code)
        if line not in self.reported:
            print(f"pairscale {self.command}: {line}", file=sys.stderr)
        self.reported.add(line)
