"""Ranks with their limits, and correlations of orders, against values by hand, scipy and simulated studies."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, spearmanr

from analysis.config import CurvesConfig
from analysis.curves.acquisition.acquisition import acquire
from analysis.curves.acquisition.orders import (
    ACQUISITION,
    LEAST_UNITS,
    Pairwise,
    Values,
    correlate,
    crossing_ranks,
    draws_of_sizes,
    order_table,
    rank_limits,
)
from analysis.curves.acquisition.sizes import bands_of, crossings
from tests.support.committed_results import judgements_of
from tests.support.simulated_acquisition import ORDER, SimulatedAcquisition

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=50, seed=1)


def values(group, numbers, noise=0.0, size="1M", first=0):
    names = tuple(f"u{i}" for i in range(first, first + len(numbers)))
    return Values(group, size, names, np.asarray(numbers, dtype=float), np.full(len(numbers), noise))


def test_ranks_of_limits_by_hand():
    low, high = np.asarray([-np.inf, 1.0, 2.5, 2.0, 9.0]), np.asarray([-np.inf, 3.0, 4.0, np.inf, np.inf])
    least, most = rank_limits(low, high)
    assert least.tolist() == [1, 2, 2, 2, 4]
    assert most.tolist() == [1, 4, 4, 5, 5]


def test_ranks_by_amount_of_text_hold_the_true_order():
    cell = SimulatedAcquisition(5, curves=ORDER, pairs=100)
    fit, expected = cell.study(np.random.default_rng(1))
    threshold = np.full(len(fit.units.table), 0.6)
    bands = bands_of(fit)
    found = crossings(fit, threshold, 0.95, bands)
    rank, low, high = crossing_ranks(fit, found.x, threshold, bands, 0.95)
    of = (fit.units.table["level"] == "paradigm").to_numpy()
    truth = cell.crossing(expected, threshold)[of]
    first = 1 + (truth[None, :] < truth[:, None]).sum(axis=1)
    assert (low[of] <= first).all()
    assert (first <= high[of]).all()
    assert rank[of][0] == 1
    assert np.isnan(rank[0])  # the whole has none


def test_pairwise_ranks_are_narrow_where_accuracies_are_far_apart_and_hold_the_truth():
    cell = SimulatedAcquisition(5, curves=ORDER, pairs=100)
    fit, expected = cell.study(np.random.default_rng(1))
    of = (fit.units.table["level"] == "paradigm").to_numpy()
    c = np.where(fit.design.size == 3, fit.design.weights, 0)
    low, high = Pairwise.of(fit, of).rank_limits(c, 0.95)
    y = expected[3, of]
    first = 1 + (y[None, :] > y[:, None]).sum(axis=1)
    assert (low <= first).all()
    assert (first <= high).all()
    assert (low[0], high[0]) == (1, 1)  # .85, the next .75


def test_correlations_are_those_of_scipy_with_the_limits_of_bonett_and_wright():
    rng = np.random.default_rng(0)
    x = rng.normal(size=20)
    y = x + rng.normal(size=20)
    row = correlate(values("a", x), values("b", y), 0.95)
    rho = spearmanr(x, y).statistic
    assert row["spearman"] == pytest.approx(rho)
    half = 1.959964 * np.sqrt((1 + rho**2 / 2) / 17)
    assert (row["low"], row["high"]) == pytest.approx(tuple(np.tanh(np.arctanh(rho) + np.array([-half, half]))))
    assert row["corrected"] == pytest.approx(rho)  # no noise


def test_noise_between_runs_is_corrected_for():
    x = np.arange(10.0)
    spread = x.var(ddof=1)
    row = correlate(values("a", x, spread / 4), values("b", x[::-1] ** 2, 0.0), 0.95)
    assert row["reliability"] == pytest.approx(0.75)
    assert row["spearman"] == pytest.approx(-1)
    assert row["corrected"] == -1  # no further than that
    noisy = correlate(values("a", x, spread), values("b", x), 0.95)
    assert np.isnan(noisy["corrected"])


def test_few_units_in_common_and_ties_are_told():
    few = correlate(values("a", range(8)), values("b", range(8), first=5), 0.95)
    assert few["note"] == f"3 in common, needs {LEAST_UNITS}"
    tied = correlate(values("a", [np.inf] * 8), values("b", range(8)), 0.95)
    assert tied["note"] == "nearly all units tied: a, 1M"
    assert np.isnan(tied["spearman"])


def test_orders_are_compared_with_the_largest_size_and_between_groups():
    parts = [
        [values(g, np.arange(8.0), size=s) for s in ("125k", "250k")] + [values(g, np.arange(8.0), size=ACQUISITION)]
        for g in ("a", "b")
    ]
    table = order_table(parts, "phenomenon", 0.95)
    keys = table[["group", "size", "other", "other_size"]].to_numpy().tolist()
    assert keys == [
        ["a", "125k", "a", "250k"],
        ["b", "125k", "b", "250k"],
        ["a", "125k", "b", "125k"],
        ["a", "250k", "b", "250k"],
        ["a", ACQUISITION, "b", ACQUISITION],
    ]


def test_everything_about_the_committed_study_of_two_models():
    of = acquire(judgements_of(), CONFIG)
    assert of is not None
    phenomena = of.sizes[of.sizes["level"] == "phenomenon"]
    assert phenomena.groupby("group").size().tolist() == [12, 12]
    assert (of.sizes["threshold"] == 0.6).all()  # chance, as no untrained model is there
    last = of.orders[(of.orders["level"] == "phenomenon") & (of.orders["size"] == "500k")]
    between = last[last["group"] != last["other"]].iloc[0]
    means = judgements_of().runs.assign(number=range(len(judgements_of().runs)))
    accuracy = {
        group: of.ranks[(of.ranks["group"] == group) & (of.ranks["size"] == "500k")]
        .query("level == 'phenomenon'")["accuracy"]
        .to_numpy()
        for group in means["group"].unique()
    }
    assert between["spearman"] == pytest.approx(spearmanr(*accuracy.values()).statistic)


def test_limits_hold_their_correlation_however_near_1_it_is():
    first = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    row = correlate(values("a", first), values("b", [2, 1, *first[2:]]), 0.95)  # rho = .993, above 1 - 1 / 12
    half = norm.ppf(0.975) * np.sqrt((1 + row["spearman"] ** 2 / 2) / 9)
    assert row["low"] == pytest.approx(np.tanh(np.arctanh(11 / 12) - half))
    assert row["high"] == pytest.approx(np.tanh(np.arctanh(row["spearman"]) + half))
    same, opposite = (correlate(values("a", first), values("b", of), 0.95) for of in (first, first[::-1]))
    assert (same["high"], opposite["low"]) == (1, -1)
    expected = np.tanh(np.arctanh(11 / 12) - norm.ppf(0.975) * np.sqrt(1.5 / 9))
    assert (same["low"], opposite["high"]) == (pytest.approx(expected), pytest.approx(-expected))


@pytest.mark.parametrize("true", [0.8, 0.9, 0.95])
def test_limits_hold_the_correlation_of_all_units(true):
    """Of ranks of normal values of 12 units (Kruskal 1958: 6 / pi * arcsin(rho / 2))."""
    rng, held = np.random.default_rng(1), 0
    for _ in range(300):
        a = rng.normal(size=12)
        row = correlate(values("a", a), values("b", true * a + np.sqrt(1 - true**2) * rng.normal(size=12)), 0.95)
        held += row["low"] <= 6 / np.pi * np.arcsin(true / 2) <= row["high"]
    assert held / 300 > 0.93


def test_noise_that_both_share_is_not_corrected_for():
    first, second = values("a", range(8), noise=2.0), values("b", [1, 0, 2, 3, 5, 4, 6, 7], noise=2.0)
    assert np.isfinite(correlate(first, second, 0.95)["corrected"])
    row = correlate(*(replace(of, draws=frozenset({"sample"})) for of in (first, second)), 0.95)
    assert np.isnan(row["corrected"])
    assert row["note"] == "both saw some of the same text: not corrected for noise"


def test_draws_of_text_are_samples_and_seeds_of_nested_ones():
    manifests = [{"corpus": {"sample": {"digest": digest}}} for digest in "abca"]
    sizes, seeds = ["1M", "1M", "2M", "2M"], [1, 2, 1, 2]
    runs = pd.DataFrame({"group": "g", "size": sizes, "seed": seeds, "nested": False, "manifest": manifests})
    assert draws_of_sizes(runs) == {"1M": {"a", "b"}, "2M": {"a", "c"}}
    assert draws_of_sizes(runs.assign(nested=True))["1M"] == {"a", "b", "g, seed 1", "g, seed 2"}
