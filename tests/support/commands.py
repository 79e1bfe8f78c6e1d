"""Run commands (`python -m PACKAGE ...`) in this process or their own, without the seconds that imports take.

Each pytest process has a server that has imported everything. A command's process is forked from this server, with its
own arguments, environment, signals, exit code and output.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pairscale.command.line import Line
from pairscale.command.main import main
from tests.support import ROOT

PRELOADED = (
    "torch", "lightning", "pairscale.command.main", "corpora.__main__", "corpora.prepare", "corpora.toy",
    "train.__main__", "train.run", "train.loop.training", "train.runs.model_folder", "train.ngram",
    "eval.__main__", "eval.run", "eval.methods.judging", "eval.methods.builtin.votes", "eval.scorers.ngram",
    "analysis.__main__", "analysis.run", "corpora.run", "train.models.huggingface",
    "transformers.models.gpt2.modeling_gpt2", "transformers.models.roberta.modeling_roberta",
)  # fmt: skip


@cache
def _context() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    first = context.Process(target=os.getpid)  # starts the server, so that no command is charged for its start
    first.start()
    first.join()
    return context


def _run(
    words: list[str], environment: dict[str, str], printed: str, folder: Path, before: Callable[[], object]
) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(Path(printed, name), os.O_WRONLY | os.O_APPEND), number)
    sys.argv = words
    before()
    sys.modules.pop(f"{words[0]}.__main__", None)  # the server has imported it, but a command never does
    try:
        if words[0].endswith(".py"):
            runpy.run_path(words[0], run_name="__main__")
        else:
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


class Command:
    """A running command, which is a package or a Python script with its arguments. It runs in `folder`.

    `environment` is added to the tests' environment. `before` is called in the new process.
    """

    def __init__(
        self,
        *words: str | Path,
        environment: Mapping[str, str] | None = None,
        folder: Path = ROOT,
        before: Callable[[], object] = os.getpid,
    ):
        self._printed = Path(tempfile.mkdtemp(prefix="pairscale-command-"))
        for name in ("stdout", "stderr"):
            (self._printed / name).touch()
        environment = os.environ | dict(environment or {})
        arguments = (list(map(str, words)), environment, str(self._printed), folder, before)
        self._process = _context().Process(target=_run, args=arguments)
        self._process.start()
        self._output: dict[str, str] = {}

    @property
    def pid(self) -> int:
        return int(self._process.pid)

    @property
    def code(self) -> int | None:
        """The exit code, which is -N after signal N, or None while the command runs."""
        code: int | None = self._process.exitcode
        return code

    def output(self, name: str = "stderr") -> str:
        """Return the text printed so far to `name` (stdout or stderr)."""
        return self._output.get(name) or (self._printed / name).read_text(encoding="utf-8")

    def kill(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self, seconds: float = 300) -> subprocess.CompletedProcess[str]:
        """Wait for the end of the command. Return exit code and output."""
        self._process.join(seconds)
        code = self.code
        if code is None:
            self._process.kill()
        assert code is not None, f"The command did not end within {seconds} s: {self.output()}"
        self._output = {name: self.output(name) for name in ("stdout", "stderr")}
        shutil.rmtree(self._printed, ignore_errors=True)
        return subprocess.CompletedProcess([], code, **self._output)


def exit_code(command: str, run: Callable[[Any], None], *words: str) -> int:
    """Run a command in this process and return its exit code. pytest's capsys captures its output.

    `run` is the function that the command calls with its configuration.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", [command, *words])
        patched.setattr("pairscale.command.line._current", Line())
        with pytest.raises(SystemExit) as end:
            main(command, run)
    return int(end.value.code or 0)


def run_command(
    *words: str | Path, environment: Mapping[str, str] | None = None, folder: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. Return exit code and output."""
    return Command(*words, environment=environment, folder=folder).wait()
