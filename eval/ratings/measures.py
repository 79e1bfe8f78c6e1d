"""Agreement of one run's scores with people: correlations with ratings, separation of good and bad, pairs.

Columns of MEASURES: score (eval.ratings.scores.SCORES), measure, value, low, high (95% limits for new sentences),
items (sentences, or pairs).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from eval.ratings.scores import clusters, folds, people
from eval.ratings.scores import scores as scores_of
from eval.ratings.statistics import (
    CORRELATION,
    SHARE,
    Array,
    Bools,
    Numbers,
    Scale,
    Statistic,
    auc,
    limits,
    pearson,
    share,
    spearman,
    thresholded,
)

MEASURES = ["score", "measure", "value", "low", "high", "items"]
PEARSON, SPEARMAN, AUC = "Pearson", "Spearman", "AUC"
ACCURACY, MCC = "accuracy", "MCC"
PAIRS, PEARSON_PAIRS, SPEARMAN_PAIRS = "pairs", "Pearson of differences", "Spearman of differences"
ALL_SENTENCES, WITHIN_PARADIGMS = "all sentences", "within paradigms"  # AUC of a benchmark of pairs
SCALES = {
    **dict.fromkeys((PEARSON, SPEARMAN, MCC, PEARSON_PAIRS, SPEARMAN_PAIRS), CORRELATION),
    **dict.fromkeys((AUC, ACCURACY, PAIRS, ALL_SENTENCES, WITHIN_PARADIGMS), SHARE),
}


@dataclass(frozen=True)
class Agreement:
    """One measure of R runs by one score; the influence is that of units: pairs, where the table has them."""

    score: str
    measure: str
    statistic: Statistic
    items: int

    @property
    def scale(self) -> Scale:
        return SCALES[self.measure]


def scored_by_all(tables: Iterable[pd.DataFrame]) -> Bools:
    """Return the sentences (S,) that all runs have a score of: with unk=skip they differ."""
    return np.asarray(np.all([np.isfinite(np.asarray(table["lp"], np.float64)) for table in tables], axis=0))


def agreements(tables: Sequence[pd.DataFrame], known: Bools) -> Iterator[Agreement]:
    """Yield all measures of runs on the `known` sentences (S,).

    `tables`: of each run the columns of eval.scores.schemas.SENTENCES, of one table. Scores count that all runs have.
    """
    by_run = [scores_of(table) for table in tables]
    names = [str(name) for name in by_run[0] if all(name in of for of in by_run)]
    rows = tables[0][known].reset_index(drop=True)
    if len(rows) < 3:
        return
    units, fold = clusters(rows), folds(rows)
    for name in names:
        values = np.stack([of[name].to_numpy()[known] for of in by_run])
        yield from _of_sentences(name, values, rows, units, fold)
        if rows["pair"].notna().all():
            yield from _of_pairs(name, values, rows)


def _of_sentences(name: str, values: Array, rows: pd.DataFrame, units: Numbers, fold: Numbers) -> Iterator[Agreement]:
    items = len(rows)
    if _vary(rows):
        ratings = people(rows)
        yield Agreement(name, PEARSON, pearson(values, ratings).by(units), items)
        yield Agreement(name, SPEARMAN, spearman(values, ratings).by(units), items)
    if rows["label"].isna().any() or rows["label"].nunique() < 2:
        return
    good = rows["label"].to_numpy(np.bool_)
    yield Agreement(name, AUC, auc(values, good).by(units), items)
    called = thresholded(values, good, fold)
    yield Agreement(name, ACCURACY, share(called == good).by(units), items)
    yield Agreement(name, MCC, pearson(called.astype(np.float64), good.astype(np.float64)).by(units), items)


def _vary(rows: pd.DataFrame) -> bool:
    """Return True if all sentences have a rating, and not all the same: nothing correlates with a constant."""
    return bool(rows["rating"].notna().all() and rows["rating"].nunique() > 1)


def _of_pairs(name: str, values: Array, rows: pd.DataFrame) -> Iterator[Agreement]:
    """Yield measures of pairs: the good sentence's score less the bad one's, beside the same of ratings."""
    ordered = rows.sort_values(["pair", "label"], kind="stable").index.to_numpy()
    bad, good = ordered[::2], ordered[1::2]
    differences = values[:, good] - values[:, bad]
    yield Agreement(name, PAIRS, share(differences > 0), len(good))
    if _vary(rows) and np.ptp(theirs := people(rows)[good] - people(rows)[bad]):
        yield Agreement(name, PEARSON_PAIRS, pearson(differences, theirs), len(good))
        yield Agreement(name, SPEARMAN_PAIRS, spearman(differences, theirs), len(good))


def measures(rows: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Return MEASURES of one run from its score file (columns of eval.scores.schemas.SENTENCES)."""
    found = []
    for of in agreements([rows], scored_by_all([rows])):
        (low,), (high,) = limits(of.statistic, of.scale, confidence)
        found.append((of.score, of.measure, of.statistic.value[0], low, high, of.items))
    return pd.DataFrame(found, columns=MEASURES)
