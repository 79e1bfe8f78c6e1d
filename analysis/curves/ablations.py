"""What removing a construction from the training text changes, from the long table.

Start at ablation_effects. Runs that share a size and a seed read the same permutation of the text and start from the
same weights, so each treatment is compared with its matched control (and with the full text) pair by pair.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np
import pandas as pd

from analysis.curves.comparisons import add_tests
from analysis.curves.lines import ROUNDING, Numbers
from analysis.curves.units import TRAJECTORIES, Curve, at_common_sizes, join_notes, partners, read_curves
from pairscale.errors import InputError, first_few

NONE, REMOVE, CONTROL = "none", "remove", "control"  # actions in the column `action` of runs()
TREATMENT_CONTROL, TREATMENT_FULL, CONTROL_FULL = "treatment - control", "treatment - full", "control - full"
OVER_DOSES = "dose 1 - dose 0"  # the slope over doses: accuracy gained from none of the construction to all of it
ALL_SIZES, PER_DOUBLING = "all sizes", "per doubling"  # values of the column `over`, next to the sizes
SCOPE, DIRECT, SAME, REST = "scope", "tests the construction", "same phenomena", "other phenomena"
LEAST_DOSES = 3  # for a slope over doses; the full text is one of them
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
    """Estimate what each intervention in the training text changes.

    Three kinds of comparison: each treatment less its matched control (of sentences that were removed), each treatment
    less the full text, and each control less the full text, which checks that removing as many other sentences
    changes nothing. A construction with three or more doses also gets the slope of accuracy over doses.

    Paired runs have the same size and seed; runs without a partner are left out and named in `note`. The interval of
    their differences is that of `analysis.curves.lines.estimate`: the paired t test at one size, else HC3 (MacKinnon
    and White 1985) with Student's t. Two curves without any pair of runs are independent: Welch's (1947) degrees of
    freedom. docs/guides/ablation_statistics.md has the rest.

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
    if missing := [name for name in ("study", "run", *INTERVENTION) if name not in runs]:
        raise InputError(f"The table of runs lacks {', '.join(missing)}. Give the table of runs(study).")
    known = accuracies.drop(columns=INTERVENTION, errors="ignore").merge(
        runs[["study", "run", *INTERVENTION]], on=["study", "run"], validate="many_to_one"
    )
    known = known[~known["unit"].isin(TRAJECTORIES)]
    parts = [rows for curves in read_curves(known) for rows in _compared(curves, direct or {}, paired)]
    if not parts:
        return pd.DataFrame(columns=COLUMNS)
    table = pd.concat(parts, ignore_index=True)
    flat = table["se"] ** 2 < ROUNDING
    table.loc[flat, ["se", "df"]] = np.nan
    table["note"] = join_notes(
        np.where(flat, "All differences are equal; too few pairs: no interval.", ""), table["note"]
    )
    alone = table["level"].isin(["overall", SCOPE])
    family = table["name"].where(alone, table["curve"] + table["other"] + table["dose"])
    table = add_tests(table, ["benchmark", "method", "kind", "over", "level", family], margin, confidence)
    table["equivalent"] = table["equivalent"].mask(table["over"] == PER_DOUBLING)
    return table[COLUMNS]


def main_effects(effects: pd.DataFrame) -> pd.DataFrame:
    """Return the rows to state first: each treatment over all sizes, against its control or else the full text.

    Only the units overall and, where they are known, the scopes; `effects` is the table of `ablation_effects`.
    """
    rows = effects[effects["kind"].isin([TREATMENT_CONTROL, TREATMENT_FULL]) & (effects["over"] == ALL_SIZES)]
    controlled = rows.groupby(["benchmark", "method", "curve"])["kind"].transform(
        lambda of: (of == TREATMENT_CONTROL).any()
    )
    rows = rows[(rows["kind"] == TREATMENT_CONTROL) | ~controlled]
    return rows[rows["level"].isin(["overall", SCOPE])].reset_index(drop=True)


def _compared(curves: list[Curve], direct: Mapping[str, Collection[str]], paired: bool) -> Iterator[pd.DataFrame]:
    """Yield the estimates of each comparison in one benchmark."""
    by_name = {curve.name: curve for curve in curves}
    runs = pd.concat([curve.runs for curve in curves])
    for about in comparisons(runs):
        first, second = (_with_scopes(by_name[about[key]], direct, about["construction"]) for key in ("curve", "other"))
        yield _differences(first, second, paired).assign(benchmark=first.benchmark, method=first.method, **about)
    removed = runs[runs["action"] == REMOVE]
    for (base, construction), of in removed.groupby(["base", "construction"], sort=False):
        full = runs[(runs["action"] == NONE) & (runs["base"] == base)].assign(dose="1")
        doses = {float(Fraction(dose)): name for dose, name in pd.concat([of, full])[["dose", "curve"]].to_numpy()}
        of_doses = [_with_scopes(by_name[name], direct, str(construction)) for _, name in sorted(doses.items())]
        if len(doses) >= LEAST_DOSES and len((rows := _pairs(of_doses))[0]):
            yield _over_doses(of_doses, rows, sorted(doses)).assign(
                benchmark=of_doses[0].benchmark, method=of_doses[0].method, kind=OVER_DOSES, base=str(base),
                construction=str(construction), action=REMOVE, dose="", curve=of_doses[0].name, other="",
            )  # fmt: skip


def _with_scopes(curve: Curve, direct: Mapping[str, Collection[str]], construction: str) -> Curve:
    """Mark the paradigms that test the construction, and add their mean and the means of the other paradigms."""
    units = curve.units
    paradigms = units["level"] == "paradigm"
    tests = paradigms & units["name"].isin(list(direct.get(construction, ())))
    units = units.assign(direct=tests)
    if not tests.any():
        return curve._replace(units=units)
    same = paradigms & units["phenomenon"].isin(units.loc[tests, "phenomenon"])
    scopes = {DIRECT: tests, SAME: same & ~tests, REST: paradigms & ~same}
    scopes = {name: of for name, of in scopes.items() if of.any()}
    rows = pd.DataFrame({
        "level": SCOPE, "name": list(scopes), "paradigms": [int(of.sum()) for of in scopes.values()], "left_out": "",
        "pairs": [units.loc[of, "pairs"].sum(min_count=1) for of in scopes.values()],
        "direct": [name == DIRECT for name in scopes],
    })  # fmt: skip
    means = [curve.accuracy[:, of.to_numpy()].mean(axis=1) for of in scopes.values()]
    return curve._replace(
        accuracy=np.column_stack([*means, curve.accuracy]),
        units=pd.concat([rows.astype({"pairs": "Int64"}), units], ignore_index=True),
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


def _pairs(curves: Sequence[Curve]) -> list[Numbers]:
    """Return the rows of the runs whose size and seed all curves have. Raises InputError for two of a curve."""
    for curve in curves:
        keys = curve.runs[["size", "seed"]].dropna()
        for size, seed in keys[keys.duplicated()].to_numpy()[:1]:
            raise InputError(
                f"Curve {curve.name} has two runs of size {size} and seed {seed}. Give them different curves."
            )
    return partners(curves, ["size", "seed"])


def _differences(curve: Curve, other: Curve, paired: bool) -> pd.DataFrame:
    """Return the differences of two curves over all sizes, at each size and per doubling, a row per unit."""
    rows = _pairs([curve, other]) if paired else [np.empty(0, np.intp)]
    paired = len(rows[0]) > 0
    sides = (curve.of(rows[0]), other.of(rows[1])) if paired else at_common_sizes(curve, other)
    sizes = list(dict.fromkeys(sides[0].labels))
    if not sizes:
        note = "The two curves have no size in common."
        unknown = dict.fromkeys(["accuracy", "other_accuracy", "difference", "se", "df"], np.nan)
        return curve.units.assign(over=ALL_SIZES, paired=False, runs=0, sizes=0, note=note, **unknown)
    used = {run for of in sides for run in of.runs["run"]}
    left = [run for of in (curve, other) for run in of.runs["run"] if run not in used]
    left_out = f"Left out because no run of the other curve fits: {first_few(left)}." if left else ""
    parts = []
    for over in [ALL_SIZES, *sizes, PER_DOUBLING] if len(sizes) > 1 else [ALL_SIZES]:
        slope = over == PER_DOUBLING
        a, b = sides if slope or over == ALL_SIZES else (of.at([over]) for of in sides)
        if paired:
            result = a._replace(accuracy=a.accuracy - b.accuracy).estimate(slope)
        else:
            result = a.estimate(slope).less(b.estimate(slope))
        parts.append(curve.units.assign(
            over=over, accuracy=np.nan if slope else a.accuracy.mean(axis=0),
            other_accuracy=np.nan if slope else b.accuracy.mean(axis=0), **result.columns(), paired=paired,
            runs=len(a.x) if paired else len(a.x) + len(b.x), sizes=len(set(a.labels)),
            note=join_notes(result.note, left_out, curve.units["left_out"]),
        ))  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def _over_doses(curves: Sequence[Curve], rows: Sequence[Numbers], doses: Sequence[float]) -> pd.DataFrame:
    """Return the mean slope over doses; each size and seed that all doses have gives a least-squares line."""
    used = [of.of(shared) for of, shared in zip(curves, rows, strict=True)]
    dose = np.asarray(doses) - np.mean(doses)
    slopes = np.tensordot(dose / (dose**2).sum(), np.stack([of.accuracy for of in used]), 1)
    result, units = used[-1]._replace(accuracy=slopes).estimate(slope=False), curves[0].units
    places = {place for of in curves for place in zip(of.labels, of.runs["seed"], strict=True)}
    left = len(places) - len(slopes)
    note = f"{left} sizes and seeds without all doses are left out." if left else ""
    return units.assign(
        over=ALL_SIZES, accuracy=np.nan, other_accuracy=np.nan, **result.columns(), paired=True, runs=len(slopes),
        sizes=len(set(used[-1].labels)), note=join_notes(result.note, note, units["left_out"]),
    )  # fmt: skip
