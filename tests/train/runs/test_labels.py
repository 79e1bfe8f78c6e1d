"""Names of curves: any value of the configuration may vary, and so may the text that a run lacks."""

import copy
import dataclasses
import itertools

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import runs
from pairscale.command.compose import compose
from pairscale.command.line import Line
from pairscale.errors import ConfigError
from tests.support.simulated_study import SimulatedStudy
from train.runs.labels import Intervention, name_curves
from train.sweeps import names_a_run


def labels(configs):
    """Return the names of curves and the notes."""
    curves = name_curves(configs)
    return curves.names, curves.notes


AXES = {
    "a group": (
        ["corpus=toy", "corpus=local corpus.name=mine corpus.path=a.txt"],
        ["lstm_tiny, toy", "lstm_tiny, mine"],
    ),
    "two": (
        ["tokenizer=word model.dropout=0", "tokenizer=char model.dropout=0", "tokenizer=char model.dropout=0.2"],
        ["lstm_tiny, word, dropout=0.0", "lstm_tiny, char, dropout=0.0", "lstm_tiny, char, dropout=0.2"],
    ),
    "seeds that are none of the run's": (
        ["corpus.seed=1", "corpus.seed=2"],
        ["lstm_tiny, corpus.seed=1", "lstm_tiny, corpus.seed=2"],
    ),
    "recipe": (
        ["recipe=lstm_tiny recipe.budget.epochs=5", "recipe=lstm_small recipe.budget.epochs=5"],
        ["lstm_tiny, recipe=lstm_tiny", "lstm_tiny, recipe=lstm_small"],
    ),
    "kinds of budgets": (
        ["recipe.budget.epochs=3", "recipe.budget={epochs:null,words:2M}"],
        ["lstm_tiny, epochs=3.0", "lstm_tiny, words=2M"],
    ),
}


def plain(point):
    return dataclasses.asdict(compose("train", point.split()))


COMPOSED = {model: plain(f"corpus=toy model={model}") for model in ("lstm_tiny", "gpt2_tiny")}


@pytest.mark.parametrize("axis", AXES)
def test_groups_are_named_by_the_values_that_vary(axis):
    """Values that come with a tokenizer or corpus are not named again: one key stands for all."""
    points, names = AXES[axis]
    configs = {}
    for point in points:
        corpus = "" if "corpus=" in point else "corpus=toy "
        config = plain(f"{corpus}model=lstm_tiny {point}")
        for size, seed in itertools.product(("4k", "8k"), (1, 2)):
            configs[point, size, seed] = config | {"sample": config["sample"] | {"size": size}, "seed": seed}
    found, notes = labels(configs)
    assert {(point, found[point, size, seed]) for point, size, seed in configs} == set(zip(points, names, strict=True))
    assert notes == []


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


VARIED = {
    "model.layers": (1, 2),
    "model.dropout": (0.1, 0.4),
    "tokenizer.vocab_size": (10, 20),
    "precision": ("fp32", "bf16"),
}


@given(
    st.lists(st.tuples(st.sampled_from(["lstm_tiny", "gpt2_tiny"]), *map(st.sampled_from, VARIED.values())), min_size=1)
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


@pytest.mark.parametrize(
    ("more", "notes"), [("", ["epochs is 2.5 (txl_tiny), 5.0 (lstm_tiny)."]), ("recipe.budget.epochs=3", [])]
)
def test_two_models_with_their_own_recipes_are_noted_to_differ_only_in_their_budget(more, notes):
    configs = {model: plain(f"corpus=toy model={model} {more}") for model in ("lstm_tiny", "txl_tiny")}
    assert [note.rpartition("budget.")[2] for note in labels(configs)[1]] == notes


def test_curves_are_sorted_by_the_values_of_axes(tmp_path):
    simulated = SimulatedStudy(pairs=5, models=("txl_tiny",), sizes=("125k",), seeds=tuple(range(1, 9)))
    for number, folder in enumerate(simulated.write(tmp_path)):
        config = yaml.safe_load(folder.config.read_text())
        config["model"]["memory"] = 2 ** (7 - number % 8)  # not in the order of the folders
        folder.config.write_text(yaml.safe_dump(config))
    table = runs("simulated", folder=tmp_path)
    assert list(table["curve"].unique()) == [f"txl_tiny, memory={2**n}" for n in range(8)]


def test_a_command_line_names_a_run_or_a_study():
    assert not names_a_run(Line.of(["study=s", "benchmark=toy", "trainer.threads=1", "scoring.batch_tokens=7"]))
    for word in ("model.dropout=0.2", "sample.size=4k", "seed=2", "experiment=demo"):
        assert names_a_run(Line.of(["study=s", word]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# @package _global_\nmodle: {hidden: 3}\n", r"modle: .*did you mean model\?"),
        ("study: mine\n", "experiment: .*@package _global_"),
    ],
)
def test_a_key_of_an_experiments_file_that_no_command_has_is_refused(tmp_path, text, message):
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "mine.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        compose("train", ["--config-dir", str(tmp_path), "experiment=mine", "corpus=toy"])


POINTS = {
    "full text": "ablate.action=none filter=determiner_noun",
    "determiner_noun removed": "ablate.action=remove filter=determiner_noun",
    "matched control for determiner_noun": "ablate.action=control filter=determiner_noun",
    "determiner_noun 1/8 kept": "ablate.action=remove ablate.dose=1/8 filter=determiner_noun",
    "matched control for determiner_noun 1/8 kept": "ablate.action=control ablate.dose=.125 filter=determiner_noun",
    "only determiner_noun": "ablate.action=keep_only filter=determiner_noun",
    "passive replaced": "ablate.action=replace filter=passive",
    "npi_only removed": "ablate.action=remove filter=npi_only",
}


@pytest.fixture(scope="module")
def configs():
    """Configurations of runs by the name of their intervention."""
    return {name: plain(f"corpus=toy model=llama_tiny {point}") for name, point in POINTS.items()}


def test_curves_are_named_by_construction_and_action(configs):
    assert labels(configs) == ({name: f"llama_tiny, {name}" for name in POINTS}, [])
    assert set(name_curves(configs).bases.values()) == {"llama_tiny"}
    assert labels({"a": configs["full text"]}) == ({"a": "llama_tiny"}, [])
    larger = configs | {"wide": configs["determiner_noun removed"] | {"precision": "bf16"}}
    assert labels(larger)[0]["wide"] == "llama_tiny, precision=bf16, determiner_noun removed"


def test_filters_of_one_name_that_search_for_different_things_are_told_apart(configs):
    removed = configs["determiner_noun removed"]
    other = removed | {"filter": removed["filter"] | {"without": [[{"RIGHT_ID": "a"}]]}}
    names, (note,) = labels({"a": removed, "b": other})
    assert names["a"] != names["b"]
    assert names["a"].startswith("llama_tiny, determiner_noun (")
    assert "2 filters called determiner_noun" in note
    described = removed | {"filter": removed["filter"] | {"description": "in other words"}}
    names, notes = labels({"a": removed, "b": described})
    assert (set(names.values()), notes) == ({"llama_tiny, determiner_noun removed"}, [])


def test_another_seed_of_the_intervention_is_named(configs):
    dose = configs["determiner_noun 1/8 kept"]
    other = dose | {"ablate": dose["ablate"] | {"seed": 7}}
    assert labels({"a": dose, "b": other, "full": configs["full text"]})[0] == {
        "a": "llama_tiny, determiner_noun 1/8 kept, ablate.seed=null",
        "b": "llama_tiny, determiner_noun 1/8 kept, ablate.seed=7",
        "full": "llama_tiny, full text",
    }


def test_rules_name_a_replacement_and_nothing_else(configs):
    rules = {"rewrite": "{-determiner}{noun}"}
    ways = {"a": configs["passive replaced"], "c": configs["npi_only removed"]}
    changed = {run: config | {"filter": config["filter"] | rules} for run, config in ways.items()}
    names, notes = labels({**ways, "b": changed["a"], "d": changed["c"]})
    assert notes == []
    assert all(names[run].startswith("llama_tiny, passive replaced, filter.rewrite=") for run in "ab")
    assert names["a"] != names["b"]
    assert names["c"] == names["d"] == "llama_tiny, npi_only removed"


@pytest.mark.parametrize("old", [{}, {"filter": None}, {"ablate": {"action": "none", "dose": "0"}, "filter": None}])
def test_runs_without_these_keys_read_as_full(old):
    assert Intervention.of(old) == Intervention("", "none", "1")
