"""The page of a plan: its grids as a table and a figure, the cheapest that suffices, and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd

from analysis.curves.words_to_people import words_text
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.plan import HOURS, WORDS, power_chart
from analysis.exhibits.sentences.curves import plural
from analysis.exhibits.sentences.findings import Finding
from analysis.exhibits.tables.text import count, per_cent_text, short_text
from analysis.plan.config import ABLATION, DIFFERENCE, PEOPLE, SLOPE
from analysis.sections.section import PLAN, TableSection
from analysis.study.collect import PROBLEMS
from pairscale.shares import wilson

GRIDS = "grids"


@dataclass(frozen=True)
class Simulated:
    """What the simulation of the chosen grid gives: studies, and how many of them found the effect."""

    studies: int
    found: int
    predicted: float

    def text(self) -> str:
        low, high = wilson(self.found / self.studies, self.studies)
        share = self.found / self.studies
        agrees = low <= self.predicted <= high
        return (
            f"{plural(self.studies, 'simulated study')} of this very grid, analysed as a study is: {share:.1%} find it "
            f"(95% interval {low:.1%} to {high:.1%}); predicted were {self.predicted:.1%}"
            + ("." if agrees else ", which lies outside: trust the simulation.")
        )


@dataclass(frozen=True)
class Plan:
    """A plan: the grids that were compared, and what is chosen.

    grids: sizes, seeds, pairs, runs, words, hours, power, upper (NaN: not known), degrees, interval, note, best and
    chosen, by cost. about: what the numbers rest on. commands: of the chosen grids, cheapest first.
    """

    goal: str
    effect: float
    power: float
    unit: str
    confidence: float
    level: float
    grids: pd.DataFrame
    about: str
    notes: Sequence[str]
    commands: Sequence[str]
    simulated: Simulated | None = None

    @property
    def chosen(self) -> pd.Series | None:
        """The cheapest grid that suffices; None where none does."""
        rows = self.grids[self.grids["chosen"]]
        return rows.iloc[0] if len(rows) else None

    @property
    def sought(self) -> str:
        """What is planned for, in words."""
        unit = "" if self.unit == "overall" else f" in {self.unit}"
        return {
            SLOPE: f"a slope of {self.effect:+g} a doubling{unit}",
            DIFFERENCE: f"a difference of slopes of {self.effect:+g} a doubling{unit}",
            ABLATION: f"an ablation's effect of {self.effect:+g}{unit}, over all sizes",
            PEOPLE: f"words to people known within a factor of {self.effect:g}{unit}",
        }[self.goal]


def findings(plan: Plan) -> list[Finding]:
    """Say which grid suffices, how sure that is, and what its simulation says."""
    best = plan.chosen
    if best is None:
        most = plan.grids["power"].max()
        reach = f"the most powerful reaches {most:.1%}" if most == most else "none has an interval"
        return [
            Finding(
                "No grid suffices", f"{plan.sought}: {reach}, not {plan.power:.0%}; add seeds (plan.seeds) or sizes."
            )
        ]
    cost = f"{best['runs']} runs, {words_text(best['words'])} words to train"
    cost += f", {short_text(best['hours'])} hours" if best["hours"] == best["hours"] else ""
    text = (
        f"{best['sizes']}, {plural(int(best['seeds']), 'seed')}, {best['pairs']:,} pairs a paradigm "
        f"({cost}): power {best['power']:.1%} for {plan.sought}."
    )
    results = [Finding("Cheapest grid", text)]
    if best["upper"] == best["upper"]:
        results.append(Finding("How sure", _sure(plan, float(best["upper"]))))
    if plan.simulated is not None:
        results.append(Finding("Checked", plan.simulated.text()))
    return results


def _sure(plan: Plan, power: float) -> str:
    text = f"With the variance between runs at its upper limit ({plan.level:.0%}, one-sided) the power is {power:.1%}."
    rows = plan.grids[plan.grids["upper"] >= plan.power]
    if power >= plan.power:
        return f"{text} It still suffices."
    if rows.empty:
        return f"{text} No grid here suffices then."
    row = rows.iloc[0]
    hours = f", {short_text(row['hours'])} hours" if row["hours"] == row["hours"] else ""
    seeds = plural(int(row["seeds"]), "seed")
    return (
        f"{text} The cheapest grid that suffices even then: {row['sizes']}, {seeds}, {row['pairs']:,} pairs "
        f"({row['runs']} runs, {words_text(row['words'])} words{hours})."
    )


def plan_section(plan: Plan) -> TableSection:
    """Return the section of the page."""
    return TableSection(
        label="plan",
        file="plan",
        kind=PLAN,
        extent=f"Planned for: {plan.sought}, in {plan.power:.0%} of studies, with {plan.confidence:.0%} intervals. "
        f"{plural(len(plan.grids), 'grid')} {'is' if len(plan.grids) == 1 else 'are'} compared.",
        warnings=list(plan.notes),
        exhibits=[grids_exhibit(plan)],
        methods=methods(plan),
        problems=pd.DataFrame(columns=list(PROBLEMS)),
        runs=pd.DataFrame({"group": [], "manifest": []}),
        digest="",
        findings=findings(plan),
    )


def grids_exhibit(plan: Plan, rows: pd.DataFrame | None = None) -> Exhibit:
    """Return the table of grids (`rows`: of some of them) and its figure."""
    known = plan.grids[plan.grids["power"].notna()]
    over = HOURS if plan.grids["hours"].notna().all() else WORDS
    table = plan.grids if rows is None else rows
    shown = table[["sizes", "seeds", "pairs", "runs", "words", "hours", "power", "upper", "degrees", "interval"]]
    shown = shown.assign(verdict=_verdicts(table, plan.power))
    if not table["upper"].notna().any():
        shown = shown.drop(columns="upper")
    if not table["hours"].notna().any():
        shown = shown.drop(columns="hours")
    if plan.goal == PEOPLE:
        shown = shown.drop(columns="degrees")
    return Exhibit(
        GRIDS,
        "Grids and their power",
        "By cost, cheapest first. The figure: a mark is a grid; filled are those that no cheaper grid beats, the "
        "dashed line is the power asked for, the ring is around the cheapest grid that has it.",
        shown.rename(columns={"sizes": "training sizes"}),
        cells={"seeds": count, "words": words_text, "hours": short_text, "power": per_cent_text, "upper": per_cent_text,
               "degrees": short_text},
        heads={"words": "words to train", "upper": "power at the upper limit", "pairs": "pairs a paradigm",
               "degrees": "degrees of freedom"},
        intervals={},
        charts={"power": partial(power_chart, known, plan.power, over)} if len(known) else {},
        columns=1,
        definitions={
            "Power": "Share of studies like this whose interval would exclude 0, if the effect is as large as asked."
            if plan.goal != PEOPLE
            else "Share of studies like this whose limits of words to people are within the factor of the estimate.",
            "Power at the upper limit": f"With the variance between runs at its {plan.level:.0%} upper limit, "
            "one-sided: a pilot of few runs knows it badly.",
            "Words to train": "Of all runs, with repeats, by the recipe's budget; hours are these over words a "
            "second, in one process, without scoring.",
        },
    )  # fmt: skip


def _verdicts(grids: pd.DataFrame, target: float) -> list[str]:
    verdicts = []
    for row in grids.to_dict("records"):
        if row["power"] != row["power"]:
            verdicts.append(str(row["note"]))
        elif row["chosen"]:
            verdicts.append("cheapest enough")
        else:
            verdicts.append("enough" if row["power"] >= target else "too little")
    return verdicts


def methods(plan: Plan) -> list[str]:
    """Return the paragraphs that a reader needs to check the numbers."""
    after = {
        SLOPE: "the interval of a slope",
        DIFFERENCE: "the interval of a difference of two slopes, runs paired by size and seed",
        ABLATION: "the interval of a mean difference over sizes, runs paired by size and seed",
        PEOPLE: "Fieller's limits of the words to people",
    }[plan.goal]
    return [
        plan.about,
        f"Power is that of {after}, for these pairs, which the analysis chooses by the fewest runs at a size: the "
        "probability of the noncentral t, averaged over estimates of the variance and their degrees of freedom, as "
        "each size has a spread of its own. Accuracies of runs are taken to be normal around a line, with the spread "
        "between runs and chance in single judgements, which makes small estimates of the spread implausible. "
        "Not corrected for multiple comparisons.",
        "Grids: all sizes of the experiment up to each, and every other one of these, with each number of seeds and "
        "pairs. The effect is taken to be the same over every range of sizes.",
    ]
