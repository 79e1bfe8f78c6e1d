"""Regressions of reading times, against formulas written out and other functions of scipy and statsmodels."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from analysis.measures.reading.config import ReadingConfig
from analysis.measures.reading.regressions import Formulas, fit_rows, folds_of, held_out, within_groups
from pairscale.errors import ConfigError


def simulated(texts=6, words=30, seed=0, participant=""):
    rng = np.random.default_rng(seed)
    n = texts * words
    table = pd.DataFrame({
        "text": np.repeat([f"t{text}" for text in range(texts)], words), "participant": participant,
        "position": np.tile(np.arange(words) + 1.0, texts), "length": rng.integers(1, 12, n).astype(float),
        "log_frequency": rng.normal(8, 3, n), "surprisal": rng.normal(9, 4, n),
    })  # fmt: skip
    for name in ("length", "log_frequency", "surprisal"):
        table[f"{name}_1"] = rng.permutation(table[name])
    slow = np.repeat(rng.normal(0, 15, texts), words)
    return table.assign(time=300 + 6 * table["length"] + 4 * table["surprisal"] + slow + rng.normal(0, 40, n))


def by_hand(table, columns, fold):
    """Return the held-out log-likelihood of each row, from normal equations and the density of the normal."""
    likelihoods = []
    for i in range(len(table)):
        rest = table[fold != fold[i]]
        x = np.column_stack([np.ones(len(rest)), rest[columns]])
        coefficients = np.linalg.solve(x.T @ x, x.T @ rest["time"])
        variance = float(((rest["time"] - x @ coefficients) ** 2).sum()) / len(rest)
        residual = table["time"][i] - np.r_[1, table.loc[i, columns].to_numpy(float)] @ coefficients
        likelihoods.append(-math.log(math.sqrt(2 * math.pi * variance)) - residual**2 / (2 * variance))
    return np.asarray(likelihoods)


def test_cross_validated_delta_is_that_of_a_regression_written_out():
    table = simulated(texts=4, words=12)
    config = ReadingConfig(folds=3, seed=5)
    fold = folds_of(table["text"], 3, 5)
    baseline = ["position", "length", "log_frequency", "length_1", "log_frequency_1"]
    expected = by_hand(table, [*baseline, "surprisal", "surprisal_1"], fold) - by_hand(table, baseline, fold)
    fit = fit_rows(table, Formulas.of(config), config, fold)
    assert fit.difference == pytest.approx(expected, abs=1e-9)


def test_mixed_delta_is_the_difference_of_log_likelihoods_of_statsmodels():
    table = simulated()
    config = ReadingConfig(regression="mixed", spillover=0)
    formulas = Formulas.of(config)
    fit = fit_rows(table, formulas, config, np.arange(len(table)))
    whole = [smf.mixedlm(formula, table, groups=table["text"]).fit(reml=False).llf
             for formula in (formulas.baseline, formulas.full)]  # fmt: skip
    assert fit.difference.sum() == pytest.approx(whole[1] - whole[0], abs=1e-6)
    assert fit.coefficient == pytest.approx(4, abs=2)


def test_mixed_intercepts_are_of_participants_where_there_are_any():
    table = simulated().assign(participant=np.resize(["p", "q", "r"], 180))
    table["time"] += table["participant"].map({"p": -30, "q": 0, "r": 60})
    config = ReadingConfig(regression="mixed", spillover=0)
    formulas = Formulas.of(config)
    llf = [smf.mixedlm(formula, table, groups=table["participant"]).fit(reml=False).llf
           for formula in (formulas.baseline, formulas.full)]  # fmt: skip
    assert fit_rows(table, formulas, config, np.arange(180)).difference.sum() == pytest.approx(
        llf[1] - llf[0], abs=1e-6
    )


@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=4), variance=st.floats(0.1, 10), between=st.floats(0, 10),
    seed=st.integers(0, 1000),
)  # fmt: skip
def test_log_likelihoods_within_groups_add_up_to_the_multivariate_normal(sizes, variance, between, seed):
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    order = rng.permutation(len(group))
    outcome, mean = rng.normal(size=(2, len(group)))
    whole = sum(
        multivariate_normal.logpdf(outcome[group == g], mean[group == g], variance * np.eye(n) + between)
        for g, n in enumerate(sizes)
    )
    rows = within_groups(outcome[order], mean[order], group[order], variance, between)
    assert rows.sum() == pytest.approx(whole)


def test_folds_are_of_whole_texts_and_as_many_as_there_are():
    texts = pd.Series(np.repeat(list("abcdefg"), 3))
    fold = folds_of(texts, 3, 1)
    assert pd.Series(fold).groupby(texts).nunique().eq(1).all()
    assert sorted(np.bincount(fold)) == [6, 6, 9]
    assert set(folds_of(texts, 10, 1)) == set(range(7))


def test_surprisal_that_says_nothing_adds_less_than_nothing_to_words_that_are_held_out():
    gains = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        time, length, surprisal = rng.normal(size=(3, 400))
        fold = np.repeat(np.arange(10), 40)
        x = np.column_stack([np.ones(400), length])
        gains.append((held_out(time, np.column_stack([x, surprisal]), fold) - held_out(time, x, fold)).sum())
    assert np.mean(gains) == pytest.approx(-0.5 / 0.9, abs=0.35)  # half a nat for the coefficient


def test_formulas_add_what_the_baseline_lacks():
    of = Formulas.of(ReadingConfig(spillover=2))
    assert of.full == of.baseline + " + surprisal + surprisal_1 + surprisal_2"
    own = Formulas.of(ReadingConfig(formula="np.log(time) ~ length * log_frequency + surprisal_1"))
    assert own.full == "np.log(time) ~ length * log_frequency + surprisal_1 + surprisal"
    with pytest.raises(ConfigError, match="without the surprisal of the word"):
        Formulas.of(ReadingConfig(formula="time ~ surprisal"))


@pytest.mark.parametrize("formula", ["time ~ lenght", "time ~ length +* position", "time ~ np.log(position - 5)"])
def test_a_formula_that_the_rows_lack_is_told_in_a_line(formula):
    config = ReadingConfig(formula=formula)
    with np.errstate(all="ignore"), pytest.raises(ConfigError, match=r"reading.formula="):
        fit_rows(simulated(), Formulas.of(config), config, np.arange(180))
