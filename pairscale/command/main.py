"""The frame of all commands: compose the configuration, run, report errors in one line, exit."""

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

NEED_ARGUMENTS = ("corpora", "annotate", "find", "train", "eval", "analysis")  # without any they print their help


def main(
    command: str,
    run: Callable[[Any], None],
    finish: Callable[[], None] = lambda: None,
    sweep: Callable[[str, Line, "Session"], None] | None = None,
) -> NoReturn:
    """Call `run` with the configuration of the command line, then `finish`, and exit.

    sweep: runs the points of a sweep (-m); without it, `run` is called with one after the other.

    Exit codes: 0; 2 for an error of the input (one line on stderr); 75 if another process is at work on the run; 1 for
    a fault of the program (one line, with the file that holds its traceback); 130 for an interrupt; those of signals
    are in train/loop/preemption.py. A failing run does not stop a sweep; the exit code reports it.
    """
    arguments = sys.argv[1:]
    session = Session(command, run)
    with one_line_errors(f"pairscale {command}", session.exit_codes):
        if {"--help", "-h"} & set(arguments) or (not arguments and command in NEED_ARGUMENTS):
            show_help(command)
            sys.exit(0 if arguments else PairscaleError.exit_code)
        # Importing torch and Lightning makes 400,000 objects that stay: looking for garbage among them again and again
        # would take a fifth of the time to start.
        gc.set_threshold(50_000, 20, 20)
        # Before torch is imported: a thread that waits for another leaves its core to it, or to whatever else the
        # machine does (docs/benchmarks.md).
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
    """One process of a command. exit_codes: of the runs that failed; reported: the errors that were printed."""

    command: str
    run: Callable[[Any], None]
    exit_codes: list[int] = field(default_factory=list)
    reported: set[str] = field(default_factory=set)

    def attempt(self, point: Line, config: Callable[[], Any]) -> None:
        """Run one configuration of a sweep; print its error, unless another had the same."""
        set_current(point)
        try:
            self.run(config())
        except Exception as error:
            self._report(*outcome(error))

    def report_refused(self, errors: Sequence[Exception], runs: int) -> None:
        """Print why some of the runs of a sweep cannot begin, each reason once, with the number of its runs."""
        for (line, code), number in Counter(map(outcome, errors)).items():
            which = f"{'all' if number == runs else number} of the {runs} runs"
            rest = "none of which was started" if len(errors) == runs else "the others go on"
            self._report(line + (f" ({which}, {rest})" if runs > 1 else ""), code)

    def _report(self, line: str, code: int) -> None:
        self.exit_codes.append(code)
        if line not in self.reported:
            print(f"pairscale {self.command}: {line}", file=sys.stderr)
        self.reported.add(line)
