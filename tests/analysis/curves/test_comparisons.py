"""Comparisons of slopes: Holm against statsmodels, tests against scipy, the variance over pairs against resampling."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student
from scipy.stats import ttest_1samp, ttest_ind, ttest_rel
from statsmodels.stats.multitest import multipletests

from analysis.config import CurvesConfig
from analysis.curves.comparisons import P_VALUES, compare_groups, compare_policies, compare_slopes, slope_difference
from analysis.curves.designs import slope_weights
from analysis.curves.groups import fit_group
from analysis.curves.intervals import Interval, resampled_accuracies, resampled_runs
from analysis.curves.p_values import holm
from analysis.curves.units import units_of
from pairscale.errors import RunError
from tests.support.judged_runs import judged_groups
from tests.support.simulated_judgements import SimulatedJudgements
from tests.support.slope_errors import hc3, own_spreads, pooled_degrees

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=400, seed=1)
SIZES = np.repeat([1000, 2000, 4000], 2)
RISING = (0.5 + 0.05 * np.log2(SIZES / 1000), SIZES)


def overall_difference(judged):
    """Return the comparison of the overall slopes of two groups."""
    return compare_slopes(judged, CONFIG).query("level == 'overall'").iloc[0]


def test_holm_equals_statsmodels_and_skips_missing_p_values():
    p = np.array([0.01, np.nan, 0.04, 0.03, 0.005, 0.9])
    adjusted = holm(p)
    tests = ~np.isnan(p)
    np.testing.assert_allclose(adjusted[tests], multipletests(p[tests], method="holm")[1])
    assert np.isnan(adjusted[1])
    # By hand: 5 x .005; 4 x .01; 3 x .03; 2 x .04 is less than that; .9.
    np.testing.assert_allclose(adjusted, [0.04, np.nan, 0.09, 0.09, 0.025, 0.9])
    assert len(holm(np.array([np.nan]))) == 1


def test_two_nested_sizes_give_welchs_test_of_the_seeds_differences():
    """Two sizes a doubling apart, seeds nested in them: a group's slope is the mean of its seeds' differences."""
    cell = SimulatedJudgements(seeds=5, sizes=2, nested=True, pairs=40)
    fits, slopes, outcomes = [], [], []
    for seed in (1, 2):
        outcome, _ = cell.draw(np.random.default_rng(seed))
        fits.append(fit_group("g", outcome, cell.design, cell.units, "auto"))
        order = np.argsort(cell.design.seed[:5])
        slopes.append((fits[-1].y[5:, 0][order] - fits[-1].y[:5, 0][order]) / 9)
        outcomes.append(outcome)
    difference = slope_difference(*fits, CONFIG, np.full(fits[1].design.cluster.max() + 1, -1))
    reference = ttest_ind(*slopes, equal_var=False)
    np.testing.assert_allclose(difference["p"][0], reference.pvalue)
    interval = reference.confidence_interval(0.95)
    np.testing.assert_allclose([difference["low"][0], difference["high"][0]], [interval.low, interval.high])


@pytest.mark.parametrize("bend", [0.0, 0.3])
def test_two_lines_of_two_runs_a_size_are_compared(bend):
    """Variances by statsmodels added, degrees of freedom by Satterthwaite; of bent curves those of all units."""
    sizes = np.repeat(1000 * 2 ** np.arange(8), 2)
    spread = np.tile([-0.06, 0.06], 8) * np.repeat([1, 0.5, 0.8, 0.7, 0.9, 0.6, 0.8, 0.7], 2)
    bent = 0.4 + 0.04 * np.log2(sizes / 1000) + spread + bend * (sizes == 32000)
    judged = judged_groups({"a": (bent, sizes), "b": (0.5 + spread[::-1] / 3, sizes)})
    row = overall_difference(judged)
    assert row["method"] == Interval.T_BENT
    means = [judged.outcome[of].mean(axis=1, dtype=float) for of in (slice(0, 16), slice(16, 32))]
    method = own_spreads if bend else hc3
    (a, error_a, free_a), (b, error_b, free_b) = (method(sizes, y) for y in means)
    error = np.hypot(error_a, error_b)
    # Each size of each group adds s^2 / 2 times the square of its weight in the slope, with one degree.
    paradigms = judged.outcome.reshape(32, 2, -1).mean(axis=2, dtype=float).T
    units = [paradigms.mean(axis=0), *paradigms, *paradigms]
    equal = np.tile((np.arange(8) - 3.5) ** 2 / 42**2, 2)
    parts = [equal * y.reshape(16, 2).var(axis=1, ddof=1) / 2 for y in units]
    degrees = error**4 / (error_a**4 / free_a + error_b**4 / free_b)
    if bend:
        degrees = pooled_degrees(parts, equal, np.ones(16))
    half = student.ppf(0.975, degrees) * error
    assert row["difference"] == pytest.approx(a - b)
    expected = [a - b - half, a - b + half, 2 * student.sf(abs(a - b) / error, degrees)]
    np.testing.assert_allclose(row[["low", "high", "p"]].astype(float), expected)
    assert row["p_tost"] == pytest.approx(student.cdf((abs(a - b) - 0.005) / error, degrees))
    assert row["low_new_pairs"] <= row["low"]
    assert row["p_new_pairs"] >= row["p"]


def test_slopes_are_compared_over_the_sizes_that_both_groups_have():
    """A curve that flattens from 4000 words on does not differ from the same one without the two largest sizes."""
    sizes = np.repeat([1000, 2000, 4000, 8000, 16000], 3)
    accuracies = np.repeat([0.5, 0.6, 0.7, 0.7, 0.7], 3)
    groups = {"long": (accuracies, sizes), "short": (accuracies[:9], sizes[:9])}
    row = overall_difference(judged_groups(groups, pairs=2000))
    assert (row["sizes"], row["from_size"], row["to_size"], row["runs"]) == (3, "1000", "4000", 18)
    assert abs(row["difference"]) < 0.02
    assert row["p"] > 0.001
    only = {"a": (accuracies[:6], sizes[:6]), "b": (accuracies[6:], sizes[6:])}
    none = compare_slopes(judged_groups(only), CONFIG)
    assert none["p"].isna().all()
    assert set(none["note"]) == {"no size of both: no slopes to compare"}
    assert none["sizes"].tolist() == [0] * 5


def with_samples(judged, digest):
    """Return the runs with the digest of each run's sample in its manifest: `digest(group, size, seed)`."""
    manifests = [
        {"corpus": {"sample": {"digest": digest(row.group, row.size, row.seed)}}} for row in judged.runs.itertuples()
    ]
    return replace(judged, runs=judged.runs.assign(manifest=manifests))


@pytest.mark.parametrize("runs", [2, 3, 5])
def test_runs_on_the_same_text_are_paired(runs):
    """With two sizes the paired difference of slopes is a t test of the differences between runs."""
    sizes = np.repeat([1000, 2000], runs)
    rng = np.random.default_rng(3)
    text = rng.normal(0, 0.1, len(sizes))
    groups = {name: (level + text + rng.normal(0, 0.02, len(text)), sizes) for name, level in (("a", 0.5), ("b", 0.6))}
    judged = with_samples(judged_groups(groups, pairs=4000), lambda group, size, seed: f"{size} {seed}")
    row = overall_difference(judged)
    assert (row["paired"], row["pairs"]) == (True, 2 * runs)
    y = judged.outcome.mean(axis=1, dtype=float)
    change = y[: 2 * runs] - y[2 * runs :]
    expected = ttest_ind(change[runs:], change[:runs], equal_var=False)
    assert row["difference"] == pytest.approx(change[runs:].mean() - change[:runs].mean())
    if runs > 2:
        assert row["p"] == pytest.approx(expected.pvalue)
    apart = with_samples(judged, lambda group, size, seed: f"{group} {size} {seed}")
    alone = overall_difference(apart)
    assert (alone["paired"], alone["pairs"]) == (False, 0)
    assert alone["high"] - alone["low"] > 2 * (row["high"] - row["low"])  # the pairing removed the variance of texts


def test_no_difference_needs_an_equivalence_test():
    sizes = np.repeat([1000, 2000, 4000, 8000], 3)
    accuracies = 0.5 + 0.05 * np.log2(sizes / 1000)
    alike = judged_groups({"a": (accuracies, sizes), "b": (accuracies, sizes)}, pairs=20_000)
    row = overall_difference(alike)
    assert row["margin"] == CONFIG.equivalence_margin == 0.005
    assert row["p_equivalent"] < 0.05 < row["p_holm"]
    few = judged_groups({"a": (accuracies, sizes), "b": (accuracies, sizes)}, pairs=50)
    row = overall_difference(few)
    assert min(row["p_equivalent"], row["p_holm"]) > 0.05  # neither: these runs cannot tell
    assert row["p_new_pairs_holm"] >= row["p_new_pairs"]


def test_pairs_are_shared_as_in_a_crossed_bootstrap():
    """The variance of the difference over pairs agrees with one resample of pairs shared by both groups."""
    cell = SimulatedJudgements(seeds=5, sizes=4, pairs=50, pair_slope_sd=0.4, run_sd=(0.05, 0.05))
    rng = np.random.default_rng(0)
    pairs = cell.draw_pairs(rng)
    outcomes = [cell.draw(rng, pairs)[0] for _ in range(2)]
    fits = [fit_group("g", outcome, cell.design, cell.units, "auto") for outcome in outcomes]
    assert fits[0].method == Interval.BOOTSTRAP
    drawn = resampled_accuracies(np.concatenate(outcomes), cell.units.bounds, 4000, np.random.default_rng(1))
    c = [slope_weights(cell.design.x, resampled_runs(cell.design.stratum, 4000, rng)) for _ in range(2)]
    slopes = [np.einsum("br,brk->bk", c[i], drawn[:, 20 * i : 20 * i + 20]) @ cell.units.weights for i in (0, 1)]
    shared = (slopes[0] - slopes[1]).std(axis=0)
    difference = slope_difference(*fits, CONFIG, np.full(fits[1].design.cluster.max() + 1, -1))
    ours = (difference["high_new_pairs"] - difference["low_new_pairs"]) / 2 / 2.0  # Student's quantile is about 2
    # Pairs' own slopes cancel, as they are the same for both: were they drawn apart, it would be twice as wide.
    apart = np.hypot(*(errors.both[0] for errors in (fits[0].errors, fits[1].errors)))
    assert apart > 1.8 * ours[0]
    # The bootstrap counts the chance in single judgements three times.
    assert ours[0] < shared[0] < 1.9 * ours[0]


def test_holm_corrects_within_a_level_of_comparisons():
    accuracies, sizes = RISING
    judged = judged_groups({"a": (accuracies, sizes), "b": (accuracies, sizes), "c": (accuracies, sizes)})
    table = compare_slopes(judged, CONFIG)
    assert len(table) == 3 * 5
    for level, tests in (("overall", 3), ("phenomenon", 6), ("paradigm", 6)):
        of = table[table["level"] == level]
        assert len(of) == tests
        for name, corrected in P_VALUES.items():
            np.testing.assert_allclose(of[corrected], multipletests(of[name], method="holm")[1])
    assert table["family"].unique().tolist() == [
        "pairs of groups", "pairs of groups x phenomena", "pairs of groups x paradigms"
    ]  # fmt: skip


def test_a_comparison_without_a_slope_names_the_group():
    accuracies, sizes = RISING
    table = compare_slopes(judged_groups({"a": (accuracies, sizes), "b": (accuracies[:2], sizes[:2])}), CONFIG)
    assert table["p"].isna().all()
    assert table["p_holm"].isna().all()
    assert set(table["note"]) == {"b: one size only: no slope"}
    assert compare_slopes(judged_groups({"a": (accuracies, sizes)}), CONFIG).empty


def test_two_policies_are_compared_by_a_paired_test_over_runs():
    accuracies, sizes = RISING
    first = judged_groups({"a": (accuracies, sizes)})
    second = judged_groups({"a": (accuracies + 0.05, sizes)}, rng=np.random.default_rng(1), label="b+context-eos-32")
    before, after = (judged.outcome.mean(axis=1, dtype=np.float64) for judged in (first, second))
    by_size = compare_policies(first, second, 0.95, by=("group", "size")).query("level == 'overall'")
    assert len(by_size) == 3
    for (_, row), at in zip(by_size.iterrows(), (slice(0, 2), slice(2, 4), slice(4, 6)), strict=True):
        of_size = ttest_rel(after[at], before[at])
        np.testing.assert_allclose(row["p"], of_size.pvalue)
        np.testing.assert_allclose([row["low"], row["high"]], of_size.confidence_interval(0.95))
        assert row["runs"] == 2
    fewer = second.select(np.arange(400) > 0)
    with pytest.raises(RunError, match="not the same pairs"):
        compare_policies(first, fewer, 0.95)
    other = judged_groups({"z": (accuracies, sizes)})
    with pytest.raises(RunError, match="no run was scored under both"):
        compare_policies(first, other, 0.95)


def test_two_policies_are_compared_by_paradigm_where_pairs_are_unknown():
    """As tracked in W&B, and of generated pairs of each run's own words: without the floor of single judgements."""
    accuracies, sizes = RISING
    first = judged_groups({"a": (accuracies, sizes)})
    second = judged_groups({"a": (accuracies + 0.05, sizes)}, rng=np.random.default_rng(1))
    by_pair, by_paradigm = compare_policies(first, second, 0.95), compare_policies(*map(tracked, (first, second)), 0.95)
    columns = ["group", "level", "name", "runs", "first", "second", "difference", "note"]
    pd.testing.assert_frame_equal(by_pair[columns], by_paradigm[columns])
    assert (by_pair["low"] <= by_paradigm["low"] + 1e-12).all()
    assert (by_pair["high"] >= by_paradigm["high"] - 1e-12).all()
    pd.testing.assert_series_equal(by_pair.loc[0, ["low", "high", "p"]], by_paradigm.loc[0, ["low", "high", "p"]])
    with pytest.raises(RunError, match="not the same pairs"):
        compare_policies(tracked(first), second, 0.95)


def tracked(judged):
    """Return the same judgements by paradigm."""
    names = judged.pairs["paradigm"]
    pairs = judged.pairs.groupby(["phenomenon", "paradigm"], as_index=False).size().rename(columns={"size": "n_pairs"})
    means = np.stack([judged.outcome[:, names == name].mean(axis=1, dtype=np.float64) for name in pairs["paradigm"]], 1)
    return replace(judged, pairs=pairs, outcome=means, tie=np.zeros_like(means), unk=np.zeros_like(means))


def test_nested_seeds_are_paired_if_one_group_has_a_missing_run():
    """A seed is a draw of text, so a seed without one of the sizes still pairs with the other group's seed."""
    sizes = np.repeat([1000, 2000, 4000], 3)
    accuracies = 0.5 + 0.05 * np.log2(sizes / 1000)
    judged = judged_groups({"a": (accuracies, sizes), "b": (accuracies[:-1], sizes[:-1])})
    judged = replace(judged, runs=judged.runs.assign(nested=True, seed=[0, 1, 2] * 5 + [0, 1]))
    judged = with_samples(judged, lambda group, size, seed: f"{size} {seed}")
    rows = [compare_groups(judged, pair, units_of(judged.pairs), CONFIG).iloc[0] for pair in (("a", "b"), ("b", "a"))]
    assert [row["pairs"] for row in rows] == [8, 8]
    assert rows[0]["difference"] == pytest.approx(-rows[1]["difference"])
    for name in ("p", "p_new_pairs", "p_tost"):
        assert rows[0][name] == pytest.approx(rows[1][name])


def test_a_change_at_all_sizes_weighs_sizes_equally():
    """Five, three and three runs: the mean of the sizes' changes, its variance the sum of theirs over 9 (by hand)."""
    sizes = np.repeat([1000, 2000, 4000], [5, 3, 3])
    change = np.array([0.1, 0.2, 0.0, 0.15, 0.3, 0.05, 0.25, 0.1, -0.1, 0.1, 0.2])
    first = judged_groups({"a": (np.full(11, 0.5), sizes)})
    second = judged_groups({"a": (0.5 + change, sizes)}, rng=np.random.default_rng(1))
    row = compare_policies(first, second, 0.95).iloc[0]
    exact = pd.Series((second.outcome - first.outcome).mean(axis=1, dtype=np.float64)).groupby(sizes)
    variances = exact.var() / exact.size() / 9
    error, degrees = np.sqrt(variances.sum()), variances.sum() ** 2 / (variances**2 / (exact.size() - 1)).sum()
    assert row["difference"] == pytest.approx(exact.mean().mean())
    assert row["p"] == pytest.approx(2 * student.sf(row["difference"] / error, degrees))
    assert row["high"] - row["low"] == pytest.approx(2 * student.ppf(0.975, degrees) * error)


def test_a_change_of_nested_runs_is_a_test_over_seeds():
    """A seed with all of its runs is one draw, so the test is a t test of the seeds' mean changes."""
    sizes, effect = np.repeat([1000, 2000, 4000, 8000], 3), np.tile([0.05, 0.0, 0.2], 4)
    first = judged_groups({"a": (np.full(12, 0.5), sizes)})
    second = judged_groups({"a": (0.5 + effect, sizes)}, rng=np.random.default_rng(1))
    for judged in (first, second):
        judged.runs["seed"], judged.runs["nested"] = np.tile([1, 2, 3], 4), True
    row = compare_policies(first, second, 0.95).iloc[0]
    of_runs = (second.outcome - first.outcome).mean(axis=1, dtype=np.float64)
    reference = ttest_1samp(of_runs.reshape(4, 3).mean(axis=0), 0)
    np.testing.assert_allclose(row["p"], reference.pvalue)
    np.testing.assert_allclose([row["low"], row["high"]], reference.confidence_interval(0.95))


def test_an_interval_has_a_width_where_no_run_changes():
    sizes = np.repeat([1000, 2000], 3)
    judged = judged_groups({"a": (np.full(6, 0.7), sizes)})
    rows = compare_policies(judged, judged, 0.95)
    assert (rows["difference"] == 0).all()
    assert ((rows["low"] < 0) & (rows["high"] > 0)).all()
    assert rows["p"].tolist() == pytest.approx([1.0] * len(rows))


def test_a_change_without_an_interval_says_why():
    sizes = np.repeat([1000, 2000], 3)
    judged = judged_groups({"a": (np.full(6, 0.7), sizes)})
    judged.runs["overlap"] = 1.0
    for by in (("group",), ("group", "size")):
        rows = compare_policies(judged, judged, 0.95, by)
        assert rows["low"].isna().all()
        assert rows["note"].str.contains("same text").all()
