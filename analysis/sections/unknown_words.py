"""Effects of the vocabulary on judgements: ties, `<unk>`, and paradigms without pairs, by size of the text.

An unequal number of `<unk>` decides a pair by what a model thinks of rare words, not of grammar; where the vocabulary
grows with the sample that alone makes a slope. The curves on pairs without `<unk>` are in analysis/curves/fit.py.
"""

from __future__ import annotations

from functools import partial

import altair as alt
import numpy as np
import pandas as pd

from analysis.curves.fit import ALL_PAIRS, UNK_FREE, Curves
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.curves import SLOPE_TITLE
from analysis.exhibits.figures.style import GREY, MARGIN, ROWS, SIGNED_LABEL, Chart, group_looks, text_axis
from analysis.exhibits.sentences.curves import unknown_words
from analysis.exhibits.tables.text import as_it_is, count, per_cent_text, slope_text, title
from analysis.sections.section import Report, Section, contributes
from analysis.study.collect import Study
from analysis.study.judgements import Judgements
from eval.scores.files import read_unavailable

SHARES = {"unk": "pairs with <unk>", "unequal_unk": "pairs with unequal <unk>", "ties": "tied pairs"}


def vocabulary_effects(judged: Judgements) -> pd.DataFrame:
    """Return, by group and size, smallest first: group, size, words, runs, and mean shares of pairs:

    ties (the two scores are equal), unk (`<unk>` in either sentence), unequal_unk (more in one than in the other; NaN
    where it is not known) and decided_unk (its share of the pairs with `<unk>`; NaN where none has any).
    """
    shares = judged.runs[["group", "size", "sample_words"]].assign(
        ties=judged.share(judged.tie),
        unk=judged.share(judged.unk),
        unequal_unk=judged.unequal.reindex(judged.runs.index).astype(float),
    )
    means = {"sample_words": "mean", "ties": "mean", "unk": "mean", "unequal_unk": "mean"}
    grouped = shares.groupby(["group", "size"], sort=False)
    table = grouped.agg(means).assign(runs=grouped.size()).reset_index().rename(columns={"sample_words": "words"})
    table["decided_unk"] = table["unequal_unk"] / table["unk"].where(table["unk"] > 0, np.nan)
    order = ["group", "size", "words", "runs", "ties", "unk", "unequal_unk", "decided_unk"]
    place = table["group"].map({group: number for number, group in enumerate(judged.runs["group"].unique())})
    return table.iloc[np.lexsort([table["words"], place])].reset_index(drop=True)[order]


def slopes_without_unk(curves: Curves) -> pd.DataFrame:
    """Return slopes on all pairs beside those on pairs without `<unk>`: of phenomena and overall; maybe empty.

    group, level, name, slope, low, high, n_pairs, slope_free, low_free, high_free, n_pairs_free.
    """
    shown = curves.slopes[(curves.slopes["level"] != "paradigm") & curves.slopes["slope"].notna()]
    keys, columns = ["group", "level", "name"], ["slope", "low", "high", "n_pairs"]
    everything, free = (shown[shown["pairs"] == pairs][keys + columns] for pairs in (ALL_PAIRS, UNK_FREE))
    if free.empty:
        return everything.merge(free, on=keys, suffixes=("", "_free"))
    return everything.merge(free, on=keys, how="left", suffixes=("", "_free"))


def vocabulary_exhibits(judged: Judgements, curves: Curves) -> list[Exhibit]:
    """Return ties and unknown words by size and, where only some pairs hold `<unk>`, slopes without them."""
    effects = vocabulary_effects(judged)
    slopes = slopes_without_unk(curves)
    return [_shares(judged, effects), *([_slopes(slopes)] if len(slopes) else [])]


def _shares(judged: Judgements, effects: pd.DataFrame) -> Exhibit:
    unknown = bool((effects["unk"] > 0).any())
    known = [name for name in SHARES if effects[name].notna().any() and (unknown or name == "ties")]
    table = effects[["group", "size", "runs", *known]].rename(columns={"group": "curve", **SHARES})
    about = ""
    if "unequal_unk" in known:
        about = (
            " Where one sentence of a pair holds more <unk> than the other, what decides is how likely unknown words "
            "are, not grammar; where both sentences become the same string, the scores tie. Where the vocabulary is "
            "fitted on the sample, both shares fall as the text grows, which alone makes a slope."
        )
    drawn = unknown and effects.groupby("group")["words"].nunique().max() > 1
    return Exhibit(
        "vocabulary",
        "Unknown words and ties",
        f"Shares of pairs, means over the runs of a size. {unknown_words(judged)}{about}",
        table,
        cells={
            "curve": as_it_is,
            "size": as_it_is,
            "runs": count,
            **dict.fromkeys(SHARES.values(), partial(per_cent_text, digits=2)),
        },
        charts={name: partial(_share_panel, effects, name, judged.unit) for name in known} if drawn else {},
    )


def _share_panel(effects: pd.DataFrame, name: str, unit: str, width: int | str) -> Chart:
    return share_chart(effects.assign(share=effects[name]), SHARES[name], unit=unit, width=width)


def share_chart(rows: pd.DataFrame, what: str, *, unit: str, width: int | str, height: int = 200) -> Chart:
    """Return a share of pairs (column share; `what` it is of) against training text in `unit`s, a line per group."""
    rows = rows[["group", "size", "words", "runs", "share"]]
    sizes = sorted(rows["words"].unique())
    colour, shape = group_looks(list(rows["group"].unique()))
    x = alt.X(
        "words:Q",
        scale=alt.Scale(type="log", base=2, nice=False, domain=[sizes[0] / 1.12, sizes[-1] * 1.12]),
        axis=text_axis(sizes, unit),
    )
    axis = alt.Axis(title=f"{what[:1].upper()}{what[1:]}", format="~%", tickCount=5)
    y = alt.Y("share:Q", scale=alt.Scale(zero=True), axis=axis)
    tooltip = [alt.Tooltip("group:N"), alt.Tooltip("size:N"), alt.Tooltip("share:Q", format=".2%"), "runs:Q"]
    base = alt.Chart(rows)
    layers = [
        base.mark_line(strokeWidth=2).encode(x, y, colour),
        base.mark_point(filled=True, size=50, opacity=1).encode(x, y, colour, shape, tooltip=tooltip),
    ]
    return alt.layer(*layers).properties(width=width, height=height)


def _slopes(rows: pd.DataFrame) -> Exhibit:
    left = rows["n_pairs_free"].map(lambda number: "" if np.isnan(number) else f"{number:,.0f}")
    table = pd.DataFrame(
        {"phenomenon": rows["name"], "curve": rows["group"], "slope": rows["slope"], "low": rows["low"],
         "high": rows["high"], "without <unk>": rows["slope_free"], "from": rows["low_free"], "to": rows["high_free"],
         "pairs left": left + " of " + rows["n_pairs"].map("{:,.0f}".format)}
    )  # fmt: skip
    return Exhibit(
        "without-unk",
        "Slopes without unknown words",
        "Accuracy gained per doubling of the text, with intervals: on all pairs, and on those that hold no <unk> in "
        "any of the runs compared. In the figure, filled marks are all pairs, hollow ones pairs without <unk>.",
        table,
        cells={"curve": as_it_is, "pairs left": as_it_is,
               **dict.fromkeys(("slope", "low", "high", "without <unk>", "from", "to"), slope_text)},
        charts={"slopes": lambda width: slopes_chart(rows, width=width)},
        strong=tuple(np.flatnonzero(rows["level"] == "overall").tolist()),
        folded=True,
    )  # fmt: skip


def slopes_chart(rows: pd.DataFrame, *, width: int | str) -> Chart:
    """Return two slopes a phenomenon and group, tied by a line; `rows` as of `slopes_without_unk`."""
    shown = rows[["group", "name", "slope", "slope_free"]].assign(name=rows["name"].map(title), zero=0.0)
    order = list(shown.groupby("name")["slope"].mean().sort_values(ascending=False).index)
    groups = list(shown["group"].unique())
    colour, shape = group_looks(groups)
    y = alt.Y(
        "name:N",
        sort=order,
        axis=ROWS,
    )
    offset = alt.YOffset("group:N", sort=groups)
    axis = alt.Axis(title=SLOPE_TITLE, labelExpr=SIGNED_LABEL, tickCount=6)
    tooltip = [alt.Tooltip("name:N", title="phenomenon"), alt.Tooltip("group:N"),
               alt.Tooltip("slope:Q", format="+.4f", title="all pairs"),
               alt.Tooltip("slope_free:Q", format="+.4f", title="without <unk>")]  # fmt: skip
    base = alt.Chart(shown)
    marks = {filled: base.mark_point(filled=filled, size=55, opacity=1, strokeWidth=1.6) for filled in (True, False)}
    layers = [
        base.mark_rule(color=GREY).encode(x=alt.X("zero:Q", axis=axis, scale=MARGIN)),
        base.mark_rule(strokeWidth=1.6).encode(alt.X("slope:Q"), alt.X2("slope_free:Q"), y, offset, colour),
        marks[True].encode(alt.X("slope:Q"), y, offset, colour, shape, tooltip=tooltip),
        marks[False].encode(alt.X("slope_free:Q"), y, offset, colour, shape, tooltip=tooltip),
    ]
    return alt.layer(*layers).properties(width=width, height=len(order) * (10 + 12 * len(groups)))


@contributes(30)
def words_unknown(section: Section, report: Report) -> list[Exhibit]:
    return vocabulary_exhibits(section.judged, section.curves)


def unavailable_exhibits(study: Study, judged: Judgements) -> list[Exhibit]:
    """List the paradigms of generated pairs for which a vocabulary leaves none: how many runs lack them, and why."""
    missing: dict[str, list[str]] = {}
    for run in judged.runs.index:
        if run in study.folders:
            for paradigm, reason in read_unavailable(study.folders[run].scores(judged.label)).items():
                missing.setdefault(paradigm, []).append(reason)
    if not missing:
        return []
    table = pd.DataFrame(
        [(paradigm, len(reasons), reasons[0]) for paradigm, reasons in sorted(missing.items())],
        columns=["paradigm", "runs", "reason"],
    )
    about = (
        f"Of {judged.label}: fewer than 200 different pairs of these paradigms can be made of the words that samples "
        f"hold often enough, so none is scored, in so many of the {len(judged.runs)} runs."
    )
    return [Exhibit("unavailable", "Paradigms without pairs", about, table, cells={"runs": count, "reason": as_it_is})]


@contributes(90)
def unavailable(section: Section, report: Report) -> list[Exhibit]:
    return unavailable_exhibits(report.study, section.judged) if report.from_files else []
