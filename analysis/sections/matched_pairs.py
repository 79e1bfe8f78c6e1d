"""Frozen beside generated pairs, and pairs of any words beside pairs of known words: figures and tables."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves.fit import Curves, concatenated, fit_curves
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
from analysis.exhibits.exhibit import Cell, Exhibit
from analysis.exhibits.figures.curves import curves_together
from analysis.exhibits.figures.style import OF_PAIRS
from analysis.exhibits.sentences.curves import plural
from analysis.exhibits.tables.text import interval_text, per_cent_text, row_digits, slope_text
from analysis.sections.section import Report, Section, contributes
from analysis.sections.together import curves_exhibit
from analysis.study.collect import Study
from analysis.study.judgements import Judgements
from eval.scores.names import benchmark_name
from pairscale.sizes import format_size, readable_size


@contributes(40, from_files=True)
def matched_pairs(section: Section, report: Report) -> list[Exhibit]:
    judged = {label: of.fitted for label, of in report.sections.items()}
    return matched_exhibits(report.study, judged, section.label, report.config.analysis)


def matched_exhibits(study: Study, judged: Mapping[str, Judgements], label: str, config: CurvesConfig) -> list[Exhibit]:
    """Compare the generated pairs of `label` with others that the same runs judged: a figure and tables each."""
    both = [(judged[first], judged[second]) for first, second in companions([*judged]) if second == label]
    comparisons = [match(study, first, second, config.seed) for first, second in both]
    return [exhibit for matched in comparisons if matched is not None for exhibit in _exhibits(matched, config)]


def _exhibits(matched: Matched, config: CurvesConfig) -> list[Exhibit]:
    first, second = matched.first.label, matched.second.label
    of_vocabulary = is_restricted(second) and first.partition("+")[0] == GENERATED
    kind = "known words" if is_restricted(second) else "any words"
    heading = "Known words and any words" if of_vocabulary else f"Frozen and generated pairs: {kind}"
    name = f"matched-{first.replace('+', '-')}"
    compared = matched.paradigms[matched.paradigms["matched"] > 0]
    left_out = matched.paradigms[matched.paradigms["matched"] == 0]["paradigm"].tolist()
    about = (
        f"{benchmark_name(first)} and {benchmark_name(second)}, judged by the same runs: "
        f"{plural(len(compared), 'paradigm')} that both have, with as many pairs of each length in words "
        f"({compared['matched'].sum():,} pairs of each set)"
    )
    if left_out:
        about += f"; left out for fewer than {MIN_PAIRS} such pairs: {', '.join(left_out)}"
    about += "."
    curves = _labelled(matched, config)
    draw = partial(curves_together, curves, unit=matched.first.unit)
    slopes = slopes_of_both(matched, config)
    interval = f"{config.confidence:.0%} interval"
    exhibits = [curves_exhibit(name, heading, about, curves, draw), _slopes(name, first, second, slopes, interval)]
    shares = vocabulary_share(matched, config) if of_vocabulary else pd.DataFrame()
    return [*exhibits, _share(name, shares, interval)] if len(shares) else exhibits


def _labelled(matched: Matched, config: CurvesConfig) -> Curves:
    """Return curves of both sets, each group under its own name and that of the set."""
    parts = []
    for judged in (matched.first, matched.second):
        runs = judged.runs.assign(group=judged.runs["group"].astype(str) + OF_PAIRS + benchmark_name(judged.label))
        parts.append(fit_curves(replace(judged, runs=runs, unk=np.zeros_like(judged.unk)), config))
    return concatenated(parts)


def _slopes(name: str, first: str, second: str, rows: pd.DataFrame, interval: str) -> Exhibit:
    rows = rows[rows["level"] != "paradigm"]
    digits = row_digits(rows["low"], rows["high"])

    def limits(low: str, high: str) -> list[str]:
        return [interval_text(a, b, digits=n) for a, b, n in zip(rows[low], rows[high], digits, strict=True)]

    table = pd.DataFrame(
        {"phenomenon": rows["name"], "curve": rows["group"], "pairs": rows["n_pairs"],
         f"accuracy, {first}": rows["accuracy_first"], f"accuracy, {second}": rows["accuracy_second"],
         f"slope, {first}": rows["slope_first"], f"slope, {second}": rows["slope_second"],
         "difference": rows["difference"], interval: limits("low", "high"),
         "new pairs too": limits("low_new_pairs", "high_new_pairs")}
    )  # fmt: skip
    heads = {
        f"{measure}, {label}": f"{measure}, {benchmark_name(label)}"
        for measure in ("accuracy", "slope")
        for label in (first, second)
    }
    signed = (f"slope, {first}", f"slope, {second}", "difference")
    texts = {name: [slope_text(v, digits=n) for v, n in zip(table[name], digits, strict=True)] for name in signed}
    return Exhibit(
        f"{name}-slopes",
        "Slopes on both sets",
        "Accuracy, and accuracy gained per doubling of the text, on both sets of pairs.",
        table,
        texts=texts,
        heads=heads,
        definitions={
            "Accuracy": "Mean over all runs.",
            "Difference": "The second slope minus the first.",
            interval.capitalize(): "Paired by run, for new samples and initialisations on these pairs.",
            "New pairs too": "The same with both sets of pairs drawn anew.",
        },
        optional=["new pairs too"],
    )


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
    cells: dict[str, Cell] = dict.fromkeys(signed, slope_text)
    cells["share of vocabulary"] = partial(per_cent_text, digits=0)
    return Exhibit(
        f"{name}-share",
        "Share of vocabulary in the early slope",
        "Over the smaller half of the sizes: the share of the slope on pairs of any words that disappears on pairs of "
        "words that every sample holds.",
        table,
        cells=cells,
        definitions={
            "Share of vocabulary": "One minus the ratio of the slopes; below 0 where known words give the steeper "
            "slope. A dash where the slope on any words is not distinguishable from 0.",
            interval.capitalize(): "By Fieller's theorem, paired by run.",
        },
    )
