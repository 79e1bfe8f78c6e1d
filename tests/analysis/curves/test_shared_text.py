"""What samples with text in common hide of the variance over new texts: by hand, by simulation, by design."""

import numpy as np
import pandas as pd
import pytest

from analysis.curves.designs import Design, design_of, slope_weights
from analysis.curves.intervals import (
    Interval,
    hidden_text,
    hidden_variance,
    interval_method,
    lack_of_fit,
    run_terms,
)
from analysis.curves.variance import shared_text, shared_text_variance
from analysis.measures.perplexity import perplexity_curves
from tests.support.simulated_judgements import SimulatedJudgements


def runs_of(cells, **columns):
    """Return rows of Study.runs with the (words, seed) of `cells` and other columns."""
    runs = pd.DataFrame({"size": [str(words) for words, _ in cells], "seed": [seed for _, seed in cells]})
    return runs.assign(sample_words=[words for words, _ in cells], **{"nested": False, **columns})


def test_runs_on_one_sample_have_no_interval_over_new_text():
    """With a fixed sample.seed the digests of a size are equal, though independent samples would share 2%."""
    cells = [(words, seed) for words in (1000, 2000, 4000) for seed in (1, 2, 3)]
    for digests, method in (
        ([str(words) for words, _ in cells], Interval.NONE),
        ([*map(str, cells)], Interval.T_SIZES),
    ):
        manifests = [{"corpus": {"sample": {"digest": digest}}} for digest in digests]
        design = design_of(runs_of(cells, overlap=0.02, manifest=manifests))
        assert interval_method(design, "auto")[0] == method
        np.testing.assert_array_equal(design.overlap, 1.0 if method == Interval.NONE else 0.02)
    assert design_of(runs_of(cells, manifest=[None] * 9)).overlap is None


def test_overlapping_samples_do_not_reject_a_true_line():
    """Text effects that differ by size bend a true line, and overlapping samples show only part of their spread."""
    rng = np.random.default_rng(0)
    size, shares, studies = np.repeat(np.arange(4), 5), np.array([0.1, 0.2, 0.4, 0.77]), 4000
    f = shares[size, None]
    common = rng.normal(size=(4, studies))[size]
    y = 0.1 * size[:, None] + np.sqrt(f) * common + np.sqrt(1 - f) * rng.normal(size=(20, studies))
    seeds, floor = np.tile(np.arange(5), 4), np.zeros((4, studies))
    p = lack_of_fit(Interval.T_SIZES, y, Design(1.0 * size, size, seeds, False, overlap=shares[size]), floor)
    assert (p < 0.05).mean() < 0.06
    apart = lack_of_fit(Interval.T_SIZES, y, Design(1.0 * size, size, seeds, False), floor)
    assert (apart < 0.05).mean() > 0.3  # as though samples had nothing in common
    none = lack_of_fit(Interval.T_SIZES, np.zeros((20, 1)), Design(1.0 * size, size, seeds, False), np.zeros((4, 1)))
    assert np.isnan(none).all()  # nothing varies


def test_intervals_of_perplexity_factors_widen_with_overlapping_samples():
    """Two sizes with half of their text in common: variances of means are (1 / 3 + .5 / .5) s^2, not s^2 / 3."""
    cells = [(words, seed) for words in (1000, 2000) for seed in (1, 2, 3)]
    ppl = [300.0, 310.0, 330.0, 210.0, 200.0, 190.0]
    ends = []
    for overlap in (0.0, 0.5):
        row = perplexity_curves(runs_of(cells, overlap=overlap, valid_ppl=ppl, group="g"), 0.95).iloc[0]
        ends.append(np.log2([row["low"], row["factor"], row["high"]]))
    spread = [np.var(np.log2(ppl[start : start + 3]), ddof=1) for start in (0, 3)]
    within, shared = sum(spread) / 3, max(sum(spread), (np.sqrt(spread[1]) - np.sqrt(spread[0])) ** 2)
    np.testing.assert_allclose(np.diff(ends[1]) / np.diff(ends[0]), np.sqrt((within + shared) / within))


def test_chance_in_judgements_is_no_effect_of_shared_text():
    """Runs that differ by chance alone share nothing that new text would change, but for what few runs show of it."""
    size, share = np.repeat([0, 1], 50), np.repeat([0.4, 0.8], 50)
    design = Design(1.0 * size, size, np.tile(np.arange(50), 2), False, overlap=share)
    units = SimulatedJudgements(pairs=100).units
    outcome = (np.random.default_rng(0).uniform(size=(100, 400)) < 0.7).astype(float)
    y = np.add.reduceat(outcome, units.bounds[:-1], axis=1) / 100 @ units.weights
    with_chance = hidden_variance(design, design.contrast, y)
    without = hidden_text(design, design.contrast, y, outcome, units)[0]
    # Of .7 x .3 / 400 for a run, f / (1 - f) each: 2/3 and 4, one size unrelated to the other.
    np.testing.assert_allclose(with_chance[0], 0.7 * 0.3 / 400 * (2 / 3 + 4), rtol=0.3)
    assert (without <= 0.4 * with_chance).all()


def test_the_variance_over_new_texts_includes_the_text_that_samples_share():
    """The variance of a mean over new texts is the variance within sizes plus that of the text that samples share."""
    rng = np.random.default_rng(2)
    size, share = np.repeat([0, 1], 4), np.repeat([0.3, 0.6], 4)
    c = slope_weights(1.0 * size, np.ones((1, 8)))[0]
    variances, slopes = [], []
    for _ in range(3000):
        units = rng.normal(0, [[3.0], [1.0]], (2, 100))  # effects at the sizes have spreads of their own
        y = np.array([units[s][rng.permutation(100)[: int(100 * f)]].mean() for s, f in zip(size, share, strict=True)])
        slopes.append(c @ y)
        terms = run_terms(Interval.T_SIZES, Design(1.0 * size, size, np.tile(np.arange(4), 2), False), c)
        within = terms.variance(y[:, None])
        variances.append((within + shared_text_variance(c, y[:, None], size, share))[0])
    assert np.mean(variances) == pytest.approx(np.var(slopes), rel=0.1)


def test_degrees_of_freedom_of_shared_text():
    """Of one size that shares text those of its variance; of several by simulation: 2 V^2 / f is the variance of V."""
    rng = np.random.default_rng(4)
    size = np.repeat([0, 1], [3, 5])
    c = slope_weights(1.0 * size, 1 / np.bincount(size)[size][None])[0]
    variance, degrees = shared_text(c, rng.normal(size=(8, 2)), size, np.where(size == 1, 0.5, 0.0))
    np.testing.assert_allclose(degrees, 4)
    assert (variance > 0).all()
    size = np.repeat([0, 1, 2], 30)
    c = slope_weights(1.0 * size, np.ones((1, 90)))[0]
    variance, degrees = shared_text(c, rng.normal(size=(90, 4000)), size, np.repeat([0.1, 0.3, 0.6], 30))
    assert np.median(degrees) == pytest.approx(2 * variance.mean() ** 2 / variance.var(), rel=0.15)
    none = shared_text(c, np.zeros((90, 1)), size, np.full(90, 0.5))
    np.testing.assert_array_equal(none, [[0], [np.inf]])
