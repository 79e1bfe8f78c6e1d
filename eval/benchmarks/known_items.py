"""Recognise published pairs that are faulty, and pairs that differ from those published under a benchmark's name.

    known_items.csv       benchmark, paradigm, pair_id, reason (a key of REASONS): the faulty pairs
    published_pairs.csv   benchmark, paradigm, pairs, digest: digests of the published sentences

Neither file contains sentences. Accuracies include faulty pairs, as published accuracies do, unless they are left out
with analysis.faulty_pairs=leave_out; a note says how many were scored. They were found by rules (doubled words,
spelling, articles, final marks and capitals, sentences that are good in one pair and bad in another, and equal pairs)
and in the issues of alexwarstadt/blimp. Issue 8 there (possessives before verbs) is not a fault, as its answer says.
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
    "misspelt": "'unsuprising' in both sentences (alexwarstadt/blimp, issue 7)",
    "no_word": "'dishs' in the bad sentence, so that spelling decides instead of grammar",
    "past_tense": "'shrunk' in the bad sentence, which is also listed as a past tense (Merriam-Webster: shrink)",
}
STRAIGHT = str.maketrans("“”‘’", "\"\"''")  # straightens the quotes of diagnostics
_KEY = ["paradigm", "pair_id"]


def faulty_pairs(benchmark: str, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return those of `pairs` that are known to be faulty, with the columns paradigm, pair_id and reason.

    `benchmark` is the benchmark's name.
    """
    known = _table("known_items.csv").query("benchmark == @benchmark")
    return pairs[_KEY].drop_duplicates().merge(known[[*_KEY, "reason"]], on=_KEY)


def faulty_note(benchmark: str, pairs: pd.DataFrame) -> str | None:
    """Return a note on the faulty ones of `pairs` (columns paradigm and pair_id); None if no faulty pair is known."""
    reasons = faulty_pairs(benchmark, pairs)["reason"]
    if reasons.empty:
        return None
    total = len(pairs[_KEY].drop_duplicates())
    listed = "; ".join(f"{count} {REASONS[str(reason)]}" for reason, count in reasons.value_counts().items())
    share = f"{len(reasons)} of {total:,} pairs ({len(reasons) / total:.1%})"
    return f"{share} are known to be faulty. They are included, as in published results. Faults: {listed}."


def unpublished_note(benchmark: str, pairs: pd.DataFrame) -> str | None:
    """Return a note if `pairs`, all of each paradigm, differ from those published as `benchmark`; otherwise None."""
    groups = pairs.groupby("paradigm")[["pair_id", "good", "bad"]]
    return _unpublished(benchmark, {str(name): rows.to_numpy().tolist() for name, rows in groups})


def unpublished_questions_note(benchmark: str, questions: pd.DataFrame) -> str | None:
    """Return a note if a diagnostic's questions (columns of QUESTIONS) differ from the published ones, else None."""
    rows = questions.loc[questions["trial"].isna(), ["item", "condition", "context", "candidate", "role"]]
    straight = [[cell.translate(STRAIGHT) for cell in row] for row in rows.to_numpy().tolist()]
    return _unpublished(benchmark, {"its questions": straight})


def _unpublished(benchmark: str, parts: Mapping[str, list[Any]]) -> str | None:
    published = _table("published_pairs.csv").query("benchmark == @benchmark")["digest"].tolist()
    others = [name for name, rows in parts.items() if sha256_json(rows)[:16] not in published]
    if not published or not others:
        return None
    return (
        f"benchmark.name={benchmark}: these differ from the published benchmark: {first_few(others)}. Results are not "
        "comparable with the papers', so choose another benchmark.name."
    )


@cache
def _table(name: str) -> pd.DataFrame:
    return pd.read_csv(Path(__file__).with_name(name), dtype=str, keep_default_na=False)
