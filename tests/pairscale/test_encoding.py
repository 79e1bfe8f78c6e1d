"""Terminals whose encoding lacks characters: every command writes "?" for them, and none fails; logs are UTF-8."""

import io
import os
import pty
import subprocess
import sys

import pandas as pd
import pytest

from pairscale.command.main import main
from pairscale.command.pool import Slots
from pairscale.console import replace_unprintable
from tests.support import ROOT

SMALL = [
    "study=s", "corpus=toy", "corpus.words=60000", "sample.size=4k,8k", "model=lstm_tiny", "model.embedding=16",
    "model.hidden=16", "recipe.validation_words=500", "recipe.budget.epochs=1", "trainer.threads=1",
    "trainer.accelerator=cpu", "benchmark=toy", "benchmark.per_paradigm=4", "method=[lp]", "pool.jobs=1",
]  # fmt: skip
LOCALE_C = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}


def ascii_terminal(monkeypatch):
    """Make standard output and error files of ASCII; return their bytes."""
    files = {name: io.BytesIO() for name in ("stdout", "stderr")}
    for name, file in files.items():
        monkeypatch.setattr(sys, name, io.TextIOWrapper(file, encoding="ascii", write_through=True))
    return files


def test_the_frame_of_all_commands_replaces_what_an_encoding_lacks(monkeypatch):
    terminal = ascii_terminal(monkeypatch)
    monkeypatch.setattr(sys, "argv", ["status", "study=s"])
    with pytest.raises(SystemExit, match="0"):
        main("status", lambda config: print("48.6\u201390.5 \u00b7 lp"))
    assert terminal["stdout"].getvalue() == b"48.6?90.5 ? lp\n"


def test_streams_of_other_kinds_are_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr(sys, "stderr", None)
    replace_unprintable()
    print("\u00b7")
    assert sys.stdout.getvalue() == "\u00b7\n"


def test_logs_of_a_sweep_are_utf_8_in_any_locale():
    environment = os.environ | LOCALE_C | Slots(1, 1).environment(0) | LOCALE_C
    command = [sys.executable, "-c", r"print('4\u20135')"]
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert done.stdout == "4\u20135\n".encode()


@pytest.mark.slow
def test_a_study_is_trained_scored_and_reported_in_any_encoding(tmp_path):
    def run(*words):
        environment = os.environ | LOCALE_C | {"COLUMNS": "100"}
        done = subprocess.run([sys.executable, *words, *paths], cwd=ROOT, env=environment, capture_output=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode("ascii")

    paths = [f"paths.{name}={tmp_path}/{name}" for name in ("store", "runs", "reports")]
    run("-m", "eval", "-m", *SMALL)
    (log, *_) = sorted(tmp_path.glob("runs/s/logs/*/0.log"))
    assert "\u00b7 lp" in log.read_text(encoding="utf-8")
    scores = sorted(tmp_path.glob("runs/s/*/scores/*/lp.parquet"))
    assert [len(pd.read_parquet(path)) for path in scores] == [164, 164]
    assert "?" in run("-m", "analysis", "study=s")
    assert (tmp_path / "reports" / "s" / "report.html").exists()
    assert "lstm_tiny" in run("-m", "analysis.status", "study=s")
    assert "nothing was submitted" in run(str(ROOT / "slurm" / "submit"), "experiment=demo", "dry_run=true")


@pytest.mark.slow
def test_progress_on_a_terminal_of_ascii(tmp_path):
    """rich draws the runs of a sweep in place, with a bar, and shows the cursor again."""
    written = bytearray()

    def read(descriptor):
        written.extend(data := os.read(descriptor, 4096))
        return data

    words = [*SMALL, f"paths.store={tmp_path}/store", f"paths.runs={tmp_path}"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONIOENCODING", "ascii")
        patched.setenv("TERM", "xterm")
        patched.chdir(ROOT)
        code = pty.spawn([sys.executable, "-m", "eval", "-m", *words], read, lambda _: b"")
    assert os.waitstatus_to_exitcode(code) == 0, bytes(written[-2000:])
    text = written.decode("ascii")
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l") > 0
