"""Names of curves: any value of the configuration may vary, and so may the text that a run lacks."""

import copy
import dataclasses
import itertools
import shlex
import shutil

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import runs
from analysis.figures.style import looks_of
from pairscale.command.compose import FOLDER, compose
from pairscale.command.line import Line
from pairscale.errors import ConfigError
from tests.support.expected_runs import expected_runs
from tests.support.simulated_study import SimulatedStudy
from train.runs.identity import run_id
from train.runs.labels import Intervention, name_curves
from train.sweeps import names_a_run


def labels(configs):
    """Return the names of curves and the notes."""
    curves = name_curves(configs)
    return curves.names, curves.notes


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
        ["lstm_tiny, epochs=1.0, vocab_size=10", "lstm_tiny, epochs=5.0, vocab_size=20"],
    ),
    "recipe": (
        ["recipe=lstm_tiny recipe.budget.epochs=5", "recipe=lstm_small recipe.budget.epochs=5"],
        ["lstm_tiny, recipe=lstm_tiny", "lstm_tiny, recipe=lstm_small"],
    ),
    "kinds of budgets": (
        ["recipe.budget.epochs=3", "recipe.budget={epochs:null,words:2M}"],
        ["lstm_tiny, epochs=3.0", "lstm_tiny, words=2M"],
    ),
}  # fmt: skip


COMPOSED = {
    model: dataclasses.asdict(compose("train", ["corpus=toy", f"model={model}"]))
    for model in ("lstm_tiny", "gpt2_tiny")
}


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
    assert notes == []


def plain(point):
    return dataclasses.asdict(compose("train", point.split()))


def test_names_say_all_that_differs_between_the_runs_of_a_model():
    names, notes = labels(
        {
            "a": plain("corpus=toy model=lstm_tiny model.dropout=0.1"),
            "b": plain(
                "corpus=local corpus.name=english corpus.path=a.txt model=lstm_tiny tokenizer=unigram "
                "recipe.budget.epochs=3"
            ),
        }
    )
    assert names == {
        "a": "lstm_tiny, word, toy, dropout=0.1, epochs=5.0",
        "b": "lstm_tiny, unigram, english, dropout=0.2, epochs=3.0",
    }
    assert notes == []


LAYERS = {
    "one": "corpus=toy model=lstm_tiny model.layers=1 model.dropout=0.4",
    "two": "corpus=toy model=lstm_tiny model.layers=2 model.dropout=0.1",
}


@pytest.mark.parametrize("other", ["", "model=gpt2_tiny", "model=txl_tiny", "model=ngram"])
def test_a_run_without_the_keys_that_differ_hides_nothing(other):
    configs = {run: plain(point) for run, point in LAYERS.items()}
    if other:
        configs["other"] = plain(f"corpus=toy {other}")
    names, _ = labels(configs)
    assert names.pop("other", "") == other.partition("=")[2]
    assert names == {"one": "lstm_tiny, dropout=0.4, layers=1", "two": "lstm_tiny, dropout=0.1, layers=2"}


@pytest.mark.parametrize("other", ["", "model=ngram"])
def test_differences_between_models_are_noted_also_beside_runs_that_lack_the_key(other):
    """An n-gram model has no steps, so its recipe has no warm-up: the other two differ in theirs and in the batch."""
    configs = {
        "lstm": plain("corpus=toy model=lstm_tiny recipe=lstm_tiny recipe.warmup=0.1"),
        "txl": plain("corpus=toy model=txl_tiny recipe=lstm_tiny recipe.warmup=0.2"),
    }
    if other:
        configs["other"] = plain(f"corpus=toy {other}")
        assert "warmup" not in configs["other"]["recipe"]
    names, notes = labels(configs)
    assert names == {"lstm": "lstm_tiny", "txl": "txl_tiny"} | ({"other": "ngram"} if other else {})
    (note,) = notes
    assert "recipe.warmup is 0.1 (lstm_tiny), 0.2 (txl_tiny)" in note


def test_a_difference_that_one_model_names_and_another_does_not_is_noted():
    sizes = {"a": ("lstm_tiny", 10), "b": ("lstm_tiny", 20), "c": ("txl_tiny", 30)}
    names, notes = labels(
        {
            run: plain(f"corpus=toy recipe=lstm_tiny model={model} tokenizer.vocab_size={size}")
            for run, (model, size) in sizes.items()
        }
    )
    assert names == {"a": "lstm_tiny, vocab_size=10", "b": "lstm_tiny, vocab_size=20", "c": "txl_tiny"}
    (note,) = notes
    assert "tokenizer.vocab_size is 10 (lstm_tiny, vocab_size=10), 20 (lstm_tiny, vocab_size=20), 30 (txl_tiny)" in note


VARIED = {
    "model.layers": (1, 2),
    "model.dropout": (0.1, 0.4),
    "tokenizer.vocab_size": (10, 20),
    "precision": ("fp32", "bf16"),
}


@given(
    st.lists(
        st.tuples(st.sampled_from(["lstm_tiny", "gpt2_tiny"]), *map(st.sampled_from, VARIED.values())), min_size=1
    ),
)
@settings(max_examples=60, deadline=None)
def test_a_name_is_shared_by_runs_that_are_equal_and_by_no_others(runs):
    """As many names as there are different runs, and in each all that differs between the runs of its model."""
    configs, points = {}, {}
    for number, (model, *chosen) in enumerate(runs):
        config = copy.deepcopy(COMPOSED[model])
        values = dict(zip(VARIED, chosen, strict=True))
        for key, value in values.items():
            group, _, name = key.rpartition(".")
            if group != "model" or model == "lstm_tiny":
                (config[group] if group else config)[name] = value
        configs[str(number)] = config
        points[str(number)] = (model, *(v for k, v in values.items() if model == "lstm_tiny" or k[:6] != "model."))
    names, _ = labels(configs)
    assert len(set(names.values())) == len(set(points.values()))
    assert len({(names[run], points[run]) for run in names}) == len(set(points.values()))
    for key, place in (("layers", 1), ("dropout", 2)):
        of_lstm = {run: point for run, point in points.items() if point[0] == "lstm_tiny"}
        differs = len({point[place] for point in of_lstm.values()}) > 1
        assert all((f"{key}={point[place]}" in names[run]) == differs for run, point in of_lstm.items())


def test_two_models_with_their_own_recipes_are_noted_to_differ_only_in_their_budget():
    points = [("corpus=toy", f"model={model}") for model in ("lstm_tiny", "txl_tiny")]
    for more, budgets in (([], ["epochs is 2.5 (txl_tiny), 5.0 (lstm_tiny)."]), (["recipe.budget.epochs=3"], [])):
        configs = {point[1]: dataclasses.asdict(compose("train", [*point, *more])) for point in points}
        notes = labels(configs)[1]
        assert [note.rpartition("budget.")[2] for note in notes] == budgets


@pytest.mark.slow
def test_an_experiment_may_have_any_axes(tmp_path, monkeypatch):
    """Its runs are those of its points, composed one by one."""
    shutil.copytree(FOLDER, tmp_path / "conf")
    for module in ("pairscale.command.compose", "train.sweeps"):
        monkeypatch.setattr(f"{module}.FOLDER", tmp_path / "conf")
    (tmp_path / "conf" / "experiment" / "abl.yaml").write_text(
        "# @package _global_\n"
        "defaults: [override /corpus: toy, override /model: txl_tiny]\n"
        "study: abl\n"
        "sweep: {tokenizer: [word, char], model.memory: [8, 16], recipe.lr: [1e-3], "
        "model.cutoffs: [[50], []], sample.size: [1/4M, 4k], seed: [1, 2]}\n"
    )
    expected = expected_runs("abl")
    assert len(expected) == 2 * 2 * 2 * 2 * 2
    composed = {
        run: run_id(compose("train", ["experiment=abl", *shlex.split(point)])) for run, point in expected.items()
    }
    assert all(run == identity for run, identity in composed.items())
    assert len(expected_runs("abl", ["seed=3", "model.dropout=0,0.5"])) == 32


def test_curves_are_named_and_sorted_by_the_values_of_axes(tmp_path):
    """With more curves than hues each has its own colour and shape, and numbers sort by value."""
    simulated = SimulatedStudy(pairs=5, models=("txl_tiny",), sizes=("125k", "250k"), seeds=tuple(range(1, 9)))
    folders = simulated.write(tmp_path)
    for number, folder in enumerate(folders):
        config = yaml.safe_load(folder.config.read_text())
        config["model"]["memory"] = 2 ** (7 - number % 8)  # not in the order of the folders
        folder.config.write_text(yaml.safe_dump(config))
    table = runs("simulated", folder=tmp_path)
    names = [f"txl_tiny, memory={2**n}" for n in range(8)]
    assert list(table["curve"].unique()) == names
    assert len(table) == 16
    looks = looks_of(names)
    assert len(set(zip(looks["colour"], looks["shape"], strict=True))) == 8


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        (["study=s", "benchmark=toy"], False),
        (["study=s", "paths.runs=/x", "trainer.threads=1", "scoring.batch_tokens=7"], False),
        (["study=s", "model.dropout=0.2"], True),
        (["study=s", "sample.size=4k"], True),
        (["study=s", "seed=2"], True),
        (["experiment=demo"], True),
    ],
)
def test_a_command_line_names_a_run_or_a_study(overrides, named):
    assert names_a_run(Line.of(overrides)) is named


def test_a_run_has_the_same_label_in_all_commands():
    """Its config.yaml holds only training; a sweep's configuration also holds scoring."""
    overrides = ["model=lstm_tiny", "corpus=toy"]
    described = {command: dataclasses.asdict(compose(command, overrides)) for command in ("train", "eval")}
    assert {*labels(described)[0].values()} == {"lstm_tiny"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# @package _global_\nmodle: {hidden: 3}\n", r"modle: .*did you mean model\?"),
        ("# @package _global_\nsweeps: {seed: [1, 2]}\n", r"sweeps: .*did you mean sweep\?"),
        ("study: mine\n", "experiment: .*@package _global_"),
    ],
)
def test_a_key_of_an_experiments_file_that_no_command_has_is_refused(tmp_path, text, message):
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        compose("train", ["--config-dir", str(tmp_path), "experiment=mine", "corpus=toy"])


POINTS = {
    "full": "ablate.action=none filter=determiner_noun",
    "removed": "ablate.action=remove filter=determiner_noun",
    "control": "ablate.action=control filter=determiner_noun",
    "dose": "ablate.action=remove ablate.dose=1/8 filter=determiner_noun",
    "control of the dose": "ablate.action=control ablate.dose=.125 filter=determiner_noun",
    "only": "ablate.action=keep_only filter=determiner_noun",
    "replaced": "ablate.action=replace filter=passive",
    "other": "ablate.action=remove filter=npi_only",
}
NAMES = {
    "full": "llama_tiny, full text",
    "removed": "llama_tiny, determiner_noun removed",
    "control": "llama_tiny, matched control for determiner_noun",
    "dose": "llama_tiny, determiner_noun 1/8 kept",
    "control of the dose": "llama_tiny, matched control for determiner_noun 1/8 kept",
    "only": "llama_tiny, only determiner_noun",
    "replaced": "llama_tiny, passive replaced",
    "other": "llama_tiny, npi_only removed",
}


@pytest.fixture(scope="module")
def configs():
    return {run: plain(f"corpus=toy model=llama_tiny {point}") for run, point in POINTS.items()}


def test_curves_are_named_by_construction_and_action(configs):
    assert labels(configs) == (NAMES, [])
    assert set(name_curves(configs).bases.values()) == {"llama_tiny"}


def test_runs_on_the_full_text_alone_are_called_by_their_model(configs):
    assert labels({"full": configs["full"]}) == ({"full": "llama_tiny"}, [])


def test_other_differences_stay_in_the_name(configs):
    larger = configs | {"wide": configs["removed"] | {"precision": "bf16"}}
    assert labels(larger)[0]["wide"] == "llama_tiny, precision=bf16, determiner_noun removed"


def test_filters_of_one_name_that_search_for_different_things_are_told_apart(configs):
    other = configs["removed"] | {"filter": configs["removed"]["filter"] | {"without": [[{"RIGHT_ID": "a"}]]}}
    names, notes = labels({"a": configs["removed"], "b": other})
    first, second = names.values()
    assert first != second
    assert first.startswith("llama_tiny, determiner_noun (")
    assert len(notes) == 1
    assert "2 filters called determiner_noun search for different things" in notes[0]


def test_a_description_makes_no_other_curve(configs):
    other = configs["removed"] | {"filter": configs["removed"]["filter"] | {"description": "in other words"}}
    names, notes = labels({"a": configs["removed"], "b": other})
    assert set(names.values()) == {"llama_tiny, determiner_noun removed"}
    assert notes == []


def test_another_seed_of_the_intervention_is_named(configs):
    other = configs["dose"] | {"ablate": configs["dose"]["ablate"] | {"seed": 7}}
    assert labels({"a": configs["dose"], "b": other, "full": configs["full"]})[0] == {
        "a": "llama_tiny, determiner_noun 1/8 kept, ablate.seed=null",
        "b": "llama_tiny, determiner_noun 1/8 kept, ablate.seed=7",
        "full": "llama_tiny, full text",
    }


def test_rules_name_a_replacement_and_nothing_else(configs):
    rules = {"rewrite": "{-determiner}{noun}"}
    other = configs["replaced"] | {"filter": configs["replaced"]["filter"] | rules}
    removed = configs["other"] | {"filter": configs["other"]["filter"] | rules}
    names, notes = labels({"a": configs["replaced"], "b": other, "c": configs["other"], "d": removed})
    assert notes == []
    assert names["a"].startswith("llama_tiny, passive replaced, filter.rewrite=")
    assert names["b"].startswith("llama_tiny, passive replaced, filter.rewrite=")
    assert names["a"] != names["b"]
    assert names["c"] == names["d"] == "llama_tiny, npi_only removed"


@pytest.mark.parametrize("old", [{}, {"filter": None}, {"ablate": {"action": "none", "dose": "0"}, "filter": None}])
def test_runs_without_these_keys_read_as_full(old):
    assert Intervention.of(old) == Intervention("", "none", "1")
