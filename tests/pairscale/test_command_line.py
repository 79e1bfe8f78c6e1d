"""Command lines: help, wrong words, folders of the user's configuration, and commands from any folder."""

import os
import re
import shlex
import subprocess
import sys

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from corpora.prepare import prepare
from pairscale import BY_SCRIPT, MODULES, ROOT, environment, started_by
from pairscale.command.compose import axes_of, compose
from pairscale.command.errors import outcome
from pairscale.command.help import show_help
from pairscale.command.line import Line, current, parsed, readable
from pairscale.command.main import NEED_ARGUMENTS, main
from pairscale.errors import ConfigError, NoCorpus, RunError
from train.estimate import estimate
from train.grids import run_grid
from train.runs.folder import RunFolder
from train.sweeps import check_whole_sweep, names_a_run


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


def test_a_folder_of_ones_own_with_a_broken_link_composes(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "gone.yaml").symlink_to(tmp_path / "nowhere")
    own = ["--config-dir", str(tmp_path), "corpus=toy"]
    assert compose("train", [*own, "study=s", "seed=3"]).seed == 3


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
    assert "corpus: not set, and has no default; give corpus=NAME; available: babylm, babylm_hub, conllu" in err
    assert "none," not in err.partition("there are")[2]
    assert not list(tmp_path.glob("runs/*/*"))


def test_preparing_and_planning_need_a_corpus():
    for command, work in (("corpora", prepare), ("train", estimate)):
        with pytest.raises(NoCorpus, match="corpus: not set"):
            work(compose(command, ["tokenizer=char"]))


@pytest.mark.parametrize(
    "overrides",
    [
        ["study=mine", "benchmark=toy"],  # existing runs
        ["study=mine", "model=hf_causal", "model.path=gpt2"],
        ["study=mine", "model=hf_causal", "model.path=gpt2", "experiment=blimp_small", "paths.data=/data"],
        ["study=mine", "model=imported", "model.checkpoint=model.pt"],
    ],
)
def test_scoring_existing_and_pretrained_models_needs_no_corpus(ended, overrides):
    begun, code, _, err = ended("eval", *overrides, "dry_run=true")
    assert (len(begun), code) == (1, 0), err


@pytest.mark.parametrize("command", ["analysis", "status", "generate", "questionnaire"])
def test_other_commands_need_no_corpus(ended, command):
    begun, code, _, err = ended(command, "study=mine")
    assert (len(begun), code) == (1, 0), err


@pytest.mark.parametrize("command", ["train", "eval"])
def test_an_experiments_sweep_without_m_is_an_error(ended, tmp_path, command):
    begun, code, _, err = ended(command, "experiment=demo", "seed=3")
    assert (begun, code) == ([], 2)
    message = "experiment=demo: sweeps model, sample.size, seed; -m runs all of it"
    assert message in err
    assert "or give one run its own model=VALUE and sample.size=VALUE" in err
    assert not list(tmp_path.iterdir())


def test_one_run_of_an_experiments_study_needs_no_m(ended):
    overrides = ["experiment=blimp_small", "model=lstm_tiny", "tokenizer=word", "sample.size=250k", "paths.data=/data"]
    (config,), code, _, err = ended("eval", *overrides)
    assert code == 0, err
    assert (config.study, config.seed, config.corpus.name) == ("blimp_small", 1, "english")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--experiment", "demo"], r"--experiment: no such option; write experiment=demo \(--help"),
        (["--seed=3"], "--seed: no such option; write seed=3"),
        (["-x"], "-x: no such option; write x=VALUE"),
        (["--dry-run", "experiment=demo"], "--dry-run: no such option; write dry_run=VALUE"),
        (["demo"], r"demo: must be key=value, such as study=mine \(see --help\)"),
        (["--config-dir", "nowhere"], "--config-dir nowhere: no such folder"),
        (["-m", "experiment=demo,blimp_small"], "experiment=demo,blimp_small: one experiment at a time"),
    ],
)
def test_an_unknown_flag_is_a_message_of_one_line(ended, words, message):
    begun, code, _, err = ended("train", *words)
    assert (begun, code) == ([], 2)
    assert re.search(message, err)
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "value", ["données.csv", "ünï", "my table (v2).csv", "a=b.csv", "r,1.csv", "x&y", "it's é", 'é "x"', "é\\", "$é"]
)
def test_a_value_that_hydra_cannot_read_is_quoted_and_the_hint_says_how(value):
    parse = OverridesParser.create().parse_override
    assert parse(readable(f"path={value}")).value() == value
    if "," in value:  # a sweep, no mistake
        return
    with pytest.raises(ConfigError) as raised:
        parsed(f"path={value}")
    line = str(raised.value)
    assert line.startswith(f"path={value}: a value with such characters has to be in quotes")
    (typed,) = shlex.split(line.partition("of the shell: ")[2])
    assert parse(typed).value() == value


@pytest.mark.parametrize(
    "word", ["study=a", "seed=1", "path=my table.csv", "path=/a/b-c.csv", "analysis.figure={width:6.9in,height:null}",
             "path='données.csv'", "a=[b,c]", "a=null", "a="]
)  # fmt: skip
def test_a_value_that_hydra_reads_stays_as_it_is(word):
    assert readable(word) == word


def test_a_wrong_list_is_no_matter_of_quotes():
    with pytest.raises(ConfigError) as raised:
        parsed("seed=[1,2")
    assert "quotes" not in str(raised.value)


@pytest.mark.parametrize(
    "words",
    [["seed=1,2", "model=lstm,txl"], ["study=1.10,b c"], ["recipe.lr=0.1,0.2", "logger.project='a,b'"]],
    ids=" ".join,
)
def test_a_recorded_command_is_the_sweep_that_was_typed(words):
    """The grid of a study had seed='1,2' for seed=1,2, which is one value."""
    line = Line.of(["corpus=toy", *words])
    again = Line.of(shlex.split(line.written))
    assert axes_of("eval", again) == axes_of("eval", line)
    assert len(axes_of("eval", again).swept) == sum("," in word and "'" not in word for word in words)


def test_flags_may_come_after_overrides():
    assert Line.of(["seed=1,2", "-m", "corpus=toy"]) == Line(("seed=1,2", "corpus=toy"), sweeps=True)
    assert Line.of(["corpus=toy", "--cfg", "job"]) == Line(("corpus=toy",), shows=True)


def test_a_users_configuration_folder_is_searched_by_runs_and_plans(ended, tmp_path):
    """The plan of a sweep composes its configurations itself."""
    (tmp_path / "mine" / "model").mkdir(parents=True)
    text = (ROOT / "conf" / "model" / "lstm_tiny.yaml").read_text().replace("name: lstm_tiny", "name: own")
    (tmp_path / "mine" / "model" / "own.yaml").write_text(text)
    overrides = ["--config-dir", "mine", "corpus=toy", "model=own", "recipe=lstm_tiny"]
    (config,), code, _, err = ended("train", *overrides, "dry_run=true")
    assert (config.model.name, code) == ("own", 0), err
    begun, code, _, err = ended("train", *overrides, "-m", "seed=1,2", "dry_run=true")
    assert ([config.seed for config in begun], code) == ([1, 2], 0), err


@pytest.fixture
def own(tmp_path):
    """Return options for two folders of the user: of a model, with a name that Hydra quotes, and of an experiment."""
    for folder, group, name, text in (
        ('my "models"', "model", "own", ROOT / "conf" / "model" / "lstm_tiny.yaml"),
        ("mine", "experiment", "own_sweep", ROOT / "conf" / "experiment" / "demo.yaml"),
    ):
        (tmp_path / folder / group).mkdir(parents=True)
        (tmp_path / folder / group / f"{name}.yaml").write_text(text.read_text())
    return ["--config-dir", 'my "models"', "--config-dir=mine"]


def test_several_configuration_folders_are_all_searched(ended, own):
    overrides = ["experiment=own_sweep", "model=own", "recipe=lstm_tiny", "sample.size=2k"]
    (config,), code, _, err = ended("train", *own, *overrides, "dry_run=true")
    assert (config.model.hidden, config.corpus.name, code) == (128, "toy", 0), err


def test_the_suggested_sweep_searches_them_too(ended, own):
    _, code, _, err = ended("train", *own, "experiment=own_sweep", "model=own", "recipe=lstm_tiny")
    command = re.search(r"python -m train -m (.*)\), or give", err)
    assert code == 2
    begun, code, _, err = ended("train", "-m", *shlex.split(command[1]), "dry_run=true")
    assert (len(begun), code) == (10, 0), err


def test_suggested_names_include_the_users_own(ended, own):
    begun, code, _, err = ended("train", *own, "experiment=own_swep", "model=own")
    assert (begun, code) == ([], 2)
    assert err.endswith("no such experiment; did you mean own_sweep?\n")


def test_planning_a_sweep_writes_no_files(ended, tmp_path):
    begun, code, _, err = ended("train", "-m", "experiment=demo", "dry_run=True")
    assert (len(begun), code) == (20, 0), err
    assert not list(tmp_path.iterdir())


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
    arguments = ["train", "corpus=toy", "model=lstm_tiny", "--cfg", "job"]
    for command in ([sys.executable, "-m", "pairscale"], started_by("pairscale")):
        done = subprocess.run(
            [*command, *arguments], cwd=foreign, env=environment(), capture_output=True, text=True, timeout=200
        )
        assert done.returncode == 0, done.stderr
        assert "name: lstm_tiny" in done.stdout
    rank = subprocess.run(
        started_by("train.rank"),
        cwd=foreign,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=200,
        input="",
    )
    assert "EOFError" in rank.stderr  # our module, which waits for a configuration
    assert {path.name for path in foreign.iterdir()} == {
        "conf", "train.py", "eval.py", "corpora.py", "analysis.py", "pairs.py"
    }  # fmt: skip


@pytest.mark.parametrize("script", [True, False])
def test_suggested_commands_have_the_form_that_the_user_typed(script, monkeypatch, capsys):
    """The console script works from folders where `python -m eval` has no such module."""
    if script:
        monkeypatch.setenv(BY_SCRIPT, "1")
    show_help("status")
    printed = capsys.readouterr().out
    status, other = ("pairscale status", "python -m") if script else ("python -m analysis.status", "pairscale status")
    assert f"  {status} study=demo remove=failed" in printed
    assert other not in printed
    line, _ = outcome(RunError("train with python -m train, or python -m eval.generate; not python -m pip"))
    names = ("pairscale train", "pairscale generate") if script else ("python -m train", "python -m eval.generate")
    assert line == f"train with {names[0]}, or {names[1]}; not python -m pip"


@pytest.mark.parametrize(("words", "code"), [([], 2), (["--help"], 0)])
def test_tasks_shows_its_usage(words, code, tmp_path):
    script = tmp_path / "pairscale"  # as pip installs it
    script.write_text("from pairscale.__main__ import main\nmain()\n")
    started = [sys.executable, str(script), "tasks", *words]
    done = subprocess.run(started, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == code
    assert (done.stdout + done.stderr).startswith("usage: pairscale tasks [-h] FILE")


def test_usage_with_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m pairscale | true"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr == ""


def test_the_console_script_names_its_commands():
    for words, code, text in (([], 2, "\n  status  "), (["--help"], 0, "\n  lmplz  "), (["tain"], 2, "train,")):
        done = subprocess.run([sys.executable, "-m", "pairscale", *words], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == code
        assert text in done.stdout + done.stderr
    assert all(
        (ROOT / module.replace(".", "/")).with_suffix(".py").exists()
        or (ROOT / module.replace(".", "/") / "__main__.py").exists()
        for module in MODULES
    )


def test_a_sweep_is_written_as_it_was_typed():
    """The status ended with a command to continue whose axes were in quotes, and so were no axes."""
    words = ["--config-dir", ".", "-m", "sample.size=4k,8k", "seed=1,2", "model=lstm_tiny", "corpus.path='ünï.txt'"]
    typed = shlex.split(Line.of(words).written)
    assert typed == ["--config-dir", ".", "sample.size=4k,8k", "seed=1,2", "model=lstm_tiny", "corpus.path='ünï.txt'"]
