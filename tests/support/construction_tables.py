"""The tables on the patterns of constructions in docs/guides/ablation.md, from the committed results."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from tests.support import ROOT, wrapped
from tests.support.construction_labels import read_corrections, read_labels

RESULTS = ROOT / "analysis" / "results"
SHARES = ("precision", "found"), ("recall", "present")


def _quality() -> pd.DataFrame:
    return pd.read_csv(RESULTS / "construction_quality.csv")


def _decimal(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


def share_text(row: pd.Series, share: str, of: str) -> str:
    """Return a share as a fraction with its interval, such as "9/10 (.60 to .98)"; a dash if there is none."""
    if not row[of]:
        return "–"
    return f"{row['both']}/{row[of]} ({_decimal(row[f'{share}_low'])} to {_decimal(row[f'{share}_high'])})"


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    headings = list(headings)
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def quality_table() -> str:
    """Return precision and recall of each construction on all labelled sentences, and its frequency."""
    table = _quality().query("labels == 'corrected' and set == 'all' and patterns == 'now'")
    counts = pd.read_csv(RESULTS / "construction_counts.csv").set_index("construction")
    rows = []
    for name, part in table.groupby("construction"):
        by_trees = part.set_index("trees")
        cells = [f"`{name}`" + (" *" if part["mended"].any() else "")]
        cells += [share_text(by_trees.loc[trees], *share) for trees in ("gold", "parsed") for share in SHARES]
        of = counts.loc[str(name)]
        judged = "" if pd.isna(of["judged"]) else f"{of['right']:.0f}/{of['judged']:.0f}"
        rows.append([*cells, f"{of['per_million_words']:,.0f}", judged])
    headings = ["", *(f"{share}, {trees}" for trees in ("gold", "parsed") for share, _ in SHARES)]
    return _table([*headings, "per million words", "right matches"], rows)


def sentences_text() -> str:
    """Return what was labelled, and the figures of the random sentences over all constructions."""
    labels = read_labels()
    number = {name: sum(one.set == name for one in labels) for name in ("random", "fresh")}
    rest = len(labels) - sum(number.values())
    train = sum(one.split == "train" for one in labels)
    random = {one.sentence for one in labels if one.set == "random"}
    corrections = read_corrections()
    seen = sum(one.sentence in random for one in corrections) or "none"
    doubtful = sum(len(one.doubtful) for one in labels)
    parts = [
        f"{len(labels)} sentences: {number['random']} random ones of the test split, {number['fresh']} of the "
        f"development split (fresh), and {rest} that have words which often come with a rare construction ({train} of "
        "them of the training split, which are left out where trees are parsed).",
        f"{doubtful} labels are doubtful and count nowhere; {len(corrections)} were corrected after the patterns had "
        f"been run, {seen} of them of random sentences.",
    ]
    for kind in "gold", "parsed":
        both, found, present = _pooled(kind)
        parts.append(
            f"On {kind} trees the patterns, as they were before any was mended, find {both} of the {present} "
            f"constructions of the random sentences, and {both} of the {found} that they find are there."
        )
    return wrapped(" ".join(parts))


def _pooled(kind: str) -> tuple[int, int, int]:
    """Return how many constructions of the random sentences were found rightly, found, and present, before mending."""
    table = _quality().query("set == 'random' and trees == @kind and labels == 'corrected'")
    sums = table[(table["patterns"] == "before") | ~table["mended"]].sum()
    return sums["both"], sums["found"], sums["present"]


def frequency_text() -> str:
    """Return the size of the searched text, and what was judged in it."""
    counts = pd.read_csv(RESULTS / "construction_counts.csv")
    judged, most = counts["judged"].notna(), counts["judged"].max()
    text = (
        f"Frequencies are those of {counts['sentences'].iloc[0]:,} parsed sentences ({counts['words'].iloc[0]:,} "
        "words), each fourth sentence of a share of the English text. "
        f"Of {judged.sum()} constructions {most:.0f} random matching sentences each were judged by the same reader, "
        "who knew the patterns by then. `embedded_question` and `long_distance_wh` were tightened after a look at such "
        "matches, and judged on another draw from the same text, which shares sentences with the first: their shares "
        "of right matches are too good for other text."
    )
    return wrapped(text)


CONSTRUCTION_BLOCKS = {
    "labels of constructions": sentences_text,
    "quality of patterns": quality_table,
    "frequency of constructions": frequency_text,
}
