"""Contrasts of runs crossed with sentences, against variances by hand and a bootstrap."""

import numpy as np
import pytest
from scipy.stats import t as student

from analysis.curves.designs import Design
from analysis.curves.graded.agreement import Contrast
from eval.ratings.statistics import CORRELATION, Statistic, pearson


def design(*sizes, overlap=None):
    """Return the design of runs of these sizes."""
    size = np.repeat(np.arange(len(sizes)), sizes)
    seed = np.concatenate([np.arange(k) for k in sizes])
    return Design(size + 17.0, size, seed, nested=False, overlap=overlap)


def simulated(runs, sentences=400, seed=0):
    rng = np.random.default_rng(seed)
    ratings = rng.normal(size=sentences)
    weights = 0.3 + 0.05 * rng.normal(size=(runs, 1))
    return weights * ratings + 0.7 * rng.normal(size=sentences) + 0.6 * rng.normal(size=(runs, sentences)), ratings


def test_a_mean_has_the_variances_of_two_crossed_samples():
    scores, ratings = simulated(5)
    z = pearson(scores, ratings).mapped(CORRELATION)
    c = np.full(5, 0.2)
    contrast = Contrast.of(z, c, design(5))
    assert contrast.value == pytest.approx(np.arctanh(pearson(scores, ratings).value).mean())
    assert contrast.runs == pytest.approx(z.value.var(ddof=1) / 5)
    mean = z.influence.mean(axis=0)
    assert contrast.items == pytest.approx((mean**2).sum() / 400 / 399)
    apart = ((z.influence - mean) ** 2).sum() / 400 / 399 / 5 / 4  # runs x sentences, which both hold
    assert contrast.both == pytest.approx(max(contrast.runs + contrast.items - apart, contrast.runs, contrast.items))
    rng = np.random.default_rng(1)
    drawn = []
    for _ in range(2000):
        chosen = rng.integers(0, 400, 400)
        drawn.append(np.arctanh(pearson(scores[:, chosen], ratings[chosen]).value).mean())
    assert np.sqrt(contrast.items) == pytest.approx(np.std(drawn), rel=0.06)
    limits = contrast.limits(0.95)
    assert limits.high - limits.value == pytest.approx(student.ppf(0.975, 4) * np.sqrt(contrast.runs))
    assert limits.high_both >= max(limits.high, limits.high_items)


def test_a_difference_of_sizes_has_the_spread_of_each():
    z = Statistic(np.asarray([0.1, 0.2, 0.5, 0.6, 0.9]), np.zeros((5, 10)))
    c = np.asarray([-1 / 2, -1 / 2, 1 / 3, 1 / 3, 1 / 3])
    contrast = Contrast.of(z, c, design(2, 3))
    first, last = z.value[:2].var(ddof=1) / 2, z.value[2:].var(ddof=1) / 3
    assert contrast.value == pytest.approx(2 / 3 - 0.15)
    assert contrast.runs == pytest.approx(first + last)
    assert contrast.runs_degrees == pytest.approx((first + last) ** 2 / (first**2 + last**2 / 2))  # Welch


def test_one_run_says_nothing_of_others():
    scores, ratings = simulated(2)
    z = pearson(scores, ratings).mapped(CORRELATION)
    alone = Statistic(z.value[:1], z.influence[:1])
    for statistic, of, c in ((z, design(1, 1), np.asarray([0.0, 1.0])), (alone, None, np.ones(1))):
        limits = Contrast.of(statistic, c, of).limits(0.95)
        assert np.isnan([limits.low, limits.high, limits.low_both, limits.high_both]).all()
        assert limits.low_items < limits.value < limits.high_items


def test_text_in_common_widens():
    z = Statistic(np.asarray([0.1, 0.2, 0.3]), np.zeros((3, 10)))
    c = np.full(3, 1 / 3)
    alone, shared = (Contrast.of(z, c, design(3, overlap=overlap)).runs for overlap in (None, np.full(3, 0.5)))
    assert shared == pytest.approx(alone * (1 + 3 * 0.5 / (1 - 0.5)))  # as of analysis.curves.fit.spread_limits
