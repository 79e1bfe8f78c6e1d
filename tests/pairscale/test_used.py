"""Values that a command does not use are refused where they are typed."""

import re
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from corpora.run import prepare_corpus
from pairscale import COMMANDS, MODULES
from pairscale.command.compose import compose
from pairscale.command.main import main
from pairscale.command.used import _USED, check_used
from pairscale.errors import ConfigError
from tests.support import ROOT
from tests.support.commands import run_command
from train.runs.folder import study_runs

# Keys for every command: the study, the machine, the folders.
COMMON = {"study", "seed", "paths", "trainer", "experiment", "hydra"}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return a function that starts a command without its work; it returns exit code, stderr and how often it began."""

    def run(command, *words):
        begun = []
        paths = [f"paths.{name}={tmp_path}/{name}" for name in ("runs", "store")]
        monkeypatch.setattr(sys, "argv", [command, *words, *paths])
        with pytest.raises(SystemExit) as ended:
            main(command, begun.append)
        return ended.value.code, capsys.readouterr().err, len(begun)

    return run


UNUSED = [
    ("analysis", ["study=s"], "benchmark.paradigms=[adjunct_island]", "eval"),
    ("analysis", ["study=s"], "benchmark.pairs=10", "eval"),
    ("analysis", ["study=s"], "recipe.lr=0.1", "train"),
    ("analysis", ["study=s"], "model.dropout=0.1", "train"),
    ("analysis", ["study=s"], "dry_run=true", "train"),
    ("analysis", ["study=s"], "method=[lp]", "eval"),
    ("analysis", ["study=s"], "find.show=3", "corpora.find"),
    ("eval", ["study=s"], "effect=0.01", "analysis.plan"),
    ("eval", ["study=s"], "analysis.margin=0.02", "analysis"),
    ("train", ["corpus=toy"], "ablate.listing=a.csv", "corpora"),
    ("train", ["corpus=toy"], "scoring.batch_tokens=100", "eval"),
    ("train", ["corpus=toy"], "benchmark=toy", "eval"),
    ("train", ["corpus=toy"], "policy.pll=original", "eval"),
    ("train", ["corpus=toy"], "ties=half", "eval"),
    ("corpora", ["corpus=toy"], "model=gru_tiny", "train"),
    ("corpora", ["corpus=toy"], "find.show=3", "corpora.find"),
    ("find", ["corpus=toy", "filter=passive"], "ablate.action=remove", "corpora"),
    ("status", ["study=s"], "benchmark=toy", "eval"),
    ("surprisal", ["study=s"], "dry_run=true", "train"),
]


@pytest.mark.parametrize(("command", "words", "unused", "using"), UNUSED)
def test_a_typed_value_that_the_command_does_not_use_is_an_error(run, command, words, unused, using):
    code, printed, begun = run(command, *words, unused)
    assert (code, begun, printed.count("\n")) == (2, 0, 1)
    assert printed.startswith(f"pairscale {command}: {unused}: python -m {COMMANDS[command][0]} does not use ")
    assert re.search(rf"python -m {using}(,| and .* use| uses)", printed)
    assert len(re.findall("python -m ", printed)) <= 3


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("analysis", ["study=s", "benchmark=blimp", "analysis.method=mean_lp", "ties=half", "trainer.progress=false"]),
        ("analysis", ["study=s", "benchmark=syntaxgym", "benchmark.path=folder"]),
        ("analysis", ["experiment=climp_sizes_local", "corpus.path=a.txt"]),
        ("analysis", ["experiment=blimp_families_small"]),  # the values of its file are of training and scoring
        ("train", ["experiment=ablation_small", "sample.size=4k", "filter=passive", "model=lstm_tiny",
                   "ablate.action=none"]),
        ("find", ["corpus=toy", "filter=passive", "ablate.layer=mine", "find.tree=true"]),
        ("surprisal", ["study=s", "policy.context=eos", "scoring.batch_tokens=9"]),
    ],
)  # fmt: skip
def test_values_that_the_command_uses_and_those_of_experiments_pass(run, command, words):
    assert run(command, *words) == (0, "", 1)


@pytest.mark.parametrize(
    ("command", "override", "ending"),
    [
        ("analysis", "find.show=3", "does not use find.show, so leave it out. python -m corpora.find uses it."),
        ("eval", "people=x", "so leave it out. python -m eval.questionnaire and python -m analysis use it."),
        ("analysis", "recipe.lr=0.1", "so leave it out. python -m train, among others, uses it."),
    ],
)
def test_the_message_says_what_to_do_and_names_two_commands_at_most(command, override, ending):
    with pytest.raises(ConfigError) as caught:
        check_used(command, [override])
    assert str(caught.value).endswith(ending)


def test_a_useless_value_is_told_before_a_wrong_one(run):
    code, printed, _ = run("train", "corpus=toy", "scoring.seed=-1")
    assert code == 2
    assert "python -m train does not use scoring.seed" in printed


def test_the_axes_of_an_experiment_may_be_for_other_commands(run):
    """Two models, five sizes and two seeds (conf/experiment/demo.yaml); a corpus has no model."""
    assert run("corpora", "-m", "experiment=demo") == (0, "", 20)
    code, printed, begun = run("corpora", "-m", "experiment=demo", "model=gru_tiny")
    assert (code, begun) == (2, 0)
    assert "model=gru_tiny: python -m corpora does not use model" in printed


@pytest.mark.slow
def test_the_processes_of_a_sweep_take_axes_that_they_do_not_use(tmp_path):
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text(
        "# @package _global_\ndefaults: [override /corpus: toy, override /model: lstm_tiny]\nstudy: mine\n"
        "hydra: {sweeper: {params: {scoring.batch_tokens: 100, seed: '1,2'}}}\n"
    )
    few = ["corpus.words=30000", "sample.size=2k", "recipe.validation_words=200", "trainer.accelerator=cpu"]
    paths = [f"paths.{name}={tmp_path}/{name}" for name in ("runs", "store")]
    ended = run_command("train", "-m", "--config-dir", str(tmp_path), "experiment=mine", *few, *paths)
    assert ended.returncode == 0, ended.stderr
    assert [one.done for one in study_runs(tmp_path / "runs", "mine")] == [True, True]


@pytest.mark.parametrize("more", [[], ["dry_run=true"]])
def test_a_sweep_is_refused_before_its_first_run(run, more):
    sweep = ["-m", "hydra/launcher=basic", "corpus=toy", "model=lstm_tiny", "seed=1,2", "scoring.seed=2"]
    code, printed, begun = run("train", *sweep, *more)
    assert (code, begun, printed.count("\n")) == (2, 0, 1)
    assert "scoring.seed=2: python -m train does not use scoring.seed" in printed


def test_every_key_of_the_configuration_is_for_some_commands_or_for_all():
    values = yaml.safe_load((ROOT / "conf" / "base.yaml").read_text(encoding="utf-8"))
    groups = [
        key.rpartition(" ")[2].strip("/") for one in values.pop("defaults") if isinstance(one, dict) for key in one
    ]
    roots = {group for group in groups if "hydra" not in group} | set(map(str, values)) - {"hydra"}
    assert roots <= {key.partition(".")[0] for key in _USED} | COMMON
    assert {command for commands in _USED.values() for command in commands} <= set(COMMANDS)


PAGES = [
    ROOT / "README.md",
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "conf").rglob("*.yaml"),
    ROOT / "slurm" / "README.md",
]
COMMAND = re.compile(
    r"(?:python -m|pairscale) ([a-z_.]+)((?: +(?:-m|--config-dir \S+|\"[^\"]*\"|[\w.+~]+=(?:\"[^\"]*\"|\S+)))+)"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_the_documentation_give_no_useless_values(page: Path):
    for match in COMMAND.finditer(page.read_text(encoding="utf-8").replace("\\\n", " ")):
        command = MODULES.get(match[1].rstrip("."), match[1])
        overrides = [
            word for word in shlex.split(match[2].replace("`", "")) if "=" in word and not word.startswith("hydra")
        ]
        if command in COMMANDS:
            check_used(command, overrides)


@pytest.mark.parametrize("more", [["corpus.filter=cats"], ["filter=passive"], ["filter=passive", "ablate.dose=1"], []])
def test_a_list_of_an_ablation_needs_an_ablation(tmp_path, more):
    """corpus.filter leaves sentences out by a regular expression, of which there is no list."""
    paths = [f"paths.store={tmp_path}/store", f"ablate.listing={tmp_path}/removed.csv"]
    with pytest.raises(ConfigError, match=r"ablate.listing=.*nothing is ablated"):
        prepare_corpus(compose("corpora", ["corpus=toy", *more, *paths]))
    assert not (tmp_path / "store").exists()
