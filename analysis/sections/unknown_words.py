"""Effects of the vocabulary on judgements: ties, `<unk>`, and paradigms without pairs, by size of the text.

An unequal number of `<unk>` decides a pair by how likely rare words are, not by grammar; where the vocabulary grows
with the sample, that alone makes a slope. The curves on pairs without `<unk>` are in analysis/curves/fit.py.
"""

from functools import partial

import altair as alt
import numpy as np
import pandas as pd

from analysis.curves.fit import ALL_PAIRS, UNK_FREE, Curves
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.curves import MARGIN, SLOPE
from analysis.exhibits.figures.dots import Dots, reference
from analysis.exhibits.figures.style import Chart, Frame, looks, signed_axis, size_axis
from analysis.exhibits.sentences.curves import plural, unknown_words
from analysis.exhibits.tables.text import direction, per_cent_text, slope_text, title
from analysis.sections.section import Report, Section, contributes
from analysis.study.collect import Study
from analysis.study.judgements import Judgements
from eval.scores.files import read_unavailable
from eval.scores.names import benchmark_name

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


def vocabulary_exhibits(judged: Judgements, curves: Curves, confidence: float) -> list[Exhibit]:
    """Return ties and unknown words by size and, where only some pairs hold `<unk>`, slopes without them.

    Nothing of others' numbers, of which these are not known.
    """
    if judged.origin:
        return []
    effects = vocabulary_effects(judged)
    slopes = slopes_without_unk(curves)
    return [_shares(judged, effects), *([_slopes(slopes, confidence)] if len(slopes) else [])]


def _shares(judged: Judgements, effects: pd.DataFrame) -> Exhibit:
    unknown = bool((effects["unk"] > 0).any())
    known = [name for name in SHARES if effects[name].notna().any() and (unknown or name == "ties")]
    definitions = {}
    if "unequal_unk" in known:
        definitions["Unequal <unk>"] = (
            "One sentence of a pair holds more <unk> than the other, so that the likelihood of unknown words decides, "
            "not grammar; where both sentences become the same string, the scores tie. With a vocabulary fitted on the "
            "sample, both shares fall as the text grows, which alone makes a slope."
        )
    drawn = unknown and effects.groupby("group")["words"].nunique().max() > 1
    table = effects[["group", "size", "runs", *known]].rename(columns={"group": "curve", **SHARES})
    cells = dict.fromkeys(SHARES.values(), per_cent_text)
    charts = {name: partial(share_chart, effects, name, judged.unit) for name in known} if drawn else {}
    return Exhibit(
        "vocabulary",
        "Unknown words and ties",
        "Shares of pairs, means over the runs of a size.",
        table,
        cells=cells,
        charts=charts,
        takeaways=[("", unknown_words(judged))],
        definitions=definitions,
    )


def share_chart(effects: pd.DataFrame, name: str, unit: str, *, frame: Frame) -> Chart:
    """Draw a share of pairs (a column of SHARES) against training text in `unit`s, a line per group."""
    rows = effects[["group", "size", "words", "runs"]].assign(share=effects[name])
    colour, shape = looks(list(rows["group"].unique()))
    x = size_axis("words", rows["words"], unit)
    axis = alt.Axis(title=f"{SHARES[name][:1].upper()}{SHARES[name][1:]}", format="~%", tickCount=5)
    most = alt.Undefined if rows["share"].max() else 0.01  # an axis from 0 to 0 would be in the middle
    y = alt.Y("share:Q", scale=alt.Scale(zero=True, domainMin=0, domainMax=most), axis=axis)
    tooltip = [alt.Tooltip("group:N"), alt.Tooltip("size:N"), alt.Tooltip("share:Q", format=".2%"), "runs:Q"]
    base = alt.Chart(rows)
    layers = [
        base.mark_line(strokeWidth=2).encode(x, y, colour),
        base.mark_point(filled=True, size=50, opacity=1).encode(x, y, colour, shape, tooltip=tooltip),
    ]
    return alt.layer(*layers, width=frame.span, height=frame.height_of_curves(200))


def _slopes(rows: pd.DataFrame, confidence: float) -> Exhibit:
    left = rows["n_pairs_free"].map(lambda number: "" if np.isnan(number) else f"{number:,.0f}")
    table = pd.DataFrame(
        {"phenomenon": rows["name"], "curve": rows["group"], "slope": rows["slope"], "low": rows["low"],
         "high": rows["high"], "without <unk>": rows["slope_free"], "from": rows["low_free"], "to": rows["high_free"],
         "pairs left": left + " of " + rows["n_pairs"].map("{:,.0f}".format)}
    )  # fmt: skip
    interval = f"{confidence:.0%} interval"
    known = rows[rows["low"].notna() & rows["low_free"].notna()]
    same = [direction(a, b) == direction(c, d) for a, b, c, d in
            known[["low", "high", "low_free", "high_free"]].to_numpy()]  # fmt: skip
    takeaway = (
        f"Without unknown words, {sum(same)} of {plural(len(same), 'slope')} lead to the same conclusion (rises, falls "
        "or no change shown) as on all pairs."
    )
    return Exhibit(
        "without-unk",
        "Slopes without unknown words",
        "Accuracy gained per doubling of the text: on all pairs (filled marks), and on those without <unk> in any of "
        "the runs compared (hollow marks).",
        table,
        cells=dict.fromkeys(("slope", "without <unk>"), slope_text),
        intervals={interval: ("slope", "low", "high"), f"{interval}, without": ("without <unk>", "from", "to")},
        charts={"slopes": partial(slopes_chart, rows)},
        takeaways=[("", takeaway)] if same else [],
    )


def slopes_chart(rows: pd.DataFrame, *, frame: Frame) -> Chart:
    """Draw two slopes for each phenomenon and group, joined by a line; `rows`: of `slopes_without_unk`."""
    shown = rows[["group", "name", "slope", "slope_free"]].assign(name=rows["name"].map(title))
    dots = Dots(shown, list(shown.groupby("name")["slope"].mean().sort_values(ascending=False).index))
    tooltip = [alt.Tooltip("name:N", title="phenomenon"), alt.Tooltip("group:N")]
    tooltip += [alt.Tooltip("slope:Q", format="+.4f", title="all pairs")]
    tooltip += [alt.Tooltip("slope_free:Q", format="+.4f", title="without <unk>")]
    points = dots.points(alt.X("slope:Q", axis=signed_axis(SLOPE, frame), scale=MARGIN), tooltip)
    hollow = dots.points(alt.X("slope_free:Q"), tooltip, filled=False)
    return dots.chart(reference(0), dots.lines("slope", "slope_free"), points, hollow, frame=frame)


@contributes(30)
def words_unknown(section: Section, report: Report) -> list[Exhibit]:
    return vocabulary_exhibits(section.judged, section.curves, report.confidence)


@contributes(90, from_files=True)
def unavailable(section: Section, report: Report) -> list[Exhibit]:
    return unavailable_exhibits(report.study, section.judged)


def unavailable_exhibits(study: Study, judged: Judgements) -> list[Exhibit]:
    """List the paradigms of generated pairs for which a vocabulary leaves none: in how many runs, and why."""
    reasons: dict[str, list[str]] = {}
    for run in judged.runs.index:
        if run in study.folders:
            for paradigm, reason in read_unavailable(study.folders[run].scores(judged.label)).items():
                reasons.setdefault(paradigm, []).append(reason)
    if not reasons:
        return []
    rows = [(paradigm, len(texts), texts[0]) for paradigm, texts in sorted(reasons.items())]
    table = pd.DataFrame(rows, columns=["paradigm", "runs", "reason"])
    about = (
        f"Paradigms of {benchmark_name(judged.label)} for which the words that samples hold often enough make fewer "
        f"than 200 different pairs, so that none is scored: how many of the {len(judged.runs)} runs lack them."
    )
    return [Exhibit("unavailable", "Paradigms without pairs", about, table)]
