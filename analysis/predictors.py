"""What predicts a right judgement besides the phenomenon: length, perplexity, probability, confidence.

Warstadt et al. 2020, section 5.2 and figure 2, from the score files of `lp`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from eval.accuracy import outcome, wilson
from eval.scores import read_scores

PREDICTORS = {
    "length": "words of the good sentence",
    "perplexity": "perplexity per word of the good sentence",
    "log_probability": "log-probability of the good sentence (nats)",
    "confidence": "difference of the two log-probabilities (nats)",
}
BINS = ["group", "predictor", "x", "judgements", "runs", "accuracy", "low", "high"]
Array = npt.NDArray[np.float64]


def shallow_predictors(scores: pd.DataFrame) -> pd.DataFrame:
    """(P rows) the columns of PREDICTORS, from a score file of `lp` (columns of eval.scores.SCORES).

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


def accuracy_by_predictor(files: pd.DataFrame, ties: str, bins: int = 10) -> pd.DataFrame:
    """Accuracy in bins of each predictor; `files`: group, path (score files of `lp`, the runs of a group at one size).

    Bins hold about equally many judgements of a group; values that many pairs share (lengths) are kept together. One
    row per group, predictor and bin: x (the median of the predictor), judgements, runs, accuracy, low, high: Wilson's
    95% interval over pairs, of which each run judges its share of the bin. Paradigms are not weighted: this is about
    sentences.
    """
    rows: list[dict[str, Any]] = []
    for group, of_group in files.groupby("group", sort=False):
        parts = []
        for path in of_group["path"]:
            scores, _ = read_scores(path)
            parts.append(shallow_predictors(scores).assign(outcome=outcome(scores["good"], scores["bad"], ties)))
        table = pd.concat(parts, ignore_index=True)
        rows += accuracy_in_bins(table, list(PREDICTORS), str(group), len(of_group), bins)
    return pd.DataFrame(rows, columns=BINS)


def accuracy_in_bins(
    judged: pd.DataFrame, predictors: Sequence[str], group: str, runs: int, bins: int = 10
) -> list[dict[str, Any]]:
    """Rows of BINS, by predictor and bin; `judged`: the predictors and `outcome` of all judgements of a group's runs.

    Judgements for which a predictor is not finite are in none of its bins.
    """
    rows = []
    for predictor in predictors:
        known = judged[np.isfinite(judged[predictor])]
        if known.empty:
            continue
        for _, part in known.groupby(binned(known[predictor].to_numpy(), bins)):
            accuracy = float(part["outcome"].mean())
            low, high = wilson(accuracy, len(part) / runs)
            rows.append(
                {"group": group, "predictor": predictor, "x": float(part[predictor].median()),
                 "judgements": len(part), "runs": runs, "accuracy": accuracy, "low": low, "high": high}
            )  # fmt: skip
    return rows


def binned(values: Array, bins: int) -> npt.NDArray[np.intp]:
    """The bin, 0..B-1, of each value: quantiles cut the values, equal values are never parted, no bin is empty."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, bins + 1)[1:-1]))
    return np.unique(np.searchsorted(edges, values, side="left"), return_inverse=True)[1]
