"""Sizes and seeds of others' runs, from cells, from names that a user explains, and from paths and revisions."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import regex

from analysis.sources.settings import SEEN_UNITS, ResultsConfig, size_name, size_number, unit_name
from pairscale.errors import MAX_SEED, ConfigError, InputError
from pairscale.sizes import format_size

SECONDS = 1.0  # time limit of a pattern for one text
# Steps of revisions (EleutherAI's, and many others), and words seen of a BabyLM challenge's revisions. A size is all of
# 1.5M, 1B and 1,000: what `size_of` can't read is an error then, and isn't cut short to a number that it begins with.
USUAL_PATTERN = r"(?:^|[^a-z])(?:step[-_]?|chck_)(?P<size>\d++(?:[.,]\d++)*+[^\W_]*+)"


def size_of(cell: Any, settings: ResultsConfig, where: str) -> int:
    """Return the size in a cell, or that `results.sizes` gives its text, times `results.scale`; 0 is allowed.

    Raises InputError, naming `where`, for text that isn't a size, for a part of a word, and for a number without a name
    if `results.sizes` names numbers.
    """
    given = str(cell).strip()
    sizes: dict[str, str] = settings.sizes or {}
    named = sizes.get(size_name(given))
    if named is None and any(size_number(name) is not None for name in sizes):
        raise InputError(f"{where}: size is {given[:60]!r}, which results.sizes doesn't name, though it names numbers.")
    text = named or given
    number = size_number(text)
    if number is None:
        raise InputError(
            f"{where}: size is {text[:60]!r}, must be a number such as 125k, 1/8M or 300000. If it is a name, "
            "results.sizes={NAME:SIZE,...} gives its size."
        )
    scaled = number * settings.scale
    if not 0 <= scaled < 1e18 or 0 < scaled < 1:
        hint = f" If sizes count millions of {unit_name(settings)}, say results.scale=1000000." if scaled < 1 else ""
        times = f" times results.scale={settings.scale:g}" if settings.scale != 1 else ""
        raise InputError(f"{where}: size is {text[:60]}{times}, must be 0, or from 1 to 1e18.{hint}")
    return round(scaled)


def fixed_size(settings: ResultsConfig) -> int | None:
    """Return `results.size`; None if it isn't set. Raises ConfigError for text that isn't a size."""
    try:
        return None if settings.size is None else size_of(settings.size, settings, f"results.size={settings.size}")
    except InputError as error:
        raise ConfigError(str(error)) from None


def parts_of(text: str, settings: ResultsConfig, first: Sequence[str] = ()) -> dict[str, str]:
    """Return the model, size and seed that `results.pattern` finds in a text.

    `first`: parts of the text in which the usual pattern is searched before the rest. Raises ConfigError for a pattern
    that takes more than SECONDS.
    """
    pattern = USUAL_PATTERN if settings.pattern is None else settings.pattern
    for one in (*(first if settings.pattern is None else ()), text):
        try:
            match = regex.search(pattern, one, timeout=SECONDS)
        except TimeoutError:
            raise ConfigError(f"results.pattern={pattern}: takes more than {SECONDS:.0f} s for {one[:80]}.") from None
        if match is not None:
            return {name: value for name, value in match.groupdict().items() if value}
    return {}


def pattern_size(parts: Mapping[str, str], settings: ResultsConfig, where: str) -> int | None:
    """Return `results.size`, or the size of `parts_of` a path; None without any.

    Raises ConfigError for a size by the usual pattern, which is a checkpoint's, if sizes count training text.
    """
    fixed = fixed_size(settings)
    if fixed is not None or "size" not in parts:
        return fixed
    if settings.pattern is None and not settings.seen and size_name(parts["size"]) not in (settings.sizes or {}):
        raise ConfigError(
            f"{where}: {parts['size']} in its path or revision is a checkpoint's, but results.unit={settings.unit} "
            f"counts training text. Give results.unit={'|'.join(SEEN_UNITS)}, or results.pattern='...' with "
            "(?P<size>...) that finds the size of the text."
        )
    return size_of(parts["size"], settings, where)


def seed_of(parts: Mapping[str, str], where: str) -> int:
    """Return the seed of `parts_of` a path, 1 if it has none. Raises InputError for one that isn't a whole number."""
    seed = parts.get("seed", "1")
    if not seed.isdecimal() or int(seed) > MAX_SEED:
        raise InputError(f"{where}: results.pattern: seed is {seed[:60]!r}, must be a whole number.")
    return int(seed)


def size_texts(sizes: Collection[int], unit: str) -> dict[int, str]:
    """Write sizes, with their unit if that isn't words or characters, and with the digits that tell them apart.

    >>> size_texts([1000, 10_000, 10_003], "steps")
    {1000: '1k steps', 10000: '10k steps', 10003: '10.003k steps'}
    """
    several = dict.fromkeys(sizes)
    if unit in ("words", "characters"):
        return {size: format_size(size) if size else "0" for size in several}
    for digits in range(4, 18):
        texts = {size: f"{_short(size, digits)} {unit}" for size in several}
        if len(set(texts.values())) == len(several):
            break
    return texts


def _short(size: int, digits: int) -> str:
    for letter, of in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if size >= of:
            return f"{size / of:.{digits}g}{letter}"
    return str(size)
