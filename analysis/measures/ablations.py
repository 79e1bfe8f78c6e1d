"""What interventions took from the text of a study, by its manifests, and what tests the constructions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

REMOVED = [
    "base", "filter", "action", "dose", "runs", "sentences", "of_sentences", "words", "of_words", "matching_sentences",
    "rewritten", "sample_matching", "same_class", "removed_words", "control_words", "removed_log_frequency",
    "control_log_frequency",
]  # fmt: skip


def direct_paradigms(
    runs: pd.DataFrame, configs: Mapping[str, Mapping[str, Any]], benchmark: str
) -> dict[str, frozenset[str]]:
    """Return, for each filter, the paradigms of a benchmark that test its construction, as the filter lists them.

    `runs`: rows of Study.runs; `configs`: by run id. Where runs list different ones, all of these.
    """
    direct: dict[str, frozenset[str]] = {}
    for run, construction in runs["filter"].items():
        listed = ((configs[str(run)].get("filter") or {}).get("paradigms") or {}).get(benchmark) or ()
        if construction:
            direct[construction] = direct.get(construction, frozenset()) | frozenset(listed)
    return direct


def removed_text(runs: pd.DataFrame) -> pd.DataFrame:
    """Return what each intervention did to the train split (REMOVED), a row each; empty where no manifest says it.

    sentences, words: left out or rewritten, of all; matching_sentences: those with the construction. sample_matching:
    of the sentences that samples were read from, those that still have it, mean over runs. same_class: share of
    controls in the finest class of their sentence; means over sentences of words and log frequency of lemmas, of what
    was removed and of its controls. Where runs differ, as doses and controls of several seeds do, means over runs.
    """
    rows = []
    keys = ["base", "filter", "action", "dose"]
    identities = {str(run): dict(zip(keys, of, strict=True)) for run, *of in runs[keys].itertuples()}
    for run, manifest in runs["manifest"].items():
        recorded = (manifest.get("corpus") or {}).get("ablation") if isinstance(manifest, dict) else None
        if not recorded:
            continue
        balance = recorded.get("balance") or {}
        means = {
            f"{part}_{key}": (balance.get(part) or {}).get(key, np.nan)
            for part in ("removed", "control")
            for key in ("words", "log_frequency")
        }
        counts = ("sentences", "words", "of_sentences", "of_words", "rewritten")
        rows.append({
            **identities[str(run)], "runs": 1,
            **{key: recorded.get(key, np.nan) for key in counts},
            "matching_sentences": (recorded.get("matching") or {}).get("sentences", np.nan),
            "sample_matching": (recorded.get("sample") or {}).get("matching", np.nan),
            "same_class": balance.get("same_class", np.nan), **means,
        })  # fmt: skip
    if not rows:
        return pd.DataFrame(columns=REMOVED)
    table = pd.DataFrame(rows)
    how = {name: "sum" if name == "runs" else "mean" for name in table if name not in keys}
    return table.groupby(keys, as_index=False, sort=False).agg(how)[REMOVED]
