"""Untrained models of a study, the baseline of its curves (`recipe.budget.epochs=0`)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from analysis.study.collect import PROBLEMS, Study
from analysis.study.judgements import Judgements, is_of_own_pairs, labels_of, one_digest

SHARED = ("model", "tokenizer", "corpus")  # sections of the configuration that an untrained model's weights come from


def untrained_judgements(
    study: Study, judged: Judgements, judge: Callable[[Study, str, str, str], Judgements], ties: str
) -> Judgements | None:
    """Return judgements of the study's untrained models on the pairs of `judged`, or None without any.

    `judge` reads scores, as `judgements` does. The column `baseline_of` of the runs holds the groups of `judged` with
    the same model, tokenizer and corpus. Raises RunError where the pairs are another version.
    """
    scored = [run for run in study.untrained.index if judged.label in labels_of(study, run)]
    if not scored or is_of_own_pairs(judged.label):
        return None
    alone = replace(study, runs=study.untrained.loc[scored], problems=study.problems.iloc[:0][list(PROBLEMS)], notes=[])
    untrained = judge(alone, judged.label, judged.method, ties)
    one_digest(judged.label, {judged.runs.index[0]: judged.digest, scored[0]: untrained.digest})
    groups = {group: _shared(study, part.index[0]) for group, part in judged.runs.groupby("group", sort=False)}
    own = (_shared(study, run) for run in untrained.runs.index)
    untrained.runs["baseline_of"] = [tuple(g for g, theirs in groups.items() if theirs == shared) for shared in own]
    return untrained


def _shared(study: Study, run: Any) -> list[Any]:
    return [study.config[str(run)].get(section) for section in SHARED]
