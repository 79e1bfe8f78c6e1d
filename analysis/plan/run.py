"""The command: the grids of an experiment, their cost and power, and the command of the cheapest that suffices.

<paths.reports>/<study>/plan.csv   the table of grids
"""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from hydra.core.hydra_config import HydraConfig
from rich.console import Console
from rich.table import Table

from analysis.config import AnalysisConfig
from analysis.curves.ablations import comparisons
from analysis.plan.config import check_goal
from analysis.plan.planner import (
    ABLATION,
    DIFFERENCE,
    LEAST_SIZES,
    UPPER,
    Assumed,
    Goal,
    assume_pilot,
    assume_stated,
    candidate_grids,
    plan_grids,
)
from analysis.study.long_table import accuracies, runs
from eval.config import EvalConfig
from eval.published import read_published
from eval.sweeps import expected_points
from pairscale.command.sweeps import grid as axes_of_experiment
from pairscale.console import print_text
from pairscale.errors import ConfigError
from pairscale.files import write_text
from pairscale.sizes import parse_size
from train.runs.identity import run_id

OWN = [
    "effect", "power", "goal", "pilot", "spread", "rate", "plan", "analysis", "paths", "experiment", "study", "format",
]  # fmt: skip
PUBLISHED_PAIRS = 1000  # minimal pairs of a paradigm of BLiMP and CLiMP


def run(config: AnalysisConfig) -> None:
    """Plan the experiment of the command line.

    Raises ConfigError for values that don't fit together, RunError for a pilot that can't be used.
    """
    goal = Goal(config.goal, check_goal(config.effect, config.power), config.power, config.analysis.confidence)
    console, quiet = Console(highlight=False), Console(stderr=True, highlight=False)
    with quiet.status("composing the grid"):
        experiment = Experiment.of(config)
    with quiet.status("reading the pilot" if config.pilot else "planning"):
        assumed, about, rates, pairs = _assumptions(config, goal)
    numbers = config.plan.pairs or sorted({max(2, pairs // 10), pairs})
    least = LEAST_SIZES[goal.kind]
    grids = [*candidate_grids(experiment.sizes, config.plan.seeds, numbers, least, config.sample.nested)]
    with quiet.status(f"simulating {len(grids)} grids"):
        costs = experiment.costs(config.rate, rates)
        table = plan_grids(grids, goal, assumed, costs, config.plan.simulations, config.plan.seed)
    path = Path(config.paths.reports) / experiment.name / "plan.csv"
    write_text(path, table.to_csv(index=False))
    _print(console, table, goal, about)
    if len(table) < len(grids):
        print_text(
            quiet, f"{len(grids) - len(table)} grids are left out: accuracies would leave 0 to 1.", "note", "yellow"
        )
    if table["hours"].isna().any():
        print_text(quiet, "Words/s are not known, so hours aren't either: give rate=40000.", "note", "yellow")
    for command in experiment.commands(table, goal.power):
        console.print(command, markup=False, soft_wrap=True)
    console.print(f"all grids: {path}", markup=False, soft_wrap=True)


def _assumptions(config: AnalysisConfig, goal: Goal) -> tuple[Assumed, str, Mapping[str, float], int]:
    """Return what is assumed, a sentence about it, words/s by model, and minimal pairs per paradigm."""
    plan, benchmark = config.plan, config.benchmark
    if config.pilot is None:
        if config.spread is None or not 0 < config.spread < 0.5:
            raise ConfigError(
                f"spread={config.spread}: give pilot=STUDY, or the standard deviation between accuracies of runs of "
                "one size, above 0 and below 0.5, such as spread=0.01"
            )
        paradigms = plan.paradigms or _published_paradigms(benchmark.name)
        if not paradigms or (plan.unit != "overall" and not plan.paradigms):
            raise ConfigError(f"plan.paradigms=null: state how many paradigms plan.unit={plan.unit[:80]} has")
        assumed = assume_stated(goal, config.spread, plan.accuracy, paradigms, plan.correlation)
        return assumed, f"Stated: standard deviation {config.spread:g}.", {}, benchmark.pairs or PUBLISHED_PAIRS
    study, folder = str(config.pilot), config.paths.runs
    table = _scored(accuracies(study, method=config.analysis.method, ties=config.ties, folder=folder), config)
    curves = [curve for curve in (plan.group, plan.other) if curve is not None]
    of_runs = runs(study, folder=folder)
    if goal.kind == ABLATION and not curves and (first := next(comparisons(of_runs), None)):
        curves = [first["curve"], first["other"]]  # a treatment and its control, or the full text
    assumed, about = assume_pilot(goal, table, plan.unit, curves, plan.correlation)
    speeds = of_runs.groupby("model")["words_per_s"].median().dropna()
    rates = {str(model): float(speed) for model, speed in speeds.items()}
    return assumed, f"Pilot {study}: {about}.", rates, round(float(table["pairs"].astype(float).mean()))


def _scored(table: pd.DataFrame, config: AnalysisConfig) -> pd.DataFrame:
    """Return the accuracies on the planned minimal pairs, or on the whole benchmark, or on the only ones there are."""
    labels = [label for label in table["benchmark"].unique() if label.partition("+")[0] == config.benchmark.name]
    preferred = [label for label in (config.benchmark.label, config.benchmark.name) if label in labels]
    if not preferred and len(labels) != 1:
        scored = ", ".join(table["benchmark"].unique())
        raise ConfigError(f"pilot={config.pilot}: has scores of {scored}. Choose with benchmark= and benchmark.pairs=.")
    return table[table["benchmark"] == (preferred or labels)[0]]


def _published_paradigms(benchmark: str) -> int:
    published = read_published(benchmark)
    return int(published.loc[published["level"] == "paradigm", "name"].nunique())


@dataclass(frozen=True)
class Experiment:
    """The experiment that is planned.

    overrides: what its runs are given. sizes: words by name, smallest first. points: size -> model and words seen of
    each run of one seed.
    """

    name: str
    overrides: Sequence[str]
    sizes: Mapping[str, float]
    points: Mapping[str, Sequence[tuple[str, int]]]

    @classmethod
    def of(cls, config: AnalysisConfig) -> Experiment:
        """Return the experiment of the command line. Raises ConfigError if it has too few sizes or curves."""
        name = HydraConfig.get().runtime.choices.get("experiment")
        if name is None:
            raise ConfigError("experiment=null: name the experiment that is planned: experiment=NAME")
        typed = HydraConfig.get().overrides.task
        given = [one for one in typed if re.split(r"[.=@]", one.lstrip("+~"))[0] not in OWN]
        number, least = len(axes_of_experiment(name, given).get("sample.size", [])), LEAST_SIZES[config.goal]
        if number < least:
            raise ConfigError(f"experiment={name}: has {number} sizes (sample.size); goal={config.goal} needs {least}")
        rest = [one for one in given if not one.startswith("seed=")]
        planned = {run_id(of): of for _, of in expected_points(name, [*rest, "seed=1"])}
        check_curves(name, config.goal, list(planned.values()))
        points: dict[str, list[tuple[str, int]]] = {}
        for of in planned.values():
            words = of.recipe.budget.words_seen(of.sample.number) if of.recipe.trains else of.sample.number
            points.setdefault(of.sample.size, []).append((of.model.name, words))
        return cls(name, rest, {size: float(parse_size(size)) for size in sorted(points, key=parse_size)}, points)

    def costs(self, rate: float | dict[str, float] | None, of_pilot: Mapping[str, float]) -> pd.DataFrame:
        """Return runs, words and hours of one seed at each size; hours are NaN if a model's words/s are not known."""
        rows = {}
        for size, planned in self.points.items():
            hours = 0.0
            for model, words in planned:
                speed = rate.get(model, math.nan) if isinstance(rate, dict) else rate or of_pilot.get(model, math.nan)
                hours += words / speed / 3600
            rows[size] = {"runs": len(planned), "words": float(sum(words for _, words in planned)), "hours": hours}
        return pd.DataFrame.from_dict(rows, orient="index")

    def commands(self, table: pd.DataFrame, power: float) -> list[str]:
        """Return the command of the cheapest grid that suffices, and of that which suffices with the higher spread."""
        rows = [*table.index[table["chosen"]], *table.index[table["power_high"] >= power][:1]]
        return [self.command(table.loc[row]) for row in dict.fromkeys(rows)]

    def command(self, row: pd.Series) -> str:
        """Return the command that trains and scores the runs of a grid."""
        words = [one for one in self.overrides if not one.startswith(("sample.size=", "benchmark.pairs="))]
        axes = [f"sample.size={row['sizes']}", f"seed={','.join(map(str, range(1, row['seeds'] + 1)))}"]
        every = ["python", "-m", "eval", "-m", f"experiment={self.name}", *words, *axes]
        return shlex.join([*every, f"benchmark.pairs={row['pairs']}"])


def check_curves(experiment: str, goal: str, planned: Sequence[EvalConfig]) -> None:
    """Raise ConfigError unless the runs of one seed have the curves that a goal compares."""
    if goal == DIFFERENCE and max(Counter(of.sample.size for of in planned).values()) < 2:
        raise ConfigError(f"experiment={experiment}: has one curve; goal={goal} needs two, such as those of two models")
    if goal == ABLATION:
        acting = {of.ablate.action for of in planned if of.filter is not None and of.ablate.acts}
        full = any(of.filter is None or not of.ablate.acts for of in planned)
        if not acting or not (full or acting >= {"remove", "control"}):
            raise ConfigError(
                f"experiment={experiment}: has no runs without a construction next to their control or the full text; "
                "goal=ablation needs a filter with two of ablate.action=none,remove,control"
            )


def _print(console: Console, table: pd.DataFrame, goal: Goal, about: str) -> None:
    best = table[table["chosen"]]
    if len(best):
        row = best.iloc[0]
        hours = "" if math.isnan(row["hours"]) else f", {row['hours']:.1f} hours"
        print_text(
            console,
            f"Cheapest grid: sizes {row['sizes']}, {row['seeds']} seeds, {row['pairs']:,} pairs per paradigm "
            f"({row['runs']} runs, {row['words']:,.0f} words{hours}). {row['power']:.0%} of such studies find "
            f"this {goal.kind} of {goal.effect:+g}.",
        )
    else:
        print_text(console, f"No grid reaches a power of {goal.power:.0%}. Add seeds (plan.seeds) or sizes.")
    better = table[table["power"] > table["power"].cummax().shift(fill_value=-1).fillna(-1)]
    shown = Table("sizes", "seeds", "pairs", "runs", "words", title="Grids that no cheaper one beats")
    shares = [name for name in ("power", "power_high") if table[name].notna().any()]
    numbers = ["hours", *shares] if table["hours"].notna().any() else shares
    for name in numbers:
        shown.add_column({"power_high": "high spread"}.get(name, name))
    for grid in better.to_dict("records"):
        names = grid["sizes"].split(",")
        sizes = f"{names[0]} to {names[-1]} ({len(names)})" if len(names) > 1 else names[0]
        cells = [sizes, str(grid["seeds"]), f"{grid['pairs']:,}", str(grid["runs"]), f"{grid['words'] / 1e6:,.1f}M"]
        cells += [f"{grid[name]:.1f}" if name == "hours" else f"{grid[name]:.0%}" for name in numbers]
        shown.add_row(*cells, style="bold" if grid["chosen"] else None)
    console.print(shown)
    print_text(console, about)
    if table["power_high"].notna().any():
        print_text(console, f"High spread: power with the variance at its upper limit (one-sided, {UPPER:.0%}).")
