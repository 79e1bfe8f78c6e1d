"""Accuracy from score files: pure functions over DataFrames, no model."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from pairscale.shares import wilson

FloatArray = npt.NDArray[np.float64]

TIE_WORTH = {"wrong": 0.0, "half": 0.5, "right": 1.0}


def morcela(lp: FloatArray, unigram_lp: FloatArray, tokens: FloatArray, beta: float, gamma: float) -> FloatArray:
    """Return (lp - beta u + gamma) / n (Tjuatja et al. 2024, arXiv:2411.02528); NaN where no token counts.

    It is slor (Pauls and Klein 2012) with beta = 1 and gamma = 0, and the mean log-probability with both 0.
    """
    top = lp - beta * unigram_lp + gamma
    return np.asarray(np.divide(top, tokens, out=np.full(len(top), np.nan), where=tokens > 0))


def tied(good: npt.ArrayLike, bad: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return which pairs have equal scores, or a side without one (NaN): nothing tells the sentences apart."""
    one, other = np.asarray(good, dtype=np.float64), np.asarray(bad, dtype=np.float64)
    same: npt.NDArray[np.bool_] = (one == other) | unscored(one, other)
    return same


def unscored(good: npt.ArrayLike, bad: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return which pairs have a side without a score (NaN), as no token of it counts."""
    missing: npt.NDArray[np.bool_] = np.isnan(np.asarray(good, np.float64)) | np.isnan(np.asarray(bad, np.float64))
    return missing


def outcome(good: npt.ArrayLike, bad: npt.ArrayLike, ties: str = "wrong") -> FloatArray:
    """Return what each pair adds to accuracy: 1 if good > bad, 0 if good < bad, and for a tie 0, .5 or 1 (`ties`).

    The published accuracies of BLiMP count strictly greater scores only: ties="wrong". A side without a score, as no
    token of it counts (null in a score file, whose readers refuse NaN), makes the pair a tie.
    """
    good, bad = np.asarray(good, dtype=np.float64), np.asarray(bad, dtype=np.float64)
    return np.where(good > bad, 1.0, np.where(tied(good, bad), TIE_WORTH[ties], 0.0))


def stratified_trials(shares: npt.ArrayLike, pairs: npt.ArrayLike, weights: npt.ArrayLike) -> FloatArray:
    """Return how many independent trials the mean of fixed paradigms is worth (Korn and Graubard 1998).

    `shares` (..., K) and `pairs` (K,) of the paradigms, `weights` (K, U) of the means -> (..., U). Pairs vary within
    paradigms alone, so a mean varies less than a share of as many pairs of any paradigm: p(1 - p) over the variance of
    the mean, both from shares with half a right and half a wrong pair more, as a share may be 0 or 1. For one paradigm
    these are its pairs.
    """
    shares, pairs, weights = (np.asarray(values, dtype=np.float64) for values in (shares, pairs, weights))
    smoothed = (pairs * shares + 0.5) / (pairs + 1)
    mean = smoothed @ weights
    trials: FloatArray = mean * (1 - mean) / ((smoothed * (1 - smoothed) / pairs) @ weights**2)
    return trials


def unk_free(scores: pd.DataFrame) -> pd.Series:
    """Return which rows hold no <unk> in either sentence."""
    return (scores["good_unk"] == 0) & (scores["bad_unk"] == 0)


def repeats_of(scores: pd.DataFrame) -> dict[str, npt.NDArray[np.bool_]]:
    """Return the rows of each template or trial, a judgement of all pairs, by its name; {"": all} without either."""
    for column in ("template", "trial"):
        if column in scores and scores[column].notna().any():
            return {str(name): (scores[column] == name).to_numpy() for name in scores[column].unique()}
    return {"": np.ones(len(scores), dtype=np.bool_)}


def repeats_text(scores: pd.DataFrame) -> str:
    """Return what a method's accuracy is a mean over: "5 templates", "10 trials", or "" for nothing."""
    repeats = repeats_of(scores)
    noun = "template" if scores["template"].notna().any() else "trial"
    return "" if "" in repeats else f"{len(repeats)} {noun}{'s' if len(repeats) > 1 else ''}"


def by_repeat(scores: pd.DataFrame, ties: str = "wrong") -> pd.DataFrame:
    """Return the accuracy of each template or trial, a column each; rows as of `accuracies`, by (level, name)."""
    by_name = {
        name: accuracies(scores[rows], ties).set_index(["level", "name"])["accuracy"]
        for name, rows in repeats_of(scores).items()
    }
    return pd.DataFrame(by_name)


def best_template(scores: pd.DataFrame, repeats: pd.DataFrame) -> str | None:
    """Return the best of several templates overall (the oracle of Ide et al. 2024); `repeats`: `by_repeat(scores)`."""
    if repeats.shape[1] == 1 or scores["template"].isna().all():
        return None
    return str(repeats.loc["overall"].iloc[0].idxmax())


def share_of_a(scores: pd.DataFrame) -> float:
    """Return the share of judgements, ties apart, that chose sentence A (Ide et al. 2024, table 10); NaN of others."""
    decided = scores[scores["order"].notna() & ((scores["good"] - scores["bad"]).abs() > 0)]
    chose_a = (decided["order"] == "A") == (decided["good"] > decided["bad"])
    return float(chose_a.mean()) if len(decided) else float("nan")


def accuracies(scores: pd.DataFrame, ties: str = "wrong", confidence: float = 0.95) -> pd.DataFrame:
    """Return the accuracy of each paradigm, of each phenomenon and overall, the last two as means over paradigms.

    `scores` has the columns paradigm, phenomenon, good, bad: one row per pair, and template or trial where it has the
    columns of that name; the accuracy is then the mean over templates or trials, and ties count all of their judgements
    (Ide et al. 2024, section 5). Returns the columns level (paradigm, phenomenon, overall), name, paradigms, pairs,
    ties, accuracy, low, high; in this order of levels, then by name.
    The interval is over new pairs of the same paradigms: Wilson's, of a mean with `stratified_trials`. A mean over
    templates varies less.
    """
    repeats = len(repeats_of(scores))
    pairs = scores[["paradigm", "phenomenon"]].assign(
        outcome=outcome(scores["good"], scores["bad"], ties), tie=tied(scores["good"], scores["bad"])
    )
    paradigms = pairs.groupby(["phenomenon", "paradigm"], as_index=False).agg(
        pairs=("outcome", "size"), ties=("tie", "sum"), accuracy=("outcome", "mean")
    )
    paradigms["pairs"] //= repeats
    levels = [(level, *group) for level in ("paradigm", "phenomenon") for group in paradigms.groupby(level)]
    levels += [("overall", "overall", paradigms)] if len(paradigms) else []
    rows = []
    for level, name, group in levels:
        accuracy = float(group["accuracy"].mean())
        weights = np.full((len(group), 1), 1 / len(group))
        trials = float(stratified_trials(group["accuracy"], group["pairs"], weights)[0])
        counts = (len(group), int(group["pairs"].sum()), int(group["ties"].sum()))
        rows.append((level, name, *counts, accuracy, *wilson(accuracy, trials, confidence)))
    return pd.DataFrame(rows, columns=["level", "name", "paradigms", "pairs", "ties", "accuracy", "low", "high"])
