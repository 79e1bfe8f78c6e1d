"""Fit learning curves to the long table: slopes with intervals, lack-of-fit tests, and lines to draw.

    from analysis import accuracies, fit_curves
    fit_curves(accuracies("mine"))

docs/statistics.md explains the intervals. units.py makes the curves, and lines.py does the arithmetic.
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
_POINTS = 41  # points per drawn line


def fit_curves(accuracies: pd.DataFrame, confidence: float = 0.95, pairs: pd.DataFrame | None = None) -> pd.DataFrame:
    """Fit a line of accuracy over log2(sample_words) to each curve and unit, with a confidence interval for its slope.

    Each run is one point of a least-squares fit. Standard errors are HC3 (MacKinnon and White 1985), and Student's t
    has R - 2 degrees of freedom for R runs. The intervals apply to new samples of this corpus and new initialisations,
    on the same minimal pairs. With nested samples, there is one slope for each of S seeds, and the interval of their
    mean has S - 1 degrees of freedom. Baselines and models without a known amount of text are left out.

    The intervals for new items use the two-way variance of Cameron, Gelbach and Miller (2011). This is the variance
    over runs plus the variance over items minus their overlap, or the larger of the two variances if that is larger.
    The degrees of freedom are the smaller of the two.

    Args:
        accuracies: The long table of `accuracies()`.
        confidence: The level of the intervals.
        pairs: The table of `pairs()`. If it is given, intervals for new items of the same paradigms are added.

    Returns:
        One row per benchmark, method, curve, level and name with CURVE_COLUMNS and, if `pairs` is given,
        NEW_ITEM_COLUMNS. `slope` is the accuracy gained per doubling of the training text, and se, df, low, high and p
        describe it. `intercept` is the height of the line at log2(sample_words) = 0, and `lack_of_fit` is the p value
        of the lack-of-fit test. `note` says why there is no interval, or how to read the slope.

    Raises:
        InputError: In the same cases as `unit_accuracies`, if no paradigm was scored in every run, if the sizes of a
            curve are in different units, or if the confidence isn't between 0 and 1.
    """
    columns = CURVE_COLUMNS if pairs is None else [*CURVE_COLUMNS, *NEW_ITEM_COLUMNS]
    table = add_intervals(map_curves(accuracies, columns, lambda curve: _fit_curve(curve, pairs)), "slope", confidence)
    if pairs is None:
        return table
    half = t_quantile(confidence, table["df_new_items"]) * table["se_new_items"]
    return table.assign(low_new_items=table["slope"] - half, high_new_items=table["slope"] + half)


def fit_values(runs: pd.DataFrame, values: pd.Series, confidence: float) -> pd.DataFrame:
    """Fit any quantity, such as log2(perplexity), over log2 of the training text, as `fit_curves` fits accuracies.

    Args:
        runs: The table of `runs()`.
        values: The quantity, with one value per row of `runs`.
        confidence: The level of the intervals.

    Returns:
        One row per curve, with the columns of `fit_curves` except those about benchmarks and units.
    """
    rows = runs.assign(benchmark="", method="", phenomenon=None, paradigm=None, pairs=None, accuracy=values)
    slopes = fit_curves(rows, confidence)
    return slopes.drop(columns=["benchmark", "method", "level", "name", "paradigms", "pairs"])


def _fit_curve(curve: Curve, pairs: pd.DataFrame | None) -> pd.DataFrame:
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
    """Return a note on each unit's slope. `unknown` (U,) marks slopes without an interval."""
    size, samples, without = curve.size, curve.runs["sample"], curve.line.note
    scope = ""
    if len(size) == size.max() + 1:
        scope = "There is one run per size, so a bend in the curve can't be tested and widens the interval."
    elif samples.notna().all() and samples.nunique() == size.max() + 1:
        scope = "All runs of a size share a sample, so the interval only applies to new initialisations."
    at_ends = pd.DataFrame(np.isin(curve.accuracy, (0, 1))).groupby(size).mean().gt(0.5).any().to_numpy()
    extreme = "At some size, most accuracies are 0 or 1, so the interval may be too narrow."
    narrow = np.where(at_ends & ~unknown, extreme, "")
    return join_notes(without, np.where(unknown, "" if without else NO_SPREAD, scope), curve.units["left_out"], narrow)


def lack_of_fit(accuracies: pd.DataFrame) -> pd.DataFrame:
    """Test whether the mean accuracies of the sizes are on a straight line (F test with pure error).

    The test compares two kinds of variation: between each size's mean and the line, and between runs of the same size.
    It assumes that runs vary equally at all sizes (Draper and Smith 1998, section 2.1). It needs three sizes, and two
    runs at one of them. Nested samples and checkpoints of a single training run aren't tested, because their runs
    depend on each other.

    Args:
        accuracies: The long table of `accuracies()`.

    Returns:
        One row per benchmark, method, curve, level and name, with the columns f, df_between, df_within, p (small if the
        curve bends) and note (why there is no test).

    Raises:
        InputError: In the same cases as `fit_curves`.
    """
    return map_curves(accuracies, ["f", "df_between", "df_within", "p", "note"], _lack_of_fit)


def _lack_of_fit(curve: Curve) -> pd.DataFrame:
    y, x, line, size = curve.accuracy, curve.x, curve.line, curve.size
    between, within = size.max() - 1, len(y) - size.max() - 1
    statistic, without = np.full(y.shape[1], np.nan), "Runs of the same size don't differ."
    if curve.is_nested or curve.is_trajectory:
        without = "Runs of different sizes depend on each other."
    elif between < 1 or within < 1:
        without = "The test needs three sizes, and two runs at one of them."
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
    """Return 41 points on each line of `fit_curves`, from the smallest to the largest size, for drawing.

    The columns are benchmark, method, curve, level, name, sample_words, accuracy, low and high. The last two are the
    pointwise confidence band, and are missing if the slope has no interval. Raises the same InputErrors as
    `fit_curves`.
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
    """Add the standard errors and degrees of freedom for new items to the rows of a curve.

    Only items that all runs of the curve were scored on are used. Items with several templates or trials are averaged
    over them.
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
    few = np.where(missing, "The runs share too few pairs for an interval over new items.", "")
    return table.assign(
        se_new_items=np.sqrt(variance), df_new_items=np.where(np.isnan(variance), np.nan, degrees),
        note=join_notes(table["note"], few),
    )  # fmt: skip
