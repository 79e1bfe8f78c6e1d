"""Exhibits of curves beyond their slopes: words to reach people, slopes compared, shapes, log-odds, coverage.

Made of the tables of analysis.exhibits.tables.curves; each appears where its table has rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import altair as alt
import numpy as np
import pandas as pd

from analysis.curves.coverage import coverage_for
from analysis.curves.p_values import ALPHA
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.style import GREY, HUES, MARGIN, ROWS, SHAPES, SIGNED_LABEL, Chart
from analysis.exhibits.tables.text import (
    as_it_is,
    count,
    decimal_text,
    p_text,
    per_cent_text,
    signed_text,
    slope_text,
    table_digits,
    title,
)
from analysis.sections.section import Report, Section, contributes

COMPARISONS = "comparisons"


@contributes(-10)
def compared_studies(section: Section, report: Report) -> list[Exhibit]:
    return [exhibit for exhibit in _curves(section, report) if report.several and exhibit.name == COMPARISONS]


@contributes(50)
def curves(section: Section, report: Report) -> list[Exhibit]:
    return [exhibit for exhibit in _curves(section, report) if not (report.several and exhibit.name == COMPARISONS)]


def _curves(section: Section, report: Report) -> list[Exhibit]:
    return curve_exhibits(section.tables, report.confidence, section.respondents.label if section.respondents else "")


@contributes(100)
def context(section: Section, report: Report) -> list[Exhibit]:
    return context_exhibits(section.tables["context"], section.label) if "context" in section.tables else []


@contributes(110)
def coverage(section: Section, report: Report) -> list[Exhibit]:
    """Add the same table for all benchmarks at the end of the page."""
    if section.label != [*report.sections][-1]:
        return []
    parts = [(of.judged.runs, of.curves.slopes) for of in report.sections.values()]
    return [exhibit for exhibit in [coverage_exhibit(parts, report.confidence)] if exhibit is not None]


def curve_exhibits(tables: Mapping[str, pd.DataFrame], confidence: float, people: str = "") -> list[Exhibit]:
    """Return the exhibits of one benchmark's `curve_tables`.

    `confidence`: of the intervals in `tables`; `people`: who they are, if they are not the published ones.
    """
    intervals = f"{confidence:.0%} intervals"
    makers: dict[str, Callable[[pd.DataFrame], Exhibit | None]] = {
        "words-to-people": partial(_people, intervals=intervals, people=people),
        "slope-differences": partial(_differences, intervals=intervals),
        "shapes": _shapes,
        "mixed-model": partial(_logits, intervals=intervals),
    }
    exhibits = [make(tables[name]) for name, make in makers.items() if name in tables and len(tables[name])]
    return [exhibit for exhibit in exhibits if exhibit is not None]


def _named(rows: pd.DataFrame) -> pd.Series:
    return rows["name"].where(rows["level"] != "overall", "overall")


def _strong(rows: pd.DataFrame) -> tuple[int, ...]:
    return tuple(np.flatnonzero(rows["level"] == "overall").tolist())


def _people(rows: pd.DataFrame, intervals: str, people: str) -> Exhibit | None:
    rows = rows[rows["people"].notna() & rows["last_accuracy"].notna()].reset_index(
        drop=True
    )  # a curve of one size has none
    if rows.empty:
        return None
    reached = rows["text"] + rows["note"].map(lambda note: f" ({note})" if note else "")
    table = pd.DataFrame(
        {"phenomenon": _named(rows), "curve": rows["group"], "people": rows["people"],
         "at the largest size": rows["last_accuracy"], "fit": rows["fit"], "words": reached}
    )  # fmt: skip
    return Exhibit(
        "people",
        "Words to reach people",
        "How much text it would take until accuracy is that of people, if the curve went on as it is fitted: nothing "
        f"says that it does. {intervals} by Fieller's theorem (of other shapes than a line by profile likelihood), "
        "with the sampling error of people's accuracy, judgements of one pair going together; unbounded where that of "
        "the slope holds 0. A shape is asked only if it can reach people, and says never only if none of its curves "
        "within the limits does. Limits of another shape than a line take for granted that the curve has this shape, "
        "which AICc chose: they are too narrow for what is not known of the shape itself."
        + (f" People: {people}." if people else ""),
        table,
        cells={"curve": as_it_is, "fit": as_it_is, "words": as_it_is},
        strong=_strong(rows),
    )


def _differences(rows: pd.DataFrame, intervals: str) -> Exhibit | None:
    rows = rows[rows["difference"].notna() & (rows["level"] != "paradigm")].reset_index(drop=True)
    if rows.empty:
        return None
    pair = rows["group"] + " − " + rows["other"]
    number = partial(slope_text, digits=table_digits(rows["low"], rows["high"]))
    table = pd.DataFrame(
        {"phenomenon": _named(rows), "slope of": pair, "over": rows["from_size"] + " to " + rows["to_size"],
         "difference": rows["difference"], "low": rows["low"], "high": rows["high"], "p": rows["p"],
         "p (Holm)": rows["p_holm"], "p (equivalence)": rows["p_equivalent"]}
    )  # fmt: skip
    return Exhibit(
        COMPARISONS,
        "Slopes compared",
        "Difference of slopes (accuracy per doubling) of every two curves, or, where studies are compared, of every "
        f"two of different studies, over the sizes that both have, with {intervals} for these pairs. p (Holm) is "
        "corrected for the number of all comparisons of phenomena, and of the whole, of this benchmark; filled marks "
        f"are below {ALPHA}. p (equivalence), by Holm too: that they differ by no more than {rows['margin'].iloc[0]:g} "
        "per doubling.",
        table,
        cells={"slope of": as_it_is, "over": as_it_is, "difference": number, "low": number, "high": number,
               "p": p_text, "p (Holm)": p_text, "p (equivalence)": p_text},
        charts={"slopes": lambda width: difference_chart(rows.assign(pair=pair), width=width)},
        strong=_strong(rows),
        folded=True,
    )  # fmt: skip


def difference_chart(rows: pd.DataFrame, *, width: int | str) -> Chart:
    """Draw differences of slopes, a row per phenomenon, a mark per pair of curves, filled where p_holm < .05.

    `rows`: analysis.curves.comparisons.compare_slopes with the column `pair`, the name of the two curves.
    """
    shown = rows.assign(name=_named(rows).map(title), sure=rows["p_holm"] < ALPHA, zero=0.0)
    shown = shown[["name", "pair", "difference", "low", "high", "p_holm", "sure", "zero"]]
    pairs, order = list(shown["pair"].unique()), list(dict.fromkeys(shown["name"]))
    legend = alt.Legend(title=None, orient="top", labelLimit=420, columns=1, symbolOpacity=1)
    colour = alt.Color(
        "pair:N",
        scale=alt.Scale(domain=pairs, range=[HUES[i % len(HUES)] for i in range(len(pairs))]),
        legend=legend,
    )
    marks = alt.Scale(domain=pairs, range=[SHAPES[i % len(SHAPES)] for i in range(len(pairs))])
    y = alt.Y(
        "name:N",
        sort=order,
        axis=ROWS,
    )
    offset = alt.YOffset("pair:N", sort=pairs)
    axis = alt.Axis(
        title="Difference of slopes (per doubling)",
        labelExpr=SIGNED_LABEL,
        tickCount=6,
    )
    tooltip = [alt.Tooltip("name:N", title="phenomenon"), alt.Tooltip("pair:N", title="curves"),
               *(alt.Tooltip(f"{field}:Q", format="+.4f") for field in ("difference", "low", "high")),
               alt.Tooltip("p_holm:Q", format=".3f", title="p (Holm)")]  # fmt: skip
    base = alt.Chart(shown)
    shape = alt.Shape("pair:N", scale=marks, legend=legend)
    layers = [
        base.mark_rule(color=GREY).encode(x=alt.X("zero:Q", axis=axis, scale=MARGIN)),
        base.mark_rule(strokeWidth=1.6).encode(alt.X("low:Q"), alt.X2("high:Q"), y, offset, colour),
    ]
    for sure in sorted(shown["sure"].unique()):  # Vega complains of a layer without rows
        marked = alt.Chart(shown[shown["sure"] == sure]).mark_point(
            size=50, strokeWidth=1.5, opacity=1, filled=bool(sure)
        )
        layers.append(marked.encode(alt.X("difference:Q"), y, offset, colour, shape, tooltip=tooltip))
    return alt.layer(*layers).properties(width=width, height=len(order) * (10 + 11 * len(pairs)))


def _shapes(rows: pd.DataFrame) -> Exhibit | None:
    rows = rows[rows["level"] != "paradigm"]
    if rows.empty:
        return None
    keys = ["group", "level", "name"]
    wide = rows.pivot_table(index=keys, columns="shape", values="above", sort=False).reset_index()
    best = rows[rows["preferred"]].set_index(keys)["shape"]
    index = pd.MultiIndex.from_frame(wide[keys])
    shapes = [shape for shape in dict.fromkeys(rows["shape"]) if shape in wide]
    table = pd.DataFrame({"phenomenon": _named(wide), "curve": wide["group"], **{s: wide[s] for s in shapes}})
    table["preferred"] = best.reindex(index).to_numpy()
    return Exhibit(
        "shapes",
        "Lines and other shapes",
        "How far each shape's AICc lies above the lowest one's: up to 2 is as good, from 10 on is as good as ruled out "
        "(Burnham and Anderson 2002, section 2.6). Sizes weigh equally, however many runs each has. A sigmoid has "
        "chance and ceiling free, or fixed at .5 and 1 or people's accuracy. A dash: the fit did not converge.",
        table,
        cells={"curve": as_it_is, "preferred": as_it_is, **dict.fromkeys(shapes, decimal_text)},
        strong=_strong(wide),
    )


def _logits(rows: pd.DataFrame, intervals: str) -> Exhibit | None:
    rows = rows.reset_index(drop=True)
    table = pd.DataFrame(
        {"phenomenon": _named(rows), "curve": rows["group"], "log-odds per doubling": rows["slope"],
         "low": rows["low"], "high": rows["high"], "paradigms": rows["paradigms"], "interval over": rows["over"],
         "note": rows["note"]}
    )  # fmt: skip
    return Exhibit(
        "logits",
        "Slopes in log-odds",
        "A binomial model of the right pairs of each run and paradigm on log2 of the words, with an intercept a "
        "paradigm (logistic regression, statsmodels); unlike an accuracy, log-odds have room near the ceiling. Runs "
        "weigh equally, as the likelihood has them, so that a size with more runs weighs more, unlike in the curves. "
        f"{intervals} are from leaving out runs and paradigms in turn. Paradigms are random here: these intervals are "
        "over new paradigms of the same phenomenon, and so wider than those of the curves, whose paradigms are fixed.",
        table,
        cells={"curve": as_it_is, "interval over": _or_dash, "note": as_it_is, "paradigms": count,
               "log-odds per doubling": signed_text, "low": signed_text, "high": signed_text},
        strong=_strong(rows),
        folded=True,
    )  # fmt: skip


def _or_dash(value: object) -> str:
    return value if isinstance(value, str) else "–"


def context_exhibits(rows: pd.DataFrame, label: str) -> list[Exhibit]:
    """Show what a context before each sentence changes, by phenomenon and by size; `rows`: of context_changes."""
    rows = rows[rows["level"] != "paradigm"]
    of_all = rows[rows["size"] == "all"].reset_index(drop=True)
    by_size = rows[rows["size"] != "all"].reset_index(drop=True)
    about = f"Accuracy of the same runs without a context and with that of {label}, paired"
    together = Exhibit(
        "context",
        "What stands before a sentence",
        f"{about}; a model with a memory starts from an empty one otherwise, a state that it hardly trained on. Runs "
        "of all sizes together.",
        _changes(of_all, {"phenomenon": _named(of_all), "curve": of_all["group"]}),
        cells=_CHANGE_CELLS,
        strong=_strong(of_all),
    )
    at_sizes = Exhibit(
        "context-by-size",
        "What stands before a sentence, by size",
        f"{about}: the whole benchmark at each size. Intervals are over the runs of a size; one run has none.",
        _changes(by_size, {"curve": by_size["group"], "size": by_size["size"], "runs": by_size["runs"]}),
        cells=_CHANGE_CELLS,
    )
    return [together, at_sizes] if by_size["size"].nunique() > 1 else [together]


_CHANGE_CELLS = {"curve": as_it_is, "size": as_it_is, "runs": count, "difference": slope_text, "low": slope_text,
                 "high": slope_text, "p (Holm)": p_text}  # fmt: skip


def _changes(rows: pd.DataFrame, named: Mapping[str, pd.Series]) -> pd.DataFrame:
    return pd.DataFrame(
        {**named, "without": rows["first"], "with": rows["second"], "difference": rows["difference"],
         "low": rows["low"], "high": rows["high"], "p (Holm)": rows["p_holm"]}
    )  # fmt: skip


def coverage_exhibit(studied: Iterable[tuple[pd.DataFrame, pd.DataFrame]], confidence: float) -> Exhibit | None:
    """Show how often the intervals covered the truth in simulated studies of designs like those `studied`.

    `studied`: rows of Study.runs and Curves.slopes of each benchmark; `confidence`: of the intervals of the slopes.
    None where no such design was simulated (tests/bench/coverage.py), which is so for all but 95% intervals.
    """
    parts = [coverage_for(runs, slopes) for runs, slopes in studied] if confidence == 0.95 else []
    if not sum(map(len, parts)):
        return None
    rows = pd.concat(parts, ignore_index=True).drop_duplicates()
    rows = rows[rows["level"] == "overall"].reset_index(drop=True)
    shown = ["design", "quantity", "question", "interval"]
    error = float(rows["standard_error"].max())
    return Exhibit(
        "coverage",
        "How often the intervals hold",
        f"Share of {rows['studies'].min():,} simulated studies a design (standard error {error:.1%} at most) whose 95% "
        "interval held the truth, overall; designs with as many runs at each size, and the same interval, as here. "
        "Designs name the spread "
        "between runs over sizes and whether accuracies lie on a line; of a bent curve limits by HC2 and HC3 are too "
        "wide, as they hold the distance from a line too. Lack of fit: share of lines not rejected; onset: share of "
        "onsets that are no smaller than the true one.",
        rows[[*shown, "covered"]],
        cells={**dict.fromkeys(shown, as_it_is), "covered": per_cent_text},
        folded=True,
    )
