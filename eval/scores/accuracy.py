"""Compute accuracies from score files or their rows. No model is needed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from eval.scores.files import pair_scores, read_metadata, score_path
from pairscale.errors import MAX_SEED
from pairscale.seeds import derived_seed
from pairscale.shares import wilson
from train.runs.folder import RunFolder

FloatArray = npt.NDArray[np.float64]


def morcela(lp: FloatArray, unigram_lp: FloatArray, tokens: FloatArray, beta: float, gamma: float) -> FloatArray:
    """Return (lp - beta * unigram_lp + gamma) / tokens (Tjuatja et al. 2024, arXiv:2411.02528).

    With beta = 1 and gamma = 0, this is slor (Pauls and Klein 2012). With beta = gamma = 0, it is the mean
    log-probability. The result is NaN for sentences with no scored token.
    """
    top = lp - beta * unigram_lp + gamma
    return np.asarray(np.divide(top, tokens, out=np.full(len(top), np.nan), where=tokens > 0))


def tied(good: npt.ArrayLike, bad: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return which pairs are tied, because their scores are equal or one of them is missing (NaN)."""
    one, other = np.asarray(good, dtype=np.float64), np.asarray(bad, dtype=np.float64)
    same: npt.NDArray[np.bool_] = (one == other) | unscored(one, other)
    return same


def unscored(good: npt.ArrayLike, bad: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return which pairs have a sentence without a score (NaN), because none of its tokens is scored."""
    missing: npt.NDArray[np.bool_] = np.isnan(np.asarray(good, np.float64)) | np.isnan(np.asarray(bad, np.float64))
    return missing


def outcome(good: npt.ArrayLike, bad: npt.ArrayLike, ties: str = "wrong", rivals: npt.ArrayLike = 1.0) -> FloatArray:
    """Return the outcome of each pair, which is 1 if good > bad and 0 if good < bad.

    A pair is also tied if a score is NaN, because no token of the sentence is scored (null in score files). BLiMP's
    published accuracies count ties as wrong.

    Args:
        good, bad: The scores (P,).
        ties: The outcome of a tie: "wrong" (0), "right" (1) or "half" (.5, or 1/k if k options share the best score).
        rivals: The numbers k - 1 (P,).
    """
    good, bad = np.asarray(good, dtype=np.float64), np.asarray(bad, dtype=np.float64)
    worth: dict[str, Any] = {"wrong": 0.0, "half": 1 / (1 + np.asarray(rivals, dtype=np.float64)), "right": 1.0}
    return np.where(good > bad, 1.0, np.where(tied(good, bad), worth[ties], 0.0))


def outcomes(scores: pd.DataFrame | Mapping[str, Any], ties: str | None = None) -> FloatArray:
    """Return the outcome of each row of scores, as their benchmark counts ties and unknown words.

    With "random:SEED", a tie is right with the probability that "half" counts it as. The draw depends on the seed and
    on the name of the pair only, so it is the same for every model.

    Args:
        scores: The columns paradigm, pair_id, good, bad, good_unk, bad_unk, rivals, ties and unk_wrong. Of the last
            three, each may be missing.
        ties: How a tie counts: wrong | half | right | random:SEED (None: as the benchmark says).
    """
    rivals = np.nan_to_num(np.asarray(scores.get("rivals", np.nan), dtype=np.float64), nan=1.0)
    rule, _, seed = tie_rule(scores, ties).partition(":")
    right = outcome(scores["good"], scores["bad"], "half" if rule == "random" else rule, rivals)
    if rule == "random":
        for at in np.flatnonzero((right > 0) & (right < 1)).tolist():
            name = f"tie:{scores['paradigm'][at]}:{scores['pair_id'][at]}"
            right[at] = derived_seed(None, int(seed or 1), name) < right[at] * (MAX_SEED + 1)
    if "unk_wrong" in scores:
        strict = np.asarray(pd.Series(scores["unk_wrong"], dtype=object).eq(True))
        right[strict & (np.add(scores["good_unk"], scores["bad_unk"]) > 0)] = 0.0
    return right


def tie_rule(scores: pd.DataFrame | Mapping[str, Any], ties: str | None = None) -> str:
    """Return what a tie counts as: `ties` if it isn't None, or else what the benchmark says, or else "wrong"."""
    own = pd.Series(scores.get("ties"), dtype=object).dropna()
    return ties or (str(own.iloc[0]) if len(own) else "wrong")


def stratified_trials(shares: npt.ArrayLike, pairs: npt.ArrayLike, weights: npt.ArrayLike) -> FloatArray:
    """Return the effective number of independent trials of weighted means over paradigms (Korn and Graubard 1998).

    It is p (1 - p) divided by the variance of the mean p. This is more than the number of pairs, because the paradigms
    are fixed, so only the variance within paradigms is included. Half a correct and half a wrong pair are added to each
    paradigm, because its share may be 0 or 1. For a single paradigm, the result is its number of pairs.

    Args:
        shares: (..., K) accuracies of K paradigms.
        pairs: (K,) number of pairs of each paradigm.
        weights: (K, U) weights of the paradigms in U means.

    Returns:
        (..., U) numbers of trials.
    """
    shares, pairs, weights = (np.asarray(values, dtype=np.float64) for values in (shares, pairs, weights))
    smoothed = (pairs * shares + 0.5) / (pairs + 1)
    mean = smoothed @ weights
    trials: FloatArray = mean * (1 - mean) / ((smoothed * (1 - smoothed) / pairs) @ weights**2)
    return trials


def unk_free(scores: pd.DataFrame) -> pd.Series:
    """Return which rows have no <unk> in either sentence."""
    return (scores["good_unk"] == 0) & (scores["bad_unk"] == 0)


def repeats_of(scores: pd.DataFrame) -> dict[str, npt.NDArray[np.bool_]]:
    """Return which rows belong to each template or trial, by name, or {"": all rows} if there are neither.

    All pairs are judged once with each template or in each trial.
    """
    for column in ("template", "trial"):
        if column in scores and scores[column].notna().any():
            return {str(name): (scores[column] == name).to_numpy() for name in scores[column].unique()}
    return {"": np.ones(len(scores), dtype=np.bool_)}


def repeats_text(scores: pd.DataFrame) -> str:
    """Describe what a method's accuracy is averaged over, as in "5 templates". Return "" if it isn't averaged."""
    repeats = repeats_of(scores)
    noun = "template" if scores["template"].notna().any() else "trial"
    return "" if "" in repeats else f"{len(repeats)} {noun}{'s' if len(repeats) > 1 else ''}"


def by_repeat(scores: pd.DataFrame, ties: str | None = None) -> pd.DataFrame:
    """Return accuracies, with one row per (level, name) of `accuracies`, and one column per template or trial."""
    by_name = {
        name: accuracies(scores[rows], ties).set_index(["level", "name"])["accuracy"]
        for name, rows in repeats_of(scores).items()
    }
    return pd.DataFrame(by_name)


def best_template(scores: pd.DataFrame, repeats: pd.DataFrame) -> str | None:
    """Return the template with the best overall accuracy (the oracle of Ide et al. 2024), or None if there is only one.

    `repeats` is the result of `by_repeat(scores)`.
    """
    if repeats.shape[1] == 1 or scores["template"].isna().all():
        return None
    return str(repeats.loc["overall"].iloc[0].idxmax())


def share_of_a(scores: pd.DataFrame) -> float:
    """Return the share of judgements that chose sentence A, without ties (Ide et al. 2024, table 10).

    Return NaN if no sentence was called A, or if all judgements are ties.
    """
    decided = scores[scores["order"].notna() & ((scores["good"] - scores["bad"]).abs() > 0)]
    chose_a = (decided["order"] == "A") == (decided["good"] > decided["bad"])
    return float(chose_a.mean()) if len(decided) else float("nan")


def accuracies(scores: pd.DataFrame, ties: str | None = None, confidence: float = 0.95) -> pd.DataFrame:
    """Compute accuracies by paradigm, by phenomenon and overall. The last two are means over paradigms.

    Args:
        scores: One row per pair with the columns phenomenon and those of `outcomes`. With a column template or trial,
            there is one row per pair and template or trial. The accuracy is then the mean over them, and all tied
            judgements are counted (Ide et al. 2024, section 5).
        ties: How a tie counts: wrong | half | right | random:SEED (None: as the benchmark says).
        confidence: Level of the confidence intervals.

    Returns:
        The columns level (paradigm, phenomenon, overall), name, paradigms, pairs, ties, accuracy, low and high. Rows
        are in this order of levels, and then by name. Low and high are Wilson's interval for new pairs of the same
        paradigms, with `stratified_trials` for means. This interval is too wide for a mean over templates.
    """
    repeats = len(repeats_of(scores))
    pairs = scores[["paradigm", "phenomenon"]].assign(
        outcome=outcomes(scores.reset_index(drop=True), ties), tie=tied(scores["good"], scores["bad"])
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


def snapshot_point(run: RunFolder, step: int, ties: str | None = None) -> dict[str, float]:
    """Return the accuracies at the snapshot after `step` steps, as a point of a tracker, or {} if it has no scores.

    The keys are words_seen and snapshots/<benchmark>/<method>/<phenomenon or "overall">. Raises RunError if a score
    file is damaged.
    """
    point: dict[str, float] = {}
    for folder in sorted(run.scores("").glob("*")):
        for method, scores in pair_scores(folder, step):
            table = accuracies(scores, ties)
            rows = table[table["level"] != "paradigm"]
            names = f"snapshots/{folder.name}/{method}/" + rows["name"]
            point["words_seen"] = read_metadata(score_path(folder, method, step))["words_seen"]
            point |= dict(zip(names, rows["accuracy"], strict=True))
    return point
