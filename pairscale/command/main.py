"""The frame of all commands: compose the configuration, run, report errors in one line, exit."""

import copy
import gc
import os
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from pairscale.command.compose import to_config
from pairscale.command.errors import FOLDER, outcome
from pairscale.command.help import asks_for_help, show_help
from pairscale.command.line import is_dry_sweep, is_sweep, overrides_of, words_for_hydra
from pairscale.command.rooms import register, runs
from pairscale.command.used import CHECKED, check_used
from pairscale.console import replace_unprintable
from pairscale.errors import PairscaleError
from pairscale.progress import close_views

NEED_ARGUMENTS = ("corpora", "annotate", "find", "train", "eval", "analysis")  # without any they print their help


def main(command: str, run: Callable[[Any], None], finish: Callable[[], None] = lambda: None) -> NoReturn:
    """Call `run` with each configuration of the command line, then `finish`, and exit.

    Exit codes: 0; 2 for an error of the input (one line on stderr); 75 if another process is at work on the run; 1 for
    a fault of the program (one line, with the file that holds its traceback); 130 for an interrupt; those of signals
    are in train/loop/preemption.py. A failing run does not stop a sweep; the exit code reports it.
    """
    replace_unprintable()
    arguments = sys.argv[1:]
    if asks_for_help(arguments) or (not arguments and command in NEED_ARGUMENTS):
        show_help(command)
        sys.exit(0 if arguments else PairscaleError.exit_code)
    # Importing torch and Lightning makes 400,000 objects that stay: looking for garbage among them again and again
    # would take a fifth of the time to start.
    gc.set_threshold(50_000, 20, 20)
    register()
    # Before torch is imported: a thread that waits for another leaves its core to it, or to whatever else the machine
    # does (tests/bench/neighbour.py).
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors reach us instead of Hydra's own printing
    session = _Session(command, run)
    try:
        sys.argv[1:] = words_for_hydra(arguments)
        session.start(sys.argv[1:])
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
class _Session:
    """One process of a command. only_plans: True for the dry run of a sweep; exit_codes: of the runs that failed."""

    command: str
    run: Callable[[Any], None]
    only_plans: bool = False
    exit_codes: list[int] = field(default_factory=list)
    reported: set[str] = field(default_factory=set)

    def start(self, words: list[str]) -> None:
        """Run what the words of a command line ask for: one configuration, or each of a sweep.

        Raises ConfigError for a word that the command does not use: not later, when an experiment's own axes, which may
        be for other commands, look like words.
        """
        overrides = overrides_of(words)
        if CHECKED not in os.environ:
            check_used(self.command, overrides)
        self.only_plans = is_dry_sweep(words)
        if self.only_plans:
            for _, node, config in runs().points(self.command, overrides):
                HydraConfig.instance().set_config(node)
                self.attempt(partial(copy.copy, config))
            return
        if self.command in ("train", "eval") and is_sweep(words):
            refused: list[Exception] = []
            points = list(runs().points(self.command, overrides, refused))
            if refused and not points:
                self.report_all(refused)
                return
            # A refused run beside others reports itself.
            runs().record_points(points, self.command, f"python -m {self.command} -m {shlex.join(overrides)}")

        @hydra.main(version_base="1.3", config_path=str(FOLDER), config_name=self.command)
        def task(node: DictConfig) -> tuple[str, int] | None:
            return self.attempt(partial(to_config, node))

        task()

    def attempt(self, config: Callable[[], Any]) -> tuple[str, int] | None:
        """Run one configuration; report an error, and return it, instead of raising it."""
        try:
            self.run(config())
        except Exception as error:
            if not self.only_plans:
                _remove_empty(Path(HydraConfig.get().runtime.output_dir))
            return self.report(error)
        return None

    def report_all(self, errors: Sequence[Exception]) -> None:
        """Print what keeps every run of a sweep from beginning, each reason once, with the number of its runs."""
        reasons = Counter(map(outcome, errors))
        for (line, code), number in reasons.items():
            self.exit_codes.append(code)
            which = "all" if number == len(errors) else str(number)
            count = f" ({which} of the {len(errors)} runs, none of which was started)" if len(errors) > 1 else ""
            print(f"pairscale {self.command}: {line}{count}", file=sys.stderr)

    def report(self, error: Exception) -> tuple[str, int]:
        """Print and return the one line of an error, and return its exit code.

        The runs of a dry sweep often share a fault, which is printed once.
        """
        line, code = outcome(error)
        self.exit_codes.append(code)
        if not self.only_plans or line not in self.reported:
            print(f"pairscale {self.command}: {line}", file=sys.stderr)
        self.reported.add(line)
        return line, code


def _remove_empty(folder: Path) -> None:
    """Remove a run's folder, and that of its study, if Hydra created it and nothing was written to it."""
    if folder != Path(tempfile.gettempdir()):
        with suppress(OSError):
            folder.rmdir()
            folder.parent.rmdir()
