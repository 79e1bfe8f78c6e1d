"""Findings about interventions, and the paragraph on how they were compared.

A sentence says no more than its interval: "lower" or "higher" needs a p value after Holm's correction and an interval
without 0, "equivalent" a test of equivalence and an interval within its margin; anything else is no change that so many
runs can show.
"""

import math

import pandas as pd

from analysis.config import CurvesConfig
from analysis.curves.ablations.ablations import Ablations, of_comparison
from analysis.curves.ablations.effects import ALL_SIZES, FEW_DIFFERING
from analysis.curves.ablations.matching import CONTROL_FULL, DIRECT, SAME, SCOPE, TREATMENT_CONTROL, TREATMENT_FULL
from analysis.curves.p_values import ALPHA
from analysis.exhibits.sentences.curves import plural
from analysis.exhibits.sentences.findings import Finding, p_is
from analysis.exhibits.tables.text import accuracy_text, interval_text, per_cent_text, slope_text, supported_digits

OTHER_TEXT = {
    TREATMENT_CONTROL: "the matched control", TREATMENT_FULL: "the full text", CONTROL_FULL: "the full text",
}  # fmt: skip


def ablation_findings(ablations: Ablations, config: CurvesConfig) -> list[Finding]:
    """Return what each intervention changes, then if matched controls differ from the full text."""
    rows = ablations.differences[ablations.differences["over"] == ALL_SIZES]
    found = []
    for group, other in ablations.primary:
        shares = of_comparison(ablations.shares, group, other)
        found.append(Finding(group, *_treatment(of_comparison(rows, group, other), shares, config)))
    for comparison in ablations.comparisons:
        if comparison.kind == CONTROL_FULL:
            of = of_comparison(rows, comparison.group, comparison.other)
            whole = of[of["level"] == "overall"].iloc[0]
            found.append(Finding(comparison.group, f"{_runs(whole)}: {_effect(whole, 'overall', config)}."))
    return found


def _treatment(rows: pd.DataFrame, shares: pd.DataFrame, config: CurvesConfig) -> tuple[str, str]:
    """Describe a treatment: the paradigms that test the construction; what survives of them, and the others."""
    units = rows[rows["level"] == SCOPE]
    if units.empty:
        units = rows[rows["level"] == "overall"]
    first = units.iloc[0]
    text = f"{_runs(first)}: {_effect(first, _where(first), config)}."
    details = [_survival(shares, first["kind"], config.confidence)] if first["name"] == DIRECT else []
    others = [_effect(row, _where(row), config) for _, row in units.iloc[1:].iterrows()]
    details += [f"{other[:1].upper()}{other[1:]}." for other in others]
    return text, " ".join(filter(None, details))


def _runs(row: pd.Series) -> str:
    """Describe what is compared: "against the matched control (9 pairs of runs, 3 sizes)"."""
    runs = f"{plural(int(row['pairs']), 'pair')} of runs" if row["pairs"] else f"{int(row['runs'])} runs, not in pairs"
    without = "; it has no matched control" if row["kind"] == TREATMENT_FULL else ""
    return f"against {OTHER_TEXT[row['kind']]} ({runs}, {plural(int(row['sizes']), 'size')}{without})"


def _where(row: pd.Series) -> str:
    if row["level"] != SCOPE:
        return str(row["name"])
    paradigms = "one paradigm" if row["paradigms"] == 1 else plural(int(row["paradigms"]), "paradigm")
    if row["name"] == DIRECT:
        return f"in the {paradigms} that {'tests' if row['paradigms'] == 1 else 'test'} the construction"
    further, of = ("further ", "the same phenomena") if row["name"] == SAME else ("", "other phenomena")
    return f"in the {further}{paradigms} of {of}"


def _effect(row: pd.Series, where: str, config: CurvesConfig) -> str:
    """Say what a difference shows; `where`: its unit."""
    low, high, margin = row["low"], row["high"], config.ablation_margin
    means = f"{accuracy_text(row['first'])}, {accuracy_text(row['second'])} of {OTHER_TEXT[row['kind']]}"
    if math.isnan(low):
        reason = f" ({row['note']})" if row["note"] else ""
        change = slope_text(row["difference"], digits=3)
        return f"{where}, accuracy is {means}: {change} without an interval{reason}, so that nothing shows a change"
    digits = supported_digits(low, high)
    interval = f"{config.confidence:.0%} interval {interval_text(low, high, digits=digits)}"
    if row["differing"] < FEW_DIFFERING:
        interval += f", wide as only {plural(int(row['differing']), 'judgement')} of theirs differ"
    change = slope_text(row["difference"], digits=digits)
    if row["p_holm"] < ALPHA and not low <= 0 <= high:
        verb = "lower" if high < 0 else "higher"
        size = change.lstrip("+-")
        tests = f", {p_is(row['p_holm'])}"
        tests += f" after Holm's correction for {row['tests']}" if row["tests"] > 1 else ""
        text = f"{where}, accuracy is {verb} by {size} ({interval}{tests}; {means})"
        if row["p_equivalent"] < ALPHA and -margin < low and high < margin:
            text += f", which is within {_margin(margin)}"
        return text
    if row["p_equivalent"] < ALPHA and -margin < low and high < margin:
        test = f"equivalence test, {p_is(row['p_equivalent'])}"
        return f"{where}, accuracy is equivalent within {_margin(margin)} ({change}, {interval}; {test})"
    runs = f"{plural(int(row['pairs']), 'pair')} of runs" if row["pairs"] else f"{int(row['runs'])} runs"
    holm = "" if low <= 0 <= high else f"; {p_is(row['p_holm'])} after Holm's correction for {row['tests']}"
    return f"{where}, no change that {runs} can show ({change}, {interval}{holm}; {means})"


def _margin(margin: float) -> str:
    return accuracy_text(margin).rstrip("0")


def _survival(shares: pd.DataFrame, kind: str, confidence: float) -> str:
    """Describe the share of what was learned of the construction that survives; "" where there is none."""
    row = shares[(shares["over"] == ALL_SIZES) & (shares["level"] == SCOPE) & (shares["name"] == DIRECT)]
    if row.empty:
        return ""
    share, low, high, note = row.iloc[0][["share", "low", "high", "note"]]
    learned = f"what runs on {OTHER_TEXT[kind]} learned above {row['baseline'].iloc[0]}"
    if math.isnan(low):
        return f"No share of {learned} can be given: {note}." if note else ""
    limits = f"{confidence:.0%} interval [{low:.0%}, {high:.0%}], Fieller"
    return f"Of {learned}, {per_cent_text(share, digits=0)} survives ({limits})."


def ablation_methods(ablations: Ablations, config: CurvesConfig) -> list[str]:
    """Describe how treatments, controls and the full text were compared, for a paper."""
    paired = ablations.differences["pairs"] > 0
    how = "pairs of runs of one size and seed, whose samples come from one permutation and whose models start alike"
    if not paired.all():
        groups = "independent groups of runs (Welch)"
        how = f"{how}; those without such pairs as {groups}" if paired.any() else groups
    return [
        f"Interventions are compared as {how}: {config.confidence:.0%} t intervals on differences of accuracy, for new "
        "samples and initialisations on these pairs, each size with its own spread where it has three runs; over all "
        "sizes, sizes weigh equally. With new pairs too, the variance over pairs within paradigms is added. P values "
        "are corrected by Holm's method within the comparisons of one kind and units of one level. Equivalence: two "
        f"one-sided tests with a margin of {_margin(config.ablation_margin)} (analysis.ablation_margin). The share "
        "that survives is (treatment - chance) / (control - chance), its interval by Fieller's theorem."
    ]
