"""Print the cost and power of an experiment's grids, and the command that runs the cheapest grid with enough power."""

import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.config import PlanCommand
from analysis.curves.ablations import comparisons
from analysis.plan.config import ABLATION, SLOPE
from analysis.plan.planner import Assumed, Goal, assume_pilot, assume_stated, plan_grids
from analysis.study.long_table import accuracies, runs
from eval.config import EvalConfig
from eval.published import number_of_paradigms
from pairscale.command.line import current, key_of
from pairscale.command.schemas import nearest
from pairscale.errors import ConfigError
from pairscale.files import write_text
from train.config import run_id
from train.sweeps import expected_points


def run(config: PlanCommand) -> None:
    """Plan the experiment chosen on the command line.

    Raises ConfigError if values don't fit together, and RunError if the pilot can't be used.
    """
    effect, power, plan = config.effect, config.power, config.plan
    if effect is None or not -1 < effect < 1 or effect == 0 or not 0 < power < 1:
        raise ConfigError(
            f"effect={'null' if effect is None else effect}, power={power}: which effect should the study detect? Set "
            "effect between -1 and 1 (not 0), such as effect=0.01, and power between 0 and 1."
        )
    goal = Goal(config.goal, effect, config.analysis.confidence)
    assumed, about, rates, pairs = _assumed(config, goal)
    name, overrides, sizes = _planned_runs(goal.kind, config.rate, rates)
    table = plan_grids(sizes, plan.pairs or [max(2, pairs // 10), pairs], goal, assumed, plan, config.sample.nested)
    path = Path(config.paths.reports, name, "plan.csv")
    write_text(path, table.to_csv(index=False))
    better = table[table["power"] > table["power"].cummax().shift(fill_value=-1).fillna(-1)]
    formats = {"words": "{:,.0f}", "hours": "{:.1f}", "power": "{:.0%}", "power_high": "{:.0%}"}
    filled = better.dropna(axis="columns", how="all")
    print(f"{about}\n\nThese grids have more power than all cheaper grids (the complete list is in {path}):")
    print(filled.to_string(index=False, formatters={column: of.format for column, of in formats.items()}))
    enough = table[table["power"] >= power][:1].to_dict("records")
    if not enough:
        print(f"\nNo grid has a power of {power:.0%}. Plan more sizes, seeds or pairs.")
    for row in enough:
        seeds = ",".join(map(str, range(1, row["seeds"] + 1)))
        axes = [f"sample.size={row['sizes']}", f"seed={seeds}", f"benchmark.pairs={row['pairs']}"]
        print(f"\nThis is the cheapest grid with a power of {power:.0%}:")
        print(shlex.join(["python", "-m", "eval", "-m", f"experiment={name}", *overrides, *axes]))


def _planned_runs(
    goal: str, given: float | dict[Any, float] | None, measured: dict[Any, float]
) -> tuple[str, list[str], pd.DataFrame]:
    """Return the name of the experiment, the overrides of its runs, and the cost of one seed for `plan_grids`.

    `given` and `measured` are words per second, by model if a dictionary; the measured ones are used if none is given.
    """
    line = current()
    name = line["experiment"]
    if name is None:
        raise ConfigError("Which experiment do you want to plan? Add experiment=NAME.")
    own = {of.name for of in fields(PlanCommand)} - {of.name for of in fields(EvalConfig)}
    own |= {"paths", "experiment", "study", "seed"}
    overrides = [one for one in line.overrides if key_of(one).partition(".")[0] not in own]
    planned = {run_id(of.config): of.config for of in expected_points(name, [*overrides, "seed=1"])}.values()
    costs = [(of.sample, of.model.name, of.recipe.budget.words_seen(of.sample.number)) for of in planned]
    rows = [(sample.number, sample.size, model, words) for sample, model, words in costs]
    table = pd.DataFrame(rows, columns=["sample_words", "size", "model", "words"])
    models = sorted(table["model"].unique())
    if isinstance(given, dict) and (unknown := sorted(set(given) - set(models))):
        raise ConfigError(f"rate={given}: the experiment has no model '{unknown[0]}'. {nearest(unknown[0], models)}")
    rate = given or measured
    table["hours"] = table["words"] / (table["model"].map(rate) if isinstance(rate, dict) else rate) / 3600
    groups = table.groupby(["sample_words", "size"])
    sizes = groups[["words", "hours"]].sum(skipna=False).assign(runs=groups.size()).reset_index("sample_words")
    actions = {of.ablate.action if of.filter is not None and of.ablate.acts else "none" for of in planned}
    if goal != SLOPE and (len(actions) if goal == ABLATION else sizes["runs"].min()) < 2:
        needed = "a filter with two of ablate.action=none,remove,control" if goal == ABLATION else "two curves (model)"
        raise ConfigError(f"experiment={name}: goal={goal} needs {needed}. Add them.")
    return name, [one for one in overrides if not one.startswith(("sample.size=", "benchmark.pairs="))], sizes


def _assumed(config: PlanCommand, goal: Goal) -> tuple[Assumed, str, dict[Any, float], int]:
    """Return the assumptions, a sentence about them, words/s by model, and minimal pairs per paradigm."""
    plan, benchmark, study, folder = config.plan, config.benchmark, config.pilot, config.paths.runs
    if study is None:
        paradigms = plan.paradigms or (number_of_paradigms(benchmark.name) if plan.unit == "overall" else None)
        if config.spread is None:
            raise ConfigError(
                "How much do runs of one size differ? Set pilot=STUDY, or a standard deviation such as spread=0.01."
            )
        if not 0 < config.spread < 0.5:
            raise ConfigError(f"spread={config.spread}: this must be above 0 and below 0.5. Try spread=0.01.")
        if not paradigms:
            raise ConfigError(
                f"benchmark={benchmark.name}, plan.unit={plan.unit}: the number of paradigms isn't known. Set "
                "plan.paradigms=NUMBER or pilot=STUDY."
            )
        assumed = assume_stated(goal, config.spread, plan.accuracy, paradigms)
        return assumed, f"The stated standard deviation is {config.spread:g}.", {}, benchmark.pairs or 1000
    table = accuracies(study, benchmark=benchmark.name, method=config.analysis.method, ties=config.ties, folder=folder)
    label = min(set(table["benchmark"]), key=lambda one: (one != benchmark.label, one != benchmark.name, one))
    table, of_runs, curves = table[table["benchmark"] == label], runs(study, folder=folder), plan.curves
    if goal.kind == ABLATION and not curves and (first := next(comparisons(of_runs), None)):
        curves = [first["curve"], first["other"]]  # a treatment and its control, or the full text
    assumed, about = assume_pilot(goal, table, plan.unit, curves)
    rates = of_runs.groupby("model")["words_per_s"].median().dropna().to_dict()
    return assumed, f"Pilot {study} on {label}: {about}.", rates, round(float(table["pairs"].astype(float).mean()))
