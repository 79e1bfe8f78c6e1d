"""Accuracies of units (overall, phenomena, paradigms) from the long table, and the curves that they form.

A phenomenon is the unweighted mean of its paradigms, and overall is the unweighted mean of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.curves.lines import Array, Line, Numbers, fit_line
from pairscale.errors import InputError, first_few

TRAJECTORIES = ("tokens", "words seen", "steps")  # units of x that count the progress of one training
LEVELS = ("overall", "phenomenon", "paradigm")
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
    known, given = table[table["paradigm"].notna()], table[table["paradigm"].isna()]
    parts = [
        _means(known, "overall"), _means(known, "phenomenon"), _means(known, "paradigm"),
        given.dropna(subset="phenomenon").assign(level="phenomenon", name=lambda of: of["phenomenon"]),
    ]  # fmt: skip
    overall = given[given["phenomenon"].isna()].assign(level="overall", name="overall")
    computed = _means(given.dropna(subset="phenomenon"), "overall").assign(paradigms=np.nan)
    parts += [overall, computed.merge(overall[_RUN_KEY], how="left_anti", on=_RUN_KEY)]
    units = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    runs = table.drop_duplicates(_RUN_KEY)[[*RUN_COLUMNS, "benchmark", "method"]]
    units = runs.assign(order=range(len(runs))).merge(units[[*_RUN_KEY, *UNIT_COLUMNS[-5:]]], on=_RUN_KEY)
    units["depth"] = units["level"].map(LEVELS.index)
    units = units.sort_values(["order", "depth", "name"], ignore_index=True)
    return units[UNIT_COLUMNS].astype({"paradigms": "Int64", "pairs": "Int64", "accuracy": "float64"})


def _checked(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that have an accuracy. Raises InputError as `unit_accuracies` does."""
    if missing := [name for name in _NEEDED if name not in accuracies]:
        raise InputError(
            f"The table of accuracies has no column {first_few(missing)}. Give it the columns of accuracies()."
        )
    table = accuracies[accuracies["accuracy"].notna()].assign(paradigms=np.nan)
    twice = table[table.duplicated([*_RUN_KEY, "phenomenon", "paradigm"])]
    if len(twice):
        row = twice.iloc[0]
        raise InputError(
            f"Run {row['run']} has two accuracies by {row['method']} on {row['benchmark']}, {row['phenomenon']}, "
            f"{row['paradigm']}. Keep one of them, or give them different methods."
        )
    named = table.dropna(subset=["phenomenon", "paradigm"])[["benchmark", "phenomenon", "paradigm"]].drop_duplicates()
    if named.duplicated(["benchmark", "paradigm"]).any():
        name = named.loc[named.duplicated(["benchmark", "paradigm"]), "paradigm"].iloc[0]
        raise InputError(f"Paradigm {name} belongs to two phenomena. Give it one phenomenon, or two names.")
    given = table[table["paradigm"].isna()]
    both = given.merge(table.loc[table["paradigm"].notna(), _RUN_KEY].drop_duplicates(), on=_RUN_KEY)
    if len(both):
        raise InputError(
            f"Run {both['run'].iloc[0]} has accuracies of paradigms and also means over paradigms on "
            f"{both['benchmark'].iloc[0]}. Leave out the means: they are computed."
        )
    return table


def _means(table: pd.DataFrame, level: str) -> pd.DataFrame:
    """Return unweighted means over the rows of each run and unit; unknown numbers of pairs stay unknown."""
    of = table.assign(level=level, name=level if level == "overall" else table[level])
    groups = of.groupby([*_RUN_KEY, "level", "name"], sort=False)
    means = groups.agg(paradigms=("accuracy", "size"), accuracy=("accuracy", "mean"))
    return means.assign(pairs=groups["pairs"].sum(skipna=False)).reset_index()


class Curve(NamedTuple):
    """The runs of a curve on a benchmark, smallest text first.

    runs: (R rows) columns of runs. accuracy: (R, U). units: (U rows) level, name, paradigms, pairs, left_out (a note).
    x: (R,) log2(sample_words). size: (R,) numbers of sizes from 0.
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
    def labels(self) -> npt.NDArray[np.object_]:
        """(R,) name of each run's size; the number of words where a source gives no name."""
        words = self.runs["sample_words"].astype(str)
        return np.asarray(self.runs["size"].fillna(words), dtype=object)

    @property
    def unit(self) -> str:
        return str(self.runs["unit"].iloc[0])

    @property
    def nested(self) -> bool:
        """Whether larger samples of a seed contain its smaller ones."""
        return bool(self.runs["nested"].fillna(False).astype(bool).any())

    @property
    def line(self) -> Line:
        seeds = self.runs["seed"].fillna(-1).to_numpy(dtype=np.intp) if self.nested else None
        return fit_line(self.x, self.size, seeds, self.unit in TRAJECTORIES)

    def of(self, rows: Numbers) -> Curve:
        """Return the curve through some of its runs, in the given order."""
        size = np.unique(self.size[rows], return_inverse=True)[1].astype(np.intp)
        return self._replace(runs=self.runs.iloc[rows], accuracy=self.accuracy[rows], x=self.x[rows], size=size)


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
    runs = table.drop_duplicates(["study", "run"]).set_index(["study", "run"])
    shared = table[keys.transform("size") == len(runs)]
    if shared.empty:
        raise InputError(
            f"{runs['benchmark'].iloc[0]}: no paradigm was scored in every run, so curves cannot be compared. "
            f"Leave out runs that were scored on other paradigms; the first run is {runs.index[0][1]}."
        )
    units = unit_accuracies(shared)
    about = units.groupby(["level", "name"], sort=False)[["paradigms", "pairs"]].min().reset_index()
    wide = units.pivot(index=["study", "run"], columns=["level", "name"], values="accuracy")
    wide = wide.reindex(index=runs.index, columns=pd.MultiIndex.from_frame(about[["level", "name"]]))
    about["left_out"] = _left_out(table, shared, about)
    accuracy, runs = wide.to_numpy(dtype=np.float64), runs.reset_index()
    curves = []
    for name, of in runs.groupby("curve", sort=False):
        if of["unit"].nunique() > 1:
            units_ = first_few(sorted(of["unit"].unique()))
            raise InputError(f"Curve {name} has runs measured in {units_}. Give them curves of their own.")
        of = of.sort_values("sample_words", kind="stable")
        x = np.log2(of["sample_words"].to_numpy(dtype=np.float64))
        curve = Curve(of["benchmark"].iloc[0], of["method"].iloc[0], str(name), of, accuracy[of.index], about, x,
                      np.zeros(len(of), np.intp))  # fmt: skip
        curves.append(curve._replace(size=pd.factorize(curve.labels)[0].astype(np.intp)))
    return curves


def _left_out(table: pd.DataFrame, shared: pd.DataFrame, units: pd.DataFrame) -> list[str]:
    """Say for each unit which paradigms are left out, "" if none is."""
    before, after = (of.dropna(subset="paradigm").drop_duplicates(["phenomenon", "paradigm"]) for of in (table, shared))
    counts = [of.groupby("phenomenon")["paradigm"].size().to_dict() | {"overall": len(of)} for of in (before, after)]
    notes = []
    for level, name in units[["level", "name"]].to_numpy():
        count, kept = (of.get(name, 0) for of in counts)
        lost = level != "paradigm" and kept < count
        notes.append(
            f"{count - kept} of {count} paradigms are left out: some runs were not scored on them." if lost else ""
        )
    return notes


def check_confidence(confidence: float) -> None:
    """Raise InputError unless a confidence lies between 0 and 1."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence={confidence}: must be between 0 and 1, such as 0.95.")
