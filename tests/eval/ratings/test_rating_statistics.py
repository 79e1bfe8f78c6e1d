"""Statistics of agreement against scipy and scikit-learn's definitions; influences against the jackknife."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, pearsonr, spearmanr

from eval.ratings.statistics import (
    CORRELATION,
    SHARE,
    auc,
    limits,
    matched_threshold,
    pearson,
    share,
    spearman,
    thresholded,
)

VALUES = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5), st.booleans()), min_size=6, max_size=40)


def simulated(count=300, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    ratings = rng.normal(size=count)
    scores = 0.5 * ratings + rng.normal(size=(3, count))
    if ties:
        scores, ratings = np.round(scores * 2), np.round(ratings * 2)
    return scores, ratings, rng.random(count) < 1 / (1 + np.exp(-ratings))


@given(VALUES)
def test_values_are_those_of_scipy(drawn):
    scores, ratings, good = (np.asarray(column) for column in zip(*drawn, strict=True))
    scores, ratings = scores.astype(float), ratings.astype(float)
    if len(set(scores)) > 1 and len(set(ratings)) > 1:
        assert pearson(scores[None], ratings).value[0] == pytest.approx(pearsonr(scores, ratings).statistic)
        assert spearman(scores[None], ratings).value[0] == pytest.approx(spearmanr(scores, ratings).statistic)
    if good.any() and not good.all():
        u = mannwhitneyu(scores[good], scores[~good]).statistic
        assert auc(scores[None], good).value[0] == pytest.approx(u / good.sum() / (~good).sum())


@pytest.mark.parametrize("ties", [False, True], ids=["continuous", "ties"])
def test_influences_are_those_of_the_jackknife(ties):
    """(S - 1) times the change by leaving a sentence out, up to 1 / S."""
    scores, ratings, good = simulated(ties=ties)
    cases = [
        (lambda keep: pearson(scores[:, keep], ratings[keep])),
        (lambda keep: spearman(scores[:, keep], ratings[keep])),
        (lambda keep: auc(scores[:, keep], good[keep])),
    ]
    everything = np.ones(len(ratings), bool)
    for of in cases:
        whole = of(everything)
        left = []
        for sentence in range(len(ratings)):
            keep = everything.copy()
            keep[sentence] = False
            left.append(of(keep).value)
        jackknife = (len(ratings) - 1) * (whole.value - np.asarray(left)).T
        assert np.abs(whole.influence - jackknife).max() < 0.3
        assert np.corrcoef(whole.influence.ravel(), jackknife.ravel())[0, 1] > 0.9995
        assert np.abs(whole.influence.mean(axis=1)).max() < 1e-12
        ratio = whole.variance / ((jackknife - jackknife.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) * 300 * 299
        assert ratio == pytest.approx(np.ones(3), abs=0.03)
    assert pearson(scores, ratings).variance == pytest.approx(
        jackknife_variance(lambda keep: pearson(scores[:, keep], ratings[keep]).value, len(ratings))
    )


def jackknife_variance(of, sentences):
    """Return the jackknife's variance, by statistics of all sentences but one."""
    left = np.stack([of(np.arange(sentences) != sentence) for sentence in range(sentences)])
    return ((left - left.mean(axis=0)) ** 2).sum(axis=0) * (sentences - 1) / sentences


def test_the_variance_of_the_auc_is_that_of_delong():
    scores, _, good = simulated()
    one = scores[0]
    above = (one[good][:, None] > one[~good]).astype(float)
    delong = above.mean(axis=1).var(ddof=1) / good.sum() + above.mean(axis=0).var(ddof=1) / (~good).sum()
    assert auc(scores, good).variance[0] == pytest.approx(delong, rel=0.02)


def test_the_interval_of_a_correlation_is_fishers_where_all_is_normal():
    rng = np.random.default_rng(5)
    x = rng.normal(size=20_000)
    y = 0.6 * x + 0.8 * rng.normal(size=20_000)
    (low,), (high,) = limits(pearson(x[None], y), CORRELATION, 0.95)
    reference = pearsonr(x, y).confidence_interval()
    assert (low, high) == pytest.approx((reference.low, reference.high), abs=5e-4)


def test_units_are_added_up():
    scores, ratings, _ = simulated(100)
    unit = np.repeat(np.arange(50), 2)
    whole = pearson(scores, ratings)
    by = whole.by(unit)
    assert by.influence == pytest.approx((whole.influence[:, ::2] + whole.influence[:, 1::2]) / 2)
    whole = spearman(scores, ratings)
    twice = spearman(np.repeat(scores, 2, axis=1), np.repeat(ratings, 2))
    assert twice.by(np.repeat(np.arange(100), 2)).variance == pytest.approx(whole.variance)


def test_scales_are_each_others_inverse():
    for scale, values in ((CORRELATION, [-0.9, 0, 0.3]), (SHARE, [0.05, 0.5, 0.9])):
        assert scale.back(scale.forth(np.asarray(values))) == pytest.approx(values)
        step = 1e-6
        slope = (scale.forth(np.asarray(values) + step) - scale.forth(np.asarray(values) - step)) / (2 * step)
        assert scale.slope(np.asarray(values)) == pytest.approx(slope, rel=1e-4)


def test_thresholds_are_those_of_the_other_folds():
    scores, _, good = simulated(120, seed=2)
    fold = np.arange(120) % 3
    called = thresholded(scores, good, fold)
    for row, of_run in zip(called, scores, strict=True):
        for number in range(3):
            others, of = fold != number, fold == number
            ordered, count = np.sort(of_run[others]), int((~good[others]).sum())
            assert (row[of] == (of_run[of] > (ordered[count - 1] + ordered[count]) / 2)).all()


@given(st.lists(st.tuples(st.floats(-9, 9), st.booleans()), min_size=2, max_size=30, unique_by=lambda drawn: drawn[0]))
def test_a_matched_threshold_calls_as_many_bad_as_are_bad(drawn):
    scores, good = (np.asarray(column) for column in zip(*drawn, strict=True))
    assert (scores <= matched_threshold(scores, good)).sum() in (~good).sum() + np.asarray([0, 1])  # 1: by rounding


def test_nothing_varies():
    assert np.isnan(pearson(np.ones((1, 5)), np.arange(5.0)).value).all()
    assert np.isnan(spearman(np.ones((1, 5)), np.arange(5.0)).value).all()
    assert auc(np.ones((1, 4)), np.asarray([True, False, True, False])).value == [0.5]
    low, high = limits(share(np.ones((1, 5), bool)), SHARE, 0.95)
    assert np.isnan([low, high]).all()
