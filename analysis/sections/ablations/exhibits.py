"""Exhibits of a study with interventions: effects, paradigms, surviving shares, doses, and what was removed."""

from functools import partial

import pandas as pd

from analysis.curves.ablations.ablations import Ablations, of_comparison
from analysis.curves.ablations.effects import ALL_SIZES, PER_DOUBLING
from analysis.curves.ablations.matching import DIRECT, REST, SAME, SCOPE
from analysis.exhibits.exhibit import Cell, Exhibit
from analysis.exhibits.figures.ablations import doses_chart, paradigms_chart, sizes_chart
from analysis.exhibits.sentences.curves import in_text
from analysis.exhibits.sentences.findings import p_is
from analysis.exhibits.tables.text import (
    accuracy_text,
    decimal_text,
    interval_text,
    per_cent_text,
    slope_text,
    supported_digits,
    title,
    yes,
)
from analysis.measures.ablations import removed_text
from analysis.sections.section import Report, Section, contributes

SCOPES = (DIRECT, SAME, REST)
_NEW = "new pairs too"
_MINUS = " \N{MINUS SIGN} "


@contributes(-20)
def ablations(section: Section, report: Report) -> list[Exhibit | None]:
    of = section.ablations
    if of is None:
        return []
    removed = removed_exhibit(section.judged.runs)
    return [
        effects_exhibit(section, of, report.confidence),
        paradigms_exhibit(of),
        shares_exhibit(of),
        doses_exhibit(of),
        removed,
    ]


def _scoped(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of scopes and the whole; of the whole alone where nothing tests the construction."""
    return rows[rows["level"].isin([SCOPE, "overall"])]


def _named(rows: pd.DataFrame) -> pd.Series:
    return rows["name"].where(rows["level"] == SCOPE, rows["name"].map(title))


def effects_exhibit(section: Section, of: Ablations, confidence: float) -> Exhibit:
    """Return the differences of all comparisons in scopes and overall, with a panel over sizes for each treatment."""
    words = section.judged.runs.groupby("size")["sample_words"].mean()
    at_sizes = _scoped(of.differences[~of.differences["over"].isin([ALL_SIZES, PER_DOUBLING])])
    at_sizes = at_sizes.assign(words=at_sizes["over"].map(words), name=_named(at_sizes))
    units = [name for name in SCOPES if name in set(at_sizes["name"])] or ["Overall"]
    at_sizes = at_sizes[at_sizes["name"].isin(units)]
    charts = {}
    for number, (group, other) in enumerate(of.primary):
        rows = of_comparison(at_sizes, group, other)
        panel = rows[["name", "words", "difference", "low", "high", "pairs"]]
        name = f"{group}{_MINUS}{_against(rows['kind'].iloc[0])}"
        charts[str(number)] = partial(sizes_chart, panel, units, title=name, unit=section.judged.unit)
    rows = _scoped(of.differences)
    table = pd.DataFrame(
        {"curve": rows["group"], "less": rows["kind"].map(_against), "in": _named(rows), "over": rows["over"],
         "difference": rows["difference"], "low": rows["low"], "high": rows["high"],
         "low_new_pairs": rows["low_new_pairs"], "high_new_pairs": rows["high_new_pairs"], "p (Holm)": rows["p_holm"],
         "p (equivalence)": rows["p_equivalent"], "accuracy": rows["first"], "other accuracy": rows["second"],
         "paradigms": rows["paradigms"], "pairs of runs": rows["pairs"]}
    )  # fmt: skip
    margin = accuracy_text(float(of.differences["margin"].iloc[0])).rstrip("0")
    return Exhibit(
        "ablations",
        "What an intervention changes",
        "Difference of accuracy from runs on text that lacks as many other sentences (the matched control) or nothing "
        f"(the full text), with {confidence:.0%} intervals.",
        table.sort_values("over", key=lambda over: over != ALL_SIZES, kind="stable"),
        cells={"difference": slope_text, "pairs of runs": _count, "p (Holm)": _p, "p (equivalence)": _p},
        intervals={f"{confidence:.0%} interval": ("difference", "low", "high"),
                   _NEW: ("difference", "low_new_pairs", "high_new_pairs")},
        optional=[_NEW],
        charts=charts,
        takeaways=[(finding.subject, finding.full) for finding in section.effects],
        definitions={
            "Tests the construction": "Paradigms that the filter names: direct evidence.",
            "Same phenomena, other phenomena": "All other paradigms: indirect evidence.",
            "All sizes": "Mean over sizes, which weigh equally; per doubling: how the difference changes with text.",
            "Interval": "For new samples and initialisations on these pairs, paired by size and seed.",
            "New pairs too": "For new pairs of the same paradigms as well.",
            "P (Holm)": "That there is no difference, corrected within comparisons of a kind and units of a level.",
            "P (equivalence)": f"That the difference is {margin} or more, corrected in the same way.",
        },
    )  # fmt: skip


def _against(kind: str) -> str:
    return "control" if kind.endswith("control") else "full text"


def _count(value: float, digits: int = 0) -> str:
    return f"{value:,.0f}" if value else "none"


def _p(value: float, digits: int = 0) -> str:
    return p_is(value).removeprefix("p ").removeprefix("= ") if value == value else "–"


def paradigms_exhibit(of: Ablations) -> Exhibit:
    """Return the differences by phenomenon and paradigm over all sizes, with a panel for each treatment."""
    whole = of.differences[of.differences["over"] == ALL_SIZES]
    charts, parts = {}, []
    for number, (group, other) in enumerate(of.primary):
        rows = of_comparison(whole, group, other)
        rows = rows[rows["level"].isin(["phenomenon", "paradigm"])]
        same = set(rows.loc[rows["direct"], "phenomenon"])
        scopes = zip(rows["direct"], rows["phenomenon"].isin(same), strict=True)
        rows = rows.assign(scope=[DIRECT if direct else SAME if near else REST for direct, near in scopes])
        rows = rows.sort_values(["scope", "difference"], key=_order, kind="stable")
        parts.append(rows)
        panel = rows[rows["level"] == "paradigm"].assign(name=lambda table: table["name"].map(title))
        units = [scope for scope in SCOPES if scope in set(panel["scope"])]
        panel = panel[["name", "scope", "difference", "low", "high"]]
        name = f"{group}{_MINUS}{_against(rows['kind'].iloc[0])}"
        charts[str(number)] = partial(paradigms_chart, panel, units, title=name)
    rows = pd.concat(parts, ignore_index=True)
    rows = rows.sort_values("level", kind="stable")  # paradigms before phenomena
    table = pd.DataFrame(
        {"paradigm": rows["name"], "of": rows["level"], "curve": rows["group"], "less": rows["kind"].map(_against),
         "direct": rows["direct"], "difference": rows["difference"], "low": rows["low"], "high": rows["high"],
         "low_new_pairs": rows["low_new_pairs"], "high_new_pairs": rows["high_new_pairs"],
         "p (Holm)": rows["p_holm"], "p (equivalence)": rows["p_equivalent"], "accuracy": rows["first"],
         "other accuracy": rows["second"]}
    )  # fmt: skip
    return Exhibit(
        "ablation-paradigms",
        "Effects by paradigm",
        "Difference of accuracy over all sizes in each paradigm, with intervals that are not corrected for multiple "
        "comparisons; p values are.",
        table,
        cells={"difference": slope_text, "p (Holm)": _p, "p (equivalence)": _p},
        texts={"direct": [yes(value) for value in table["direct"]]},
        intervals={"interval": ("difference", "low", "high"), _NEW: ("difference", "low_new_pairs", "high_new_pairs")},
        optional=[_NEW],
        charts=charts,
        filtered=True,
    )


def _order(column: pd.Series) -> pd.Series:
    return column.map(SCOPES.index) if column.name == "scope" else column


def shares_exhibit(of: Ablations) -> Exhibit | None:
    """Return the shares of what was learned that survive, of scopes, phenomena and direct paradigms."""
    rows = of.shares[of.shares["level"].isin([SCOPE, "overall"])]
    further = of.shares[(of.shares["level"] == "phenomenon") | of.shares["direct"]]
    rows = pd.concat([rows, further[further["over"] == ALL_SIZES]])
    if rows.empty:
        return None
    shown = [
        f"[{low:.0%}, {high:.0%}]" if low == low else "–" for low, high in zip(rows["low"], rows["high"], strict=True)
    ]
    table = pd.DataFrame(
        {"curve": rows["group"], "less": rows["kind"].map(_against), "in": _named(rows), "over": rows["over"],
         "share": rows["share"], "interval": shown, "low": rows["low"], "high": rows["high"], "note": rows["note"]}
    )  # fmt: skip
    cells: dict[str, Cell] = {"share": partial(per_cent_text, digits=0)}
    baseline = " or ".join(dict.fromkeys(rows["baseline"]))
    return Exhibit(
        "surviving-shares",
        "What survives of what was learned",
        f"(Accuracy {_MINUS.strip()} {baseline}) of the treatment over that of the other runs. 100%: nothing is lost; "
        "0%: all of it.",
        table.drop(columns="interval"),
        cells=cells,
        texts={"low": [text.strip("[]").partition(", ")[0] for text in shown],
               "high": [text.strip("[]").rpartition(", ")[2] for text in shown]},
        intervals={},
        definitions={
            "Low, high": "By Fieller's theorem. Absent where the interval of the other runs' accuracy holds chance, as "
            "there is then nothing that could be shown to survive."
        },
    )  # fmt: skip


def doses_exhibit(of: Ablations) -> Exhibit | None:
    """Return accuracy over doses, a panel for each construction, with the test of a linear trend."""
    if of.doses.empty:
        return None
    charts, takeaways = {}, []
    scopes = _scoped(of.doses).assign(name=lambda rows: _named(rows))
    if SCOPE in set(scopes["level"]):  # no more lines than have bands
        scopes = scopes[scopes["level"] == SCOPE]
    for number, ((base, name), rows) in enumerate(scopes.groupby(["base", "filter"], sort=False)):
        panel = rows.rename(columns={"share": "at"})[["name", "at", "accuracy", "low", "high", "runs"]]
        charts[str(number)] = partial(doses_chart, panel, title=f"{base}, {name}")
        trends = of.trends[(of.trends["base"] == base) & (of.trends["filter"] == name)]
        takeaways.append((f"{base}, {name}", _trend(_scoped(trends).iloc[0])))
    rows = of.doses[of.doses["level"] != "paradigm"]
    table = pd.DataFrame(
        {"curve": rows["group"], "in": _named(rows), "dose": rows["dose"], "accuracy": rows["accuracy"],
         "low": rows["low"], "high": rows["high"], "runs": rows["runs"]}
    )  # fmt: skip
    about = (
        "Accuracy over the share of the construction's sentences that stay in the text (100%: the full text), means "
    )
    about += "over sizes, with intervals for new samples and initialisations."
    texts = {"dose": list(rows["dose"])}
    return Exhibit("doses", "Dose and response", about, table, texts=texts, charts=charts, takeaways=takeaways)


def _trend(row: pd.Series) -> str:
    where = f"in the paradigms of {in_text(row['name'])}" if row["level"] != SCOPE else (
        "in the paradigms that test the construction" if row["name"] == DIRECT else f"in {row['name']}"
    )  # fmt: skip
    low, high = row["low"], row["high"]
    if low != low:
        return f"{where}, no test of a trend ({row['note']})."
    digits = supported_digits(low, high)
    numbers = f"{slope_text(row['difference'], digits=digits)}, interval {interval_text(low, high, digits=digits)}"
    numbers += f", {p_is(row['p_holm'])} by Holm"
    if row["p_holm"] < 0.05 and not low <= 0 <= high:
        verb = "rises" if low > 0 else "falls"
        return f"{where}, accuracy {verb} with the dose: by a line from none to all of it, {numbers}."
    return f"{where}, no trend over doses that {int(row['runs'])} runs can show (from none to all of it {numbers})."


def removed_exhibit(runs: pd.DataFrame) -> Exhibit | None:
    """Return what each intervention did to the training text, and how alike a control and what it stands for are."""
    rows = removed_text(runs)
    if rows.empty:
        return None
    table = pd.DataFrame(
        {"construction": rows["filter"], "action": rows["action"], "dose": rows["dose"], "sentences": rows["sentences"],
         "of sentences": rows["sentences"] / rows["of_sentences"], "words": rows["words"],
         "of words": rows["words"] / rows["of_words"], "with the construction": rows["matching_sentences"],
         "same class": rows["same_class"], "words a sentence": rows["removed_words"],
         "of controls": rows["control_words"], "log frequency": rows["removed_log_frequency"],
         "of its controls": rows["control_log_frequency"]}
    )  # fmt: skip
    share, whole = partial(per_cent_text, digits=2), partial(_whole)
    means = ("words a sentence", "of controls")
    cells: dict[str, Cell] = dict.fromkeys(("sentences", "words", "with the construction"), whole)
    cells |= dict.fromkeys(("of sentences", "of words"), share) | {"same class": partial(per_cent_text, digits=1)}
    cells |= dict.fromkeys(means, decimal_text) | dict.fromkeys(("log frequency", "of its controls"), _two)
    return Exhibit(
        "removed-text",
        "What was removed",
        "Sentences and words of the training text that an intervention leaves out or rewrites.",
        table.drop(columns=[name for name in table if table[name].isna().all()]),
        cells=cells,
        definitions={
            "With the construction": "Sentences of the text that have it.",
            "Same class": "Share of controls in the finest class of the sentence that they stand for (source, length, "
            "frequency).",
            "Words a sentence, log frequency": "Means over sentences with the construction, and over their controls.",
        },
    )


def _whole(value: float) -> str:
    return "–" if value != value else f"{value:,.0f}"


def _two(value: float) -> str:
    return "–" if value != value else f"{value:.2f}"
