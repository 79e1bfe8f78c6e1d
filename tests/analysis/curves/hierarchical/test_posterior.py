"""Slopes, orders, checks and the diagnosis of draws that are known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

from analysis.config import CurvesConfig
from analysis.curves.fit import fit_curves
from analysis.curves.hierarchical.checks import diagnose, predictive_rows, replicated
from analysis.curves.hierarchical.counts import KINDS, counts_of
from analysis.curves.hierarchical.diagnosis import Diagnosis
from analysis.curves.hierarchical.fit import APART, OTHER, SAME, beside_default, check_sampler, fit_hierarchical
from analysis.curves.hierarchical.posterior import (
    Posterior,
    acquired_at,
    diagnosed,
    difference_rows,
    rank_probabilities,
    rank_rows,
    slope_rows,
)
from analysis.curves.hierarchical.sampling import Sampling
from pairscale.errors import ConfigError, InputError
from tests.bench.hierarchical import judged_of
from tests.support.known_posterior import CELL, judgements, known_posterior, posterior_of
from tests.support.simulated_judgements import SimulatedJudgements

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=50, seed=1)
GOOD = Diagnosis(1.001, 900, 1.01, 300, 0, 2000, 4, 10.0)


@pytest.fixture(scope="module")
def judged():
    return judgements()


@pytest.fixture(scope="module")
def posterior(judged):
    return known_posterior(judged)


def test_slopes_are_those_of_lines_through_sizes(posterior):
    rows = slope_rows(posterior, 0.95).set_index(["group", "name"])
    first = rows.loc["model 0"]
    np.testing.assert_allclose(first["slope"][["paradigm_0", "paradigm_3"]], [0.01, 0.04], atol=2e-4)
    np.testing.assert_allclose(first["slope"][["a", "overall"]], [0.02, 0.025], atol=2e-4)
    assert first["high"]["paradigm_0"] - first["low"]["paradigm_0"] == pytest.approx(2 * 1.96 * 0.001, rel=0.1)
    assert first.loc["paradigm_3", ["rank", "rank_low", "rank_high"]].tolist() == [1, 1, 1]
    assert first["r_hat"].max() < 1.02
    assert first["effective"].min() > 500


def test_chains_of_different_spread_do_not_agree():
    rng = np.random.default_rng(1)
    same = rng.normal(size=(4, 500, 2))
    wide = same * np.array([3.0, 1.0, 1.0, 1.0])[:, None, None]
    shifted = same + np.array([0.5, 0.0, 0.0, 0.0])[:, None, None]
    for draws, agree in ((same, True), (wide, False), (shifted, False), (np.full((4, 500, 2), 0.3), True)):
        r_hat, effective = diagnosed(draws)
        assert ((r_hat < 1.01) == agree).all()
        assert ((effective > 1000) == agree).all()
    walk = np.repeat(rng.normal(size=(4, 50, 1)), 10, axis=1)  # each draw ten times
    assert 100 < diagnosed(walk)[1][0] < 400


def test_differences_of_slopes(posterior):
    rows = difference_rows(posterior, 0.95).set_index("name")
    assert rows.loc["overall", "difference"] == pytest.approx(0.0125, abs=2e-4)
    assert rows.loc["overall", "steeper"] == 1
    assert (rows["sizes"] == 4).all()


def test_slopes_and_default_ones_are_of_the_sizes_that_are_kept(monkeypatch):
    """The only run of the largest size of one model is left out of both."""
    monkeypatch.setattr(Sampling, "sample", lambda _, counts: iter([(0, posterior_of(counts))]))
    every = judgements()
    judged = every.of_runs(every.runs.index[:-1])
    ((_, of),) = fit_hierarchical(judged, fit_curves(judged, CONFIG), CONFIG)
    assert of.notes[0].startswith("model 1: one run at 3: left out of the hierarchical model")
    table = of.slopes.set_index(["group", "name"])
    assert table["to_size"].groupby("group").first().tolist() == ["3", "2"]
    assert table["sizes"].groupby("group").first().tolist() == [4, 3]
    assert of.differences["sizes"].unique().tolist() == [3]
    y = np.asarray(judged.outcome).mean(axis=1)[8:14].reshape(3, 2).mean(axis=1)
    by_hand = np.polyfit(np.log2(judged.runs["sample_words"].to_numpy(dtype=float)[8:14:2]), y, 1)[0]
    assert table.loc[("model 1", "overall"), "default"] == pytest.approx(by_hand, rel=1e-6)


def test_units_are_acquired_where_they_cross_for_good():
    x = np.asarray([10.0, 11.0, 12.0])
    accuracy = np.asarray([[0.7, 0.5, 0.5, 0.7], [0.7, 0.7, 0.5, 0.5], [0.7, 0.6, 0.5, 0.7]])
    np.testing.assert_allclose(acquired_at(accuracy, x, 0.6), [-np.inf, 10.5, np.inf, 11.5])


def test_units_that_are_equal_share_ranks():
    probability = rank_probabilities(np.asarray([[1.0, 2.0, 2.0], [3.0, 1.0, 2.0]]))
    np.testing.assert_allclose(probability, [[0.5, 0, 0.5], [0.5, 0.25, 0.25], [0, 0.75, 0.25]])
    np.testing.assert_allclose(probability.sum(axis=0), 1)


def test_ranks_of_orders(posterior):
    rows = rank_rows(posterior, 0.1)
    first = rows[(rows["group"] == "model 0") & (rows["rank"] == 1) & (rows["level"] == "paradigm")]
    chosen = first.set_index(["by", "name"])["probability"]
    assert chosen["slope", "paradigm_3"] == 1
    sums = rows.groupby(["group", "by", "level", "name"])["probability"].sum()
    np.testing.assert_allclose(sums, 1)


def test_simulated_runs_are_like_those_of_the_posterior(posterior, judged):
    rng = np.random.default_rng(3)
    rows = predictive_rows(posterior, 0.95, rng)
    assert set(rows["quantity"]) == {"accuracy", "spread between runs"}
    at = rows[(rows["size"] == "0") & (rows["group"] == "model 0") & (rows["quantity"] == "accuracy")].iloc[0]
    # binomial chance of 200 pairs, and deviations of .05 logits of runs, phenomena and cells
    variance = 0.24 / 200 / np.mean(posterior.counts.alike) + 0.24**2 * 0.05**2 * (1 + 1 / 4 + 0.2)
    assert at["high"] - at["low"] == pytest.approx(2 * norm.ppf(0.975) * np.sqrt(variance), rel=0.15)


def test_the_diagnosis_names_what_is_wrong(posterior):
    assert diagnose(posterior, slope_rows(posterior, 0.95)).refused == ""
    assert (GOOD.refused, GOOD.caution) == ("", "")
    assert "R-hat up to 1.080" in replace(GOOD, r_hat=1.08).refused
    assert "as few as 80 effective draws" in replace(GOOD, effective=80.0).refused
    assert "30 of 2,000 draws diverged" in replace(GOOD, divergences=30).refused
    assert replace(GOOD, divergences=3).refused == ""
    assert "3 of 2,000 draws diverged" in replace(GOOD, divergences=3).caution
    assert replace(GOOD, r_hat=float("nan")).refused


def test_intervals_beside_the_default(judged):
    curves = fit_curves(judged, CONFIG)
    default = curves.slopes
    rows = default[["group", "level", "name", "slope", "low", "high"]].copy()
    assert (beside_default(rows, curves)["beside"] == SAME).all()
    rising = default["low"] > 0
    rows.loc[rising, "low"] = -1.0
    assert (beside_default(rows, curves)["beside"] == OTHER).equals(rising)
    apart = rows.assign(low=1.0, high=2.0)
    assert (beside_default(apart, curves)["beside"] == APART).all()


def test_a_missing_extra_is_one_line(monkeypatch):
    check_sampler()
    monkeypatch.setattr("analysis.curves.hierarchical.fit.PACKAGES", ("numpyro", "no-such-sampler"))
    with pytest.raises(InputError, match=r'needs no-such-sampler.*pip install "pairscale\[bayes\]"'):
        check_sampler()


def test_values_out_of_range_are_refused():
    with pytest.raises(ConfigError, match=r"analysis\.model"):
        replace(CONFIG, model="bayesian")
    with pytest.raises(ConfigError, match=r"analysis\.draws"):
        replace(CONFIG, draws=1)


@pytest.mark.slow
def test_the_density_is_that_of_binomials_and_normals(judged):
    """The joint density of the model at a point, written anew with SciPy: one group, effects that are not centred."""
    from numpyro.infer.util import log_density

    from analysis.curves.hierarchical.model import judgements_model, values_of

    counts = counts_of(judged_of(CELL, [judged.outcome[:8]]))
    values = values_of(counts)
    values["centring"] = {name: value * 0 for name, value in values["centring"].items()}  # effects are z spread
    rng = np.random.default_rng(5)
    shapes = {
        **dict.fromkeys(KINDS, 1), **{f"phenomenon_{kind}": (1, 1) for kind in KINDS},
        **{f"paradigm_{kind}": (1, 2) for kind in KINDS},
        "run_spread": 1, "run_tilt": 1, "run_uneven": 4, "run_in_phenomenon_spread": 1, "run_in_phenomenon_tilt": 1,
        "run_in_phenomenon_uneven": 4, "cell_spread": 1, "cell_tilt": 1, "cell_uneven": 4, "run_effects": (8, 1),
        "run_in_phenomenon_effects": (8, 1), "cell_effects": (8, 4),
        "paradigm_uneven": 4,
    }  # fmt: skip
    point = {name: rng.normal(0, 0.1, shape) for name, shape in shapes.items()}
    scales = [f"{part}_{kind}_spread" for part in ("phenomenon", "paradigm") for kind in KINDS]
    point |= {name: np.asarray(rng.uniform(0.05, 0.2)) for name in ["bend_spread", *scales]}
    unevenness = [f"{name}_unevenness" for name in ("run", "run_in_phenomenon", "cell", "paradigm")]
    point |= {name: np.asarray(0.2) for name in unevenness}
    other = {name: value + rng.normal(0, 0.01, np.shape(value)) for name, value in point.items()}
    for name in [*scales, "bend_spread", *unevenness]:
        other[name] = np.abs(other[name])
    by_model = [float(log_density(judgements_model, (values,), {}, at)[0]) for at in (point, other)]
    by_hand = [_density(counts, at, scales, unevenness) for at in (point, other)]
    assert by_model[1] - by_model[0] == pytest.approx(by_hand[1] - by_hand[0], abs=0.05)


def _density(counts, at, scales, unevenness):
    medians = dict(zip(scales, (0.3, 0.03, 0.05, 0.05, 0.7, 0.07, 0.05, 0.05), strict=True)) | {"bend_spread": 0.05}
    total = sum(norm.logpdf(np.log(at[name]), np.log(median), 1) - np.log(at[name]) for name, median in medians.items())
    for kind, deviation in (("level", 1.5), ("slope", 0.3), ("curve", 0.3)):
        total += norm.logpdf(at[kind], 0, deviation).sum()
    # half of the bend's own parent is centred
    total += norm.logpdf(at["bend"], 0, at["bend_spread"] ** 0.5).sum()
    bend = at["bend"] * at["bend_spread"] ** 0.5
    for part in ("phenomenon", "paradigm"):
        for kind in KINDS:
            total += norm.logpdf(at[f"{part}_{kind}"], 0, 1).sum()
    rows = {
        part: np.concatenate([at[f"{part}_{kind}"] * at[f"{part}_{kind}_spread"] for kind in KINDS])
        for part in ("phenomenon", "paradigm")
    }
    spread = {}
    for name, median in (("run", 0.12), ("run_in_phenomenon", 0.06), ("cell", 0.12)):
        total += (
            norm.logpdf(at[f"{name}_spread"], np.log(median), 1).sum() + norm.logpdf(at[f"{name}_tilt"], 0, 0.15).sum()
        )
        total += norm.logpdf(at[f"{name}_unevenness"], 0, 0.3) + norm.logpdf(at[f"{name}_uneven"]).sum()
        logs = at[f"{name}_spread"] + at[f"{name}_tilt"] * counts.doublings
        spread[name] = np.exp(logs + at[f"{name}_unevenness"] * at[f"{name}_uneven"])
        total += norm.logpdf(at[f"{name}_effects"]).sum()
    basis = np.column_stack([counts.basis[kind] for kind in KINDS])
    whole = basis @ np.concatenate([at["level"], at["slope"], at["curve"], bend])
    level = whole[:, None] + basis @ rows["phenomenon"] @ counts.between.T + basis @ rows["paradigm"] @ counts.within.T
    of = counts.of.argmax(axis=1)
    total += norm.logpdf(at["paradigm_unevenness"], 0, 0.5) + norm.logpdf(at["paradigm_uneven"]).sum()
    at["cell_effects"] = at["cell_effects"] * np.exp(at["paradigm_unevenness"] * at["paradigm_uneven"])
    logit = (
        level[of] + spread["run"][of][:, None] * at["run_effects"] + spread["cell"][of][:, None] * at["cell_effects"]
    )
    logit += spread["run_in_phenomenon"][of][:, None] * at["run_in_phenomenon_effects"] @ counts.between.T
    p = 1 / (1 + np.exp(-logit))
    # Counts that are scaled are no whole numbers: binomials of the original ones, each to a power.
    right = np.round(counts.right / counts.alike)
    return float(total + (counts.alike * binom.logpmf(right, 50, p)).sum())


@pytest.mark.slow
def test_the_sampler_agrees_with_least_squares_and_shrinks_paradigms(judged):
    counts = counts_of(judged_of(CELL, [judged.outcome[:8]]))
    *_, (_, posterior) = Sampling(2, 200, 200, seed=3).sample(counts)
    rows = slope_rows(posterior, 0.95)
    default = fit_curves(judged, CONFIG).slopes
    default = default[default["group"] == "model 0"].reset_index(drop=True)
    assert rows["name"].tolist() == default["name"].tolist()
    width = default["high"] - default["low"]
    assert abs(rows["slope"] - default["slope"])[0] < 0.2 * width[0]
    paradigms = rows["level"] == "paradigm"
    assert rows.loc[paradigms, "slope"].std() < default.loc[paradigms, "slope"].std()
    assert isinstance(diagnose(posterior, rows), Diagnosis)
    assert isinstance(predictive_rows(posterior, 0.95, np.random.default_rng(1)), pd.DataFrame)


@pytest.mark.slow
def test_studies_sampled_together_have_the_posteriors_of_those_sampled_alone(judged):
    both = [counts_of(judged_of(CELL, [judged.outcome[:8]])), counts_of(judged_of(CELL, [judged.outcome[8:]]))]
    sampling = Sampling(2, 200, 200, seed=3)
    for counts, together in zip(both, sampling.sample_together(both), strict=True):
        *_, (_, alone) = sampling.sample(counts)
        of, expected = slope_rows(together, 0.95), slope_rows(alone, 0.95)
        width = expected["high"] - expected["low"]
        np.testing.assert_allclose(of["slope"], expected["slope"], atol=0.15 * width.mean())
        np.testing.assert_allclose(of["high"] - of["low"], width, rtol=0.35)


def test_simulated_runs_have_text_in_common_where_those_of_the_study_do():
    """Within a size they differ by what is their own; over replicates by all of it."""
    cell, share = SimulatedJudgements(5, 2, pairs=2000, overlap=0.8), 0.8
    counts = counts_of(judged_of(cell, [cell.draw(np.random.default_rng(1))[0]]))
    counts = replace(counts, overlap=np.full(10, share))
    spreads = np.zeros((2, 200, 3, 2))
    spreads[:, :, 0] = 0.3
    draws = {
        "accuracy": np.full((2, 200, 2, 4), 0.5), "logit": np.zeros((2, 200, 2, 4)), "spreads": spreads,
        "paradigm_spreads": np.ones((2, 200, 4)),
    }  # fmt: skip
    accuracy = replicated(Posterior(counts, draws, 0, 1.0, 1.0), np.random.default_rng(2)).mean(axis=2)
    within = accuracy[:, :5].var(axis=1, ddof=1).mean()
    assert within / accuracy[:, 0].var() == pytest.approx(1 - share, abs=0.04)
