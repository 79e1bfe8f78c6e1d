"""Recognise faulty pairs in published benchmarks, and pairs that differ from the published ones.

    known_items.csv       faulty pairs (benchmark, paradigm, pair_id, and reason, which is a key of REASONS)
    published_pairs.csv   digests of the published sentences (benchmark, paradigm, pairs, digest)

Neither file contains sentences. Accuracies include faulty pairs, as published accuracies do, unless
analysis.faulty_pairs=leave_out is set. A note says how many were scored. We found them in the issues of
alexwarstadt/blimp, and with rules for doubled words, spelling, articles, final marks and capitals. Other rules found
sentences that are good in one pair and bad in another, and equal pairs. Issue 8 of alexwarstadt/blimp (possessives
before verbs) is not a fault, as the answer to it says.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from pairscale.errors import first_few
from pairscale.files import sha256_json

REASONS = {
    "out_in_the_open": "'out in the open' before a noun makes a good sentence ungrammatical "
    "(alexwarstadt/blimp, issue 3)",
    "same_sentence": "both sentences are the same, so every model ties",
    "misspelt": "both sentences contain the misspelt word 'unsuprising' (alexwarstadt/blimp, issue 7)",
    "no_word": "'dishs' in the bad sentence is not a word, so models can use spelling instead of grammar",
    "past_tense": "'shrunk' in the bad sentence is also listed as a past tense (Merriam-Webster: shrink)",
}
STRAIGHT = str.maketrans("“”‘’", "\"\"''")  # replaces curly quotes in diagnostics
_KEY = ["paradigm", "pair_id"]


def faulty_pairs(benchmark: str, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs of the benchmark that are known to be faulty, with the columns paradigm, pair_id and reason."""
    known = _table("known_items.csv").query("benchmark == @benchmark")
    return pairs[_KEY].drop_duplicates().merge(known[[*_KEY, "reason"]], on=_KEY)


def faulty_note(benchmark: str, pairs: pd.DataFrame) -> str | None:
    """Return a note about known faulty pairs in `pairs` (columns paradigm and pair_id), or None if there are none."""
    reasons = faulty_pairs(benchmark, pairs)["reason"]
    if reasons.empty:
        return None
    total = len(pairs[_KEY].drop_duplicates())
    listed = "; ".join(f"{REASONS[str(reason)]} ({count})" for reason, count in reasons.value_counts().items())
    share = f"{len(reasons)} of {total:,} pairs ({len(reasons) / total:.1%})"
    return f"{share} are known to be faulty. They are included, as in published results. Reasons: {listed}."


def unpublished_note(benchmark: str, pairs: pd.DataFrame) -> str | None:
    """Return a note if `pairs` (all pairs of each paradigm) differ from the published benchmark, and None otherwise."""
    groups = pairs.groupby("paradigm")[["pair_id", "good", "bad"]]
    return _unpublished(benchmark, {str(name): rows.to_numpy().tolist() for name, rows in groups})


def unpublished_questions_note(benchmark: str, questions: pd.DataFrame) -> str | None:
    """Return a note if a diagnostic's questions (columns of QUESTIONS) differ from the published ones, or None."""
    rows = questions.loc[questions["trial"].isna(), ["item", "condition", "context", "candidate", "role"]]
    straight = [[cell.translate(STRAIGHT) for cell in row] for row in rows.to_numpy().tolist()]
    return _unpublished(benchmark, {"its questions": straight})


def _unpublished(benchmark: str, parts: Mapping[str, list[Any]]) -> str | None:
    published = _table("published_pairs.csv").query("benchmark == @benchmark")["digest"].tolist()
    others = [name for name, rows in parts.items() if sha256_json(rows)[:16] not in published]
    if not published or not others:
        return None
    return (
        f"benchmark.name={benchmark}: these differ from the published benchmark: {first_few(others)}. Results aren't "
        "comparable with published ones. Choose another benchmark.name."
    )


@cache
def _table(name: str) -> pd.DataFrame:
    return pd.read_csv(Path(__file__).with_name(name), dtype=str, keep_default_na=False)
