"""Formatters of names, numbers and intervals, for tables, figures and sentences."""

import math
import re
from typing import Any

import pandas as pd

_HYPHENATED = ("determiner noun", "subject verb", "filler gap", "left branch", "matrix question", "verb complement")
MOST_DIGITS = 4  # decimal places of a slope or difference
DASH = "–"  # a number that is not known


def title(name: str) -> str:
    """Return a phenomenon's or paradigm's name as people read it: "npi_licensing" -> "NPI licensing"."""
    words = name.replace("_", " ")
    for pair in _HYPHENATED:
        words = words.replace(pair, pair.replace(" ", "-"))
    words = words.replace("control raising", "control/raising")
    words = re.sub(r"\b(npi|np)\b", lambda match: match[0].upper(), words)
    return words[:1].upper() + words[1:]


def with_minus_signs(text: str) -> str:
    """Return a text with minus signs for the hyphens before numbers."""
    return re.sub(r"(?<![\w-])-(?=[.\d])", "\N{MINUS SIGN}", text)


def as_it_is(value: Any) -> str:
    """Return the text of a cell unchanged; nothing for a missing value."""
    return "" if value is None or value != value else str(value)


def yes(value: Any) -> str:
    """Format a truth value: yes, or nothing."""
    return "yes" if value else ""


def accuracy_text(value: float, dash: str = DASH, digits: int = 3) -> str:
    """Format an accuracy as papers do, with at most three digits: .713; 1.000 keeps its 1."""
    return dash if math.isnan(value) else f"{value:.{min(digits, 3)}f}".removeprefix("0").replace("-0.", "-.")


def signed_text(value: float, dash: str = DASH, digits: int = 3) -> str:
    """Format a difference of accuracies: +.042."""
    return slope_text(value, dash, digits)


def slope_text(value: float, dash: str = DASH, digits: int = MOST_DIGITS) -> str:
    """Format accuracy per doubling: +.0426."""
    return dash if math.isnan(value) else f"{value:+.{digits}f}".replace("0.", ".", 1)


def interval_text(low: float, high: float, dash: str = DASH, digits: int = MOST_DIGITS) -> str:
    """Format the limits of a slope: [+.0201, +.0234]; [.0000, .0000] where neither has a digit to carry a sign."""
    if low == low and round(low, digits) == round(high, digits) == 0:
        zero = f"{0:.{digits}f}".removeprefix("0")
        return f"[{zero}, {zero}]"
    return dash if math.isnan(low) else f"[{slope_text(low, digits=digits)}, {slope_text(high, digits=digits)}]"


def p_text(value: float) -> str:
    """Format a p value: .034; below .001 as such."""
    return DASH if math.isnan(value) else "<.001" if value < 0.001 else f"{value:.3f}".removeprefix("0")


def probability_text(value: float) -> str:
    """Format a probability: .269; small ones as 1.3e-05."""
    if math.isnan(value):
        return DASH
    return f"{value:.3f}".removeprefix("0") if value >= 0.001 or value == 0 else f"{value:.1e}"


def per_cent_text(share: float, digits: int = 1) -> str:
    """Format a share: 12.3%."""
    return DASH if math.isnan(share) else f"{share:.{digits}%}"


def decimal_text(value: float) -> str:
    """Format a number with one decimal place: 12.3."""
    return DASH if math.isnan(value) else f"{value:.1f}"


def short_text(value: float) -> str:
    """Format a number with four digits: 0.01234, 1,234, 12,340."""
    if math.isnan(value):
        return DASH
    digits = f"{value:.4g}"
    return f"{float(digits):,.0f}" if abs(value) >= 1000 else digits


def count(value: float) -> str:
    """Format a count: 1,234; nothing for a missing one."""
    return "" if math.isnan(value) else f"{value:,.0f}"


def mean_count_text(value: float) -> str:
    """Format a count or a mean of counts: 1,234 or 12.5; nothing for a missing one."""
    return "" if math.isnan(value) else f"{value:,.1f}".removesuffix(".0")


def difference_text(value: float) -> str:
    """Format a whole difference: +2, -1, 0."""
    return f"{value:+.0f}" if value else "0"


def supported_digits(low: float, high: float) -> int:
    """Return the decimal places, 2 to MOST_DIGITS, that an interval supports: [+.0082, +.0187] is [+.008, +.019].

    The first digit of its half width, and the second too where the two are below 35.5 (as the Particle Data Group
    rounds errors: Review of Particle Physics, introduction, section 5.3). More where a limit would be rounded to 0; 3
    where the limits are not known.
    """
    half = (high - low) / 2
    if not half > 0:
        return 3
    first = math.floor(math.log10(half))
    digits = -first + (half / 10.0**first < 3.55)
    while digits < MOST_DIGITS and any(limit != 0 and round(limit, digits) == 0 for limit in (low, high)):
        digits += 1
    return min(max(2, digits), MOST_DIGITS)


def row_digits(low: pd.Series, high: pd.Series) -> list[int]:
    """Return the decimal places of each row of slopes and limits: those that its own interval supports."""
    return [supported_digits(*limits) for limits in zip(low, high, strict=True)]


def rank_text(row: pd.Series) -> str:
    """Format a rank: 3, or 3 (2–5) where its interval is known; nothing without a rank."""
    if math.isnan(row["rank"]):
        return ""
    low, high = row.get("rank_low", math.nan), row.get("rank_high", math.nan)
    return f"{row['rank']:.0f}" + ("" if math.isnan(low) else f" ({low:.0f}–{high:.0f})")


def direction(low: float, high: float) -> str:
    """Return rises, falls, or "" where the interval of a slope includes 0 or is not known."""
    return "rises" if low > 0 else "falls" if high < 0 else ""
