"""Simulated studies of known truth that share nothing with the analysis: no function of it is imported here.

Two models, "a" and "b", judge the same pairs. A pair is judged correctly where a normal variable exceeds 0: the level
of the model, size and paradigm, plus the pair's difficulty, plus its own change with the size, plus what the run adds,
plus noise of variance 1 (a probit model). Text is simulated, too: what a run adds by its text is a mean of the effects
of the blocks that its sample holds, so that samples overlap, or are nested, as drawn and not by a formula. The truth
follows in closed form, as sums of normal variables are normal: P(correct) of a pair over new runs is
Phi((level + pair) / sqrt(1 + v)), v being the variance that runs add.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import ndtr

MODELS = ("a", "b")
SMALLEST, DOUBLINGS = 125_000, 9  # words: sizes are equally far apart from there to 64M
OVERALL, PHENOMENON, PARADIGM = "overall", "phenomenon", "paradigm"
BLOCKS = 1024  # of the largest sample
NORMAL, TWO_VALUED = "normal", "two-valued"
ALIKE, UNRELATED = "alike", "unrelated"


@dataclass(frozen=True)
class IndependentStudies:
    """Studies of one design.

    counts: runs of each size. gains: the two models' gains as multiples of those of `paradigms`. spread: deviation of
    what a run adds (probits), at all sizes, at each, or at each in each paradigm. text: share of that variance that is
    the text's, not the initialisation's. effects: distribution of what a run adds. same_texts: run i of a size has the
    same sample in both models. nested: a seed's smaller samples are the beginnings of its larger ones, where a block
    has the same effect at all sizes. overlap: share of the text that two samples of the largest size have in common,
    half at half the size; blocks: their effects at different sizes are alike, or unrelated. paradigms: phenomenon,
    accuracy at the smallest size, gain per doubling (of other curves: a ninth of the whole gain).
    """

    counts: tuple[int, ...]
    curve: str = "line"  # line | sigmoid | late | early
    spread: tuple[float, ...] | tuple[tuple[float, ...], ...] = (0.12,)
    gains: tuple[float, float] = (1.0, 0.5)
    text: float = 0.5
    effects: str = NORMAL
    same_texts: bool = False
    nested: bool = False
    overlap: float = 0.0
    blocks: str = ALIKE
    pairs: int = 100
    pair_sd: float = 0.8
    pair_slope_sd: float = 0.04
    paradigms: tuple[tuple[str, float, float], ...] = (
        ("p", 0.55, 0.03), ("p", 0.6, 0.02), ("q", 0.52, 0.035), ("q", 0.65, 0.01),
    )  # fmt: skip

    @cached_property
    def x(self) -> np.ndarray:
        """(S,) log2(words) of the sizes."""
        return np.log2(SMALLEST) + np.linspace(0, DOUBLINGS, len(self.counts))

    @cached_property
    def size(self) -> np.ndarray:
        """(R,) number of the size of a model's runs."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @cached_property
    def seed(self) -> np.ndarray:
        """(R,) seeds of a model's runs."""
        return np.concatenate([np.arange(1, count + 1) for count in self.counts])

    @cached_property
    def deviation(self) -> np.ndarray:
        """(S, K) deviation of what a run adds."""
        spread = np.asarray(self.spread, dtype=float)
        return np.broadcast_to(spread if spread.ndim == 2 else spread[:, None], (len(self.counts), len(self.paradigms)))

    @cached_property
    def shares(self) -> np.ndarray:
        """(S,) share of the text that two samples of a size have in common."""
        return self.overlap * np.exp2(self.x - self.x[-1])

    def expected(self, model: int) -> np.ndarray:
        """(S, K) accuracy over new runs and new pairs."""
        at = (self.x - self.x[0]) / DOUBLINGS
        if self.curve == "late":
            at = at**3
        elif self.curve == "early":
            at = 1 - (1 - at) ** 8
        elif self.curve == "sigmoid":
            rise = ndtr(6 * (at - 0.5))
            at = (rise - rise[0]) / (rise[-1] - rise[0])
        gain = np.array([gain for *_, gain in self.paradigms]) * DOUBLINGS * self.gains[model]
        return np.array([start for _, start, _ in self.paradigms]) + at[:, None] * gain

    @cached_property
    def levels(self) -> np.ndarray:
        """(2, S, K) probits that give the expected accuracies."""
        of_pairs = self.pair_sd**2 + (self.pair_slope_sd * (self.x - self.x.mean())) ** 2
        levels = np.empty((2, len(self.x), len(self.paradigms)))
        for m, s, k in np.ndindex(levels.shape):
            accuracy, variance, deviation = self.expected(m)[s, k], of_pairs[s], self.deviation[s, k]
            levels[m, s, k] = brentq(
                lambda level, a=accuracy, v=variance, d=deviation: self.probability(level, v, d) - a, -12, 12
            )
        return levels

    def probability(self, level: np.ndarray | float, variance: float, deviation: np.ndarray | float) -> np.ndarray:
        """Return P(correct) over new runs, and over what else adds a normal variable of some variance to the level."""
        if self.effects == NORMAL:
            return np.asarray(ndtr(level / np.sqrt(1 + variance + deviation**2)))
        # Two values each for all paradigms and for one: -sqrt(2), 0, 0 or sqrt(2) deviations.
        scale = np.sqrt(1 + variance)
        ends = ndtr((level - np.sqrt(2) * deviation) / scale) + ndtr((level + np.sqrt(2) * deviation) / scale)
        return np.asarray(ndtr(level / scale) / 2 + ends / 4)

    def of_units(self, values: np.ndarray) -> dict[tuple[str, str], np.ndarray]:
        """Return means over the paradigms of each unit, by level and name; values (..., K)."""
        phenomena = np.array([phenomenon for phenomenon, *_ in self.paradigms])
        units = {(OVERALL, OVERALL): values.mean(axis=-1)}
        units |= {
            (PHENOMENON, str(name)): values[..., phenomena == name].mean(axis=-1) for name in np.unique(phenomena)
        }
        return units | {(PARADIGM, name): values[..., k] for k, name in enumerate(self.names)}

    @cached_property
    def names(self) -> list[str]:
        """(K,) names of the paradigms."""
        return [f"{phenomenon}_{k}" for k, (phenomenon, *_) in enumerate(self.paradigms)]

    def slopes(self, accuracies: np.ndarray, least: int = 1) -> dict[tuple[str, str], float]:
        """Return the slopes of the least-squares lines through (S, K) accuracies of sizes, by level and name.

        Of the sizes of `least` runs or more.
        """
        kept = np.array(self.counts) >= least
        units = self.of_units(accuracies[kept])
        return {unit: float(np.polyfit(self.x[kept], of, 1)[0]) for unit, of in units.items()}

    def run_effects(self, rng: np.random.Generator) -> np.ndarray:
        """(2, R, K) what each run adds to each paradigm, half of its variance to all of them."""
        runs, parts = len(self.size), 1 + len(self.paradigms)
        of_text = np.stack([self._text_effects(rng) for _ in MODELS])
        if self.same_texts:
            of_text[1] = of_text[0]
        own = self._values(rng, (2, runs, parts))
        effects = np.sqrt(self.text) * of_text + np.sqrt(1 - self.text) * own
        if self.effects == TWO_VALUED:
            effects = own  # a sum of two such variables would have more values
        mixed = np.sqrt(0.5) * (effects[..., :1] + effects[..., 1:])
        return np.asarray(self.deviation[self.size] * mixed)

    def _values(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.standard_normal(shape) if self.effects == NORMAL else rng.choice((-1.0, 1.0), shape)

    def _text_effects(self, rng: np.random.Generator) -> np.ndarray:
        """(R, 1 + K) of variance 1 over new texts: a mean of the effects of the blocks of each run's sample."""
        parts = 1 + len(self.paradigms)
        held = np.maximum(np.round(BLOCKS * np.exp2(self.x - self.x[-1])), 1).astype(int)  # blocks of a sample
        if self.nested:
            effects = {seed: rng.standard_normal((held[-1], parts)).cumsum(axis=0) for seed in np.unique(self.seed)}
            rows = [effects[seed][held[s] - 1] / np.sqrt(held[s]) for seed, s in zip(self.seed, self.size, strict=True)]
            return np.stack(rows)
        if not self.overlap:
            return rng.standard_normal((len(self.size), parts))
        corpus = round(BLOCKS / self.overlap)
        kinds = 1 if self.blocks == ALIKE else len(self.x)
        effects = rng.standard_normal((kinds, corpus, parts))
        rows = [
            effects[s % kinds][rng.choice(corpus, held[s], replace=False, shuffle=False)].sum(axis=0) / np.sqrt(held[s])
            for s in self.size
        ]
        return np.stack(rows)

    def draw(self, rng: np.random.Generator) -> Study:
        """Simulate a study."""
        shape = (len(self.paradigms), self.pairs)
        pair, change = rng.normal(0, self.pair_sd, shape), rng.normal(0, self.pair_slope_sd, shape)
        of_size = pair + change * (self.x - self.x.mean())[:, None, None]  # (S, K, P)
        levels = self.levels[..., None] + of_size  # (2, S, K, P)
        true = np.stack([
            np.stack([
                self.probability(levels[m, s], 0.0, deviation[:, None]).mean(axis=-1)
                for s, deviation in enumerate(self.deviation)
            ])
            for m in range(2)
        ])  # fmt: skip
        p = ndtr(levels[:, self.size] + self.run_effects(rng)[..., None])
        return Study(self, rng.uniform(size=p.shape) < p, true)


@dataclass(frozen=True)
class Study:
    """One simulated study.

    correct: (2, R, K, P) judgements of each model's runs. true: (2, S, K) accuracies over new runs, for these pairs.
    """

    cell: IndependentStudies
    correct: np.ndarray
    true: np.ndarray

    def table(self) -> pd.DataFrame:
        """Return the judgements as published tables have them: model, size, seed, phenomenon, paradigm, pair, correct.

        sample is the text of the run, overlap the share of it that another sample of the size has in common.
        """
        cell = self.cell
        words = np.round(np.exp2(cell.x)).astype(int)
        rows = []
        for m, model in enumerate(MODELS):
            for r, (s, seed) in enumerate(zip(cell.size, cell.seed, strict=True)):
                text = f"{seed}-{words[s]}" + ("" if cell.same_texts else f"-{model}")
                about = {"model": model, "size": words[s], "seed": seed, "sample": text, "overlap": cell.shares[s]}
                for k, (phenomenon, *_) in enumerate(cell.paradigms):
                    of = {**about, "nested": cell.nested, "phenomenon": phenomenon, "paradigm": cell.names[k]}
                    rows += [
                        {**of, "pair_id": f"{k}-{p:03d}", "correct": int(right)}
                        for p, right in enumerate(self.correct[m, r, k])
                    ]
        return pd.DataFrame(rows)

    def truths(self, least: int = 1) -> dict[tuple[str, str, str], dict[tuple[str, str], float]]:
        """Return true values by quantity and question, and by level and name, over sizes of `least` runs or more.

        Quantities: the slope of each model, and the difference "a - b". Questions: these pairs, new pairs too.
        """
        truths = {}
        for question, accuracies in (
            ("these pairs", self.true), ("new pairs too", np.stack([self.cell.expected(m) for m in range(2)]))
        ):  # fmt: skip
            a, b = (self.cell.slopes(of, least) for of in accuracies)
            truths["slope", "a", question], truths["slope", "b", question] = a, b
            truths["difference", "a - b", question] = {unit: a[unit] - b[unit] for unit in a}
        return truths
