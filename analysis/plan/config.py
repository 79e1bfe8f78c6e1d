"""Define the section `plan` of the configuration of `python -m analysis.plan`."""

from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from pairscale.command.schemas import Seed

SLOPE, DIFFERENCE, ABLATION = GOALS = ("slope", "difference", "ablation")


@dataclass(kw_only=True)
class PlanConfig:
    """The settings for the unit to plan for, the assumptions without a pilot, and the grids to try."""

    unit: str = "overall"  # overall, a phenomenon or a paradigm
    curves: list[str] = field(default_factory=list)  # one or two curves of the pilot; []: see docs/guides/planning.md
    accuracy: Annotated[float, Meta(ge=0.001, le=0.999)] = 0.65  # expected at the smallest size, if there is no pilot
    # number of paradigms of the unit, if there is no pilot; null: as many as are published
    paradigms: Annotated[int, Meta(ge=1, le=10**5)] | None = None
    seeds: list[Annotated[int, Meta(ge=1, le=100)]] = field(default_factory=lambda: [1, 2, 3, 4, 5, 7, 10])
    # pairs per paradigm to try; null: as many as in the experiment, and a tenth of that
    pairs: list[Annotated[int, Meta(ge=2, le=10**6)]] | None = None
    simulations: Annotated[int, Meta(ge=100, le=10**6)] = 1000  # simulated studies per grid
    seed: Seed = 1  # seed of the simulations
