"""What the readers of others' numbers share: rows of outcomes, their cells, their runs, and JSON files."""

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.sources.settings import SEEN_UNITS, ResultsConfig, size_name
from corpora.sources.lines import opened
from eval.benchmarks.cells import shown
from pairscale.errors import ConfigError, InputError

RUN = ["model", "removed", "size", "seed"]  # columns of rows that tell runs apart
# Of rows of outcomes; seeded: whether the source gives seeds, run: the run's name or "", pair: its id, missing where
# pairs are only counted, and "" where a row is a paradigm, tests: whether the paradigm tests what is removed, place:
# file and line. A row without a paradigm is a phenomenon, and one with neither is a run.
COLUMNS = [*RUN, "seeded", "run", "paradigm", "phenomenon", "method", "pair", "accuracy", "n", "tests", "place"]

_NAMED = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0} | dict.fromkeys(("", "na", "nan", "none"), math.nan)
# Steps of revisions (EleutherAI's, and many others), and words seen of a BabyLM challenge's revisions. A size is all of
# 1.5M, 1B and 1,000: what isn't a size is an error then, and isn't cut short to a number that it begins with.
_USUAL_PATTERN = r"(?:^|[^a-z])(?:step[-_]?|chck_)(?P<size>\d++(?:[.,]\d++)*+[^\W_]*+)"


def number_of(cell: Any) -> float:
    """Return the number in a cell, where true and yes are 1, false and no 0; NaN if it is empty, inf if it is text."""
    text = str(cell).strip().lower()
    try:
        return _NAMED[text] if text in _NAMED else float(text)
    except ValueError:
        return math.inf


def check_cells(cells: pd.Series, allowed: pd.Series, places: pd.Series, must: str) -> None:
    """Raise InputError for the first cell that isn't allowed, with its place, its column and what it must be."""
    if not allowed.all():
        row = int((~allowed).to_numpy().argmax())
        raise InputError(
            f"{places.iloc[row]}: {cells.name} is {shown(cells.astype(object).iloc[row])}, must be {must}."
        )


def run_of(file: Path, model: str, revision: str, texts: Sequence[str], settings: ResultsConfig) -> dict[str, Any]:
    """Return the columns of RUN and `seeded` of the run that a file is about.

    Args:
        file: the file of results, for errors.
        model: the model's name, if results.pattern doesn't find one.
        revision: the model's revision, which results.sizes may name.
        texts: where the usual pattern is searched, one after the other. results.pattern is searched in the last one.
        settings: with the pattern and the sizes.

    Raises:
        ConfigError: for a size by the usual pattern, which is a checkpoint's, if sizes count training text.
        InputError: without a size, and for a seed that isn't a whole number.
    """
    searched = texts if settings.pattern is None else texts[-1:]
    matches = (re.search(settings.pattern or _USUAL_PATTERN, text) for text in searched)
    found = next((match.groupdict() for match in matches if match), {})
    size = revision if size_name(revision) in settings.sizes else found.get("size")
    if not size and settings.size is None:
        raise InputError(
            f"{file}: nothing in its path, revision {revision!r} or arguments says the size. Give "
            f"results.sizes={{{revision or 'NAME'}:SIZE}}, results.size=SIZE or results.pattern='(?P<size>...)'."
        )
    if not (settings.size or settings.pattern or settings.seen or size_name(size) in settings.sizes):
        raise ConfigError(
            f"{file}: {size} in its path or revision is a checkpoint's, but results.unit={settings.unit} counts "
            f"training text. Give results.unit={'|'.join(SEEN_UNITS)}, or results.pattern='...' with (?P<size>...) "
            "that finds the size of the text."
        )
    seed = found.get("seed")
    if seed and not re.fullmatch(r"\d{1,18}", seed):
        raise InputError(f"{file}: results.pattern: seed is {seed[:60]!r}, must be a whole number.")
    run = {"model": found.get("model") or model, "removed": "", "size": settings.size_of(size, str(file))}
    return {**run, "seed": int(seed or 1), "seeded": bool(seed)}


def read_object(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file, which may be compressed. Raises InputError for anything else."""
    with opened(file) as (stream, _):
        try:
            data = json.loads(stream.read())
        except (ValueError, RecursionError) as error:
            raise InputError(f"{file}: not JSON ({' '.join(str(error).split())[:120]}).") from None
    if not isinstance(data, dict):
        raise InputError(f"{file}: contains a {type(data).__name__}, must contain an object.")
    return data
