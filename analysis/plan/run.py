"""The command: the grids of an experiment, their cost and power, and the command of the cheapest that suffices.

<paths.reports>/<study>/plan.csv   the table of grids
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from hydra.core.hydra_config import HydraConfig
from rich.console import Console

from analysis.config import AnalysisConfig
from analysis.curves.ablations import comparisons
from analysis.plan.config import ABLATION, DIFFERENCE, SLOPE
from analysis.plan.planner import (
    LEAST_SIZES,
    UPPER,
    Assumed,
    Goal,
    assume_pilot,
    assume_stated,
    candidate_sizes,
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
from train.runs.identity import run_id

OWN = [
    "effect", "power", "goal", "pilot", "spread", "rate", "plan", "analysis", "paths", "experiment", "study", "format",
]  # fmt: skip
NEEDED = {
    SLOPE: "three sizes (sample.size)",
    DIFFERENCE: "three sizes (sample.size) and two curves, such as those of two models",
    ABLATION: "a filter with two of ablate.action=none,remove,control",
}
PUBLISHED_PAIRS = 1000  # minimal pairs of a paradigm of BLiMP and CLiMP


def run(config: AnalysisConfig) -> None:
    """Plan the experiment of the command line.

    Raises ConfigError for values that don't fit together, RunError for a pilot that can't be used.
    """
    effect, power, plan = config.effect, config.power, config.plan
    if effect is None or not -1 < effect < 1 or effect == 0 or not 0 < power < 1:
        raise ConfigError(
            f"effect={effect}, power={power}: give the difference of accuracy that the study should be able to find, "
            "above -1, below 1 and not 0, such as effect=0.01, and a power between 0 and 1."
        )
    goal = Goal(config.goal, effect, power, config.analysis.confidence)
    console, quiet = Console(highlight=False), Console(stderr=True, highlight=False)
    with quiet.status("composing the grid"):
        name, overrides, planned = planned_runs(config)
    with quiet.status("reading the pilot" if config.pilot else "planning"):
        assumed, about, rates, pairs = _stated(config, goal) if config.pilot is None else _of_pilot(config, goal)
    with quiet.status("simulating"):
        sizes = costs(planned, config.rate or rates)
        table = plan_grids(sizes, plan.pairs or [max(2, pairs // 10), pairs], goal, assumed, plan, config.sample.nested)
    path = Path(config.paths.reports) / name / "plan.csv"
    write_text(path, table.to_csv(index=False))
    _print(console, table, goal, about)
    if table["sizes"].nunique() < len(candidate_sizes(list(sizes.index), LEAST_SIZES[goal.kind])):
        print_text(quiet, "Some sizes are left out: accuracies would leave 0 to 1.", "note", "yellow")
    if table["hours"].isna().any():
        print_text(quiet, "Words/s are not known, so hours aren't either: give rate=40000.", "note", "yellow")
    # the cheapest grid that suffices, and the cheapest that suffices with the higher spread
    for row in dict.fromkeys([*table.index[table["chosen"]], *table.index[table["power_high"] >= power][:1]]):
        console.print(command(name, overrides, table.loc[row]), markup=False, soft_wrap=True)
    console.print(f"all grids: {path}", markup=False, soft_wrap=True)


def _stated(config: AnalysisConfig, goal: Goal) -> tuple[Assumed, str, dict[Any, float], int]:
    """Return what is assumed, a sentence about it, words/s by model (none), and minimal pairs per paradigm."""
    plan = config.plan
    if config.spread is None or not 0 < config.spread < 0.5:
        raise ConfigError(
            f"spread={config.spread}: give pilot=STUDY, or the standard deviation between accuracies of runs of one "
            "size, above 0 and below 0.5, such as spread=0.01"
        )
    paradigms = plan.paradigms
    if paradigms is None and plan.unit == "overall":
        published = read_published(config.benchmark.name)
        paradigms = published.loc[published["level"] == "paradigm", "name"].nunique()
    if not paradigms:
        raise ConfigError(f"plan.paradigms=null: state how many paradigms plan.unit={plan.unit[:80]} has")
    assumed = assume_stated(goal, config.spread, plan.accuracy, paradigms, plan.correlation)
    return assumed, f"Stated: standard deviation {config.spread:g}.", {}, config.benchmark.pairs or PUBLISHED_PAIRS


def _of_pilot(config: AnalysisConfig, goal: Goal) -> tuple[Assumed, str, dict[Any, float], int]:
    """Return the same from a pilot: its scores on the planned pairs, the whole benchmark, or the only ones it has."""
    study, folder, plan = str(config.pilot), config.paths.runs, config.plan
    table = accuracies(study, method=config.analysis.method, ties=config.ties, folder=folder)
    labels = list(table["benchmark"].unique())
    scored = [label for label in labels if label.partition("+")[0] == config.benchmark.name]
    preferred = [label for label in (config.benchmark.label, config.benchmark.name) if label in scored]
    if not preferred and len(scored) != 1:
        raise ConfigError(
            f"pilot={study}: has scores of {', '.join(labels)}. Choose with benchmark= and benchmark.pairs=."
        )
    table = table[table["benchmark"] == (preferred or scored)[0]]
    of_runs = runs(study, folder=folder)
    curves = [curve for curve in (plan.group, plan.other) if curve is not None]
    if goal.kind == ABLATION and not curves and (first := next(comparisons(of_runs), None)):
        curves = [first["curve"], first["other"]]  # a treatment and its control, or the full text
    assumed, about = assume_pilot(goal, table, plan.unit, curves, plan.correlation)
    rates = of_runs.groupby("model")["words_per_s"].median().dropna().to_dict()
    return assumed, f"Pilot {study}: {about}.", rates, round(float(table["pairs"].astype(float).mean()))


def planned_runs(config: AnalysisConfig) -> tuple[str, list[str], list[EvalConfig]]:
    """Return the name of the planned experiment, the overrides of its runs, and its runs of one seed.

    Raises ConfigError if it has too few sizes, or not the curves that the goal compares.
    """
    hydra = HydraConfig.get()
    name, goal = hydra.runtime.choices.get("experiment"), config.goal
    if name is None:
        raise ConfigError("experiment=null: name the experiment that is planned: experiment=NAME")
    given = [one for one in hydra.overrides.task if re.split(r"[.=@]", one.lstrip("+~"))[0] not in OWN]
    overrides = [one for one in given if not one.startswith("seed=")]
    planned = list({run_id(of): of for _, of in expected_points(name, [*overrides, "seed=1"])}.values())
    sizes = axes_of_experiment(name, given).get("sample.size", [])
    acting = {of.ablate.action if of.filter is not None and of.ablate.acts else "none" for of in planned}
    fits = {
        SLOPE: True,
        DIFFERENCE: len(planned) > len({of.sample.size for of in planned}),
        ABLATION: len(acting) > 1 and ("none" in acting or acting >= {"remove", "control"}),
    }
    if len(sizes) < LEAST_SIZES[goal] or not fits[goal]:
        raise ConfigError(f"experiment={name}: goal={goal} needs {NEEDED[goal]}.")
    return name, overrides, planned


def costs(planned: Sequence[EvalConfig], rate: float | dict[Any, float]) -> pd.DataFrame:
    """Return the cost of one seed at each size, as `plan_grids` needs it; hours are NaN without a model's words/s."""
    table = pd.DataFrame(
        [
            (of.sample.size, of.sample.number, of.model.name,
             of.recipe.budget.words_seen(of.sample.number) if of.recipe.trains else of.sample.number)
            for of in planned
        ],
        columns=["size", "sample_words", "model", "words"],
    )  # fmt: skip
    table["hours"] = table["words"] / (table["model"].map(rate) if isinstance(rate, dict) else rate) / 3600
    groups = table.groupby(["sample_words", "size"])
    return groups[["words", "hours"]].sum(skipna=False).assign(runs=groups.size()).reset_index("sample_words")


def command(name: str, overrides: Sequence[str], row: pd.Series) -> str:
    """Return the command that trains and scores the runs of a grid."""
    words = [one for one in overrides if not one.startswith(("sample.size=", "benchmark.pairs="))]
    axes = [f"sample.size={row['sizes']}", f"seed={','.join(map(str, range(1, row['seeds'] + 1)))}"]
    every = ["python", "-m", "eval", "-m", f"experiment={name}", *words, *axes, f"benchmark.pairs={row['pairs']}"]
    return shlex.join(every)


def _print(console: Console, table: pd.DataFrame, goal: Goal, about: str) -> None:
    for row in table[table["chosen"]].to_dict("records"):
        hours = "" if math.isnan(row["hours"]) else f", {row['hours']:.1f} hours"
        print_text(
            console,
            f"Cheapest grid: sizes {row['sizes']}, {row['seeds']} seeds, {row['pairs']:,} pairs per paradigm "
            f"({row['runs']} runs, {row['words']:,.0f} words{hours}). {row['power']:.0%} of such studies find "
            f"this {goal.kind} of {goal.effect:+g}.",
        )
    if not table["chosen"].any():
        print_text(console, f"No grid reaches a power of {goal.power:.0%}. Add seeds (plan.seeds) or sizes.")
    better = table[table["power"] > table["power"].cummax().shift(fill_value=-1).fillna(-1)]
    shown = better.drop(columns=["enough", "chosen"]).dropna(axis="columns", how="all")
    shares = dict.fromkeys(("power", "high spread"), "{:.0%}".format)
    text = shown.rename(columns={"power_high": "high spread"}).to_string(
        index=False, formatters={"words": "{:,.0f}".format, "hours": "{:.1f}".format, **shares}
    )
    console.print(f"Grids that no cheaper one beats:\n{text}", markup=False, soft_wrap=True)
    print_text(console, about)
    if table["power_high"].notna().any():
        print_text(console, f"High spread: power with the variance at its upper limit (one-sided, {UPPER:.0%}).")
