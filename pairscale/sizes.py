"""Read and write sizes (1M, 125k, 1/8M) and durations (3 h 05 min) as people do."""

import math
import re
from fractions import Fraction
from typing import Any

from pairscale.errors import ConfigError

# 15 digits are enough for any text, and few enough to be exact.
_SIZE = re.compile(r"(?P<number>\d{1,15}(?:\.\d{1,9})?|\d{1,15}/[1-9]\d{0,14})(?P<unit>[kM]?)", re.ASCII)
_SIZE_UNITS = {"": 1, "k": 1_000, "M": 1_000_000}


def parse_size(text: str, key: str = "sample.size") -> int:
    """Parse a size such as "125k", "1/8M" or "300000". Raises ConfigError for any other text."""
    match = _SIZE.fullmatch(str(text).replace("_", ""))
    if match:
        size = Fraction(match["number"]) * _SIZE_UNITS[match["unit"]]
        if size.denominator == 1 and size > 0:
            return int(size)
    raise ConfigError(
        f"{key}={str(text)[:80]}: this value must be a whole number above 0, such as 300000, 125k, 0.5M or 1/8M. The "
        "units are k (thousand) and M (million)."
    )


def format_size(number: int) -> str:
    """Return the shortest text that `parse_size` reads back, such as "125k" for 125000 or "2M" for 2000000."""
    for unit in ("M", "k"):
        if number % _SIZE_UNITS[unit] == 0:
            return f"{number // _SIZE_UNITS[unit]}{unit}"
    return str(number)


def readable_size(size: str) -> str:
    """Make a size easier to read, such as "31,250" for "31250" and "1 word" for "1 words". Keep "4k sentences"."""
    number, space, unit = size.partition(" ")
    unit = unit.removesuffix("s") if number == "1" else unit
    return f"{int(number):,}{space}{unit}" if number.isdecimal() else size


def written(value: Any) -> str:
    """Return a value as a user would type it on the command line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{written(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "null" if missing else str(value)


def clock(seconds: float) -> str:
    """Return a duration as "3 h 05 min", "4 min 10 s" or "9 s"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def plural(number: int, noun: str) -> str:
    """Return a number with its noun, such as "1 run" or "2 runs"."""
    plurals = {"phenomenon": "phenomena", "person": "people"}
    return f"{number:,} {noun if number == 1 else plurals.get(noun, noun + 's')}"
