"""Draws from a posterior that are known, of simulated judgements by two models, for tests of what is made of them."""

import numpy as np

from analysis.curves.hierarchical.counts import Counts, counts_of
from analysis.curves.hierarchical.posterior import Posterior
from analysis.study.judgements import Judgements
from tests.bench.hierarchical import judged_of
from tests.support.simulated_judgements import SimulatedJudgements

CELL = SimulatedJudgements(2, 4, pairs=50)


def judgements() -> Judgements:
    """Return the judgements of two models."""
    rng = np.random.default_rng(1)
    return judged_of(CELL, [CELL.draw(rng)[0], CELL.draw(rng)[0]])


def known_posterior(judged: Judgements) -> Posterior:
    counts = counts_of(judged)
    assert not isinstance(counts, str)
    return posterior_of(counts)


def posterior_of(counts: Counts) -> Posterior:
    """Return draws about lines: slopes of .01 (k + 1) of paradigm k, of the second model half as steep.

    The deviation between draws is .001 (half of it in the second model).
    """
    rng = np.random.default_rng(2)
    steep = np.asarray([0.01, 0.02, 0.03, 0.04]) + rng.normal(0, 0.001, (4, 250, 1, 4))
    accuracy = 0.6 + steep * counts.doublings[:, None] * np.where(counts.group == 0, 1, 0.5)[:, None]
    logit, spreads = np.log(accuracy / (1 - accuracy)), np.full((4, 250, 3, len(counts.words)), 0.05)
    scales = {"cell_spread": (np.asarray(1.0), np.asarray(500.0))}
    draws = {"accuracy": accuracy, "logit": logit, "spreads": spreads, "paradigm_spreads": np.ones((4, 250, 4))}
    return Posterior(counts, draws, 0, 15.0, 1.0, scales)
