"""Limits that hold the truth in 95% of studies or more: of few judgements that differ, shared text, a run alone."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.config import CurvesConfig
from analysis.curves.comparisons import compare_slopes
from analysis.curves.groups import FEW, LONE, fitted_slopes
from analysis.curves.units import units_of
from analysis.exhibits.sentences.curves import conservative_meaning, conservative_notes, slope_notes
from tests.support.judged_runs import judged_from, judged_groups

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=50, seed=1)
SIZES = [1000, 1000, 2000, 2000, 4000, 4000]


def slopes(judged, **of_units):
    units = replace(units_of(judged.pairs), **of_units)
    ((_, table),) = fitted_slopes(judged, units, CONFIG)
    return table


@pytest.mark.parametrize(
    ("accuracies", "reason"),
    [
        ([0.98] * 6, FEW),  # of 200 judgements at a size 4 are wrong
        ([0.02] * 6, FEW),
        ([1.0] * 6, FEW),
        ([0.98, 0.97, *[1.0] * 4], ""),  # 5 at one size
        ([0.98, 0.98, 0.02, 0.02, 0.5, 0.5], ""),
    ],
)
def test_fewer_than_five_wrong_judgements_at_every_size(accuracies, reason):
    judged = judged_from(accuracies, SIZES, [1, 2] * 3)
    assert set(slopes(judged)["conservative"]) == {reason}
    assert set(slopes(judged, differences=True)["conservative"]) == {""}


def test_an_unknown_number_of_pairs_is_not_few():
    judged = judged_from([1.0, 0.9] * 3, SIZES, [1, 2] * 3, pairs=1)
    unknown = judged.pairs.drop(columns="pair_id").assign(n_pairs=np.nan)
    for n_pairs, reason in ((np.nan, ""), (20, FEW)):
        table = slopes(replace(judged, pairs=unknown.assign(n_pairs=n_pairs), outcome=np.full((6, 1), 0.99)))
        assert set(table["conservative"]) == {reason}


def test_runs_that_do_not_show_all_of_the_variance():
    judged = judged_from([0.5, 0.6, 0.6, 0.7, 0.7, 0.8], SIZES, [1, 2] * 3)
    shared = slopes(replace(judged, runs=judged.runs.assign(overlap=[0.1, 0.1, 0.3, 0.3, 0.6, 0.6])))
    assert set(shared["conservative"]) == {"samples of a size share up to 60% of their text"}
    assert set(shared["note"]) == {
        "samples of a size share up to 60% of their text: limits widened for new text, and conservative"
    }
    alone = judged_from([0.5, 0.6, 0.6, 0.7, 0.8], SIZES[:5], [1, 2, 1, 2, 1])
    assert set(slopes(alone)["conservative"]) == {LONE}
    assert set(slopes(judged_from([0.5, 0.6, 0.8], [1000, 2000, 4000], [1] * 3))["conservative"]) == {""}
    none = slopes(judged_from([1.0, 1.0], [1000, 2000], [1] * 2))
    assert none["low"].isna().all()
    assert set(none["conservative"]) == {""}


def test_a_difference_is_conservative_if_one_of_its_slopes_is():
    sizes = [1000] * 3 + [2000] * 3 + [4000] * 3
    judged = judged_groups({"a": ([0.999] * 9, sizes), "b": ([0.7] * 9, sizes), "c": ([0.6] * 9, sizes)})
    table = compare_slopes(judged, CONFIG)
    reasons = table.groupby(["group", "other"])["conservative"].agg(set).to_dict()
    assert reasons == {("a", "b"): {FEW}, ("a", "c"): {FEW}, ("b", "c"): {""}}
    (note,) = conservative_notes(table.assign(pair=table["group"] + " − " + table["other"]).iloc[:5], "pair")
    assert note.startswith("a − b: limits of 5 of 5 are conservative")


def test_notes_name_a_few_units_and_count_many():
    table = pd.DataFrame({
        "group": ["lstm"] * 6 + ["txl"], "note": [""] * 6 + ["nested"],
        "name": ["overall", "npi_licensing", "island_effects", "binding", "ellipsis", "quantifiers", "overall"],
        "conservative": ["", FEW, FEW, "", "", "", LONE],
    })  # fmt: skip
    assert slope_notes(table) == [
        "txl: nested.",
        f"lstm: limits of NPI licensing and island effects are conservative: {FEW}.",
    ]
    assert conservative_notes(table.assign(conservative=FEW))[0].startswith("lstm: limits of 6 of 6 are")
    assert conservative_notes(table.drop(columns="conservative")) == []


def test_the_term_is_explained_where_it_is_used():
    few, none = (pd.DataFrame({"conservative": [reason, ""]}) for reason in (FEW, ""))
    assert conservative_meaning(few, 0.9) == {
        "Conservative": "Limits that hold the truth in 90% of studies or more, where others do in 90%."
    }
    assert conservative_meaning(none, 0.9) == conservative_meaning(none[[]], 0.9) == {}
