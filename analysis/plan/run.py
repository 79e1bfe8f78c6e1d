"""The command: what runs vary by, the grids and their power, the cheapest that suffices, a check by simulation, a page.

<paths.reports>/<study>/plan/   table, figure, report.html
"""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from hydra.core.hydra_config import HydraConfig
from rich.console import Console

from analysis.config import AnalysisConfig
from analysis.curves.ablations.matching import CONTROL, NONE, REMOVE
from analysis.curves.designs import OVERLAP_LIMIT
from analysis.exhibits.sentences.curves import plural
from analysis.plan.check import Check, lines_of
from analysis.plan.config import ABLATION, DIFFERENCE, PEOPLE, SLOPE, check_goal
from analysis.plan.grids import Cost, Grid, candidates, cost_of, pareto
from analysis.plan.pilot import Basis, from_pilot, stated
from analysis.plan.power import Power, Spread, power_of
from analysis.plan.section import Plan, Simulated, findings, grids_exhibit, plan_section
from analysis.report.report import write_report
from analysis.sections.section import Report
from analysis.study.collect import PROBLEMS, Study
from corpora.ablation.config import AblateConfig
from eval.config import EvalConfig
from eval.sweeps import expected_points
from pairscale.command.sweeps import grid as axes_of_experiment
from pairscale.console import print_text
from pairscale.errors import ConfigError
from pairscale.progress import with_progress
from pairscale.sizes import parse_size
from train.runs.identity import run_id

OWN = (
    "effect",
    "power",
    "goal",
    "pilot",
    "spread",
    "rate",
    "plan",
    "analysis",
    "paths",
    "experiment",
    "study",
    "format",
)
PUBLISHED_PAIRS = 1000  # of a paradigm of BLiMP and CLiMP, where neither experiment nor pilot says
LEAST_SIZES = 3  # two sizes are a difference, not a slope


def run(config: AnalysisConfig) -> None:
    """Plan the experiment of the command line. Raises ConfigError, and RunError for a pilot that cannot be used."""
    effect = check_goal(config.goal, config.effect, config.power)
    console, quiet = Console(highlight=False), Console(stderr=True, highlight=False)
    with quiet.status("composing the grid"):
        experiment = Experiment.of(config)
    with quiet.status("reading the pilot" if config.pilot else "planning"):
        basis = from_pilot(config) if config.pilot else stated(config, min(experiment.sizes.values()))
    sizes = {size: x + basis.shift for size, x in experiment.sizes.items()}
    costs = experiment.costs(config.rate, basis.rates)
    least = 1 if config.goal == ABLATION else LEAST_SIZES
    pairs = config.plan.pairs or _pairs(config.benchmark.pairs or basis.pairs or PUBLISHED_PAIRS)
    if config.goal == SLOPE:
        basis = replace(basis, spread=replace(basis.spread, gain=effect))
    every = [*candidates(sizes, config.plan.seeds, pairs, least, config.sample.nested)]
    grids, left_out = _possible(config.goal, effect, every, basis.spread)
    table = _table(config, effect, grids, basis, costs)
    plan = Plan(
        config.goal, effect, config.power, config.plan.unit, config.analysis.confidence, config.plan.upper, table,
        _about(config, basis), [*experiment.notes(config, basis), *left_out], experiment.commands(table, config.power),
    )  # fmt: skip
    if (best := plan.chosen) is not None and config.plan.simulations:
        chosen = grids[int(best["grid"])]
        plan = replace(plan, simulated=_simulated(config, effect, chosen, basis, float(best["power"])))
    _print(plan, console, quiet)
    study = Study(experiment.name, pd.DataFrame({"group": [], "manifest": []}), pd.DataFrame(columns=list(PROBLEMS)))
    again = f"python -m analysis.plan {shlex.join(HydraConfig.get().overrides.task)}"
    folder = Path(config.paths.reports) / experiment.name / "plan"
    with quiet.status("writing the page"):
        report = Report(study, config, {}, [plan_section(plan)], commands=[again, *plan.commands])
        path = write_report(folder, report)
    console.print(f"report: {path}", markup=False, soft_wrap=True)


@dataclass(frozen=True)
class Experiment:
    """The experiment that is planned. sizes: log2 of their number, smallest first. overrides: what its runs are given.

    points: size -> model and words seen of each run of one seed.
    """

    name: str
    overrides: Sequence[str]
    sizes: Mapping[str, float]
    points: Mapping[str, Sequence[tuple[str, int]]]

    @classmethod
    def of(cls, config: AnalysisConfig) -> Experiment:
        """Return the experiment of the command line.

        Raises ConfigError without one, without sizes, or without the curves that the goal compares.
        """
        name = HydraConfig.get().runtime.choices.get("experiment")
        if name is None:
            raise ConfigError("experiment=null: name the experiment that is planned: experiment=NAME")
        typed = HydraConfig.get().overrides.task
        given = [one for one in typed if re.split(r"[.=@]", one.lstrip("+~"))[0] not in OWN]
        axes = axes_of_experiment(name, given)
        named = axes.get("sample.size", [])
        least = 1 if config.goal == ABLATION else LEAST_SIZES
        if len(named) < least:
            has = f"has {plural(len(named), 'size')}" if named else "has no axis of sizes"
            raise ConfigError(f"experiment={name}: {has} (sample.size); goal={config.goal} needs at least {least}")
        rest = [one for one in given if not one.startswith("seed=")]
        runs = {run_id(of): of for _, of in expected_points(name, [*rest, "seed=1"])}
        check_curves(f"experiment={name}", config.goal, list(runs.values()))
        points: dict[str, list[tuple[str, int]]] = {}
        for of in runs.values():
            words = of.recipe.budget.words_seen(of.sample.number) if of.recipe.trains else of.sample.number
            points.setdefault(of.sample.size, []).append((of.model.name, words))
        ordered = sorted(points, key=parse_size)
        return cls(name, rest, {size: math.log2(parse_size(size)) for size in ordered}, points)

    def costs(self, rate: float | dict[str, float] | None, of_pilot: Mapping[str, float]) -> dict[str, Cost]:
        """Return the cost of one seed at each size; hours are NaN where a model's words/s are not known."""
        costs = {}
        for size, runs in self.points.items():
            hours = 0.0
            for model, words in runs:
                speed = rate.get(model, math.nan) if isinstance(rate, dict) else rate or of_pilot.get(model, math.nan)
                hours += words / speed / 3600
            costs[size] = Cost(len(runs), float(sum(words for _, words in runs)), hours)
        return costs

    def commands(self, table: pd.DataFrame, target: float) -> list[str]:
        """Return the commands of the cheapest grid that suffices, and of that which suffices at the upper limit."""
        chosen = [*table.index[table["chosen"]][:1], *table.index[table["upper"] >= target][:1]]
        return [self.command(table.loc[i]) for i in dict.fromkeys(chosen)]

    def command(self, row: pd.Series) -> str:
        """Return the command that trains and scores the runs of a grid."""
        words = [one for one in self.overrides if not one.startswith(("sample.size=", "benchmark.pairs="))]
        sizes = f"sample.size={row['names']}"
        seeds = f"seed={','.join(map(str, range(1, int(row['seeds']) + 1)))}"
        every = ["python", "-m", "eval", "-m", f"experiment={self.name}", *words, sizes, seeds]
        return shlex.join([*every, f"benchmark.pairs={row['pairs']}"])

    def notes(self, config: AnalysisConfig, basis: Basis) -> list[str]:
        """Return what a reader has to know before the plan is used."""
        notes = []
        models = {model for runs in self.points.values() for model, _ in runs}
        of = config.rate if isinstance(config.rate, dict) else basis.rates
        unknown = sorted(models - set(of)) if config.rate is None or of is config.rate else []
        if unknown:
            given = "give rate=40000" if config.rate is None else f"rate has those of {', '.join(map(str, of))}"
            notes.append(f"words/s of {', '.join(unknown)} are not known, so hours are not: {given}.")
        if config.sample.count != "words":
            notes.append(f"Words to train are counted in {config.sample.count} here.")
        if config.sample.nested and not basis.nested:
            notes.append("Samples are nested, and nothing says how runs of one seed go together: taken as independent.")
        share = 2 ** (max(self.sizes.values()) + basis.shift) / basis.text
        if share > OVERLAP_LIMIT:
            notes.append(
                f"Samples of the largest size share up to {min(share, 1):.0%} of their text. Limits are then "
                "conservative, which the plan does not count, and by default left out (analysis.cautioned_limits)."
            )
        return notes


def check_curves(experiment: str, goal: str, runs: Sequence[EvalConfig]) -> None:
    """Raise ConfigError where the runs of an experiment's seed are not of the curves that a goal compares.

    Conditions are those of analysis.curves.ablations.matching.comparisons, of one model and text.
    """
    if goal == DIFFERENCE and max(Counter(run.sample.size for run in runs).values()) < 2:
        raise ConfigError(f"{experiment}: has one curve; goal={goal} needs two, such as those of two models")
    conditions = defaultdict(set)
    for run in runs:
        base = run_id(replace(run, filter=None, ablate=AblateConfig()))
        name = run.filter.name if run.filter and run.ablate.acts else ""
        conditions[base].add((name, run.ablate.action, run.ablate.dose if name else ""))
    if goal == ABLATION and not any(
        ("", NONE, "") in of or (action == REMOVE and (name, CONTROL, dose) in of)
        for of in conditions.values()
        for name, action, dose in of
        if action != NONE
    ):
        raise ConfigError(
            f"{experiment}: has no treatment beside its control or the full text; goal={goal} needs runs of a filter "
            "with two of ablate.action=none, remove, control, as experiment=ablation_small has"
        )


def _possible(goal: str, effect: float, grids: Sequence[Grid], spread: Spread) -> tuple[list[Grid], list[str]]:
    """Return the grids whose expected accuracies all lie between 0 and 1, and a note on the others.

    Raises ConfigError without any.
    """
    reasons = [_outside(goal, effect, grid, spread) for grid in grids]
    possible = [grid for grid, reason in zip(grids, reasons, strict=True) if not reason]
    first = next(filter(None, reasons), "")
    if not possible:
        raise ConfigError(f"goal={goal}, effect={effect}: {first}; must lie between 0 and 1")
    less = len(grids) - len(possible)
    number = f"{less} of {len(grids)} grids {'is' if less == 1 else 'are'} left out"
    return possible, [f"{number}: {first}, outside 0 to 1."] if first else []


def _outside(goal: str, effect: float, grid: Grid, spread: Spread) -> str:
    """Return which accuracy would be farthest outside 0 to 1, and at which size; "" where none is."""
    lines = lines_of(goal, effect, grid, spread)
    far = np.abs(lines - 0.5)
    if far.max() <= 0.5 + 1e-9:
        return ""
    size = grid.sizes[int(far.max(axis=0).argmax())]
    start = f"from {spread.accuracy:.3g} at {2**spread.x:,.0f}, {spread.gain:+.3g} a doubling"
    return f"accuracy would be {lines.flat[far.argmax()]:.3g} at sample.size={size} ({start})"


def _pairs(most: int) -> list[int]:
    return sorted({max(2, most // 10), most})


def _about(config: AnalysisConfig, basis: Basis) -> str:
    text, of = _of_pilot(config, basis) if config.pilot else basis.about, basis.spread
    if config.goal != PEOPLE:
        return text
    error = f"a standard error of {of.people_error:.4f}" if of.people_error else "taken to be exact"
    return f"{text} People's accuracy is {of.people:.4f}, {error}."


def _of_pilot(config: AnalysisConfig, basis: Basis) -> str:
    of, total = basis.spread, basis.spread.total
    change = f"x{math.exp(total.slope / 2):.2f} with each doubling" if total.slope else "the same at all sizes"
    change = "that of each size by itself" if total.shape else change
    at = plural(round(2**total.x), "word")
    chance = f", of which chance in single judgements gives {math.sqrt(of.chance):.4f}"
    if of.chance > total.variance:
        where = " at this size" if total.slope or total.shape else ""
        chance = f"; chance in single judgements alone would give {math.sqrt(of.chance):.4f}"
        chance += f", so the pilot shows no further spread between runs{where}"
    factor = math.sqrt(total.upper(config.plan.upper))
    return (
        f"Pilot: {config.pilot}, {basis.about}. Standard deviation between runs {math.sqrt(total.variance):.4f} at "
        f"{at}, {change} (changes count if a likelihood-ratio test shows them at 5%){chance}; "
        f"{plural(round(total.degrees), 'degree')} of freedom: its upper limit ({config.plan.upper:.0%}, one-sided) is "
        f"x{factor:.2f}. {plural(of.paradigms, 'paradigm')}."
    )


def _table(
    config: AnalysisConfig, effect: float, grids: Sequence[Grid], basis: Basis, costs: Mapping[str, Cost]
) -> pd.DataFrame:
    """Return the grids of `Plan`, by cost, with `names`, the sizes as the command line takes them, and `grid`."""
    confidence, interval, rows = config.analysis.confidence, config.analysis.interval, []
    unsure = basis.spread.upper(config.plan.upper) if math.isfinite(basis.spread.total.degrees) else None

    def powers() -> Iterator[tuple[int, tuple[Grid, Power, float]]]:
        for grid in grids:
            found = power_of(config.goal, effect, grid, basis.spread, interval, confidence)
            upper = power_of(config.goal, effect, grid, unsure, interval, confidence).power if unsure else math.nan
            yield 1, (grid, found, upper)

    for number, (grid, found, upper) in enumerate(with_progress(powers(), "power of grids", len(grids), "grids")):
        rows.append(_row(number, grid, found, upper, cost_of(grid, costs)))
    table = pd.DataFrame(rows)
    by = "hours" if table["hours"].notna().all() else "words"
    table = table.sort_values([by, "pairs", "seeds"], kind="stable", ignore_index=True)
    best = pareto(table[by].tolist(), table["power"].fillna(-1).tolist())
    enough = table.index[table["power"] >= config.power]
    return table.assign(best=table.index.isin(best) & table["power"].notna(), chosen=table.index.isin(enough[:1]))


def _row(number: int, grid: Grid, found: Power, upper: float, cost: Cost) -> dict[str, object]:
    return {
        "grid": number, "names": ",".join(grid.sizes), "sizes": grid.named, "seeds": grid.seeds, "pairs": grid.pairs,
        "runs": cost.runs, "words": cost.words, "hours": cost.hours, "power": found.power, "upper": upper,
        "degrees": found.degrees, "interval": found.method, "note": found.note,
    }  # fmt: skip


def _simulated(config: AnalysisConfig, effect: float, grid: Grid, basis: Basis, predicted: float) -> Simulated:
    count = config.plan.simulations
    check = Check(config.goal, effect, grid, basis.spread, config.analysis)
    studies = check.studies(np.random.default_rng(config.plan.seed), count)
    found = sum(with_progress(studies, "simulating the chosen grid", count, "studies"))
    return Simulated(count, found, predicted)


def _print(plan: Plan, console: Console, quiet: Console) -> None:
    for note in plan.notes:
        print_text(quiet, note, "note", "yellow")
    for finding in findings(plan):
        print_text(console, f"{finding.subject}: {finding.full}")
    best = plan.grids[plan.grids["best"] | plan.grids["chosen"]]
    for part in grids_exhibit(plan, best).terminal(console.width):
        console.print(part)
    print_text(console, plan.about)
    for command in plan.commands:
        console.print(command, markup=False, soft_wrap=True)
