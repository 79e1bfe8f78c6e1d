"""Run a worker process of a sweep (pool.py). It does one run after another, so that torch is imported only once.

A line of JSON on standard input requests a run, and contains its words and its log. The answers are lines of JSON on
standard output: {"state": ...} during the run, and {"code": ..., "result": ...} at its end. Between two runs, settings,
signals, seeds and environment variables are restored and memory is freed. The process ends after a failed run.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TextIO

from pairscale import COMMANDS
from pairscale.progress import every, state_now, take_result

STATE_SECONDS = 1.0  # time between two reports of the state
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


def run_command(words: Sequence[str]) -> int:
    """Run `pairscale WORDS` in this process and return its exit code."""
    module = COMMANDS[words[0]].module
    sys.argv = [module, *words[1:]]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


class Surroundings:
    """A copy of the environment variables and signal handlers, which a run may change."""

    def __init__(self) -> None:
        self.environment = dict(os.environ)
        self.handlers = {number: signal.getsignal(number) for number in SIGNALS}

    def restore(self) -> None:
        """Restore everything, and free the memory of the run that has ended."""
        os.environ.clear()
        os.environ.update(self.environment)
        for number, handler in self.handlers.items():
            signal.signal(number, handler)
        gc.unfreeze()  # main.py has frozen these objects, because it expects the process to end
        gc.collect()
        gc.freeze()  # the remaining objects, mostly modules, stay and need not be checked again
        if "torch" in sys.modules:
            import torch

            torch.manual_seed(torch.Generator().initial_seed())  # the seed of a new process
            torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
            torch.backends.cudnn.allow_tf32 = True
            if "torch._dynamo" in sys.modules:
                torch._dynamo.reset()  # otherwise it stops compiling after several models
            if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
                torch.cuda.empty_cache()  # for the other runs on this GPU


def _print_to(log: str) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)


def serve(requests: TextIO, answers: TextIO) -> None:
    """Do the requested runs, one line of JSON each, until `requests` ends."""
    guard = threading.Lock()  # the lines of two threads must not mix

    def answer(**values: object) -> None:
        with guard, suppress(BrokenPipeError):  # if the sweep was killed, this run continues to its end
            print(json.dumps(values), file=answers, flush=True)

    before = Surroundings()
    for line in requests:
        request = json.loads(line)
        _print_to(request["log"])
        with every(STATE_SECONDS, lambda: answer(state=asdict(state_now()))):
            code = run_command(request["words"])
        sys.stdout.flush()
        sys.stderr.flush()
        if not code:
            before.restore()  # before the answer, so that no other run is charged for the time
        answer(code=code, result=asdict(take_result()))


def main() -> None:
    """Read requests from standard input and answer on standard output. Runs get /dev/null and their logs instead."""
    gc.set_threshold(50_000, 20, 20)  # as in pairscale/command/main.py
    requests, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    with suppress(KeyboardInterrupt):  # between two runs, when the sweep ends
        serve(requests, answers)
    gc.freeze()  # otherwise Python spends a second at exit looking for garbage among so many objects


if __name__ == "__main__":
    main()
