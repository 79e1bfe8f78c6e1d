"""Statistics of agreement against scipy and scikit-learn's definitions; influences against the jackknife."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, pearsonr, spearmanr, t

from eval.ratings.measures import auc, pearson, share, spearman, thresholded

VALUES = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5), st.booleans()), min_size=6, max_size=40)


def simulated(count=300, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    ratings = rng.normal(size=count)
    scores = 0.5 * ratings + rng.normal(size=count)
    if ties:
        scores, ratings = np.round(scores * 2), np.round(ratings * 2)
    return scores, ratings, rng.random(count) < 1 / (1 + np.exp(-ratings))


def variance(statistic):
    count = len(statistic.influence)
    return (statistic.influence**2).sum() / (count * (count - 1))


@given(VALUES)
def test_values_are_those_of_scipy(drawn):
    scores, ratings, good = (np.asarray(column) for column in zip(*drawn, strict=True))
    scores, ratings = scores.astype(float), ratings.astype(float)
    if len(set(scores)) > 1 and len(set(ratings)) > 1:
        assert pearson(scores, ratings).value == pytest.approx(pearsonr(scores, ratings).statistic)
        assert spearman(scores, ratings).value == pytest.approx(spearmanr(scores, ratings).statistic)
    if good.any() and not good.all():
        u = mannwhitneyu(scores[good], scores[~good]).statistic
        assert auc(scores, good).value == pytest.approx(u / good.sum() / (~good).sum())


@pytest.mark.parametrize("ties", [False, True], ids=["continuous", "ties"])
def test_influences_are_those_of_the_jackknife(ties):
    """(S - 1) times the change by leaving a sentence out, up to 1 / S; of Pearson's r the variance is the same."""
    scores, ratings, good = simulated(ties=ties)
    everything = np.arange(300)
    for of, other, tolerance in ((pearson, ratings, 1e-9), (spearman, ratings, 0.03), (auc, good, 0.03)):
        whole = of(scores, other)
        left = [of(scores[keep], other[keep]).value for keep in (everything != sentence for sentence in everything)]
        jackknife = 299 * (whole.value - np.asarray(left))
        assert np.abs(whole.influence - jackknife).max() < 0.3
        assert np.corrcoef(whole.influence, jackknife)[0, 1] > 0.9995
        assert abs(whole.influence.mean()) < 1e-12
        assert variance(whole) == pytest.approx(jackknife.var() / 299, rel=tolerance)


def test_the_variance_of_the_auc_is_that_of_delong():
    scores, _, good = simulated()
    above = (scores[good][:, None] > scores[~good]).astype(float)
    delong = above.mean(axis=1).var(ddof=1) / good.sum() + above.mean(axis=0).var(ddof=1) / (~good).sum()
    assert variance(auc(scores, good)) == pytest.approx(delong, rel=0.02)


def test_the_interval_of_a_correlation_is_fishers_where_all_is_normal():
    rng = np.random.default_rng(5)
    x = rng.normal(size=20_000)
    y = 0.6 * x + 0.8 * rng.normal(size=20_000)
    reference = pearsonr(x, y).confidence_interval()
    assert pearson(x, y).interval(np.arange(20_000)) == pytest.approx((reference.low, reference.high), abs=5e-4)


def test_the_interval_of_a_share_is_students_in_logits():
    right = np.arange(40) < 30
    error = np.sqrt(0.75 * 0.25 / 39) / (0.75 * 0.25)
    logits = np.log(3) + t.ppf(0.975, 39) * error * np.asarray([-1, 1])
    assert share(right).interval(np.arange(40)) == pytest.approx(1 / (1 + np.exp(-logits)))


def test_sentences_of_a_unit_count_as_one():
    scores, ratings, _ = simulated(100)
    twice = spearman(np.repeat(scores, 2), np.repeat(ratings, 2)).interval(np.repeat(np.arange(100), 2))
    assert twice == pytest.approx(spearman(scores, ratings).interval(np.arange(100)))


@pytest.mark.parametrize("labels", [None, True, False])
def test_thresholds_are_those_of_the_other_folds(labels):
    scores, _, good = simulated(120, seed=2)
    if labels is not None:
        good = np.full(120, labels)
    fold = np.arange(120) % 3
    called = thresholded(scores, good, fold)
    for number in range(3):
        others, own = fold != number, fold == number
        count = int((~good[others]).sum())
        ordered = [-np.inf, *np.sort(scores[others]), np.inf]
        assert (called[own] == (scores[own] > (ordered[count] + ordered[count + 1]) / 2)).all()


def test_nothing_varies():
    assert np.isnan(pearson(np.ones(5), np.arange(5.0)).value)
    assert np.isnan(spearman(np.ones(5), np.arange(5.0)).value)
    assert auc(np.ones(4), np.asarray([True, False, True, False])).value == 0.5
    assert np.isnan(share(np.ones(5, bool)).interval(np.arange(5))).all()
