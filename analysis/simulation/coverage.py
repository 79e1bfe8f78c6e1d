"""How often the intervals of a study hold in simulated studies like it: its sizes, seeds, missing runs, spreads, pairs.

The truth of a simulated study is known: expected accuracies of its runs lie on the lines of the study's paradigms or,
where those of a phenomenon are not lines, at the means of its sizes. Its judgements are analysed by the functions that
analyse a study, and its limits are compared with that truth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves.comparisons import compare_groups
from analysis.curves.designs import Design, design_of, fit_lines, is_trajectory, sample_digests, sizes_of, slope_weights
from analysis.curves.fit import inverse_trials, spread_limits
from analysis.curves.groups import GroupFit, fitted_slopes, rows_of
from analysis.curves.intervals import Interval
from analysis.curves.p_values import ALPHA
from analysis.curves.units import Units, paradigm_accuracies, units_of
from analysis.curves.variance import Array
from analysis.simulation.spreads import between_runs, common_share, judgement_squares, seed_share, trend
from analysis.simulation.studies import SimulatedRuns, pair_deviation, sensitivity
from analysis.study.judgements import Judgements

MOST_RESAMPLES = 200  # of a bootstrap in a simulated study
THESE, NEW = "these pairs", "new pairs too"
SLOPE, DIFFERENCE, SMALLEST, LARGEST = "slope", "difference of slopes", "smallest size", "largest size"
COLUMNS = ["curve", "quantity", "question", "level", "name", "interval", "studies", "none", "covered", "standard_error"]
Key = tuple[str, str, str, str]  # curve, quantity, question, interval


@dataclass(frozen=True)
class LikeStudy:
    """Simulated studies like `judged`.

    groups: its curves, by name. together: correlation of two curves' runs on one sample with one seed.
    """

    judged: Judgements
    units: Units
    groups: Mapping[str, SimulatedRuns]
    together: float

    @classmethod
    def of(cls, judged: Judgements, slopes: pd.DataFrame) -> LikeStudy:
        """Estimate it from a study; `slopes`: Curves.slopes, which say where a line is rejected."""
        units = units_of(judged.pairs)
        groups = {}
        for group in judged.runs["group"].unique():
            rows = rows_of(judged, group)
            of_group = slopes[(slopes["group"] == group) & (slopes["pairs"] == "all")]
            bent = of_group.set_index(["level", "name"])["lack_of_fit"] < ALPHA
            phenomena = units.table.loc[units.table["level"] == "paradigm", "phenomenon"]
            curved = np.asarray([bool(bent.get(("phenomenon", name), False)) for name in phenomena])
            outcome = judged.outcome[rows].astype(np.float64)
            groups[str(group)] = runs_like(outcome, design_of(judged.runs.iloc[rows]), units, curved)
        return cls(judged, units, groups, correlation(judged, units))

    def draw(self, rng: np.random.Generator) -> tuple[Judgements, dict[str, Array]]:
        """Return the judgements of a simulated study, and (S, K) accuracies expected for its pairs, by curve."""
        first = next(iter(self.groups.values()))
        pairs = first.draw_pairs(rng)
        pairs = pairs[0] / (first.pair_sd or 1), pairs[1] / (first.pair_slope_sd or 1)
        keys = draws_of(self.judged.runs)
        shared = rng.normal(size=(keys.max() + 1, 1 + len(self.units.bounds) - 1))
        outcome, expected = np.empty(self.judged.outcome.shape, np.float32), {}
        for group, runs in self.groups.items():
            rows = rows_of(self.judged, group)
            effects, of_key = runs.draw_effects(rng), keys[rows]
            known = (of_key >= 0) & (not runs.design.nested)  # what runs of a seed share would be lost
            mixed = np.sqrt(self.together) * shared[of_key] + np.sqrt(1 - self.together) * effects
            effects = np.where(known[:, None], mixed, effects)
            of_pairs = pairs[0] * runs.pair_sd, pairs[1] * runs.pair_slope_sd
            outcome[rows], expected[group] = runs.draw(rng, of_pairs, effects)
        return replace(self.judged, outcome=outcome), expected


def runs_like(outcome: Array, design: Design, units: Units, curved: npt.NDArray[np.bool_]) -> SimulatedRuns:
    """Return runs that vary as those of (R, P) outcomes do; `curved` (K,): paradigms that are not simulated on a line.

    The variance between runs of the overall accuracy and the mean of that of paradigms give what a run adds to all
    paradigms, and to each by itself. Spreads change with the size where that is shown (`trend`).
    """
    y = paradigm_accuracies(outcome, units.bounds)
    size, pairs = design.size, units.pairs
    x = np.asarray([design.x[size == s].mean() for s in range(len(design.counts))])
    means = np.stack([y[size == s].mean(axis=0) for s in range(len(x))])
    expected = means
    if len(x) > 2:
        line = fit_lines(x, means)
        expected = np.where(curved, means, line.intercept + np.outer(x, line.slope))
    expected = np.clip(expected, 1 / (2 * pairs), 1 - 1 / (2 * pairs))
    squares = judgement_squares(outcome, design, units)
    level = expected.mean(axis=0)
    pair_sd = pair_deviation(level, float(squares.mean()))
    overall = units.weights[:, 0]
    common, own, whole = (np.zeros(len(x)) for _ in range(3))
    if (design.counts > 1).any():
        chance = squares / pairs
        of_paradigms, degrees = between_runs(y, design, chance)
        of_overall, _ = between_runs(y @ overall[:, None], design, overall**2 @ chance)
        slope = sensitivity(expected, pair_sd)
        whole = np.maximum(trend(of_overall[:, 0], degrees, x).at(x) - float(overall**2 @ chance), 0)
        each = trend(of_paradigms.mean(axis=1), degrees, x).at(x) - float(chance.mean())
        total = np.maximum(each, 0) / (slope**2).mean(axis=1)
        apart = (slope**2) @ overall**2
        joint = (slope @ overall) ** 2
        common = np.maximum(whole - total * apart, 0) / np.maximum(joint - apart, 1e-12)
        common = np.where(joint - apart > 1e-9, common, whole / joint)
        own = np.maximum(total - common, 0)
    return SimulatedRuns(
        design, units, expected, np.sqrt(common), np.sqrt(own), pair_sd,
        pair_slope_deviation(outcome, design, units, squares) / float(sensitivity(level, pair_sd).mean()),
        seed_share(y @ overall, design, whole),
    )  # fmt: skip


def pair_slope_deviation(outcome: Array, design: Design, units: Units, squares: Array) -> float:
    """Return the deviation of pairs' own slopes (accuracy per doubling) beyond chance in single judgements."""
    if len(design.counts) < 2:
        return 0.0
    c = design.contrast
    slopes = c @ outcome
    n = np.diff(units.bounds)
    means = np.repeat(np.add.reduceat(slopes, units.bounds[:-1]) / n, n)
    variances = np.add.reduceat((slopes - means) ** 2, units.bounds[:-1]) / np.maximum(n - 1, 1)
    return float(np.sqrt(max(0.0, float((variances - (c**2).sum() * squares).mean()))))


def draws_of(runs: pd.DataFrame) -> npt.NDArray[np.intp]:
    """Return (R,) numbers of sample and seed, the same for runs of several curves that share both; -1: not known."""
    named = zip(runs["size"], runs["seed"], sample_digests(runs), strict=True)
    keys = [f"{size} {seed} {digest}" if digest else None for size, seed, digest in named]
    return np.asarray(pd.factorize(np.asarray(keys, dtype=object))[0], dtype=np.intp)


def correlation(judged: Judgements, units: Units) -> float:
    """Return the share of their variance that two curves' runs on one sample with one seed have in common.

    The variance is that of the overall accuracy, without chance in single judgements.
    """
    overall, variance = units.weights[:, 0], np.zeros(len(judged.runs))
    y = paradigm_accuracies(judged.outcome, units.bounds) @ overall
    for group in judged.runs["group"].unique():
        rows = rows_of(judged, group)
        design = design_of(judged.runs.iloc[rows])
        squares = judgement_squares(judged.outcome[rows].astype(np.float64), design, units)
        chance = float(overall**2 @ (squares / units.pairs))
        between, degrees = between_runs(y[rows][:, None], design, chance)
        if (degrees > 0).any():
            x = np.asarray([design.x[design.size == s].mean() for s in range(len(design.counts))])
            variance[rows] = np.maximum(trend(between[:, 0], degrees, x).at(design.x) - chance, 0)
    cell = np.asarray(judged.runs.groupby(["group", "size"]).ngroup(), dtype=np.intp)
    return common_share(y, cell, draws_of(judged.runs), variance)


def simulated_coverage(
    judged: Judgements, slopes: pd.DataFrame, config: CurvesConfig
) -> Iterator[tuple[int, dict[Key, tuple[Array, Array, Array]]]]:
    """Yield 1 and the limits and truths (U,) of each of config.coverage_studies simulated studies, by Key."""
    like = LikeStudy.of(judged, slopes)
    rng = np.random.default_rng([config.seed, 2])
    for _ in range(config.coverage_studies):
        at = replace(config, resamples=min(config.resamples, MOST_RESAMPLES), seed=int(rng.integers(2**32)))
        study, expected = like.draw(rng)
        yield 1, dict(_limits(like, study, expected, at))


def _limits(
    like: LikeStudy, study: Judgements, expected: Mapping[str, Array], config: CurvesConfig
) -> Iterator[tuple[Key, tuple[Array, Array, Array]]]:
    """Yield the limits of one simulated study with their truths."""
    units = like.units
    for fit, table in fitted_slopes(study, units, config):
        runs, method = like.groups[fit.group], Interval(table["method"].iloc[0]).rule.value
        for question, suffix, truth in ((THESE, "", expected[fit.group]), (NEW, "_new_pairs", runs.expected)):
            if len(runs.at) > 1:
                low, high = (table[f"{end}{suffix}"].to_numpy() for end in ("low", "high"))
                yield (fit.group, SLOPE, question, method), (low, high, slope_of(runs.at, truth, units))
        yield from _bands(fit, expected[fit.group], units, config)
    population = {group: runs.expected for group, runs in like.groups.items()}
    for a, b in combinations(like.groups, 2):
        table = compare_groups(study, (a, b), units, config)
        sizes = [sizes_of(study.runs[study.runs["group"] == group]) for group in (a, b)]
        common = [[names.index(name) for name in sizes[0] if name in sizes[1]] for names in sizes]
        method = str(table["method"].iloc[0])
        if method == Interval.NONE:
            continue
        for question, suffix, of in ((THESE, "", expected), (NEW, "_new_pairs", population)):
            first, second = (
                slope_of(like.groups[group].at[at], of[group][at], units)
                for group, at in zip((a, b), common, strict=True)
            )
            low, high = (table[f"{end}{suffix}"].to_numpy() for end in ("low", "high"))
            yield (f"{a} less {b}", DIFFERENCE, question, method), (low, high, first - second)


def slope_of(x: Array, accuracy: Array, units: Units) -> Array:
    """Return the (U,) slopes of the least-squares lines through (S, K) accuracies, sizes equally weighted."""
    return np.asarray(slope_weights(x, np.ones((1, len(x))))[0] @ accuracy @ units.weights)


def _bands(
    fit: GroupFit, expected: Array, units: Units, config: CurvesConfig
) -> Iterator[tuple[Key, tuple[Array, Array, Array]]]:
    size = fit.design.size
    per_trial = inverse_trials(fit.outcome, size, units)
    _, low, high = spread_limits(fit.y, size, config.confidence, per_trial, fit.design.overlap)
    for name, s in ((SMALLEST, 0), (LARGEST, len(expected) - 1)):
        yield (
            (fit.group, f"accuracy at the {name}", THESE, "Wilson, Student"),
            (low[s], high[s], expected[s] @ units.weights),
        )


def coverage_table(results: Sequence[Mapping[Key, tuple[Array, Array, Array]]], units: Units) -> pd.DataFrame:
    """Return COLUMNS: a row for each quantity overall, and for the phenomenon whose limits held least often.

    covered: of the limits that exist; none: share of studies without.
    """
    inside: dict[Key, list[Array]] = defaultdict(list)
    for result in results:
        for key, (low, high, truth) in result.items():
            held = ((low <= truth) & (truth <= high)).astype(np.float64)
            inside[key].append(np.where(np.isnan(low), np.nan, held))
    levels = {level: np.flatnonzero(units.table["level"] == level) for level in ("overall", "phenomenon")}
    rows = []
    for (curve, quantity, question, interval), of_studies in inside.items():
        values = np.stack(of_studies)
        known = (~np.isnan(values)).sum(axis=0)
        covered = np.nansum(values, axis=0) / np.where(known > 0, known, np.nan)
        for level, of in levels.items():
            u = min(of, key=lambda unit: np.inf if known[unit] == 0 else covered[unit])
            rows.append({
                "curve": curve, "quantity": quantity, "question": question, "level": level,
                "name": units.table["name"][u], "interval": interval, "studies": len(values),
                "none": 1 - known[u] / len(values), "covered": covered[u],
                "standard_error": _error(covered[u], known[u]),
            })  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def _error(share: float, studies: int) -> float:
    """Return the standard error of a share, above 0 also if none or all have it (Agresti and Coull 1998)."""
    more = (share * studies + 2) / (studies + 4)
    return float(np.sqrt(more * (1 - more) / (studies + 4)))


def can_be_simulated(judged: Judgements) -> str:
    """Return why no studies like this one can be simulated; "" where they can."""
    if judged.of_paradigms:
        return "judgements of single pairs are not known"
    if is_trajectory(judged.runs):
        return "checkpoints of one training have no intervals"
    counts = judged.runs.groupby(["group", "size"]).size()
    return "" if (counts > 1).any() else "no two runs at any size: nothing shows how runs differ"
