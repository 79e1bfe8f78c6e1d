"""Baselines of a study's curves: untrained models (`recipe.budget.epochs=0`) and models of shuffled text.

A model of shuffled text (`sample.shuffle`) knows which words are frequent, and which occur together, but no order.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.study.collect import PROBLEMS, UNTRAINED, Study
from analysis.study.judgements import Judgements, is_of_own_pairs, labels_of, one_digest
from pairscale.errors import RunError

SHARED = ("model", "tokenizer", "corpus")  # sections of the configuration that a baseline has in common with a curve


def check_curves(study: Study) -> None:
    """Raise RunError if a study has baselines, but no run on a curve and no other model."""
    if len(study.baselines) and not len(study.runs) and not len(study.unplaced):
        raise RunError(
            f"study={study.name}: only baselines (untrained models, or models of shuffled text) and no curve; analyse "
            f"it with the study of its curves: study=OTHER+{study.name}"
        )


def baseline_judgements(
    study: Study, judged: Judgements, judge: Callable[[Study, str, str, str], Judgements], ties: str
) -> Judgements | None:
    """Return judgements of the study's baselines on the pairs of `judged`, or None without any.

    `judge` reads scores, as `judgements` does. The column `baseline_of` of the runs holds the groups of `judged` with
    the same model, tokenizer and corpus. Raises RunError where the pairs are another version.
    """
    scored = [run for run in study.baselines.index if judged.label in labels_of(study, run)]
    if not scored or is_of_own_pairs(judged.label):
        return None
    alone = replace(study, runs=study.baselines.loc[scored], problems=study.problems.iloc[:0][list(PROBLEMS)], notes=[])
    baselines = judge(alone, judged.label, judged.method, ties)
    one_digest(judged.label, {judged.runs.index[0]: judged.digest, scored[0]: baselines.digest})
    groups = {group: _shared(study, part.index[0]) for group, part in judged.runs.groupby("group", sort=False)}
    own = (_shared(study, run) for run in baselines.runs.index)
    baselines.runs["baseline_of"] = [tuple(g for g, theirs in groups.items() if theirs == shared) for shared in own]
    return baselines


def baseline_rows(baselines: Judgements, group: str) -> dict[str, npt.NDArray[np.intp]]:
    """Return the numbers of the runs that are a baseline of a group, by kind: UNTRAINED, or a value of sample.shuffle.

    Of shuffled text those of the largest size, which know most.
    """
    of = np.asarray([group in groups for groups in baselines.runs["baseline_of"]], dtype=bool)
    kinds, words = baselines.runs["baseline"].to_numpy(), baselines.runs["sample_words"].to_numpy()
    rows = {}
    for kind in dict.fromkeys(kinds[of]):
        (numbers,) = np.nonzero(of & (kinds == kind))
        size = baselines.runs["size"].to_numpy()
        rows[str(kind)] = (
            numbers if kind == UNTRAINED else numbers[size[numbers] == size[numbers][words[numbers].argmax()]]
        )
    return rows


def _shared(study: Study, run: Any) -> list[Any]:
    return [study.config[str(run)].get(section) for section in SHARED]
