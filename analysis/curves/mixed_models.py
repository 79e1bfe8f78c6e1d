"""A binomial model of runs x paradigms: gain in log-odds per doubling of the words.

Near the ceiling an accuracy has little room left; log-odds have. The likelihood is binomial: empirical logits lie too
near to 0 where few pairs are wrong, and flatten a slope. Paradigms are random here: the interval is over paradigms like
these, and answers another question than those of curves.
"""

import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_linear_model import GLM
from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

from analysis.curves.designs import Design, design_of, shares_text
from analysis.curves.intervals import ONE_TRAINING
from analysis.curves.units import units_of
from analysis.curves.variance import Array, Numbers
from analysis.study.judgements import Judgements

MIN_PARADIGMS = 3  # fewer say nothing about how paradigms vary: they are fixed
LARGEST_ERROR = 10.0  # log-odds per doubling; of a slope that the likelihood has no maximum for
COLUMNS = ["group", "level", "name", "paradigms", "runs", "slope", "low", "high", "error", "degrees", "over", "note"]


def mixed_slopes(judged: Judgements, confidence: float) -> pd.DataFrame:
    """Fit slopes in log-odds per doubling: one row per group, overall and per phenomenon, with COLUMNS.

    paradigms: those that have right and wrong judgements, which alone say something of the slope. over: what the
    interval is over, "runs and paradigms" or "runs" (below three paradigms). note: why there is no slope or interval.
    """
    units = units_of(judged.pairs)
    pairs = np.diff(units.bounds)
    right = np.add.reduceat(judged.outcome, units.bounds[:-1], axis=1, dtype=np.float64)
    rows = []
    for group in judged.runs["group"].unique():
        of = np.flatnonzero(judged.runs["group"] == group)
        design = design_of(judged.runs.iloc[of])
        for u, unit in enumerate(units.table.to_dict("records")):
            if unit["level"] == "paradigm":
                continue
            members = units.weights[:, u] > 0
            row = {"group": group, "level": unit["level"], "name": unit["name"], "runs": len(of)}
            rows.append({**row, **fit_binomial(design, right[of][:, members], pairs[members], confidence)})
    return pd.DataFrame(rows).reindex(columns=COLUMNS)


def fit_binomial(design: Design, right: Array, pairs: Numbers, confidence: float = 0.95) -> dict[str, Any]:
    """Fit (R, K) right judgements of (K,) pairs: paradigms, slope, low, high, error, degrees, over and note.

    A generalized linear model (logit link, statsmodels): an intercept for each paradigm and a common slope. Its
    variance is that of a jackknife over runs (seeds, where samples are nested) plus that over paradigms minus that over
    single cells (Cameron, Gelbach and Miller 2011, equation 2.11; MacKinnon, Nielsen and Webb 2023 for the jackknife,
    which holds with few clusters); limits are Student's, with the degrees of freedom of the fewer clusters.
    """
    varied = (right.sum(axis=0) > 0) & (right.sum(axis=0) < len(right) * pairs)
    right, pairs = right[:, varied], pairs[varied]
    runs, paradigms = right.shape
    row: dict[str, Any] = {"paradigms": paradigms}
    if reason := _no_model(design, paradigms):
        return row | {"note": reason}
    of_paradigm = np.tile(np.arange(paradigms), runs)
    x = np.repeat(design.x - design.x.mean(), paradigms)
    exog = np.column_stack([x, np.eye(paradigms)[of_paradigm]])
    counts = np.column_stack([right.ravel(), (pairs - right).ravel()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PerfectSeparationWarning)  # the size of the error shows it
        model = GLM(counts, exog, family=Binomial()).fit()
    slope = float(model.params[0])
    if not model.converged or not model.bse[0] < LARGEST_ERROR:
        return row | {"note": "all is right, or wrong, from some size on: the log-odds have no slope"}
    fitted = np.asarray(model.fittedvalues)
    information = counts.sum(axis=1) * fitted * (1 - fitted)
    residuals = counts[:, 0] - counts.sum(axis=1) * fitted
    of_cluster = np.repeat(design.cluster, paradigms)
    clusters = int(design.cluster.max()) + 1
    variance = _jackknife(exog, information, residuals, of_cluster)
    degrees = clusters - 1 if design.nested else clusters - 2
    over = "seeds" if design.nested else "runs"
    if paradigms >= MIN_PARADIGMS:
        of_paradigms = _jackknife(exog, information, residuals, of_paradigm)
        of_cells = _jackknife(exog, information, residuals, of_cluster * paradigms + of_paradigm)
        variance = max(variance + of_paradigms - of_cells, variance, of_paradigms)
        degrees, over = min(degrees, paradigms - 1), f"{over} and paradigms"
    if reason := shares_text(design):
        return row | {"slope": slope, "note": f"{reason}: no interval"}
    error = float(np.sqrt(variance))
    half = float(student.ppf(0.5 + confidence / 2, degrees)) * error
    limits = {"low": slope - half, "high": slope + half}
    return row | {"slope": slope, **limits, "error": error, "degrees": degrees, "over": over, "note": ""}


def _no_model(design: Design, paradigms: int) -> str:
    """Return the reason for no slope, or no interval; "" for neither."""
    if design.trajectory:
        return ONE_TRAINING
    if len(np.unique(design.size)) < 2:
        return "one size only: no slope"
    if not paradigms:
        return "all is right, or all is wrong: the log-odds have no slope"
    without = [np.unique(design.size[design.cluster != cluster]) for cluster in np.unique(design.cluster)]
    if len(without) < 3 or min(map(len, without)) < 2:
        return "too few runs to leave one out: no interval, no model"
    return ""


def _jackknife(exog: Array, information: Array, residuals: Array, clusters: Numbers) -> float:
    """Return the variance of a binomial model's first coefficient, leaving out whole clusters of rows in turn.

    (N, C) `exog`, (N,) binomial variances and residuals (of counts) at the fit, (N,) numbers of clusters. One step of
    scoring from the estimate with all (Pregibon 1981); statsmodels leaves out single rows only.
    """
    numbers = np.unique(clusters)
    total = exog.T @ (exog * information[:, None])
    if len(numbers) == len(clusters):  # one row each: the inverse without a row in closed form (Sherman and Morrison)
        across = np.linalg.solve(total, exog.T)
        leverage = information * (exog * across.T).sum(axis=1)
        change = across[0] * residuals / (1 - leverage)
    else:
        change = np.empty(len(numbers))
        for place, number in enumerate(numbers):
            of = clusters == number
            left = total - exog[of].T @ (exog[of] * information[of][:, None])
            # A paradigm that is left out takes its intercept along: the pseudoinverse leaves it at 0.
            change[place] = np.linalg.pinv(left, hermitian=True)[0] @ (exog[of].T @ residuals[of])
    return float((len(numbers) - 1) / len(numbers) * (change**2).sum())
