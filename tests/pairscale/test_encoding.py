"""Terminals whose encoding lacks characters: every command writes "?" for them, and none fails; logs are UTF-8."""

import contextlib
import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from pairscale.command.errors import one_line_errors
from pairscale.command.main import main
from pairscale.command.pool import Slots
from pairscale.console import replace_unprintable
from pairscale.errors import InputError
from tests.support import ROOT

SMALL = [
    "study=s", "corpus=toy", "corpus.words=60000", "sample.size=4k,8k", "model=lstm_tiny", "model.embedding=16",
    "model.hidden=16", "recipe.validation_words=500", "recipe.budget.epochs=1", "trainer.threads=1",
    "trainer.accelerator=cpu", "benchmark=toy", "benchmark.per_paradigm=4", "method=[lp]", "pool.jobs=1",
]  # fmt: skip
ENCODINGS = {
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "locale C": {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"},
}


def ascii_terminal(monkeypatch):
    """Make standard output and error files of ASCII; return their bytes."""
    files = {name: io.BytesIO() for name in ("stdout", "stderr")}
    for name, file in files.items():
        monkeypatch.setattr(sys, name, io.TextIOWrapper(file, encoding="ascii", write_through=True))
    return files


def test_what_an_encoding_lacks_is_printed_as_question_marks(monkeypatch):
    terminal = ascii_terminal(monkeypatch)
    replace_unprintable()
    print("48.6\u201390.5 \u00b7 lp")
    print("\u00e9tude", file=sys.stderr)
    assert terminal["stdout"].getvalue() == b"48.6?90.5 ? lp\n"
    assert terminal["stderr"].getvalue() == b"?tude\n"


def test_streams_of_other_kinds_are_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr(sys, "stderr", None)
    replace_unprintable()
    print("\u00b7")
    assert sys.stdout.getvalue() == "\u00b7\n"


def test_the_frame_of_all_commands_replaces(monkeypatch):
    terminal = ascii_terminal(monkeypatch)
    monkeypatch.setattr(sys, "argv", ["status", "study=s"])
    with pytest.raises(SystemExit, match="0"):
        main("status", lambda config: print("4\u20135"))
    assert terminal["stdout"].getvalue() == b"4?5\n"


def test_the_frame_of_commands_without_a_configuration_replaces(monkeypatch):
    terminal = ascii_terminal(monkeypatch)
    with contextlib.suppress(SystemExit), one_line_errors("slurm/submit"):
        print("4\u20135")
        raise InputError("caf\u00e9")
    assert terminal["stdout"].getvalue() == b"4?5\n"
    assert terminal["stderr"].getvalue() == b"slurm/submit: caf?\n"


def test_logs_of_a_sweep_are_utf_8_in_any_locale():
    environment = os.environ | ENCODINGS["locale C"] | Slots(1, 1).environment(0) | ENCODINGS["locale C"]
    done = subprocess.run(
        [sys.executable, "-c", r"print('4\u20135')"], env=environment, capture_output=True, check=True
    )
    assert done.stdout == "4\u20135\n".encode()


def run(words: list[str | Path], encoding: str) -> tuple[str, str]:
    """Run a command, which must end with exit code 0; return its output, which must be ASCII."""
    environment = os.environ | ENCODINGS[encoding] | {"COLUMNS": "100"}
    done = subprocess.run([sys.executable, *map(str, words)], cwd=ROOT, env=environment, capture_output=True)
    output, errors = done.stdout.decode("ascii"), done.stderr.decode("ascii")
    assert done.returncode == 0, errors
    return output, errors


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("encoding")


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_study_is_trained_scored_and_reported_in_any_encoding(store, tmp_path, encoding):
    paths = [f"paths.store={store}", f"paths.runs={tmp_path}/runs", f"paths.reports={tmp_path}/reports"]
    run(["-m", "eval", "-m", *SMALL, *paths], encoding)
    (log, *_) = sorted(tmp_path.glob("runs/s/logs/*/0.log"))
    assert "\u00b7 lp" in log.read_text(encoding="utf-8")
    scores = sorted(tmp_path.glob("runs/s/*/scores/*/lp.parquet"))
    assert [len(pd.read_parquet(path)) for path in scores] == [164, 164]
    report, _ = run(["-m", "analysis", "study=s", *paths], encoding)
    assert "?" in report
    assert (tmp_path / "reports" / "s" / "report.html").exists()
    status, _ = run(["-m", "analysis.status", "study=s", *paths], encoding)
    assert "lstm_tiny" in status
    submitted, _ = run([ROOT / "slurm" / "submit", "experiment=demo", "dry_run=true", *paths], encoding)
    assert "dry run" in submitted


@pytest.mark.slow
def test_progress_on_a_terminal_of_ascii(store, tmp_path):
    """rich draws the runs of a sweep in place, with a bar."""
    written = bytearray()

    def read(descriptor):
        written.extend(data := os.read(descriptor, 4096))
        return data

    words = [*SMALL, f"paths.store={store}", f"paths.runs={tmp_path}"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONIOENCODING", "ascii")
        patched.setenv("TERM", "xterm")
        patched.chdir(ROOT)
        code = pty.spawn([sys.executable, "-m", "eval", "-m", *words], read, lambda _: b"")
    assert os.waitstatus_to_exitcode(code) == 0, bytes(written[-2000:])
    assert b"\x1b[" in written
    written.decode("ascii")
