"""How commands end: exit codes, the line about an error, and the file with its traceback."""

import re
import sys
from pathlib import Path

import pytest

from pairscale.command.main import main
from pairscale.errors import ConfigError, InputError


@pytest.fixture
def end(tmp_path, monkeypatch, capsys):
    """Return a function that runs a command raising an error, and returns its exit code and stderr."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def end(error, *overrides, finish=False):
        def fail(*_):
            raise error

        monkeypatch.setattr(sys, "argv", ["train", "corpus=toy", *overrides, f"paths.runs={tmp_path}", "study=mine"])
        with pytest.raises(SystemExit) as ended:
            main("train", (lambda _: None) if finish else fail, fail if finish else lambda: None)
        return ended.value.code, capsys.readouterr().err

    return end


def traceback_file(line):
    match = re.search(r"the traceback is in (\S+);", line)
    return Path(match[1])


@pytest.mark.parametrize("finish", [False, True])
def test_a_fault_is_one_line_that_names_the_file_of_its_traceback(end, finish):
    code, printed = end(KeyError("a\nb"), finish=finish)
    assert code == 1
    assert printed.count("\n") == 1
    assert printed.startswith("pairscale train: unexpected KeyError: 'a\\nb' (a fault of pairscale; the traceback is")
    saved = traceback_file(printed).read_text(encoding="utf-8")
    assert saved.splitlines()[0].startswith("train corpus=toy paths.runs=")
    assert "Traceback (most recent call last)" in saved
    assert saved.endswith("KeyError: 'a\\nb'\n")


def test_developers_see_the_traceback_as_well(end, monkeypatch):
    monkeypatch.setenv("PAIRSCALE_TRACEBACK", "1")
    code, printed = end(ZeroDivisionError())
    assert code == 1
    assert printed.startswith("Traceback")
    assert printed.splitlines()[-1].startswith("pairscale train: unexpected ZeroDivisionError: ")


def test_a_fault_in_one_run_does_not_stop_the_others(end):
    code, printed = end(RecursionError("deep"), "-m", "hydra/launcher=basic", "seed=1,2")
    assert code == 1
    reasons = [line.partition(": unexpected ")[2][:20] for line in printed.splitlines() if "unexpected" in line]
    assert reasons == ["RecursionError: deep"] * 2
    assert re.findall(r"^\[(\d/2)\] FAILED seed (\d) in ", printed, re.MULTILINE) == [("1/2", "1"), ("2/2", "2")]


def test_an_error_that_quotes_text_of_several_lines_is_one_line(end):
    code, printed = end(ConfigError("model.name=a\nb\x1b[31m\ud800: must be"))
    assert code == 2
    assert printed == "pairscale train: model.name=a b [31m : must be\n"


@pytest.mark.parametrize("error", [ConfigError("method.lp.x: no such key"), InputError("no such file"), KeyError("x")])
def test_an_empty_folder_created_by_hydra_is_removed(end, tmp_path, error):
    end(error)
    assert not (tmp_path / "mine").exists()
