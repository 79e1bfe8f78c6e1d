"""Accuracies of units (overall, phenomena, paradigms) from the long table, and the curves that they form.

A phenomenon is the unweighted mean of its paradigms, and overall is the unweighted mean of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.curves.lines import Array, Estimate, Line, Numbers, estimate, fit_line
from pairscale.errors import InputError, first_few

TRAJECTORIES = ("tokens", "words seen", "steps")  # units of x that count the progress of one training
LEVELS = ["overall", "phenomenon", "paradigm"]
RUN_COLUMNS = ["study", "run", "curve", "model", "size", "sample_words", "seed", "sample", "nested", "unit", "baseline"]
UNIT_COLUMNS = [*RUN_COLUMNS, "benchmark", "method", "level", "name", "paradigms", "pairs", "accuracy"]
_NEEDED = [*RUN_COLUMNS, "benchmark", "phenomenon", "paradigm", "method", "pairs", "accuracy"]
_RUN_KEY = ["study", "run", "benchmark", "method"]


def unit_accuracies(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy of each run overall, in each phenomenon and in each paradigm.

    A phenomenon is the unweighted mean of its paradigms, and overall is the unweighted mean of all paradigms. Rows
    without a paradigm are accuracies that a source gives for a phenomenon, or overall if they have no phenomenon
    either: they are used as they are. Without a given overall accuracy, overall is the mean of the given phenomena.

    Args:
        accuracies: table of `accuracies()`.

    Returns:
        One row per run, benchmark, method and unit with the columns of the run (study, run, curve, model, size,
        sample_words, seed, sample, nested, unit, baseline), benchmark, method, level ("overall", "phenomenon" or
        "paradigm"), name, paradigms (how many are averaged; missing if a source gives the mean), pairs (in all;
        missing if unknown) and accuracy (0 to 1).

    Raises:
        InputError: for a missing column, two rows of one run and paradigm, a paradigm in two phenomena, or a run that
            has accuracies of paradigms next to given means.
    """
    table = _checked(accuracies)
    given = table["phenomenon"].isna() & table["paradigm"].isna()  # overall accuracies, which then are not computed
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
    types: dict[Hashable, Any] = {"level": str, "paradigms": "Int64", "pairs": "Int64", "accuracy": "float64"}
    return runs.merge(units, on=_RUN_KEY)[UNIT_COLUMNS].astype(types)


def _checked(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that have an accuracy. Raises InputError as `unit_accuracies` does."""
    if missing := [name for name in _NEEDED if name not in accuracies]:
        raise InputError(
            f"The table of accuracies has no column {first_few(missing)}. Give it the columns of accuracies()."
        )
    table = accuracies[accuracies["accuracy"].notna()]
    twice = table[table.duplicated([*_RUN_KEY, "phenomenon", "paradigm"])]
    if len(twice):
        row = twice.iloc[0]
        raise InputError(
            f"Run {row['run']} has two accuracies by {row['method']} on {row['benchmark']}, {row['phenomenon']}, "
            f"{row['paradigm']}. Keep one of them, or give them different methods."
        )
    phenomena = table.groupby(["benchmark", "paradigm"], sort=False)["phenomenon"].nunique()
    if (phenomena > 1).any():
        name = phenomena.index[phenomena > 1].get_level_values("paradigm")[0]
        raise InputError(f"Paradigm {name} belongs to two phenomena. Give it one phenomenon, or two names.")
    kinds = table["paradigm"].notna().groupby([table[key] for key in _RUN_KEY]).nunique()
    if (kinds > 1).any():
        row = kinds[kinds > 1].reset_index().iloc[0]
        raise InputError(
            f"Run {row['run']} has accuracies of paradigms and also means over paradigms on {row['benchmark']}. "
            "Leave out the means: they are computed."
        )
    return table


class Curve(NamedTuple):
    """The runs of a curve on a benchmark, smallest text first.

    runs: (R rows) columns of runs. accuracy: (R, U). units: (U rows) level, name, phenomenon (of a paradigm),
    paradigms, pairs, left_out (a note). x: (R,) log2(sample_words). size: (R,) numbers of sizes from 0.
    """

    benchmark: str
    method: str
    name: str
    runs: pd.DataFrame
    accuracy: Array
    units: pd.DataFrame
    x: Array
    size: Numbers

    @property
    def labels(self) -> list[str]:
        """(R,) name of each run's size."""
        return list(self.runs["size"])

    @property
    def unit(self) -> str:
        return str(self.runs["unit"].iloc[0])

    @property
    def seeds(self) -> Numbers | None:
        """(R,) seeds if larger samples of a seed contain its smaller ones, else None."""
        nested = self.runs["nested"].fillna(False).astype(bool).any()
        return self.runs["seed"].fillna(-1).to_numpy(dtype=np.intp) if nested else None

    @property
    def dependent(self) -> bool:
        """Whether runs of different sizes depend on each other."""
        return self.seeds is not None or self.unit in TRAJECTORIES

    @property
    def line(self) -> Line:
        return fit_line(self.x, self.size, self.seeds, self.unit in TRAJECTORIES)

    def of(self, rows: Numbers) -> Curve:
        """Return the curve through some of its runs, in the given order."""
        size = np.unique(self.size[rows], return_inverse=True)[1].astype(np.intp)
        return self._replace(runs=self.runs.iloc[rows], accuracy=self.accuracy[rows], x=self.x[rows], size=size)

    def at(self, labels: Collection[str]) -> Curve:
        """Return the curve through the runs of some sizes."""
        return self.of(np.flatnonzero([label in labels for label in self.labels]))

    def estimate(self, slope: bool) -> Estimate:
        """Return the mean accuracy over all sizes, or the slope, as `analysis.curves.lines.estimate`."""
        return estimate(self.accuracy, self.x, self.size, self.seeds, slope)


def at_common_sizes(first: Curve, second: Curve) -> tuple[Curve, Curve]:
    """Return the runs of two curves at the sizes that both have."""
    common = set(first.labels) & set(second.labels)
    return first.at(common), second.at(common)


def partners(curves: Sequence[Curve], by: list[str]) -> list[Numbers]:
    """Return the row numbers, curve by curve, of the runs that agree in `by` (of size, seed, sample) in all curves."""
    keys = [of.runs[by].reset_index(drop=True).dropna().drop_duplicates() for of in curves]
    tables = [of.reset_index(names=f"row {number}") for number, of in enumerate(keys)]
    shared = reduce(lambda one, other: one.merge(other, on=by), tables)
    return [shared[f"row {number}"].to_numpy(dtype=np.intp) for number in range(len(curves))]


def read_curves(accuracies: pd.DataFrame) -> Iterator[list[Curve]]:
    """Yield the curves of each benchmark and method, which share all units.

    Baselines and runs without a known amount of text are left out. Only paradigms that every run was scored on count.
    If no curve has two methods, all curves of a benchmark belong together, so that the pseudo-log-likelihoods of masked
    models stand next to the log-probabilities of others.

    Raises:
        InputError: as `unit_accuracies` does, and if no paradigm was scored in every run of a benchmark.
    """
    table = _checked(accuracies)
    table = table[table["baseline"].fillna("").eq("") & table["sample_words"].notna()]
    for _, of in table.groupby("benchmark", sort=False):
        apart = of.groupby("curve")["method"].nunique().max() > 1
        for part in [rows for _, rows in of.groupby("method", sort=False)] if apart else [of]:
            yield _curves(part)


def _curves(table: pd.DataFrame) -> list[Curve]:
    keys = table.groupby(["phenomenon", "paradigm"], dropna=False, sort=False)["run"]
    runs = table.drop_duplicates(["study", "run"], ignore_index=True)
    runs["size"] = runs["size"].fillna(runs["sample_words"].astype(str))  # others' sizes may have no names
    shared = table[keys.transform("size") == len(runs)]
    if shared.empty:
        raise InputError(
            f"{runs['benchmark'].iloc[0]}: no paradigm was scored in every run, so curves cannot be compared. "
            f"Leave out runs that were scored on other paradigms; the first run is {runs['run'].iloc[0]}."
        )
    accuracies = unit_accuracies(shared)
    units = accuracies.groupby(["level", "name"], sort=False)[["paradigms", "pairs"]].min().reset_index()
    phenomena = shared.dropna(subset="paradigm").drop_duplicates("paradigm").set_index("paradigm")["phenomenon"]
    units["phenomenon"] = units["name"].map(phenomena).where(units["level"] == "paradigm")
    units["left_out"] = _left_out(table, shared, units)
    wide = accuracies.pivot(index=["study", "run"], columns=["level", "name"], values="accuracy")
    wide = wide.reindex(pd.MultiIndex.from_frame(runs[["study", "run"]]))
    accuracy = wide[pd.MultiIndex.from_frame(units[["level", "name"]])].to_numpy(np.float64)
    curves = []
    for name, of in runs.groupby("curve", sort=False):
        if of["unit"].nunique() > 1:
            measured = first_few(sorted(of["unit"].unique()))
            raise InputError(f"Curve {name} has runs measured in {measured}. Give them curves of their own.")
        of = of.sort_values("sample_words", kind="stable")
        size, x = pd.factorize(of["size"])[0].astype(np.intp), np.log2(of["sample_words"].to_numpy(np.float64))
        about = of["benchmark"].iloc[0], of["method"].iloc[0], str(name)
        curves.append(Curve(*about, of, accuracy[of.index], units, x, size))
    return curves


def _left_out(table: pd.DataFrame, shared: pd.DataFrame, units: pd.DataFrame) -> list[str]:
    """Say for each unit which paradigms are left out, "" if none is."""
    counts = []
    for of in (table, shared):
        paradigms = of.dropna(subset="paradigm").drop_duplicates(["phenomenon", "paradigm"])["phenomenon"]
        counts.append(units["name"].map({**paradigms.value_counts(), "overall": len(paradigms)}))
    left = (counts[0] - counts[1]).where(units["level"] != "paradigm", 0)
    text = " paradigms are left out: some runs were not scored on them."
    return [f"{lost:.0f} of {count:.0f}{text}" if lost > 0 else "" for lost, count in zip(left, counts[0], strict=True)]


def map_curves(accuracies: pd.DataFrame, columns: list[str], rows_of: Callable[[Curve], pd.DataFrame]) -> pd.DataFrame:
    """Return the rows that a function gives for each curve, with benchmark, method and curve, as `columns`."""
    parts = [
        rows_of(curve).assign(benchmark=curve.benchmark, method=curve.method, curve=curve.name)
        for curves in read_curves(accuracies)
        for curve in curves
    ]
    return pd.concat(parts or [pd.DataFrame()], ignore_index=True).reindex(columns=columns)


def join_notes(*notes: npt.ArrayLike) -> list[str]:
    """Join notes, each one for all units or a list with one per unit; empty ones are left out."""
    columns = np.atleast_1d(*np.broadcast_arrays(*notes))
    return [" ".join(filter(None, of)) for of in zip(*columns, strict=True)]
