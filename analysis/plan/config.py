"""Schema of the section `plan` of `python -m analysis.plan`."""

from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from pairscale.command.schemas import Seed

SLOPE, DIFFERENCE, ABLATION = GOALS = ("slope", "difference", "ablation")


@dataclass(kw_only=True)
class PlanConfig:
    """The unit that is planned for, what a pilot does not say, and the grids that are tried."""

    unit: str = "overall"  # overall, a phenomenon or a paradigm
    curves: list[str] = field(default_factory=list)  # one or two of the pilot; []: see docs/guides/planning.md
    accuracy: Annotated[float, Meta(ge=0.001, le=0.999)] = 0.65  # expected at the smallest size, without a pilot
    # of the unit, without a pilot; null: those that are published
    paradigms: Annotated[int, Meta(ge=1, le=10**5)] | None = None
    seeds: list[Annotated[int, Meta(ge=1, le=100)]] = field(default_factory=lambda: [1, 2, 3, 4, 5, 7, 10])
    # of each paradigm; null: those of the experiment, and a tenth of them
    pairs: list[Annotated[int, Meta(ge=2, le=10**6)]] | None = None
    simulations: Annotated[int, Meta(ge=100, le=10**6)] = 1000  # studies that are simulated on each grid
    seed: Seed = 1  # of the simulations
