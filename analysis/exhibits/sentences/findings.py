"""Findings in sentences, computed from tables; a sentence says no more than its interval.

"rises" stands where the interval of a slope lies above 0 and "falls" where it lies below; otherwise "N runs
do not show a change". Two sizes are a difference. "Steepest" needs intervals that part, "differ" a corrected p value,
and "do not differ" an equivalence test.
"""

import math
from typing import NamedTuple

import pandas as pd
from scipy.stats import pearsonr

from analysis.curves.fit import ALL_PAIRS, UNK_FREE, Curves
from analysis.curves.groups import NO_INTERVAL
from analysis.curves.intervals import Interval
from analysis.curves.p_values import ALPHA
from analysis.exhibits.sentences.curves import in_text, joined, plural, span
from analysis.exhibits.tables.text import accuracy_text, direction, interval_text, slope_text, supported_digits
from analysis.study.judgements import sized

UNCORRECTED = "not corrected for multiple comparisons"
LISTED = 6  # phenomena that a sentence names, unless they fall: those are all named
STEEPEST = 3  # phenomena that may be steepest together
LEAST_NAMES = 4  # phenomena from which slopes are ranked and correlated
COMPARED = 6  # differences between curves that sentences tell; the table has all
CHANCE = 0.5  # accuracy of guesses


class Finding(NamedTuple):
    """What may be said about a curve, or about several.

    text: of the whole benchmark. details: of its phenomena.
    """

    subject: str
    text: str
    details: str = ""

    @property
    def full(self) -> str:
        return " ".join(filter(None, (self.text, self.details)))


def findings(curves: Curves, unit: str, confidence: float, log_odds: pd.DataFrame | None = None) -> list[Finding]:
    """Return the main results on all pairs, by curve.

    `unit`: what sizes count ("words"). `confidence`: of the intervals in `curves` and in `log_odds`, the slopes of
    analysis.curves.mixed_models, which a sentence has to mention where they do not agree with it.
    """
    slopes = curves.slopes[curves.slopes["pairs"] == ALL_PAIRS]
    at = curves.accuracies
    at = at[at["pairs"] == ALL_PAIRS].sort_values("words")
    interval = f"{confidence:.0%} interval"
    free = curves.slopes[(curves.slopes["pairs"] == UNK_FREE) & (curves.slopes["level"] == "overall")]
    of_curves = []
    for group, rows in slopes.groupby("group", sort=False):
        text, details = _curve(rows, at[at["group"] == group], free[free["group"] == group], unit, interval)
        doubt = _doubt(rows, log_odds[log_odds["group"] == group], interval) if log_odds is not None else ""
        of_curves.append(Finding(str(group), " ".join(filter(None, (text, doubt))), details))
    return of_curves


def _doubt(rows: pd.DataFrame, log_odds: pd.DataFrame, interval: str) -> str:
    """Say that the overall slope in log-odds does not lead to the same conclusion; "" if it does or is not known."""
    whole, other = (table[table["level"] == "overall"] for table in (rows, log_odds))
    limits = [*whole[["low", "high"]].to_numpy(), *other[["low", "high"]].to_numpy()]
    if len(limits) < 2 or not direction(*limits[0]) or math.isnan(limits[1][0]):
        return ""
    (low, high), change = limits[1], float(other["slope"].iloc[0])
    if direction(low, high) == direction(*limits[0]):
        return ""
    slope, both = _numbers(change, low, high)
    holds = "which holds 0" if low <= 0 <= high else "the other direction"
    return (
        f"The slope in log-odds (interval over {other['over'].iloc[0]}) does not confirm this: {slope} per doubling "
        f"({interval} {both}, {holds})."
    )


def _curve(rows: pd.DataFrame, at: pd.DataFrame, free: pd.DataFrame, unit: str, interval: str) -> tuple[str, str]:
    """Describe one curve, and its phenomena.

    `rows` of Curves.slopes, `free` without <unk>, `at` of Curves.accuracies, smallest size first.
    """
    whole = rows[rows["level"] == "overall"].iloc[0]
    phenomena = rows[rows["level"] == "phenomenon"]
    of_whole = at[at["level"] == "overall"]
    first, last = (of_whole[of_whole["size"] == whole[end]].iloc[0] for end in ("from_size", "to_size"))
    small, large = (sized(end["size"], unit) for end in (first, last))
    before, after = f"{accuracy_text(first['accuracy'])} at {small}", f"{accuracy_text(last['accuracy'])} at {large}"
    if math.isnan(whole["slope"]):
        return f"overall accuracy {before}; {whole['note']}.", ""
    over = span(first["size"], last["size"], unit)
    if whole["sizes"] == 2:
        doublings = math.log2(last["words"] / first["words"])
        overall = _difference(whole, doublings, f"{before}, {after}", interval)
        without = _without_unk(free, doublings, "", ("is higher by", "is lower by"), interval)
        verbs = f"is higher at {large}", f"is lower at {large}"
        details = _by_direction(phenomena, verbs, interval)
        return " ".join([overall, *without]), " ".join([*details, *_below_chance(phenomena, at, verbs[0])])
    ends = f"{before}, {after}" + (", below chance at all sizes" if (of_whole["accuracy"] < CHANCE).all() else "")
    overall = _slope(whole, over, ends, interval)
    without = _without_unk(free, 1, " per doubling", ("rises by", "falls by"), interval)
    details = _by_direction(phenomena, ("rises", "falls"), interval) + _below_chance(phenomena, at, "rises")
    details += [*_steepest(phenomena, interval), *_rejected(phenomena, over)]
    return " ".join([overall, *without]), " ".join(details)


def _slope(whole: pd.Series, span: str, ends: str, interval: str) -> str:
    """Describe the overall slope; `span`: its range of sizes."""
    slope, limits = _numbers(whole["slope"], whole["low"], whole["high"])
    rate = f"{slope} per doubling of the text"
    if not limits:
        text = f"overall accuracy: {ends}; {rate} over {span}, without an interval"
        return f"{text}{_reason(whole)}, {_open(whole)}."
    verb = direction(whole["low"], whole["high"])
    if verb:
        text = f"overall accuracy {verb} over {span}: {rate} ({interval} {limits}); {ends}."
    else:
        not_shown = _not_shown(whole["runs"], "change")
        text = f"overall accuracy: {not_shown} over {span} ({rate}, {interval} {limits}); {ends}."
    p = whole["lack_of_fit"]
    if p < ALPHA:
        text += (
            f" A straight line is rejected (lack of fit, {p_is(p)}), so that {slope} is an average over {span}, not "
            "the rate at any size."
        )
    return text


def _difference(whole: pd.Series, doublings: float, ends: str, interval: str) -> str:
    """Describe the overall difference between two sizes, `doublings` apart."""
    change, limits = _numbers(*(float(whole[name]) * doublings for name in ("slope", "low", "high")))
    if not limits:
        return (
            f"overall accuracy: {ends}: a difference of {change} without an interval{_reason(whole)}, {_open(whole)}."
        )
    if direction(whole["low"], whole["high"]):
        return f"overall accuracy: {ends}: a difference of {change} ({interval} {limits})."
    not_shown = _not_shown(whole["runs"], "difference")
    return f"overall accuracy: {ends}: {not_shown} ({change}, {interval} {limits})."


def _without_unk(free: pd.DataFrame, doublings: float, per: str, verbs: tuple[str, str], interval: str) -> list[str]:
    """Describe the overall change on the pairs without <unk>, where only some pairs hold it; `verbs`: up, down."""
    sentences = []
    for _, row in free.iterrows():
        low, high = float(row["low"]) * doublings, float(row["high"]) * doublings
        change, limits = _numbers(float(row["slope"]) * doublings, low, high)
        pairs = f"On the {int(row['n_pairs']):,} pairs without <unk>"
        if not limits:
            sentences.append(f"{pairs}: {change}{per}, without an interval.")
        elif direction(low, high):
            verb = verbs[0] if low > 0 else verbs[1]
            sentences.append(f"{pairs} it {verb} {change.lstrip('+-')}{per} ({interval} {limits}).")
        else:
            not_shown = _not_shown(row["runs"], "change")
            sentences.append(f"{pairs}, {not_shown} ({change}{per}, {interval} {limits}).")
    return sentences


def _not_shown(runs: float, change: str) -> str:
    return f"{plural(int(runs), 'run')} {'does' if runs == 1 else 'do'} not show a {change}"


def _open(whole: pd.Series) -> str:
    """Say what follows where there is no interval: runs show nothing, or limits that runs give are left out."""
    left_out = whole["note"].startswith(NO_INTERVAL)
    return "so it is left open whether it changes" if left_out else "so that nothing shows whether it changes"


def _reason(whole: pd.Series) -> str:
    return f" ({whole['note'].removeprefix(NO_INTERVAL)})" if whole["note"] else ""


def _numbers(value: float, low: float, high: float) -> tuple[str, str]:
    """Format a slope or difference and its limits with the digits that they support; no limits where unknown."""
    digits = 3 if math.isnan(low) else supported_digits(low, high)
    return slope_text(value, digits=digits), interval_text(low, high, dash="", digits=digits)


def _by_direction(phenomena: pd.DataFrame, verbs: tuple[str, str], interval: str) -> list[str]:
    """Name the phenomena in which accuracy goes up, goes down, or shows no change; `verbs`: up, down."""
    known = phenomena[phenomena["low"].notna()].sort_values("slope", ascending=False)
    if known.empty:
        return []
    rising, falling = known[known["low"] > 0], known[known["high"] < 0]
    flat = known.drop(rising.index).drop(falling.index)
    by = f" (by {interval}s, {UNCORRECTED})."
    unknown = phenomena[phenomena["low"].isna()]
    have = "has" if len(unknown) == 1 else "have"
    more = [f"{plural(len(unknown), 'phenomenon')} {have} no interval{_named(unknown)}."] if len(unknown) else []
    directed = [(verb, rows) for verb, rows in zip(verbs, (rising, falling), strict=True) if len(rows)]
    if not directed:
        which = f"any of the {plural(len(known), 'phenomenon')}" if len(known) > 1 else "the one phenomenon"
        which += " with an interval" if more else ""
        return [f"{_not_shown(flat['runs'].max(), 'change')} in {which}{_named(flat)}{by}", *more]
    (verb, rows), *other = directed
    of = plural(len(known), "phenomenon") + (" with an interval" if more else "")
    parts = [f"Accuracy {verb} in {len(rows)} of {of}{_named(rows)}"]
    parts += [f"it {verb} in {len(rows)}{_named(rows)}" for verb, rows in other]
    if len(flat):
        others = "one" if len(flat) == 1 else len(flat)
        parts.append(f"in the other {others}{_named(flat)}, {_not_shown(flat['runs'].max(), 'change')}")
    return [f"{'; '.join(parts)}{by}", *more]


def _named(rows: pd.DataFrame) -> str:
    """Name phenomena in brackets unless they are too many; falls are all named."""
    return f" ({_names(rows)})" if (rows["high"] < 0).all() or len(rows) <= LISTED else ""


def _below_chance(phenomena: pd.DataFrame, at: pd.DataFrame, verb: str) -> list[str]:
    """Name the phenomena that go up (`verb`) below chance, by means of all sizes; `at`: of Curves.accuracies."""
    highest = at[at["level"] == "phenomenon"].groupby("name")["accuracy"].max()
    below = phenomena[(phenomena["low"] > 0) & phenomena["name"].isin(highest.index[highest < CHANCE])]
    if below.empty:
        return []
    return [f"Mean accuracy in {_names(below)} is below chance (.5) at all sizes, though it {verb}."]


def _names(rows: pd.DataFrame) -> str:
    return joined([in_text(name) for name in rows["name"]])


def _steepest(phenomena: pd.DataFrame, interval: str) -> list[str]:
    """Name the phenomena that are steepest by their ranks' intervals and whose own intervals lie above all others.

    Ranks are intervals of all phenomena at once; few runs leave them open where single intervals part.
    """
    known = phenomena[phenomena["low"].notna()].sort_values("slope", ascending=False)
    if len(known) < LEAST_NAMES:
        return []
    for number in range(1, STEEPEST + 1):
        top, others = known.iloc[:number], known.iloc[number:]
        parted = top["low"].min() > max(0, others["high"].max())
        if parted and top["rank_high"].max() <= number:
            are = "its interval lies" if number == 1 else "their intervals lie"
            names = joined([f"{in_text(row['name'])} ({_with_limits(row, interval)})" for _, row in top.iterrows()])
            return [f"Steepest: {names}; {are} above all others."]
    return []


def _with_limits(row: pd.Series, interval: str) -> str:
    slope, limits = _numbers(row["slope"], row["low"], row["high"])
    return f"{slope}, {interval} {limits}"


def _rejected(phenomena: pd.DataFrame, span: str) -> list[str]:
    """Name the phenomena whose accuracies do not lie on a line."""
    bent = phenomena[phenomena["lack_of_fit"] < ALPHA]
    if bent.empty:
        return []
    are = "its slope is an average" if len(bent) == 1 else "their slopes are averages"
    return [
        f"A straight line is rejected (lack of fit, p < {ALPHA:g}, {UNCORRECTED}) in {_names(bent)}: {are} over "
        f"{span}.".replace("0.05", ".05")
    ]


def correlation(slopes: pd.DataFrame, confidence: float) -> list[Finding]:
    """Describe how the slopes of two curves correlate over phenomena, given two curves of three sizes or more.

    `slopes`: Curves.slopes.
    """
    slopes = slopes[(slopes["pairs"] == ALL_PAIRS) & (slopes["level"] == "phenomenon")]
    phenomena = slopes[(slopes["sizes"] > 2) & (slopes["method"] != Interval.NONE)]
    wide = phenomena.pivot(index="name", columns="group", values="slope").dropna()
    if wide.shape[1] != 2 or len(wide) < LEAST_NAMES or not (wide.std() > 0).all():
        return []
    result = pearsonr(*wide.to_numpy().T)
    low, high = (float(limit) for limit in result.confidence_interval(confidence))
    limits = f"r = {_r(result.statistic)}, {confidence:.0%} interval [{_r(low)}, {_r(high)}]"
    over = f"over {plural(len(wide), 'phenomenon')}"
    result_text = (
        f"{over} their slopes correlate" if low > 0 or high < 0 else f"{over} it is open whether their slopes correlate"
    )
    return [Finding(joined([str(group) for group in wide]), f"{result_text} ({limits}).")]


def comparisons(differences: pd.DataFrame, slopes: pd.DataFrame, unit: str, confidence: float) -> list[Finding]:
    """Compare the overall slopes of every two curves in sentences, the most certain first.

    `differences`: compare_slopes; `slopes`: Curves.slopes, for the curves that are not straight.
    """
    rows = differences[differences["level"] == "overall"].sort_values("p_holm")
    tested = rows["p_holm"].notna()
    rows, number = rows[tested | rows["note"].str.startswith(NO_INTERVAL)], plural(int(tested.sum()), "comparison")
    whole = slopes[(slopes["pairs"] == ALL_PAIRS) & (slopes["level"] == "overall")]
    bent = set(whole.loc[whole["lack_of_fit"] < ALPHA, "group"])
    sentences = [
        Finding(f"{row['group']} and {row['other']}", _compared(row, bent, number, unit, f"{confidence:.0%} interval"))
        for _, row in rows.head(COMPARED).iterrows()
    ]
    if len(rows) > COMPARED:
        further = plural(len(rows) - COMPARED, "further comparison")
        sentences.append(Finding("And", f"{further}, less sure, in the table of slopes compared."))
    return sentences


def _compared(row: pd.Series, bent: set[str], number: str, unit: str, interval: str) -> str:
    """Compare two slopes over the sizes that both curves have; `bent`: groups whose line is rejected.

    "differ" needs Holm's p value and an interval without 0; "do not differ" the equivalence test and an interval within
    its margin: two one-sided tests at 5% go with a 90% interval, and the one shown may reach further.
    """
    difference, limits = _numbers(row["difference"], row["low"], row["high"])
    numbers = f"{difference} per doubling"
    if limits:
        numbers += f" ({interval} {limits}; {p_is(row['p_holm'])} after Holm's correction for {number})"
    else:
        numbers += f", without an interval{_reason(row)}"
    sizes = span(row["from_size"], row["to_size"], unit)
    if row["sizes"] == 2:
        over, what = f"from {sizes}, the two sizes that both have", "changes in overall accuracy"
    else:
        over, what = f"over the {int(row['sizes'])} sizes that both have ({sizes})", "overall slopes"
    within = -row["margin"] < row["low"] and row["high"] < row["margin"]
    if row["p_holm"] < ALPHA and direction(row["low"], row["high"]):
        text = f"their {what} differ {over}: {numbers}."
    elif row["p_equivalent"] < ALPHA and within:
        text = (
            f"their {what} do not differ by more than {accuracy_text(row['margin'])} per doubling {over} "
            f"(equivalence test, {p_is(row['p_equivalent'])}): {numbers}."
        )
    else:
        text = f"it is {'' if limits else 'left '}open whether their {what} differ {over}: {numbers}."
    curved = [group for group in (row["group"], row["other"]) if group in bent]
    if curved and row["sizes"] > 2:
        text += (
            f" A straight line is rejected for {joined(curved)}, so this compares average slopes over {sizes}, not the "
            "rates at any size."
        )
    return text


def _r(value: float) -> str:
    return f"{value:.2f}".replace("0.", ".", 1)


def p_is(value: float) -> str:
    """Format a p value in a sentence: p = .034; p < .001."""
    return "p < .001" if value < 0.001 else f"p = {value:.3f}".replace("0.", ".", 1)
