"""Errors of simulated studies of a grid, and how the analysis estimates them: (R, D) runs and draws of a study."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from analysis.curves.designs import Design
from analysis.curves.intervals import Interval, bent, run_terms
from analysis.curves.variance import Array, satterthwaite

COMMON = 0.5  # of the variance between runs, what paradigms share: no spread says, and simulated studies have half
MOST_UNITS = 12  # paradigms that are drawn beside the estimate: more of them tell little more


@dataclass(frozen=True)
class SimulatedErrors:
    """Errors of runs' accuracies in D studies of a design; method: of its interval.

    values: (R, D). units: (R, D, U), those of all units of each study, which decide together with two runs a size
    (analysis.curves.intervals.of_curves).
    """

    design: Design
    method: Interval
    values: Array
    units: Array

    @classmethod
    def drawn(
        cls, design: Design, method: Interval, covariance: Array, paradigms: int, draws: int, seed: int = 0
    ) -> SimulatedErrors:
        """Draw normal errors of a mean over `paradigms`, with the (R, R) covariance."""
        rng = np.random.default_rng(seed)
        values, vectors = np.linalg.eigh(covariance)  # which may be singular
        root = vectors * np.sqrt(np.maximum(values, 0))
        mean = rng.normal(size=(len(root), draws))
        units = mean[:, :, None]
        if method == Interval.T_BENT and paradigms > 1:
            own = rng.normal(size=(*mean.shape, min(paradigms, MOST_UNITS)))
            own -= own.mean(axis=2, keepdims=True)
            share = (1 - COMMON) / (COMMON + (1 - COMMON) / paradigms)
            units = np.concatenate([units, units + np.sqrt(share) * own], axis=2)
        return cls(design, method, root @ mean, np.einsum("rs,sdu->rdu", root, units))

    @cached_property
    def bent(self) -> npt.NDArray[np.bool_]:
        """(D,) whether each size's own spread counts, in studies of two runs a size."""
        line, own = (
            (self._contributions(method, self.design.contrast) ** 2).sum(axis=0)
            for method in (Interval.T_HC3, Interval.T_POOLED)
        )
        return bent(line, own)

    def variance(self, c: Array) -> Array:
        """Return the (D,) estimates of the variance of c @ values; c (R,)."""
        return self._estimated(lambda method: run_terms(method, self.design, c).variance(self.values))

    def correlation(self, c: Array, d: Array) -> Array:
        """Return the (D,) estimates of the correlation of c @ values and d @ values."""

        def of(method: Interval) -> Array:
            first, second = (run_terms(method, self.design, of) for of in (c, d))
            return np.asarray(first.correlation(second, self.values, self.values))

        return self._estimated(of)

    def degrees(self, c: Array, correction: float = 0) -> Array:
        """Return the (D,) degrees of freedom of `variance`; correction: of `RunTerms.degrees`."""

        def of(method: Interval) -> Array:
            if method == Interval.T_POOLED:
                return self._pooled_degrees(c)
            return run_terms(method, self.design, c).degrees(self.values, correction)

        return self._estimated(of)

    def residuals(self, c: Array) -> Array:
        """Return (J, R) weights that give the residuals which `variance` rests on."""
        methods = [Interval.T_HC3, Interval.T_POOLED] if self.method == Interval.T_BENT else [self.method]
        return np.concatenate([run_terms(method, self.design, c).weights for method in methods])

    def _estimated(self, of: Callable[[Interval], Array]) -> Array:
        if self.method != Interval.T_BENT:
            return of(self.method)
        return np.where(self.bent, of(Interval.T_POOLED), of(Interval.T_HC3))

    def _contributions(self, method: Interval, c: Array) -> Array:
        return np.asarray(np.einsum("jr,rdu->jdu", run_terms(method, self.design, c).weights, self.units))

    def _pooled_degrees(self, c: Array) -> Array:
        """Return the (D,) degrees of freedom of two runs a size, of all units of each study (RunTerms.degrees)."""
        squares, size = self._contributions(Interval.T_POOLED, c) ** 2, self.design.size
        of_sizes = np.stack([squares[size == s].sum(axis=0) for s in range(size.max() + 1)])  # (S, D, U)
        error = np.sqrt(of_sizes.sum(axis=0))
        shares = np.divide(of_sizes, error, out=np.zeros_like(of_sizes), where=error > 0).sum(axis=2)
        equal = np.asarray([(c[size == s] ** 2).sum() for s in range(size.max() + 1)])[:, None]
        return np.asarray(np.minimum(satterthwaite(shares, np.ones(1)), satterthwaite(equal, np.ones(1))))
