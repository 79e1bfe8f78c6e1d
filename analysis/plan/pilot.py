"""What the runs of a planned study will vary by: from a pilot study, or as stated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.config import AnalysisConfig
from analysis.curves.ablations.matching import DIRECT, REST, SAME, TREATMENT_CONTROL, comparisons, paired, scoped_units
from analysis.curves.designs import Design, design_of, is_trajectory, same_text, slope_weights
from analysis.curves.intervals import ROUNDING
from analysis.curves.units import Units, paradigm_accuracies, units_of
from analysis.curves.variance import Array
from analysis.curves.words_to_people import people_accuracy, published_people
from analysis.exhibits.sentences.curves import plural
from analysis.measures.ablations import direct_paradigms
from analysis.plan.config import ABLATION, DIFFERENCE, PEOPLE
from analysis.plan.power import Spread
from analysis.published import published_file
from analysis.simulation.spreads import Trend, between_runs, judgement_squares, seed_share, trend
from analysis.study.collect import Study, collect
from analysis.study.judgements import Judgements, judgements, score_labels
from analysis.study.sources.outcomes import BLIMP
from eval.published import OVERALL, read_published
from pairscale.errors import ConfigError, RunError
from pairscale.sizes import parse_size


@dataclass(frozen=True)
class Basis:
    """What a plan rests on. about: its source, as a sentence. rates: words/s by model. pairs: of a paradigm, if known.

    shift: log2 of words less log2 of the number in a size, such as 4k sentences. text: words that samples are drawn
    from, NaN if not known. nested: whether those of the pilot are, so that it shows how runs of a seed go together.
    """

    spread: Spread
    about: str
    rates: Mapping[str, float]
    pairs: int | None = None
    shift: float = 0.0
    text: float = np.nan
    nested: bool = False


def stated(config: AnalysisConfig, x: float) -> Basis:
    """Return what is stated on the command line, for a study whose smallest size is at log2(words) = x.

    Pairs of a paradigm count as alike, so that chance in single judgements is the largest that the accuracy allows.
    """
    plan, spread = config.plan, config.spread
    if spread is None:
        raise ConfigError("pilot=null, spread=null: give pilot=STUDY, or spread=0.01, how far runs of a size lie apart")
    if not 0 < spread < 0.5:
        raise ConfigError(f"spread={spread}: must be above 0 and below 0.5, a standard deviation of accuracies")
    published = read_published(config.benchmark.name)
    names = _stated_paradigms(published, config)
    paradigms = plan.paradigms or len(names)
    if not paradigms:
        unit = f"plan.unit={plan.unit[:80]} of benchmark={config.benchmark.name}"
        raise ConfigError(f"plan.paradigms=null: how many {unit} has is not known; state it")
    groups = 2 * (1 - plan.correlation) if config.goal in (DIFFERENCE, ABLATION) else 1.0
    judgement = plan.accuracy * (1 - plan.accuracy) * (2 if config.goal in (DIFFERENCE, ABLATION) else 1)
    of = Spread(Trend(spread**2 * groups), judgement, paradigms, plan.accuracy, x, plan.gain or 0.0)
    if config.goal == PEOPLE:
        if plan.gain is None:
            raise ConfigError("plan.gain=null: goal=people without a pilot needs the accuracy gained per doubling")
        of = _with_people(of, _stated_units(plan.unit, names or [""] * paradigms), config)
    between = " of a difference between two models" if groups != 1 else ""
    about = (
        f"Stated: runs of a size have a standard deviation of {spread:g} (accuracy), apart from chance in single "
        f"judgements; {plural(paradigms, 'paradigm')}, accuracy {plan.accuracy:g} at the smallest size. "
        f"Variance{between} {spread**2 * groups:.3g}. Nothing says how sure these numbers are."
    )
    return Basis(of, about, {})


def from_pilot(config: AnalysisConfig) -> Basis:
    """Estimate it from the runs of `config.pilot`.

    Raises RunError for a study that cannot be read or has no two runs at any size that differ, ConfigError for an
    unknown unit or curve, or no two of them where the goal compares two, and as `_scored`.
    """
    study = collect(config.paths.runs, str(config.pilot))
    judged = judgements(study, _scored(study, config), config.analysis.method, config.ties)
    if judged.of_paradigms:
        raise RunError(f"pilot={config.pilot}: judgements of single pairs are not known")
    if is_trajectory(judged.runs):
        raise RunError(f"pilot={config.pilot}: checkpoints of one training show nothing of how runs differ")
    speeds = study.runs.groupby("model")["words_per_s"].median().dropna()
    rates = {str(model): float(speed) for model, speed in speeds.items()}
    number = judged.runs["size"].map(lambda size: parse_size(str(size).partition(" ")[0]))
    shift = float(np.median(np.log2(judged.runs["sample_words"] / number)))
    plan = config.plan
    direct = frozenset[str]().union(*direct_paradigms(judged.runs, study.config, config.benchmark.name).values())
    units = scoped_units(judged.pairs, direct) if config.goal == ABLATION else units_of(judged.pairs)
    unit = only_unit(units, plan.unit)
    spread, about = _of_groups(judged, unit, config)
    if spread.total.variance < ROUNDING:
        of = "differences between paired runs" if config.goal in (DIFFERENCE, ABLATION) else "accuracies of runs"
        equal = f"{of} of a size are all the same in plan.unit={plan.unit}"
        raise RunError(f"pilot={config.pilot}: {equal}: nothing shows how runs differ")
    if plan.gain is not None:
        spread = replace(spread, gain=plan.gain)
    shared = judged.runs[judged.runs["overlap"].fillna(0) > 0]
    text = float((shared["sample_words"] / shared["overlap"].astype(float)).median())  # NaN of none
    paradigms = int((unit.weights > 0).sum())
    pairs = round(float(unit.pairs[unit.weights[:, 0] > 0].mean()))
    if config.goal == PEOPLE:
        spread = _with_people(spread, unit.table, config)
    nested = bool(judged.runs["nested"].all())
    return Basis(replace(spread, paradigms=paradigms), about, rates, pairs, shift, text, nested)


def _scored(study: Study, config: AnalysisConfig) -> str:
    """Return the label of the pilot's scores: of the planned pairs, of all pairs, or the one that is there.

    Raises RunError without scores of the benchmark, ConfigError if several are there and none is of these.
    """
    labels = score_labels(study, config.benchmark.name)
    for label in (config.benchmark.label, config.benchmark.name):
        if label in labels:
            return label
    if len(labels) > 1:
        raise ConfigError(
            f"pilot={config.pilot}: has scores of {', '.join(labels)}, and none of {config.benchmark.label}; "
            "choose one by benchmark.pairs"
        )
    return labels[0]


def _stated_paradigms(published: pd.DataFrame, config: AnalysisConfig) -> list[str]:
    """Return the published paradigms of the unit of a plan; none where they are not known. Raises ConfigError."""
    unit = config.plan.unit
    known = _names(published, "paradigm")
    chosen = config.benchmark.chosen_paradigms(known) if known else []
    of = _phenomena(config.benchmark.name)
    phenomena = sorted({of[name] for name in chosen}) if of else _names(published, "phenomenon")
    if unit == OVERALL:
        return chosen
    if unit in chosen:
        return [unit]
    scopes = [DIRECT, SAME, REST] if config.goal == ABLATION else []
    if unit not in [*phenomena, *scopes] and (known or phenomena):
        raise _no_unit(unit, [OVERALL, *phenomena, *scopes])
    return [name for name in chosen if of.get(name) == unit]


def _names(published: pd.DataFrame, level: str) -> list[str]:
    return sorted(published.loc[published["level"] == level, "name"].unique())


def _phenomena(benchmark: str) -> dict[str, str]:
    """Return the phenomenon of each published paradigm."""
    if benchmark != BLIMP:
        return {}
    table = published_file("blimp_paradigms")
    return dict(zip(table["paradigm"], table["phenomenon"], strict=True))


def _no_unit(name: str, shown: Sequence[str]) -> ConfigError:
    return ConfigError(f"plan.unit={name[:80]}: no such unit; available: {', '.join(shown)}, and paradigms")


def _stated_units(unit: str, paradigms: Sequence[str]) -> pd.DataFrame:
    """Return rows like those of Units.table for the one unit of a plan and its paradigms.

    A paradigm without a name counts as one with the accuracy of the phenomenon.
    """
    rows = [("paradigm", name, "" if unit == OVERALL else unit) for name in paradigms]
    if unit not in paradigms:
        rows.insert(0, ("overall" if unit == OVERALL else "phenomenon", unit, unit))
    return pd.DataFrame(rows, columns=["level", "name", "phenomenon"])


def _with_people(spread: Spread, units: pd.DataFrame, config: AnalysisConfig) -> Spread:
    """Add people's accuracy in the unit of the plan, and its standard error; plan.people is taken to be exact."""
    error, accuracy, benchmark = 0.0, config.plan.people or np.nan, config.benchmark.name
    if not config.plan.people:
        people = people_accuracy(read_published(benchmark), units, published_people(benchmark))
        rows = people[people["name"] == config.plan.unit]
        if len(rows):
            accuracy, error = float(rows["accuracy"].iloc[0]), float(np.nan_to_num(rows["error"].iloc[0]))
    _check_people(accuracy, config)
    return replace(spread, people=accuracy, people_error=error)


def _check_people(people: float, config: AnalysisConfig) -> None:
    if not people == people:
        raise ConfigError(
            f"plan.people=null: people's accuracy on benchmark={config.benchmark.name}, {config.plan.unit}, is not "
            "published; state it"
        )


def only_unit(units: Units, name: str) -> Units:
    """Return the units with those that are needed alone: `name`, then its paradigms. Raises ConfigError."""
    names = list(units.table["name"])
    if name not in names:
        shown = [one for one, level in zip(names, units.table["level"], strict=True) if level != "paradigm"]
        raise _no_unit(name, shown)
    place = names.index(name)
    rows = [place, *np.flatnonzero(units.table["level"] == "paradigm")]
    table = units.table.iloc[rows].reset_index(drop=True)
    return replace(units, table=table, weights=units.weights[:, [place]])


def _of_groups(judged: Judgements, units: Units, config: AnalysisConfig) -> tuple[Spread, str]:
    """Return the spread of a curve, or of the difference of two, and words about it."""
    plan, runs = config.plan, judged.runs
    groups = [str(group) for group in runs["group"].unique()]
    for key in ("group", "other"):
        if (name := getattr(plan, key)) is not None and name not in groups:
            raise ConfigError(
                f"plan.{key}={name[:80]}: no such curve in pilot={config.pilot}; available: {', '.join(groups)}"
            )
    if config.goal in (DIFFERENCE, ABLATION):
        first, second = _two(judged, groups, config)
        if second is not None:
            rows = [np.flatnonzero(runs["group"] == group) for group in (first, second)]
            a, b, is_paired, _ = paired(runs, *rows)
            if is_paired:
                own, design = judged.outcome[a].astype(np.float64), design_of(runs.iloc[a])
                spread = spread_of(own - judged.outcome[b], design, units, str(config.pilot))
                level = spread_of(own, design, units, str(config.pilot))
                spread = replace(spread, accuracy=level.accuracy, gain=level.gain)
                about = f"differences of {len(a)} pairs of runs ({first} less {second}, of one size and seed)"
                return spread, about
        groups = [first]
    chosen = [plan.group] if plan.group else groups
    spreads = {}
    for group in chosen:
        rows_of = np.flatnonzero(runs["group"] == group)
        if (design_of(runs.iloc[rows_of]).counts > 1).any():
            outcome = judged.outcome[rows_of].astype(np.float64)
            spreads[group] = (spread_of(outcome, design_of(runs.iloc[rows_of]), units, str(config.pilot)), len(rows_of))
    if not spreads:
        raise RunError(
            f"pilot={config.pilot}: no two runs at any size of {' or '.join(chosen)}: nothing shows how runs differ"
        )
    group = max(spreads, key=lambda name: spreads[name][0].total.variance)
    spread, number = spreads[group]
    about = f"{number} runs of {group}" + (", whose runs differ most" if len(spreads) > 1 else "")
    if config.goal in (DIFFERENCE, ABLATION):
        double = 2 * (1 - plan.correlation)
        total = replace(spread.total, variance=spread.total.variance * double)
        spread = replace(spread, total=total, chance=spread.chance * double, judgement=2 * spread.judgement)
        about += f"; a second curve like it, paired runs correlated by {plan.correlation:g}"
    return spread, about


def _two(judged: Judgements, groups: list[str], config: AnalysisConfig) -> tuple[str, str | None]:
    """Return the two curves that are compared; the second is None where the pilot has one. Raises ConfigError."""
    plan = config.plan
    if config.goal == ABLATION and plan.group is None:
        every = comparisons(judged.runs)
        kinds = [of for of in every if plan.other in (None, of.other)]
        chosen = [of for of in kinds if of.kind == TREATMENT_CONTROL] or kinds
        if every and not chosen:
            raise ConfigError(
                f"plan.other={plan.other}: no treatment of pilot={config.pilot} is compared with this curve; "
                f"allowed: {'; '.join(dict.fromkeys(of.other for of in every))}; null"
            )
        if chosen:
            return chosen[0].group, chosen[0].other
    first = plan.group or groups[0]
    others = [group for group in groups if group != first]
    if plan.other == first:
        allowed = ", ".join([*others, "null"])
        raise ConfigError(f"plan.other={first}: the curve that it is compared with is {first} too; allowed: {allowed}")
    return first, plan.other or (others[0] if others else None)


def spread_of(outcome: Array, design: Design, units: Units, pilot: str = "") -> Spread:
    """Estimate the spread of (R, P) outcomes, accuracies or differences of them, in the one unit of `units`.

    Raises RunError without two runs at any size.
    """
    if not (design.counts > 1).any():
        raise RunError(f"pilot={pilot}: no two runs at any size: nothing shows how runs differ")
    weights = units.weights[:, 0]
    y = paradigm_accuracies(outcome, units.bounds) @ weights[:, None]
    if same_text(design):
        raise RunError(f"pilot={pilot}: runs of a size share their text: nothing shows how those on other text differ")
    squares = judgement_squares(outcome, design, units)
    chance = float((weights**2 * squares / units.pairs).sum())
    variances, degrees = between_runs(y, design, chance)
    x = np.asarray([design.x[design.size == s].mean() for s in range(len(design.counts))])
    means = np.asarray([y[design.size == s].mean() for s in range(len(design.counts))])
    gain = float(slope_weights(x, np.ones((1, len(x))))[0] @ means) if len(x) > 1 else 0.0
    of_unit = weights > 0
    total = trend(variances[:, 0], degrees, x)
    if design.nested:  # other sizes of the same seeds may add next to nothing
        total = replace(total, degrees=float(degrees.max()))
    return Spread(
        total=total,
        judgement=float(squares[of_unit].mean()),
        paradigms=int(of_unit.sum()),
        accuracy=float(means.mean() - gain * (x.mean() - x[0])),
        x=float(x[0]),
        gain=gain,
        chance=chance,
        seed_share=seed_share(y[:, 0], design, np.maximum(total.at(x) - chance, 0)),
    )
