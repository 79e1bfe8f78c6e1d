"""Lines on standard error: whole and as they are, above a progress bar that is there."""

import io
import re
import sys

import pytest
from rich.console import Console
from rich.progress import Progress

from pairscale.console import say


def test_a_line_is_whole_and_as_it_is(capsys):
    say(f"[red]{'long ' * 100}:smile: /tmp/a [1]", "warning", "yellow")
    assert capsys.readouterr().err == f"warning [red]{'long ' * 100}:smile: /tmp/a [1]\n"


@pytest.mark.parametrize(("label", "line"), [("", "saved"), ("warning", "warning saved")])
def test_a_line_stands_above_a_progress_bar(monkeypatch, label, line):
    terminal = io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Progress(console=Console(stderr=True, force_terminal=True, width=80), auto_refresh=False) as bar:
        bar.add_task("training", total=2)
        bar.refresh()
        say("saved", label)
    text = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())  # without colours
    assert f"\r\x1b[2K{line}" in text  # after the bar's line was erased
