"""With two runs a size the units of a study decide together which errors count, and how few degrees they have."""

import numpy as np
import pytest

from analysis.config import CurvesConfig
from analysis.curves.comparisons import compare_slopes
from analysis.curves.designs import Design
from analysis.curves.fit import fit_curves
from analysis.curves.groups import fit_group
from analysis.curves.intervals import Interval, of_curves, run_terms
from analysis.plan.errors import SimulatedErrors
from tests.support.judged_runs import judged_groups
from tests.support.simulated_judgements import SimulatedJudgements

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=50, seed=1)


def design_of(sizes):
    size = np.repeat(np.arange(sizes), 2)
    return Design(1.0 * size, size, np.tile(np.arange(2), sizes), False)


def noise(design, units=30):
    return np.random.default_rng(0).normal(0, 0.01, (len(design.x), units))


@pytest.mark.parametrize(("sizes", "bend", "method"), [
    (10, 0.0, Interval.T_HC3), (10, 0.01, Interval.T_POOLED),
    (3, 0.0, Interval.T_POOLED), (2, 0.0, Interval.T_POOLED),
])  # fmt: skip
def test_errors_about_the_line_count_unless_curves_bend(sizes, bend, method):
    design = design_of(sizes)
    y = noise(design) + bend * (design.x[:, None] - design.x.mean()) ** 2
    assert of_curves(Interval.T_BENT, design, y) == method
    assert of_curves(Interval.T_SIZES, design, y) == Interval.T_SIZES


def test_a_unit_whose_runs_agree_does_not_decide_for_the_others():
    """Its own errors are 0, or as large as rounding, and errors about the line are none the less those of a curve."""
    design = design_of(10)
    y = noise(design)
    y[:, 0] = 0.1 * np.round(np.linspace(5, 8, 10), 1)[design.size]
    assert of_curves(Interval.T_BENT, design, y) == Interval.T_HC3
    y[:, 0] = 0.9
    assert of_curves(Interval.T_BENT, design, y) == Interval.T_HC3
    assert (run_terms(Interval.T_POOLED, design, design.contrast).degrees(y) > 1).all()


def test_slopes_bands_and_differences_rest_on_the_same_errors():
    """A straight curve and a bent one: each decides for itself, and both are compared by each size's own spread."""
    sizes = np.repeat(1000 * 2 ** np.arange(10), 2)
    x, spread = np.log2(sizes / 1000), np.tile([-0.02, 0.02], 10)
    curves = {"a": (0.5 + 0.02 * x + spread, sizes), "b": (0.5 + 0.004 * x**2 + spread, sizes)}
    judged = judged_groups(curves, pairs=2000)
    methods = fit_curves(judged, CONFIG).slopes.groupby("group")["method"].agg(set)
    assert methods.to_dict() == {"a": {Interval.T_HC3.value}, "b": {Interval.T_POOLED.value}}
    differences = compare_slopes(judged, CONFIG)
    assert set(differences["method"]) == {Interval.T_BENT.value}
    assert differences["low"].notna().all()


@pytest.mark.parametrize("paradigms", [1, 6])
def test_the_planner_draws_the_units_that_decide(paradigms):
    """Of many studies, as often as in studies that are simulated and analysed."""
    cell = SimulatedJudgements(2, 5, run_sd=(0.2, 0.2), paradigms=((0.6, 0.02),) * paradigms, pairs=400)
    covariance = 0.02**2 * np.eye(10)
    errors = SimulatedErrors.drawn(cell.design, Interval.T_BENT, covariance, paradigms, 4000)
    np.testing.assert_allclose(errors.values.var(axis=1), 0.02**2, rtol=0.1)
    rng, bent = np.random.default_rng(1), []
    for _ in range(300):
        outcome, _ = cell.draw(rng, cell.draw_pairs(rng))
        bent.append(fit_group("one", outcome, cell.design, cell.units, "auto").method == Interval.T_POOLED)
    assert errors.bent.mean() == pytest.approx(np.mean(bent), abs=0.1)
    if paradigms == 1:  # the unit decides alone, and its degrees of freedom are its own
        own = run_terms(Interval.T_SIZES, cell.design, cell.design.contrast).degrees(errors.values)
        np.testing.assert_allclose(errors.degrees(cell.design.contrast)[errors.bent], own[errors.bent])
