"""Runs forked from one process that has imported torch and Lightning, which takes each run three CPU seconds otherwise.

That process has one thread, uses no GPU, and has the runs' environment, which libraries read when they are loaded. What
it forks is otherwise a process as any other: `python -P -m pairscale ...`, a session, output, signals, exit code.
"""

import gc
import json
import os
import runpy
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from pairscale import started_by
from pairscale.command.rooms import runs
from pairscale.errors import RunError

MESSAGE_BYTES = 2**17  # of a command line; the kernel takes 200 KB


class Fork:
    """A run in a process that `Forks` started; its methods are those of subprocess.Popen."""

    def __init__(self, connection: socket.socket, log: Path):
        self._connection, self._log = connection, log
        self.pid = self._number()

    def _number(self) -> int:
        if message := self._connection.recv(MESSAGE_BYTES):
            return int(message)
        self._connection.close()
        raise RunError(f"the process that starts runs has died; its output: {self._log}")

    def wait(self) -> int:
        """Return the exit code, -N after signal N, once the run has ended. Raises RunError if it remains unknown."""
        with self._connection:
            return self._number()

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(self.pid, number)


class Forks:
    """The process that runs are forked from. environment: of all runs; log: its output, most often empty."""

    def __init__(self, environment: Mapping[str, str], log: Path):
        self._log = log
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, log.open("wb") as output:
            self._process = subprocess.Popen(
                started_by(__name__, str(theirs.fileno())), pass_fds=[theirs.fileno()], env=environment,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def start(self, words: Sequence[str], variables: Mapping[str, str], output: BinaryIO) -> Fork:
        """Start `pairscale WORDS`, with additional environment variables. Raises RunError if that is not possible."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, suppress(BrokenPipeError):  # then nobody answers
            request = json.dumps([list(words), dict(variables)]).encode()
            socket.send_fds(self._requests, [request], [output.fileno(), theirs.fileno()])
        return Fork(ours, self._log)

    def close(self) -> None:
        """End the process that runs are forked from; runs go on."""
        self._requests.close()
        self._process.wait()
        if not self._log.stat().st_size:
            self._log.unlink()


def _reap(options: int) -> None:
    """Wait for the processes that wait for runs, so that their CPU seconds count for the sweep."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def _next_command(requests: socket.socket) -> list[str]:
    """Fork for each request, and return its words in the new process."""
    while True:
        request, descriptors, *_ = socket.recv_fds(requests, MESSAGE_BYTES, 2)
        _reap(os.WNOHANG if request else 0)
        if not request:
            sys.exit()  # the launcher has ended
        output, answers = descriptors
        if os.fork() == 0:
            break
        os.close(output)
        os.close(answers)
    requests.close()
    if pid := os.fork():
        with socket.socket(fileno=answers) as launcher, suppress(BrokenPipeError):
            launcher.send(str(pid).encode())
            os.close(output)
            launcher.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
        os._exit(0)
    os.close(answers)
    os.setsid()
    os.dup2(output, sys.stdout.fileno())
    os.dup2(output, sys.stderr.fileno())
    os.close(output)
    words, variables = json.loads(request)
    os.environ.update(variables)
    return [str(word) for word in words]


def main() -> None:
    """Import what runs import, and become each run that is asked for on the socket whose number is the argument."""
    gc.disable()  # as in pairscale/command/main.py
    runs().preload()
    gc.freeze()  # so that the pages with its objects are shared, as far as nobody uses them
    words = _next_command(socket.socket(fileno=int(sys.argv[1])))
    gc.enable()
    sys.argv[1:] = words
    runpy.run_module("pairscale", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
