"""Schema of the section `plan` of `python -m analysis.plan`."""

from dataclasses import dataclass, field

from pairscale.errors import ConfigError, check_between, check_seed

SLOPE, DIFFERENCE, ABLATION = GOALS = ("slope", "difference", "ablation")
MOST_SEEDS = 100


@dataclass
class PlanConfig:
    """The unit that is planned for, what a pilot does not say, and the grids that are tried."""

    unit: str = "overall"  # overall, a phenomenon or a paradigm
    group: str | None = None  # of the pilot; null: the curve whose runs differ most
    other: str | None = None  # of the pilot, with which `group` is compared; null: the first other one
    accuracy: float = 0.65  # expected at the smallest size, without a pilot
    paradigms: int | None = None  # of the unit, without a pilot; null: those that are published
    correlation: float = 0.0  # between paired runs of two groups, where the pilot has one group or is none
    seeds: list[int] = field(default_factory=lambda: [1, 2, 3, 4, 5, 7, 10])
    pairs: list[int] | None = None  # of each paradigm; null: those of the experiment, and a tenth of them
    simulations: int = 1000  # studies that are simulated on each grid
    seed: int = 1  # of the simulations

    def __post_init__(self) -> None:
        if not 0 < self.accuracy < 1:
            raise ConfigError(f"plan.accuracy={self.accuracy}: must lie between 0 and 1.")
        if not -1 < self.correlation < 1:
            raise ConfigError(f"plan.correlation={self.correlation}: must lie between -1 and 1")
        check_between("plan.paradigms", self.paradigms, 1, 10**5)
        check_between("plan.simulations", self.simulations, 100, 10**6)
        check_seed("plan.seed", self.seed)
        for name, least, most in (("seeds", 1, MOST_SEEDS), ("pairs", 2, 10**6)):
            values = getattr(self, name)
            if values is not None and not values:
                raise ConfigError(f"plan.{name}=[]: must be a list of at least one whole number, such as [2,3,5]")
            for value in values or []:
                check_between(f"plan.{name}", value, least, most)
