"""Lines on standard error: whole and as they are, above what is drawn in place."""

import io
import re
import time

from pairscale.console import say
from pairscale.progress import Activity, in_place, shown


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


def test_a_line_is_whole_and_as_it_is(capsys):
    say(f"[red]{'long ' * 100}:smile: /tmp/a [1]", "warning", "yellow")
    assert capsys.readouterr().err == f"warning [red]{'long ' * 100}:smile: /tmp/a [1]\n"
