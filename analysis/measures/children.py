"""The order in which children learn words, against the curves of surprisal of a study's runs (Chang and Bergen 2022).

A model has learnt a word where its mean surprisal has fallen halfway from chance, a uniform distribution over the
vocabulary, to what it is at the largest size: the sizes of a curve take the place of the steps of one training. The
amounts of text, and the surprisals at each size (Portelance et al. 2020), are correlated with the ages.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import rankdata
from scipy.stats import t as student

from analysis.curves.acquisition.sizes import size_means
from analysis.curves.designs import Design, design_of, sizes_of
from analysis.curves.graded.agreement import Contrast
from analysis.curves.intervals import resampled_runs
from eval.ratings.statistics import CORRELATION, Array, Statistic, pearson, spearman
from eval.surprisal.files import read_surprisals
from pairscale.errors import ConfigError, RunError

Floats = npt.NDArray[np.floating]
LEAST_OCCURRENCES = 5  # of a word in the text, of which its surprisal is a mean
LEAST_WORDS = 20  # that a correlation is computed of
MOST_CENSORED = 0.5  # share of words acquired before the smallest size from which their order says nothing
PEARSON, SPEARMAN = "Pearson", "Spearman"
SIZE, SURPRISAL = "amount of text", "surprisal"  # what is correlated with ages
ALONE, PARTIAL = "none", "frequency and length"  # controls
CORRELATION_COLUMNS = [
    "group", "quantity", "size", "controls", "measure", "words", "censored", "runs", "value", "low", "high",
    "low_words", "high_words", "note",
]  # fmt: skip
_EDGES = "\"'“”‘’.,;:!?()[]…–—-"
_STEEPNESS = np.geomspace(0.15, 6, 18)  # of sigmoids, per doubling


@dataclass(frozen=True)
class Surprisals:
    """words (W,); surprisal (R, W): mean bits of a word's occurrences for each run; tokens (R, W); occurrences (W,)."""

    words: list[str]
    surprisal: Array
    tokens: Array
    occurrences: npt.NDArray[np.int64]


def plain_word(word: str) -> str:
    """Return a word in small letters without the punctuation around it.

    >>> plain_word('"Dog,"')
    'dog'
    """
    return word.strip().strip(_EDGES).lower()


def surprisal_folder(reports: Path, study: str, chosen: str | None) -> Path:
    """Return the folder of surprisals of a study's runs on one text: `chosen`, or the only one.

    Raises ConfigError, naming those that there are, and how to make one.
    """
    folder = reports / study / "surprisal"
    names = sorted(path.name for path in folder.glob("*") if any(path.glob("*.parquet")))
    make = f"python -m eval.surprisal study={study} text=FILE"
    if chosen is not None:
        if chosen not in names:
            there = ", ".join(names) or "none"
            raise ConfigError(f"analysis.children_text={chosen}: must be one of {there} (in {folder}); to make: {make}")
        return folder / chosen
    if len(names) != 1:
        if not names:
            raise ConfigError(f"analysis.children: needs surprisals of words in {folder}; first: {make}")
        raise ConfigError(f"analysis.children_text=null: several texts have surprisals: {', '.join(names)}; name one")
    return folder / names[0]


def word_surprisals(folder: Path, runs: Sequence[str], wanted: set[str]) -> tuple[list[str], Surprisals]:
    """Return the runs that have surprisals, and those of the `wanted` words that all of them know.

    A word counts with LEAST_OCCURRENCES in the text, none of them `<unk>`. Raises RunError where runs read other texts,
    or none has surprisals.
    """
    tables: dict[str, pd.DataFrame] = {}
    digests: dict[str, str] = {}
    for run in runs:
        file = folder / f"{run}.parquet"
        if not file.exists():
            continue
        rows, made = read_surprisals(file)
        digests[run] = str(made["text"])
        rows = rows.assign(word=rows["word"].map(plain_word))
        rows = rows[rows["word"].isin(wanted) & (rows["tokens"] > 0)]
        by = rows.groupby("word")
        table = by.agg(
            surprisal=("surprisal", "mean"), tokens=("tokens", "mean"), unk=("unk", "max"), n=("unk", "size")
        )
        tables[run] = table[(table["unk"] == 0) & (table["n"] >= LEAST_OCCURRENCES)]
    if not tables:
        raise RunError(f"{folder}: no run of the study has surprisals there")
    if len(set(digests.values())) > 1:
        first, other = (next(run for run in digests if digests[run] == of) for of in sorted(set(digests.values()))[:2])
        raise RunError(f"{folder}: runs read different texts ({first} and {other}); remove the files of one")
    words = sorted(set.intersection(*(set(table.index) for table in tables.values())))
    parts = [table.loc[words] for table in tables.values()]
    surprisal, tokens = (
        np.stack([part[name].to_numpy(np.float64) for part in parts]) for name in ("surprisal", "tokens")
    )
    return list(tables), Surprisals(words, surprisal, tokens, parts[0]["n"].to_numpy(np.int64))


def halfway(x: Floats, curves: Floats, chance: Array) -> Array:
    """Return the (U,) x at which sigmoids of (S, U) curves have fallen halfway from chance to their last value.

    x (S,) ascending, chance (U,). A sigmoid starts at chance and falls to an asymptote; of a grid of steepness and
    middle the least-squares one is taken, its asymptote in closed form. NaN where it does not fall.
    """
    span = float(x[-1] - x[0])
    middles = np.linspace(x[0] - span - 6, x[-1] + span / 2, 97)
    steepness, middle = (of.ravel()[:, None] for of in np.meshgrid(_STEEPNESS, middles, indexing="ij"))
    rise = 1 / (1 + np.exp(-np.clip(steepness * (x - middle), -50, 50)))  # (G, S)
    below = chance - curves
    fall = rise @ below / (rise**2).sum(axis=1, keepdims=True)  # (G, U)
    squares = (below**2).sum(axis=0) - fall**2 * (rise**2).sum(axis=1, keepdims=True)
    best = np.where(fall > 0, squares, np.inf).argmin(axis=0)
    units = np.arange(curves.shape[1])
    k, at = steepness[best, 0], middle[best, 0]
    last = rise[best, -1]
    return np.where(fall[best, units] > 0, at - np.log(2 / last - 1) / k, np.nan)


def residual(values: Array, controls: Array | None) -> Array:
    """Return (R, W) values without what a regression on controls (C, W) explains; controls None: unchanged."""
    if controls is None:
        return values
    model = np.column_stack([np.ones(values.shape[1]), controls.T])
    return np.asarray(values - (model @ np.linalg.lstsq(model, values.T, rcond=None)[0]).T)


def statistic(measure: str, scores: Array, ages: Array, controls: Array | None) -> Statistic:
    """Return the correlation of (R, W) scores with (W,) ages; a partial one of ranks is that of residuals of ranks."""
    if measure == SPEARMAN and controls is None:
        return spearman(scores, ages)
    if measure == SPEARMAN and controls is not None:
        scores, ages = rankdata(scores, axis=1), rankdata(ages)
        controls = rankdata(controls, axis=1)
    return pearson(residual(scores, controls), residual(ages[None], controls)[0])


@dataclass(frozen=True)
class Learnt:
    """A curve's words: x (W,) log2(words) of acquisition, within the sizes of the study; early, late: (W,) censored."""

    x: Array
    early: npt.NDArray[np.bool_]
    late: npt.NDArray[np.bool_]

    @property
    def censored(self) -> float:
        return float((self.early | self.late).mean())


def learnt(at: Floats, curves: Floats, chance: Array) -> Learnt:
    """Return where words are acquired, those beyond the sizes of the study at the ends; without a fall: late."""
    x = halfway(at, curves, chance)
    early, late = x < at[0], ~(x <= at[-1])
    return Learnt(np.where(early, at[0], np.where(late, at[-1], x)), early, late)


@dataclass(frozen=True)
class Group:
    """A curve's runs: surprisal (R, W), chance (W,), and what is common: ages (W,), controls (C, W) or None."""

    name: str
    design: Design
    sizes: list[str]
    surprisal: Array
    chance: Array
    ages: Array
    controls: Array | None

    def correlations(self, confidence: float, resamples: int, seed: int) -> list[dict[str, Any]]:
        """Return rows of CORRELATION_COLUMNS."""
        rows: list[dict[str, Any]] = []
        for controls in [ALONE] + [PARTIAL] * (self.controls is not None):
            used = self.controls if controls == PARTIAL else None
            for measure in (SPEARMAN, PEARSON):
                named = {"group": self.name, "controls": controls, "measure": measure, "words": len(self.ages)}
                if len(self.sizes) > 2:
                    rows.append({**named, **self._of_sizes(measure, used, confidence, resamples, seed)})
                of = statistic(measure, self.surprisal, self.ages, used).mapped(CORRELATION)
                for s, size in enumerate(self.sizes):
                    c = np.where(self.design.size == s, self.design.weights, 0)
                    limits = Contrast.of(of, c, self.design).limits(confidence)
                    low, high = limits.low_both, limits.high_both
                    ends = {"value": limits.value, "low": low, "high": high, "low_words": limits.low_items,
                            "high_words": limits.high_items}  # fmt: skip
                    back = {name: float(np.tanh(value)) for name, value in ends.items()}
                    rows.append({**named, "quantity": SURPRISAL, "size": size, "censored": np.nan,
                                 "runs": int((c > 0).sum()), **back, "note": ""})  # fmt: skip
        return rows

    def _of_sizes(
        self, measure: str, controls: Array | None, confidence: float, resamples: int, seed: int
    ) -> dict[str, Any]:
        """Correlate amounts of text: variance over words by influence, over runs by resampling, added.

        What both hold counts twice, so that limits are no closer than they should be.
        """
        at, weights = size_means(self.design)
        found = learnt(at, weights @ self.surprisal, self.chance)
        row = {"quantity": SIZE, "size": "", "censored": found.censored, "runs": len(self.surprisal), "note": ""}
        none = dict.fromkeys(("value", "low", "high", "low_words", "high_words"), np.nan)
        if found.censored > MOST_CENSORED:
            return {**row, **none, "note": f"{found.censored:.0%} of words are acquired outside of the sizes"}
        z = statistic(measure, found.x[None], self.ages, controls).mapped(CORRELATION)
        value, over_words = float(z.value[0]), float(z.variance[0])
        degrees, over_runs = len(self.ages) - 1.0, np.nan
        if (self.design.counts > 1).all() and not self.design.trajectory:
            over_runs = self._over_runs(measure, controls, resamples, seed)
        error_words = student.ppf(0.5 + confidence / 2, degrees) * np.sqrt(over_words)
        free = len(np.unique(self.design.cluster)) - (1 if self.design.nested else len(at))
        error = student.ppf(0.5 + confidence / 2, max(free, 1)) * np.sqrt(over_runs)
        half = np.hypot(error_words, error)
        back = {"value": value, "low": value - half, "high": value + half, "low_words": value - error_words,
                "high_words": value + error_words}  # fmt: skip
        return {**row, **{name: float(np.tanh(of)) for name, of in back.items()}}

    def _over_runs(self, measure: str, controls: Array | None, resamples: int, seed: int) -> float:
        """Return the variance over runs of Fisher's z of the correlation of amounts of text."""
        at, weights = size_means(self.design)
        drawn = resampled_runs(self.design.stratum, resamples, np.random.default_rng([seed, 3]))[:, self.design.cluster]
        values = [
            learnt(at, (weights * of / (weights * of).sum(axis=1, keepdims=True)) @ self.surprisal, self.chance).x
            for of in drawn
        ]
        return float(
            np.var(statistic(measure, np.stack(values), self.ages, controls).mapped(CORRELATION).value, ddof=1)
        )


def groups_of(
    runs: pd.DataFrame, read: Sequence[str], of: Surprisals, ages: Array, controls: Array | None
) -> list[Group]:
    """Return the curves of the runs that were read. Raises RunError for a run whose vocabulary is not recorded."""
    place = {run: number for number, run in enumerate(read)}
    found = []
    for name, part in runs[runs.index.isin(read)].groupby("group", sort=False):
        rows = [place[str(run)] for run in part.index]
        chance = np.mean(
            [of.tokens[row] * np.log2(vocabulary(run, part)) for row, run in zip(rows, part.index, strict=True)], axis=0
        )
        found.append(Group(str(name), design_of(part), sizes_of(part), of.surprisal[rows], chance, ages, controls))
    return found


def vocabulary(run: Any, runs: pd.DataFrame) -> int:
    """Return the number of tokens that a run's model chooses from."""
    manifest: Any = runs.at[run, "manifest"]
    size = manifest.get("vocabulary") or (manifest.get("corpus") or {}).get("vocabulary")
    if not size:
        raise RunError(f"{run}: its manifest records no vocabulary, which chance of a word is one over")
    return int(size)
