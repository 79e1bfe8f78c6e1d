"""Scores of rated sentences by hand, and the fit of MORCELA against an independent regression."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize
from scipy.stats import pearsonr

from eval.ratings.measures import FOLDS, clusters, cross_validated, features, fit, folds, people, scores
from eval.scores.accuracy import morcela


def simulated(count=200, seed=1, pairs=False):
    """Return rows of a score file whose ratings depend on lp, unigrams and length."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(4, 30, count)
    unigram = -8.0 * tokens + rng.normal(0, 6, count)
    lp = 0.8 * unigram + rng.normal(0, 5, count)
    ratings = (lp - 0.6 * unigram + 3) / tokens + rng.normal(0, 0.3, count)
    pair = np.repeat(np.arange(count // 2), 2).astype(str) if pairs else None
    columns = {"lp": lp, "unigram_lp": unigram, "tokens": tokens, "rating": ratings, "pair": pair}
    return pd.DataFrame(columns).assign(label=np.tile([True, False], count // 2))


def test_scores_are_their_formulas():
    rows = pd.DataFrame(
        {"lp": [-20.0, -12.0], "unigram_lp": [-30.0, -16.0], "tokens": [5, 4], "rating": [1.0, 2.0], "label": None}
    )
    table = scores(rows.assign(pair=None))
    assert list(table) == ["lp", "mean_lp", "pen_lp", "norm_lp", "slor", "morcela"]
    assert table["lp"].tolist() == [-20, -12]
    assert table["mean_lp"].tolist() == [-4, -3]
    assert table["pen_lp"].tolist() == pytest.approx([-20 / (10 / 6) ** 0.8, -12 / 1.5**0.8])
    assert table["norm_lp"].tolist() == pytest.approx([-20 / 30, -12 / 16])
    assert table["slor"].tolist() == [2, 1]
    assert morcela(*(rows[name].to_numpy(float) for name in ("lp", "unigram_lp", "tokens")), 0.5, 3).tolist() == [
        (-20 + 15 + 3) / 5, (-12 + 8 + 3) / 4,
    ]  # fmt: skip


def test_without_unigrams_three_scores_are_left():
    assert list(scores(simulated().assign(unigram_lp=np.nan))) == ["lp", "mean_lp", "pen_lp"]


def test_the_fit_is_that_of_a_regression_and_has_the_highest_correlation():
    rows = simulated()
    lp, u, n, y = (rows[name].to_numpy(float) for name in ("lp", "unigram_lp", "tokens", "rating"))
    alpha, unigram, length, intercept = fit(rows, y)
    reference = sm.OLS(y, sm.add_constant(np.stack([lp / n, u / n, 1 / n], axis=1))).fit()
    assert [intercept, alpha, unigram, length] == pytest.approx(reference.params)
    beta, gamma = -unigram / alpha, length / alpha
    by_hand = morcela(lp, u, n, beta, gamma)
    assert features(rows) @ fit(rows, y) == pytest.approx(alpha * by_hand + intercept)
    assert beta == pytest.approx(0.6, abs=0.1)
    r = pearsonr(by_hand, y).statistic
    assert r == pytest.approx(np.sqrt(reference.rsquared))

    def less(weights):
        return -pearsonr(morcela(lp, u, n, *weights), y).statistic

    best = minimize(less, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-12})
    assert best.x == pytest.approx([beta, gamma], abs=1e-3)
    assert -best.fun == pytest.approx(r, abs=1e-9)


def test_a_sentence_is_predicted_by_a_fit_to_others():
    rows = simulated(pairs=True)
    fold, y = folds(rows), people(rows)
    assert np.bincount(fold).tolist() == [40] * FOLDS
    assert (fold[::2] == fold[1::2]).all()  # of a pair
    predicted = cross_validated(rows, y, fold)
    of = fold == 2
    assert predicted[of] == pytest.approx(features(rows[of]) @ fit(rows[~of], y[~of]))
    changed = y.copy()
    changed[7] += 100
    same = fold == fold[7]
    assert cross_validated(rows, changed, fold)[same] == pytest.approx(predicted[same])


def test_ratings_of_noise_are_not_predicted():
    rng = np.random.default_rng(3)
    rows = simulated(400).assign(rating=rng.normal(size=400))
    assert pearsonr(features(rows) @ fit(rows, people(rows)), people(rows)).statistic > 0
    assert pearsonr(scores(rows)["morcela"], people(rows)).statistic < 0.1


def test_labels_stand_in_for_ratings_and_pairs_are_units():
    rows = simulated(10, pairs=True)
    assert people(rows.assign(rating=np.nan)).tolist() == [1, 0] * 5
    assert clusters(rows).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert clusters(rows.assign(pair=None)).tolist() == list(range(10))
