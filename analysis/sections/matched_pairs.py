"""Frozen beside generated pairs, and pairs of any words beside pairs of known words: figures and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves.fit import Curves, fit_curves
from analysis.curves.matched_pairs import (
    GENERATED,
    MIN_PAIRS,
    Matched,
    companions,
    is_restricted,
    match,
    slopes_of_both,
    vocabulary_share,
)
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.curves import curves_together
from analysis.exhibits.figures.style import OF_PAIRS, Chart
from analysis.exhibits.sentences.curves import plural
from analysis.exhibits.tables.text import as_it_is, count, interval_text, per_cent_text, slope_text, table_digits
from analysis.sections.section import Report, Section, contributes
from analysis.study.collect import Study
from analysis.study.judgements import Judgements
from pairscale.sizes import format_size, readable_size


@contributes(40)
def matched_pairs(section: Section, report: Report) -> list[Exhibit]:
    if not report.from_files:
        return []
    judged = {label: of.judged for label, of in report.sections.items()}
    return matched_exhibits(report.study, judged, section.label, report.config.analysis)


def matched_exhibits(study: Study, judged: Mapping[str, Judgements], label: str, config: CurvesConfig) -> list[Exhibit]:
    """Compare the generated pairs of `label` with others that the same runs judged: a figure and tables each."""
    both = [(judged[first], judged[second]) for first, second in companions([*judged]) if second == label]
    comparisons = [match(study, first, second, config.seed) for first, second in both]
    return [exhibit for matched in comparisons if matched is not None for exhibit in _exhibits(matched, config)]


def _exhibits(matched: Matched, config: CurvesConfig) -> list[Exhibit]:
    first, second = matched.first.label, matched.second.label
    of_vocabulary = is_restricted(second) and first.partition("+")[0] == GENERATED
    heading = "Known words and any words" if of_vocabulary else f"Frozen and generated pairs: {_short(matched)}"
    name = f"matched-{first.replace('+', '-')}"
    compared = matched.paradigms[matched.paradigms["matched"] > 0]
    left_out = matched.paradigms[matched.paradigms["matched"] == 0]["paradigm"].tolist()
    about = (
        f"{first} beside {second}, judged by the same runs: {plural(len(compared), 'paradigm')} that both have, of "
        f"each as many pairs of each length in words ({compared['matched'].sum():,} pairs of each set)"
    )
    if left_out:
        about += f"; fewer than {MIN_PAIRS} such pairs, so left out: {', '.join(left_out)}"
    curves = _labelled(matched, config)
    units = curves.slopes.loc[curves.slopes["level"] != "paradigm", ["level", "name"]].drop_duplicates()
    ordered = units.sort_values("level", key=lambda level: level != "overall", kind="stable")

    def draw(unit: str, width: int | str) -> Chart:
        return curves_together(curves, unit, unit=matched.first.unit, width=width, legend=width != "container")

    figure = Exhibit(
        name,
        heading,
        f"{about}. Lines: means over runs; bands: {config.confidence:.0%} intervals over runs; small marks: runs.",
        charts={str(i): partial(draw, str(unit)) for i, unit in enumerate(ordered["name"])},
        columns=4,
        legend=[str(group) for group in curves.slopes["group"].unique()],
    )
    slopes = slopes_of_both(matched, config)
    interval = f"{config.confidence:.0%} interval"
    exhibits = [figure, _slopes(name, first, second, slopes, interval)]
    shares = vocabulary_share(matched, config) if of_vocabulary else pd.DataFrame()
    return [*exhibits, _share(name, shares, interval)] if len(shares) else exhibits


def _short(matched: Matched) -> str:
    return "known words" if is_restricted(matched.second.label) else "any words"


def _labelled(matched: Matched, config: CurvesConfig) -> Curves:
    """Return curves of both sets, each group under its own name and that of the set."""
    parts = []
    for judged in (matched.first, matched.second):
        runs = judged.runs.assign(group=judged.runs["group"].astype(str) + OF_PAIRS + judged.label)
        parts.append(fit_curves(replace(judged, runs=runs, unk=np.zeros_like(judged.unk)), config))
    slopes, accuracies, points = (
        pd.concat([getattr(part, table) for part in parts], ignore_index=True)
        for table in ("slopes", "accuracies", "points")
    )
    return Curves(slopes, accuracies, points)


def _slopes(name: str, first: str, second: str, rows: pd.DataFrame, interval: str) -> Exhibit:
    rows = rows[rows["level"] != "paradigm"].reset_index(drop=True)
    digits = table_digits(rows["low"], rows["high"])
    limits = partial(interval_text, digits=digits)
    table = pd.DataFrame(
        {"phenomenon": rows["name"], "curve": rows["group"], "pairs": rows["n_pairs"],
         f"accuracy, {first}": rows["accuracy_first"], f"accuracy, {second}": rows["accuracy_second"],
         f"slope, {first}": rows["slope_first"], f"slope, {second}": rows["slope_second"],
         "difference": rows["difference"], interval: list(map(limits, rows["low"], rows["high"])),
         "new pairs too": list(map(limits, rows["low_new_pairs"], rows["high_new_pairs"]))}
    )  # fmt: skip
    signed = (f"slope, {first}", f"slope, {second}", "difference")
    return Exhibit(
        f"{name}-slopes",
        "Their slopes",
        "Accuracy is the mean over all runs, a slope accuracy per doubling of the text; difference: the second slope "
        "minus the first, its interval paired by run, and with both sets of pairs drawn anew.",
        table,
        cells={"curve": as_it_is, "pairs": count, interval: as_it_is, "new pairs too": as_it_is,
               **dict.fromkeys(signed, partial(slope_text, digits=digits))},
        strong=tuple(np.flatnonzero(rows["level"] == "overall").tolist()),
    )  # fmt: skip


def _share(name: str, rows: pd.DataFrame, interval: str) -> Exhibit:
    limits = [
        f"[{low:.0%}, {high:.0%}]" if bounded and low == low else "–"
        for low, high, bounded in zip(rows["low"], rows["high"], rows["bounded"], strict=True)
    ]
    table = pd.DataFrame(
        {"phenomenon": rows["name"], "curve": rows["group"],
         "sizes": [f"{readable_size(format_size(round(a)))} to {readable_size(format_size(round(b)))}"
                   for a, b in zip(rows["from_words"], rows["to_words"], strict=True)],
         "slope, any words": rows["slope_any"], "slope, known words": rows["slope_known"],
         "share of vocabulary": rows["share"].where(rows["bounded"]), interval: limits}
    )  # fmt: skip
    signed = ("slope, any words", "slope, known words")
    return Exhibit(
        f"{name}-share",
        "How much of the early slope is vocabulary",
        "Over the smaller half of the sizes: what share of the slope on pairs of any words is gone on pairs of words "
        "that every sample holds (one minus the ratio of the slopes; below 0 where known words give the steeper one). "
        "Interval: Fieller's theorem, paired by run; where the slope on any words cannot be told from none there is no "
        "share of it.",
        table,
        cells={"curve": as_it_is, "sizes": as_it_is, interval: as_it_is, **dict.fromkeys(signed, slope_text),
               "share of vocabulary": partial(per_cent_text, digits=0)},
        strong=tuple(np.flatnonzero(rows["level"] == "overall").tolist()),
    )  # fmt: skip
