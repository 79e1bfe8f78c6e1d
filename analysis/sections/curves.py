"""Exhibits of curves beyond their slopes, each where its table (analysis.exhibits.tables.curves) has rows."""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import altair as alt
import pandas as pd

from analysis.curves.coverage import coverage_for
from analysis.curves.groups import NO_INTERVAL
from analysis.curves.p_values import ALPHA
from analysis.curves.robustness.averaged_shapes import CEILING, SLOPE
from analysis.curves.words_to_people import NO_ESTIMATE
from analysis.exhibits.exhibit import Cell, Exhibit, existing
from analysis.exhibits.figures.curves import MARGIN
from analysis.exhibits.figures.dots import Dots, numbers, reference
from analysis.exhibits.figures.style import Chart, Frame, signed_axis
from analysis.exhibits.sentences.curves import cautions_explained, plural, rough_limits, without_limits
from analysis.exhibits.tables.text import (
    decimal_text,
    interval_text,
    per_cent_text,
    signed_text,
    slope_text,
    supported_digits,
    title,
)
from analysis.sections.section import Report, Section, contributes
from eval.scores.names import benchmark_name

COMPARISONS = "comparisons"
FIRST, LAST = "slope at the smallest size", "slope at the largest size"


@contributes(-10)
def compared_studies(section: Section, report: Report) -> list[Exhibit]:
    return [exhibit for exhibit in _curves(section, report) if report.several and exhibit.name == COMPARISONS]


@contributes(50)
def curves(section: Section, report: Report) -> list[Exhibit]:
    return [exhibit for exhibit in _curves(section, report) if not (report.several and exhibit.name == COMPARISONS)]


def _curves(section: Section, report: Report) -> list[Exhibit]:
    people = section.respondents.label if section.respondents else ""
    return curve_exhibits(section.tables, report.confidence, people, section.others_on_more)


@contributes(100)
def context(section: Section, report: Report) -> list[Exhibit]:
    return (
        context_exhibits(section.tables["context"], section.label, report.confidence)
        if "context" in section.tables
        else []
    )


@contributes(110)
def coverage(section: Section, report: Report) -> list[Exhibit | None]:
    """Add the same table for all benchmarks at the end of the page; of simulated studies like this one, to each."""
    if "simulated-coverage" in section.tables:
        return [own_coverage_exhibit(section.tables["simulated-coverage"], report.confidence)]
    if report.config.analysis.coverage or section.label != [*report.sections][-1]:
        return []
    parts = [(of.judged.runs, of.curves.slopes) for of in report.sections.values()]
    return [coverage_exhibit(parts, report.confidence)]


def curve_exhibits(
    tables: Mapping[str, pd.DataFrame], confidence: float, people: str = "", others: str = ""
) -> list[Exhibit]:
    """Return the exhibits of `curve_tables`, of this confidence.

    `people`: who they are, unless the published ones; `others`: Section.others_on_more.
    """
    intervals = f"{confidence:.0%} intervals"
    makers: dict[str, Callable[[pd.DataFrame], Exhibit | None]] = {
        "words-to-people": partial(_people, intervals=intervals, people=people, others="" if people else others),
        "slope-differences": partial(_differences, confidence=confidence),
        "shapes": _shapes,
        "averaged-shapes": partial(_averaged, confidence=confidence),
        "mixed-model": partial(_logits, confidence=confidence),
    }
    return existing(make(tables[name]) for name, make in makers.items() if name in tables and len(tables[name]))


def _named(rows: pd.DataFrame) -> pd.Series:
    return rows["name"].where(rows["level"] != "overall", "overall")


def _people(rows: pd.DataFrame, intervals: str, people: str, others: str) -> Exhibit | None:
    rows = rows[rows["people"].notna() & rows["last_accuracy"].notna()]  # a curve of one size has none
    if rows.empty:
        return None
    notes = rows["note"].str.removeprefix(NO_INTERVAL)
    words = rows["text"] + notes.map(lambda note: f" ({note})" if note else "")
    whole = rows["level"] == "overall"
    table = pd.DataFrame(
        {"phenomenon": _named(rows), "curve": rows["group"], "people": rows["people"],
         "at the largest size": rows["last_accuracy"], "fit": rows["fit"], "words": words}
    )  # fmt: skip
    about = (
        "The amount of text at which accuracy would reach that of people if the fitted curve continued; nothing here "
        "shows that it does." + (f" People: {people}." if people else others)
    )
    definitions = {
        intervals: "By Fieller's theorem (for shapes other than a line, by profile likelihood), with the sampling "
        "error of people's accuracy, whose judgements of one pair are correlated. They are unbounded where the "
        "interval of the slope contains 0.",
        "Fit": "Only shapes that can reach people are used. For shapes other than a line, which AICc chose, the limits "
        "take the shape as known, and so are too narrow.",
        "Never": "No curve within the limits reaches people.",
    }
    if (rows["status"] == NO_ESTIMATE).all():
        definitions = {}
    limits = f" ({intervals.removesuffix('s')} "
    overall = "words to reach people's overall accuracy: " + words[whole].str.replace(
        r" \((?=\d)", limits, n=1, regex=True
    )
    takeaways = [*zip(rows.loc[whole, "group"], overall + ".", strict=True)]
    return Exhibit("people", "Words to reach people", about, table, takeaways=takeaways, definitions=definitions)


def _differences(rows: pd.DataFrame, confidence: float) -> Exhibit | None:
    rows = rows[rows["difference"].notna() & (rows["level"] != "paradigm")]
    if rows.empty:
        return None
    pair = rows["group"] + " − " + rows["other"]
    table = pd.DataFrame(
        {"phenomenon": _named(rows), "slope of": pair, "over": rows["from_size"] + " to " + rows["to_size"],
         "difference": rows["difference"], "low": rows["low"], "high": rows["high"], "p": rows["p"],
         "p (Holm)": rows["p_holm"], "p (equivalence)": rows["p_equivalent"]}
    ).dropna(axis=1, how="all")  # fmt: skip
    charts = {"slopes": partial(difference_chart, rows.assign(pair=pair))}
    what, heading = ("changes", "Changes compared") if (rows["sizes"] == 2).all() else ("slopes", "Slopes compared")
    about = (
        f"Differences between the {what} (accuracy per doubling of the text) of every two curves or, where studies are "
        "compared, of every two curves of different studies, over the sizes that both have."
    )
    named = rows.assign(pair=pair)
    about = " ".join([about, *rough_limits(named, "pair"), *without_limits(named, "pair")])
    alpha = f"{ALPHA:g}".removeprefix("0")
    tests = {
        f"{confidence:.0%} interval": "For new samples of text and new initialisations, on these pairs.",
        "p (Holm)": "Corrected for all comparisons of phenomena, or of the whole, on this benchmark; filled marks: "
        f"below {alpha}.",
        "p (equivalence)": f"Of the test that the {what} differ by at most {rows['margin'].iloc[0]:g} per doubling, "
        "corrected alike; small where they do.",
    }
    definitions = (tests if rows["low"].notna().any() else {}) | cautions_explained(rows, confidence)
    return Exhibit(
        COMPARISONS, heading, about, table, cells={"difference": slope_text}, charts=charts,
        confidence=confidence, definitions=definitions,
    )  # fmt: skip


def difference_chart(rows: pd.DataFrame, *, frame: Frame) -> Chart:
    """Draw differences of slopes, a row per phenomenon, a mark per pair of curves, filled where p_holm < .05.

    `rows`: analysis.curves.comparisons.compare_slopes with the column `pair`, the name of the two curves.
    """
    shown = rows.assign(name=_named(rows).map(title))[["name", "pair", "difference", "low", "high", "p_holm"]]
    dots = Dots(shown, list(dict.fromkeys(shown["name"])), group="pair")
    x = alt.X("difference:Q", axis=signed_axis("Difference of slopes (per doubling)", frame), scale=MARGIN)
    tooltip = [alt.Tooltip("name:N", title="phenomenon"), alt.Tooltip("pair:N", title="curves")]
    tooltip += numbers("difference", "low", "high", form="+.4f")
    tooltip += [alt.Tooltip("p_holm:Q", format=".3f", title="p (Holm)")]
    layers = [reference(0), dots.lines("low", "high")]
    for filled, of in shown.groupby(shown["p_holm"] < ALPHA):
        layers.append(dots.points(x, tooltip, filled=bool(filled), of=of))
    return dots.chart(*layers, frame=frame)


def _shapes(rows: pd.DataFrame) -> Exhibit | None:
    rows = rows[rows["level"] != "paradigm"]
    if rows.empty:
        return None
    keys = ["group", "level", "name"]
    wide = rows.pivot_table(index=keys, columns="shape", values="above", sort=False).reset_index()
    best = rows[rows["preferred"]].set_index(keys)["shape"]
    shapes = [shape for shape in dict.fromkeys(rows["shape"]) if shape in wide]
    table = pd.DataFrame({"phenomenon": _named(wide), "curve": wide["group"], **{s: wide[s] for s in shapes}})
    table["preferred"] = best.reindex(pd.MultiIndex.from_frame(wide[keys])).to_numpy()
    whole = table[wide["level"] == "overall"]
    takeaways = [(group, f"AICc prefers {shape} overall.") for group, shape in whole[["curve", "preferred"]].to_numpy()]
    return Exhibit(
        "shapes",
        "Lines and other shapes",
        "AICc of each shape, above that of the best.",
        table,
        cells=dict.fromkeys(shapes, decimal_text),
        takeaways=takeaways,
        definitions={
            "AICc": "A difference of up to 2 is negligible, one of 10 or more all but rules the shape out (Burnham and "
            "Anderson 2002, section 2.6). Sizes weigh equally, however many runs each has.",
            "Sigmoid": "Its chance and its ceiling are free, or fixed at .5 and at 1 or people's accuracy.",
            "–": "The fit did not converge.",
        },
    )


def _averaged(rows: pd.DataFrame, confidence: float) -> Exhibit | None:
    rows = rows[rows["level"] != "paradigm"]
    if rows.empty:
        return None
    slopes = rows[rows["quantity"] == SLOPE]
    at = slopes.groupby("group")["words"]
    ends = {
        FIRST: slopes[slopes["words"] == at.transform("min")], LAST: slopes[slopes["words"] == at.transform("max")],
        "ceiling": rows[rows["quantity"] == CEILING],
    }  # fmt: skip
    wide = ends[FIRST].reset_index(drop=True)
    table = pd.DataFrame({"phenomenon": _named(wide), "curve": wide["group"]})
    for name, of in ends.items():
        columns = [name, f"{name}, low", f"{name}, high"]
        table[columns] = of[["value", "low", "high"]].to_numpy()
    table["weight of ceilings"], table["note"] = ends["ceiling"]["weight"].to_numpy(), wide["note"]
    whole = table[wide["level"] == "overall"]
    level = f"{confidence:.0%} interval"
    takeaways = [(str(row["curve"]), _ends_sentence(row, level)) for _, row in whole.iterrows()]
    if (table["note"] == "").all():
        table = table.drop(columns="note")
    return Exhibit(
        "averaged-shapes",
        "Curves averaged over shapes",
        "What all shapes without a fixed ceiling say together, each by its weight: how much accuracy a doubling of the "
        "text adds at the smallest and at the largest size, and the accuracy at which the curve levels off.",
        table,
        cells={FIRST: slope_text, LAST: slope_text, "weight of ceilings": decimal_text},
        intervals={f"{level} of the {name}": (name, f"{name}, low", f"{name}, high") for name in ends},
        confidence=confidence,
        takeaways=takeaways,
        definitions={
            "Weight": "exp(-difference in AICc / 2) over the sum of all shapes without a fixed ceiling (Burnham and "
            "Anderson 2002, section 2.9).",
            level: "For new runs on these pairs, with HC3 errors of each shape and the distance between shapes "
            "(section 4.3).",
            "Ceiling": "Of the shapes that have one, and which together have the weight of ceilings: "
            "where that is low, most of the evidence is for shapes without one.",
        },
    )


def _ends_sentence(row: pd.Series, level: str) -> str:
    """Say how much a doubling adds overall at both ends of a curve."""
    parts = []
    for name in (FIRST, LAST):
        low, high = row[f"{name}, low"], row[f"{name}, high"]
        digits = 3 if math.isnan(low) else supported_digits(low, high)
        limits = "" if math.isnan(low) else f" ({level} {interval_text(low, high, digits=digits)})"
        parts.append(f"{slope_text(row[name], digits=digits)} {name.removeprefix('slope ')}{limits}")
    return f"overall a doubling of the text adds {' and '.join(parts)}, averaged over shapes."


def _logits(rows: pd.DataFrame, confidence: float) -> Exhibit:
    table = pd.DataFrame(
        {"phenomenon": _named(rows), "curve": rows["group"], "log-odds per doubling": rows["slope"],
         "low": rows["low"], "high": rows["high"], "paradigms": rows["paradigms"], "interval over": rows["over"],
         "note": rows["note"]}
    )  # fmt: skip
    cells: dict[str, Cell] = {"log-odds per doubling": signed_text, "interval over": _or_dash}
    about = (
        "Logistic regression of the correct pairs of each run and paradigm on log2 of the words, with an intercept for "
        "each paradigm (statsmodels). Unlike accuracy, log-odds have room near the ceiling."
    )
    definitions = {
        f"{confidence:.0%} interval": "By leaving out runs and paradigms in turn. Paradigms are random here: the "
        "intervals are for new paradigms of the same phenomenon, and so wider than those of the curves, whose "
        "paradigms are fixed.",
        "Weights": "Runs weigh equally, so that, unlike in the curves, a size with more runs weighs more.",
    }
    heading = f"{confidence:.0%} interval"
    takeaways = [
        (
            row["group"],
            f"{signed_text(row['slope'])} overall, {heading} {interval_text(row['low'], row['high'], digits=3)}.",
        )
        for row in rows[rows["level"] == "overall"].to_dict("records")
    ]
    return Exhibit(
        "logits", "Slopes in log-odds", about, table, cells=cells, confidence=confidence, definitions=definitions,
        takeaways=takeaways,
    )  # fmt: skip


def _or_dash(value: object) -> str:
    return value if isinstance(value, str) else "–"


def context_exhibits(rows: pd.DataFrame, label: str, confidence: float) -> list[Exhibit]:
    """Show the effect of a context before each sentence, by phenomenon and by size; `rows`: of context_changes."""
    rows = rows[rows["level"] != "paradigm"]
    of_all, by_size = rows[rows["size"] == "all"], rows[rows["size"] != "all"]
    about = f"Accuracy of the same runs without a context and on {benchmark_name(label)}, paired"
    cells = {"difference": slope_text}
    of_phenomena = (
        f"{about}. Without one, a model with a memory starts from an empty memory, a state that is rare in training. "
        "Runs of all sizes together."
    )
    table = _changes(of_all, {"phenomenon": _named(of_all), "curve": of_all["group"]})
    together = Exhibit("context", "Context before a sentence", of_phenomena, table, cells=cells, confidence=confidence)
    if by_size["size"].nunique() < 2:
        return [together]
    at_sizes = f"{about}: the whole benchmark at each size. Intervals are over the runs of a size; one run has none."
    table = _changes(by_size, {"curve": by_size["group"], "size": by_size["size"], "runs": by_size["runs"]})
    heading = "Context before a sentence, by size"
    return [together, Exhibit("context-by-size", heading, at_sizes, table, cells=cells, confidence=confidence)]


def _changes(rows: pd.DataFrame, named: Mapping[str, pd.Series]) -> pd.DataFrame:
    return pd.DataFrame(
        {**named, "without": rows["first"], "with": rows["second"], "difference": rows["difference"],
         "low": rows["low"], "high": rows["high"], "p (Holm)": rows["p_holm"]}
    )  # fmt: skip


def coverage_exhibit(studied: Iterable[tuple[pd.DataFrame, pd.DataFrame]], confidence: float) -> Exhibit | None:
    """Show how often the intervals covered the truth in simulated studies of designs like those `studied`.

    `studied`: rows of Study.runs and Curves.slopes of each benchmark; `confidence`: of the intervals of the slopes.
    None where no such design was simulated (tests/bench/coverage.py): only 95% intervals were.
    """
    parts = [coverage_for(runs, slopes) for runs, slopes in studied] if confidence == 0.95 else []
    if not sum(map(len, parts)):
        return None
    rows = pd.concat(parts, ignore_index=True).drop_duplicates()
    rows = rows[rows["level"] == "overall"].reset_index(drop=True)
    error = float(rows["standard_error"].max())
    table = rows[["design", "quantity", "question", "interval", "covered"]]
    about = (
        f"Share of {plural(int(rows['studies'].min()), 'simulated study')} for each design, of those that have limits "
        f"(standard error at most {error:.1%}), whose 95% interval contained the truth, overall, for designs with as "
        "many runs at each size, and the same interval, as here."
    )
    slopes = rows.loc[(rows["quantity"] == "slope") & (rows["question"] == "these pairs"), "covered"]
    covered = f"{slopes.min():.1%} to {slopes.max():.1%}"
    return Exhibit(
        "coverage",
        "Coverage of the intervals",
        about,
        table,
        cells={"covered": per_cent_text},
        takeaways=[("", f"In studies simulated like this one, {covered} of 95% intervals contained the true slope.")],
        definitions={
            "Design": "The spread between runs over sizes, and whether accuracies lie on a line. On a bent curve, "
            "limits by HC2 are too wide, as they include the distance from a line.",
            "Lack of fit": "Share of lines not rejected.",
            "Onset": "Share of onsets no smaller than the true one.",
        },
    )


def own_coverage_exhibit(rows: pd.DataFrame, confidence: float) -> Exhibit:
    """Show how often the intervals of this report hold in simulated studies like it; `rows`: of `coverage_table`."""
    without = rows[(rows["none"] == 1) & (rows["level"] == "overall")].drop_duplicates(["curve", "quantity"])
    never = "; ".join(f"{row['quantity']}, {row['curve']}" for _, row in without.iterrows())
    left_out = f" No study had limits of: {never}." if never else ""
    studies = int(rows["studies"].max())
    rows = rows[rows["none"] < 1].reset_index(drop=True)
    table = pd.DataFrame({
        "curve": rows["curve"], "quantity": rows["quantity"], "question": rows["question"],
        "of": [title(name) if level == "phenomenon" else level
               for level, name in rows[["level", "name"]].itertuples(index=False)],
        "interval": rows["interval"], "held": rows["covered"], "standard error": rows["standard_error"],
    })  # fmt: skip
    overall = rows[rows["level"] == "overall"]
    held = f"in {overall['covered'].min():.1%} to {overall['covered'].max():.1%} of studies"
    return Exhibit(
        "coverage",
        "How often these intervals hold",
        f"Share of {plural(studies, 'simulated study')} like this one, with its sizes, runs, spreads and pairs, whose "
        f"{confidence:.0%} interval contained the truth: overall, and in the phenomenon in which it held least often."
        + left_out,
        table,
        cells={"held": per_cent_text, "standard error": per_cent_text},
        takeaways=[("", f"Overall, {confidence:.0%} intervals contained the truth {held}.")] if len(overall) else [],
        definitions={
            "Simulated studies": "Pairs and runs add to the probit of being right. How far runs and pairs differ is "
            "estimated from this study, so it is known as badly as its runs show it; spreads change with the size only "
            "where a test shows that. Expected accuracies lie on the lines of the paradigms or, where lines are "
            "rejected, at the means of the sizes.",
            "Held least often": "The lowest of several shares is low by chance, too: by about two standard errors of "
            "twelve phenomena.",
        },
    )
