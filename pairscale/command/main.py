"""The frame of all commands: compose the configuration, run, report errors in one line, exit."""

from __future__ import annotations

import copy
import gc
import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from pairscale.command.compose import to_config
from pairscale.command.errors import FOLDER, outcome
from pairscale.command.help import asked_for_help, show_help
from pairscale.command.line import is_dry_sweep, is_sweep, overrides_of, words_for_hydra
from pairscale.command.rooms import register, runs
from pairscale.errors import PairscaleError

NOTHING_ALONE = ("corpora", "train", "eval", "analysis")  # commands that have to be told something to work on


def _remove_empty(folder: Path) -> None:
    """Remove a run's folder that Hydra made and nothing was written to, and that of its study."""
    if folder != Path(tempfile.gettempdir()):
        with suppress(OSError):
            folder.rmdir()
            folder.parent.rmdir()


def main(command: str, run: Callable[[Any], None], finish: Callable[[], None] = lambda: None) -> NoReturn:
    """Compose the configuration from the command line, run, `finish` after all runs of a sweep, and exit.

    Exit codes: 0, 2 for what a user can mend (one line on stderr), 75 where that is only another process at work on the
    run, 1 for a fault of the program (one line, with the file that holds its traceback), 130 for an interrupt;
    train/loop/preemption.py has those of signals.
    In a sweep a run that fails does not stop the others; the exit code tells.
    """
    if asked_for_help(sys.argv[1:]) or (not sys.argv[1:] and command in NOTHING_ALONE):
        show_help(command)
        sys.exit(0 if sys.argv[1:] else PairscaleError.exit_code)
    # Importing torch and Lightning makes 400,000 objects that stay: looking for garbage among them again and again
    # would take a fifth of the time to start.
    gc.set_threshold(50_000, 20, 20)
    register()
    # Before torch is imported: a thread that waits for another leaves its core to it, or to whatever else the machine
    # does (tests/bench/neighbour.py).
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ["HYDRA_FULL_ERROR"] = "1"  # let errors reach us instead of Hydra's own printing
    codes: list[int] = []  # of what failed
    told: set[str] = set()
    planned = False

    def fail(error: Exception) -> None:
        line, code = outcome(error)
        codes.append(code)
        if not planned or line not in told:  # runs of a sweep that is only planned often have one fault
            print(f"pairscale {command}: {line}", file=sys.stderr)
        told.add(line)

    def attempt(config: Callable[[], Any]) -> None:
        try:
            run(config())
        except Exception as error:
            if not planned:
                _remove_empty(Path(HydraConfig.get().runtime.output_dir))
            fail(error)
            if "SUBMITIT_EXECUTOR" in os.environ:  # a job of its own, which tells by failing
                raise

    @hydra.main(version_base="1.3", config_path=str(FOLDER), config_name=command)
    def task(node: DictConfig) -> None:
        attempt(partial(to_config, node))

    try:
        sys.argv[1:] = words_for_hydra(sys.argv[1:])
        overrides = overrides_of(sys.argv[1:])
        if planned := is_dry_sweep(sys.argv[1:]):
            for _, node, config in runs().points(command, overrides):
                HydraConfig.instance().set_config(node)
                attempt(partial(copy.copy, config))
        else:
            if command in ("train", "eval") and is_sweep(sys.argv[1:]):
                found = runs().points(command, overrides, skip_refused=True)  # what is refused will say so itself
                runs().keep_points(found, command, f"python -m {command} -m {shlex.join(overrides)}")
            task()
        finish()
    except KeyboardInterrupt:
        print(f"pairscale {command}: interrupted; the same command goes on from the last checkpoint", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        fail(error)
    gc.freeze()  # Python looks for garbage at its end, too: among so many objects for a second
    sys.exit(min(codes, default=0))
