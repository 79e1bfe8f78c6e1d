"""Checks of the hierarchical model: how well its sampler mixed, and whether it makes runs like those seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import expit

from analysis.curves.hierarchical.counts import Counts
from analysis.curves.hierarchical.diagnosis import Diagnosis
from analysis.curves.hierarchical.posterior import Posterior, limits
from analysis.curves.variance import Array

REPLICATES = 400
SPREAD, ACCURACY = "spread between runs", "accuracy"  # what is compared


def diagnose(posterior: Posterior, *tables: pd.DataFrame) -> Diagnosis:
    """Return the diagnosis of a posterior; `tables` have the columns r_hat and effective."""
    shown = pd.concat([table[["r_hat", "effective"]] for table in tables if len(table)])
    r_hats, draws = (np.concatenate([np.ravel(of[i]) for of in posterior.scales.values()]) for i in (0, 1))
    return Diagnosis(
        float(shown["r_hat"].max()), float(shown["effective"].min()), float(r_hats.max()), float(draws.min()),
        posterior.divergences, posterior.number, len(posterior.draws["accuracy"]), posterior.seconds,
    )  # fmt: skip


def replicated(posterior: Posterior, rng: np.random.Generator) -> Array:
    """Return (N, R, K) accuracies of the study's design with new runs, each of one draw from the posterior.

    New runs of one replicate have new text in common where those of the study do; what a new seed adds at one size is
    drawn apart from what it adds at the others, as runs are compared within sizes.
    """
    counts = posterior.counts
    flat = {name: of.reshape(-1, *of.shape[2:]) for name, of in posterior.draws.items()}
    chosen = rng.choice(posterior.number, size=min(REPLICATES, posterior.number), replace=False)
    rows = counts.of.argmax(axis=1)
    logit, spreads = flat["logit"][chosen][:, rows], flat["spreads"][chosen][:, :, rows]  # (N, R, K), (N, 3, R)
    (number, runs, paradigms), phenomena = logit.shape, counts.between.shape[1]
    run, in_phenomenon, cell = (_new_runs(counts, number, columns, rng) for columns in (1, phenomena, paradigms))
    effects = spreads[:, 0, :, None] * run + spreads[:, 1, :, None] * (in_phenomenon @ counts.between.T)
    cells = spreads[:, 2, :, None] * flat["paradigm_spreads"][chosen][:, None]
    effects = effects + cells * cell
    if "seed_variance" in flat:
        of_run, of_cell = np.moveaxis(np.sqrt(flat["seed_variance"][chosen][:, :, rows, None]), 1, 0)
        effects = effects + of_run * rng.normal(size=(number, runs, 1))
        effects = effects + of_cell * rng.normal(size=(number, runs, paradigms))
    return np.asarray(rng.binomial(np.round(counts.pairs).astype(int), expit(logit + effects)) / np.round(counts.pairs))


def _new_runs(counts: Counts, number: int, columns: int, rng: np.random.Generator) -> Array:
    """Return (number, R, columns) standard normal effects of new runs, of which text in common gives all a part."""
    own = rng.normal(size=(number, len(counts.of), columns))
    if not counts.overlap.any():
        return own
    common = rng.normal(size=(number, len(counts.groups), columns))[:, counts.group[counts.of.argmax(axis=1)]]
    share = counts.overlap[:, None]
    return np.asarray(np.sqrt(share) * common + np.sqrt(1 - share) * own)


def predictive_rows(posterior: Posterior, confidence: float, rng: np.random.Generator) -> pd.DataFrame:
    """Compare the study with replicates: a row for each group, size and quantity.

    quantity: the overall accuracy of a run (`low` and `high` hold the share `confidence` of replicated runs), or the
    deviation of that between the runs of a size (two runs or more). observed: its mean, or the deviation. runs, inside:
    how many, and how many of them (or whether the deviation: 1) lie within the limits.
    """
    counts = posterior.counts
    weights = counts.units.weights[:, 0]
    drawn, seen = replicated(posterior, rng) @ weights, (counts.right / counts.pairs) @ weights
    rows = []
    for place, size in enumerate(counts.size):
        of = counts.of[:, place] > 0
        at = {"group": counts.groups[counts.group[place]], "size": size, "words": counts.words[place]}
        low, high = map(float, limits(drawn[:, of], confidence))
        rows.append({**at, "quantity": ACCURACY, "runs": int(of.sum()), "observed": float(seen[of].mean()), "low": low,
                     "high": high, "inside": int(((low <= seen[of]) & (seen[of] <= high)).sum())})  # fmt: skip
        if of.sum() > 1:
            low, high = map(float, limits(drawn[:, of].std(axis=1, ddof=1)[None], confidence))
            spread = float(seen[of].std(ddof=1))
            rows.append({**at, "quantity": SPREAD, "runs": int(of.sum()), "observed": spread, "low": low, "high": high,
                         "inside": int(low <= spread <= high)})  # fmt: skip
    return pd.DataFrame(rows)
