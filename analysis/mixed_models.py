"""A mixed model of run x paradigm logits, beside the slopes: gain in log-odds per doubling of the words.

Where accuracies come near their ends a logit is nearer to a line than an accuracy. Unlike everywhere else paradigms are
random here: the slope is one over paradigms like these, so its interval answers another question than those of curves.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student
from statsmodels.regression.linear_model import OLS
from statsmodels.regression.mixed_linear_model import MixedLM

from analysis.intervals import design_of
from analysis.judgements import Judgements
from analysis.units import units_of
from analysis.variance import Array, Numbers

PARADIGM, PARADIGM_SLOPE, RUN = "paradigm intercepts", "paradigm slopes", "run intercepts"
MIN_PARADIGMS = 3  # fewer say nothing about how paradigms vary: theirs are fixed effects
# Tried in order: the first two follow gradients, which do not vanish where a variance is 0; the third needs none.
OPTIMIZERS = ["bfgs", "lbfgs", "powell"]
_TERMS = {PARADIGM: "0 + C(paradigm)", PARADIGM_SLOPE: "0 + C(paradigm):x", RUN: "0 + C(run)"}
COLUMNS = [
    "group", "level", "name", "paradigms", "runs", "slope", "low", "high", "error", "degrees", "random",
    "paradigm_sd", "paradigm_slope_sd", "run_sd", "residual_sd", "note",
]  # fmt: skip


def empirical_logits(outcome: Array, bounds: Numbers) -> Array:
    """(R, P) outcomes -> (R, K) log((right + .5) / (wrong + .5)) of each paradigm (Haldane 1956; Anscombe 1956)."""
    pairs = np.diff(bounds)
    right = np.add.reduceat(outcome, bounds[:-1], axis=1, dtype=np.float64)
    logits: Array = np.log((right + 0.5) / (pairs - right + 0.5))
    return logits


def mixed_slopes(judged: Judgements, confidence: float) -> pd.DataFrame:
    """One row per group, overall and per phenomenon: COLUMNS, slope in log-odds per doubling, deviations in log-odds.

    REML by statsmodels' MixedLM: logit ~ x, with random intercepts and slopes by paradigm (uncorrelated, x centred) and
    random intercepts by run. Where that does not converge random intercepts by run are dropped, or else slopes by
    paradigm; `random` names what is left, `note` what failed. Two paradigms are fixed effects; of one the
    slope is that of least squares. Limits are Student's, with paradigms - 1 or runs - 2 degrees of freedom, the smaller
    where slopes vary by paradigm (containment), else runs - 2.
    """
    units = units_of(judged.pairs)
    logits = empirical_logits(judged.outcome, units.bounds)
    rows = []
    for group in judged.runs["group"].unique():
        of = np.flatnonzero(judged.runs["group"] == group)
        design = design_of(judged.runs.iloc[of])
        for u, unit in enumerate(units.table.to_dict("records")):
            if unit["level"] == "paradigm":
                continue
            kept = units.weights[:, u] > 0
            row = {"group": group, "level": unit["level"], "name": unit["name"], "paradigms": int(kept.sum())}
            if len(np.unique(design.size)) < 2:
                found: dict[str, Any] = {"note": "one size only: no slope"}
            elif len(of) < 3:
                found = {"note": "two runs: no interval, no model"}
            else:
                found = fit_mixed(design.x, logits[of][:, kept], confidence)
            rows.append({**row, "runs": len(of), **found})
    return pd.DataFrame(rows).reindex(columns=COLUMNS)


def fit_mixed(x: Array, logits: Array, confidence: float = 0.95) -> dict[str, Any]:
    """(R,) log2(words) and (R, K) logits -> slope, low, high, error, degrees, random, deviations and note."""
    runs, paradigms = logits.shape
    x = x - x.mean()
    if paradigms == 1:
        model = OLS(logits[:, 0], np.stack([np.ones(runs), x], axis=1)).fit()
        residual = float(np.sqrt(model.scale))
        return _row(float(model.params[1]), float(model.bse[1]), runs - 2, confidence, "none", residual_sd=residual)
    long = pd.DataFrame(
        {
            "logit": logits.ravel(), "x": np.repeat(x, paradigms),
            "run": np.repeat(np.arange(runs), paradigms), "paradigm": np.tile(np.arange(paradigms), runs),
        }
    )  # fmt: skip
    attempts: list[tuple[str, ...]] = [(PARADIGM, PARADIGM_SLOPE, RUN), (PARADIGM, PARADIGM_SLOPE), (PARADIGM, RUN)]
    failed = []
    for random in attempts if paradigms >= MIN_PARADIGMS else [(RUN,)]:
        formula = "logit ~ x" if PARADIGM in random else "logit ~ x + C(paradigm, Sum)"
        terms = {name: _TERMS[name] for name in random}
        # Variances near 0 are warned of as the search passes them; what comes out is looked at below.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model = MixedLM.from_formula(formula, long, groups=np.ones(len(long)), vc_formula=terms).fit(
                    method=OPTIMIZERS
                )
            except np.linalg.LinAlgError as error:
                failed.append(f"{', '.join(random)}: {error}")
                continue
        slope, deviation = float(model.params["x"]), float(model.bse["x"])
        if not model.converged or not np.isfinite([slope, deviation]).all():
            failed.append(f"{', '.join(random)}: did not converge")
            continue
        variances = dict(zip(model.model.exog_vc.names, model.vcomp, strict=True))
        degrees = min(runs - 2, paradigms - 1) if PARADIGM_SLOPE in random else runs - 2
        columns = {PARADIGM: "paradigm_sd", PARADIGM_SLOPE: "paradigm_slope_sd", RUN: "run_sd"}
        deviations = {columns[name]: float(np.sqrt(value)) for name, value in variances.items()}
        deviations["residual_sd"] = float(np.sqrt(model.scale))
        return _row(slope, deviation, degrees, confidence, ", ".join(random), "; ".join(failed), **deviations)
    return {"random": "none", "note": "; ".join(failed)}


def _row(
    slope: float, error: float, degrees: int, confidence: float, random: str, note: str = "", **deviations: float
) -> dict[str, Any]:
    half = float(student.ppf(0.5 + confidence / 2, degrees)) * error
    return {
        "slope": slope, "low": slope - half, "high": slope + half, "error": error, "degrees": degrees,
        "random": random, "note": note, **deviations,
    }  # fmt: skip
