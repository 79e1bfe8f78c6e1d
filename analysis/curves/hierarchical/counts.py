"""Right judgements of a study's runs in its paradigms, with the matrices that the hierarchical model needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from typing import Any

import numpy as np
from scipy.linalg import null_space

from analysis.curves.designs import Design, design_of, same_text, sizes_of_few
from analysis.curves.groups import FEW, few_judgements, named, rows_of, without_sizes
from analysis.curves.intervals import ONE_TRAINING
from analysis.curves.units import Units, units_of
from analysis.curves.variance import Array, Numbers
from analysis.study.judgements import Judgements

# Deviations in logits that centring is chosen for, not priors: of cells, unless runs show theirs; of runs, of runs in
# phenomena; of the parts of a paradigm's curve, slope a doubling. Small ones of curves and bends centre them little:
# their spread may be near 0, where centred effects mix badly.
CELL, RUN, IN_PHENOMENON = 0.15, 0.12, 0.02
KINDS = {"level": 0.7, "slope": 0.07, "curve": 0.03, "bend": 0.005}
SHARED = ("level", "slope")  # what models have in common; each of them differs from it by a share of KINDS:
OF_MODELS = 0.25
LEAST_CELL = 0.02  # the least that runs show: chance may explain all of their deviation
LEAST_SHARE = 0.01  # of text in common: a smaller one is none
LEAST_RUNS = 5  # of a size whose intervals contain the truth also where its runs differ several times as much as others
FEW_RUNS = f"fewer than {LEAST_RUNS} runs at "
MOST_ALIKE = 4.0  # judgements of pairs as different as can be expected: a pair counts at most as so many


@dataclass(frozen=True)
class Counts:
    """R runs of G groups on K paradigms; L = sizes of all groups, a row for each group and size.

    units: as of `units_of`. groups: their names. group, size, words: (L,) number of the group, label and mean words of
    the size. of: (R, L) 1 where a run is of that row. right, pairs: (R, K), scaled by `alike`. alike: (K,) pairs that a
    pair counts as (`chance_among_pairs`). seed: (R, J) 1 where a run is of a seed whose samples are nested; J may be 0.
    overlap: (R,) share of text that samples of the run's size have in common. notes: groups that are left out, and why.
    """

    units: Units
    groups: list[str]
    group: Numbers
    size: list[str]
    words: Array
    of: Array
    right: Array
    pairs: Array
    alike: Array
    seed: Array
    overlap: Array
    notes: list[str]

    def extent(self, rows: Numbers) -> dict[str, Any]:
        """Return how many sizes some rows (of L) are, and the smallest and the largest."""
        of = rows[np.argsort(self.words[rows])]
        return {"sizes": len(of), "from_size": self.size[of[0]], "to_size": self.size[of[-1]]}

    def cautions(self, *curves: Numbers) -> list[str]:
        """Say of U units, on one curve (rows of L) or two, why intervals may not have their nominal coverage.

        Some sizes have few runs: how much these differ the model takes to be as much as elsewhere, or evenly more or
        less with size, and where it is several times as much, intervals contain the truth less often. FEW: a unit with
        few judgements that are wrong, or right, is mostly drawn to others. "": neither (docs/benchmarks.md).
        """
        right, judged = self.right / self.alike, self.pairs / self.alike
        few = np.any([
            few_judgements(self.of[:, rows].T @ right, self.of[:, rows].T @ judged, self.units.weights > 0)
            for rows in curves
        ], axis=0)  # fmt: skip
        runs = self._few_runs(np.concatenate(curves))
        return ["; ".join(filter(None, [runs, FEW if of_unit else ""])) for of_unit in few]

    def _few_runs(self, rows: Numbers) -> str:
        rows = rows[np.argsort(self.words[rows], kind="stable")]
        few = dict.fromkeys(self.size[row] for row in rows if self.of[:, row].sum() < LEAST_RUNS)
        every = len(few) == len({self.size[row] for row in rows})
        return FEW_RUNS + ("all sizes" if every else named(list(few))) if few else ""

    @cached_property
    def doublings(self) -> Array:
        """(L,) log2 words, less their mean over the sizes of the group."""
        x = np.log2(self.words)
        means = np.bincount(self.group, x) / np.bincount(self.group)
        return np.asarray(x - means[self.group])

    @cached_property
    def basis(self) -> dict[str, Array]:
        """(L, columns) values at each size of the parts of a curve, by KINDS; columns are of one group each.

        Level: one; slope: doublings; curve: the quadratic polynomial of doublings that is orthogonal to both, with
        three sizes; bend: those of higher degree.
        """
        columns: dict[str, list[Array]] = {kind: [] for kind in KINDS}
        for g in range(len(self.groups)):
            rows = self.group == g
            polynomials, _ = np.linalg.qr(np.vander(self.doublings[rows], increasing=True))
            parts = [np.ones(rows.sum()), self.doublings[rows], *polynomials.T[2:]]
            for kind, part in zip(chain(("level", "slope", "curve"), repeat("bend")), parts, strict=False):
                column = np.zeros(len(rows))
                column[rows] = part
                columns[kind].append(column)
        return {kind: np.stack(of, axis=1) if of else np.zeros((len(self.group), 0)) for kind, of in columns.items()}

    @cached_property
    def members(self) -> Array:
        """(K, P) 1 where a paradigm is of a phenomenon; one phenomenon where none has two paradigms."""
        rows = self.units.table["level"] == "paradigm"
        names, phenomenon = np.unique(self.units.table.loc[rows, "phenomenon"].to_numpy(dtype=str), return_inverse=True)
        if len(names) in (1, len(phenomenon)):
            return np.ones((len(phenomenon), 1))
        return np.asarray(np.equal.outer(phenomenon, np.arange(len(names))), dtype=np.float64)

    @cached_property
    def between(self) -> Array:
        """(K, P - 1) contrasts between phenomena: each phenomenon's value, a mean over paradigms of 0."""
        return np.asarray(self.members @ null_space(self.members.sum(axis=0)[None]))

    @cached_property
    def within(self) -> Array:
        """(K, K - P) contrasts between the paradigms of phenomena: a mean over each phenomenon of 0."""
        return np.asarray(null_space(self.members.T))

    @cached_property
    def centring(self) -> dict[str, Array]:
        """How far each effect is centred, 0 to 1: the share of information on it that judgements have.

        Papaspiliopoulos, Roberts and Skoeld (2007): with much data centred effects mix well, with little the others.
        """
        share = (self.right + 1) / (self.pairs + 2)
        judged = self.pairs * share * (1 - share)
        apart = self._cell_deviations(np.log(share / (1 - share)), 1 / judged)
        cell = 1 / (1 / judged + apart**2)
        phenomenon = cell @ self.members
        in_phenomenon = (1 / (1 / phenomenon + IN_PHENOMENON**2)).mean(axis=1, keepdims=True)
        parts = {"paradigm": cell.mean(axis=1, keepdims=True), "phenomenon": in_phenomenon}
        coefficients = {
            f"{part}_{kind}": _centred((columns**2).T @ (self.of.T @ information), KINDS[kind] * self._apart(kind))
            for part, information in parts.items()
            for kind, columns in self.basis.items()
        }
        return {
            "cell": _centred(judged, apart),
            "run": _centred(cell.sum(axis=1, keepdims=True), RUN),
            "run_in_phenomenon": _centred(phenomenon.mean(axis=1, keepdims=True), IN_PHENOMENON),
            **coefficients,
        }

    def _cell_deviations(self, logits: Array, chance: Array) -> Array:
        """Return how far (R, K) logits of runs of a size lie apart in each paradigm, (K,): deviations.

        Without what a run has in all paradigms, and without the variance by `chance`. The usual one counts as one more
        degree of freedom, and is all that there is where sizes have one run.
        """
        runs = self.of.sum(axis=0)
        cell = logits - logits.mean(axis=1, keepdims=True)
        apart = cell - self.of @ ((self.of.T @ cell) / runs[:, None])
        by_chance = chance * (1 - 1 / (self.of @ runs))[:, None]
        variance = ((apart**2 - by_chance).sum(axis=0) + CELL**2) / ((runs - 1).sum() + 1)
        return np.asarray(np.sqrt(np.maximum(variance, LEAST_CELL**2)))

    def _apart(self, kind: str) -> float:
        return OF_MODELS if kind in SHARED and len(self.groups) > 1 else 1.0


def _centred(information: Array, deviation: Array | float) -> Array:
    return np.asarray(information / (information + np.asarray(deviation) ** -2))


def chance_among_pairs(outcome: Array, designs: list[tuple[Numbers, Design]], units: Units) -> Array:
    """Return the (K,) number of pairs that a pair counts as, at least 1.

    All runs judge the same pairs, of which some are easy and some hard: the number of right judgements of these very
    pairs varies less than that of as many alike (Feller 1968, section IX.5). The ratio of both variances, from pairs'
    outcomes over the runs of a size. 1 where single pairs, or two runs of a size, are not known.
    """
    alike = np.ones(len(units.pairs))
    if not units.rows_are_pairs:
        return alike
    starts, rows = units.bounds[:-1], np.diff(units.bounds)
    whole, chance = np.full(len(rows), 0.02), np.full(len(rows), 0.02)  # as much of both: for pairs all right
    for runs, design in designs:
        for s in range(len(design.counts)):
            of = np.asarray(outcome[runs[design.size == s]], dtype=np.float64)
            if len(of) > 1:
                mean = np.add.reduceat(of.mean(axis=0), starts) / rows
                whole += mean * (1 - mean)
                chance += np.add.reduceat(of.var(axis=0, ddof=1), starts) / rows
    return np.asarray(np.clip(whole / chance, 1, MOST_ALIKE))


def counts_of(judged: Judgements) -> Counts | str:
    """Return the counts of a study's groups with two sizes or more, or the reason why there is no model of them."""
    units = units_of(judged.pairs)
    if not np.isfinite(units.pairs).all():
        return "the number of pairs of some paradigms is not known"
    if len(units.pairs) < 2:
        return "there is one paradigm only"
    designs, names, notes = [], [], []
    for group in judged.runs["group"].unique():
        rows = rows_of(judged, group)
        design = design_of(judged.runs.iloc[rows])
        if reason := _left_out(design):
            notes.append(f"{group}: not in the hierarchical model: {reason}")
            continue
        names.append(str(group))
        designs.append((rows, design))
    if not designs:
        return "; ".join(notes)
    runs = np.concatenate([rows for rows, _ in designs])
    outcome = judged.outcome[runs]
    right = np.add.reduceat(outcome, units.bounds[:-1], axis=1, dtype=np.float64)
    if judged.of_paradigms:
        right = right * units.pairs
    alike = chance_among_pairs(judged.outcome, designs, units)
    group = np.concatenate([np.full(len(design.counts), g) for g, (_, design) in enumerate(designs)])
    first = np.concatenate([[0], np.cumsum([len(design.counts) for _, design in designs])])
    row = np.concatenate([start + design.size for start, (_, design) in zip(first, designs, strict=False)])
    of = np.equal.outer(row, np.arange(len(group))).astype(np.float64)
    table = judged.runs.iloc[runs]
    words = of.T @ table["sample_words"].to_numpy(dtype=np.float64) / of.sum(axis=0)
    size = [str(table["size"].iloc[int(np.argmax(row == place))]) for place in range(len(group))]
    shares = [np.zeros(len(rows)) if design.overlap is None else design.overlap for rows, design in designs]
    share = np.concatenate(shares)
    return Counts(
        units, names, group, size, words, of, right * alike, np.broadcast_to(units.pairs * alike, right.shape), alike,
        _nested_seeds(designs), np.where(share > LEAST_SHARE, np.minimum(share, 1.0), 0.0), notes,
    )  # fmt: skip


def _left_out(design: Design) -> str:
    """Return why a group has no place in the model, whose spreads would be those of its priors; "" if it has one."""
    if design.trajectory:
        return ONE_TRAINING
    if len(design.counts) < 2:
        return "one size only"
    if len(design.x) < 3:
        return "two runs"
    if design.nested and len(np.unique(design.seed)) < 2:
        return "nested samples of one seed, which are one draw of text"
    return "runs of a size on the same text" if same_text(design) else ""


def without_lone_runs(judged: Judgements) -> tuple[Judgements, list[str]]:
    """Leave out the only run of a size in groups that have two sizes of several runs, and note which sizes these are.

    Nothing shows how much runs differ there. The model would take it to be about as much as at the other sizes, and
    where it is more, or the curve bends there, intervals of the slope were too narrow (docs/benchmarks.md).
    """
    left_out = sizes_of_few(judged.runs, 2)
    return without_sizes(judged, left_out), [
        f"{group}: one run at {named(sizes)}: left out of the hierarchical model, as nothing shows how much runs "
        "differ there; its slopes, and the default ones beside them, are of the other sizes"
        for group, sizes in left_out.items()
    ]


def _nested_seeds(designs: list[tuple[Numbers, Design]]) -> Array:
    """Return (R, J): which run is of which seed, of groups whose samples are nested."""
    blocks = [
        np.equal.outer(design.seed, np.arange(design.seed.max() + 1)) if design.nested else np.zeros((len(rows), 0))
        for rows, design in designs
    ]
    runs, seeds = (sum(block.shape[axis] for block in blocks) for axis in (0, 1))
    seed, at, to = np.zeros((runs, seeds)), 0, 0
    for block in blocks:
        seed[at : at + len(block), to : to + block.shape[1]] = block
        at, to = at + len(block), to + block.shape[1]
    return seed
