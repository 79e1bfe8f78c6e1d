"""Grids of sizes, seeds and pairs, and what their runs cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from analysis.curves.designs import Design


@dataclass(frozen=True)
class Grid:
    """Sizes (as on the command line, smallest first), at log2(words) `x`, runs of each, and pairs of each paradigm."""

    sizes: tuple[str, ...]
    x: tuple[float, ...]
    seeds: int
    pairs: int
    nested: bool = False

    @cached_property
    def design(self) -> Design:
        """The design of one group's runs."""
        size = np.repeat(np.arange(len(self.x)), self.seeds)
        return Design(np.asarray(self.x)[size], size, np.tile(np.arange(self.seeds), len(self.x)), self.nested)

    @property
    def named(self) -> str:
        """The sizes in words: "125k to 1M (4)"."""
        if len(self.sizes) == 1:
            return self.sizes[0]
        return f"{self.sizes[0]} to {self.sizes[-1]} ({len(self.sizes)})"


@dataclass(frozen=True)
class Cost:
    """The cost of one seed at one size, of all models of the experiment: runs, words seen, hours (NaN: not known)."""

    runs: int
    words: float
    hours: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.runs + other.runs, self.words + other.words, self.hours + other.hours)

    def __mul__(self, seeds: int) -> Cost:
        return Cost(self.runs * seeds, self.words * seeds, self.hours * seeds)


def cost_of(grid: Grid, costs: Mapping[str, Cost]) -> Cost:
    """Return the cost of a grid; `costs`: of one seed at each size."""
    total = Cost(0, 0.0, 0.0)
    for size in grid.sizes:
        total = total + costs[size]
    return total * grid.seeds


def candidates(
    sizes: Mapping[str, float], seeds: Sequence[int], pairs: Sequence[int], least: int, nested: bool
) -> Iterator[Grid]:
    """Yield the grids that are compared; `sizes`: log2(words) by name, smallest first, `least`: fewest of them.

    All sizes up to each, and every other one of these: dropping large sizes saves most words, dropping those between
    keeps the range.
    """
    names = list(sizes)
    chosen: dict[tuple[str, ...], None] = {}
    for end in range(least, len(names) + 1):
        upto = names[:end]
        chosen[tuple(upto)] = None
        thinned = tuple(reversed(upto[::-1][::2]))
        if len(thinned) >= max(least, 2):
            chosen[thinned] = None
    for of in chosen:
        for number in sorted(set(seeds)):
            for n in sorted(set(pairs)):
                yield Grid(of, tuple(sizes[name] for name in of), number, n, nested)


def pareto(costs: Sequence[float], powers: Sequence[float]) -> list[int]:
    """Return the positions of the points that no other one beats: cheaper and at least as powerful; by cost."""
    best, front = -np.inf, []
    for i in sorted(range(len(costs)), key=lambda i: (costs[i], -powers[i])):
        if powers[i] > best:
            front.append(i)
            best = powers[i]
    return front
