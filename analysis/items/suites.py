"""Suites of SyntaxGym (Hu et al. 2020): SG scores of each run, chance, and the paper's models.

The scores of one model are eval.syntaxgym.measures. The paper: "A systematic assessment of syntactic generalization in
neural language models", ACL 2020, 1725-1744.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.formats import count, joined, plural
from analysis.items.answers import (
    MEASURE,
    PAPER,
    Answers,
    ItemsSection,
    all_measures,
    at_largest,
    beside,
    findings,
    lead_of,
    over_sizes,
    over_text,
    published_next_to,
    read_answers,
    slopes,
    table_of_models,
)
from analysis.report.exhibit import Exhibit
from eval.published import read_published
from eval.syntaxgym.files import read_success, success_metadata
from eval.syntaxgym.formulas import Formula
from eval.syntaxgym.measures import ALL_ITEMS, ALL_SUITES, CIRCUIT, COMPARISON, OVERALL, SG_SCORE, SUITE
from eval.syntaxgym.measures import measures as measures_of_model
from eval.syntaxgym.suites import circuit_of

CHANCE = "chance"
DRAWS = 20_000  # a share of 1/4 has a standard error of .003
_MODELS = ("GRNN", "JRNN", "Transformer-XL", "GPT-2", "GPT-2-XL")  # of the paper: those that came trained


def answers(runs: pd.DataFrame, label: str, folder: str | Path = "runs") -> Answers:
    """Read which predictions of the suites hold for each run; arguments and errors as of `read_answers`.

    Its table has the columns of eval.syntaxgym.files.SUCCESS, one row per item and prediction or comparison.
    """
    return read_answers(runs, label, folder, success_metadata, read_success)


def measures(found: Answers) -> pd.DataFrame:
    """Return the scores of each run: columns of runs and eval.diagnostics.measures.MEASURES."""
    return found.measured(measures_of_model)


def chance_scores(success: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of random surprisals, which are independent and alike in all regions: level, name, accuracy.

    A conjunction of comparisons is far below 1/2 by chance, and a single comparison is at 1/2.

    Args:
        success: the answers of one run.
    """
    share = partial(_share, np.random.default_rng(1))
    shares = {text: share(Formula.parse(text)) for text in dict.fromkeys(success["formula"])}
    measured = measures_of_model(success.assign(success=success["formula"].map(shares), unk=0))
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
        means: the table of `over_sizes`.
    """
    theirs = set(read_published("syntaxgym").query("level == @SUITE")["name"])
    rows = published_next_to("syntaxgym", means)
    ours = set(means.loc[means["level"] == SUITE, "name"])

    def is_comparable(level: str, name: str) -> bool:
        if level == CIRCUIT:
            return all(circuit_of(suite) != name for suite in ours ^ theirs)
        if name == SG_SCORE:
            return not any(map(circuit_of, ours ^ theirs))
        return level == SUITE or ours == theirs

    comparable = np.asarray([is_comparable(*key) for key in rows[MEASURE].itertuples(index=False)], dtype=bool)
    return rows[rows["model"].isin([model + PAPER for model in _MODELS]) & comparable].reset_index(drop=True)


def section(
    runs: pd.DataFrame, label: str, confidence: float, folder: str | Path = "runs", everything: bool = False
) -> ItemsSection:
    """Return the part of a report about suites.

    Args:
        runs: the table of `analysis.runs`, with curves named as readers see them.
        label: the name of their folder of scores.
        confidence: the level of the intervals of slopes.
        folder: where studies are (`paths.runs`).
        everything: add single comparisons and all measures.

    Raises:
        RunError: as `read_answers` does.
    """
    found = answers(runs, label, folder)
    measured = measures(found)
    fitted = slopes(measured, label, confidence)
    whole = fitted[(fitted["method"] == OVERALL) & (fitted["name"] == _main(measured))]
    items = int(measured.loc[measured["name"] == ALL_ITEMS, "items"].iloc[0])
    suites = plural(measured.loc[measured["level"] == SUITE, "name"].nunique(), "suite")
    return ItemsSection(
        label=label,
        kind="Test suites",
        lead=lead_of(found, f"Formulas over the surprisal of regions, {items:,} items of {suites} (Hu et al. 2020)."),
        notes=[*found.notes, *_unknown(measured)],
        findings=findings(whole, confidence, lambda name: f"The {name}" if name == SG_SCORE else f"The mean of {name}"),
        exhibits=exhibits(found, measured, fitted, confidence, everything),
        methods=_methods(found),
    )


def _main(measured: pd.DataFrame) -> str:
    """Return the total that sentences and figures are about: the SG score, or, without circuits, all suites."""
    return SG_SCORE if (measured["name"] == SG_SCORE).any() else ALL_SUITES


def exhibits(
    found: Answers, measured: pd.DataFrame, fitted: pd.DataFrame, confidence: float, everything: bool = False
) -> list[Exhibit]:
    """Return SG scores by circuit, scores of suites, and scores over training text; `everything`: the others, too."""
    means = over_sizes(measured)
    ours, theirs = at_largest(means).rename(columns={"curve": "model"}), published(means)
    _, success = next(iter(found.of_runs()))
    chance = chance_scores(success).assign(model=CHANCE)
    circuits = measured.loc[measured["level"] == CIRCUIT, "name"].unique()
    curves = [(OVERALL, _main(measured), _main(measured)), *((CIRCUIT, name, name) for name in circuits)]
    levels = pd.concat([theirs[theirs["model"] == f"GPT-2{PAPER}"], chance])[[*MEASURE, "model", "accuracy"]]
    shown = [
        _circuits(ours, theirs, chance),
        _parts(ours, theirs, chance, SUITE),
        over_text(measured, fitted, curves, "SG score", confidence, levels),
    ]
    if everything:
        shown += [_parts(ours, theirs, chance, COMPARISON), all_measures(means, theirs)]
    return [one for one in shown if one is not None]


def _circuits(ours: pd.DataFrame, theirs: pd.DataFrame, chance: pd.DataFrame) -> Exhibit:
    """Return a row per model with the SG score, circuits, all suites and all items, and a figure of the first two."""
    rows = pd.concat([ours, theirs, chance])
    rows = rows[rows["level"].isin([OVERALL, CIRCUIT])]
    names = list(dict.fromkeys(ours.loc[ours["level"].isin([OVERALL, CIRCUIT]), "name"]))
    columns = sorted(names, key=lambda name: name in (ALL_SUITES, ALL_ITEMS))
    drawn_names = [name for name in columns if name not in (ALL_SUITES, ALL_ITEMS)] or columns
    table = table_of_models(rows, "name", columns)
    drawn = rows[rows["name"].isin(drawn_names) & (rows["model"] != CHANCE)].rename(columns={"name": "measure"})
    drawn = drawn.sort_values("measure", key=lambda of: of.map(columns.index), kind="stable")
    about = (
        "Share of items whose prediction holds: means over suites. Ours are means over the runs at each curve's "
        "largest size. Scores of the paper's models follow from its per-item results. Its totals are shown "
        "only for its own suites."
    )
    definitions = {
        SG_SCORE: "The mean over the suites in the paper's six circuits, as in the authors' analysis.",
        "All items": "The share of the items of all suites, so that larger suites count more.",
        "Chance": "The score of surprisals that are independent and alike in all regions.",
        "Lines": "Wilson's 95% intervals for new items.",
    }
    charts = beside(drawn, "SG score")
    return Exhibit("circuits", "SG scores", about, table, charts=charts, definitions=definitions)


def _parts(ours: pd.DataFrame, theirs: pd.DataFrame, chance: pd.DataFrame, level: str) -> Exhibit | None:
    """Return a row per suite, or single comparison, and model of ours, with chance and the paper's models."""
    rows = ours[ours["level"] == level]
    if rows.empty:
        return None
    columns = {"name": level, "model": "curve", "items": "items", "accuracy": "score", "low": "low", "high": "high"}
    table = rows.merge(chance[[*MEASURE, "accuracy"]].rename(columns={"accuracy": CHANCE}), on=MEASURE)
    paper = theirs[theirs["level"] == level].pivot(index="name", columns="model", values="accuracy")
    table = table[[*columns, CHANCE]].rename(columns=columns).join(paper, on=level)
    if level == SUITE:
        about = "Share of a suite's items whose prediction holds, at each curve's largest size."
        return Exhibit("suites", "By suite", about, table, cells={"items": count})
    about = (
        "The share of items for which a comparison holds that a prediction joins with others. A model without any "
        "expectation is right half the time; one that always prefers the same form never satisfies a conjunction."
    )
    return Exhibit("comparisons", "Single comparisons", about, table, cells={"items": count})


def _unknown(measured: pd.DataFrame) -> list[str]:
    """Return a note if `<unk>` is in regions that formulas name."""
    items = measured[measured["name"] == ALL_ITEMS]
    share = float((items["unknown"] / items["items"]).max())
    return [f"<unk> is in regions that the formulas name, in up to {share:.0%} of the items of a run."] if share else []


def _methods(found: Answers) -> list[str]:
    """Return the methods paragraph, for a paper."""
    policies = [of["policy"] for of in found.metadata.values()]
    text = [
        "The surprisal of a region is the sum over its tokens (bits), each given all text before it in the sentence. A "
        "token belongs to the region of its first character other than white space. An item succeeds if its suite's "
        "first prediction holds; a tie is no success. The SG score is the mean over suites of the share of their items "
        "that succeed (Hu et al. 2020).",
    ]
    if any(policy.get("score_eos") for policy in policies):
        text.append("The end of a sentence counts in its last region if a model has a symbol for it.")
    if (before := {str(policy.get("context", "none")) for policy in policies}) != {"none"}:
        text.append(f"Before each sentence: {joined(sorted(before))}.")
    return text
