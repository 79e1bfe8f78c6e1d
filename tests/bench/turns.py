"""Different ways of doing the same work, timed in turns, so that other load slows them all."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Protocol, runtime_checkable

Way = Callable[[float], tuple[float, float]]
"""Works for about so many seconds; returns the units done and the seconds spent."""

OURS = "ours"


@dataclass
class Case:
    """Rates of several ways (units a second), the first of them ours; `goals` are least ratios of ours to another."""

    name: str
    unit: str
    ways: Mapping[str, Way]
    goals: Mapping[str, float] = field(default_factory=dict)
    rates: dict[str, list[float]] = field(default_factory=dict)

    def measure(self, rounds: int, seconds: float) -> Case:
        """Let all ways take `rounds` turns, after a warm-up."""
        try:
            for way in self.ways.values():
                way(0)
            for _ in range(rounds):
                for name, way in self.ways.items():
                    units, spent = way(seconds)
                    self.rates.setdefault(name, []).append(units / spent)
        finally:
            for way in self.ways.values():
                if isinstance(way, Closing):
                    way.close()
            self.ways = {}  # they hold models
        return self

    def ratios(self) -> dict[str, list[float]]:
        """Return the ratios of ours to each other way, round by round."""
        ours = self.rates[OURS]
        others = {name: rates for name, rates in self.rates.items() if name != OURS}
        return {name: [one / other for one, other in zip(ours, rates, strict=True)] for name, rates in others.items()}

    def record(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "unit": self.unit,
            "per_second": self.rates,
            "ratio": {name: median(ratios) for name, ratios in self.ratios().items()},
            "goals": dict(self.goals),
        }


@runtime_checkable
class Closing(Protocol):
    """A way with resources to release."""

    def close(self) -> None: ...


def repeated(step: Callable[[], float]) -> Way:
    """Return a way that repeats a step, which returns its units, until the time is over."""

    def way(seconds: float) -> tuple[float, float]:
        done, started = step(), time.perf_counter()
        if seconds == 0:
            return done, 1.0
        done = 0.0
        while (spent := time.perf_counter() - started) < seconds or done == 0:
            done += step()
        return done, spent

    return way
