"""A process of a sweep (pool.py), which runs one command after another, so that torch is imported once.

A line of JSON on standard input asks for a run: its words and its log. Lines on standard output answer: {"state": ...}
while it works, and {"code": ..., "result": ...} at its end. Each run finds the process as the first one did: settings,
signals, seeds and variables of the environment are put back, memory is freed. No run follows one that failed.
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

STATE_SECONDS = 1.0  # between two reports
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


def run_command(words: Sequence[str]) -> int:
    """Run `pairscale WORDS` in this process; return its exit code."""
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
    """What a run may change in its process, as it was when this object was made."""

    def __init__(self) -> None:
        self.environment = dict(os.environ)
        self.handlers = {number: signal.getsignal(number) for number in SIGNALS}

    def restore(self) -> None:
        """Put all back, and free the memory of the run that has ended."""
        os.environ.clear()
        os.environ.update(self.environment)
        for number, handler in self.handlers.items():
            signal.signal(number, handler)
        gc.unfreeze()  # what main.py has frozen, as for the end of a process
        gc.collect()
        gc.freeze()  # what is left stays, modules above all, and is not looked at again
        if "torch" in sys.modules:
            import torch

            torch.manual_seed(torch.Generator().initial_seed())  # that of a new process
            torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
            torch.backends.cudnn.allow_tf32 = True
            if "torch._dynamo" in sys.modules:
                torch._dynamo.reset()  # which stops compiling a model's code after some versions of it
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
    """Run what is asked for until nothing is left."""
    guard = threading.Lock()  # lines of two threads must not mix

    def answer(**values: object) -> None:
        with guard, suppress(BrokenPipeError):  # the sweep has been killed, and this run goes on to its end
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
            before.restore()  # before the answer, so that its seconds are no other run's
        answer(code=code, result=asdict(take_result()))


def main() -> None:
    """Take standard input and output for requests and answers; runs get /dev/null and their logs."""
    gc.set_threshold(50_000, 20, 20)  # as in pairscale/command/main.py
    requests, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    with suppress(KeyboardInterrupt):  # between two runs; the sweep ends
        serve(requests, answers)
    gc.freeze()  # Python looks for garbage at its end, too: among so many objects for a second


if __name__ == "__main__":
    main()
