"""Format numbers and names for tables, figures and sentences.

Tables and plots show proportions (.614). Sentences have percentages and points (61% correct, 7 points).
"""

import math
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pandas as pd

from pairscale.sizes import plural as plural

DASH = "–"  # shown for an unknown number
MOST_DIGITS = 4  # maximum number of decimal places of a slope or difference
_HYPHENATED = "determiner noun|subject verb|filler gap|left branch|matrix question|verb complement"


def rows_of(table: pd.DataFrame) -> Iterator[Any]:
    """Return the rows of a table as named tuples."""
    return iter(table.itertuples(index=False))


def title(name: str) -> str:
    """Return the readable name of a phenomenon or paradigm. For example, "npi_licensing" becomes "NPI licensing"."""
    words = name.replace("_", " ").replace("control raising", "control/raising")
    words = re.sub(_HYPHENATED, lambda match: match[0].replace(" ", "-"), words)
    words = re.sub(r"\b(npi|np)\b", lambda match: match[0].upper(), words)
    return words[:1].upper() + words[1:]


def in_text(name: str) -> str:
    """Return a phenomenon's name as it is written in a sentence, such as "island effects" or "NPI licensing"."""
    text = title(name)
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def joined(words: Sequence[str]) -> str:
    """Join words as in "a, b and c"."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def with_minus_signs(text: str) -> str:
    """Replace the hyphens before numbers with minus signs."""
    return re.sub(r"(?<![\w-])-(?=[.\d])", "\N{MINUS SIGN}", text)


def accuracy_text(value: float, digits: int = 3, sign: str = "") -> str:
    """Format a proportion as in papers, such as .713 or 1.000. Use the sign "+" for differences."""
    if pd.isna(value):
        return DASH
    text = f"{value:{sign}.{digits}f}"
    return re.sub(r"(?<!\d)0(?=\.)", "", text) if float(text) else f".{'0' * digits}"


signed_text = partial(accuracy_text, sign="+")  # formats a difference between proportions, such as +.042


def slope_text(value: float, digits: int = MOST_DIGITS) -> str:
    """Format a slope (accuracy per doubling of the training text), such as +.0426."""
    return signed_text(value, digits)


def decimal_text(value: float) -> str:
    """Format a number that isn't a proportion, such as 12.3."""
    return DASH if pd.isna(value) else f"{value:,.1f}"


def factor_text(value: float, digits: int = 3) -> str:
    """Format a factor, such as 0.761."""
    return DASH if pd.isna(value) else f"{value:.{digits}f}"


def p_text(value: float) -> str:
    """Format a p value, such as .034. Values below .001 become <.001."""
    return "<.001" if value < 0.001 else accuracy_text(value)


def p_in_text(value: float) -> str:
    """Format a p value for a sentence, such as "p = .034" or "p < .001"."""
    return "p < .001" if value < 0.001 else f"p = {p_text(value)}"


def level_text(confidence: float) -> str:
    """Format a confidence level, such as 95% or 99.9%."""
    return f"{100 * confidence:.6g}%"


def count(value: float) -> str:
    """Format a count or a mean of counts, such as 1,234 or 12.5. A missing value becomes an empty text."""
    return "" if pd.isna(value) else f"{value:,.1f}".removesuffix(".0")


def points(value: float, low: float = math.nan, high: float = math.nan) -> str:
    """Format a difference between proportions in percentage points, with the digits that its interval supports."""
    digits = 1 if math.isnan(low) else max(0, supported_digits(low, high) - 2)
    text = f"{100 * value:.{digits}f}"
    return text if float(text) else text.removeprefix("-")


def change_in_text(value: float, low: float, high: float, confidence: float, signed: bool = False) -> tuple[str, str]:
    """Return a change, such as "7.4 points", and its interval as text ("" if it isn't known).

    Without `signed`, the change of a negative value is given as a positive one, and the interval with it.
    """
    if value < 0 and not signed:
        value, low, high = -value, -high, -low
    limits = f"{points(low, low, high)} to {points(high, low, high)}"
    number = points(value, low, high)
    interval = "" if math.isnan(low) else f"{level_text(confidence)} confidence interval {limits}"
    return f"{number} {'point' if number in ('1', '-1') else 'points'}", interval


def supported_digits(low: float, high: float) -> int:
    """Return how many decimal places an interval supports, from 2 to MOST_DIGITS.

    For example, [+.0082, +.0187] becomes [+.008, +.019].

    The last decimal place is the first digit of the interval's half width, or the second one if the first two digits
    are below 35.5. The Particle Data Group rounds errors in this way (Review of Particle Physics, introduction, section
    5.3). There are more digits if a bound would be rounded to 0, and 3 if the bounds aren't known.
    """
    half = (high - low) / 2
    if not half > 0 or math.isinf(half):
        return 3
    first = math.floor(math.log10(half))
    digits = -first + (half / 10.0**first < 3.55)
    while digits < MOST_DIGITS and any(limit != 0 and round(limit, digits) == 0 for limit in (low, high)):
        digits += 1
    return min(max(2, digits), MOST_DIGITS)
