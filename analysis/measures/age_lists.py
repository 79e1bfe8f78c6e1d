"""Readers of lists of words and the age at which children know them, of the user's own copy.

A table (CSV, TSV, JSON lines, Parquet) with a column of words and, the first that it has:

Rating.Mean, AoA_Kup, age_years    years (Kuperman et al. 2012: rated by adults)
age_months, aoa, age               months
age and proportion                 a row for each word and age (Wordbank, Frank et al. 2017): the age at which half of
                                   the children know the word, by a logistic regression
columns named 16, 17, ..., 30      the same, a column for each age in months
"""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_linear_model import GLM
from statsmodels.tools.tools import add_constant

from analysis.measures.reading.times import number_or_nan
from eval.benchmarks.cells import sentence_of
from eval.benchmarks.files import file_rows, format_of
from pairscale.errors import InputError

WORDS = ("word", "Word", "item_definition", "definition")
YEARS, MONTHS = ("Rating.Mean", "AoA_Kup", "age_years"), ("age_months", "aoa", "age")
PROPORTIONS = ("proportion", "prop")
LEAST_AGES = 3  # of proportions, that a logistic regression is fitted to
_NOTE = re.compile(r"\s*\([^)]*\)\s*$")  # fish (animal)


@dataclass(frozen=True)
class AgeList:
    """ages: months, by word in small letters. kind: what the ages are. left_out: reason -> rows or words."""

    ages: pd.Series
    kind: str
    left_out: dict[str, int]


def read_ages(path: Path) -> AgeList:
    """Return the ages of a file. Raises ConfigError for its format, InputError with file and row for what is wrong."""
    if not path.is_file():
        raise InputError(f"analysis.children={path}: no such file")
    format_of(path, "analysis.children")
    rows = list(file_rows(path))
    columns = list(map(str, rows[0].cells))
    word = next((name for name in WORDS if name in columns), None)
    if word is None:
        raise InputError(f"{path}: no column of words ({', '.join(WORDS)}); there are {', '.join(columns)}")
    names = [_NOTE.sub("", sentence_of(row.cells.get(word), row.where, word)).strip().lower() for row in rows]
    ages, kind = _ages(path, columns, rows, names)
    left_out = {"no age": int(ages["age"].isna().sum()), "several words": 0, "the same word again": 0}
    ages = ages[ages["age"].notna()]
    single = ~ages["word"].str.contains(r"\s")
    left_out["several words"] = int((~single).sum())
    ages = ages[single]
    means = ages.groupby("word")["age"].mean()
    left_out["the same word again"] = len(ages) - len(means)
    if means.empty:
        raise InputError(f"{path}: holds no word with an age")
    return AgeList(means, kind, {reason: number for reason, number in left_out.items() if number})


def _ages(path: Path, columns: Sequence[str], rows: Sequence[Any], names: Sequence[str]) -> tuple[pd.DataFrame, str]:
    """Return the table of word and age (months, NaN if unknown), and what the ages are."""
    share = next((name for name in PROPORTIONS if name in columns), None)
    by_age = [name for name in columns if re.fullmatch(r"\d{1,3}(\.\d+)?", name)]
    if share is not None and "age" in columns:
        long = pd.DataFrame({"word": names, "age": _numbers(rows, "age"), "share": _shares(rows, share)})
        return _halves(long), f"half of the children know the word ({share} by age)"
    if len(by_age) >= LEAST_AGES:
        parts = [pd.DataFrame({"word": names, "age": float(age), "share": _shares(rows, age)}) for age in by_age]
        return _halves(pd.concat(parts)), "half of the children know the word (proportions by age)"
    for candidates, factor, unit in ((YEARS, 12, "years"), (MONTHS, 1, "months")):
        column = next((name for name in candidates if name in columns), None)
        if column is not None:
            values = np.asarray(_numbers(rows, column)) * factor
            return pd.DataFrame({"word": names, "age": values}), f"{column}, {unit}"
    allowed = ", ".join((*YEARS, *MONTHS))
    raise InputError(
        f"{path}: no column of ages ({allowed}), and no proportions by age (age and proportion, or columns 16, 17, "
        "...); "
        f"there are {', '.join(columns)}"
    )


def _numbers(rows: Sequence[Any], column: str) -> list[float]:
    found = [number_or_nan(row.cells.get(column), row.where, column) for row in rows]
    for row, value in zip(rows, found, strict=True):
        if value <= 0:
            raise InputError(f"{row.where}: {column} is {value:g}, must be above 0, or empty")
    return found


def _shares(rows: Sequence[Any], column: str) -> list[float]:
    found = [number_or_nan(row.cells.get(column), row.where, column) for row in rows]
    for row, value in zip(rows, found, strict=True):
        if not np.isnan(value) and not 0 <= value <= 1:
            raise InputError(f"{row.where}: {column} is {value:g}, must be a share from 0 to 1")
    return found


def _halves(long: pd.DataFrame) -> pd.DataFrame:
    """Return word and age of rows word, age, share; NaN where the age lies outside of those that were asked."""
    known = long[long["share"].notna() & long["age"].notna()]
    rows = [
        {"word": word, "age": half_age(of["age"].to_numpy(), of["share"].to_numpy())}
        for word, of in known.groupby("word", sort=False)
    ]
    return pd.DataFrame(rows, columns=["word", "age"])


def half_age(ages: np.ndarray, shares: np.ndarray) -> float:
    """Return the age at which a logistic regression of shares on ages is one half; NaN outside of the ages.

    >>> round(half_age(np.asarray([16.0, 20.0, 24.0]), np.asarray([0.1, 0.5, 0.9])), 6)
    20.0
    """
    if len(np.unique(ages)) < LEAST_AGES:
        return np.nan
    centre = ages.mean()
    clipped = np.clip(shares, 0.005, 0.995)  # all or none of the children: their logit is not known
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # shares that a step fits perfectly: the age is known all the same
        fit = GLM(clipped, add_constant(ages - centre), family=Binomial()).fit()
    constant, slope = fit.params
    at = centre - constant / slope if slope > 0 else np.nan
    return float(at) if ages.min() <= at <= ages.max() else np.nan


def described(left_out: Mapping[str, int]) -> str:
    """Describe what was left out: "no age: 3; several words: 12"."""
    return "; ".join(f"{reason}: {number:,}" for reason, number in left_out.items())
