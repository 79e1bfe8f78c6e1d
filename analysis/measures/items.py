"""Single pairs: the hardest, those that runs disagree about, and where in a sentence a judgement is made."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.curves.designs import sizes_of
from analysis.study.judgements import Judgements
from eval.scores.files import read_scores, read_tokens

Array = npt.NDArray[np.float64]
PARTS = ("before", "differing", "after")
_BETWEEN = " .,;:?!"  # words


def largest_size(runs: pd.DataFrame) -> pd.Series:
    """Return (R,) True for runs of the largest size of their group; a model of unknown size is one."""
    words = runs["sample_words"].fillna(0)
    largest = runs.loc[words.groupby(runs["group"]).idxmax()].set_index("group")["size"]
    return runs["size"] == runs["group"].map(largest)


def pair_accuracies(judged: Judgements, group: str, size: str) -> Array:
    """Return (P,) mean outcome of each pair over the runs of a group at a size."""
    of = ((judged.runs["group"] == group) & (judged.runs["size"] == size)).to_numpy()
    return np.asarray(judged.outcome[of].mean(axis=0, dtype=np.float64))


def hardest_pairs(judged: Judgements, margins: Array, each: int = 3) -> pd.DataFrame:
    """Return of every paradigm the `each` pairs that the runs of all groups at their largest sizes get wrong most.

    Columns: phenomenon, paradigm, pair_id, accuracy (mean over groups of the mean over runs), margin: of `margins` (P,)
    (`mean_margins`), which order pairs that are equally hard.
    """
    at = judged.runs[largest_size(judged.runs)].drop_duplicates("group")
    means = [pair_accuracies(judged, group, size) for group, size in at[["group", "size"]].to_numpy()]
    table = judged.pairs.assign(accuracy=np.mean(means, axis=0), margin=margins)
    order = ["phenomenon", "paradigm", "accuracy", "margin"]
    return table.sort_values(order, kind="stable").groupby("paradigm", sort=False).head(each).reset_index(drop=True)


def mean_margins(paths: Sequence[Path], pairs: pd.DataFrame) -> Array:
    """Return the (P,) mean over score files of good - bad in each file's standard deviations; `pairs` are in all."""
    keys = pd.MultiIndex.from_frame(pairs[["paradigm", "pair_id"]])
    total = np.zeros(len(pairs))
    for path in paths:
        scores, _ = read_scores(path)
        margin = (scores["good"] - scores["bad"]).groupby([scores["paradigm"], scores["pair_id"]]).mean()
        total += (margin / margin.std()).reindex(keys).to_numpy(dtype=np.float64)
    return total / len(paths)


def stacked(parts: Sequence[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    """Return `columns` of the rows of all parts; no rows without parts."""
    return pd.concat(parts, ignore_index=True)[list(columns)] if parts else pd.DataFrame(columns=list(columns))


def learned_and_lost(judged: Judgements) -> pd.DataFrame:
    """Return the shares of pairs that most runs judge differently at the largest size than at the smallest.

    One row per group and paradigm: phenomenon, pairs, learned and lost (shares whose mean outcome crosses .5 upwards
    and downwards). Groups of one size are left out.
    """
    parts = []
    for group, runs in judged.runs.groupby("group", sort=False):
        sizes = sizes_of(runs)
        if len(sizes) < 2:
            continue
        first, last = (pair_accuracies(judged, str(group), size) for size in (sizes[0], sizes[-1]))
        table = judged.pairs.assign(learned=(first < 0.5) & (last > 0.5), lost=(first > 0.5) & (last < 0.5))
        by = table.groupby(["phenomenon", "paradigm"], as_index=False, sort=True)
        shares = by.agg(pairs=("pair_id", "size"), learned=("learned", "mean"), lost=("lost", "mean"))
        parts.append(shares.assign(group=group, smallest=sizes[0], largest=sizes[-1]))
    return stacked(parts, ["group", "phenomenon", "paradigm", "pairs", "smallest", "largest", "learned", "lost"])


def flipping_pairs(judged: Judgements, each: int = 1) -> pd.DataFrame:
    """Return pairs whose judgement flips most often from size to size, and between runs of one size.

    One row per pair and group, the `each` of every paradigm that flip most: group, phenomenon, paradigm, pair_id, flips
    (how often the majority of a size's runs changes sides; a size that is split evenly is passed over), split (mean
    over sizes of 4 s (1 - s), s the share of a size's runs that are right), and shares, a dictionary size -> s. Groups
    of one run are left out.
    """
    parts = []
    for group, runs in judged.runs.groupby("group", sort=False):
        if len(runs) < 2:
            continue
        sizes = sizes_of(runs)
        shares = np.stack([pair_accuracies(judged, str(group), size) for size in sizes])  # (S, P)
        flips, side = np.zeros(shares.shape[1], dtype=np.int64), np.sign(shares[0] - 0.5)
        for share in shares[1:]:
            now = np.sign(share - 0.5)
            flips += (now * side) < 0
            side = np.where(now == 0, side, now)
        of_pair = pd.Series([dict(zip(sizes, column, strict=True)) for column in shares.T.tolist()])
        split = (4 * shares * (1 - shares)).mean(axis=0)
        table = judged.pairs.assign(group=group, flips=flips, split=split, shares=of_pair)
        most = table.sort_values(["flips", "split"], ascending=False, kind="stable").groupby("paradigm").head(each)
        parts.append(most.sort_values(["phenomenon", "paradigm"], kind="stable"))
    return stacked(parts, ["group", "phenomenon", "paradigm", "pair_id", "flips", "split", "shares"])


def seed_disagreement(judged: Judgements) -> pd.DataFrame:
    """Return how often two runs that differ only in their seed judge a pair differently.

    One row per group, size and phenomenon, overall among them (level, name): runs, disagreement: the mean over
    paradigms, pairs and pairs of runs of |difference of outcomes|. Sizes with one run are left out.
    """
    parts = []
    for (group, size), runs in judged.runs.groupby(["group", "size"], sort=False):
        n = len(runs)
        if n < 2:
            continue
        of = judged.runs.index.isin(runs.index)
        ordered = np.sort(judged.outcome[of].astype(np.float64), axis=0)
        # The sum of |a - b| over pairs of n sorted values weighs the i-th by 2 i - n + 1.
        gaps = (2 * np.arange(n) - n + 1) @ ordered / (n * (n - 1) / 2)
        table = judged.pairs.assign(disagreement=gaps)
        by_paradigm = table.groupby(["phenomenon", "paradigm"], as_index=False)["disagreement"].mean()
        by_phenomenon = by_paradigm.groupby("phenomenon", as_index=False)["disagreement"].mean()
        by_phenomenon = by_phenomenon.rename(columns={"phenomenon": "name"}).assign(level="phenomenon")
        whole = {"name": "overall", "level": "overall", "disagreement": by_paradigm["disagreement"].mean()}
        both = pd.concat([pd.DataFrame([whole]), by_phenomenon])
        parts.append(both.assign(group=group, size=size, words=float(runs["sample_words"].mean()), runs=n))
    return stacked(parts, ["group", "size", "words", "runs", "level", "name", "disagreement"])


def token_differences(folder: Path, items: pd.DataFrame) -> pd.DataFrame:
    """Return where in a pair's sentences the difference of their log-probabilities arises, from tokens.parquet.

    `items`: paradigm, pair_id, good, bad. One row per pair that has its tokens: paradigm, pair_id, before, differing,
    after: ln p(good) - ln p(bad) (nats) over the tokens that begin before what differs, in it, and after it (the end
    symbol among them); a causal model has 0 in `before`.
    """
    tokens, _ = read_tokens(folder)
    key, sentences = ["paradigm", "pair_id"], _sentences(items)
    pairs = list(tokens[key].drop_duplicates().itertuples(index=False, name=None))
    spans = {pair: zip(("good", "bad"), differing_spans(*sentences[pair]), strict=True) for pair in pairs}
    limits = [(*pair, side, *span) for pair, sides in spans.items() for side, span in sides]
    limits_table = pd.DataFrame(limits, columns=[*key, "side", "first", "last"])
    rows = tokens.merge(limits_table, on=[*key, "side"], how="left")
    signed = rows["logprob"].where(rows["side"] == "good", -rows["logprob"])
    inside = {"before": rows["start"] < rows["first"], "after": rows["start"] >= rows["last"]}
    inside["differing"] = ~(inside["before"] | inside["after"])
    sums = rows[key].assign(**{part: signed.where(inside[part], 0.0) for part in PARTS})
    return sums.groupby(key, sort=False, as_index=False)[list(PARTS)].sum()


def _sentences(items: pd.DataFrame) -> dict[Any, tuple[str, str]]:
    """Return (paradigm, pair_id) -> good and bad."""
    columns = (items[name].tolist() for name in ("paradigm", "pair_id", "good", "bad"))
    return {(paradigm, pair): (good, bad) for paradigm, pair, good, bad in zip(*columns, strict=True)}


def differing_spans(good: str, bad: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return where two sentences differ: (start, end) characters in each, of whole words and the space before them."""
    shortest = min(len(good), len(bad))
    first = next((i for i in range(shortest) if good[i] != bad[i]), shortest)
    common = next((i for i in range(shortest - first) if good[-1 - i] != bad[-1 - i]), shortest - first)
    while _within_word(good, first) or _within_word(bad, first):
        first -= 1
    while _within_word(good, len(good) - common) or _within_word(bad, len(bad) - common):
        common -= 1
    first -= first > 0 and good[first - 1] == " "
    return (first, len(good) - common), (first, len(bad) - common)


def _within_word(sentence: str, at: int) -> bool:
    """True if a word goes on at a place; a text without spaces has no words."""
    inside = 0 < at < len(sentence) and " " in sentence
    return inside and sentence[at - 1] not in _BETWEEN and sentence[at] not in _BETWEEN


def error_sample(folder: Path, items: pd.DataFrame, wrong: pd.DataFrame, each: int, seed: int) -> list[dict[str, Any]]:
    """Return up to `each` wrongly judged pairs of every paradigm with their tokens, for reading.

    folder: scores of one run; items: of eval.scores.files.ITEMS; wrong: paradigm and pair_id, of which those whose
    tokens were kept are drawn from. Each has these, phenomenon, and tokens by side: text, logprob (nats), unk, differs.
    """
    tokens, _ = read_tokens(folder)
    key = ["paradigm", "pair_id"]
    with_tokens = wrong[key].merge(tokens[key].drop_duplicates(), on=key)
    rng = np.random.default_rng(seed)
    drawn = with_tokens.iloc[rng.permutation(len(with_tokens))].groupby("paradigm", sort=True).head(each)
    of_pair = dict(list(tokens.merge(drawn, on=key).groupby(key)))
    sentences = _sentences(items)
    entries = []
    chosen = items[[*key, "phenomenon"]].merge(drawn, on=key).sort_values(["phenomenon", *key])
    for paradigm, pair, phenomenon in zip(*(chosen[name].tolist() for name in (*key, "phenomenon")), strict=True):
        spans = differing_spans(*sentences[paradigm, pair])
        entry: dict[str, Any] = {"paradigm": paradigm, "pair_id": pair, "phenomenon": phenomenon}
        for side, sentence, (first, last) in zip(("good", "bad"), sentences[paradigm, pair], spans, strict=True):
            part = of_pair[paradigm, pair]
            of_side = part[part["side"] == side].sort_values("position")
            entry[side] = [
                {"text": sentence[start:end] or "<eos>", "logprob": value, "unk": unk, "differs": first <= start < last}
                for start, end, value, unk in of_side[["start", "end", "logprob", "unk"]].itertuples(index=False)
            ]
        entries.append(entry)
    return entries
