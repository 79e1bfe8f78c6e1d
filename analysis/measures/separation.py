"""How well a score parts all good sentences of a benchmark of pairs from all bad ones, paired or not: the AUC.

A pair can be right by little where sentences differ by much: a threshold that parts good from bad needs more than the
right order within pairs.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.curves.designs import design_of
from analysis.measures.methods import score_files
from analysis.measures.ratings import Group
from analysis.study.collect import Study
from eval.ratings.measures import ALL_SENTENCES, WITHIN_PARADIGMS, Agreement
from eval.ratings.statistics import Array, Statistic, auc
from eval.scores.files import read_scores

METHODS = ("lp", "mean_lp", "pen_lp", "slor", "morcela", "pll")  # whose scores of single sentences mean something


def separations(study: Study, label: str, runs: pd.DataFrame, left_out: pd.DataFrame) -> list[Group]:
    """Compute the AUC of each run by each method in METHODS that all runs of its curve have.

    The measures: of ALL_SENTENCES of the benchmark, and the mean of those WITHIN_PARADIGMS. Units are pairs; a pair
    without a score of a side is left out, as is one in `left_out` (paradigm, pair_id). Raises RunError for a damaged
    file.
    """
    files = score_files(study, label)
    files = files[files["run"].isin(runs.index) & files["method"].isin(METHODS)]
    paths = files.set_index(["run", "method"])["path"]
    found, omitted = [], pd.MultiIndex.from_frame(left_out)
    for name, of in runs.groupby("group", sort=False):
        methods = [method for method in METHODS if all((run, method) in paths.index for run in of.index)]
        agreements = []
        for method in methods:
            tables = [read_scores(paths[run, method])[0] for run in of.index]
            agreements += list(_agreements(method, tables, omitted))
        if agreements:
            found.append(Group(str(name), of, design_of(of), agreements))
    return found


def _agreements(method: str, tables: list[pd.DataFrame], left_out: pd.MultiIndex) -> Iterator[Agreement]:
    sides = np.stack([table[["good", "bad"]].to_numpy(np.float64) for table in tables])  # (R, P, 2)
    known = np.isfinite(sides).all(axis=(0, 2))
    known &= ~pd.MultiIndex.from_frame(tables[0][[*left_out.names]]).isin(left_out)
    paradigms = pd.factorize(tables[0]["paradigm"][known])[0]
    sides = sides[:, known]
    if not len(paradigms):
        return
    yield Agreement(method, ALL_SENTENCES, _auc(sides), len(paradigms))
    count, pairs = paradigms.max() + 1, len(paradigms)
    value, influence = np.zeros(len(sides)), np.empty(sides.shape[:2])
    for paradigm in range(count):
        of = paradigms == paradigm
        part = _auc(sides[:, of])
        value += part.value / count
        influence[:, of] = part.influence * pairs / of.sum() / count
    yield Agreement(method, WITHIN_PARADIGMS, Statistic(value, influence), pairs)


def _auc(sides: Array) -> Statistic:
    """Return the AUC of (R, P, 2) scores of good and bad sentences, with the influence of pairs (R, P)."""
    runs, pairs, _ = sides.shape
    good = np.tile([True, False], pairs)
    return auc(sides.reshape(runs, 2 * pairs), good).by(np.repeat(np.arange(pairs), 2))
