"""Names of interventions, and of the curves of runs that differ in them."""

import dataclasses

import pytest

from pairscale.command.compose import compose
from train.runs.axes import base_labels, labels
from train.runs.interventions import Intervention, intervention_of

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


def config(point):
    plain = dataclasses.asdict(compose("train", ["corpus=toy", "model=llama_tiny", *point]))
    assert isinstance(plain, dict)
    return plain


@pytest.fixture(scope="module")
def configs():
    return {run: config(point.split()) for run, point in POINTS.items()}


def test_curves_are_named_by_construction_and_action(configs):
    assert labels(configs) == (NAMES, [])
    assert set(base_labels(configs)[0].values()) == {"llama_tiny"}


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
    assert intervention_of(old) == Intervention("", "none", "1")
