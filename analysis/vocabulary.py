"""What the vocabulary does to judgements: ties, and `<unk>` in the two sentences of a pair, by size of the text.

An unequal number of `<unk>` decides a pair by what a model thinks of rare words, not of grammar; where the vocabulary
grows with the sample that alone makes a slope. The curves on pairs without `<unk>` are in analysis/curves.py.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from analysis.collect import Study
from analysis.judgements import Judgements
from eval.scores import read_scores, score_path


def unequal_unk(study: Study, label: str, method: str) -> pd.Series:
    """Share of each run's judgements whose two sentences hold `<unk>` unequally often; NaN for runs without scores."""
    found = {}
    for run in study.runs.index:
        path = score_path(study.folders[run].scores(label), method)
        if path.exists():
            scores, _ = read_scores(path)
            found[run] = float((scores["good_unk"] != scores["bad_unk"]).mean())
    return pd.Series(found, dtype=float).reindex(study.runs.index)


def vocabulary_effects(judged: Judgements, unequal: pd.Series) -> pd.DataFrame:
    """By group and size, smallest first: group, size, words, runs, and the means over runs of these shares of pairs:

    ties (the two scores are equal), unk (`<unk>` in either sentence), unequal_unk (more in one than in the other,
    `unequal`, by run) and decided_unk (its share of the pairs with `<unk>`; NaN where none has any).
    """
    shares = judged.runs[["group", "size", "sample_words"]].assign(
        ties=judged.tie.mean(axis=1), unk=judged.unk.mean(axis=1), unequal_unk=unequal.reindex(judged.runs.index)
    )
    means = {"sample_words": "mean", "ties": "mean", "unk": "mean", "unequal_unk": "mean"}
    grouped = shares.groupby(["group", "size"], sort=False)
    table = grouped.agg(means).assign(runs=grouped.size()).reset_index().rename(columns={"sample_words": "words"})
    table["decided_unk"] = table["unequal_unk"] / table["unk"].where(table["unk"] > 0, np.nan)
    order = ["group", "size", "words", "runs", "ties", "unk", "unequal_unk", "decided_unk"]
    return table.sort_values(["group", "words"], kind="stable", ignore_index=True)[order]
