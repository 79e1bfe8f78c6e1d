"""Statistics of ablations, against computations by hand and by scipy."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis.config import CurvesConfig
from analysis.curves.ablations.ablations import compare_ablations, of_comparison
from analysis.curves.ablations.effects import ALL_SIZES, PER_DOUBLING
from analysis.curves.ablations.matching import (
    CONTROL_FULL,
    TREATMENT_CONTROL,
    TREATMENT_FULL,
    comparisons,
    scoped_units,
)
from analysis.curves.ablations.shares import BELOW, NOT_ABOVE
from analysis.study.judgements import Judgements

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=50, seed=1)
PARADIGMS = (("a", "a_1"), ("a", "a_2"), ("b", "b_1"))
DIRECT = {"c": {"a_1"}}
FULL, REMOVED, CONTROL = ("", "none", "1"), ("c", "remove", "0"), ("c", "control", "0")


def judged(groups, sizes=("1k", "2k", "4k"), seeds=(1, 2, 3), pairs=400, rng=None):
    """Return judgements by runs of every group; `groups`: (filter, action, dose) -> accuracies of the paradigms."""
    rng = rng or np.random.default_rng(0)
    rows, outcomes = [], []
    for (name, action, dose), accuracies in groups.items():
        for size in sizes:
            for seed in seeds:
                words = 1000 * int(size.removesuffix("k"))
                rows.append({
                    "study": "s", "base": "m", "filter": name, "action": action, "dose": dose, "seed": seed,
                    "group": f"m, {name} {action} {dose}", "size": size, "sample_words": words, "nested": False,
                    "reference": "words",
                })  # fmt: skip
                outcomes.append(np.concatenate([rng.uniform(size=pairs) < a for a in accuracies]))
    runs = pd.DataFrame(rows, index=[f"run{i}" for i in range(len(rows))])
    table = pd.DataFrame([(*p, str(i)) for p in PARADIGMS for i in range(pairs)])
    outcome = np.stack(outcomes).astype(np.float64)
    flat = np.zeros(outcome.shape, dtype=bool)
    pairs_table = table.set_axis(["phenomenon", "paradigm", "pair_id"], axis=1)
    return Judgements("blimp", "lp", "d", {}, runs, pairs_table, outcome, flat, flat, pd.DataFrame())


def accuracies(of, action, paradigm=0, size=None):
    """Return a paradigm's accuracy by size and seed."""
    rows = (of.runs["action"] == action) & (True if size is None else of.runs["size"] == size)
    part = of.outcome.shape[1] // len(PARADIGMS)
    return of.outcome[rows.to_numpy(), part * paradigm : part * (paradigm + 1)].mean(axis=1)


def row(table, over=ALL_SIZES, level="paradigm", name="a_1", kind=TREATMENT_CONTROL):
    of = table[(table["over"] == over) & (table["level"] == level) & (table["name"] == name) & (table["kind"] == kind)]
    assert len(of) == 1
    return of.iloc[0]


def three(**changes):
    return judged({FULL: (0.8, 0.7, 0.6), REMOVED: (0.6, 0.7, 0.6), CONTROL: (0.8, 0.7, 0.6)}, **changes)


def test_at_one_size_the_interval_is_that_of_a_paired_t_test():
    of = three()
    result = row(compare_ablations(of, DIRECT, CONFIG).differences, over="2k")
    treatment, control = (accuracies(of, action, size="2k") for action in ("remove", "control"))
    test = stats.ttest_rel(treatment, control).confidence_interval(0.95)
    assert result["difference"] == pytest.approx(treatment.mean() - control.mean())
    assert (result["low"], result["high"]) == pytest.approx((test.low, test.high))
    assert result["pairs"] == 3


@pytest.mark.parametrize(("seeds", "correction"), [(2, 2), (3, 1)])
def test_over_sizes_each_has_its_own_spread(seeds, correction):
    """Welch and Satterthwaite by hand: variances of the sizes' means, degrees at most those of equal spread."""
    of = three(seeds=range(seeds))
    result = row(compare_ablations(of, DIRECT, CONFIG).differences)
    change = (accuracies(of, "remove") - accuracies(of, "control")).reshape(3, seeds)
    parts, free = change.var(axis=1, ddof=1) / seeds / 9, seeds - 1
    degrees = min(parts.sum() ** 2 / (parts**2 / (free + correction)).sum() - correction, 3 * free)
    half = stats.t.ppf(0.975, degrees) * np.sqrt(parts.sum())
    assert (result["low"], result["high"]) == pytest.approx((change.mean() - half, change.mean() + half))
    t = change.mean() / np.sqrt(parts.sum())
    assert result["p"] == pytest.approx(2 * stats.t.sf(abs(t), degrees))
    margin = (CONFIG.ablation_margin - abs(change.mean())) / np.sqrt(parts.sum())
    assert result["p_tost"] == pytest.approx(stats.t.sf(margin, degrees))


def test_per_doubling_needs_three_sizes():
    assert PER_DOUBLING in set(compare_ablations(three(), DIRECT, CONFIG).differences["over"])
    assert PER_DOUBLING not in set(compare_ablations(three(sizes=("1k", "2k")), DIRECT, CONFIG).differences["over"])


def test_shares_are_fiellers():
    """The limits are the ratios r that a paired t test of treatment - r x control, above chance, does not reject."""
    of = three()
    share = row(compare_ablations(of, DIRECT, CONFIG).shares, over="4k")
    treatment, control = (accuracies(of, action, size="4k") - 0.5 for action in ("remove", "control"))
    assert share["share"] == pytest.approx(treatment.mean() / control.mean())
    for limit in (share["low"], share["high"]):
        t = stats.ttest_1samp(treatment - limit * control, 0).statistic
        assert abs(t) == pytest.approx(stats.t.ppf(0.975, 2), rel=1e-6)


def test_a_share_of_nothing_is_absent():
    of = judged({REMOVED: (0.5, 0.3, 0.6), CONTROL: (0.5, 0.3, 0.9)})
    shares = compare_ablations(of, DIRECT, CONFIG).shares
    for name, note in (("a_1", NOT_ABOVE), ("a_2", BELOW), ("b_1", "")):
        share = row(shares, name=name)
        assert share["note"] == note
        assert np.isnan(share["share"]) == np.isnan(share["low"]) == bool(note)


def test_direct_and_indirect_evidence_are_apart():
    units = scoped_units(three().pairs, {"a_1"})
    scopes = units.table[units.table["level"] == "scope"]
    assert dict(zip(scopes["name"], scopes["paradigms"], strict=True)) == {
        "tests the construction": 1, "same phenomena": 1, "other phenomena": 1,
    }  # fmt: skip
    assert units.weights[:, :3].tolist() == np.eye(3).tolist()
    assert "scope" not in set(scoped_units(three().pairs, {"unknown"}).table["level"])


def test_treatments_have_their_controls_and_all_have_the_full_text():
    kinds = [(of.kind, of.action) for of in comparisons(three().runs)]
    assert kinds == [(TREATMENT_CONTROL, "remove"), (TREATMENT_FULL, "remove"), (CONTROL_FULL, "control")]
    other_dose = judged({FULL: (0.8, 0.7, 0.6), ("c", "remove", "1/8"): (0.6, 0.7, 0.6), CONTROL: (0.8, 0.7, 0.6)})
    assert {of.kind for of in comparisons(other_dose.runs)} == {TREATMENT_FULL, CONTROL_FULL}
    replaced = judged({FULL: (0.8, 0.7, 0.6), ("c", "replace", "0"): (0.6, 0.7, 0.6), CONTROL: (0.8, 0.7, 0.6)})
    assert {of.kind for of in comparisons(replaced.runs)} == {TREATMENT_FULL, CONTROL_FULL}
    assert compare_ablations(judged({FULL: (0.8, 0.7, 0.6)}), DIRECT, CONFIG) is None


def test_runs_without_a_partner_are_left_out_and_named():
    of = three()
    keep = ~((of.runs["action"] == "control") & (of.runs["seed"] == 3) & (of.runs["size"] == "4k")).to_numpy()
    arrays = {name: getattr(of, name)[keep] for name in ("outcome", "tie", "unk")}
    ablations = compare_ablations(replace(of, runs=of.runs[keep], **arrays), DIRECT, CONFIG)
    lone = of.runs.index[(of.runs["action"] == "remove") & (of.runs["seed"] == 3) & (of.runs["size"] == "4k")][0]
    assert any(note.endswith(f": {lone}.") for note in ablations.notes)
    assert row(ablations.differences)["pairs"] == 8


def test_groups_without_pairs_are_independent():
    """Welch's t test where no seed is shared, of degrees between his and those without bias."""
    of = three(sizes=("1k",), seeds=(1, 2, 3, 4, 5))
    of.runs.loc[of.runs["action"] == "control", "seed"] += 10
    result = row(compare_ablations(of, DIRECT, CONFIG).differences, over="1k")
    first, second = accuracies(of, "remove"), accuracies(of, "control")
    test = stats.ttest_ind(first, second, equal_var=False)
    variances = np.array([first.var(ddof=1), second.var(ddof=1)]) / 5
    degrees = variances.sum() ** 2 / (variances**2 / 5).sum() - 1
    half = stats.t.ppf(0.975, degrees) * (first.mean() - second.mean()) / test.statistic
    middle = first.mean() - second.mean()
    assert test.df < degrees < 8
    assert result["pairs"] == 0
    assert np.isnan(result["differing"])
    assert (result["low"], result["high"]) == pytest.approx((middle - abs(half), middle + abs(half)))


def test_few_judgements_that_differ_are_told():
    """Two accuracies of 100 pairs that differ by 2, at each of three seeds: 6 judgements, or more that cancel."""
    of = three(sizes=("1k",))
    table = compare_ablations(of, DIRECT, CONFIG).differences
    result = row(table, over="1k", name="a_1")
    treated, control = (of.outcome[(of.runs["action"] == action).to_numpy()] for action in ("remove", "control"))
    at = (of.pairs["paradigm"] == "a_1").to_numpy()
    assert result["differing"] == np.abs(treated - control)[:, at].sum()


@pytest.mark.parametrize(("sizes", "seeds"), [(("1k",), (1,)), (("1k", "2k"), (1,))])
def test_too_few_runs_have_differences_without_intervals(sizes, seeds):
    ablations = compare_ablations(three(sizes=sizes, seeds=seeds), DIRECT, CONFIG)
    assert ablations.differences["difference"].notna().any()
    assert ablations.differences["low"].isna().all()
    assert (ablations.differences["note"] != "").all()
    assert ablations.shares["share"].isna().all()


def test_p_values_are_corrected_within_families():
    table = compare_ablations(three(), DIRECT, CONFIG).differences
    of = table[(table["over"] == ALL_SIZES) & (table["level"] == "paradigm") & (table["kind"] == TREATMENT_CONTROL)]
    assert set(of["tests"]) == {3}
    p = of["p"].to_numpy()
    assert of["p_holm"].min() == pytest.approx(3 * p.min())


def test_doses_have_a_trend():
    doses = {("c", "remove", "0"): 0.6, ("c", "remove", "1/4"): 0.65, ("c", "remove", "1/2"): 0.7, FULL: 0.8}
    of = judged({dose: (accuracy, 0.7, 0.6) for dose, accuracy in doses.items()})
    ablations = compare_ablations(of, DIRECT, CONFIG)
    trend = ablations.trends[ablations.trends["name"] == "a_1"].iloc[0]
    shares = np.asarray([0, 0.25, 0.5, 1])
    means = [of.outcome[(of.runs["group"] == f"m, {' '.join(dose)}").to_numpy(), :400].mean() for dose in doses]
    assert trend["difference"] == pytest.approx(np.polyfit(shares, means, 1)[0])
    assert trend["low"] > 0
    at = ablations.doses[ablations.doses["name"] == "a_1"]
    assert at["accuracy"].tolist() == pytest.approx(means)
    assert compare_ablations(three(), DIRECT, CONFIG).doses.empty


def test_text_that_samples_share_widens_intervals():
    apart, shared = three(), three()
    shared.runs["overlap"] = 0.5
    narrow, wide = (row(compare_ablations(of, DIRECT, CONFIG).differences) for of in (apart, shared))
    assert wide["high"] - wide["low"] > narrow["high"] - narrow["low"]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.floats(0.2, 1), st.floats(0.2, 1))
def test_intervals_hold_their_estimates_and_new_pairs_are_not_surer(seed, first, second):
    of = judged({REMOVED: (first, 0.7, 1.0), CONTROL: (second, 0.7, 1.0)}, pairs=10, rng=np.random.default_rng(seed))
    table = of_comparison(compare_ablations(of, DIRECT, CONFIG).differences, "m, c remove 0", "m, c control 0")
    assert (table["low"] < table["difference"]).all()  # no interval of width 0, also where all judgements are right
    assert (table["difference"] < table["high"]).all()
    assert (table["low_new_pairs"] <= table["low"]).all()
    assert (table["p_new_pairs"] >= table["p"])[table["p"].notna()].all()
