"""The hierarchical model in sentences: none says more than its interval, none is said of chains that failed."""

import pandas as pd

from analysis.curves.groups import FEW, NO_INTERVAL
from analysis.curves.hierarchical.diagnosis import Diagnosis
from analysis.curves.hierarchical.fit import APART, SAME, Hierarchical
from analysis.exhibits.sentences.acquisition import named
from analysis.exhibits.sentences.curves import in_text, joined, plural, span
from analysis.exhibits.sentences.findings import Finding
from analysis.exhibits.tables.text import direction, interval_text, slope_text, supported_digits

SURE = 0.95  # posterior probability from which a rank is named
LEVELS = ("overall", "phenomenon", "paradigm")
BESIDE = (
    "credible intervals hold given the model, which simulated runs on this page check; report them beside the default "
    "intervals (docs/guides/hierarchical.md)."
)


def hierarchical_findings(of: Hierarchical, unit: str, confidence: float) -> list[Finding]:
    """Return the main results of each curve and difference; only the refusal where the sampler failed.

    `unit`: what sizes count ("words").
    """
    if of.diagnosis.refused:
        return [Finding("hierarchical model", refusal(of.diagnosis))]
    return [
        *([Finding("hierarchical model", BESIDE)] if of.slopes["low"].notna().any() else []),
        *(
            Finding(
                f"{group}, hierarchical model", slope_sentence(rows, of.ranks, unit, confidence), beside_sentence(rows)
            )
            for group, rows in of.slopes.groupby("group", sort=False)
        ),
        *(Finding(f"{row['group']} and {row['other']}, hierarchical model", difference_sentence(row, unit, confidence))
          for _, row in of.differences[of.differences["level"] == "overall"].iterrows()),
    ]  # fmt: skip


def refusal(diagnosis: Diagnosis) -> str:
    """Say that no results are stated, why, and what to do."""
    return f"no results are stated, as the sampler did not converge: {diagnosis.refused}. {_remedy(diagnosis)}"


def _remedy(diagnosis: Diagnosis) -> str:
    if diagnosis.divergences:
        return "Raise analysis.draws; where draws diverge even so, the default intervals are what to report."
    return "Raise analysis.draws before these are printed."


def sampler_sentence(diagnosis: Diagnosis) -> str:
    """Say how well the sampler mixed."""
    if diagnosis.refused:
        return refusal(diagnosis)
    done = f"{diagnosis.chains} chains, {diagnosis.draws:,} draws"
    if diagnosis.caution:
        return f"{done}; short of what is recommended: {diagnosis.caution}. {_remedy(diagnosis)}"
    return f"{done}; R-hat, effective draws and divergences are as recommended (Vehtari et al. 2021)."


def slope_sentence(rows: pd.DataFrame, ranks: pd.DataFrame, unit: str, confidence: float) -> str:
    """Describe one curve's overall slope, its phenomena by direction, and the one that is surely the steepest.

    rows: of the curve in Hierarchical.slopes; ranks: Hierarchical.ranks.
    """
    whole = rows[rows["level"] == "overall"].iloc[0]
    verb = direction(whole["low"], whole["high"])
    rate = _interval(whole["slope"], whole, confidence)
    over = span(whole["from_size"], whole["to_size"], unit)
    unknown = "it is left open" if whole["note"] else "the runs do not show"
    text = f"accuracy {verb} over {over}" if verb else f"{unknown} whether accuracy changes over {over}"
    text += f", {rate}."
    phenomena = rows[rows["level"] == "phenomenon"]
    if len(phenomena) < 2:
        return text + _assumption(whole)
    parts = []
    for verb in ("rises", "falls"):
        names = [row["name"] for _, row in phenomena.iterrows() if direction(row["low"], row["high"]) == verb]
        if names:
            parts.append(f"{verb} in {plural(len(names), 'phenomenon')} of {phenomena['low'].notna().sum()}")
    if parts:
        text += f" It {joined(parts)} (each by its own interval)."
    without = int(phenomena["low"].isna().sum())
    if without and not whole["note"]:
        text += f" {plural(without, 'phenomenon')} {'has' if without == 1 else 'have'} no interval."
    of = ranks[(ranks["group"] == whole["group"]) & (ranks["level"] == "phenomenon") & (ranks["rank"] == 1)]
    first = {by: rows.loc[rows["probability"].idxmax()] for by, rows in of.groupby("by")}
    for by, what in (("slope", "the steepest"), ("acquisition", "acquired first")):
        if by in first and first[by]["probability"] >= SURE:
            text += f" {in_text(first[by]['name']).capitalize()} is {what} with probability {_share(first[by])}."
    return text + _assumption(whole)


def _assumption(row: pd.Series) -> str:
    reasons = row["caution"].split("; ") if row["caution"] else []
    text = "".join(
        f" This assumes that runs differ alike at all sizes, or evenly more or less, which {reason} hardly show."
        for reason in reasons if reason != FEW
    )  # fmt: skip
    return text + (f" {FEW.capitalize()}, so this rests on what the model expects." if FEW in reasons else "")


def _share(row: pd.Series) -> str:
    return f"{min(row['probability'], 0.999):.2f}".removeprefix("0") if row["probability"] < 0.995 else "above .99"


def beside_sentence(rows: pd.DataFrame) -> str:
    """Say in how many units the credible interval and the default one lead to different statements, and which.

    rows: of one curve in Hierarchical.slopes; "" where it has no credible intervals.
    """
    phenomena = rows[rows["level"] == "phenomenon"]
    if len(phenomena) and (phenomena["paradigms"] == 1).all():  # the same units again, as in a table by phenomenon
        rows = rows[rows["level"] != "paradigm"]
    if rows["low"].isna().all():
        return ""
    known = rows[rows["default_low"].notna() & rows["low"].notna()]
    if known.empty:
        return "The default analysis has no intervals to compare with."
    counted = joined([plural(int((known["level"] == level).sum()), "curve" if level == "overall" else level)
                      for level in LEVELS if (known["level"] == level).any()])  # fmt: skip
    other = known[known["beside"] != SAME]
    if other.empty:
        return f"Every interval says the same of the direction as the default one ({counted})."
    names = {level: list(other.loc[other["level"] == level, "name"]) for level in LEVELS}
    parts = [
        "the whole" if level == "overall" else f"{plural(len(of), level)} ({named(of)})"
        for level, of in names.items() if of
    ]  # fmt: skip
    text = f"Of {counted}, {plural(len(other), 'interval')} disagree{'s' * (len(other) == 1)} with the default one: "
    text += f"{joined(parts)}."
    apart = int((other["beside"] == APART).sum())
    return text + (
        f" {plural(apart, 'pair')} of intervals {'has' if apart == 1 else 'have'} no value in common." * (apart > 0)
    )


def difference_sentence(row: pd.Series, unit: str, confidence: float) -> str:
    """Compare the overall slopes of two curves over the sizes of both; row: of Hierarchical.differences."""
    verb = direction(row["low"], row["high"])
    if verb == "falls":
        row = row.copy()
        row[["difference", "low", "high"]] = -row[["difference", "high", "low"]].to_numpy()
    rate, over = _interval(row["difference"], row, confidence), span(row["from_size"], row["to_size"], unit)
    if not verb:
        return f"it is open whether their slopes differ over {over}, {rate}.{_assumption(row)}"
    steeper, other = (row["group"], row["other"]) if verb == "rises" else (row["other"], row["group"])
    return f"the slope of {steeper} is above that of {other} over {over}, {rate}.{_assumption(row)}"


def predictive_sentence(rows: pd.DataFrame, quantity: str, confidence: float) -> str:
    """Say how many runs, or spreads between runs, look like those that the model simulates.

    rows: of one curve and quantity in Hierarchical.predictive.
    """
    inside = int(rows["inside"].sum())
    if quantity == "accuracy":
        runs = int(rows["runs"].sum())
        return (
            f"the overall accuracy of {inside} of {plural(runs, 'run')} lies within {confidence:.0%} of simulated runs."
        )
    return (
        f"the deviation between the runs of a size lies within {confidence:.0%} of simulated ones at {inside} of "
        f"{plural(len(rows), 'size')}."
    )


def _interval(value: float, row: pd.Series, confidence: float) -> str:
    digits = supported_digits(row["low"], row["high"])
    slope, both = slope_text(value, digits=digits), interval_text(row["low"], row["high"], digits=digits)
    if row["note"]:
        return f"{slope} per doubling, without an interval ({row['note'].removeprefix(NO_INTERVAL)})"
    return f"{slope} per doubling ({confidence:.0%} credible interval {both})"
