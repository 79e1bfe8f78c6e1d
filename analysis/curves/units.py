"""The units of curves: overall, phenomena and paradigms, as means over paradigms."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from analysis.curves.variance import Array, Numbers


@dataclass(frozen=True)
class Units:
    """Units of curves: `weights` (K, U) turn accuracies of K paradigms into those of U units, as means."""

    bounds: Numbers  # (K + 1,) where each paradigm starts among the pairs, and their number
    table: pd.DataFrame  # U rows: level, name, phenomenon, paradigms, n_pairs
    weights: Array
    rows_are_pairs: bool = True  # False: judgements of single pairs are not known, a row is a paradigm
    differences: bool = False  # True: outcomes lie between -1 and 1, not between 0 and 1

    @cached_property
    def pairs(self) -> Array:
        """(K,) pairs of each paradigm; inf where their number is not known, so that it adds no variance of its own."""
        of = self.table["level"] == "paradigm"
        return np.asarray(self.table.loc[of, "n_pairs"].fillna(np.inf), dtype=np.float64)

    @cached_property
    def pair_degrees(self) -> Array:
        """(U,) degrees of freedom of a variance over pairs within paradigms."""
        free = self.table["n_pairs"].fillna(np.inf).to_numpy() - self.table["paradigms"].to_numpy()
        return np.asarray(np.maximum(free, 1), dtype=np.float64)


def units_of(pairs: pd.DataFrame) -> Units:
    """Return the units of `pairs`, sorted by phenomenon and paradigm; a row may stand for several pairs (n_pairs)."""
    counted = pairs if "n_pairs" in pairs else pairs.assign(n_pairs=1)
    paradigms = counted.groupby(["phenomenon", "paradigm"], as_index=False, sort=True).agg(n_pairs=("n_pairs", total))
    rows = pairs.groupby(["phenomenon", "paradigm"], sort=True).size().to_numpy()
    phenomenon = paradigms["phenomenon"].to_numpy(dtype=str)
    members = [("overall", "overall", "", np.ones(len(paradigms), dtype=bool))]
    members += [("phenomenon", name, name, phenomenon == name) for name in np.unique(phenomenon)]
    places = np.arange(len(paradigms))
    members += [("paradigm", name, phenomenon[k], places == k) for k, name in enumerate(paradigms["paradigm"])]
    counts = paradigms["n_pairs"].to_numpy()
    table = [
        {"level": level, "name": name, "phenomenon": part, "paradigms": int(of.sum()), "n_pairs": total(counts[of])}
        for level, name, part, of in members
    ]
    weights = np.stack([of / of.sum() for *_, of in members], axis=1)
    return Units(np.append(0, np.cumsum(rows)), pd.DataFrame(table), weights, "n_pairs" not in pairs)


def total(counts: Array | pd.Series) -> float:
    """Return a sum of numbers of pairs, whole, or NaN where one is not known."""
    number = float(np.sum(np.asarray(counts, dtype=np.float64)))
    return number if np.isnan(number) else int(number)


def paradigm_accuracies(outcome: Array, bounds: Numbers) -> Array:
    """Return (R, K) means within paradigms, float64, of (R, P) outcomes."""
    return np.add.reduceat(outcome, bounds[:-1], axis=1, dtype=np.float64) / np.diff(bounds)
