"""Names, numbers and intervals as text, for tables, figures and sentences."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd

_HYPHENATED = ("determiner noun", "subject verb", "filler gap", "left branch", "matrix question", "verb complement")
MOST_DIGITS = 4  # decimal places of a slope or difference


def title(name: str) -> str:
    """A phenomenon's or paradigm's name as people read it: "npi_licensing" -> "NPI licensing"."""
    words = name.replace("_", " ")
    for pair in _HYPHENATED:
        words = words.replace(pair, pair.replace(" ", "-"))
    words = words.replace("control raising", "control/raising")
    words = re.sub(r"\b(npi|np)\b", lambda match: match[0].upper(), words)
    return words[:1].upper() + words[1:]


def accuracy_text(value: float, dash: str = "–") -> str:
    """.713, as papers write accuracies; 1.000 keeps its 1."""
    return dash if math.isnan(value) else f"{value:.3f}".removeprefix("0").replace("-0.", "-.")


def signed_text(value: float, dash: str = "–") -> str:
    """+.042: a difference of accuracies."""
    return dash if math.isnan(value) else f"{value:+.3f}".replace("0.", ".", 1)


def slope_text(value: float, dash: str = "–", digits: int = MOST_DIGITS) -> str:
    """+.0426: accuracy per doubling."""
    return dash if math.isnan(value) else f"{value:+.{digits}f}".replace("0.", ".", 1)


def interval_text(low: float, high: float, dash: str = "–", digits: int = MOST_DIGITS) -> str:
    """[+.0201, +.0234]"""
    return dash if math.isnan(low) else f"[{slope_text(low, digits=digits)}, {slope_text(high, digits=digits)}]"


def p_text(value: float) -> str:
    """.034; below .001 as such"""
    return "–" if math.isnan(value) else "<.001" if value < 0.001 else f"{value:.3f}".removeprefix("0")


def supported_digits(low: float, high: float) -> int:
    """Decimal places, 2 to MOST_DIGITS, that an interval supports: [+.0082, +.0187] is [+.008, +.019].

    The first digit of its half width, and the second too where the two are below 35.5 (as the Particle Data Group
    rounds errors: Review of Particle Physics, introduction, section 5.3). More where a limit would be rounded to 0.
    """
    half = (high - low) / 2
    if not half > 0:
        return 3
    first = math.floor(math.log10(half))
    digits = -first + (half / 10.0**first < 3.55)
    while digits < MOST_DIGITS and any(limit != 0 and round(limit, digits) == 0 for limit in (low, high)):
        digits += 1
    return min(max(2, digits), MOST_DIGITS)


def table_digits(low: pd.Series, high: pd.Series) -> int:
    """Decimal places of a column of slopes and of their limits: those that half of its intervals support."""
    known = low.notna() & high.notna()
    each = [supported_digits(*limits) for limits in zip(low[known], high[known], strict=True)]
    return int(np.median(each)) if each else 3


def rank_text(row: pd.Series) -> str:
    """3, or 3 (2–5) where the interval of the rank is known; nothing for what has no rank."""
    if math.isnan(row["rank"]):
        return ""
    low, high = row.get("rank_low", math.nan), row.get("rank_high", math.nan)
    return f"{row['rank']:.0f}" + ("" if math.isnan(low) else f" ({low:.0f}–{high:.0f})")


def direction(low: float, high: float) -> str:
    """rises, falls, or "" where the interval of a slope holds 0 or is not known."""
    return "rises" if low > 0 else "falls" if high < 0 else ""
