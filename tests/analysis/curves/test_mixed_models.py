"""The binomial mixed model against its likelihood, explicit refits, and simulated studies near the ceiling."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import binom

from analysis.curves.designs import Design
from analysis.curves.mixed_models import COLUMNS, fit_binomial, mixed_slopes
from tests.support.judged_runs import judged_groups

PAIRS = 100


def design(sizes=4, seeds=2, **more):
    size, seed = (grid.ravel() for grid in np.meshgrid(range(sizes), range(seeds), indexing="ij"))
    return Design(17.0 + size, size, seed, **({"nested": False} | more))


def draw_judgements(rng, of, paradigms=8, level=1.0, slope=0.4, slope_sd=0.1, run_sd=0.2):
    """Return the simulated numbers (R, K) of right judgements of PAIRS pairs a paradigm."""
    x = of.x - of.x.mean()
    logits = rng.normal(level, 1, paradigms) + np.outer(x, rng.normal(slope, slope_sd, paradigms))
    logits = logits + rng.normal(0, run_sd, (len(x), 1)) + rng.normal(0, 0.1, (len(x), paradigms))
    return rng.binomial(PAIRS, expit(logits)).astype(float)


def fit_model(of, right, **more):
    return fit_binomial(of, right, np.full(right.shape[1], PAIRS), **more)


def test_the_slope_is_the_maximum_of_the_likelihood():
    of = design()
    right = draw_judgements(np.random.default_rng(0), of, paradigms=3)
    x = of.x - of.x.mean()

    def loss(p):
        return -binom.logpmf(right, PAIRS, expit(p[1:] + x[:, None] * p[0])).sum()

    best = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-8})
    assert fit_model(of, right)["slope"] == pytest.approx(best.x[0], abs=1e-5)


def refits(of, right, leave_out):
    """Return the slopes of statsmodels' GLM, each without the cells of one of the (R, K) masks `leave_out`."""
    x = of.x - of.x.mean()
    for mask in leave_out:
        run, paradigm = np.nonzero(~mask)
        exog = np.column_stack([x[run], pd.get_dummies(paradigm, dtype=float)])
        counts = np.column_stack([right[run, paradigm], PAIRS - right[run, paradigm]])
        yield sm.GLM(counts, exog, family=sm.families.Binomial()).fit().params[0]


def jackknife(of, right, leave_out):
    slopes = np.array(list(refits(of, right, leave_out)))
    slope = fit_model(of, right)["slope"]
    return (len(slopes) - 1) / len(slopes) * ((slopes - slope) ** 2).sum()


@pytest.mark.parametrize("nested", [False, True])
def test_the_error_is_that_of_leaving_out_runs_and_paradigms(nested):
    of = design(seeds=3, nested=nested)
    right = draw_judgements(np.random.default_rng(1), of, paradigms=4)
    run, paradigm = np.indices(right.shape)
    clusters = of.cluster[run]
    one = [clusters == cluster for cluster in np.unique(clusters)]
    other = [paradigm == k for k in range(4)]
    cells = [a & b for a in one for b in other]
    fit = fit_model(of, right)
    variances = [jackknife(of, right, masks) for masks in (one, other, cells)]
    expected = max(variances[0] + variances[1] - variances[2], *variances[:2])
    assert fit["error"] == pytest.approx(np.sqrt(expected), rel=0.05)  # one scoring step is not a whole refit
    assert fit["degrees"] == (2 if nested else 3)
    assert fit["over"] == ("seeds and paradigms" if nested else "runs and paradigms")


def test_near_the_ceiling_the_slope_is_unbiased_and_its_interval_covers_the_truth():
    """Linear mixed models of empirical logits gave .53 for this slope of .8 and covered it in 47% of studies."""
    of, rng = design(), np.random.default_rng(2)
    fits = []
    for _ in range(150):
        right = draw_judgements(rng, of, paradigms=8, level=4.5, slope=0.8, slope_sd=0.1, run_sd=0.2)
        fits.append(fit_model(of, right))
    table = pd.DataFrame(fits)
    assert table["slope"].mean() == pytest.approx(0.8, abs=0.05)
    covered = ((table["low"] < 0.8) & (table["high"] > 0.8)).mean()
    assert 0.91 <= covered <= 1.0


def test_two_paradigms_are_fixed_effects():
    of = design(seeds=5)
    right = draw_judgements(np.random.default_rng(3), of, paradigms=2)
    fit = fit_model(of, right)
    assert (fit["over"], fit["degrees"]) == ("runs", 18)
    run, _ = np.indices(right.shape)
    expected = jackknife(of, right, [run == r for r in range(20)])
    assert fit["error"] == pytest.approx(np.sqrt(expected), rel=0.05)


def test_paradigms_without_an_error_carry_no_information():
    of = design()
    right = draw_judgements(np.random.default_rng(4), of, paradigms=4)
    known = fit_model(of, right)
    more = fit_model(of, np.column_stack([right, np.full(8, PAIRS), np.zeros(8)]))
    assert more == known
    assert fit_model(of, np.full((8, 2), float(PAIRS)))["note"].startswith("all is right, or all is wrong")


@pytest.mark.parametrize(
    ("of", "note"),
    [
        (design(sizes=1, seeds=4), "one size only: no slope"),
        (design(sizes=2, seeds=1), "too few runs to leave one out: no interval, no model"),
        (design(trajectory=True), "checkpoints of one training"),
    ],
)
def test_a_note_says_why_there_is_no_model(of, note):
    fit = fit_model(of, draw_judgements(np.random.default_rng(5), of))
    assert fit["note"].startswith(note)
    assert "slope" not in fit


def test_a_likelihood_without_a_maximum_gives_no_slope():
    right = np.repeat([[90.0], [100.0], [100.0], [100.0]], 2, axis=0)
    assert "the log-odds have no slope" in fit_model(design(), right)["note"]


def test_the_table_has_a_row_for_each_group():
    sizes = np.repeat([1000, 2000, 4000], 2)
    accuracies = 0.5 + 0.1 * np.log2(sizes / 1000)
    judged = judged_groups({"a": (accuracies, sizes), "b": (accuracies[:2], sizes[:2])})
    table = mixed_slopes(judged, 0.95)
    assert list(table.columns) == COLUMNS
    table = table.set_index(["group", "name"])
    assert len(table) == 2 * 3
    right = judged.outcome[:6, :200].sum(axis=1)
    exog = sm.add_constant(np.log2(sizes))
    reference = sm.GLM(np.column_stack([right, 200 - right]), exog, family=sm.families.Binomial()).fit()
    assert table.loc[("a", "p"), "slope"] == pytest.approx(reference.params[1])
    assert table.loc[("a", "overall"), "over"] == "runs"
    assert table.loc[("a", "p"), ["low", "high"]].notna().all()
    assert table.loc[("b", "p"), "note"] == "one size only: no slope"
    assert pd.isna(table.loc[("b", "p"), "slope"])


def test_samples_that_share_most_of_their_text_give_a_slope_without_limits():
    of = design(seeds=3)
    right = draw_judgements(np.random.default_rng(0), of)
    alone, shared = fit_model(of, right), fit_model(design(seeds=3, overlap=np.full(12, 0.8)), right)
    assert shared["slope"] == alone["slope"]
    assert "low" not in shared
    assert shared["note"] == "samples of a size share up to 80% of their text: no interval"
