"""Command lines: help, wrong words, folders of the user's configuration, and commands from any folder."""

import os
import re
import shlex
import subprocess
import sys
import tomllib

import pytest

import pairscale.version
from pairscale import BY_SCRIPT, MODULES, ROOT, environment, started_by
from pairscale.command.compose import axes_of, compose
from pairscale.command.errors import outcome
from pairscale.command.help import show_help
from pairscale.command.line import Line, current, parsed
from pairscale.command.main import NEED_ARGUMENTS, main
from pairscale.errors import ConfigError, RunError
from pairscale.version import version_text
from train.runs.folder import RunFolder
from train.sweeps import check_whole_sweep, names_a_run, run_grid


def run_command(command, run):
    """Run a command with its check and its sweep (train/__main__.py, eval/__main__.py), but with `run` as its work."""

    def checked(config):
        if command in ("train", "eval"):
            check_whole_sweep(command, current(), config)
            if config.recipe.trains and (command == "train" or names_a_run(current())):
                RunFolder.of(config)  # as the work begins
        run(config)

    main(command, checked, sweep=run_grid if command in ("train", "eval") else None)


@pytest.fixture
def ended(tmp_path, monkeypatch, capsys):
    """Return a function that runs a command in this process, its sweeps as its module does.

    It returns the configurations that the work would begin with, the exit code, stdout and stderr.
    """

    def ended(command, *words):
        begun = []
        monkeypatch.setattr(sys, "argv", [command, *words])
        with pytest.raises(SystemExit) as caught:
            run_command(command, begun.append)
        return begun, caught.value.code or 0, *capsys.readouterr()

    monkeypatch.chdir(tmp_path)
    return ended


def test_a_file_that_was_edited_is_read_again(tmp_path):
    file = tmp_path / "model" / "mine.yaml"
    file.parent.mkdir()
    rates = []
    for dropout in (0.1, 0.25):
        file.write_text(f"defaults: [lstm_tiny, _self_]\nname: mine\ndropout: {dropout}\n")
        os.utime(file, (dropout, dropout))
        own = ["--config-dir", str(tmp_path), "corpus=toy", "model=mine", "recipe=sgd_plateau"]
        rates.append(compose("train", [*own, "seed=2"]).model.dropout)
    assert rates == [0.1, 0.25]


@pytest.mark.parametrize("command", NEED_ARGUMENTS)
def test_a_command_without_arguments_shows_its_help(ended, tmp_path, command):
    begun, code, out, _ = ended(command)
    assert (begun, code) == ([], 2)
    assert "Examples" in out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["train", "eval"])
@pytest.mark.parametrize("more", [[], ["dry_run=true"], ["-m", "seed=1,2", "study=mine"]])
def test_a_missing_corpus_is_a_message_of_one_line(ended, tmp_path, command, more):
    begun, code, _, err = ended(command, "model=lstm_tiny", *more)
    assert (begun, code) == ([], 2)
    assert err.count("\n") == 1
    assert "No corpus chosen. Add corpus=NAME" in err
    assert not list(tmp_path.glob("runs/*/*"))


@pytest.mark.parametrize(
    ("command", "overrides"),
    [
        ("eval", ["benchmark=toy"]),  # existing runs
        ("eval", ["model=hf_causal", "model.path=gpt2"]),
        ("eval", ["model=hf_causal", "model.path=gpt2", "experiment=blimp_small", "paths.data=/data"]),
        ("eval", ["model=imported", "model.checkpoint=model.pt"]),
        ("analysis", []),
    ],
)
def test_scoring_existing_and_pretrained_models_needs_no_corpus(ended, command, overrides):
    begun, code, _, err = ended(command, "study=mine", *overrides, *(["dry_run=true"] if command == "eval" else []))
    assert (len(begun), code) == (1, 0), err


@pytest.mark.parametrize("command", ["train", "eval"])
def test_an_experiments_sweep_without_m_is_an_error(ended, tmp_path, command):
    begun, code, _, err = ended(command, "experiment=demo", "seed=3")
    assert (begun, code) == ([], 2)
    assert "experiment=demo: this experiment is a sweep over model, sample.size, seed. Add -m" in err
    assert not list(tmp_path.iterdir())
    begun, code, _, err = ended(command, "-m", "experiment=demo", "seed=3", "dry_run=true")
    assert (len(begun), code) == (10, 0), err
    assert not list(tmp_path.iterdir())


def test_one_run_of_an_experiments_study_needs_no_m(ended):
    overrides = ["experiment=blimp_small", "model=lstm_tiny", "tokenizer=word", "sample.size=250k", "paths.data=/data"]
    (config,), code, _, err = ended("eval", *overrides)
    assert code == 0, err
    assert (config.study, config.seed, config.corpus.name) == ("blimp_small", 1, "english")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--experiment", "demo"], "There is no option --experiment. Write experiment=demo"),
        (["--seed=3"], "There is no option --seed. Write seed=3"),
        (["-x"], "There is no option -x. Write x=VALUE"),
        (["demo"], "must be key=value"),
        (["--config-dir", "nowhere"], "--config-dir nowhere: "),
        (["-m", "experiment=demo,blimp_small"], "experiment=demo,blimp_small: run one experiment at a time"),
    ],
)
def test_an_unknown_flag_is_a_message_of_one_line(ended, words, message):
    begun, code, _, err = ended("train", *words)
    assert (begun, code) == ([], 2)
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "value", ["données.csv", "my table (v2).csv", "a=b.csv", "x&y", "it's é", 'é "x"', "é\\", "$é", "a b"]
)
def test_a_text_that_hydra_cannot_read_is_taken_as_it_is(value):
    assert parsed(f"path={value}").value() == value


def test_texts_that_hydra_cannot_read_stand_in_lists_and_sweeps_too():
    assert parsed("path=[é,1]").value() == ["é", "1"]
    assert list(parsed("path=é,b").sweep_string_iterator()) == ["'é'", "b"]
    with pytest.raises(ConfigError, match=r"path=\[1,2: .* must be key=value\. .* comma"):
        parsed("path=[1,2")


@pytest.mark.parametrize(
    ("words", "swept"),
    [
        (["seed=1,2", "model=lstm,txl"], 2),
        (["study=1.10,b c"], 1),
        (["--config-dir", ".", "-m", "sample.size=4k,8k", "logger.project='a,b'", "corpus.path='ünï.txt'"], 1),
    ],
)
def test_a_recorded_command_is_the_sweep_that_was_typed(words, swept):
    """The grid of a study had seed='1,2' for seed=1,2, which is one value."""
    line = Line.of(["corpus=toy", *words])
    again = Line.of(shlex.split(line.written))
    assert axes_of("eval", again) == axes_of("eval", line)
    assert len(axes_of("eval", again)) == swept


def test_flags_may_come_after_overrides():
    assert Line.of(["seed=1,2", "-m", "corpus=toy"]) == Line(("seed=1,2", "corpus=toy"), sweeps=True)
    assert Line.of(["corpus=toy", "--cfg", "job"]) == Line(("corpus=toy",), shows=True)


def test_several_folders_of_a_users_configuration_are_searched(ended, tmp_path):
    """By runs, sweeps, suggestions of names and suggested commands; Hydra quotes the name of the first folder."""
    for folder, group, name, original in (
        ('my "models"', "model", "own", "lstm_tiny"),
        ("mine", "experiment", "own_sweep", "demo"),
    ):
        (tmp_path / folder / group).mkdir(parents=True)
        text = (ROOT / "conf" / group / f"{original}.yaml").read_text().replace("name: lstm_tiny", "name: own")
        (tmp_path / folder / group / f"{name}.yaml").write_text(text)
    own = ["--config-dir", 'my "models"', "--config-dir=mine"]
    chosen = [*own, "experiment=own_sweep", "model=own", "recipe=lstm_tiny"]
    (config,), code, _, err = ended("train", *chosen, "sample.size=2k", "dry_run=true")
    assert (config.model.name, config.model.hidden, config.corpus.name, code) == ("own", 128, "toy", 0), err
    _, code, _, err = ended("train", *chosen)
    assert code == 2
    suggested = re.search(r"python -m train -m (.*)\), or choose", err)
    begun, code, _, err = ended("train", "-m", *shlex.split(suggested[1]), "dry_run=true")
    assert (len(begun), code) == (10, 0), err
    begun, code, _, err = ended("train", *own, "experiment=own_swep")
    assert (begun, code) == ([], 2)
    assert "Did you mean 'own_sweep'?" in err


@pytest.fixture
def foreign(tmp_path):
    """Return a folder whose modules have our packages' names and exit when imported."""
    (tmp_path / "conf").mkdir()
    for name in ("train.py", "eval.py", "corpora.py", "analysis.py", "pairs.py", "conf/__init__.py"):
        (tmp_path / name).write_text("raise SystemExit('a file of somebody else')")
    return tmp_path


@pytest.mark.slow
def test_commands_work_from_any_folder(foreign):
    """Both ways to start a command work, and so do the processes that it starts: ranks, runs of the local launcher."""

    def run(command):
        return subprocess.run(command, cwd=foreign, env=environment(), capture_output=True, text=True, input="")

    arguments = ["train", "corpus=toy", "model=lstm_tiny", "--cfg", "job"]
    before = {path.name for path in foreign.iterdir()}
    for command in ([sys.executable, "-m", "pairscale"], started_by("pairscale")):
        done = run([*command, *arguments])
        assert done.returncode == 0, done.stderr
        assert "name: lstm_tiny" in done.stdout
    assert "EOFError" in run(started_by("train.rank")).stderr  # our module, which waits for a configuration
    assert {path.name for path in foreign.iterdir()} == before


@pytest.mark.parametrize("script", [True, False])
def test_suggested_commands_have_the_form_that_the_user_typed(script, monkeypatch, capsys):
    """The console script works from folders where `python -m eval` has no such module."""
    if script:
        monkeypatch.setenv(BY_SCRIPT, "1")
    show_help("status")
    status = "pairscale status" if script else "python -m analysis.status"
    assert f"  {status} study=demo remove=failed" in capsys.readouterr().out
    line, _ = outcome(RunError("python -m train, python -m eval.generate, not python -m pip"))
    names = "pairscale train, pairscale generate" if script else "python -m train, python -m eval.generate"
    assert line == f"{names}, not python -m pip"


def test_every_command_prints_the_version_of_the_checkout(monkeypatch):
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited[1] == version
    monkeypatch.setattr(pairscale.version, "ROOT", ROOT / "docs")  # no checkout, as an installed package
    assert re.fullmatch(r"pairscale [^() ]+", version_text())
    for module in ("pairscale", "corpora", "analysis.status", "eval.tasks", "train.lmplz"):
        done = subprocess.run([sys.executable, "-m", module, "--version"], cwd=ROOT, capture_output=True, text=True)
        assert re.fullmatch(rf"pairscale {re.escape(version)}( \([0-9a-f]+\+?\))?\n", done.stdout), done.stderr
        assert done.returncode == 0


def test_the_console_script_names_its_commands():
    for words, code, text in (([], 2, "\n  status  "), (["--help"], 0, "\n  lmplz  "), (["tain"], 2, "'train'?")):
        done = subprocess.run([sys.executable, "-m", "pairscale", *words], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == code
        assert text in done.stdout + done.stderr
    for module in MODULES:
        place = ROOT / module.replace(".", "/")
        assert place.with_suffix(".py").exists() or (place / "__main__.py").exists()
