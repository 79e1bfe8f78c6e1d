"""How much the surprisal of a study's runs adds to regressions of reading times.

For each run, a baseline regression (length, frequency, position) and one with surprisal are fitted to the same words.
Delta is the log-likelihood with surprisal less that without it, in nats per word (per reading with single readings and
mixed models). Each run is one point: `reading_slopes` fits its curve over training text as `fit_curves` does.

A model is a table with a row per word: surprisal (bits), tokens, unk and log_frequency.
"""

import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import statsmodels.formula.api as smf
from scipy.stats import norm
from statsmodels.regression.linear_model import OLS
from statsmodels.tools.sm_exceptions import ConvergenceWarning

from analysis.curves.fit import fit_curves
from analysis.reading.config import MIXED, NONE, SENTENCE, ReadingConfig
from analysis.reading.files import ReadingTimes
from corpora.words import words as reference_words
from pairscale.errors import ConfigError

Array = npt.NDArray[np.float64]
Models = Mapping[str, pd.DataFrame]
MIN_TEXTS = 8  # from which on standard errors are clustered by text: few clusters say little; else by sentence
METHOD = "surprisal"


def formulas(config: ReadingConfig) -> tuple[str, str]:
    """Return the formulas of the baseline and of the full regression, which adds surprisal, also of the words before.

    Raises ConfigError for a baseline with the word's surprisal.
    """
    lags = ["", *(f"_{lag}" for lag in range(1, config.spillover + 1))]
    terms = [f"{name}{lag}" for lag in lags for name in ("length", "log_frequency")]
    baseline = config.formula or " + ".join(["time ~ position", *terms])
    present = set(re.findall(r"\w+", baseline))
    if METHOD in present:
        raise ConfigError(f"reading.formula={baseline}: the baseline must not contain the surprisal of the word.")
    return baseline, " + ".join([baseline, *(f"{METHOD}{lag}" for lag in lags if f"{METHOD}{lag}" not in present)])


def within_limits(times: ReadingTimes, config: ReadingConfig) -> pd.Series:
    """Return whether each reading lies within the limits; means over people always do."""
    low = -np.inf if config.lowest is None or not times.participants else config.lowest
    high = np.inf if config.highest is None or not times.participants else config.highest
    return times.readings["time"].between(low, high)


def regression_rows(times: ReadingTimes, models: Models, config: ReadingConfig) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of the regressions, the same for all models, and how many words are left out.

    Returns:
        One row per word with its mean time, or per reading if the regression is mixed: word (a row of `times.words`),
        time, participant, text, sentence and position. And reason and words: how many words each further reason leaves
        out, and last how many are left.
    """
    words, readings = times.words, times.readings[within_limits(times, config)]
    is_known = np.all(
        [(of["tokens"] > 0) & (of["unk"] == 0) & np.isfinite(of["log_frequency"]) for of in models.values()], axis=0
    )
    known = with_lags(words.assign(known=is_known.astype(float)), ["known"], config.spillover).filter(regex="^known")
    sentence = words["text"] + ":" + words["sentence"].astype(str)
    unit = sentence if config.edges == SENTENCE else words["text"]
    reasons = {
        "no time, or none within the limits": ~words.index.isin(readings["word"]),
        f"first or last word of a {config.edges}": (
            ((unit != unit.shift(1)) | (unit != unit.shift(-1))) & (config.edges != NONE)
        ),
        f"fewer than {config.spillover} words before it": known.isna().any(axis=1),
        "unknown to a model, or without a frequency; or the word before is": (known == 0).any(axis=1),
    }
    reason = pd.DataFrame({**reasons, "left": True}).idxmax(axis=1)  # the first that is true
    counts = reason.value_counts().reindex([*reasons, "left"], fill_value=0)
    table = readings[readings["word"].map(reason) == "left"].reset_index(drop=True)
    if config.regression != MIXED:
        table = table.groupby("word", as_index=False)["time"].mean().assign(participant="")
    about = pd.DataFrame({"text": words["text"], "sentence": sentence, "position": words["number"].astype(float)})
    return table.join(about, on="word"), counts.rename_axis("reason").reset_index(name="words")


def with_lags(words: pd.DataFrame, names: list[str], spillover: int) -> pd.DataFrame:
    """Add the columns NAME_1, NAME_2, ... of the words before, within a text."""
    of_text = words.groupby("text", sort=False)
    lags = {f"{name}_{lag}": of_text[name].shift(lag) for lag in range(1, spillover + 1) for name in names}
    return words.assign(**lags)


def log_frequencies(words: pd.Series, counts: pd.Series, reference: str) -> Array:
    """Return log2 of occurrences per million, plus half an occurrence, of each word's rarest part.

    `counts` is indexed by word. Parts are reference words (corpora/words.py) that aren't punctuation. Capitals don't
    count.
    """
    lowered = counts.groupby(str.lower).sum().to_dict()
    known = {}
    for word in words.unique():
        parts = [part for part in reference_words(word, reference) if any(map(str.isalnum, part))] or [word]
        known[word] = min((lowered.get(part.lower(), 0) + 0.5) / counts.sum() * 1e6 for part in parts)
    return np.log2(np.asarray(words.map(known), dtype=np.float64))


def reading_deltas(times: ReadingTimes, rows: pd.DataFrame, models: Models, config: ReadingConfig) -> pd.DataFrame:
    """Fit the regressions of each model to the rows of `regression_rows`.

    Returns:
        One row per model: run (its name), delta, the coefficient of the word's own surprisal on all rows (in the unit
        of the times, per bit) with its 95% interval low, high, perplexity (2 to the mean surprisal of the words), and a
        note about a fit that didn't converge.

    Raises:
        ConfigError: for a formula that the rows don't fit.
    """
    names, deltas = ["length", "log_frequency", METHOD], []
    for name, model in models.items():
        words = times.words.assign(
            length=times.words["word"].str.len().astype(float),
            log_frequency=model["log_frequency"],
            surprisal=model["surprisal"],
        )
        words = with_lags(words, names, config.spillover).drop(columns=["text", "sentence", "word"])
        table = rows.join(words, on="word")
        delta, fit, note = _fit_mixed(table, config) if config.regression == MIXED else _fit_ols(table, config)
        perplexity = 2 ** model["surprisal"].mean()
        deltas.append((name, delta, fit.params[METHOD], *fit.conf_int().loc[METHOD], perplexity, note))
    return pd.DataFrame(deltas, columns=["run", "delta", "coefficient", "low", "high", "perplexity", "note"])


def _fit_ols(table: pd.DataFrame, config: ReadingConfig) -> tuple[float, Any, str]:
    """Compare held-out log-likelihoods of least squares; the coefficient's interval is clustered (Student's t)."""
    fold = folds_of(table["text"], config.folds, config.seed)
    baseline, full = formulas(config)
    without, with_surprisal = (held_out(*design_matrices(formula, table), fold) for formula in (baseline, full))
    clusters = {"groups": table[cluster_column(table)].factorize()[0]}
    fit = smf.ols(full, table).fit(cov_type="cluster", cov_kwds=clusters, use_t=True)
    return (with_surprisal - without).mean(), fit, ""


def _fit_mixed(table: pd.DataFrame, config: ReadingConfig) -> tuple[float, Any, str]:
    """Compare mixed models with random intercepts, by maximum likelihood on the rows that they are fitted to."""
    fits = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        for formula in formulas(config):
            design_matrices(formula, table)
            fits.append(smf.mixedlm(formula, table, groups=table[intercept_column(table)]).fit(reml=False))
    notes = [str(one.message).splitlines()[0] for one in caught if issubclass(one.category, ConvergenceWarning)]
    without, full = fits
    return (full.llf - without.llf) / len(table), full, "; ".join(dict.fromkeys(notes))


def cluster_column(table: pd.DataFrame) -> str:
    """Return the column by which standard errors are clustered."""
    return "text" if table["text"].nunique() >= MIN_TEXTS else "sentence"


def intercept_column(table: pd.DataFrame) -> str:
    """Return the column with random intercepts: participants, or texts if the times are means."""
    return "participant" if (table["participant"] != "").any() else "text"


def folds_of(texts: pd.Series, folds: int, seed: int) -> npt.NDArray[np.intp]:
    """Return the fold of each row: texts in random order, dealt out one by one; at most as many folds as texts."""
    number, names = texts.factorize()
    fold = np.empty(len(names), dtype=np.intp)
    fold[np.random.default_rng(seed).permutation(len(names))] = np.arange(len(names)) % folds
    return np.asarray(fold[number])


def design_matrices(formula: str, table: pd.DataFrame) -> tuple[Array, Array]:
    """Return the (N,) outcome and (N, K) predictors of a formula. Raises ConfigError if they are not in the table."""
    try:
        model = smf.ols(formula, table)
    except Exception as error:  # whatever patsy, or what a formula calls, raises
        names = ", ".join(table.select_dtypes("number").columns.drop("word"))
        reason = str(error).splitlines()[0]
        raise ConfigError(f"reading.formula={formula}: {reason}; the columns are {names}") from None
    if len(model.endog) < len(table):
        raise ConfigError(f"reading.formula={formula}: has no value for {len(table) - len(model.endog):,} rows")
    return model.endog, model.exog


def held_out(outcome: Array, predictors: Array, fold: npt.NDArray[np.intp]) -> Array:
    """Return the (N,) normal log-likelihood (nats) of each row under the regression on the rows of the other folds.

    The variance is the maximum-likelihood estimate.
    """
    likelihood = np.empty(len(outcome))
    for held in (fold == number for number in np.unique(fold)):
        fit = OLS(outcome[~held], predictors[~held]).fit()
        deviation = np.sqrt(fit.ssr / (~held).sum())
        likelihood[held] = norm.logpdf(outcome[held], predictors[held] @ fit.params, deviation)
    return likelihood


def reading_slopes(models: pd.DataFrame, name: str, confidence: float) -> pd.DataFrame:
    """Fit delta over log2 of the training text for each curve: the interval of `fit_curves`, in nats per doubling.

    Args:
        models: columns of `analysis.runs` and delta.
        name: of the file of times, which takes the place of a benchmark.
    """
    rows = models[models["sample_words"].notna() & (models["baseline"].isna() | models["baseline"].eq(""))]
    none = dict.fromkeys(("phenomenon", "paradigm", "pairs", "correct", "ties", "pairs_with_unk"))
    accuracies = rows.assign(baseline="", benchmark=name, method=METHOD, accuracy=rows["delta"], **none)
    names = {"smallest_accuracy": "smallest_delta", "largest_accuracy": "largest_delta"}
    without = ["benchmark", "method", "level", "name", "paradigms", "pairs"]
    return fit_curves(accuracies, confidence).drop(columns=without).rename(columns=names)
