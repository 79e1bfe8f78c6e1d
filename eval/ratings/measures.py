"""Agreement of one run's scores with people: correlations with ratings, separation of good and bad, pairs."""

import numpy as np
import pandas as pd

from eval.ratings.scores import clusters, folds, people, scores
from eval.ratings.statistics import Array, Numbers, Statistic, auc, pearson, share, spearman, thresholded

PEARSON, AUC = "Pearson", "AUC"


def measures(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the measures of one run from its score file (columns of eval.scores.schemas.SENTENCES).

    Columns: level (the measure), name (the score: lp, slor, ...), accuracy (the value), low, high (95% interval for new
    sentences) and items (sentences, or pairs). No rows for fewer than three sentences with a score.
    """
    known = rows["lp"].notna()
    table, rows = scores(rows)[known], rows[known].reset_index(drop=True)
    found = []
    for name in table if len(rows) > 2 else ():
        values = table[name].to_numpy()
        for level, statistic in _of_sentences(values, rows, folds(rows)).items():
            found.append((level, name, statistic, clusters(rows)))
        if rows["pair"].notna().all():
            for level, statistic in _of_pairs(values, rows).items():
                found.append((level, name, statistic, np.arange(len(rows) // 2)))
    lines = [(level, name, of.value, *of.interval(units), len(of.influence)) for level, name, of, units in found]
    return pd.DataFrame(lines, columns=["level", "name", "accuracy", "low", "high", "items"])


def _of_sentences(values: Array, rows: pd.DataFrame, fold: Numbers) -> dict[str, Statistic]:
    found: dict[str, Statistic] = {}
    if _vary(rows):
        ratings = people(rows)
        found |= {PEARSON: pearson(values, ratings), "Spearman": spearman(values, ratings)}
    if rows["label"].notna().all() and rows["label"].nunique() > 1:
        good = rows["label"].to_numpy(np.bool_)
        called = thresholded(values, good, fold)
        found |= {AUC: auc(values, good), "accuracy": share(called == good)}
        found["MCC"] = pearson(called.astype(np.float64), good.astype(np.float64))
    return found


def _vary(rows: pd.DataFrame) -> bool:
    """Return True if all sentences have a rating, and not all the same: nothing correlates with a constant."""
    return bool(rows["rating"].notna().all() and rows["rating"].nunique() > 1)


def _of_pairs(values: Array, rows: pd.DataFrame) -> dict[str, Statistic]:
    """Measure pairs: the good sentence's score less the bad one's, beside the same of ratings."""
    ordered = rows.sort_values(["pair", "label"], kind="stable").index.to_numpy()
    bad, good = ordered[::2], ordered[1::2]
    differences = values[good] - values[bad]
    found = {"pairs": share(differences > 0)}
    if _vary(rows) and np.ptp(theirs := people(rows)[good] - people(rows)[bad]):
        found["Pearson of differences"] = pearson(differences, theirs)
        found["Spearman of differences"] = spearman(differences, theirs)
    return found
