"""Pairs that are known to be faulty (eval/benchmarks/known_items.py), counted as published or left out."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.study.judgements import Judgements
from eval.benchmarks.known_items import REASONS, faulty_note, faulty_pairs
from eval.scores.names import benchmark_name

_KEY = ["paradigm", "pair_id"]


def known_faults(label: str, pairs: pd.DataFrame) -> pd.Series:
    """Return the reason (a sentence) why each of `pairs` (paradigm, pair_id) is known to be faulty, else ""."""
    faulty = faulty_pairs(label.partition("+")[0], pairs)
    reasons = {tuple(key): REASONS[reason] for *key, reason in faulty[[*_KEY, "reason"]].to_numpy().tolist()}
    return pd.Series([reasons.get(tuple(key), "") for key in pairs[_KEY].to_numpy().tolist()], pairs.index, dtype=str)


def faulty_mask(judged: Judgements) -> npt.NDArray[np.bool_]:
    """Return (P,) True for pairs that are known to be faulty; all False if judgements of single pairs are not known."""
    if judged.of_paradigms:
        return np.zeros(len(judged.pairs), dtype=bool)
    return (known_faults(judged.label, judged.pairs) != "").to_numpy()


def without_faulty(judged: Judgements) -> Judgements:
    """Return the judgements of pairs that are not known to be faulty; a note says how many were left out."""
    mask, benchmark = faulty_mask(judged), judged.label.partition("+")[0]
    if not mask.any() or mask.all():
        return judged
    counted = f"{benchmark_name(judged.label)}: {faulty_note(benchmark, judged.pairs)}."
    omitted = f"{benchmark_name(judged.label)}: {faulty_note(benchmark, judged.pairs, left_out=True)}."
    notes = [omitted if note == counted else note for note in judged.notes]
    left_out = judged.pairs.loc[mask, _KEY].reset_index(drop=True)
    return replace(judged.select(~mask), notes=notes, unequal=judged.unequal, left_out=left_out)
