"""Learning curves from the long table: slopes with intervals, tests of straightness, and differences of slopes.

    from analysis import accuracies, fit_curves
    fit_curves(accuracies("mine"))

docs/statistics.md explains what the intervals are about. units.py has the curves, lines.py the arithmetic.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import t as student

from analysis.curves.comparisons import compare, holm
from analysis.curves.lines import (
    NO_CHANGE,
    NO_SPREAD,
    Array,
    Line,
    f_p_values,
    item_variances,
    pure_error_test,
    t_p_values,
)
from analysis.curves.units import TRAJECTORIES, Curve, check_confidence, read_curves, unit_accuracies
from pairscale.errors import InputError, first_few

__all__ = ["compare", "fit_curves", "fitted_lines", "holm", "lack_of_fit", "unit_accuracies"]

CURVE_COLUMNS = [
    "benchmark", "method", "curve", "unit", "level", "name", "paradigms", "pairs", "runs", "sizes", "smallest_words",
    "largest_words", "smallest_accuracy", "largest_accuracy", "slope", "intercept", "se", "df", "low", "high", "p",
    "lack_of_fit", "note",
]  # fmt: skip
FIT_COLUMNS = ["benchmark", "method", "curve", "level", "name", "f", "df_between", "df_within", "p", "note"]
LINE_COLUMNS = ["benchmark", "method", "curve", "level", "name", "sample_words", "accuracy", "low", "high"]
_ITEM_COLUMNS = ["study", "run", "benchmark", "method", "phenomenon", "paradigm", "pair_id", "correct"]
_POINTS = 41  # of a drawn line


def fit_curves(accuracies: pd.DataFrame, confidence: float = 0.95, pairs: pd.DataFrame | None = None) -> pd.DataFrame:
    """Fit a line of accuracy over log2(sample_words) to each curve and unit, with an interval for its slope.

    Each run is one point of a least-squares fit. Errors are HC3 (MacKinnon and White 1985) with Student's t and R - 2
    degrees of freedom. They are about new samples of this corpus and new initialisations, on these minimal pairs.
    Nested samples give one slope per seed; the interval is that of their mean, with S - 1 degrees.

    Args:
        accuracies: table of `accuracies()`. Baselines and models without a known amount of text are left out.
        confidence: level of the intervals.
        pairs: table of `pairs()` for intervals about new items of the same paradigms, too: the two-way variance of
            Cameron, Gelbach and Miller (2011), runs plus items less their overlap, with the smaller of the two degrees
            of freedom. If the sum is less than its larger part, that part is used.

    Returns:
        One row per benchmark, method, curve, level and name with the columns of CURVE_COLUMNS. slope: accuracy per
        doubling of the training text; intercept: at log2(sample_words) = 0; se, df, low, high: of the slope; p: of the
        test that the slope is 0; lack_of_fit: p value of `lack_of_fit`; note: why there is no interval, and what a
        reader should know. With `pairs`: se_new_items, df_new_items, low_new_items and high_new_items.

    Raises:
        InputError: as `unit_accuracies` does, if no paradigm was scored in every run, for a curve measured in two
            units, or for a confidence that is not between 0 and 1.
    """
    check_confidence(confidence)
    parts = []
    for curve in (curve for curves in read_curves(accuracies) for curve in curves):
        table = _fitted(curve, confidence)
        if pairs is not None:
            table = _with_new_items(table, curve, pairs, confidence)
        parts.append(table)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=CURVE_COLUMNS)


def _fitted(curve: Curve, confidence: float) -> pd.DataFrame:
    line, y = curve.line, curve.accuracy
    slope, error = line.slope @ y, np.sqrt(line.variances(y)[1])
    used = np.abs(line.level) > 0  # runs of incomplete seeds have no weight
    first, last = (curve.size == curve.size[row] for row in (0, -1))
    words = curve.runs["sample_words"].to_numpy(dtype=np.float64)
    half = line.quantile(confidence) * error
    return curve.units.assign(
        benchmark=curve.benchmark, method=curve.method, curve=curve.name, unit=curve.unit, runs=int(used.sum()),
        sizes=len(np.unique(curve.size)), smallest_words=words[first].mean(), largest_words=words[last].mean(),
        smallest_accuracy=y[first].mean(axis=0), largest_accuracy=y[last].mean(axis=0), slope=slope,
        intercept=line.level @ y - slope * line.centre, se=error, df=np.where(np.isnan(error), np.nan, line.degrees),
        low=slope - half, high=slope + half, p=t_p_values(slope, error, line.degrees),
        lack_of_fit=_lack_of_fit(curve)[3], note=notes_of(curve, line, error),
    )[CURVE_COLUMNS]  # fmt: skip


AT_ENDS = "Most runs of a size are at 0 or 1"  # the start of a note


def notes_of(curve: Curve, line: Line, error: Array) -> list[str]:
    """Return what a reader should know about each unit's slope; `error` (U,) is NaN without an interval."""
    counts = np.bincount(curve.size)
    of_curve = [line.note]
    if not line.note:
        seeds = sorted(set(curve.runs["seed"][np.abs(line.level) == 0].dropna()))
        if seeds:
            of_curve.append(f"Seeds without all sizes are left out: {first_few([str(seed) for seed in seeds])}.")
        if counts.max() == 1:
            of_curve.append("One run per size: the interval also covers bends of the curve, which cannot be tested.")
        samples = curve.runs["sample"].dropna()
        if counts.max() > 1 and len(samples) == len(curve.runs) and samples.nunique() == len(counts):
            of_curve.append("All runs of a size share a sample: the interval is about new initialisations only.")
    at_ends = np.isin(curve.accuracy, (0, 1))
    ends = np.any([at_ends[curve.size == s].mean(axis=0) > 0.5 for s in range(len(counts))], axis=0)
    notes = []
    constant = np.ptp(curve.accuracy, axis=0) == 0
    for left_out, flat, end, equal in zip(curve.units["left_out"], np.isnan(error), ends, constant, strict=True):
        of_unit = [*of_curve, (NO_CHANGE if equal else NO_SPREAD) if flat and not line.note else "", left_out]
        if end and not flat:
            of_unit.append(f"{AT_ENDS}: the interval may be too narrow.")
        notes.append(" ".join(filter(None, of_unit)))
    return notes


def lack_of_fit(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Test whether the mean accuracies of the sizes lie on a line: the F test with pure error.

    The test takes runs to spread equally at all sizes (Draper and Smith 1998, section 2.1). It needs three sizes and
    two runs of one of them; runs of nested samples and of one training depend on each other and are not tested.

    Args:
        accuracies: table of `accuracies()`.

    Returns:
        One row per benchmark, method, curve, level and name: f, df_between, df_within, p (small if the curve bends)
        and note, which says why there is no test.

    Raises:
        InputError: as `fit_curves` does.
    """
    parts = []
    for curve in (curve for curves in read_curves(accuracies) for curve in curves):
        statistic, between, within, p, note = _lack_of_fit(curve)
        known = np.isnan(p)
        parts.append(curve.units.assign(
            benchmark=curve.benchmark, method=curve.method, curve=curve.name, f=statistic, df_between=between,
            df_within=within, p=p, note=np.where(known, note, ""),
        )[FIT_COLUMNS])  # fmt: skip
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=FIT_COLUMNS)


def _lack_of_fit(curve: Curve) -> tuple[Array, int, int, Array, str]:
    """Return F, its degrees of freedom, p values, and a note for units that have none."""
    statistic, between, within = pure_error_test(curve.x, curve.size, curve.accuracy)
    note = "Runs of the same size do not differ."
    if curve.unit in TRAJECTORIES or curve.nested:
        statistic, note = np.full(len(statistic), np.nan), "Runs of different sizes depend on each other."
    elif between < 1 or within < 1:
        note = "The test needs three sizes, and two runs of one of them."
    return statistic, between, within, f_p_values(statistic, between, within), note


def fitted_lines(accuracies: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Return points of each fitted line with its confidence band, to be drawn.

    Args:
        accuracies: table of `accuracies()`.
        confidence: level of the band at each single point.

    Returns:
        Columns of LINE_COLUMNS: per benchmark, method, curve, level and name, 41 points from the smallest size to the
        largest one. low and high are missing where the slope has no interval.

    Raises:
        InputError: as `fit_curves` does.
    """
    check_confidence(confidence)
    parts = []
    for curve in (curve for curves in read_curves(accuracies) for curve in curves):
        line, y = curve.line, curve.accuracy
        away = np.linspace(curve.x.min(), curve.x.max(), _POINTS)[:, None] - line.centre
        level, slope, both = line.variances(y)
        height = line.level @ y + away * (line.slope @ y)
        half = line.quantile(confidence) * np.sqrt(np.maximum(level + 2 * away * both + away**2 * slope, 0))
        rows = curve.units.loc[np.repeat(curve.units.index, _POINTS)].assign(
            benchmark=curve.benchmark, method=curve.method, curve=curve.name,
            sample_words=np.tile(2 ** (away[:, 0] + line.centre), len(curve.units)), accuracy=height.T.ravel(),
            low=(height - half).T.ravel(), high=(height + half).T.ravel(),
        )  # fmt: skip
        parts.append(rows[LINE_COLUMNS])
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=LINE_COLUMNS)


def _with_new_items(table: pd.DataFrame, curve: Curve, pairs: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Add the intervals about new items, too, to the rows of a curve."""
    judged, items = _judged_items(curve, pairs)
    line, units = curve.line, curve.units
    paradigm, names = pd.factorize(items["paradigm"])
    of_items, overlap = item_variances(line, judged, paradigm.astype(np.intp))
    phenomena = items.drop_duplicates("paradigm")["phenomenon"].to_numpy()
    variance, degrees = np.full((2, len(units)), np.nan)
    of_runs = line.variances(curve.accuracy)[1]
    for u, (level, name, paradigms) in enumerate(units[["level", "name", "paradigms"]].to_numpy()):
        of = {"overall": np.full(len(names), True), "phenomenon": phenomena == name}.get(level, names == name)
        if of.sum() == paradigms and not pd.isna(paradigms):
            both = of_items[of].sum() / paradigms**2
            larger = np.maximum(of_runs[u], both)
            variance[u] = np.maximum(of_runs[u] + both - overlap[of].sum() / paradigms**2, larger)
            degrees[u] = min(line.degrees, of[paradigm].sum() - 1)
    unknown = np.isnan(variance)
    error, degrees = np.sqrt(variance), np.where(unknown, np.nan, degrees)
    half = student.ppf(0.5 + confidence / 2, degrees) * error
    note = np.where(
        unknown & table["se"].notna(), " Too few pairs are shared by all runs: no interval about new items.", ""
    )
    return table.assign(
        se_new_items=error, df_new_items=degrees, low_new_items=table["slope"] - half,
        high_new_items=table["slope"] + half, note=(table["note"] + note).str.strip(),
    )  # fmt: skip


def _judged_items(curve: Curve, pairs: pd.DataFrame) -> tuple[Array, pd.DataFrame]:
    """Return the (R, P) outcomes of the items that all runs of a curve were scored on, and their paradigms.

    An item with several templates or trials counts with its mean over them.
    """
    if missing := [name for name in _ITEM_COLUMNS if name not in pairs]:
        raise InputError(f"The table of pairs has no column {first_few(missing)}. Give it the columns of pairs().")
    names = curve.units.loc[curve.units["level"] == "paradigm", "name"]
    of = pairs[(pairs["benchmark"] == curve.benchmark) & (pairs["method"] == curve.method)]
    of = of[of["run"].isin(curve.runs["run"]) & of["paradigm"].isin(names)]
    runs = pd.MultiIndex.from_frame(curve.runs[["study", "run"]])
    known, seen = of.groupby(["study", "run"], sort=False).ngroup(), of[["study", "run"]].drop_duplicates()
    row = runs.get_indexer(pd.MultiIndex.from_frame(seen))[known.to_numpy()] if len(of) else known.to_numpy()
    of, row = of[row >= 0], row[row >= 0]
    grouped = of.groupby(["paradigm", "pair_id"], sort=False)
    item, items = grouped.ngroup().to_numpy(), grouped[["phenomenon"]].first().reset_index()
    place, shape = row * len(items) + item, (len(runs), len(items))
    counts = np.bincount(place, minlength=len(runs) * len(items)).reshape(shape)
    correct = np.bincount(place, of["correct"].to_numpy(np.float64), len(runs) * len(items)).reshape(shape)
    shared = np.flatnonzero((counts > 0).all(axis=0))
    return correct[:, shared] / counts[:, shared], items.iloc[shared]
