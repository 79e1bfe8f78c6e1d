"""Predictors of a right judgement besides the paradigm: length, perplexity, probability, confidence.

Warstadt et al. 2020, section 5.2 and figure 2, from the score files of `lp`. Paradigms differ in these and in how hard
they are (Simpson 1951): pairs are compared within their paradigm alone.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from eval.scores.accuracy import outcome, stratified_trials
from eval.scores.files import read_scores
from pairscale.shares import wilson

PREDICTORS = {
    "length": "words of the good sentence",
    "perplexity": "perplexity per word of the good sentence",
    "log_probability": "log-probability of the good sentence (nats)",
    "confidence": "difference of the two log-probabilities (nats)",
}
BINS = ["group", "predictor", "x", "judgements", "runs", "accuracy", "low", "high"]


def shallow_predictors(scores: pd.DataFrame) -> pd.DataFrame:
    """Return (P rows) the columns of PREDICTORS, from a score file of `lp` (columns of eval.scores.files.SCORES).

    Perplexity is exp(-log-probability / words), over the corpus's reference words, so that models over words and pieces
    compare; confidence is |ln p(good) - ln p(bad)|.
    """
    words = scores["good_words"].to_numpy(dtype=np.float64)
    good, bad = (scores[side].to_numpy(dtype=np.float64) for side in ("good_lp", "bad_lp"))
    with np.errstate(over="ignore"):
        perplexity = np.exp(-good / np.maximum(words, 1))
    return pd.DataFrame(
        {"length": words, "perplexity": perplexity, "log_probability": good, "confidence": np.abs(good - bad)}
    )


def accuracy_by_predictor(
    files: pd.DataFrame, ties: str, bins: int = 10, left_out: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return rows of BINS, as of `accuracy_in_bins`; `files`: group, path (score files of `lp` at one size).

    left_out: pairs that do not count (paradigm, pair_id).
    """
    key = ["paradigm", "pair_id"]
    omitted = None if left_out is None or left_out.empty else pd.MultiIndex.from_frame(left_out[key])
    rows: list[dict[str, Any]] = []
    for group, of_group in files.groupby("group", sort=False):
        parts = []
        for path in of_group["path"]:
            scores, _ = read_scores(path)
            if omitted is not None:
                scores = scores[~pd.MultiIndex.from_frame(scores[key]).isin(omitted)].reset_index(drop=True)
            right = outcome(scores["good"], scores["bad"], ties)
            parts.append(shallow_predictors(scores).assign(paradigm=scores["paradigm"], outcome=right))
        table = pd.concat(parts, ignore_index=True)
        rows += accuracy_in_bins(table, list(PREDICTORS), str(group), len(of_group), bins)
    return pd.DataFrame(rows, columns=BINS)


def accuracy_in_bins(
    judged: pd.DataFrame, predictors: Sequence[str], group: str, runs: int, bins: int = 10
) -> list[dict[str, Any]]:
    """Return rows of BINS, by predictor and bin of its quantiles within each paradigm, lowest first.

    `judged`: paradigm, the predictors and `outcome` of all judgements of a group's runs. accuracy: the mean over
    paradigms, plus by how much the bin lies above each paradigm's own accuracy, on average over the paradigms that it
    holds pairs of. x: median of the predictor in the bin, of lengths the mean, as bins may have the same median. low,
    high: Wilson's 95% interval over pairs within paradigms. Judgements for which a predictor is not finite are in none
    of its bins, nor are paradigms in which it does not vary.
    """
    rows = []
    for predictor in predictors:
        known = judged.loc[np.isfinite(judged[predictor]), ["paradigm", "outcome", predictor]]
        known = known[known.groupby("paradigm")[predictor].transform("nunique") > 1]
        if known.empty:
            continue
        known = known.assign(bin=quantile_bins(known[predictor], known["paradigm"], bins))
        level = known.groupby("paradigm")["outcome"].mean()
        for _, part in known.groupby("bin"):
            cells = part.groupby("paradigm")["outcome"].agg(["mean", "size"])
            accuracy = float(level.mean() + (cells["mean"] - level[cells.index]).mean())
            equally = np.full((len(cells), 1), 1 / len(cells))
            trials = float(stratified_trials(cells["mean"], cells["size"] / runs, equally)[0])
            limits = wilson(min(max(accuracy, 0.0), 1.0), trials)
            x = part[predictor].mean() if predictor == "length" else part[predictor].median()
            row = (group, predictor, float(x), len(part), runs, accuracy, *limits)
            rows.append(dict(zip(BINS, row, strict=True)))
    return rows


def quantile_bins(values: pd.Series, paradigms: pd.Series, bins: int) -> pd.Series:
    """Return the bin, 0..bins - 1, of each value among those of its paradigm; equal values are never parted."""
    within = values.groupby(paradigms)
    place = (within.rank(method="average") - 0.5) / within.transform("size")
    return pd.Series(np.floor(place * bins).clip(0, bins - 1).astype(int))
