"""Run any command: compose its configuration, call its function, print errors in one line, and exit."""

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

NEED_ARGUMENTS = (
    "corpora",
    "annotate",
    "find",
    "train",
    "eval",
    "fetch",
    "analysis",
)  # alone, they only print their help


def main(
    command: str,
    run: Callable[[Any], None],
    finish: Callable[[], None] = lambda: None,
    sweep: Callable[[str, Line, "Session"], None] | None = None,
) -> NoReturn:
    """Call `run` with the configuration of the command line, then `finish`, and exit.

    A failed run does not stop a sweep, but the exit code reports it. The exit codes are 0 for success; 2 for an error
    that the user can fix (one line on stderr); 75 if another process is working on the run; 1 for a bug (one line that
    names the traceback's file); and 130 for an interrupt. train/loop/preemption.py lists the exit codes for signals.

    Args:
        command: one of pairscale.COMMANDS
        run: does the work of one configuration
        finish: called at the end
        sweep: runs the points of a sweep (-m); without it, `run` is called for each point in turn
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
        # Importing torch and Lightning creates 400,000 permanent objects. Looking for garbage among them repeatedly
        # would take a fifth of the time to start.
        gc.set_threshold(50_000, 20, 20)
        # With this setting, a waiting thread leaves its core to other work (docs/benchmarks.md). It has no effect after
        # torch is imported.
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
        """Run one configuration of a sweep. If it fails, print the error unless an earlier run had the same one."""
        set_current(point)
        try:
            self.run(config())
        except Exception as error:
            self._report(*outcome(error))

    def report_refused(self, errors: Sequence[Exception], runs: int) -> None:
        """Print why some runs of a sweep cannot start. Each reason is printed once, with the number of its runs."""
        for (line, code), number in Counter(map(outcome, errors)).items():
            which = f"{'all' if number == runs else number} of the {runs} runs"
            rest = "no run was started" if len(errors) == runs else "the others continue"
            self._report(line + (f" ({which}; {rest})" if runs > 1 else ""), code)

    def _report(self, line: str, code: int) -> None:
        self.exit_codes.append(code)
        if line not in self.reported:
            print(f"pairscale {self.command}: {line}", file=sys.stderr)
        self.reported.add(line)
