"""How commands end: exit codes, the line about an error, and the file with its traceback."""

import re
import sys
from pathlib import Path

import pytest

from pairscale.command.main import main
from pairscale.errors import ConfigError
from train.sweeps import run_grid


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


@pytest.mark.parametrize("finish", [False, True])
def test_a_fault_is_one_line_that_names_the_file_of_its_traceback(end, tmp_path, finish):
    code, printed = end(KeyError("a\nb"), finish=finish)
    assert code == 1
    assert printed.count("\n") == 1
    assert printed.startswith(
        "pairscale train: unexpected KeyError: 'a\\nb'. This is a bug in pairscale. Please report"
    )
    saved = Path(re.search(r"traceback, which is in (\S+)$", printed)[1]).read_text(encoding="utf-8")
    assert saved.splitlines()[0].startswith("train corpus=toy paths.runs=")
    assert "Traceback (most recent call last)" in saved
    assert saved.endswith("KeyError: 'a\\nb'\n")
    assert not (tmp_path / "mine").exists()


def test_developers_see_the_traceback_as_well(end, monkeypatch):
    monkeypatch.setenv("PAIRSCALE_TRACEBACK", "1")
    code, printed = end(ZeroDivisionError())
    assert code == 1
    assert printed.startswith("Traceback")
    assert printed.splitlines()[-1].startswith("pairscale train: unexpected ZeroDivisionError: ")


def test_a_fault_in_one_run_does_not_stop_the_others(end):
    code, printed = end(RecursionError("deep"), "-m", "seed=1,2")
    assert code == 1
    reasons = [line.partition(": unexpected ")[2][:20] for line in printed.splitlines() if "unexpected" in line]
    assert reasons == ["RecursionError: deep"] * 2


def test_an_error_that_quotes_text_of_several_lines_is_one_line(end, tmp_path):
    code, printed = end(ConfigError("model.name=a\nb\x1b[31m\ud800: must be"))
    assert code == 2
    assert printed == "pairscale train: model.name=a b [31m : must be\n"
    assert not (tmp_path / "mine").exists()


SWEEP = ["-m", "model=lstm_tiny,gru_tiny", "seed=1,2", "sample.size=4k,8k"]


@pytest.fixture
def sweep(tmp_path, monkeypatch, capsys):
    """Return a function that runs a sweep whose runs do nothing; it returns exit code, stderr and the number begun."""

    begun = []

    def begin(command, jobs, *more):
        begun.extend(jobs)
        return [0] * len(jobs)

    monkeypatch.setattr("train.sweeps.run_jobs", begin)

    def sweep(*overrides, command="train", words=SWEEP):
        begun.clear()
        paths = [f"paths.{name}={tmp_path}/{name}" for name in ("runs", "store")]
        monkeypatch.setattr(sys, "argv", [command, "corpus=toy", *paths, "study=mine", *words, *overrides])
        with pytest.raises(SystemExit) as ended:
            main(command, lambda config: None, sweep=run_grid)
        return ended.value.code, capsys.readouterr().err, len(begun)

    return sweep


@pytest.mark.parametrize("command", ["train", "eval"])
@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (
            ["recipe=wsd_words", "recipe.budget.epochs=1"],
            "recipe.budget.epochs=1.0, recipe.budget.words=2M: set exactly one",
        ),
        (["recipe.budget.words=2M"], "recipe.budget.words=2M: set exactly one"),
        (["model.dropout=7"], "model.dropout=7: "),
        (["corpus=local"], "corpus.path: "),
    ],
)
def test_what_fails_every_run_of_a_sweep_is_said_once_before_the_first(sweep, tmp_path, command, overrides, reason):
    (tmp_path / "own" / "recipe").mkdir(parents=True)
    budget = "defaults: [lstm_tiny, _self_]\nname: wsd_words\nbudget: {epochs: null, words: 2M}\n"
    (tmp_path / "own" / "recipe" / "wsd_words.yaml").write_text(budget)
    own = ["--config-dir", str(tmp_path / "own")]
    code, printed, begun = sweep(*own, *overrides, command=command)
    assert (code, begun) == (2, 0)
    lines = printed.splitlines()
    assert sum(reason in line for line in lines) == len(lines)
    assert sum(int(re.search(r"\((all|\d+) of the 8 runs", line)[1].replace("all", "8")) for line in lines) == 8
    assert len(lines) == len(set(lines)) <= 2  # epochs differ between the two models' recipes
    assert not (tmp_path / "runs").exists()


def test_a_model_that_comes_trained_is_refused_once_by_training(sweep):
    words = ["-m", "model=hf_causal", "model.path=a,b"]
    code, printed, begun = sweep(words=words)
    assert (code, begun) == (2, 0)
    assert printed.count("this model is trained already. Score it with python -m eval") == 1
    assert "(all of the 2 runs" in printed
