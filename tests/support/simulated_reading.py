"""Simulated reading times of known gain: words in sentences and texts, and runs that know what slows readers in part.

A word's time is a sum of what its length, its frequency and a hidden predictability z do to it, and of noise. The
surprisal of a run is r z and noise of its own, part of which all runs of a study share; r, a correlation, changes with
the size of the text, and from run to run. So what surprisal adds to the log-likelihood of a word is known:
-1/2 log(1 - R^2), R^2 = r^2 effect^2 / (effect^2 + noise^2) being the share of the residual variance that it explains.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import norm

from analysis.curves.designs import Design
from analysis.curves.variance import Array, Numbers
from analysis.measures.reading.delta import Nothing
from analysis.measures.reading.regressions import folds_of
from analysis.measures.reading.tables import MIN_TEXTS


def held_out_at_once(outcome: Array, predictors: Array, fold: Numbers) -> Array:
    """Return what analysis.measures.reading.regressions.held_out does, from the cross products of all folds at once.

    Forty times as fast, and exact where predictors are of one scale (test_reading_deltas.py).
    """
    members = np.eye(fold.max() + 1)[fold]  # (N, F)
    rest = len(outcome) - members.sum(axis=0)

    def of_rest(products: Array) -> Array:
        sums = np.tensordot(members, products, axes=(0, 0))
        return np.asarray(sums.sum(axis=0) - sums)

    moments = of_rest(predictors * outcome[:, None])
    coefficients = np.linalg.solve(of_rest(predictors[:, :, None] * predictors[:, None, :]), moments[..., None])[..., 0]
    variance = (of_rest(outcome**2) - (coefficients * moments).sum(axis=1)) / rest
    residual = outcome - (predictors * coefficients[fold]).sum(axis=1)
    return np.asarray(norm.logpdf(residual, scale=np.sqrt(variance[fold])))


def _correlations(r: Array) -> Array:
    """Keep normal r within what a correlation can be."""
    return np.clip(r, -0.99, 0.99)


@dataclass(frozen=True)
class SimulatedReading:
    """r: of each size, so that their number is that of the sizes."""

    r: tuple[float, ...]
    seeds: int = 3
    texts: int = 10
    sentences: int = 30  # of each text
    words: int = 10  # of each sentence
    run_sd: float = 0.02  # of r between runs of a size
    effect: float = 0.4  # of z, where the noise of times has the variance 1 together with the next two
    of_sentences: float = 0.2  # standard deviation of what a sentence adds to its words' times
    of_texts: float = 0.0
    shared: float = 0.5  # share of the runs' noise that all of them have in common
    folds: int = 10

    @property
    def rows(self) -> int:
        return self.texts * self.sentences * self.words

    @property
    def clusters(self) -> Array:
        """(N,) number of the sentence of each row, or of its text where these are enough, as by default."""
        if self.texts >= MIN_TEXTS:
            return np.repeat(np.arange(self.texts), self.sentences * self.words)
        return np.repeat(np.arange(self.texts * self.sentences), self.words)

    @property
    def design(self) -> Design:
        sizes = len(self.r)
        size = np.repeat(np.arange(sizes), self.seeds)
        return Design(17.0 + size, size, np.tile(np.arange(self.seeds), sizes), nested=False)

    def gain(self, r: Array) -> Array:
        """Return the expected delta, nats a word, of runs with correlations r.

        Of held-out words, whose regression has to estimate one more coefficient: that costs half a nat in all.
        """
        explained = np.asarray(r) ** 2 * self.effect**2 / (self.effect**2 + 1)
        return -0.5 * np.log1p(-explained) + self.nothing.delta

    @property
    def nothing(self) -> Nothing:
        """The expected delta of a surprisal that is unrelated to times."""
        return Nothing.of(1, self.rows, round(self.rows * (1 - 1 / min(self.folds, self.texts))))

    def expected(self) -> Array:
        """Return (S,) expected deltas over new runs of each size: over 20,001 quantiles of normal r."""
        quantiles = norm.ppf((np.arange(20_001) + 0.5) / 20_001)
        return np.asarray([self.gain(_correlations(r + self.run_sd * quantiles)).mean() for r in self.r])

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return (R, N) differences of held-out log-likelihoods, and the (R,) expected deltas of these very runs."""
        n, text = self.rows, np.repeat(np.arange(self.texts), self.sentences * self.words)
        z, length, frequency, common = rng.standard_normal((4, n))
        noise = self.of_sentences * np.repeat(rng.standard_normal(self.texts * self.sentences), self.words)
        noise += self.of_texts * rng.standard_normal(self.texts)[text]
        own = np.sqrt(1 - self.of_sentences**2 - self.of_texts**2)
        time = 5 + 0.3 * length - 0.3 * frequency + self.effect * z + noise + own * rng.standard_normal(n)
        baseline = np.stack([np.ones(n), length, frequency], axis=1)
        fold = folds_of(pd.Series(text), self.folds, 1)
        r = np.repeat(self.r, self.seeds) + self.run_sd * rng.standard_normal(len(self.r) * self.seeds)
        r = _correlations(r)
        without, differences = held_out_at_once(time, baseline, fold), []
        for of_run in r:
            other = np.sqrt(self.shared) * common + np.sqrt(1 - self.shared) * rng.standard_normal(n)
            surprisal = of_run * z + np.sqrt(1 - of_run**2) * other
            differences.append(held_out_at_once(time, np.column_stack([baseline, surprisal]), fold) - without)
        return np.stack(differences), self.gain(r)
