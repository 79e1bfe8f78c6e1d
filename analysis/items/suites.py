"""Suites of SyntaxGym (Hu et al. 2020): SG scores of each run, chance, and the paper's models.

The scores of one model are eval.syntaxgym.measures. The paper: "A systematic assessment of syntactic generalization in
neural language models", ACL 2020, 1725-1744.
"""

from functools import partial

import numpy as np
import pandas as pd

from analysis.formats import count, joined, plural
from analysis.items.answers import (
    AT_LARGEST,
    MEASURE,
    PAPER,
    Answers,
    Results,
    all_measures,
    at_largest,
    by_model,
    of_measure,
    published_next_to,
    with_limits,
)
from analysis.report.exhibit import Exhibit
from analysis.report.write import Part
from eval.published import read_published
from eval.syntaxgym.formulas import Formula
from eval.syntaxgym.measures import ALL_ITEMS, ALL_SUITES, CIRCUIT, OVERALL, SG_SCORE, SUITE, measures
from eval.syntaxgym.suites import circuit_of

CHANCE = "chance"
DRAWS = 20_000  # a share of 1/4 has a standard error of .003
_MODELS = ("GRNN", "JRNN", "Transformer-XL", "GPT-2", "GPT-2-XL")  # of the paper: those that came trained


def chance_scores(success: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of random surprisals, which are independent and alike in all regions: level, name, accuracy.

    A conjunction of comparisons is far below 1/2 by chance, and a single comparison is at 1/2.

    Args:
        success: the answers of one run.
    """
    share = partial(_share, np.random.default_rng(1))
    shares = {text: share(Formula.parse(text)) for text in success["formula"].unique()}
    measured = measures(success.assign(success=success["formula"].map(shares), unk=0))
    return measured[[*MEASURE, "accuracy"]]


def _share(rng: np.random.Generator, formula: Formula) -> float:
    conditions = dict.fromkeys(region.condition for region in formula.regions)
    numbers = dict.fromkeys(region.number or 0 for region in formula.regions)  # "*" alone: a region of its own
    drawn = {(condition, number): rng.standard_normal(DRAWS) for condition in conditions for number in numbers}
    return float(formula(drawn).mean())


def published(means: pd.DataFrame) -> pd.DataFrame:
    """Return the paper's scores of models that came trained: model, level, name, accuracy, items, low and high.

    The paper's scores of single suites stand next to suites of the same name. Its totals are over its own suites, so
    they are given only if the study has exactly the paper's suites in them.

    Args:
        means: the table of `Results.means`.
    """
    theirs = set(read_published("syntaxgym").query("level == @SUITE")["name"])
    differing = theirs ^ set(means.loc[means["level"] == SUITE, "name"])
    circuits = {circuit for circuit in map(circuit_of, differing) if circuit}
    incomparable = [*circuits, *([SG_SCORE] if circuits else []), *([ALL_SUITES, ALL_ITEMS] if differing else [])]
    rows = published_next_to("syntaxgym", means)
    shown = rows["model"].isin([model + PAPER for model in _MODELS]) & ~rows["name"].isin(incomparable)
    return rows[shown].reset_index(drop=True)


def part(found: Answers, confidence: float, everything: bool = False) -> Part:
    """Return the part of a report about suites; `confidence`: of the intervals of slopes.

    `everything` adds all measures, which include single comparisons.
    """
    results = Results(found, found.measured(measures), confidence)
    means = with_limits(results.means)
    ours, theirs = at_largest(means).rename(columns={"curve": "model"}), published(means)
    chance = chance_scores(found.tables[0]).assign(model=CHANCE)
    main = SG_SCORE if (means["name"] == SG_SCORE).any() else ALL_SUITES
    circuits = means.loc[means["level"] == CIRCUIT, "name"].unique()
    curves = [(OVERALL, main, main), *((CIRCUIT, name, name) for name in circuits)]
    levels = pd.concat([theirs[theirs["model"] == f"GPT-2{PAPER}"], chance])
    others = pd.concat([theirs, chance])
    exhibits = [_circuits(pd.concat([ours, others])), _suites(ours, others)]
    exhibits += results.over_text(curves, "SG score", levels)
    exhibits += [all_measures(means, others)] if everything else []
    items = of_measure(results.measured, OVERALL, ALL_ITEMS)
    suites = plural(means.loc[means["level"] == SUITE, "name"].nunique(), "suite")
    about = f"Formulas over the surprisal of regions, {items['items'].iloc[0]:,} items of {suites} (Hu et al. 2020)."
    unknown = float((items["unknown"] / items["items"]).max())
    note = f"<unk> is in regions that the formulas name, in up to {unknown:.0%} of the items of a run."
    findings = results.findings(OVERALL, main, "The SG score" if main == SG_SCORE else f"The mean of {main}")
    return results.part(about, exhibits, findings, [note] if unknown else [], _methods(found))


def _circuits(rows: pd.DataFrame) -> Exhibit:
    """Return a row per model with the SG score, circuits, all suites and all items, and a figure of the first two."""
    rows = rows[rows["level"].isin([OVERALL, CIRCUIT])].rename(columns={"name": "measure"})
    totals = [ALL_SUITES, ALL_ITEMS]
    rows = rows.sort_values("measure", key=lambda names: names.isin(totals), kind="stable")
    about = (
        f"Share of items whose prediction holds: means over suites. {AT_LARGEST} Scores of the paper's models follow "
        "from its per-item results. Its totals are shown only for its own suites."
    )
    definitions = {
        SG_SCORE: "The mean over the suites in the paper's six circuits, as in the authors' analysis.",
        "All items": "The share of the items of all suites, so that larger suites count more.",
        "Chance": "The score of surprisals that are independent and alike in all regions.",
        "Lines": "Wilson's 95% intervals for new items.",
    }
    not_drawn = totals if (rows["measure"] == SG_SCORE).any() else []
    table, charts = by_model(rows, "SG score", not_drawn)
    return Exhibit("circuits", "SG scores", about, table, charts=charts, definitions=definitions)


def _suites(ours: pd.DataFrame, others: pd.DataFrame) -> Exhibit:
    """Return a row per suite and model of ours, with chance and the paper's models (`others`)."""
    columns = {"name": SUITE, "model": "curve", "items": "items", "accuracy": "score", "low": "low", "high": "high"}
    table = ours[ours["level"] == SUITE].rename(columns=columns)[list(columns.values())]
    others = others[others["level"] == SUITE].pivot(index="name", columns="model", values="accuracy")
    about = "Share of a suite's items whose prediction holds, at each curve's largest size."
    return Exhibit("suites", "By suite", about, table.join(others, on=SUITE), cells={"items": count})


def _methods(found: Answers) -> list[str]:
    """Return the methods paragraph, for a paper."""
    text = [
        "The surprisal of a region is the sum over its tokens (bits), each given all text before it in the sentence. A "
        "token belongs to the region of its first character other than white space. An item succeeds if its suite's "
        "first prediction holds; a tie is no success. The SG score is the mean over suites of the share of their items "
        "that succeed (Hu et al. 2020).",
    ]
    if any(policy.get("score_eos") for policy in found.runs["policy"]):
        text.append("The end of a sentence counts in its last region if a model has a symbol for it.")
    if (before := {str(policy.get("context", "none")) for policy in found.runs["policy"]}) != {"none"}:
        text.append(f"Before each sentence: {joined(sorted(before))}.")
    return text
