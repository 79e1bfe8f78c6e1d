"""The share of what was learned of a unit that survives an intervention: (treatment - chance) / (control - chance)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import t as student

from analysis.config import CurvesConfig
from analysis.curves.ablations.effects import Estimate, Matched, contrast_of, degrees_correction, estimate
from analysis.curves.intervals import Interval, judgement_floor, run_terms
from analysis.curves.units import Units, paradigm_accuracies
from analysis.curves.variance import Array
from analysis.curves.words_to_people import fieller

CHANCE = 0.5
NOT_ABOVE = "the other runs may be at chance"
BELOW = "the other runs are below chance"
UNBOUNDED = "unbounded: too close to chance"


@dataclass(frozen=True)
class Baseline:
    """The accuracy of chance in each unit, with its variance, each (U,), and its description."""

    accuracy: Array
    variance: Array
    label: str


def chance(units: Units) -> Baseline:
    """Return the accuracy of guesses."""
    of_unit = np.ones(len(units.table))
    return Baseline(CHANCE * of_unit, 0 * of_unit, "chance (.5)")


def untrained_baseline(outcome: Array, units: Units) -> Baseline:
    """Return the mean of (R, P) outcomes of untrained models; of one model, with the variance of its judgements."""
    y = paradigm_accuracies(outcome, units.bounds) @ units.weights
    least = judgement_floor(outcome, np.full(len(y), 1 / len(y)), np.zeros(len(y), dtype=np.intp), units)
    between = y.var(axis=0, ddof=1) / len(y) if len(y) > 1 else 0 * least
    models = "an untrained model" if len(y) == 1 else f"{len(y)} untrained models"
    return Baseline(y.mean(axis=0), np.maximum(between, least), models)


def surviving_shares(matched: Matched, baseline: Baseline, config: CurvesConfig) -> pd.DataFrame:
    """Return the units with share, low, high, and a note where they have no limits or no share (NaN).

    Limits by Fieller 1954 over new runs, for these pairs, with the covariance of paired runs. The variances of both
    groups and of their difference have the floors of their intervals, and the covariance follows from the three.
    Degrees of freedom are those of treatment - share x control.
    """
    first, second = (
        estimate(outcome, design, matched.units)
        for outcome, design in zip((matched.first, matched.second), matched.designs, strict=True)
    )
    change = matched.difference()
    top, bottom = first.value - baseline.accuracy, second.value - baseline.accuracy
    share = top / np.where(bottom == 0, np.nan, bottom)
    of_top, of_bottom = (of.errors.runs**2 + baseline.variance for of in (first, second))
    covariance = (of_top + of_bottom - change.errors.runs**2) / 2
    degrees = _degrees(matched, change, share)
    quantile = np.asarray(student.ppf(0.5 + config.confidence / 2, degrees))
    low, high, bounded = fieller(top, bottom, (of_top, of_bottom, covariance), quantile)
    half = student.ppf(0.5 + config.confidence / 2, second.errors.degrees) * np.sqrt(of_bottom)
    above, below = bottom > half, bottom < -half
    known = above & bounded & ~np.isnan(half)
    note = np.select(
        [np.isnan(half), below, ~above, ~bounded],
        [change.note or second.note or "no interval", BELOW, NOT_ABOVE, UNBOUNDED], "",
    )  # fmt: skip
    return matched.units.table.assign(
        share=np.where(above, share, np.nan), low=np.where(known, low, np.nan),
        high=np.where(known, high, np.nan), baseline=baseline.label, note=note,
    )  # fmt: skip


def _degrees(matched: Matched, change: Estimate, share: Array) -> Array:
    """Return the (U,) degrees of freedom of the first group's mean less `share` times the other's."""
    methods = [contrast_of(design) for design in matched.designs]
    if not matched.paired or Interval.NONE in (method for method, *_ in methods):
        return change.errors.degrees
    first, second = (
        paradigm_accuracies(of, matched.units.bounds) @ matched.units.weights for of in (matched.first, matched.second)
    )
    method, _, c = methods[0]
    terms = run_terms(method, matched.designs[0], c)
    return terms.degrees(first - np.nan_to_num(share) * second, degrees_correction(matched.designs[0]))
