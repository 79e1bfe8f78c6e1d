"""The hierarchical model in the report: slopes beside the default, orders, differences, simulated runs, the sampler."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pandas as pd

from analysis.curves.fit import ALL_PAIRS
from analysis.curves.groups import FEW
from analysis.curves.hierarchical.counts import FEW_RUNS
from analysis.curves.hierarchical.diagnosis import Diagnosis
from analysis.curves.hierarchical.fit import Hierarchical
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.style import Chart
from analysis.exhibits.sentences.curves import without_limits
from analysis.exhibits.sentences.hierarchical import (
    beside_sentence,
    difference_sentence,
    predictive_sentence,
    sampler_sentence,
    slope_sentence,
)
from analysis.exhibits.tables.text import (
    as_it_is,
    count,
    decimal_text,
    probability_text,
    signed_text,
    slope_text,
    title,
)
from analysis.sections.hierarchical.figures import predictive_chart, ranks_chart, shrinkage_chart, slopes_chart
from analysis.sections.section import Report, Section, contributes
from pairscale.sizes import readable_size

QUESTION = (
    "for new samples of text and initialisations, on these pairs, as the default interval for these pairs; slopes are "
    "those of lines through the accuracies expected at the sizes, which weigh equally"
)
_RANKED = {"slope": "Steepest first", "acquisition": "Acquired first"}


@contributes(57)
def hierarchical(section: Section, report: Report) -> list[Exhibit | None]:
    of = section.hierarchical
    if of is None:
        return []
    if of.diagnosis.refused:
        return [sampler_exhibit(of.diagnosis)]
    return [
        slopes_exhibit(of, section.judged.unit, report.confidence),
        ranks_exhibit(of, report.confidence),
        differences_exhibit(of, section.judged.unit, report.confidence),
        predictive_exhibit(section, of, report.confidence),
        sampler_exhibit(of.diagnosis),
    ]


def _unit(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that name units: phenomenon ("overall" for the whole) and paradigm."""
    whole, paradigm = rows["level"] == "overall", rows["level"] == "paradigm"
    phenomenon = rows["name"].where(~paradigm, rows.get("phenomenon", ""))
    return pd.DataFrame(
        {"phenomenon": phenomenon.where(~whole, "overall"), "paradigm": rows["name"].where(paradigm, "")}
    )


def _sizes(rows: pd.DataFrame) -> list[str]:
    return [f"{readable_size(a)} to {readable_size(b)}" for a, b in rows[["from_size", "to_size"]].to_numpy()]


def slopes_exhibit(of: Hierarchical, unit: str, confidence: float) -> Exhibit:
    """Return the slopes of all units beside the default ones, by curve."""
    rows = of.slopes
    table = pd.DataFrame({"curve": rows["group"], **_unit(rows), "sizes": _sizes(rows)}).assign(
        slope=rows["slope"], low=rows["low"], high=rows["high"], rises=rows["rises"], default=rows["default"],
        default_low=rows["default_low"], default_high=rows["default_high"], beside=rows["beside"],
        **_remarks(rows),
    )  # fmt: skip
    charts: dict[str, Callable[..., Chart]] = {}
    for number, (group, part) in enumerate(rows.groupby("group", sort=False)):
        shown = part[part["level"] != "paradigm"].sort_values(["level", "slope"], ascending=[False, False])
        shown = pd.concat([shown[shown["level"] == "overall"], shown[shown["level"] != "overall"]])
        default = {"slope": shown["default"], "low": shown["default_low"], "high": shown["default_high"]}
        intervals = shown.assign(group="hierarchical"), shown.assign(group="default", **default)
        both = pd.concat(of_one[["name", "group", "slope", "low", "high"]] for of_one in intervals)
        both = both.assign(name=both["name"].map(title))
        charts[f"phenomena-{number}"] = partial(slopes_chart, both, title=str(group))
        paradigms = part[(part["level"] == "paradigm") & part["default"].notna()]
        if len(paradigms) > 2:
            charts[f"paradigms-{number}"] = partial(shrinkage_chart, paradigms, title=f"{group}: paradigms")
    return Exhibit(
        "hierarchical-slopes",
        "Slopes in one hierarchical model",
        "Accuracy per doubling of the text in one binomial model of all runs and paradigms, in which paradigms are "
        "drawn to those of their phenomenon and phenomena to each other, the more the less they vary; and the default "
        + " ".join(["slopes of the same sizes.", *without_limits(rows)]),
        table,
        cells={"slope": slope_text, "default": slope_text, "rises": probability_text, "beside": as_it_is,
               "caution": as_it_is, "note": as_it_is},
        heads={"rises": "P(rises)", "beside": "beside the default"},
        intervals={
            f"{confidence:.0%} credible interval": ("slope", "low", "high"),
            "default interval": ("default", "default_low", "default_high"),
        },
        charts=charts,
        takeaways=[
            takeaway
            for group, part in rows.groupby("group", sort=False)
            for takeaway in (
                (str(group), slope_sentence(part, of.ranks, unit, confidence)),
                (str(group), beside_sentence(part)),
            )
            if takeaway[1]
        ],
        definitions={
            "Credible interval": f"Holds the slope with this probability, given the model: {QUESTION}.",
            **cautions_explained(rows),
            "P(rises)": "The probability that the slope is above 0.",
            "Beside the default": "Another direction: only one of both holds 0, or they lie on different sides of it.",
        },
        filtered=True,
        optional=["P(rises)", "note"],
    )  # fmt: skip


def _remarks(rows: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the columns of cautions and of notes, if rows of slopes, or of differences, have any."""
    return {name: rows[name] for name in ("caution", "note") if rows[name].any()}


def cautions_explained(rows: pd.DataFrame) -> dict[str, str]:
    """Return what cautions in rows of slopes, or of differences, and reasons for which they have no interval, mean."""
    meaning = (
        "The model expects runs of all sizes to differ about as much, or evenly more or less with size, which few runs "
        "hardly show. Where those of one size differ several times as much, its intervals contain the truth less often "
        "than they say: the default intervals are for such studies."
    )
    drawn = (
        "A unit with few wrong, or right, judgements is drawn to the others, and its interval is mostly what the model "
        "expects. Near a ceiling such intervals contained the truth in more studies than they say."
    )
    reasons = rows["caution"] + rows["note"]
    few, runs = (reasons.str.contains(reason, regex=False) for reason in (FEW, FEW_RUNS))
    return ({"Few runs": meaning} if runs.any() else {}) | ({"Few judgements": drawn} if few.any() else {})


def rank_summary(ranks: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Return group, by, level, name, mean rank, rank_low, rank_high (its central interval) and first (probability)."""
    rows = []
    for keys, part in ranks.groupby(["group", "by", "level", "name"], sort=False):
        below = part["probability"].cumsum().to_numpy()
        tail = (1 - confidence) / 2
        low, high = (
            part["rank"].iloc[min(int(np.searchsorted(below, at - 1e-9)), len(part) - 1)] for at in (tail, 1 - tail)
        )
        mean = float((part["rank"] * part["probability"]).sum())
        rows.append([*keys, mean, int(low), int(high), float(part["probability"].iloc[0])])
    return pd.DataFrame(rows, columns=["group", "by", "level", "name", "rank", "rank_low", "rank_high", "first"])


def ranks_exhibit(of: Hierarchical, confidence: float) -> Exhibit | None:
    """Return the ranks of phenomena and paradigms, by slope and by the amount of text that acquires them."""
    if of.ranks.empty:
        return None
    rows = rank_summary(of.ranks, confidence)
    phenomena = of.slopes.set_index(["group", "level", "name"])["phenomenon"]
    rows = rows.assign(phenomenon=[phenomena[group, level, name] for group, _, level, name in _keys(rows)])
    rows = rows.sort_values(["level"], key=lambda level: level != "phenomenon", kind="stable")
    table = pd.DataFrame({"curve": rows["group"], **_unit(rows), "by": rows["by"], "rank": rows["rank"],
                          "first": rows["first"]}).reset_index(drop=True)  # fmt: skip
    table["limits"] = rows["rank_low"].to_numpy()
    charts: dict[str, Callable[..., Chart]] = {}
    for (group, by), part in of.ranks[of.ranks["level"] == "phenomenon"].groupby(["group", "by"], sort=False):
        mean = (part["rank"] * part["probability"]).groupby(part["name"]).sum().sort_values()
        drawn = part.set_index("name").loc[mean.index].reset_index()
        drawn = drawn.assign(name=drawn["name"].map(title))[["name", "rank", "probability"]]
        charts[str(len(charts))] = partial(ranks_chart, drawn, title=f"{group}: {_RANKED[str(by)].lower()}")
    return Exhibit(
        "hierarchical-ranks",
        "Orders in the hierarchical model",
        "The probability of each rank, by slope (1 is the steepest) and by the amount of text from which expected "
        "accuracy stays above chance by analysis.acquisition_margin (1 is acquired first).",
        table,
        cells={"rank": decimal_text, "first": probability_text},
        heads={"rank": "mean rank", "first": "P(first)", "limits": f"{confidence:.0%} of ranks"},
        texts={"limits": [f"{low}–{high}" for low, high in zip(rows["rank_low"], rows["rank_high"], strict=True)]},
        intervals={},
        charts=charts,
        definitions={"Mean rank": "Units that share ranks, such as those that no size suffices for, have each of these "
                                  "with equal probability."},
        filtered=True,
    )  # fmt: skip


def _keys(rows: pd.DataFrame) -> Iterator[tuple[str, str, str, str]]:
    return zip(rows["group"], rows["by"], rows["level"], rows["name"], strict=True)


def differences_exhibit(of: Hierarchical, unit: str, confidence: float) -> Exhibit | None:
    """Return the differences between curves, overall and in phenomena."""
    rows = of.differences[of.differences["level"] != "paradigm"]
    if rows.empty:
        return None
    pair = rows["group"] + " − " + rows["other"]
    table = pd.DataFrame({
        "phenomenon": rows["name"], "slope of": pair, "sizes": _sizes(rows), "difference": rows["difference"],
        "low": rows["low"], "high": rows["high"], "steeper": rows["steeper"],
        **_remarks(rows),
    })  # fmt: skip
    return Exhibit(
        "hierarchical-differences",
        "Differences of slopes in the hierarchical model",
        " ".join([
            "Accuracy per doubling over the sizes that both curves have.",
            *without_limits(rows.assign(pair=pair), "pair"),
        ]),
        table,
        cells={"difference": signed_text, "steeper": probability_text, "caution": as_it_is, "note": as_it_is},
        heads={"steeper": "P(the first is steeper)"},
        intervals={f"{confidence:.0%} credible interval": ("difference", "low", "high")},
        takeaways=[
            (f"{row['group']} and {row['other']}", difference_sentence(row, unit, confidence))
            for _, row in rows[rows["level"] == "overall"].iterrows()
        ],
        definitions={
            "Credible interval": "Runs of both count as independent, also those on the same text.",
            **cautions_explained(rows),
        },
        optional=["note"],
    )  # fmt: skip


def predictive_exhibit(section: Section, of: Hierarchical, confidence: float) -> Exhibit:
    """Return runs that the model simulates, beside those of the study."""
    rows = of.predictive
    seen = section.curves.points
    seen = seen[(seen["pairs"] == ALL_PAIRS) & (seen["level"] == "overall")]
    seen = seen.merge(rows[["group", "size"]].drop_duplicates())  # not the runs that are left out
    charts = {
        str(number): partial(
            predictive_chart, part[part["quantity"] == "accuracy"], seen[seen["group"] == group][["words", "accuracy"]],
            section.judged.unit, title=str(group),
        )
        for number, (group, part) in enumerate(rows.groupby("group", sort=False))
    }  # fmt: skip
    table = pd.DataFrame({
        "curve": rows["group"], "size": rows["size"], "quantity": rows["quantity"], "runs": rows["runs"],
        "observed": rows["observed"], "low": rows["low"], "high": rows["high"], "inside": rows["inside"],
    })  # fmt: skip
    return Exhibit(
        "hierarchical-check",
        "Runs that the model simulates",
        "A posterior predictive check: overall accuracies of simulated runs of this design, and their deviation "
        "between the runs of a size, beside those observed.",
        table,
        cells={"inside": count, "size": readable_size},
        intervals={f"{confidence:.0%} of simulated": ("observed", "low", "high")},
        charts=charts,
        takeaways=[
            (str(group), predictive_sentence(part, str(quantity), confidence))
            for (group, quantity), part in rows.groupby(["group", "quantity"], sort=False)
        ],
        definitions={"Inside": "Runs, or deviations (1 or 0), within these limits."},
    )  # fmt: skip


def sampler_exhibit(of: Diagnosis) -> Exhibit:
    """Return how well the chains mixed."""
    numbers = {
        "chains": f"{of.chains}", "draws": f"{of.draws:,}", "divergences": f"{of.divergences:,}",
        "largest R-hat of slopes": f"{of.r_hat:.3f}", "fewest effective draws of a slope": f"{of.effective:,.0f}",
        "largest R-hat of spreads": f"{of.spread_r_hat:.3f}",
        "fewest effective draws of a spread": f"{of.spread_effective:,.0f}", "seconds": f"{of.seconds:,.0f}",
    }  # fmt: skip
    table = pd.DataFrame({"quantity": list(numbers), "value": list(numbers.values())})
    return Exhibit(
        "hierarchical-sampler",
        "The sampler of the hierarchical model",
        "The no-U-turn sampler of NumPyro; slopes include differences of slopes.",
        table,
        takeaways=[("", sampler_sentence(of))],
        definitions={
            "R-hat": "1 where chains agree in place and in spread, by ranks (Vehtari et al. 2021).",
            "Effective draws": "Independent draws that would know as much: of the middle or a tail, the fewest.",
            "Divergences": "Trajectories that the sampler lost: it may have missed a part of the posterior.",
        },
    )
