"""Estimate the effect of removing a construction from the training text, using the long table.

Start at `ablation_effects`. Runs with the same size and seed read the text in the same order and start from the same
weights. Each treatment is therefore compared with its matched control (and with the full text) pair by pair.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd

from analysis.curves.comparisons import add_tests, contrast, match_runs
from analysis.curves.units import TRAJECTORIES, Curve, check_columns, read_curves
from analysis.formats import rows_of
from pairscale.errors import InputError

NONE, REMOVE, CONTROL = "none", "remove", "control"  # values of the column `action` of runs()
TREATMENT_CONTROL, TREATMENT_FULL, CONTROL_FULL = "treatment - control", "treatment - full", "control - full"
OVER_DOSES = "dose 1 - dose 0"  # slope over doses: accuracy gained by keeping all of the construction instead of none
ALL_SIZES, PER_DOUBLING = "all sizes", "per doubling"  # values of the column `over` other than sizes
SCOPE, DIRECT, SAME, REST = "scope", "tests the construction", "same phenomena", "other phenomena"
LEAST_DOSES = 3  # minimum number of doses for a slope over doses, including the full text
INTERVENTION = ["construction", "action", "dose", "base"]
COLUMNS = [
    "benchmark", "method", "kind", *INTERVENTION, "curve", "other", "over", "level", "name", "direct", "paradigms",
    "pairs", "accuracy", "other_accuracy", "difference", "se", "df", "low", "high", "p", "p_holm", "equivalent",
    "paired", "runs", "sizes", "note",
]  # fmt: skip


def ablation_effects(
    accuracies: pd.DataFrame,
    runs: pd.DataFrame,
    margin: float | None = None,
    confidence: float = 0.95,
    direct: Mapping[str, Collection[str]] | None = None,
    paired: bool = True,
) -> pd.DataFrame:
    """Estimate the effect of each intervention in the training text.

    Each treatment is compared with its matched control (which lacks the same number of other sentences) and with the
    full text. Each control is also compared with the full text, to check that removing other sentences changes nothing.
    A construction with three or more doses also gets a slope over doses.

    Paired runs have the same size and seed, and runs without a partner are left out. At a single size, the interval
    comes from the paired t test. Over several sizes, it uses HC3 standard errors (MacKinnon and White 1985) with
    Student's t. Curves without paired runs are treated as independent, with Welch's (1947) degrees of freedom.

    Args:
        accuracies: The long table of `accuracies()`. Baselines and checkpoints of a single training run aren't used.
        runs: The table of `runs()`, with the columns study, run, construction, action, dose and base.
        margin: A difference in accuracy that is too small to matter to you.
        confidence: The level of the intervals.
        direct: The names of the paradigms that test each construction. The level "scope" has one mean over these
            paradigms, one over the other paradigms of their phenomena, and one over all remaining paradigms.
        paired: Whether runs of different curves are related if they have the same seed.

    Returns:
        One row per benchmark, method, comparison, `over` ("all sizes", each size, "per doubling"), level and name, with
        COLUMNS. The table is empty if no run has an intervention. The columns include:

        - difference: the accuracy of `curve` minus the accuracy of `other`
        - runs: the number of pairs of runs, or of all runs if they aren't paired
        - p_holm: the p value, corrected (Holm 1979) for all phenomena or paradigms of a comparison or, for overall and
          scopes, for all comparisons of the same kind
        - equivalent: whether the interval is within the margin (missing per doubling)

    Raises:
        InputError: If a column is missing, if a curve has two runs with the same size and seed, or if two curves have
            the same dose.
    """
    check_columns(runs, ("study", "run", *INTERVENTION), "runs(study)")
    known = accuracies.drop(columns=INTERVENTION, errors="ignore").merge(
        runs[["study", "run", *INTERVENTION]], on=["study", "run"], validate="many_to_one"
    )
    known = known[~known["unit"].isin(TRAJECTORIES)].astype({"dose": str})
    parts = [rows for curves in read_curves(known) for rows in _compare_curves(curves, direct or {}, paired)]
    table = pd.concat(parts or [pd.DataFrame(columns=COLUMNS)], ignore_index=True)
    alone = table["level"].isin(["overall", SCOPE])
    family = table["name"].where(alone, table["curve"] + table["other"] + table["dose"])
    table = add_tests(table, ["benchmark", "method", "kind", "over", "level", family], margin, confidence)
    table["equivalent"] = table["equivalent"].mask(table["over"] == PER_DOUBLING)
    return table[COLUMNS]


def main_effects(effects: pd.DataFrame) -> pd.DataFrame:
    """Return the main rows of `ablation_effects`, which compare each treatment with its control over all sizes.

    A treatment without a control is compared with the full text. The rows are about overall accuracy and, if they are
    known, the scopes.
    """
    is_main = effects["kind"].isin([TREATMENT_CONTROL, TREATMENT_FULL]) & effects["level"].isin(["overall", SCOPE])
    rows = effects[is_main & (effects["over"] == ALL_SIZES)]
    first = rows.groupby(["benchmark", "method", "curve"])["kind"].transform("min")  # "control" before "full"
    return rows[rows["kind"] == first].reset_index(drop=True)


def _compare_curves(curves: list[Curve], direct: Mapping[str, Collection[str]], paired: bool) -> Iterator[pd.DataFrame]:
    """Yield the estimates of each comparison in one benchmark."""
    by_name = {curve.about["curve"]: curve for curve in curves}
    runs = pd.concat([curve.runs for curve in curves])
    for about in comparisons(runs):
        sides = [_with_scopes(by_name[about[key]], direct, about["construction"]) for key in ("curve", "other")]
        yield _contrasts(sides, [1, -1], paired).assign(**about)
    removed, full = runs[runs["action"] == REMOVE], runs[runs["action"] == NONE].assign(dose="1")
    for (base, construction), of in removed.groupby(["base", "construction"], sort=False):
        of = pd.concat([of, full[full["base"] == base]])
        if (twice := of.groupby("dose")["curve"].unique().loc[lambda curves: curves.str.len() > 1]).any():
            raise InputError(
                f"{base}, {construction}: {' and '.join(twice.iloc[0])} both have the dose {twice.index[0]}. "
                "Analyse them separately."
            )
        names = dict(sorted(zip(of["dose"].map(Fraction).astype(float), of["curve"], strict=True)))
        if len(names) < LEAST_DOSES:
            continue
        doses = np.array([*names]) - np.mean([*names])
        of_doses = [_with_scopes(by_name[name], direct, str(construction)) for name in names.values()]
        rows = _contrasts(of_doses, list(doses / (doses**2).sum()), True)
        rows = rows[rows["paired"] & (rows["over"] == ALL_SIZES)].assign(
            base=str(base), construction=str(construction), action=REMOVE, kind=OVER_DOSES
        )
        yield rows.assign(dose="", other="", accuracy=np.nan, other_accuracy=np.nan)


def _contrasts(curves: Sequence[Curve], weights: Sequence[float], paired: bool) -> pd.DataFrame:
    """Return the contrast of curves over all sizes, at each size and per doubling, with one row per unit.

    Raises InputError if a curve has two runs with the same size and seed.
    """
    places = pd.concat([of.runs[["curve", "size", "seed"]] for of in curves]).dropna()
    for name, size, seed in places[places.duplicated()].to_numpy()[:1] if paired else ():
        raise InputError(f"Curve {name} has two runs of size {size} and seed {seed}. Use different curve names.")
    used, is_paired, left_out = match_runs(curves, ["size", "seed"], 0 if paired else 1)
    sizes = list(used[0].runs["size"].unique())
    parts = []
    for over in [ALL_SIZES, *sizes, PER_DOUBLING] if len(sizes) > 1 else [ALL_SIZES]:
        slope = over == PER_DOUBLING
        of_size = [of.at([over]) for of in used] if over in sizes else used
        means = [np.nan if slope or not sizes else of.accuracy.mean(axis=0) for of in of_size[:2]]
        rows = contrast(of_size, weights, is_paired, slope, left_out)
        parts.append(rows.assign(over=over, accuracy=means[0], other_accuracy=means[1]))
    return pd.concat(parts, ignore_index=True).assign(**curves[0].about)


def _with_scopes(curve: Curve, direct: Mapping[str, Collection[str]], construction: str) -> Curve:
    """Mark the paradigms that test the construction, and add the scopes (means over these and over other paradigms)."""
    units = curve.units
    paradigms = units["level"] == "paradigm"
    tests = paradigms & units["name"].isin(list(direct.get(construction, ())))
    units = units.assign(direct=tests)
    if not tests.any():
        return curve._replace(units=units)
    same = units["phenomenon"].isin(units.loc[tests, "phenomenon"])
    scope = pd.Series(np.select([tests, same], [DIRECT, SAME], REST), units.index, name="name").where(paradigms)
    scopes = units.astype({"pairs": "Int64"}).groupby(scope, sort=False).agg(
        paradigms=("level", "size"), direct=("direct", "any"), pairs=("pairs", lambda of: of.sum(min_count=1))
    )  # fmt: skip
    means = pd.DataFrame(curve.accuracy.T, units.index).groupby(scope, sort=False).mean().to_numpy().T
    units = pd.concat([scopes.reset_index().assign(level=SCOPE, left_out=""), units], ignore_index=True)
    return curve._replace(accuracy=np.column_stack([means, curve.accuracy]), units=units)


def comparisons(runs: pd.DataFrame) -> Iterator[dict[str, str]]:
    """Yield the kind, the intervention and the two curves of each comparison that is possible with these runs."""
    curves = [row._asdict() for row in rows_of(runs[["curve", *INTERVENTION]].drop_duplicates())]
    full = [of for of in curves if of["action"] == NONE]
    acting = [of for of in curves if of["action"] != NONE]
    acting.sort(key=lambda of: (of["base"], of["construction"], of["action"] == CONTROL, Fraction(of["dose"])))
    for of, other in product(acting, acting + full):
        if other == {**of, "action": CONTROL, "curve": other["curve"]} and of["action"] == REMOVE:
            yield {**of, "kind": TREATMENT_CONTROL, "other": other["curve"]}
        elif other["action"] == NONE and other["base"] == of["base"]:
            yield {**of, "kind": CONTROL_FULL if of["action"] == CONTROL else TREATMENT_FULL, "other": other["curve"]}
