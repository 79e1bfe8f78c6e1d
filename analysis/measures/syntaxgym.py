"""SG scores of a study's runs on suites (Hu et al. 2020), and those that chance gives."""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.measures.diagnostics import KEYS, Answers, read_answers
from analysis.study.collect import Study
from eval.syntaxgym.files import read_success, success_metadata
from eval.syntaxgym.formulas import Formula
from eval.syntaxgym.measures import measures

DRAWS = 20_000  # a share of 1/4 has a standard error of .003


def suite_scores(study: Study, label: str) -> Answers:
    """Read the scores of every run that has them; raises as `read_answers`."""
    return read_answers(study, label, success_metadata, _measured)


def _measured(folder: Path) -> pd.DataFrame:
    return measures(read_success(folder)[0])


def chance_scores(study: Study, answers: Answers) -> pd.DataFrame:
    """Return KEYS and accuracy of surprisals drawn at random: normal, independent and alike in all regions.

    A conjunction of comparisons lies far below 1/2, and what no conjunction joins at it.
    """
    success, _ = read_success(study.folders[answers.runs.index[0]].scores(answers.label))
    share = partial(_share, np.random.default_rng(1))
    shares = {text: share(Formula.parse(text)) for text in dict.fromkeys(success["formula"])}
    return measures(success.assign(success=success["formula"].map(shares), unk=0))[[*KEYS, "accuracy"]]


def _share(rng: np.random.Generator, formula: Formula) -> float:
    conditions = dict.fromkeys(region.condition for region in formula.regions)
    numbers = dict.fromkeys(region.number or 0 for region in formula.regions)  # "*" alone: a region of its own
    drawn = {(condition, number): rng.standard_normal(DRAWS) for condition in conditions for number in numbers}
    return float(formula(drawn).mean())
