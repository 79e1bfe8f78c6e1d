"""Sizes and seeds of others' runs: of cells, of names that a configuration explains, of paths and revisions."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.study.sources.config import GROUPS, SEEN_UNITS, ResultsConfig, size_name, size_number
from pairscale.errors import MAX_SEED, ConfigError, InputError, first_few
from pairscale.sizes import format_size

SECONDS = 1.0  # time limit of a pattern for one text
# Steps of revisions (EleutherAI's, and many others), and words seen of a BabyLM challenge's revisions. A size is all of
# 1.5M, 1B and 1,000: what `size_of` cannot read is an error then, and is not cut short to a number that it begins with.
USUAL_PATTERN = r"(?:^|[^a-z])(?:step[-_]?|chck_)(?P<size>\d++(?:[.,]\d++)*+[^\W_]*+)"
_TEXT_UNITS = ("words", "characters")  # of which a size's text has no name


def size_of(cell: Any, settings: ResultsConfig, where: str) -> float:
    """Return the size that a cell holds, or that `results.sizes` gives its text, times `results.scale`; 0 is allowed.

    Raises InputError, naming `where`, for less than 1, for text that is no size (1000000, 1e6, 125k, 1/8M and 0.5M
    are), and for a number without a name beside numbers that have one.
    """
    given = str(cell).strip()
    named = named_size(given, settings)
    if named is None and any(size_number(name) is not None for name in settings.sizes or {}):
        raise InputError(f"{where}: size is {given[:60]!r}, which results.sizes does not name, though it names numbers")
    text = named or given
    number = size_number(text)
    if number is None:
        raise InputError(
            f"{where}: size is {text[:60]!r}, must be a number such as 125k, 1/8M or 300000; "
            "results.sizes={NAME:SIZE,...} gives sizes of names"
        )
    scaled = number * settings.scale
    of = f"size is {text[:60]}" + (f", {scaled:g} by results.scale" if settings.scale != 1 else "")
    if not 0 <= scaled < 1e18:
        raise InputError(f"{where}: {of}, must be 0 or more and below 1e18")
    if 0 < scaled < 1:
        unit = settings.unit.replace("_", " ")
        raise InputError(
            f"{where}: {of}: must be 1 or more, or 0; results.scale=1000000 where sizes count millions of {unit}"
        )
    return round(scaled)


def named_size(name: str, settings: ResultsConfig) -> str | None:
    """Return the size that `results.sizes` gives a name; None if it gives none."""
    sizes: dict[str, str] = settings.sizes or {}
    return sizes.get(size_name(name))


def check_sizes(settings: ResultsConfig, sizes: Collection[float], origin: str) -> None:
    """Raise InputError for a name in `results.sizes` whose size no run has."""
    unused = [name for name in settings.sizes or {} if size_of(name, settings, "results.sizes") not in sizes]
    if unused:
        there = first_few([size_text(size, settings.unit.replace("_", " ")) for size in sorted(sizes)], 5)
        raise InputError(f"results.sizes: no size in {origin} is named {first_few(unused)}; sizes there: {there}")


def fixed_size(settings: ResultsConfig) -> float | None:
    """Return `results.size`; None if it is not set. Raises ConfigError for text that is no size."""
    if settings.size is None:
        return None
    try:
        return size_of(settings.size, settings, f"results.size={settings.size}")
    except InputError as error:
        raise ConfigError(str(error)) from None


def parts_of(text: str, settings: ResultsConfig, first: Sequence[str] = ()) -> dict[str, str]:
    """Return what `results.pattern` finds in a text: model, size and seed, those that it names.

    first: parts of the text that say the size of a run better than the rest of it, where the pattern is the usual one.
    Raises ConfigError if it takes more than SECONDS.
    """
    if settings.pattern is not None:
        return _found(settings.pattern, text)
    return next(filter(None, (_found(USUAL_PATTERN, part) for part in (*first, text))), {})


def _found(pattern: str, text: str) -> dict[str, str]:
    import regex  # slow to import, and most sources have none

    try:
        match = regex.search(pattern, text, timeout=SECONDS)
    except TimeoutError:
        raise ConfigError(f"results.pattern={pattern}: takes more than {SECONDS:.0f} s for {text[:80]}") from None
    if match is None:
        return {}
    found: Mapping[str, str | None] = match.groupdict()
    return {name: value for name in GROUPS if (value := found.get(name))}


def pattern_size(parts: Mapping[str, str], settings: ResultsConfig, file: Path) -> float | None:
    """Return the size of `parts_of` a file, None if it has none.

    Raises ConfigError for one of a usual name in a unit of texts: it is a checkpoint's, not that of a training text.
    """
    if "size" not in parts:
        return None
    if settings.pattern is None and not settings.seen:
        raise ConfigError(
            f"{file}: {parts['size']} in its path or revision is a checkpoint's, but results.unit={settings.unit} is "
            f"of training texts; give results.unit={'|'.join(SEEN_UNITS)}, or results.pattern='...' with (?P<size>...) "
            "that finds the size of the text"
        )
    return size_of(parts["size"], settings, str(file))


def seed_of(parts: Mapping[str, str], file: Path) -> int:
    """Return the seed of `parts_of` a file, 1 if it has none. Raises InputError for one that is no number."""
    seed = parts.get("seed", "1")
    if not seed.isdecimal() or int(seed) > MAX_SEED:
        raise InputError(f"{file}: results.pattern: seed is {seed[:60]!r}, must be a whole number")
    return int(seed)


def size_text(size: float, unit: str, digits: int = 4) -> str:
    """Write a size: 125k, or with its unit if that is not words or characters, as 2.097B tokens, to some digits.

    >>> size_text(400_000, "sentences"), size_text(1_000_000, "words"), size_text(2_097_152_000, "tokens")
    ('400k sentences', '1M', '2.097B tokens')
    """
    if unit in _TEXT_UNITS and size >= 1:
        return format_size(int(size))
    for letter, of in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if size >= of:
            return f"{size / of:.{digits}g}{letter} {unit}"
    return f"{int(size)} {unit}"


def size_texts(sizes: Collection[float], unit: str) -> dict[float, str]:
    """Write sizes, to as many digits as tell them apart.

    >>> size_texts([1000, 10_000, 10_003], "steps")
    {1000: '1k steps', 10000: '10k steps', 10003: '10.003k steps'}
    """
    several = dict.fromkeys(sizes)
    for digits in range(4, 18):
        texts = {size: size_text(size, unit, digits) for size in several}
        if len(set(texts.values())) == len(several):
            break
    return texts
