"""Axes of a study: any value of the configuration may vary, and names groups and runs."""

import dataclasses
import itertools
import shlex
import shutil

import pytest
import yaml
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from analysis.exhibits.figures.curves import perplexity_chart
from analysis.study.collect import collect
from eval.sweeps import names_a_run
from pairscale.command.compose import compose, composed
from pairscale.command.errors import FOLDER
from tests.support.expected_runs import expected_runs
from tests.support.simulated_study import SimulatedStudy
from train.runs.axes import labels
from train.runs.identity import run_id

AXES = {
    "tokenizer": (["tokenizer=word", "tokenizer=char"], ["lstm_tiny, word", "lstm_tiny, char"]),
    "dropout": (["model.dropout=0", "model.dropout=0.2"], ["lstm_tiny, dropout=0.0", "lstm_tiny, dropout=0.2"]),
    "memory": (
        ["model=txl_tiny model.memory=16", "model=txl_tiny model.memory=128"],
        ["txl_tiny, memory=16", "txl_tiny, memory=128"],
    ),
    "corpus": (
        ["corpus=toy", "corpus=local corpus.name=mine corpus.path=a.txt"],
        ["lstm_tiny, toy", "lstm_tiny, mine"],
    ),
    "rate": (["recipe.lr=0.001", "recipe.lr=0.01"], ["lstm_tiny, lr=0.001", "lstm_tiny, lr=0.01"]),
    "two": (
        ["tokenizer=word model.dropout=0", "tokenizer=char model.dropout=0", "tokenizer=char model.dropout=0.2"],
        ["lstm_tiny, word, dropout=0.0", "lstm_tiny, char, dropout=0.0", "lstm_tiny, char, dropout=0.2"],
    ),
    "seeds that are none of the run's": (
        ["corpus.seed=1", "corpus.seed=2"],
        ["lstm_tiny, corpus.seed=1", "lstm_tiny, corpus.seed=2"],
    ),
    "two that go together": (
        ["tokenizer.vocab_size=10 recipe.budget.epochs=1", "tokenizer.vocab_size=20"],
        ["lstm_tiny, epochs=1.0", "lstm_tiny, epochs=5.0"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("axis", AXES)
def test_groups_are_named_by_the_values_that_vary(axis):
    points, names = AXES[axis]
    configs = {}
    for point in points:
        corpus = [] if "corpus=" in point else ["corpus=toy"]
        config = dataclasses.asdict(compose("train", [*corpus, "model=lstm_tiny", *point.split()]))
        for size, seed in itertools.product(("4k", "8k"), (1, 2)):
            sample = config["sample"] | {"size": size}
            configs[str(len(configs))] = config | {"sample": sample, "seed": seed}
    group_labels, notes = labels(configs)
    # Values that come with a tokenizer or corpus are not named again: one key stands for all.
    firsts = [group_labels[str(number)] for number in range(0, len(configs), 4)]
    assert firsts == names
    assert all(len({group_labels[str(number + k)] for k in range(4)}) == 1 for number in range(0, len(configs), 4))
    assert len(set(group_labels.values())) == len(points)
    also = "Curves differ in more than their names: tokenizer.vocab_size is 10 (lstm_tiny, epochs=1.0), 20 (lstm_tiny, "
    assert notes == ([f"{also}epochs=5.0)."] if axis == "two that go together" else [])


def test_values_that_names_leave_out_are_noted():
    """Model and tokenizer already distinguish the curves: the corpus is named too, dropout and budget are noted."""
    points = {
        "a": "corpus=toy model=lstm_tiny model.dropout=0.1",
        "b": "corpus=local corpus.name=english corpus.path=a.txt model=lstm_tiny tokenizer=unigram "
        "recipe.budget.epochs=3",
    }
    configs = {
        run: OmegaConf.to_container(OmegaConf.structured(compose("train", point.split())))
        for run, point in points.items()
    }
    names, notes = labels(configs)
    assert names == {"a": "lstm_tiny, word, toy", "b": "lstm_tiny, unigram, english"}
    assert notes == [
        "Curves differ in more than their names: model.dropout is 0.1 (lstm_tiny, word, toy), 0.2 (lstm_tiny, "
        "unigram, english); recipe.budget.epochs is 3.0 (lstm_tiny, unigram, english), 5.0 (lstm_tiny, word, toy)."
    ]


def test_two_models_with_their_own_recipes_are_noted_to_differ_only_in_their_budget():
    points = [("corpus=toy", f"model={model}") for model in ("lstm_tiny", "txl_tiny")]
    for more, budgets in (([], ["epochs is 2.5 (txl_tiny), 5.0 (lstm_tiny)."]), (["recipe.budget.epochs=3"], [])):
        configs = {
            point[1]: OmegaConf.to_container(OmegaConf.structured(compose("train", [*point, *more])))
            for point in points
        }
        notes = labels(configs)[1]
        assert [note.rpartition("budget.")[2] for note in notes] == budgets


@pytest.mark.slow
def test_an_experiment_may_have_any_axes(tmp_path, monkeypatch):
    """Its runs are those of its points, composed one by one."""
    shutil.copytree(FOLDER, tmp_path / "conf")
    for module in ("compose", "errors", "sweeps"):
        monkeypatch.setattr(f"pairscale.command.{module}.FOLDER", tmp_path / "conf")
    (tmp_path / "conf" / "experiment" / "abl.yaml").write_text(
        "# @package _global_\n"
        "defaults: [override /corpus: toy, override /model: txl_tiny]\n"
        "study: abl\n"
        "hydra: {sweeper: {params: {tokenizer: 'word,char', model.memory: '8,16', recipe.lr: 1e-3, "
        "model.cutoffs: '[50],[]', sample.size: '1/4M,4k', seed: '1,2'}}}\n"
    )
    expected = expected_runs("abl")
    assert len(expected) == 2 * 2 * 2 * 2 * 2
    composed = {
        run: run_id(compose("train", ["experiment=abl", *shlex.split(point)])) for run, point in expected.items()
    }
    assert all(run == identity for run, identity in composed.items())
    assert len(expected_runs("abl", ["seed=3", "model.dropout=0,0.5"])) == 32


def test_tables_and_figures_order_groups_by_the_values_of_axes(tmp_path):
    """With more groups than hues each has its own colour and shape, and numbers sort by value."""
    simulated = SimulatedStudy(pairs=5, models=("txl_tiny",), sizes=("125k", "250k"), seeds=tuple(range(1, 9)))
    folders = simulated.write(tmp_path)
    for number, folder in enumerate(folders):
        config = yaml.safe_load(folder.config.read_text())
        config["model"]["memory"] = 2 ** (number % 8)
        folder.config.write_text(yaml.safe_dump(config))
    study = collect(tmp_path, "simulated")
    groups = [f"txl_tiny, memory={2**n}" for n in range(8)]
    assert list(study.runs["group"].unique()) == groups
    assert len(study.runs) == 16
    encoding = perplexity_chart(study.runs).to_dict()["layer"][1]["encoding"]
    pairs = list(zip(encoding["color"]["scale"]["range"], encoding["shape"]["scale"]["range"], strict=True))
    assert len(set(pairs)) == 8
    assert encoding["color"]["legend"]["columns"] == 2


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        (["study=s", "benchmark=toy"], False),
        (["study=s", "paths.runs=/x", "trainer.threads=1", "scoring.batch_tokens=7", "hydra.verbose=true"], False),
        (["study=s", "model.dropout=0.2"], True),
        (["study=s", "sample.size=4k"], True),
        (["study=s", "seed=2"], True),
        (["experiment=demo"], True),
    ],
)
def test_a_command_line_names_a_run_or_a_study(overrides, named, monkeypatch):
    monkeypatch.setattr(HydraConfig.instance(), "cfg", None)
    node = composed("eval", overrides)
    HydraConfig.instance().set_config(node)
    assert names_a_run(HydraConfig.get()) is named


def test_a_run_has_the_same_label_in_all_commands():
    """Its config.yaml holds only training; a sweep's configuration also holds scoring and analysis."""
    overrides = ["model=lstm_tiny", "corpus=toy"]
    described = {command: dataclasses.asdict(compose(command, overrides)) for command in ("train", "eval", "analysis")}
    assert {*labels(described)[0].values()} == {"lstm_tiny"}
