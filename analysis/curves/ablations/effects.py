"""Differences between groups of runs: estimates, limits, p values and tests of equivalence.

A difference of paired runs is analysed as one outcome, which lies between -1 and 1: the variance over runs is that of
the pairs' differences, each size with a spread of its own (paired t at one size; Satterthwaite 1946 over several), so
that what both runs share (text, initialisation) drops out. Runs without a partner are two independent groups (Welch
1947). "New pairs too" adds the variance over pairs within paradigms, crossed with runs (analysis/curves/variance.py).

A few runs that happen to agree show too little variance, near a ceiling none: estimates are raised to what chance in
single judgements makes plausible (analysis.curves.intervals.plausible). Where few single judgements differ between
paired runs, no limits cover exactly 95%: most studies then show the same difference, 0, and limits that contain the
truth at all contain it in more of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves.ablations.matching import Comparison
from analysis.curves.designs import Design, design_of
from analysis.curves.intervals import (
    Errors,
    Interval,
    at_least,
    contrast_errors,
    interval_method,
    mean_method,
    t_limits,
)
from analysis.curves.p_values import equivalence, two_sided
from analysis.curves.units import Units, paradigm_accuracies
from analysis.curves.variance import Array, pair_variance, satterthwaite
from analysis.study.judgements import Judgements

DEGREES_CORRECTION = 1  # with three runs a size, normal limits hold 93.0 to 96.0%; uncorrected ones 93.6 to 96.6%
CORRECTION_OF_TWO_RUNS = 2  # with two, 90.9 to 96.1% (uncorrected ones 94.6 to 98.1%), and the floor holds more
ALL_SIZES, PER_DOUBLING = "all sizes", "per doubling"  # what a difference is over; else one size
FEW_DIFFERING = 20  # judgements: with fewer, 95% limits contain the truth in up to 99.6% of studies
LEAST_SIZES = 3  # two sizes are a difference, not a slope
INDEPENDENT = "independent groups"


@dataclass(frozen=True)
class Estimate:
    """Values with their errors over new runs, each (U,).

    note: why errors are NaN, or what limits rest on.
    """

    value: Array
    errors: Errors
    method: str
    note: str

    def limits(self, confidence: float) -> list[Array]:
        """Return low and high for these pairs, then low and high for new pairs too."""
        these = t_limits(self.value, self.errors.runs, self.errors.degrees, confidence)
        both = t_limits(self.value, self.errors.both, self.errors.degrees_both, confidence)
        return [*these, *at_least(both, these)]

    def columns(self, confidence: float, margin: float | None = None) -> dict[str, Array]:
        """Return difference, limits, p values and, with a `margin`, the p value of the test of equivalence."""
        low, high, low_both, high_both = self.limits(confidence)
        p = two_sided(self.value, self.errors.runs, self.errors.degrees)
        columns = {
            "difference": self.value, "low": low, "high": high, "low_new_pairs": low_both,
            "high_new_pairs": high_both, "p": p,
            "p_new_pairs": np.maximum(p, two_sided(self.value, self.errors.both, self.errors.degrees_both)),
        }  # fmt: skip
        if margin is not None:
            columns["p_tost"] = equivalence(self.value, self.errors.runs, self.errors.degrees, margin)
        return columns


def contrast_of(design: Design, slope: bool = False) -> tuple[Interval, str, Array]:
    """Return the interval of a mean over sizes, or of a slope, a note on it, and the (R,) weights of runs.

    Each size has its own spread from two runs on: HC3 takes how differences bend over sizes for spread.
    """
    method, note = interval_method(design, "t") if slope else mean_method(design)
    method = Interval.T_SIZES if method == Interval.T_BENT else method
    return method, note, design.contrast if slope else design.mean_weights


def degrees_correction(design: Design) -> float:
    """Return the correction of degrees of freedom (`RunTerms.degrees`) for how few runs a size has."""
    return CORRECTION_OF_TWO_RUNS if design.counts.min() == 2 else DEGREES_CORRECTION


def estimate(outcome: Array, design: Design, units: Units, slope: bool = False) -> Estimate:
    """Estimate the mean over sizes, equally weighted, of (R, P) outcomes, or their slope per doubling of the text."""
    method, note, c = contrast_of(design, slope)
    outcome = outcome.astype(np.float64)
    y = paradigm_accuracies(outcome, units.bounds) @ units.weights
    errors = contrast_errors(method, c, y, outcome, design, units, degrees_correction(design))
    return Estimate(c @ y, errors, method.value, note)


def independent(first: Array, second: Array, designs: tuple[Design, Design], units: Units, slope: bool) -> Estimate:
    """Estimate the difference of two groups without pairs of runs: outcomes (R, P) of the first less the second."""
    a, b = (estimate(outcome, design, units, slope) for outcome, design in zip((first, second), designs, strict=True))
    c, d = (contrast_of(design, slope)[2] for design in designs)
    x, y = a.errors, b.errors
    of_pairs = pair_variance(c @ first - d @ second, units.bounds, units.weights) - x.chance - y.chance
    variances = np.stack([x.runs**2, y.runs**2, np.maximum(of_pairs, 0)])
    free = np.stack([x.degrees, y.degrees, units.pair_degrees])
    degrees, degrees_both = (satterthwaite(variances[:n], free[:n], DEGREES_CORRECTION) for n in (2, 3))
    errors = Errors(
        np.sqrt(variances[:2].sum(axis=0)), degrees, np.sqrt(variances.sum(axis=0)), degrees_both,
        x.chance + y.chance, x.floor + y.floor, x.text + y.text,
    )  # fmt: skip
    notes = dict.fromkeys(filter(None, (a.note, b.note)))
    return Estimate(a.value - b.value, errors, f"{a.method}, {INDEPENDENT}", "; ".join(notes))


@dataclass(frozen=True)
class Matched:
    """The outcomes of a comparison, at all sizes or at one: (R, P) of the first group and of the other."""

    first: Array
    second: Array
    designs: tuple[Design, Design]
    paired: bool
    units: Units

    def difference(self, slope: bool = False) -> Estimate:
        """Estimate the first group's mean, or slope, less the other's."""
        if not self.paired:
            return independent(self.first, self.second, self.designs, self.units, slope)
        return estimate(self.first - self.second, self.designs[0], replace(self.units, differences=True), slope)

    def differing(self) -> Array:
        """Return the (U,) judgements that differ between paired runs, NaN without pairs of runs."""
        if not self.paired:
            return np.full(len(self.units.table), np.nan)
        of_paradigm = np.add.reduceat(np.abs(self.first - self.second).sum(axis=0), self.units.bounds[:-1])
        return np.asarray(of_paradigm @ (self.units.weights > 0))

    def accuracies(self) -> tuple[Array, Array]:
        """Return the (U,) mean accuracies of both groups, sizes equally weighted."""
        first, second = (
            design.mean_weights @ paradigm_accuracies(of, self.units.bounds) @ self.units.weights
            for of, design in zip((self.first, self.second), self.designs, strict=True)
        )
        return first, second


def matched(judged: Judgements, comparison: Comparison, units: Units, size: str | None = None) -> Matched:
    """Return the outcomes of a comparison; `size`: of the runs of one size alone."""
    rows = [comparison.rows, comparison.other_rows]
    if size is not None:
        rows = [of[(judged.runs["size"].iloc[of] == size).to_numpy()] for of in rows]
    first, second = (judged.outcome[of].astype(np.float64) for of in rows)
    designs = design_of(judged.runs.iloc[rows[0]]), design_of(judged.runs.iloc[rows[1]])
    return Matched(first, second, designs, comparison.paired, units)


def differences(
    judged: Judgements, comparison: Comparison, units: Units, sizes: list[str], config: CurvesConfig
) -> pd.DataFrame:
    """Return the differences of a comparison, a row per unit over all sizes, at each and, given three, per doubling.

    Columns of ablations.DIFFERENCES but those of several comparisons. P values are of all sizes and per doubling alone,
    tests of equivalence of all sizes alone.
    """
    parts = []
    for over in [ALL_SIZES, *sizes, *([PER_DOUBLING] if len(sizes) >= LEAST_SIZES else [])]:
        of = matched(judged, comparison, units, over if over in sizes else None)
        means = (np.full(len(units.table), np.nan),) * 2 if over == PER_DOUBLING else of.accuracies()
        result = of.difference(slope=over == PER_DOUBLING)
        columns = result.columns(config.confidence, config.ablation_margin if over == ALL_SIZES else None)
        if over in sizes:
            columns |= dict.fromkeys(("p", "p_new_pairs"), np.full(len(units.table), np.nan))
        table = units.table.assign(over=over, first=means[0], second=means[1], differing=of.differing(), **columns)
        pairs = len(of.first) if of.paired else 0
        about = {"runs": len(of.first) + len(of.second), "pairs": pairs, "sizes": len(sizes)}
        parts.append(table.assign(**about, method=result.method, note=result.note))
    return pd.concat(parts, ignore_index=True)
