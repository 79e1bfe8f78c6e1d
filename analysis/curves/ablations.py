"""What removing a construction from the training text changes, from the long table.

Start at ablation_effects. Runs that share a size and a seed read the same permutation of the text and start from the
same weights, so each treatment is compared with its matched control (and with the full text) pair by pair.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import t as student

from analysis.curves.comparisons import holm
from analysis.curves.lines import ROUNDING, Array, fit_line
from analysis.curves.units import TRAJECTORIES, unit_accuracies
from pairscale.errors import InputError, first_few

Rows = npt.NDArray[np.intp]

NONE, REMOVE, CONTROL = "none", "remove", "control"  # actions in the column `action` of runs()
TREATMENT_CONTROL, TREATMENT_FULL, CONTROL_FULL = "treatment - control", "treatment - full", "control - full"
OVER_DOSES = "dose 1 - dose 0"  # the slope over doses: accuracy gained from none of the construction to all of it
ALL_SIZES, PER_DOUBLING = "all sizes", "per doubling"  # values of the column `over`, next to the sizes
SCOPE, DIRECT, SAME, REST = "scope", "tests the construction", "same phenomena", "other phenomena"
LEAST_DOSES = 3  # for a slope over doses; the full text is one of them
NUMBERS = ["accuracy", "other_accuracy", "difference", "se", "df"]
INTERVENTION = ["construction", "action", "dose", "base"]
KEYS = ["kind", *INTERVENTION, "curve", "other"]
COLUMNS = [
    "benchmark", "method", *KEYS, "over", "level", "name", "direct", "paradigms", "pairs", "accuracy",
    "other_accuracy", "difference", "se", "df", "low", "high", "p", "p_holm", "equivalent", "paired", "runs", "sizes",
    "note",
]  # fmt: skip


def ablation_effects(
    accuracies: pd.DataFrame,
    runs: pd.DataFrame,
    margin: float | None = None,
    confidence: float = 0.95,
    direct: Mapping[str, Collection[str]] | None = None,
    paired: bool = True,
) -> pd.DataFrame:
    """Estimate what each intervention in the training text changes.

    Three kinds of comparison: each treatment less its matched control (of sentences that were removed), each treatment
    less the full text, and each control less the full text, which checks that removing as many other sentences
    changes nothing. A construction with three or more doses also gets the slope of accuracy over doses.

    Paired runs have the same size and seed; runs without a partner are left out and named in `note`. At one size the
    interval is that of the paired t test. Over all sizes, and for the change per doubling, a least-squares line is
    fitted to the differences over log2(sample_words); its errors are HC3 (MacKinnon and White 1985) with Student's t
    and R - 2 degrees of freedom, as for slopes. Nested samples give one value per seed, with S - 1 degrees. Two curves
    without any pair of runs are independent: Welch's (1947) degrees of freedom. Intervals are about new samples of this
    corpus and new initialisations, on these minimal pairs.

    Args:
        accuracies: Long table of `accuracies()`. Baselines and points of one training are not used.
        runs: Table of `runs()`, with the columns study, run, construction, action, dose and base.
        margin: Accuracy below which a difference does not matter to you. Without it nothing is called equivalent.
        confidence: Level of the intervals.
        direct: Construction -> names of the paradigms that test it. These are averaged as "tests the construction",
            next to the other paradigms of their phenomena and to all others (level "scope").
        paired: False for tables in which equal seeds of two curves have nothing in common.

    Returns:
        One row per benchmark, method, comparison, `over` ("all sizes", each size, "per doubling") and unit (level,
        name), with the columns COLUMNS. difference: accuracy of `curve` less `other`; runs: pairs of runs if paired,
        else runs of both curves. p_holm is corrected (Holm 1979) over the phenomena, or the paradigms, of a comparison;
        for overall and scopes over all comparisons of the same kind. equivalent: whether the interval lies within
        the margin; missing per doubling. Empty if no run has an intervention.

    Raises:
        InputError: A column is missing, or a curve has two runs of one size and seed.
    """
    _check_columns(runs, ["study", "run", *INTERVENTION])
    if margin is not None and not margin > 0:
        raise InputError(f"margin={margin}: must be above 0. It is a difference of accuracy, such as 0.02.")
    known = accuracies.drop(columns=INTERVENTION, errors="ignore").merge(
        runs[["study", "run", *INTERVENTION]], on=["study", "run"], validate="many_to_one"
    )
    known = known[(known["baseline"] == "") & ~known["unit"].isin(TRAJECTORIES)]
    parts = []
    for (benchmark, method), of in known.groupby(["benchmark", "method"], sort=False):
        for rows in _compared(of, direct or {}, paired):
            parts.append(rows.assign(benchmark=str(benchmark), method=str(method)))
    if not parts:
        return pd.DataFrame(columns=COLUMNS)
    return _tested(pd.concat(parts, ignore_index=True), margin, confidence)[COLUMNS]


def main_effects(effects: pd.DataFrame) -> pd.DataFrame:
    """Return the rows to state first: each treatment over all sizes, against its control or else the full text.

    Only the units overall and, where they are known, the scopes; `effects` is the table of `ablation_effects`.
    """
    rows = effects[effects["kind"].isin([TREATMENT_CONTROL, TREATMENT_FULL]) & (effects["over"] == ALL_SIZES)]
    controlled = rows.groupby(["benchmark", "method", "curve"])["kind"].transform(
        lambda of: TREATMENT_CONTROL in set(of)
    )
    rows = rows[(rows["kind"] == TREATMENT_CONTROL) | ~controlled]
    return rows[rows["level"].isin(["overall", SCOPE])].reset_index(drop=True)


def _check_columns(table: pd.DataFrame, needed: list[str]) -> None:
    if missing := [name for name in needed if name not in table]:
        raise InputError(f"The table of runs lacks {', '.join(missing)}. Give the table of runs(study).")


class _Units(NamedTuple):
    """Accuracies (runs x units) of the runs (rows: curve, size, seed, ...), and a table with a row per unit."""

    accuracy: Array
    runs: pd.DataFrame
    table: pd.DataFrame


def _compared(table: pd.DataFrame, direct: Mapping[str, Collection[str]], paired: bool) -> Iterator[pd.DataFrame]:
    """Yield the estimates of each comparison in one benchmark and method."""
    units = _units(table)
    for comparison in comparisons(units.runs):
        of = _with_scopes(units, direct.get(comparison["construction"], ()))
        yield _differences(of, _matched(units.runs, comparison, paired)).assign(**comparison)
    for (base, construction), doses in _doses(units.runs):
        of = _with_scopes(units, direct.get(construction, ()))
        named = {"kind": OVER_DOSES, "base": base, "construction": construction, "action": REMOVE, "dose": ""}
        rows = _over_doses(of, doses)
        if len(rows):
            yield rows.assign(**named, curve=next(iter(doses.values())), other="")


def _units(table: pd.DataFrame) -> _Units:
    """Return the units of the paradigms (or given units) that every run was scored on."""
    runs = table.drop_duplicates(["study", "run"]).set_index(["study", "run"])
    runs["size"] = runs["size"].fillna(runs["sample_words"].astype(str))  # others' sizes may have no names
    counts = table.groupby(["phenomenon", "paradigm"], dropna=False)["run"].transform("size")
    units = unit_accuracies(table[counts == len(runs)])
    wide = units.pivot(index=["study", "run"], columns=["level", "name"], values="accuracy").reindex(runs.index)
    about = units.drop_duplicates(["level", "name"]).set_index(["level", "name"])
    about = about.reindex(wide.columns)[["paradigms", "pairs"]].reset_index()
    phenomena = table.dropna(subset="paradigm").drop_duplicates("paradigm").set_index("paradigm")["phenomenon"]
    about["phenomenon"] = about["name"].map(phenomena.to_dict())
    return _Units(wide.to_numpy(dtype=np.float64), runs.reset_index(), about)


def _with_scopes(units: _Units, direct: Collection[str]) -> _Units:
    """Mark the paradigms that test the construction, and add their mean and the means of the other paradigms."""
    table = units.table
    paradigms = table["level"] == "paradigm"
    tests = paradigms & table["name"].isin(list(direct))
    table = table.assign(direct=tests)
    if not tests.any():
        return units._replace(table=table)
    same = paradigms & table["phenomenon"].isin(table.loc[tests, "phenomenon"])
    scopes = {DIRECT: tests, SAME: same & ~tests, REST: paradigms & ~same}
    scopes = {name: of for name, of in scopes.items() if of.any()}
    rows = [
        {"level": SCOPE, "name": name, "paradigms": int(of.sum()), "direct": name == DIRECT,
         "pairs": table.loc[of, "pairs"].sum(min_count=1)}
        for name, of in scopes.items()
    ]  # fmt: skip
    means = [units.accuracy[:, of.to_numpy()].mean(axis=1) for of in scopes.values()]
    return units._replace(
        accuracy=np.column_stack([*means, units.accuracy]),
        table=pd.concat([pd.DataFrame(rows).astype({"pairs": table["pairs"].dtype}), table], ignore_index=True),
    )


def comparisons(runs: pd.DataFrame) -> Iterator[dict[str, str]]:
    """Yield kind, intervention and the two curves of each comparison that the runs allow."""
    curves = runs[["curve", *INTERVENTION]].drop_duplicates().to_dict("records")
    acting = [of for of in curves if of["action"] != NONE]
    acting.sort(key=lambda of: (of["base"], of["construction"], of["action"] == CONTROL, Fraction(of["dose"])))
    for of in acting:
        others = [
            (TREATMENT_CONTROL, other["curve"])
            for other in acting
            if of["action"] == REMOVE and other["action"] == CONTROL
            and all(of[key] == other[key] for key in ("base", "construction", "dose"))
        ]  # fmt: skip
        kind = CONTROL_FULL if of["action"] == CONTROL else TREATMENT_FULL
        others += [(kind, full["curve"]) for full in curves if full["action"] == NONE and full["base"] == of["base"]]
        for kind, other in others:
            yield {**{str(key): str(value) for key, value in of.items()}, "kind": kind, "other": str(other)}


class _Matched(NamedTuple):
    """Row numbers of the runs of two curves; if paired, the i-th of both are a pair."""

    first: Rows
    second: Rows
    paired: bool
    note: str


def _matched(runs: pd.DataFrame, comparison: Mapping[str, str], paired: bool) -> _Matched:
    """Pair the runs of two curves by size and seed; without any pair, take all runs of the sizes that both have."""
    places = [_places(runs, comparison[key]) for key in ("curve", "other")]
    shared = [key for key in places[0] if key in places[1]] if paired else []
    if shared:
        first, second = (np.asarray([of[key] for key in shared], dtype=np.intp) for of in places)
    else:
        sizes = {size for size, _ in places[0]} & {size for size, _ in places[1]}
        first, second = (
            np.asarray([row for key, row in of.items() if key[0] in sizes], dtype=np.intp) for of in places
        )
    used = {*first.tolist(), *second.tolist()}
    left = [str(runs["run"].iloc[row]) for of in places for row in of.values() if row not in used]
    note = f"Left out because no run of the other curve fits: {first_few(left)}." if left else ""
    return _Matched(first, second, bool(shared), note)


def _places(runs: pd.DataFrame, curve: str) -> dict[tuple[str, int], int]:
    """Return (size, seed) -> row of the runs of a curve, smallest size first. Raises InputError for two of one key."""
    of = runs[runs["curve"] == curve].sort_values(["sample_words", "seed"], kind="stable")
    twice = of[of.duplicated(["size", "seed"])]
    if len(twice):
        size, seed = twice[["size", "seed"]].iloc[0]
        raise InputError(f"Curve {curve} has two runs of size {size} and seed {seed}. Give them different curves.")
    return {(str(size), int(seed)): int(row) for row, size, seed in zip(of.index, of["size"], of["seed"], strict=True)}


def _differences(units: _Units, of: _Matched) -> pd.DataFrame:
    """Return the differences of a comparison over all sizes, at each size and per doubling, a row per unit."""
    sizes = units.runs["size"].iloc[of.first].unique()
    if not len(sizes):
        note = "The two curves have no size in common."
        return units.table.assign(over=ALL_SIZES, paired=False, runs=0, sizes=0, note=note, **dict.fromkeys(NUMBERS))
    several = [*sizes, PER_DOUBLING] if len(sizes) > 1 else []
    parts = []
    for over in [ALL_SIZES, *several]:
        first, second = (
            rows if over in (ALL_SIZES, PER_DOUBLING) else rows[units.runs["size"].iloc[rows] == over]
            for rows in (of.first, of.second)
        )
        means = {
            name: np.nan if over == PER_DOUBLING else units.accuracy[rows].mean(axis=0)
            for name, rows in (("accuracy", first), ("other_accuracy", second))
        }
        runs = [units.runs.iloc[rows] for rows in (first, second)]
        slope = over == PER_DOUBLING
        if of.paired:
            result = estimate(units.accuracy[first] - units.accuracy[second], runs[0], slope)
        else:
            result = _less(
                *(estimate(units.accuracy[rows], of, slope) for rows, of in zip((first, second), runs, strict=True))
            )
        note = " ".join(filter(None, (result.note, of.note)))
        about = {"runs": len(first) if of.paired else len(first) + len(second), "sizes": runs[0]["size"].nunique()}
        parts.append(units.table.assign(over=over, **means, **result.columns(), paired=of.paired, **about, note=note))
    return pd.concat(parts, ignore_index=True)


class Estimate(NamedTuple):
    """Values, variances and degrees of freedom (units,); without variances the note says why."""

    value: Array
    variance: Array
    degrees: Array
    note: str = ""

    def columns(self) -> dict[str, Array]:
        return {"difference": self.value, "se": np.sqrt(self.variance), "df": self.degrees}


def estimate(values: Array, runs: pd.DataFrame, slope: bool) -> Estimate:
    """Estimate the mean of values, or their slope per doubling of the training text.

    At one size the variance is that of a mean of independent runs. Over several sizes it is that of the level or the
    slope of a line (`analysis.curves.lines.fit_line`).

    Args:
        values: (R, U) accuracies, or differences of paired runs.
        runs: The R runs, with the columns size, sample_words, seed and nested.
        slope: Whether the slope is wanted.
    """
    size = np.unique(runs["size"].to_numpy(dtype=str), return_inverse=True)[1].astype(np.intp)
    if size.max() == 0:
        return _mean(values)
    x = np.log2(runs["sample_words"].to_numpy(dtype=np.float64))
    seed = runs["seed"].to_numpy(dtype=np.intp)
    line = fit_line(x, size, seed if runs["nested"].any() else None)
    variances = line.variances(values)[int(slope)]
    if not line.note:  # all runs on one line
        variances = np.nan_to_num(variances)
    value = (line.slope if slope else line.level) @ values
    note = line.note
    left = sorted(set(seed[line.level == 0].tolist()))
    if left:
        note = f"{note} Seeds without all sizes are left out: {first_few([str(of) for of in left])}.".strip()
    return Estimate(value, variances, np.full(len(value), np.nan if line.note else line.degrees), note)


def _mean(values: Array) -> Estimate:
    n, value = len(values), values.mean(axis=0)
    if n < 2:
        unknown = np.full(len(value), np.nan)
        return Estimate(value, unknown, unknown, "One run: no interval.")
    return Estimate(value, values.var(axis=0, ddof=1) / n, np.full(len(value), n - 1.0))


def _less(first: Estimate, second: Estimate) -> Estimate:
    """Return the difference of two independent estimates, with Welch's degrees of freedom."""
    variance = first.variance + second.variance
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = variance**2 / (first.variance**2 / first.degrees + second.variance**2 / second.degrees)
    return Estimate(first.value - second.value, variance, degrees, first.note or second.note)


def _doses(runs: pd.DataFrame) -> Iterator[tuple[tuple[str, str], dict[float, str]]]:
    """Yield (base, construction) and dose -> curve, where sentences were removed in several doses."""
    curves = runs[["curve", *INTERVENTION]].drop_duplicates()
    for (base, construction), of in curves[curves["action"] == REMOVE].groupby(["base", "construction"], sort=False):
        full = curves[(curves["action"] == NONE) & (curves["base"] == base)].assign(dose="1")
        doses = {float(Fraction(dose)): curve for dose, curve in pd.concat([of, full])[["dose", "curve"]].to_numpy()}
        if len(doses) >= LEAST_DOSES:
            yield (str(base), str(construction)), dict(sorted(doses.items()))


def _over_doses(units: _Units, doses: Mapping[float, str]) -> pd.DataFrame:
    """Return the mean slope over doses; each size and seed that all doses have gives a least-squares line."""
    places = [_places(units.runs, curve) for curve in doses.values()]
    shared = [key for key in places[0] if all(key in of for of in places)]
    if not shared:
        return pd.DataFrame()
    rows = np.asarray([[of[key] for key in shared] for of in places], dtype=np.intp)
    dose = np.asarray(list(doses)) - np.mean(list(doses))
    slopes = np.tensordot(dose / (dose**2).sum(), units.accuracy[rows], 1)
    runs = units.runs.iloc[rows[-1]]
    result = estimate(slopes, runs, slope=False)
    left = len({key for of in places for key in of}) - len(shared)
    note = f"{left} sizes and seeds without all doses are left out." if left else ""
    return units.table.assign(
        over=ALL_SIZES, accuracy=np.nan, other_accuracy=np.nan, **result.columns(), paired=True, runs=len(shared),
        sizes=runs["size"].nunique(), note=" ".join(filter(None, (result.note, note))),
    )  # fmt: skip


def _tested(table: pd.DataFrame, margin: float | None, confidence: float) -> pd.DataFrame:
    """Add the interval, p values and whether the interval lies within the margin."""
    table = table.astype(dict.fromkeys(NUMBERS, np.float64))
    flat = table["se"] ** 2 < ROUNDING
    table.loc[flat, ["se", "df"]] = np.nan
    table.loc[flat, "note"] = ("All differences are equal; too few pairs: no interval. " + table["note"]).str.strip()
    half = student.ppf(0.5 + confidence / 2, table["df"]) * table["se"]
    table["low"], table["high"] = table["difference"] - half, table["difference"] + half
    table["p"] = 2 * student.sf((table["difference"] / table["se"]).abs(), table["df"])
    alone = table["level"].isin(["overall", SCOPE])
    family = table["name"].where(alone, table["curve"] + table["other"] + table["dose"])
    keys = ["benchmark", "method", "kind", "over", "level", family.rename("family")]
    table["p_holm"] = table.groupby(keys, dropna=False)["p"].transform(lambda p: holm(p.to_numpy()))
    table["equivalent"] = pd.Series(pd.NA, table.index, dtype="boolean")
    if margin is not None:
        known = table["low"].notna() & (table["over"] != PER_DOUBLING)
        table.loc[known, "equivalent"] = (table["low"] > -margin) & (table["high"] < margin)
    return table
