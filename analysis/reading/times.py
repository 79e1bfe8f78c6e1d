"""Measure how much the surprisal of a study's runs adds to regressions of reading times.

For each run, a baseline regression (length, frequency, position) and a full one with surprisal are fitted to the same
words. Delta is the log-likelihood of held-out words under the full regression minus their log-likelihood under the
baseline, in nats per word.
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import statsmodels.formula.api as smf
from scipy.stats import norm
from statsmodels.regression.linear_model import OLS

from analysis.curves.fit import fit_values
from analysis.reading.config import NONE, SENTENCE, ReadingConfig
from pairscale.errors import ConfigError

Array = npt.NDArray[np.float64]


def formulas(config: ReadingConfig) -> tuple[str, str]:
    """Return the formulas of the baseline and the full regression, with the surprisal of the word and previous words.

    Raises ConfigError if the baseline contains the word's surprisal, because the full regression would add nothing.
    """
    lags = ["", *(f"_{lag}" for lag in range(1, config.spillover + 1))]
    baseline = config.formula or "time ~ position + " + " + ".join(f"length{lag} + log_frequency{lag}" for lag in lags)
    if re.search(r"\bsurprisal\b", baseline):
        raise ConfigError(f"reading.formula={baseline}: the baseline contains the word's surprisal. Leave it out.")
    return baseline, " + ".join([baseline, *(f"surprisal{lag}" for lag in lags)])


def regression_rows(words: pd.DataFrame, models: Mapping[str, pd.DataFrame], config: ReadingConfig) -> pd.DataFrame:
    """Return the words of each run with the predictors of their times. All runs use the same words.

    Args:
        words: The table of `read_times`.
        models: The surprisal (bits), tokens, unk and log_frequency of each word, by run.
        config: Which words to leave out.

    Returns:
        One row per run and word. The columns are run, the columns of `read_times`, position, length, log_frequency and
        surprisal. The last three also exist for previous words (NAME_1, NAME_2, ...). `excluded` is the reason why the
        regressions leave out the word, or "".
    """
    unit = words.groupby(["text", "sentence"] if config.edges == SENTENCE else "text", sort=False).ngroup()
    is_edge = (unit.diff() != 0) | (unit.diff(-1) != 0)
    values = pd.concat(models)
    is_known = (values["tokens"] > 0) & (values["unk"] == 0) & np.isfinite(values["log_frequency"])
    known = is_known.groupby(level=1).min().rolling(config.spillover + 1, min_periods=1).min()
    reasons = {
        "no time between reading.lowest and reading.highest": words["time"].isna(),
        f"first or last word of a {config.edges}": is_edge & (config.edges != NONE),
        f"fewer than {config.spillover} words before it": words["number"] <= config.spillover,
        "unknown to a model or without a frequency (the word, or one before it)": known == 0,
        "": words["number"] > 0,
    }
    about = words.assign(position=words["number"].astype(float), length=words["word"].str.len().astype(float))
    about["excluded"] = pd.DataFrame(reasons).idxmax(axis=1)  # the first reason that applies
    tables = [about.assign(run=run, **model[["log_frequency", "surprisal"]]) for run, model in models.items()]
    rows = pd.concat(tables, ignore_index=True)
    of_text = rows.groupby(["run", "text"], sort=False)[["length", "log_frequency", "surprisal"]]
    return rows.join([of_text.shift(lag).add_suffix(f"_{lag}") for lag in range(1, config.spillover + 1)])


def reading_deltas(rows: pd.DataFrame, config: ReadingConfig) -> pd.DataFrame:
    """Fit the regressions of each run to the rows of `regression_rows` that aren't excluded.

    Returns:
        One row per run, with the columns run, delta, perplexity, coefficient, low and high. Delta is computed on
        held-out texts, in nats per word. Perplexity is 2 to the power of the mean surprisal of all words. The
        coefficient of the word's own surprisal is fitted to all rows (in the unit of the times, per bit), and low and
        high are its 95% interval. Standard errors are clustered by text, or by sentence if there are fewer than eight
        texts (Student's t).

    Raises:
        ConfigError: If the formula doesn't fit the rows.
    """
    deltas = []
    for run, words in rows.groupby("run", sort=False):
        table = words[words["excluded"] == ""]
        baseline, full = (_regression(formula, table) for formula in formulas(config))
        fold = folds_of(table["text"], config.folds, config.seed)
        gains = held_out(full.endog, full.exog, fold) - held_out(baseline.endog, baseline.exog, fold)
        cluster = "text" if table["text"].nunique() >= 8 else ["text", "sentence"]  # a few clusters aren't enough
        fit = full.fit(cov_type="cluster", cov_kwds={"groups": table.groupby(cluster).ngroup()}, use_t=True)
        interval, perplexity = fit.conf_int().loc["surprisal"], 2 ** words["surprisal"].mean()
        deltas.append((run, gains.mean(), perplexity, fit.params["surprisal"], *interval))
    return pd.DataFrame(deltas, columns=["run", "delta", "perplexity", "coefficient", "low", "high"])


def folds_of(texts: pd.Series, folds: int, seed: int) -> npt.NDArray[np.intp]:
    """Return the fold of each row. Texts are shuffled and dealt out to folds one by one."""
    number, names = texts.factorize()
    fold = np.empty(len(names), dtype=np.intp)
    fold[np.random.default_rng(seed).permutation(len(names))] = np.arange(len(names)) % folds
    return np.asarray(fold[number])


def _regression(formula: str, table: pd.DataFrame) -> Any:
    try:
        return smf.ols(formula, table, missing="raise")
    except Exception as error:  # patsy, or a function in the formula, may raise anything
        reason = f"this formula can't be used ({str(error).splitlines()[0]})"
        columns = ", ".join(table.select_dtypes("number").columns)
        raise ConfigError(f"reading.formula={formula}: {reason}. Use the columns {columns}.") from None


def held_out(outcome: Array, predictors: Array, fold: npt.NDArray[np.intp]) -> Array:
    """Return the (N,) normal log-likelihood (nats) of each row under a regression on the rows of the other folds."""
    likelihood = np.empty(len(outcome))
    for held in (fold == number for number in np.unique(fold)):
        fit = OLS(outcome[~held], predictors[~held]).fit()
        deviation = np.sqrt(fit.ssr / (~held).sum())  # the maximum-likelihood estimate
        likelihood[held] = norm.logpdf(outcome[held], predictors[held] @ fit.params, deviation)
    return likelihood


def reading_slopes(models: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Fit delta (nats per word) over log2 of the training text for each curve, as `fit_curves` fits accuracies."""
    slopes = fit_values(models, models["delta"], confidence)
    return slopes.rename(columns={"smallest_accuracy": "smallest_delta", "largest_accuracy": "largest_delta"})
