"""The design of runs: sizes, seeds, units of drawing, and the weights that turn accuracies into a slope."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.curves.variance import Array, Numbers

OVERLAP_LIMIT = 0.5  # share of text that samples of a size have in common from which a note names it
SAME_TEXT = 0.99  # and from which the runs show nothing of what new text would change


@dataclass(frozen=True)
class Design:
    """The runs of a group, each field (R,): log2 of words, number of the size (0 = smallest) and of the seed."""

    x: Array
    size: Numbers
    seed: Numbers
    nested: bool  # small samples are parts of the larger ones of their seed: a seed is one draw
    trajectory: bool = False  # checkpoints of one training: one draw, so nothing can be resampled
    overlap: Array | None = None  # (R,) share of text that samples of the run's size have in common; None: none

    @property
    def cluster(self) -> Numbers:
        """(R,) number of the unit of drawing: the run, or the seed with all of its runs."""
        return self.seed if self.nested else np.arange(len(self.x))

    @property
    def stratum(self) -> Numbers:
        """(J,) within which clusters are drawn: the size of a run; seeds are of one stratum."""
        return np.zeros(self.seed.max() + 1, dtype=np.intp) if self.nested else self.size

    @property
    def counts(self) -> Numbers:
        """(S,) runs of each size."""
        return np.bincount(self.size)

    @property
    def weights(self) -> Array:
        """(R,) of the regression: those of a size add up to 1."""
        return 1 / self.counts[self.size]

    @property
    def contrast(self) -> Array:
        """(R,) c, so that c @ y is the slope; NaN for one size."""
        return np.asarray(slope_weights(self.x, self.weights[None])[0])

    @property
    def mean_weights(self) -> Array:
        """(R,) of the mean over sizes."""
        return np.asarray(self.weights / len(self.counts))

    @property
    def centre(self) -> float:
        """Mean of x over sizes."""
        return float(self.weights @ self.x) / len(self.counts)

    @property
    def last(self) -> float:
        """Mean of x at the largest size."""
        return float(self.x[self.size == self.size.max()].mean())

    def of(self, rows: npt.NDArray[np.bool_]) -> Design:
        """Return the design of some of the runs: `rows` (R,)."""
        size, seed = (np.unique(of[rows], return_inverse=True)[1].astype(np.intp) for of in (self.size, self.seed))
        overlap = None if self.overlap is None else self.overlap[rows]
        return Design(self.x[rows], size, seed, self.nested, self.trajectory, overlap)


def design_of(runs: pd.DataFrame) -> Design:
    """Return the design of one group's runs (rows of Study.runs).

    Runs of a size with the same sample (a fixed sample.seed) have all of their text in common.
    """
    size = runs["size"].map({size: number for number, size in enumerate(sizes_of(runs))})
    seeds = np.unique(runs["seed"].to_numpy(dtype=np.int64), return_inverse=True)[1].astype(np.intp)
    x = np.log2(runs["sample_words"].to_numpy(dtype=np.float64))
    overlap = runs["overlap"].fillna(0).to_numpy(dtype=np.float64) if "overlap" in runs else None
    sample = pd.Series(sample_digests(runs), index=runs.index, dtype=object)
    same = (sample.notna() & pd.DataFrame({"size": runs["size"], "sample": sample}).duplicated(keep=False)).to_numpy()
    if same.any():
        overlap = np.where(same, 1.0, 0.0 if overlap is None else overlap)
    return Design(x, np.asarray(size, dtype=np.intp), seeds, bool(runs["nested"].all()), is_trajectory(runs), overlap)


def sizes_of(runs: pd.DataFrame) -> list[str]:
    """Return the sizes of runs (rows of Study.runs), smallest first."""
    return list(runs.groupby("size")["sample_words"].mean().sort_values().index)


def most_shared(design: Design) -> float:
    """Return the largest share of text that the samples of a size of several runs have in common."""
    several = design.counts[design.size] > 1
    return 0.0 if design.overlap is None or not several.any() else float(design.overlap[several].max())


def same_text(design: Design) -> bool:
    """True if runs of some size were trained on (almost) the same text."""
    return most_shared(design) > SAME_TEXT


def shares_text(design: Design) -> str:
    """Say that samples share so much of their text that limits hold only if widened for it; "" if they do not.

    For estimates whose limits take runs to be independent draws.
    """
    shared = most_shared(design)
    return f"samples of a size share up to {min(shared, 1):.0%} of their text" if shared > OVERLAP_LIMIT else ""


def is_trajectory(runs: pd.DataFrame) -> bool:
    """True if some of a group's runs (rows of Study.runs) are checkpoints of the same training."""
    return "training" in runs and bool(runs["training"].duplicated().any())


def sizes_of_few(runs: pd.DataFrame, least: int) -> dict[str, list[str]]:
    """Return the sizes of each group that have fewer runs than `least`, smallest first; runs: rows of Study.runs.

    None of groups that would keep fewer than two sizes, and of checkpoints of one training.
    """
    few = {}
    for group, part in runs.groupby("group", sort=False):
        counts = part["size"].value_counts()
        sizes = [size for size in sizes_of(part) if counts[size] < least]
        if sizes and len(counts) - len(sizes) > 1 and not is_trajectory(part):
            few[str(group)] = sizes
    return few


def slope_weights(x: Array, weights: Array) -> Array:
    """Return (B, R) c, so that c @ y is the slope on x (R,) with weights (B, R); NaN where all weight is on one x."""
    centred = x - (weights @ x / weights.sum(axis=1))[:, None]
    spread = (weights * centred**2).sum(axis=1, keepdims=True)
    return np.asarray(weights * centred / np.where(spread > 1e-12, spread, np.nan))


def sample_digests(runs: pd.DataFrame) -> list[str | None]:
    """Return the digest of each run's sample, from its manifest; None where no sample is recorded."""
    samples = [
        (manifest.get("corpus") or {}).get("sample") or {} if isinstance(manifest, dict) else {}
        for manifest in (runs["manifest"] if "manifest" in runs else [None] * len(runs))
    ]
    return [str(sample["digest"]) if sample.get("digest") else None for sample in samples]


@dataclass(frozen=True)
class Line:
    """Least-squares lines through (R,) x and (R, U) y; each field is (U,)."""

    slope: Array
    intercept: Array
    r2: Array  # NaN where x has two values or fewer, or where y does not vary


def fit_lines(x: Array, y: Array, weights: Array | None = None) -> Line:
    """Fit each column of `y` on `x` by weighted least squares; `weights` (R,), None: equal. All NaN for a single x."""
    weights = np.ones(len(x)) if weights is None else weights
    c = slope_weights(x, weights[None])[0]
    share = weights / weights.sum()
    slope = c @ y
    intercept = share @ y - slope * (share @ x)
    residual = share @ (y - intercept - np.outer(x, slope)) ** 2
    total = share @ (y - share @ y) ** 2
    r2 = 1 - residual / np.where(total > 1e-24, total, np.nan)
    return Line(slope, intercept, r2 if len(np.unique(x)) > 2 else np.full(y.shape[1], np.nan))
