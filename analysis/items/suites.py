"""Describe SyntaxGym suites (Hu et al. 2020), with SG scores of each run, chance and the paper's models.

`eval.syntaxgym.measures` computes the scores of one model. The paper is "A systematic assessment of syntactic
generalization in neural language models", ACL 2020, 1725-1744.
"""

from functools import partial

import numpy as np
import pandas as pd

from analysis.formats import plural
from analysis.items.results import CHANCE, MEASURE, PAPER, Answers, Description
from eval.published import read_published
from eval.syntaxgym.formulas import Formula
from eval.syntaxgym.measures import ALL_ITEMS, ALL_SUITES, CIRCUIT, OVERALL, SG_SCORE, SUITE, measures
from eval.syntaxgym.suites import circuit_of

DRAWS = 20_000  # a share of 1/4 has a standard error of .003
_MODELS = ("GRNN", "JRNN", "Transformer-XL", "GPT-2", "GPT-2-XL")  # the paper's pretrained models
_METHODS = (
    "The surprisal of a region is the sum of its tokens' surprisals, in bits, given all text before them in the "
    "sentence. An item succeeds if the first prediction of its suite is true. A tie counts as a failure. The SG score "
    "is the mean share of items that succeed, over the suites in the paper's six circuits (Hu et al. 2020). Chance is "
    "the score of random surprisals with the same distribution in all regions. The paper's totals only cover its own "
    "suites. Shares have Wilson's intervals over new items, and slopes have intervals over new runs."
)


def chance_scores(success: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of random surprisals (level, name, accuracy), with the same distribution in all regions.

    By chance, a single comparison is true half of the time, and a conjunction of comparisons is true much less often.

    Args:
        success: The answers of one run.
    """
    share = partial(_share, np.random.default_rng(1))
    shares = {text: share(Formula.parse(text)) for text in success["formula"].unique()}
    measured = measures(success.assign(success=success["formula"].map(shares), unk=0))
    return measured[[*MEASURE, "accuracy"]]


def _share(rng: np.random.Generator, formula: Formula) -> float:
    conditions = dict.fromkeys(region.condition for region in formula.regions)
    numbers = dict.fromkeys(region.number or 0 for region in formula.regions)  # "*" alone is one more region
    drawn = {(condition, number): rng.standard_normal(DRAWS) for condition in conditions for number in numbers}
    return float(formula(drawn).mean())


def published(suites: set[str]) -> pd.DataFrame:
    """Return the paper's scores of pretrained models, with the columns model, level, name and accuracy.

    The paper's totals cover its own suites, so a total is only returned if the study has exactly the same suites.

    Args:
        suites: The names of the study's suites.
    """
    rows = read_published("syntaxgym")
    differing = set(rows.loc[rows["level"] == SUITE, "name"]) ^ suites
    circuits = {circuit for circuit in map(circuit_of, differing) if circuit}
    incomparable = [*circuits, *([SG_SCORE] if circuits else []), *([ALL_SUITES, ALL_ITEMS] if differing else [])]
    rows = rows[rows["model"].isin(_MODELS) & ~rows["name"].isin(incomparable)]
    return rows.assign(model=rows["model"] + PAPER)


def describe(found: Answers) -> Description:
    """Describe the suites that runs were scored on."""
    measured = found.measured(measures)
    names = measured.drop_duplicates(MEASURE).groupby("level")["name"].agg(list)
    suites, total = names[SUITE], SG_SCORE if SG_SCORE in names[OVERALL] else ALL_SUITES
    items = measured.loc[measured["name"] == ALL_ITEMS, "items"].iloc[0]
    return Description(
        about=f"There are {items:,} items in {plural(len(suites), 'suite')} (Hu et al. 2020).",
        measured=measured.drop(columns=["low", "high"]),
        main=[(OVERALL, total), *((CIRCUIT, name) for name in names.get(CIRCUIT, []))],
        what="The {name}" if total == SG_SCORE else "The score of {name}",
        methods=_METHODS,
        others=pd.concat([published(set(suites)), chance_scores(found.tables[0]).assign(model=CHANCE)]),
    )
