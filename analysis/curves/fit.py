"""Learning curves from the long table: slopes with intervals, tests of straightness, and lines to be drawn.

    from analysis import accuracies, fit_curves
    fit_curves(accuracies("mine"))

docs/statistics.md explains what the intervals are about. units.py has the curves, lines.py the arithmetic.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import fdtrc

from analysis.curves.lines import NO_SPREAD, ROUNDING, add_intervals, item_variances, t_quantile
from analysis.curves.units import Curve, check_columns, join_notes, map_curves

CURVE_COLUMNS = [
    "unit", "paradigms", "pairs", "runs", "sizes", "smallest_words", "largest_words", "smallest_accuracy",
    "largest_accuracy", "slope", "intercept", "se", "df", "low", "high", "p", "lack_of_fit", "note",
]  # fmt: skip
NEW_ITEM_COLUMNS = ["se_new_items", "df_new_items", "low_new_items", "high_new_items"]
_POINTS = 41  # of a drawn line


def fit_curves(accuracies: pd.DataFrame, confidence: float = 0.95, pairs: pd.DataFrame | None = None) -> pd.DataFrame:
    """Fit a line of accuracy over log2(sample_words) to each curve and unit, with an interval for its slope.

    Each run is one point of a least-squares fit. Errors are HC3 (MacKinnon and White 1985) with Student's t and R - 2
    degrees of freedom. They are about new samples of this corpus and new initialisations, on these minimal pairs.
    Nested samples give one slope per seed; the interval is that of their mean, with S - 1 degrees. Baselines and models
    without a known amount of text are left out.

    The table of `pairs()` gives intervals about new items of the same paradigms, too: the two-way variance of Cameron,
    Gelbach and Miller (2011), runs plus items less their overlap, with the smaller of the two degrees of freedom. If
    the sum is less than its larger part, that part is used.

    Returns:
        One row per benchmark, method, curve, level and name with CURVE_COLUMNS, and with `pairs` NEW_ITEM_COLUMNS.
        slope: accuracy per doubling of the training text; intercept: at log2(sample_words) = 0; se, df, low, high, p:
        of the slope; lack_of_fit: p value of `lack_of_fit`; note: why there is no interval, and what a reader should
        know.

    Raises:
        InputError: as `unit_accuracies` does, if no paradigm was scored in every run, for a curve measured in two
            units, or for a confidence that is not between 0 and 1.
    """
    columns = CURVE_COLUMNS if pairs is None else [*CURVE_COLUMNS, *NEW_ITEM_COLUMNS]
    table = add_intervals(map_curves(accuracies, columns, lambda curve: _fitted(curve, pairs)), "slope", confidence)
    if pairs is None:
        return table
    half = t_quantile(confidence, table["df_new_items"]) * table["se_new_items"]
    return table.assign(low_new_items=table["slope"] - half, high_new_items=table["slope"] + half)


def fit_values(runs: pd.DataFrame, values: pd.Series, confidence: float) -> pd.DataFrame:
    """Fit any quantity of runs, such as log2(perplexity), over their text as `fit_curves` fits accuracies.

    `runs` has the columns of `runs()`, and `values` a number for each row. One row per curve, with the columns of
    `fit_curves` without those of benchmarks and units.
    """
    rows = runs.assign(benchmark="", method="", phenomenon=None, paradigm=None, pairs=None, accuracy=values)
    slopes = fit_curves(rows, confidence)
    return slopes.drop(columns=["benchmark", "method", "level", "name", "paradigms", "pairs"])


def _fitted(curve: Curve, pairs: pd.DataFrame | None) -> pd.DataFrame:
    line, y, size = curve.line, curve.accuracy, curve.size
    slope, error = line.slope @ y, np.sqrt(line.variances(y)[1])
    first, last = size == size[0], size == size[-1]
    words = curve.runs["sample_words"].to_numpy(dtype=np.float64)
    table = curve.units.assign(
        runs=np.count_nonzero(line.level), sizes=size.max() + 1, smallest_words=words[first].mean(),
        largest_words=words[last].mean(), smallest_accuracy=y[first].mean(axis=0),
        largest_accuracy=y[last].mean(axis=0), slope=slope, intercept=line.level @ y - slope * line.centre, se=error,
        df=np.where(np.isnan(error), np.nan, line.degrees), lack_of_fit=_lack_of_fit(curve)["p"],
        note=_notes(curve, np.isnan(error)),
    )  # fmt: skip
    return table if pairs is None else _with_new_items(table, curve, pairs)


def _notes(curve: Curve, unknown: np.ndarray) -> list[str]:
    """Return what a reader should know about each unit's slope; `unknown` (U,): whether it has no interval."""
    size, samples, without = curve.size, curve.runs["sample"], curve.line.note
    scope = ""
    if len(size) == size.max() + 1:
        scope = "One run per size: the interval also covers bends of the curve, which cannot be tested."
    elif samples.notna().all() and samples.nunique() == size.max() + 1:
        scope = "All runs of a size share a sample: the interval is about new initialisations only."
    at_ends = pd.DataFrame(np.isin(curve.accuracy, (0, 1))).groupby(size).mean().gt(0.5).any().to_numpy()
    narrow = np.where(at_ends & ~unknown, "Most runs of a size are at 0 or 1: the interval may be too narrow.", "")
    return join_notes(without, np.where(unknown, "" if without else NO_SPREAD, scope), curve.units["left_out"], narrow)


def lack_of_fit(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Test whether the mean accuracies of the sizes lie on a line: the F test with pure error.

    The deviations of the means from the line are compared with those of runs from the mean of their size, which takes
    runs to spread equally at all sizes (Draper and Smith 1998, section 2.1). The test needs three sizes and two runs of
    one of them; runs of nested samples and of one training depend on each other and are not tested.

    Returns:
        One row per benchmark, method, curve, level and name: f, df_between, df_within, p (small if the curve bends)
        and note, which says why there is no test.

    Raises:
        InputError: as `fit_curves` does.
    """
    return map_curves(accuracies, ["f", "df_between", "df_within", "p", "note"], _lack_of_fit)


def _lack_of_fit(curve: Curve) -> pd.DataFrame:
    y, x, line, size = curve.accuracy, curve.x, curve.line, curve.size
    between, within = size.max() - 1, len(y) - size.max() - 1
    statistic, without = np.full(y.shape[1], np.nan), "Runs of the same size do not differ."
    if curve.is_nested or curve.is_trajectory:
        without = "Runs of different sizes depend on each other."
    elif between < 1 or within < 1:
        without = "The test needs three sizes, and two runs of one of them."
    else:
        within_sizes = y - pd.DataFrame(y).groupby(size).transform("mean").to_numpy()
        pure = (within_sizes**2).sum(axis=0)
        residual = y - line.level @ y - np.outer(x - line.centre, line.slope @ y)
        lack = np.maximum((residual**2).sum(axis=0) - pure, 0)
        statistic = lack / between / np.where(pure > ROUNDING, pure / within, np.nan)
    p = fdtrc(max(between, 1), max(within, 1), statistic)
    note = np.where(np.isnan(p), without, "")
    return curve.units.assign(f=statistic, df_between=between, df_within=within, p=p, note=note)


def fitted_lines(accuracies: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Return 41 points of each line of `fit_curves`, from its smallest size to its largest one, to be drawn.

    Columns: benchmark, method, curve, level, name, sample_words, accuracy, and low and high of the confidence band at
    each single point, which are missing where the slope has no interval. Raises InputError as `fit_curves` does.
    """

    def points(curve: Curve) -> pd.DataFrame:
        line, y, x = curve.line, curve.accuracy, curve.x
        away = np.linspace(x.min(), x.max(), _POINTS)[:, None] - line.centre
        level, slope, both = line.variances(y)
        height = line.level @ y + away * (line.slope @ y)
        half = t_quantile(confidence, line.degrees) * np.sqrt(np.maximum(level + 2 * away * both + away**2 * slope, 0))
        return curve.units.loc[np.repeat(curve.units.index, _POINTS)].assign(
            sample_words=np.tile(2 ** (away[:, 0] + line.centre), len(curve.units)), accuracy=height.T.ravel(),
            low=(height - half).T.ravel(), high=(height + half).T.ravel(),
        )  # fmt: skip

    return map_curves(accuracies, ["sample_words", "accuracy", "low", "high"], points)


def _with_new_items(table: pd.DataFrame, curve: Curve, pairs: pd.DataFrame) -> pd.DataFrame:
    """Add the standard errors and degrees of freedom about new items, too, to the rows of a curve.

    The items of a curve are those that all its runs were scored on. One with several templates or trials counts with
    its mean over them.
    """
    check_columns(pairs, ("study", "run", "benchmark", "method", "paradigm", "pair_id", "correct"), "pairs()")
    line, units = curve.line, curve.units
    names, level = units["name"].to_numpy(), units["level"].to_numpy()
    of = pairs[(pairs[["benchmark", "method"]] == curve.runs[["benchmark", "method"]].iloc[0]).all(axis=1)]
    of = of[of["run"].isin(curve.runs["run"]) & of["paradigm"].isin(names[level == "paradigm"])]
    means = of.groupby(["study", "run", "paradigm", "pair_id"], sort=False, observed=True)["correct"].mean()
    runs = pd.MultiIndex.from_frame(curve.runs[["study", "run"]])
    judged = means.unstack(["paradigm", "pair_id"]).reindex(runs).dropna(axis="columns").astype(np.float64)
    paradigm, paradigms = pd.factorize(judged.columns.get_level_values("paradigm"))
    phenomena = units.set_index("name")["phenomenon"].dropna()[paradigms].to_numpy()
    member = np.where(
        (level == "phenomenon")[:, None], names[:, None] == phenomena, names[:, None] == np.asarray(paradigms)
    )
    member |= (level == "overall")[:, None]
    size = member.sum(axis=1)
    size = np.where(size == units["paradigms"].fillna(-1), size, np.nan)  # all its paradigms must have items
    variances = item_variances(line, judged.to_numpy(), paradigm.astype(np.intp))
    of_items, overlap = (np.where(member, of, 0).sum(axis=1) / size**2 for of in variances)
    of_runs = line.variances(curve.accuracy)[1]
    variance = np.maximum(of_runs + of_items - overlap, np.maximum(of_runs, of_items))
    degrees = np.minimum(line.degrees, member @ np.bincount(paradigm, minlength=len(paradigms)) - 1)
    missing = np.isnan(variance) & table["se"].notna()
    few = np.where(missing, "Too few pairs are shared by all runs: no interval about new items.", "")
    return table.assign(
        se_new_items=np.sqrt(variance), df_new_items=np.where(np.isnan(variance), np.nan, degrees),
        note=join_notes(table["note"], few),
    )  # fmt: skip
