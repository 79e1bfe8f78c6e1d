"""Regressions of reading times, with and without surprisal, and the log-likelihood of each row under both."""

import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf
from scipy.stats import norm
from statsmodels.regression.linear_model import OLS
from statsmodels.tools.sm_exceptions import ConvergenceWarning

from analysis.curves.variance import Array, Numbers
from analysis.measures.reading.config import MIXED, ReadingConfig
from analysis.measures.reading.delta import Nothing
from analysis.measures.reading.predictors import FREQUENCY, SURPRISAL, named
from pairscale.errors import ConfigError


@dataclass(frozen=True)
class Formulas:
    """baseline: without the surprisal of the word, full: with it, and of the words before that the baseline lacks."""

    baseline: str
    full: str

    @classmethod
    def of(cls, config: ReadingConfig) -> "Formulas":
        """Return the formulas of a configuration. Raises ConfigError for a baseline with the word's surprisal."""
        lags = range(config.spillover + 1)
        terms = [named(name, k) for k in lags for name in ("length", FREQUENCY)]
        baseline = config.formula or " + ".join(["time ~ position", *terms])
        present = set(re.findall(r"\w+", baseline))
        if SURPRISAL in present:
            raise ConfigError(f"reading.formula={baseline}: the baseline is without the surprisal of the word")
        added = [name for name in (named(SURPRISAL, k) for k in lags) if name not in present]
        return cls(baseline, " + ".join([baseline, *added]))


def folds_of(texts: pd.Series, folds: int, seed: int) -> Numbers:
    """Return the fold of each row, (N,): texts in random order, dealt out one by one; at most as many as texts."""
    names = texts.drop_duplicates().to_numpy()
    order = np.random.default_rng(seed).permutation(len(names))
    fold = {names[text]: place % min(folds, len(names)) for place, text in enumerate(order)}
    return texts.map(fold).to_numpy(dtype=np.intp)


def design_matrices(formula: str, table: pd.DataFrame) -> tuple[Array, Array]:
    """Return the (N,) outcome and (N, K) predictors of a formula. Raises ConfigError for one that the table lacks."""
    try:
        model = smf.ols(formula, table)
    except Exception as error:  # whatever patsy, or what a formula calls, says
        names = ", ".join(name for name in table.columns if name not in ("word", "text", "sentence", "participant"))
        reason = str(error).splitlines()[0]
        raise ConfigError(f"reading.formula={formula}: {reason}; there are {names}") from None
    if len(model.endog) < len(table):
        raise ConfigError(f"reading.formula={formula}: has no value for {len(table) - len(model.endog):,} rows")
    return model.endog, model.exog


def held_out(outcome: Array, predictors: Array, fold: Numbers) -> Array:
    """Return the (N,) log-likelihood (nats) of each row under the regression on the rows of the other folds.

    Normal, with the maximum-likelihood estimate of the variance.
    """
    likelihood = np.empty(len(outcome))
    for number in range(int(fold.max()) + 1):
        held = fold == number
        fit = OLS(outcome[~held], predictors[~held]).fit()
        deviation = np.sqrt(fit.ssr / (~held).sum())
        likelihood[held] = norm.logpdf(outcome[held], predictors[held] @ fit.params, deviation)
    return likelihood


def within_groups(outcome: Array, mean: Array, group: Numbers, variance: float, between: float) -> Array:
    """Return (N,) log-likelihoods (nats) of rows, each given the rows of its group before it: they add up to the whole.

    Rows are normal around `mean` (N,) with `variance`, and share a normal intercept with variance `between` in a group.
    After m rows of mean residual r the intercept is normal: mean m * between / (variance + m * between) * r, variance
    between * variance / (variance + m * between).
    """
    residual = pd.Series(outcome - mean)
    by_group = residual.groupby(group)
    m = by_group.cumcount().to_numpy()
    before = (by_group.cumsum() - residual).to_numpy()
    shrunk = between / (variance + m * between)
    return np.asarray(norm.logpdf(residual, shrunk * before, np.sqrt(variance + shrunk * variance)))


@dataclass(frozen=True)
class Fit:
    """What surprisal adds to one model's regression.

    difference: (N,) log-likelihoods (nats) of rows with surprisal less those without. coefficient, error: of the word's
    surprisal, per bit, on all rows. nothing: what a difference would be. note: of a fit that did not converge.
    """

    difference: Array
    nothing: Nothing
    coefficient: float
    error: float
    note: str = ""


def fit_rows(table: pd.DataFrame, formulas: Formulas, config: ReadingConfig, cluster: Numbers) -> Fit:
    """Compare the regressions with and without surprisal on the same rows (predictors.Rows and surprisals)."""
    if config.regression == MIXED:
        return _mixed(table, formulas)
    fold = folds_of(table["text"], config.folds, config.seed)
    likelihoods, coefficients = [], []
    for formula in (formulas.baseline, formulas.full):
        outcome, predictors = design_matrices(formula, table)
        likelihoods.append(held_out(outcome, predictors, fold))
        coefficients.append(predictors.shape[1])
    rows = len(table)
    nothing = Nothing.of(coefficients[1] - coefficients[0], rows, rows - rows // (int(fold.max()) + 1))
    whole = smf.ols(formulas.full, table).fit(cov_type="cluster", cov_kwds={"groups": cluster})
    return Fit(likelihoods[1] - likelihoods[0], nothing, float(whole.params[SURPRISAL]), float(whole.bse[SURPRISAL]))


def grouping(table: pd.DataFrame) -> str:
    """Return the column whose groups have random intercepts: participants, or texts where times are means."""
    return "participant" if (table["participant"] != "").any() else "text"


def _mixed(table: pd.DataFrame, formulas: Formulas) -> Fit:
    """Fit by maximum likelihood, with a random intercept for each participant, or text."""
    group = table[grouping(table)].factorize()[0]
    likelihoods: list[Array] = []
    coefficients: list[int] = []
    notes: list[str] = []
    result: Any = None
    for formula in (formulas.baseline, formulas.full):
        coefficients.append(design_matrices(formula, table)[1].shape[1])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            result = smf.mixedlm(formula, table, groups=group).fit(reml=False)
        notes += [str(one.message).splitlines()[0] for one in caught if issubclass(one.category, ConvergenceWarning)]
        model, between = result.model, float(np.asarray(result.cov_re)[0, 0])
        mean = model.exog @ np.asarray(result.fe_params)
        likelihoods.append(within_groups(model.endog, mean, group, float(result.scale), between))
    note = "; ".join(dict.fromkeys(notes))
    nothing = Nothing.of(coefficients[1] - coefficients[0], len(table), None)
    coefficient, error = float(result.params[SURPRISAL]), float(result.bse[SURPRISAL])
    return Fit(likelihoods[1] - likelihoods[0], nothing, coefficient, error, note)
