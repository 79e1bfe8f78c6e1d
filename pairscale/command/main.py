"""The frame of all commands: compose the configuration, run, report errors in one line, exit."""

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml

from pairscale.command.compose import axes_of, compose, composed
from pairscale.command.errors import outcome
from pairscale.command.help import show_help
from pairscale.command.line import Line, set_current
from pairscale.console import replace_unprintable
from pairscale.errors import PairscaleError
from pairscale.progress import close_views

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
    replace_unprintable()
    arguments = sys.argv[1:]
    if {"--help", "-h"} & set(arguments) or (not arguments and command in NEED_ARGUMENTS):
        show_help(command)
        sys.exit(0 if arguments else PairscaleError.exit_code)
    # Importing torch and Lightning makes 400,000 objects that stay: looking for garbage among them again and again
    # would take a fifth of the time to start.
    gc.set_threshold(50_000, 20, 20)
    # Before torch is imported: a thread that waits for another leaves its core to it, or to whatever else the machine
    # does (docs/benchmarks.md).
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    session = Session(command, run)
    try:
        line = Line.of(arguments, command)
        set_current(line)
        if line.shows:
            print(yaml.safe_dump(composed(command, line), sort_keys=False, allow_unicode=True), end="")
        elif not line.sweeps:
            run(compose(command, line))
        elif sweep is not None:
            sweep(command, line, session)
        else:
            session.run_all(line)
        finish()
    except KeyboardInterrupt:
        print(f"pairscale {command}: interrupted; the same command goes on from the last checkpoint", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        session.report(error)
    finally:
        close_views()
    gc.freeze()  # Python looks for garbage at its end, too: among so many objects for a second
    sys.exit(min(session.exit_codes, default=0))


@dataclass
class Session:
    """One process of a command. exit_codes: of the runs that failed; reported: the errors that were printed."""

    command: str
    run: Callable[[Any], None]
    exit_codes: list[int] = field(default_factory=list)
    reported: set[str] = field(default_factory=set)

    def run_all(self, line: Line) -> None:
        """Run the points of a sweep one after the other."""
        from itertools import product

        axes = axes_of(self.command, line)
        for values in product(*axes.swept.values()):
            varied = (f"{key}={value}" for key, value in zip(axes.swept, values, strict=True))
            point = Line((*axes.fixed.overrides, *varied), line.folders, command=self.command)
            set_current(point)
            self.attempt(lambda point=point: compose(self.command, point))  # type: ignore[misc]

    def attempt(self, config: Callable[[], Any], once: bool = False) -> tuple[str, int] | None:
        """Run one configuration; report an error; return its line and exit code. once: if others share it."""
        try:
            self.run(config())
        except Exception as error:
            return self.report(error, once)
        return None

    def report_refused(self, errors: Sequence[Exception], runs: int) -> None:
        """Print why some of the runs of a sweep cannot begin, each reason once, with the number of its runs."""
        for (line, code), number in Counter(map(outcome, errors)).items():
            self.exit_codes.append(code)
            which = f"{'all' if number == runs else number} of the {runs} runs"
            rest = "none of which was started" if len(errors) == runs else "the others go on"
            count = f" ({which}, {rest})" if runs > 1 else ""
            print(f"pairscale {self.command}: {line}{count}", file=sys.stderr)

    def report(self, error: Exception, once: bool = False) -> tuple[str, int]:
        """Print and return the one line of an error, and return its exit code."""
        line, code = outcome(error)
        self.exit_codes.append(code)
        if not once or line not in self.reported:
            print(f"pairscale {self.command}: {line}", file=sys.stderr)
        self.reported.add(line)
        return line, code
