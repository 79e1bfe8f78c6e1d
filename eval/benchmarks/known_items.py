"""What is known of published pairs: which of them are faulty, and whether pairs under a benchmark's name are its own.

    known_items.csv       benchmark, paradigm, pair_id, reason: faulty pairs, by a key of REASONS
    published_pairs.csv   benchmark, paradigm, pairs, digest: of the published sentences

No sentence stands in either. Accuracies count faulty pairs as the published ones do, unless they are left out
(analysis.faulty_pairs=leave_out); how many were scored is said. Searched for by rules: doubled words, spelling,
articles, end marks and capitals, sentences that are good in one pair and bad in another, equal pairs; and in
the issues of alexwarstadt/blimp, of which issue 8 (possessives before verbs) is no fault, as its answer says.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from pairscale.errors import first_few
from pairscale.files import sha256_json

REASONS = {
    "out_in_the_open": "'out in the open' stands before a noun in a sentence, which makes it ungrammatical "
    "(alexwarstadt/blimp, issue 3)",
    "same_sentence": "both sentences are the same, so every model ties",
    "misspelt": "'unsuprising' in both sentences (alexwarstadt/blimp, issue 7)",
    "no_word": "'dishs' in the bad sentence, so that spelling decides and not grammar",
    "past_tense": "'shrunk' in the bad sentence, which dictionaries have as a past tense too (Merriam-Webster: shrink)",
}
STRAIGHT = str.maketrans("“”‘’", "\"\"''")  # the quotes of diagnostics, for models that never saw curly ones
_KEY = ["paradigm", "pair_id"]


def faulty_pairs(benchmark: str, pairs: pd.DataFrame) -> pd.DataFrame:
    """Columns paradigm, pair_id, reason of those of `pairs` that are known to be faulty; `benchmark`: its name."""
    known = _table("known_items.csv").query("benchmark == @benchmark")
    return pairs[_KEY].drop_duplicates().merge(known[[*_KEY, "reason"]], on=_KEY)


def faulty_note(benchmark: str, pairs: pd.DataFrame) -> str | None:
    """One sentence on the faulty ones of `pairs` (paradigm, pair_id); None where none is known."""
    reasons = faulty_pairs(benchmark, pairs)["reason"]
    if reasons.empty:
        return None
    total = len(pairs[_KEY].drop_duplicates())
    listed = "; ".join(f"{count} {REASONS[str(reason)]}" for reason, count in reasons.value_counts().items())
    share = f"{len(reasons)} of {total:,} pairs ({len(reasons) / total:.1%})"
    return f"{share} are known to be faulty, and counted as published: {listed}"


def unpublished_note(benchmark: str, pairs: pd.DataFrame) -> str | None:
    """Return a sentence if `pairs`, all of each paradigm, are not those published as `benchmark`; None if unknown."""
    groups = pairs.groupby("paradigm")[["pair_id", "good", "bad"]]
    return _unpublished(benchmark, {str(name): rows.to_numpy().tolist() for name, rows in groups})


def unpublished_questions_note(benchmark: str, questions: pd.DataFrame) -> str | None:
    """Return the same of a diagnostic's questions (columns of eval.diagnostics.questions.QUESTIONS)."""
    rows = questions.loc[questions["trial"].isna(), ["item", "condition", "context", "candidate", "role"]]
    straight = [[cell.translate(STRAIGHT) for cell in row] for row in rows.to_numpy().tolist()]
    return _unpublished(benchmark, {"its questions": straight})


def _unpublished(benchmark: str, parts: Mapping[str, list[Any]]) -> str | None:
    published = _table("published_pairs.csv").query("benchmark == @benchmark")["digest"].tolist()
    others = [name for name, rows in parts.items() if sha256_json(rows)[:16] not in published]
    if not published or not others:
        return None
    return (
        f"benchmark.name={benchmark}: not as published: {first_few(others)}, so the papers' numbers are of others; "
        "give your own a name of their own (benchmark.name)"
    )


@cache
def _table(name: str) -> pd.DataFrame:
    return pd.read_csv(Path(__file__).with_name(name), dtype=str, keep_default_na=False)
