"""The frequency of a benchmark's words in a run's training text, and accuracy by it.

Figure 1 of Xiang et al. 2021 compares CLiMP's vocabulary with the word frequencies of the Chinese Internet Corpus. Here
the text is the run's own sample, drawn again from the text store. Words are reference words (jieba's for Chinese, as
Xiang et al. cut them), whatever tokens the model reads.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.measures.predictors import BINS, accuracy_in_bins
from corpora.word_counts import Counts
from corpora.words import words

MOST_SENTENCES = 50_000  # of a sample that are counted, about two seconds; a sample is in random order, so they are one
RANKS = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
PREDICTORS = {
    "rarest": "rarest word of the good sentence, per million words",
    "differing": "rarest word of the good sentence that the bad one lacks, per million words",
    "ratio": "that word's frequency over that of the bad sentence's rarest own word",
}
Array = npt.NDArray[np.float64]


def pair_words(items: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Return the words of each pair: paradigm, pair_id, and lists: all (of the good one), good and bad (own words)."""
    goods, bads = ([str(text) for text in items[side]] for side in ("good", "bad"))
    cut = {text: words(text, reference) for text in dict.fromkeys([*goods, *bads])}
    rows = []
    for good, bad in zip(goods, bads, strict=True):
        own = Counter(cut[good]) - Counter(cut[bad]), Counter(cut[bad]) - Counter(cut[good])
        rows.append((cut[good], list(own[0]), list(own[1])))
    lists = pd.DataFrame(rows, columns=["all", "good", "bad"], index=items.index)
    return items[["paradigm", "pair_id"]].join(lists)


def pair_frequencies(pairs: pd.DataFrame, counts: Counts) -> pd.DataFrame:
    """Return (P rows) paradigm and PREDICTORS of `pair_words`; NaN where a sentence has no word of its own."""

    def rarest(lists: Sequence[list[str]]) -> Array:
        return np.asarray([min(map(counts.per_million, words)) if words else np.nan for words in lists])

    good, bad = rarest(pairs["good"].tolist()), rarest(pairs["bad"].tolist())
    columns = {"rarest": rarest(pairs["all"].tolist()), "differing": good, "ratio": good / bad}
    return pd.DataFrame({"paradigm": pairs["paradigm"].to_numpy(), **columns})


def accuracy_by_frequency(runs: pd.DataFrame, judged: Mapping[str, tuple[pd.DataFrame, Array]]) -> pd.DataFrame:
    """Return accuracy in bins of frequency within paradigms: rows of BINS, as of `accuracy_in_bins`.

    `runs`: index run, group. `judged`: run -> its `pair_frequencies` and its outcomes (P,).
    """
    rows: list[dict[str, Any]] = []
    for group, of in runs.groupby("group", sort=False):
        table = pd.concat([judged[run][0].assign(outcome=judged[run][1]) for run in of.index], ignore_index=True)
        rows += accuracy_in_bins(table, list(PREDICTORS), str(group), len(of))
    return pd.DataFrame(rows, columns=BINS)


def among_most_frequent(vocabulary: Sequence[str], counts: Counts) -> pd.DataFrame:
    """Count the distinct words among the `rank` most frequent words of a text, up to all: rank, words, share."""
    of = counts.ranks
    ranks = np.asarray([of[word] for word in vocabulary if word in of])
    shown = [rank for rank in RANKS if rank < len(of)] + [len(of)]
    within = [int((ranks <= rank).sum()) for rank in shown]
    return pd.DataFrame({"rank": shown, "words": within, "share": np.asarray(within) / max(1, len(vocabulary))})
