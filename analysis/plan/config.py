"""Schema of the section `plan` of `python -m analysis.plan`."""

from dataclasses import dataclass, field

from pairscale.errors import check_between, check_seed

SLOPE, DIFFERENCE, ABLATION = GOALS = ("slope", "difference", "ablation")


@dataclass
class PlanConfig:
    """The unit that is planned for, what a pilot does not say, and the grids that are tried."""

    unit: str = "overall"  # overall, a phenomenon or a paradigm
    curves: list[str] = field(default_factory=list)  # one or two of the pilot; []: see docs/guides/planning.md
    accuracy: float = 0.65  # expected at the smallest size, without a pilot
    paradigms: int | None = None  # of the unit, without a pilot; null: those that are published
    seeds: list[int] = field(default_factory=lambda: [1, 2, 3, 4, 5, 7, 10])
    pairs: list[int] | None = None  # of each paradigm; null: those of the experiment, and a tenth of them
    simulations: int = 1000  # studies that are simulated on each grid
    seed: int = 1  # of the simulations

    def __post_init__(self) -> None:
        check_between("plan.accuracy", self.accuracy, 0.001, 0.999)
        check_between("plan.paradigms", self.paradigms, 1, 10**5)
        check_between("plan.simulations", self.simulations, 100, 10**6)
        check_seed("plan.seed", self.seed)
        for name, values, least, most in (("seeds", self.seeds, 1, 100), ("pairs", self.pairs, 2, 10**6)):
            for value in values or []:
                check_between(f"plan.{name}", value, least, most)
