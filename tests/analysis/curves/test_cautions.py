"""Limits that do not contain the truth in about 95% of studies: of few judgements, of shared text, with a run alone."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.config import CAUTIONED, CONSERVATIVE, KEEP, LEAVE_OUT, CurvesConfig
from analysis.curves.comparisons import compare_slopes
from analysis.curves.fit import fit_curves
from analysis.curves.groups import FEW, HOW_TO_KEEP, LONE, NO_INTERVAL, ROUGH, fitted_slopes
from analysis.curves.intervals import NOTHING_VARIES
from analysis.curves.units import units_of
from analysis.curves.words_to_people import words_to_people
from analysis.exhibits.sentences.curves import cautions_explained, rough_limits, slope_notes, without_limits
from pairscale.command.compose import compose
from tests.support.judged_runs import judged_from, judged_groups

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=50, seed=1, cautioned_limits=KEEP)
FEW_LIMITS = f"{ROUGH}: {FEW}"
SIZES = [1000, 1000, 2000, 2000, 4000, 4000]


def slopes(judged, **of_units):
    units = replace(units_of(judged.pairs), **of_units)
    ((_, table),) = fitted_slopes(judged, units, CONFIG)
    return table


@pytest.mark.parametrize(
    ("accuracies", "reason"),
    [
        ([0.95, 0.96] * 3, FEW_LIMITS),  # of 200 judgements at a size 9 are wrong
        ([0.05, 0.04] * 3, FEW_LIMITS),
        ([1.0] * 6, FEW_LIMITS),
        ([0.95, 0.95, *[1.0] * 4], ""),  # 10 at one size
        ([0.96, 0.96, 0.04, 0.04, 0.5, 0.5], ""),
    ],
)
def test_fewer_than_ten_wrong_judgements_at_every_size(accuracies, reason):
    judged = judged_from(accuracies, SIZES, [1, 2] * 3)
    assert set(slopes(judged)["caution"]) == {reason}
    assert set(slopes(judged, differences=True)["caution"]) == {""}


def test_an_unknown_number_of_pairs_is_not_few():
    judged = judged_from([1.0, 0.9] * 3, SIZES, [1, 2] * 3, pairs=1)
    unknown = judged.pairs.drop(columns="pair_id").assign(n_pairs=np.nan)
    for n_pairs, reason in ((np.nan, ""), (20, FEW_LIMITS)):
        table = slopes(replace(judged, pairs=unknown.assign(n_pairs=n_pairs), outcome=np.full((6, 1), 0.99)))
        assert set(table["caution"]) == {reason}


def test_runs_that_do_not_show_all_of_the_variance():
    judged = judged_from([0.5, 0.6, 0.6, 0.7, 0.7, 0.8], SIZES, [1, 2] * 3)
    shared = slopes(replace(judged, runs=judged.runs.assign(overlap=[0.1, 0.1, 0.3, 0.3, 0.6, 0.6])))
    assert set(shared["caution"]) == {"conservative: samples of a size share up to 60% of their text"}
    assert set(shared["note"]) == {
        "samples of a size share up to 60% of their text: limits widened for new text, and conservative"
    }
    alone = judged_from([0.5, 0.6, 0.6, 0.7, 0.8], SIZES[:5], [1, 2, 1, 2, 1])
    assert set(slopes(alone)["caution"]) == {f"{CONSERVATIVE}: {LONE}"}
    assert set(slopes(judged_from([0.5, 0.6, 0.8], [1000, 2000, 4000], [1] * 3))["caution"]) == {""}
    none = slopes(judged_from([1.0, 1.0], [1000, 2000], [1] * 2))
    assert none["low"].isna().all()
    assert set(none["caution"]) == {""}


@pytest.mark.parametrize("choice", CAUTIONED)
def test_which_limits_with_a_caution_are_left_out(choice):
    """Samples of a share most of their text; b is near its ceiling, and so is c, whose samples do, too."""
    sizes = [1000] * 3 + [2000] * 3 + [4000] * 3
    mixed = ([0.68, 0.7, 0.72] * 3, sizes)
    judged = judged_groups({"a": mixed, "b": ([0.999] * 9, sizes), "c": ([0.999] * 9, sizes), "d": mixed})
    shared = judged.runs["group"].isin(["a", "c"])
    judged = replace(judged, runs=judged.runs.assign(overlap=np.where(shared, 0.6, 0)))
    config = replace(CONFIG, cautioned_limits=choice)
    left = {CONSERVATIVE: {"b", "c"}, KEEP: set(), LEAVE_OUT: {"a", "b", "c"}}[choice]
    curves, differences = fit_curves(judged, config).slopes, compare_slopes(judged, config)
    assert set(curves.loc[curves["low"].isna(), "group"]) == left
    assert set(curves.loc[curves["caution"] != "", "group"]) == {"a", "b", "c"} - left
    shared_text = curves.loc[curves["group"] == "a", "note"].iloc[0]
    assert (HOW_TO_KEEP.format(CONSERVATIVE) in shared_text) == (choice == LEAVE_OUT)
    rough = differences["caution"].str.startswith(ROUGH)
    for row in differences.assign(rough=rough).itertuples():
        of = {row.group, row.other}
        assert np.isnan(row.low) == bool(of & left)
        assert row.rough == (choice == KEEP and bool(of & {"b", "c"}))


def test_experiments_whose_samples_overlap_ask_for_conservative_limits():
    for experiment in ("blimp_gpu", "blimp_learning_curves", "climp_sizes_local"):
        of_experiment = [f"experiment={experiment}", "corpus.path=text.txt"]
        assert compose("analysis", of_experiment).analysis.cautioned_limits == CONSERVATIVE
        chosen = compose("analysis", [*of_experiment, f"analysis.cautioned_limits={KEEP}"])
        assert chosen.analysis.cautioned_limits == KEEP
    assert compose("analysis", ["study=s"]).analysis.cautioned_limits == LEAVE_OUT


def test_the_lack_of_fit_is_told_of_conservative_limits_that_are_left_out():
    sizes = np.repeat([1000, 2000, 4000, 8000], 3)
    judged = judged_groups({"a": ([0.5, 0.51, 0.52, 0.5, 0.51, 0.52, 0.5, 0.51, 0.52, 0.8, 0.81, 0.82], sizes)})
    judged = replace(judged, runs=judged.runs.assign(overlap=np.where(sizes == 8000, 0.6, 0)))
    row = fit_curves(judged, replace(CONFIG, cautioned_limits=LEAVE_OUT)).slopes.iloc[0]
    assert np.isnan(row["low"])
    assert row["lack_of_fit"] < 0.05


def test_limits_that_are_left_out():
    sizes = [1000] * 3 + [2000] * 3 + [4000] * 3
    judged = judged_groups({"a": ([0.999] * 9, sizes), "b": ([0.68, 0.7, 0.72] * 3, sizes)})
    leave_out = replace(CONFIG, cautioned_limits=CONSERVATIVE)
    kept, left = (fit_curves(judged, config) for config in (CONFIG, leave_out))
    few, whole = left.slopes[left.slopes["group"] == "a"], left.slopes[left.slopes["group"] == "b"]
    assert set(few["note"]) == {f"no interval, as limits would be {FEW_LIMITS}; {HOW_TO_KEEP.format(KEEP)}"}
    assert few[["low", "high", "low_new_pairs", "high_new_pairs", "rank_low"]].isna().all(axis=None)
    assert kept.slopes.loc[kept.slopes["group"] == "a", "low"].notna().all()
    assert (few["slope"] == kept.slopes.loc[few.index, "slope"]).all()
    assert set(left.slopes["caution"]) == {""}
    pd.testing.assert_frame_equal(whole, kept.slopes.loc[whole.index])
    bands = left.lines.groupby("group")["low"].agg(lambda low: low.isna().all())
    assert bands.to_dict() == {"a": True, "b": False}
    differences = compare_slopes(judged, leave_out)
    assert differences[["low", "high", "p", "p_holm", "p_tost", "low_new_pairs"]].isna().all(axis=None)
    assert differences["difference"].notna().all()
    assert rough_limits(left.slopes.assign(group="a")) == []


def test_a_difference_is_conservative_if_one_of_its_slopes_is():
    sizes = [1000] * 3 + [2000] * 3 + [4000] * 3
    judged = judged_groups({"a": ([0.999] * 9, sizes), "b": ([0.7] * 9, sizes), "c": ([0.6] * 9, sizes)})
    table = compare_slopes(judged, CONFIG)
    reasons = table.groupby(["group", "other"])["caution"].agg(set).to_dict()
    assert reasons == {("a", "b"): {FEW_LIMITS}, ("a", "c"): {FEW_LIMITS}, ("b", "c"): {""}}
    (note,) = rough_limits(table.assign(pair=table["group"] + " − " + table["other"]).iloc[:5], "pair")
    assert note.startswith("a − b: limits of 5 of 5 are rough")


def test_notes_name_a_few_units_and_count_many():
    table = pd.DataFrame({
        "group": ["lstm"] * 6 + ["txl"], "note": [""] * 6 + ["nested"],
        "name": ["overall", "npi_licensing", "island_effects", "binding", "ellipsis", "quantifiers", "overall"],
        "caution": ["", FEW_LIMITS, FEW_LIMITS, "", "", "", "conservative: it is"],
    })  # fmt: skip
    assert slope_notes(table) == [
        "txl: nested.",
        f"lstm: limits of NPI licensing and island effects are rough: {FEW}.",
    ]
    assert rough_limits(table.assign(caution=FEW_LIMITS))[0].startswith("lstm: limits of 6 of 6 are")
    assert rough_limits(table.drop(columns="caution")) == []


def test_cautions_are_explained_where_they_are_given():
    table = pd.DataFrame({"caution": [FEW_LIMITS, "", f"{CONSERVATIVE}: {LONE}"]})
    meanings = cautions_explained(table, 0.9)
    assert list(meanings) == ["Conservative", "Rough"]
    conservative = "Limits that contain the truth in 90% of studies or more, where others do in 90%."
    assert meanings["Conservative"] == conservative
    assert list(cautions_explained(table.iloc[:2], 0.9)) == ["Rough"]
    assert cautions_explained(table.iloc[1:2], 0.9) == cautions_explained(table[[]], 0.9) == {}


def test_wrong_judgements_are_counted_over_paradigms_of_different_numbers():
    """Of 10 pairs none is wrong, of 1,000 pairs 12 at each size: 12, though their mean accuracy times 2,020 is 6."""
    pairs = pd.DataFrame({"phenomenon": "p", "paradigm": ["p_1"] * 10 + ["p_2"] * 1000})
    pairs["pair_id"] = [f"{i}" for i in range(1010)]
    outcome = np.ones((6, 1010), dtype=np.float32)
    outcome[:, 10:16] = 0
    judged = judged_from([1.0] * 6, SIZES, [1, 2] * 3)
    flat = np.zeros(outcome.shape, dtype=bool)
    table = slopes(replace(judged, pairs=pairs, outcome=outcome, unk=flat, tie=flat))
    assert table.set_index("name")["caution"].to_dict() == {"overall": "", "p": "", "p_1": FEW_LIMITS, "p_2": ""}


def test_a_difference_from_a_curve_of_lone_runs_has_no_caution():
    sizes = [1000] * 3 + [2000] * 3 + [4000] * 3
    judged = judged_groups({"a": ([0.7] * 9, sizes), "b": ([0.6] * 3, [1000, 2000, 4000])})
    assert set(compare_slopes(judged, CONFIG)["caution"]) == {""}


@pytest.mark.parametrize("accuracies", [[1.0] * 6, [0.6, 0.6, 0.7, 0.7, 0.62, 0.62]])
def test_no_interval_where_nothing_varies_and_the_number_of_pairs_is_not_known(accuracies):
    """Floating-point numbers made intervals as narrow as 1e-15 of it, all of which lay above 0."""
    judged = judged_from(accuracies, SIZES, [1, 2] * 3, pairs=1)
    unknown = judged.pairs.drop(columns="pair_id").assign(n_pairs=np.nan)
    other = replace(judged, pairs=unknown, outcome=np.array(accuracies)[:, None])
    bands = fit_curves(other, CONFIG).accuracies
    assert bands[["low", "high"]].isna().all(axis=None)
    table = slopes(other)
    assert table[["low", "high"]].isna().all(axis=None)
    assert set(table["note"]) == {NOTHING_VARIES}
    assert slope_notes(table) == [f"lstm: {NOTHING_VARIES}."]
    known = slopes(replace(other, pairs=unknown.assign(n_pairs=100)))
    assert (known["high"] - known["low"] > 0.001).all()
    twice = pd.concat([judged.runs, judged.runs.assign(group="txl")])
    twice.index = [f"run{i}" for i in range(12)]
    both = replace(other, runs=twice.assign(study="s"), outcome=np.concatenate([other.outcome] * 2))
    differences = compare_slopes(both, CONFIG)
    assert differences[["low", "p", "p_equivalent"]].isna().all(axis=None)
    assert set(differences["note"]) == {NOTHING_VARIES}


def test_ranks_and_words_to_people_know_the_limits_that_are_left_out():
    """p is near its ceiling: q is compared with r alone, and the words at which p reaches people have no limits."""
    sizes = np.repeat([1000, 2000, 4000], 3)
    judged = judged_groups({"a": ([0.6] * 9, sizes)})
    names = [(name, f"{name}_{k}") for name in "pqr" for k in (1, 2)]
    pairs = pd.DataFrame(
        [(*name, f"{i}") for name in names for i in range(100)], columns=["phenomenon", "paradigm", "pair_id"]
    )
    at = (np.arange(100) + 0.5) / 100
    q = 0.5 + 0.1 * np.log2(sizes / 1000) + np.tile([-0.02, 0, 0.02], 3)
    rates = {"p": [1.0] * 9, "q": q, "r": [0.6, 0.62] * 4 + [0.6]}
    outcome = np.concatenate([at < np.array(rates[name])[:, None] for name, _ in names], axis=1).astype(np.float32)
    flat = np.zeros(outcome.shape, dtype=bool)
    judged = replace(judged, pairs=pairs, outcome=outcome, unk=flat, tie=flat)
    configs = [replace(CONFIG, cautioned_limits=choice) for choice in (CONSERVATIVE, KEEP)]
    default, keep = (fit_curves(judged, config).slopes.set_index("name") for config in configs)
    ends = ["rank_low", "rank_high"]
    assert default.loc["p", ends].isna().all()
    assert default.loc["q", ends].tolist() == [1, 2]  # p may be steeper
    assert keep.loc["q", ends].tolist() == [1, 1]
    assert np.isnan(default.loc["p", "lack_of_fit"])
    people = pd.DataFrame({"level": "phenomenon", "name": ["p", "q"], "accuracy": 0.9, "error": 0.01})
    reached = words_to_people(judged, configs[0], people).set_index("name")
    assert reached.loc["p", "status"] == "reached"
    assert reached.loc["p", ["low", "high"]].isna().all()
    assert reached.loc["p", "note"].endswith(HOW_TO_KEEP.format(KEEP))
    assert reached.loc["q", "note"] == ""


def test_units_without_limits_are_named_with_the_reason():
    note = f"{NO_INTERVAL}limits would be {FEW_LIMITS}; {HOW_TO_KEEP.format(KEEP)}"
    table = pd.DataFrame({"group": ["a"] * 3 + ["b"], "name": ["p", "q", "r", "p"], "note": [note, "", "nested", note]})
    assert without_limits(table) == [f"a, P: {note}.", f"b, P: {note}."]
