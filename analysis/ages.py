"""The order in which models learn words, beside the ages at which children learn them (Chang and Bergen 2022).

    from analysis.ages import ages_of_acquisition
    ages_of_acquisition("mine", "ages.csv")

docs/guides/words_and_ages.md has a script that correlates the two.
"""

import re
import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_linear_model import GLM
from statsmodels.tools.tools import add_constant

from analysis.formats import rows_of
from analysis.reading.files import first_column, numbers, read_columns, texts
from analysis.study.run_folders import Studies, read_studies
from eval.surprisal.files import read_surprisals
from pairscale.errors import ConfigError, InputError, RunError

Array = npt.NDArray[np.float64]
LEAST_OCCURRENCES = 5  # of a word in the text: its surprisal is a mean over them
_WORDS = ("word", "Word", "item_definition", "definition")
_AGES = {"Rating.Mean": 12, "AoA_Kup": 12, "age_years": 12, "age_months": 1, "aoa": 1, "age": 1}  # months per unit
_LEAST_AGES = 3  # to which a logistic regression is fitted
_EDGES = "\"'“”‘’.,;:!?()[]…–—-"


def ages_of_acquisition(
    study: str, ages: str | Path, text: str | None = None, folder: str | Path = "runs", reports: str | Path = "reports"
) -> pd.DataFrame:
    """Return the amount of training text at which each model has learned a word, and children's age for it.

    A model has learned a word where its mean surprisal has fallen halfway from chance (uniform over the vocabulary, for
    each of the word's tokens) to its value at the largest size, on a sigmoid over log2 of the training text. That is
    the measure of Chang and Bergen (2022, section 3.2), with sizes of samples in place of steps of one training.

    Args:
        study: name of the study.
        ages: a table of words and ages (`read_ages`).
        text: whose surprisals are read, a folder in REPORTS/STUDY/surprisal; may be None if there is only one.
        folder: where studies are (`paths.runs`).
        reports: where reports are (`paths.reports`).

    Returns:
        One row per curve and word: curve, word, age (months), occurrences (in the text), sample_words (missing if the
        curve has fewer than three sizes), censored ("before" the smallest size or "after" the largest one, whose amount
        of text is then given; else ""), smallest_surprisal and largest_surprisal (bits at these sizes). Only words that
        occur five times in the text and are known to every run are in the table.

    Raises:
        ConfigError: if there are no surprisals, or several texts.
        InputError: for what is wrong in the table of ages.
        RunError: if no run on a curve has surprisals, if runs read different texts, for a run without the size of its
            vocabulary, and if no word is left.
    """
    known = read_ages(Path(ages))
    found = read_studies([study], folder)
    rows = _word_surprisals(_surprisal_folder(Path(reports) / study / "surprisal", study, text), found)
    is_shared = rows.groupby("word")["run"].transform("size") == rows["run"].nunique()
    rows = rows[is_shared & rows["word"].isin(known.index)]
    if rows.empty:
        raise RunError(f"study={study}: no word of {ages} occurs {LEAST_OCCURRENCES} times and is known to every run.")
    parts = []
    for curve, of_curve in rows.groupby("curve", sort=False):
        means = of_curve.pivot_table("surprisal", index="x", columns="word")
        words, x, bits = means.columns, means.index.to_numpy(), means.to_numpy()
        by_word = of_curve.groupby("word")
        at = np.full(len(words), np.nan)
        if len(x) >= 3:
            at = np.nan_to_num(halfway(x, bits, by_word["chance"].mean().to_numpy()), nan=np.inf)
        parts.append(pd.DataFrame({
            "curve": curve, "word": words, "age": known[words].to_numpy(),
            "occurrences": by_word["occurrences"].first().to_numpy(), "sample_words": 2 ** at.clip(x[0], x[-1]),
            "censored": np.select([at < x[0], at > x[-1]], ["before", "after"], ""),
            "smallest_surprisal": bits[0], "largest_surprisal": bits[-1],
        }))  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def halfway(x: Array, curves: Array, chance: Array) -> Array:
    """Return the (U,) x at which (S, U) curves have fallen halfway from chance (U,) to their last value.

    The curves are sigmoids over ascending x (S,) that start at chance. Of a grid of slopes and middles, the one with
    the least squares is taken, its asymptote in closed form. NaN for a curve that doesn't fall.
    """
    span = float(x[-1] - x[0])
    middles = np.linspace(x[0] - span - 6, x[-1] + span / 2, 97)
    steepness = np.geomspace(0.15, 6, 18)  # per doubling
    k, middle = (of.ravel()[:, None] for of in np.meshgrid(steepness, middles, indexing="ij"))
    rise = 1 / (1 + np.exp(-np.clip(k * (x - middle), -50, 50)))  # (G, S)
    below = chance - curves
    fall = rise @ below / (rise**2).sum(axis=1, keepdims=True)  # (G, U)
    squares = (below**2).sum(axis=0) - fall**2 * (rise**2).sum(axis=1, keepdims=True)
    best = np.where(fall > 0, squares, np.inf).argmin(axis=0)
    half = middle[best, 0] - np.log(2 / rise[best, -1] - 1) / k[best, 0]
    return np.where(fall[best, np.arange(len(chance))] > 0, half, np.nan)


def read_ages(path: Path) -> pd.Series:
    """Return the age in months at which children know each word, by word in small letters.

    The table has a column of words (word, Word, item_definition or definition) and, the first that is present, age and
    proportion (one row per word and age); columns named after ages in months, 16, 17, ...; or Rating.Mean, AoA_Kup or
    age_years (years), age_months, aoa or age (months). With proportions, a word's age is the one at which half of the
    children know it (`half_age`). Entries without an age or of several words are left out; a word that occurs several
    times, such as "fish (animal)" and "fish (food)", has the mean of its ages.

    Raises ConfigError for another format, InputError for what is wrong in the table.
    """
    rows = read_columns(path, "ages")
    words = texts(rows, *_WORDS).str.replace(r"\s*\([^)]*\)$", "", regex=True).str.lower()
    by_age = [column for column in map(str, rows) if re.fullmatch(r"\d{1,3}(\.\d+)?", column)]
    if {"age", "proportion"} <= set(rows):
        shares = {"word": words, "age": numbers(rows, "age", 0), "share": numbers(rows, "proportion", 0, 1)}
        table = _half_ages(pd.DataFrame(shares))
    elif len(by_age) >= _LEAST_AGES:
        wide = pd.DataFrame({float(age): numbers(rows, age, 0, 1) for age in by_age})
        table = _half_ages(wide.assign(word=words).melt("word", var_name="age", value_name="share"))
    else:
        column = first_column(rows, *_AGES)
        table = pd.DataFrame({"word": words, "age": numbers(rows, column, 0) * _AGES[column]})
    table = table[table["age"].notna() & ~table["word"].str.contains(r"\s")]
    if table.empty:
        raise InputError(f"{path}: contains no word with an age")
    return table.groupby("word")["age"].mean()


def half_age(ages: Array, shares: Array) -> float:
    """Return the age at which a logistic regression of shares on ages is one half; NaN outside of the ages.

    >>> round(half_age(np.array([16.0, 20.0, 24.0]), np.array([0.1, 0.5, 0.9])), 6)
    20.0
    """
    if len(np.unique(ages)) < _LEAST_AGES:
        return np.nan
    centre = ages.mean()
    clipped = np.clip(shares, 0.005, 0.995)  # all or none of the children: their logit isn't known
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # shares that a step fits perfectly: the age is known all the same
        constant, slope = GLM(clipped, add_constant(ages - centre), family=Binomial()).fit().params
    at = centre - constant / slope if slope > 0 else np.nan
    return float(at) if ages.min() <= at <= ages.max() else np.nan


def _half_ages(shares: pd.DataFrame) -> pd.DataFrame:
    """Return word and age of rows word, age and share."""
    shares = shares.dropna().astype({"age": float})
    rows = [(word, half_age(of["age"].to_numpy(), of["share"].to_numpy())) for word, of in shares.groupby("word")]
    return pd.DataFrame(rows, columns=["word", "age"])


def _surprisal_folder(folder: Path, study: str, text: str | None) -> Path:
    """Return the folder of surprisals of one text; raises as `ages_of_acquisition`."""
    names = sorted(path.name for path in folder.glob("*") if any(path.glob("*.parquet")))
    if not names:
        raise ConfigError(f"There are no surprisals in {folder}. Run python -m eval.surprisal study={study} text=FILE.")
    if text not in names and (text is not None or len(names) > 1):
        raise ConfigError(f"text={text}: name a text that has surprisals in {folder}: {', '.join(names)}.")
    return folder / (text or names[0])


def _word_surprisals(folder: Path, found: Studies) -> pd.DataFrame:
    """Return the surprisals of words, in small letters without punctuation, for the runs on curves.

    Returns:
        One row per run and word that is known and occurs often enough: word, mean surprisal, chance (both in bits),
        occurrences, run, curve and x (log2 of the size).

    Raises RunError as `ages_of_acquisition`.
    """
    runs = found.runs[found.runs["sample_words"].notna() & found.runs["baseline"].eq("")]
    x = runs["sample_words"].astype(float).map(np.log2)
    runs = runs.assign(x=x.groupby([runs["curve"], runs["size"]]).transform("mean"))
    tables, digests = [], {}
    for run, manifest in zip(rows_of(runs), found.details.loc[runs.index, "manifest"], strict=True):
        file = folder / f"{run.run}.parquet"
        if file.is_file():
            rows, made = read_surprisals(file)
            digests[made["text"]] = run.run
            rows = rows[rows["tokens"] > 0]
            by_word = rows.groupby(rows["word"].str.strip().str.strip(_EDGES).str.lower())
            table = by_word[["surprisal", "tokens"]].mean().assign(occurrences=by_word.size())
            table = table[by_word["unk"].max().eq(0) & table["occurrences"].ge(LEAST_OCCURRENCES)].reset_index()
            vocabulary = manifest.get("vocabulary")
            if vocabulary is None:  # of checkpoints from elsewhere
                raise RunError(f"{run.run}: its manifest doesn't say how large the vocabulary is, which gives chance.")
            chance = table["tokens"] * np.log2(vocabulary)
            tables.append(table.assign(chance=chance, run=run.run, curve=run.curve, x=run.x))
    if not tables:
        raise RunError(f"{found}: no run on a curve has surprisals of this text.")
    if len(digests) > 1:
        names = " and ".join(digests.values())
        raise RunError(f"{folder}: {names} read different texts. Remove the files of one text.")
    return pd.concat(tables)
