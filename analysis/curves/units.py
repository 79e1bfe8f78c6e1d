"""Compute accuracies overall, per phenomenon and per paradigm from the long table, and group them into curves.

The accuracy of a phenomenon is the unweighted mean over its paradigms, and overall accuracy is the unweighted mean over
all paradigms. A unit is a paradigm, a phenomenon, or the whole benchmark ("overall").
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.curves.lines import Array, Line, Numbers, fit_line
from pairscale.errors import InputError, first_few

TRAJECTORIES = ("tokens", "words seen", "steps")  # units of sizes of checkpoints of a single training run
KEYS = ["benchmark", "method", "curve", "level", "name"]  # columns that identify a row
LEVELS = ["overall", "phenomenon", "paradigm"]
RUN_COLUMNS = ["study", "run", "curve", "model", "size", "sample_words", "seed", "sample", "nested", "unit", "baseline"]
UNIT_COLUMNS = [*RUN_COLUMNS, "benchmark", "method", "level", "name", "paradigms", "pairs", "accuracy"]
_NEEDED = [*RUN_COLUMNS, "benchmark", "phenomenon", "paradigm", "method", "pairs", "accuracy"]
_RUN_KEY = ["study", "run", "benchmark", "method"]


def unit_accuracies(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy of each run overall, in each phenomenon and in each paradigm.

    Some sources only report the accuracy of each phenomenon (rows without a paradigm) or of the run (rows without a
    phenomenon). These accuracies are used unchanged. If a source doesn't report overall accuracy, it is computed as the
    mean over the reported phenomena.

    Args:
        accuracies: The long table of `accuracies()`.

    Returns:
        One row per run, benchmark, method, level and name with UNIT_COLUMNS. `paradigms` is the number of averaged
        paradigms (missing if a source only reports the mean), `pairs` is their total number of pairs (missing if
        unknown), and `accuracy` is between 0 and 1.

    Raises:
        InputError: If a column is missing, a run has two rows for one paradigm, a paradigm is in two phenomena, or a
            run has accuracies of paradigms as well as reported means.
    """
    table = _checked(accuracies)
    given = table["phenomenon"].isna() & table["paradigm"].isna()  # overall accuracies, which don't have to be computed
    computed = given | ~given.groupby([table[key] for key in _RUN_KEY]).transform("any")
    table = table.assign(overall=pd.Series("overall", table.index).where(computed), paradigms=table["paradigm"].notna())
    kept = [*_RUN_KEY, "paradigms", "pairs", "accuracy"]
    rows = table[[*kept, *LEVELS]].melt(kept, LEVELS, "level", "name").dropna(subset="name")
    groups = rows.groupby([*_RUN_KEY, "level", "name"], sort=False)
    units = groups.agg(paradigms=("paradigms", "sum"), accuracy=("accuracy", "mean"))
    units = units.assign(pairs=groups["pairs"].sum(skipna=False)).reset_index()
    units["paradigms"] = units["paradigms"].where(units["paradigms"] > 0)
    units = units.assign(level=pd.Categorical(units["level"], LEVELS)).sort_values(["level", "name"])
    runs = table.drop_duplicates(_RUN_KEY)[[*RUN_COLUMNS, "benchmark", "method"]]
    table = runs.merge(units, on=_RUN_KEY)[UNIT_COLUMNS]
    return table.astype({"level": "str", "paradigms": "Int64", "pairs": "Int64", "accuracy": "float64"})


def check_columns(table: pd.DataFrame, names: Collection[str], source: str) -> None:
    """Raise InputError if a table lacks one of the named columns. `source` is the function that makes such tables."""
    if missing := [name for name in names if name not in table]:
        raise InputError(f"The table has no column {first_few(missing)}. Use a table with the columns of {source}.")


def _checked(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that have an accuracy. Raises the same InputErrors as `unit_accuracies`."""
    check_columns(accuracies, _NEEDED, "accuracies()")
    table = accuracies[accuracies["accuracy"].notna()]
    faults = {
        "this row has two accuracies. Keep one of them": table.duplicated([*_RUN_KEY, "phenomenon", "paradigm"]),
        "this paradigm is in two phenomena. Put it in one phenomenon, or use two names": (
            table.groupby(["benchmark", "paradigm"])["phenomenon"].transform("nunique") > 1
        ),
        "this run has accuracies of paradigms as well as means over paradigms. Leave out the means": (
            table["paradigm"].notna().groupby([table[key] for key in _RUN_KEY]).transform("nunique") > 1
        ),
    }
    for fault, is_faulty in faults.items():
        for place in table.loc[is_faulty, ["run", "benchmark", "method", "phenomenon", "paradigm"]].to_numpy()[:1]:
            raise InputError(f"{', '.join(map(str, place))}: {fault}.")
    return table


class Curve(NamedTuple):
    """The R runs of a curve on a benchmark, sorted by amount of text, and their accuracies in U units.

    Attributes:
        runs: One row per run, with RUN_COLUMNS.
        accuracy: (R, U) accuracies.
        units: One row per unit, with level, name, phenomenon (of a paradigm), paradigms, pairs and left_out (a note).
    """

    runs: pd.DataFrame
    accuracy: Array
    units: pd.DataFrame

    @property
    def about(self) -> dict[str, str]:
        """The benchmark, method and name of the curve, and the unit of its sizes."""
        return {key: str(self.runs[key].iloc[0]) for key in ("benchmark", "method", "curve", "unit")}

    @property
    def x(self) -> Array:
        """The (R,) values of log2(sample_words)."""
        return np.asarray(np.log2(self.runs["sample_words"].to_numpy(np.float64)))

    @property
    def size(self) -> Numbers:
        """The (R,) index of each run's size, counted from 0."""
        return pd.factorize(self.runs["size"])[0].astype(np.intp)

    @property
    def is_nested(self) -> bool:
        """Whether larger samples of a seed contain the smaller ones."""
        return bool(self.runs["nested"].fillna(False).astype(bool).any())

    @property
    def is_trajectory(self) -> bool:
        """Whether the runs are checkpoints of one training run."""
        return bool(self.runs["unit"].isin(TRAJECTORIES).any())

    @property
    def line(self) -> Line:
        seeds = self.runs["seed"].fillna(-1).to_numpy(dtype=np.intp) if self.is_nested else None
        line = fit_line(self.x, self.size, seeds)
        without = "Checkpoints of a single training run depend on each other, so there is no interval."
        return line.without_interval(without) if self.is_trajectory else line

    def of(self, rows: Numbers) -> Curve:
        """Return the curve with only some of its runs, in the given order."""
        return self._replace(runs=self.runs.iloc[rows], accuracy=self.accuracy[rows])

    def at(self, sizes: Collection[str]) -> Curve:
        """Return the curve with only the runs of some sizes."""
        return self.of(np.flatnonzero(self.runs["size"].isin(sizes)))


def partners(curves: Sequence[Curve], by: list[str]) -> list[Curve]:
    """Return the curves with only the runs that have a partner in all other curves, in the same order.

    Partners have the same values in the columns `by`, such as size, seed and sample.
    """
    keys = [of.runs[by].reset_index(drop=True).dropna().drop_duplicates() for of in curves]
    tables = [of.reset_index(names=f"row {number}") for number, of in enumerate(keys)]
    shared = reduce(lambda one, other: one.merge(other, on=by), tables)
    return [of.of(shared[f"row {number}"].to_numpy(dtype=np.intp)) for number, of in enumerate(curves)]


def read_curves(accuracies: pd.DataFrame) -> Iterator[list[Curve]]:
    """Yield the curves of each benchmark and method. Curves that are yielded together have the same units.

    Baselines and runs without a known amount of text are left out. Paradigms that some run wasn't scored on are left
    out, too. If no curve has two methods, all curves of a benchmark are yielded together, so that masked models (pll)
    can be compared with others (lp).

    Raises:
        InputError: In the same cases as `unit_accuracies`, if no paradigm was scored in every run of a benchmark, or if
            the sizes of a curve are in different units.
    """
    table = _checked(accuracies)
    table = table[table["baseline"].fillna("").eq("") & table["sample_words"].notna()]
    for _, of in table.groupby("benchmark", sort=False):
        apart = of.groupby("curve")["method"].nunique().max() > 1
        yield from (_curves(part) for _, part in of.groupby("method" if apart else "benchmark", sort=False))


def _curves(table: pd.DataFrame) -> list[Curve]:
    scored = table.groupby(["phenomenon", "paradigm"], dropna=False)["run"].transform("size")
    shared = table[scored == len(table[["study", "run"]].drop_duplicates())]
    if shared.empty:
        raise InputError(
            f"{table['benchmark'].iloc[0]}: no paradigm was scored in every run, so curves can't be compared. "
            f"Leave out runs that weren't scored on the paradigms of the run {table['run'].iloc[0]}."
        )
    accuracies = unit_accuracies(shared)
    units = accuracies.groupby(["level", "name"], sort=False)[["paradigms", "pairs"]].min().reset_index()
    of_paradigms = table.dropna(subset="paradigm").drop_duplicates("paradigm").set_index("paradigm")["phenomenon"]
    lost = of_paradigms[~of_paradigms.index.isin(shared["paradigm"])]
    counts, is_paradigm = {"overall": len(lost), **lost.value_counts()}, units["level"] == "paradigm"
    left = units["name"].map(counts).mask(is_paradigm).fillna(0).astype(int)
    units["phenomenon"] = units["name"].map(of_paradigms).where(is_paradigm)
    left_out = left.astype(str) + " paradigms are left out because some runs weren't scored on them."
    units["left_out"] = left_out.where(left > 0, "")
    runs = shared.drop_duplicates(["study", "run"], ignore_index=True)
    runs["size"] = runs["size"].fillna(runs["sample_words"].astype(str))  # external sizes may have no names
    accuracy = accuracies["accuracy"].to_numpy().reshape(len(runs), len(units))  # each run has the same units
    curves = []
    for name, of in runs.groupby("curve", sort=False):
        if of["unit"].nunique() > 1:
            measured = first_few(sorted(of["unit"].unique()))
            raise InputError(f"Curve {name} has sizes in different units ({measured}). Use one curve per unit.")
        of = of.sort_values("sample_words", kind="stable")
        curves.append(Curve(of, accuracy[of.index], units))
    return curves


def map_curves(accuracies: pd.DataFrame, columns: list[str], rows_of: Callable[[Curve], pd.DataFrame]) -> pd.DataFrame:
    """Apply a function to each curve, and return KEYS and `columns` of the rows that it returns."""
    parts = [rows_of(curve).assign(**curve.about) for curves in read_curves(accuracies) for curve in curves]
    return pd.concat(parts or [pd.DataFrame()], ignore_index=True).reindex(columns=[*KEYS, *columns])


def join_notes(*notes: npt.ArrayLike) -> list[str]:
    """Join the notes on each unit. A note is one text for all units, or a list with one text per unit."""
    columns = np.atleast_1d(*np.broadcast_arrays(*notes))
    return [" ".join(filter(None, of)) for of in zip(*columns, strict=True)]
