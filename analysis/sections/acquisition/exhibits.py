"""Acquisition in the report: order of units, shapes of curves, ranks by size, correlations of orders."""

from functools import partial

import pandas as pd

from analysis.curves.acquisition.acquisition import Acquisition
from analysis.curves.acquisition.orders import ACQUISITION, LEAST_UNITS, correlate
from analysis.curves.acquisition.turns import GAM_TURN
from analysis.curves.fit import CHANCE_BASELINE
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.acquisition import limits_of, order_chart, shape_chart
from analysis.exhibits.sentences.acquisition import (
    acquired_text,
    limits_text,
    order_sentence,
    rank_sentence,
    shape_sentence,
    size_sentence,
)
from analysis.exhibits.sentences.curves import plural
from analysis.exhibits.tables.text import accuracy_text, count, p_text, rank_text, signed_text, slope_text, title
from analysis.sections.section import Report, Section, contributes
from eval.scores.names import benchmark_name

LEVEL = "phenomenon"  # of figures and sentences; tables have paradigms too
MOST_PANELS = 24


@contributes(55)
def acquisition(section: Section, report: Report) -> list[Exhibit | None]:
    of = section.acquisition
    if of is None:
        return []
    return [
        order_exhibit(of, section.judged.unit, report.confidence),
        shapes_exhibit(of, section.judged.unit),
        ranks_exhibit(of, report.confidence),
        correlations_exhibit(pd.concat([of.orders, across(section, report)], ignore_index=True), report.confidence),
    ]


def _levels(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of phenomena and paradigms, phenomena first."""
    rows = table[table["level"] != "overall"]
    return rows.sort_values("level", key=lambda level: level != LEVEL, kind="stable")


def _first(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["level"] == LEVEL]


def _by_group(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return the rows of phenomena of each curve."""
    return [(str(group), part) for group, part in _first(table).groupby("group", sort=False)]


def order_exhibit(of: Acquisition, unit: str, confidence: float) -> Exhibit:
    """Return the amounts of text from which units are acquired, in their order."""
    rows = _levels(of.sizes).sort_values(["group", "level", "rank", "name"], ascending=[True, False, True, True])
    drawn = _first(of.sizes)
    mean = drawn.groupby("name")["rank"].mean().sort_values(kind="stable").index
    drawn = drawn.set_index("name").loc[mean].reset_index().assign(name=lambda table: table["name"].map(title))
    table = pd.DataFrame({
        "curve": rows["group"], "phenomenon": rows["phenomenon"], "paradigm": _paradigm(rows),
        "threshold": rows["threshold"], "words": rows["words"], "limits": rows["low"],
        "new pairs too": rows["low_new_pairs"],
        "rank": rows["rank"], "rank limits": rows["rank_low"], "low": rows["low"], "high": rows["high"],
    })  # fmt: skip
    texts = {
        "words": [acquired_text(row) for _, row in rows.iterrows()],
        "limits": [limits_text(row) for _, row in rows.iterrows()],
        "new pairs too": [limits_text(row, "_new_pairs") for _, row in rows.iterrows()],
        "rank limits": [_rank_limits(row) for _, row in rows.iterrows()],
    }
    above = (
        ""
        if (rows["baseline"] == CHANCE_BASELINE).all()
        else ", or of untrained models or models of shuffled text where that is higher,"
    )
    return Exhibit(
        "acquisition-order",
        "Order of acquisition",
        f"{unit.capitalize()} of training text from which accuracy stays at or above the threshold: that of "
        f"chance{above} and "
        f"{accuracy_text(of.margin).rstrip('0')} on top (analysis.acquisition_margin), with {confidence:.0%} limits "
        "over runs. Hollow "
        "marks lie outside of the sizes of the study.",
        table.drop(columns=["low", "high"]),
        cells={"rank": count},
        texts=texts,
        intervals={},
        charts={"order": partial(order_chart, drawn, unit)},
        columns=1,
        takeaways=[(group, size_sentence(part, LEVEL)) for group, part in _by_group(of.sizes)],
        definitions={
            "Limits": "All amounts of text at which the band of the curve holds the threshold, for new runs on these "
            "pairs.",
            "New pairs too": "For new pairs of the same paradigms as well.",
            "Rank": "1 is acquired first; units outside of the sizes share a rank.",
            "Rank limits": f"Hold the ranks of all phenomena, or of all paradigms, of a curve together at "
            f"{confidence:.0%} "
            "(Klein, Wright and Wieczorek 2020).",
        },
        filtered=True,
        optional=["new pairs too"],
    )  # fmt: skip


def _paradigm(rows: pd.DataFrame) -> pd.Series:
    return rows["name"].where(rows["level"] == "paradigm", "")


def _rank_limits(row: pd.Series) -> str:
    return "–" if row["rank_low"] != row["rank_low"] else f"{row['rank_low']:.0f}–{row['rank_high']:.0f}"


def shapes_exhibit(of: Acquisition, unit: str) -> Exhibit:
    """Return the shapes of curves, with a panel for each phenomenon."""
    rows = _levels(of.shapes)
    points = _first(of.curves)
    groups, names = list(dict.fromkeys(points["group"])), list(dict.fromkeys(points["name"]))
    domain = limits_of(points)
    charts = {
        str(number): partial(shape_chart, points[points["name"] == name], groups, domain, unit, title=title(str(name)))
        for number, name in enumerate(names[:MOST_PANELS])
    }
    table = pd.DataFrame({
        "curve": rows["group"], "phenomenon": rows["phenomenon"], "paradigm": _paradigm(rows), "shape": rows["shape"],
        "turn, p (Holm)": rows["p_turn_holm"], "turn at": rows["at_words"], "slope up to it": rows["before"],
        "slope from it": rows["after"], "trend, p (Holm)": rows["p_trend_holm"], "flat, p (Holm)": rows["p_flat_holm"],
        "from monotone": rows["monotone_misfit"], "GAM climbs": rows["gam_climb"], "GAM drops": rows["gam_drop"],
    })  # fmt: skip
    numbers = dict.fromkeys(("turn, p (Holm)", "trend, p (Holm)", "flat, p (Holm)"), p_text)
    slopes = {"slope up to it": slope_text, "slope from it": slope_text}
    return Exhibit(
        "acquisition-shapes",
        "Shapes of curves",
        "Whether accuracy rises, falls or turns over training text: means of sizes (marks), the nearest curve that "
        "only "
        "rises or only falls (lines), and a generalised additive model (dashed).",
        table.drop(columns=[name for name in table if table[name].isna().all()]),
        cells=numbers | slopes | {"turn at": _at},
        charts=charts,
        columns=4,
        legend=groups,
        takeaways=[(group, shape_sentence(part, LEVEL)) for group, part in _by_group(of.shapes)],
        definitions={
            "Turn": "Two lines with opposite signs on either side of a size (Simonsohn 2018), p values times the "
            "number of breaks and the two directions, then by Holm: at most 5% of studies show one by mistake "
            "under curves that "
            "only "
            "rise, only fall or are flat.",
            "Trend": "The slope over all sizes; flat: surely within analysis.equivalence_margin.",
            "From monotone": "Root mean squared distance of the means from the nearer monotone fit.",
            "GAM": f"The greatest climb and drop of the smooth. Both above {GAM_TURN:g} look like a turn, and often "
            "are noise: "
            "the smooth is no test.",
        },
        filtered=True,
        optional=["from monotone", "GAM climbs", "GAM drops", "flat, p (Holm)"],
    )  # fmt: skip


def _at(value: float) -> str:
    return "" if value != value else f"{value:,.0f}"


def ranks_exhibit(of: Acquisition, confidence: float) -> Exhibit | None:
    """Return the ranks by accuracy at each size."""
    if of.ranks.empty:
        return None
    rows = _levels(of.ranks)
    wide = rows.assign(text=[rank_text(row) for _, row in rows.iterrows()])
    sizes = list(rows.sort_values("words")["size"].drop_duplicates())
    keys = ["group", "level", "name"]
    texts = wide.pivot(index=keys, columns="size", values="text").reindex(columns=sizes)
    ranks = wide.pivot(index=keys, columns="size", values="rank").reindex(columns=sizes)
    order = pd.MultiIndex.from_frame(rows[keys].drop_duplicates())
    texts, ranks = texts.loc[order], ranks.loc[order]
    named = order.to_frame(index=False)
    table = pd.DataFrame({"curve": named["group"], "unit": named["name"].map(title)})
    for size in sizes:
        table[size] = ranks[size].to_numpy()
    last = {
        group: part[part["words"] == part["words"].max()]
        for group, part in _first(of.ranks).groupby("group", sort=False)
    }
    return Exhibit(
        "acquisition-ranks",
        "Order by accuracy",
        f"Rank of each phenomenon and paradigm by accuracy at each size, 1 is the highest, with limits that hold all "
        "ranks of a "
        f"curve, size and level together at {confidence:.0%}: every two are compared, paired by run (Mogstad et al. "
        "2024).",
        table,
        texts={size: texts[size].fillna("").tolist() for size in sizes},
        intervals={},
        takeaways=[
            (str(group), text) for group, part in last.items() if (text := rank_sentence(part, LEVEL))
        ],
        filtered=False,
    )  # fmt: skip


def across(section: Section, report: Report) -> pd.DataFrame:
    """Return correlations with the orders of later benchmarks of the report, by the names that both have."""
    labels = list(report.sections)
    rows = []
    for label in labels[labels.index(section.label) + 1 :] if section.label in labels else []:
        other = report.sections[label].acquisition
        if section.acquisition is None or other is None:
            continue
        for level in ("phenomenon", "paradigm"):
            for first in section.acquisition.values.get(level, []):
                for second in other.values.get(level, []):
                    if first[0].group != second[0].group or not set(first[0].names) & set(second[0].names):
                        continue
                    named = benchmark_name(label)
                    of_other = {of.size: of for of in second}
                    rows += [
                        {**correlate(of, of_other[of.size], report.confidence), "level": level,
                         "other": f"{second[0].group}, {named}"}
                        for of in first if of.size in of_other
                    ]  # fmt: skip
    return pd.DataFrame(rows)


def correlations_exhibit(orders: pd.DataFrame, confidence: float) -> Exhibit | None:
    """Return the correlations of orders between models, sizes and benchmarks."""
    if orders.empty:
        return None
    rows = orders.sort_values("level", key=lambda level: level != LEVEL, kind="stable")
    what = rows["size"].where(rows["size"] != ACQUISITION, "amount of text")
    table = pd.DataFrame({
        "curve": rows["group"], "by": what, "other": rows["other"],
        "at": rows["other_size"].where(rows["other_size"] != ACQUISITION, "amount of text"), "units": rows["level"],
        "in common": rows["units"], "Spearman": rows["spearman"], "low": rows["low"], "high": rows["high"],
        "Kendall": rows["kendall"], "kendall_low": rows["kendall_low"], "kendall_high": rows["kendall_high"],
        "corrected": rows["corrected"], "corrected_low": rows["corrected_low"],
        "corrected_high": rows["corrected_high"],
        "reliability": rows["reliability"], "of the other": rows["other_reliability"], "note": rows["note"],
    })  # fmt: skip
    first = rows[rows["level"] == LEVEL]
    chosen = first[(first["group"] != first["other"])]
    last = [part.iloc[-2:] for _, part in chosen.groupby(["group", "other"], sort=False)]
    takeaways = [
        (f"{row['group']} and {row['other']}", order_sentence(row, LEVEL, confidence))
        for part in last
        for _, row in part.iterrows()
    ]
    return Exhibit(
        "acquisition-correlations",
        "Correlations of orders",
        "Rank correlations of accuracies between the sizes of a curve (with its largest) and between curves at each "
        "size, and of "
        "the amounts of text of acquisition.",
        table,
        cells={"in common": count, "Spearman": signed_text, "Kendall": signed_text, "corrected": signed_text},
        intervals={
            f"{confidence:.0%} interval": ("Spearman", "low", "high"),
            "interval of Kendall's": ("Kendall", "kendall_low", "kendall_high"),
            "interval corrected": ("corrected", "corrected_low", "corrected_high"),
        },
        takeaways=takeaways,
        definitions={
            "Interval": f"For other units like these (Bonett and Wright 2000); needs {plural(LEAST_UNITS, 'unit')} in "
            "common.",
            "Corrected": "For noise between runs: Spearman's over the root of both reliabilities (Spearman 1904), "
            "that of "
            "means over any number of runs.",
            "Reliability": "Share of the variance between units that is not noise between runs.",
        },
        optional=["Kendall", "interval of Kendall's", "reliability", "of the other"],
    )  # fmt: skip
