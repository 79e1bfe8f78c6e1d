"""Sweeps in a pseudo terminal of 80 columns: what stays on the screen, and the terminal as it was."""

import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from pairscale import environment, started_by
from pairscale.console import say
from pairscale.progress import Activity, in_place, shown

COLUMNS = 80
RUN = [
    "train", "-m", "study=s", "corpus=toy", "corpus.words=30000", "model=lstm_tiny", "model.embedding=16",
    "model.hidden=16", "sample.size=2k", "recipe.validation_words=200", "trainer.accelerator=cpu",
]  # fmt: skip


def screen(output):
    """Return the lines that stay of output whose only movements are those of rich: up a line, erase it."""
    lines, row = [""], 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", output):
        if part == "\n":
            row += 1
            lines += [""] if row == len(lines) else []
        elif re.fullmatch(r"\x1b\[\d*A", part):
            row -= int(part[2:-1] or 1)
        elif part == "\x1b[2K":
            lines[row] = ""
        elif not part.startswith(("\x1b", "\r")):
            lines[row] += part
    return [line.rstrip() for line in lines]


class Terminal:
    """A command in a terminal of its own."""

    def __init__(self, *words, **variables):
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, COLUMNS, 0, 0))
        self.before = termios.tcgetattr(theirs)
        clean = {key: value for key, value in environment().items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            started_by(*words), stdin=theirs, stdout=theirs, stderr=theirs,
            env=clean | {"TERM": "xterm-256color"} | variables, start_new_session=True,
        )  # fmt: skip
        self.theirs, self.output = theirs, b""

    def read_until(self, text):
        """Read until `text` is there; with None, until the command ends."""
        until = time.monotonic() + 240
        while text is None or text not in self.output.decode(errors="replace"):
            assert time.monotonic() < until, self.output
            if select.select([self.ours], [], [], 0.1)[0]:
                self.output += os.read(self.ours, 65536)
            elif self.process.poll() is not None:
                assert text is None, self.output
                return

    def screen(self):
        """Return the lines that stay."""
        return screen(self.output.decode(errors="replace"))

    def is_restored(self):
        """Return True if the cursor is seen and the modes are those from before."""
        text = self.output.decode(errors="replace")
        return text.rfind("\x1b[?25h") >= text.rfind("\x1b[?25l") and termios.tcgetattr(self.theirs) == self.before


class FakeTerminal(io.StringIO):
    def isatty(self):
        return True


def test_a_view_that_is_redrawn_while_lines_are_printed_erases_none_of_them(monkeypatch):
    terminal = FakeTerminal()
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "30"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("pairscale.progress.in_place", lambda console: {**in_place(console), "refresh_per_second": 500})
    with shown("a run"), Activity("training", 100, "words") as activity:
        for number in range(200):
            activity.completed = number / 2
            activity.detail = "loss 4.1" * (number % 3)
            say(f"line {number}")
            time.sleep(0.002)
    assert [line for line in screen(terminal.getvalue()) if line] == [f"line {number}" for number in range(200)]


@pytest.mark.slow
def test_a_sweep_is_a_table_while_it_works_and_a_line_a_run_at_the_end(tmp_path):
    """One run of three fails; an interrupt before leaves nothing on the screen and loses nothing."""
    paths = [f"paths.store={tmp_path}/store", f"paths.runs={tmp_path}/runs"]
    recipe = ["recipe.budget.epochs=15", "recipe.checkpoint_every=2k", "recipe.batch=99999,8,16"]
    words = [*RUN, *paths, "pool.jobs=2", *recipe]
    interrupted = Terminal(*words)
    interrupted.read_until("training")
    os.kill(interrupted.process.pid, signal.SIGINT)
    interrupted.read_until(None)
    assert interrupted.process.returncode == 130
    assert interrupted.is_restored()
    lines = [line for line in interrupted.screen() if line]
    assert any(re.fullmatch("stopping (1 run|2 runs)", line) for line in lines), lines
    assert lines[-1] == "pairscale train: interrupted; the same command goes on from the last checkpoint"
    assert not any("of 3 runs done" in line for line in lines), "the table is gone"

    again = Terminal(*words)
    again.read_until(None)
    assert again.process.returncode == 2
    assert again.is_restored()
    assert "of 3 runs done" in again.output.decode()
    lines = again.screen()
    prose = [line for line in lines if line and "/" not in line.replace("/3]", "")]  # paths are longer than a line
    assert all(len(line) <= COLUMNS for line in prose[:-1]), prose
    text = "\n".join(lines)
    done = r"^\[\d/3\] done (?:already )?batch=(?:8|16).*: perplexity [\d.,]+$"
    assert len(re.findall(done, text, re.MULTILINE)) == 2
    assert re.search(r"^\[\d/3\] FAILED batch=99999 in ", text, re.MULTILINE)
    assert re.search(r"^run +words +perplexity +time$", text, re.MULTILINE)
    assert re.search(r"^FAILED: batch=99999$", text, re.MULTILINE)
    assert text.count("recipe.batch=99999") == 1, "the reason stands there once"
    assert "of 3 runs done" not in text
