"""Compare when models learn words with the ages at which children know them (docs/guides/words_and_ages.md)."""

import re
import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import statsmodels.api as sm

from analysis.reading.files import column, numbers, read_rows, texts
from analysis.study.run_folders import Studies, read_studies
from eval.benchmarks.cells import flag_of
from eval.scores.files import read_words
from pairscale.errors import ConfigError, RunError

Array = npt.NDArray[np.float64]
LEAST_OCCURRENCES = 5  # a word is included if it occurs at least this often in the text
_WORDS = ("word", "Word", "item_definition", "definition")
_AGES = {"Rating.Mean": 12, "AoA_Kup": 12, "age_years": 12, "age_months": 1, "aoa": 1, "age": 1}  # months per unit
_LEAST_POINTS = 3  # minimum number of ages or sizes for fitting a sigmoid
_EDGES = "\"'“”‘’.,;:!?()[]…–—-"


def ages_of_acquisition(
    study: str,
    ages: str | Path,
    text: str | None = None,
    folder: str | Path = "runs",
    reports: str | Path = "reports",
    snapshots: bool = False,
) -> pd.DataFrame:
    """Return how much training text each model needs to learn a word, and the age at which children know it.

    A model has learned a word when the word's mean surprisal has fallen halfway from chance to its value at the largest
    size. Chance is a uniform distribution over the vocabulary for each of the word's tokens. The curve of surprisal is
    a sigmoid over log2 of the training text. Chang and Bergen (2022, section 3.2) use the same measure, but over the
    steps of one training run instead of sizes of samples, as with `snapshots`.

    If the text has a column `target`, only the words for which it is true count.

    Args:
        study: The name of the study.
        ages: A table of words and ages (`read_ages`).
        text: The name of a folder of surprisals in REPORTS/STUDY/surprisal, or None if there is only one.
        folder: The folder of all studies (`paths.runs`).
        reports: The folder of all reports (`paths.reports`).
        snapshots: Whether to compare the snapshots of each run, by the words that it had seen, instead of sizes.

    Returns:
        One row per curve and word that occurs at least five times (a target: once) and is known to every run. The
        columns are curve, word, age (months), occurrences, sample_words (missing if the curve has fewer than three
        sizes), censored, smallest_surprisal and largest_surprisal (bits at these sizes). `censored` is "before" if the
        word was learned before the smallest size, and "after" if it would be learned beyond the largest size.
        `sample_words` is then the smallest or largest size. With `snapshots`, each run is a curve, and `words_seen`
        replaces `sample_words`.

    Raises:
        ConfigError: If there are no surprisals of the text, or if several texts have surprisals and none is chosen.
        InputError: If the table of ages is invalid.
        RunError: If runs read different texts, if the size of a vocabulary isn't known, or if no word is left.
    """
    known, place = read_ages(Path(ages)), Path(reports) / study / "surprisal"
    names = sorted({file.parent.name for file in place.glob("*/*.parquet")})
    if text not in names and (text is not None or len(names) != 1):
        remedy = f"Choose from {', '.join(names)}" if names else "Compute surprisals with python -m eval.surprisal"
        raise ConfigError(f"text={text}: this doesn't select a folder of surprisals in {place}. {remedy}.")
    rows = _word_surprisals(place / (text or names[0]), read_studies([study], folder), snapshots)
    is_shared = rows.groupby("word")["run"].transform("size") == rows["run"].nunique()
    rows = rows.assign(age=rows["word"].map(known))[is_shared].dropna(subset="age")
    if rows.empty:
        raise RunError(
            f"study={study}: no word of {ages} occurs at least {LEAST_OCCURRENCES} times in the text (a target: once) "
            "and is known to every run. Use a longer text."
        )
    tables = []
    for _, of_curve in rows.groupby("curve", sort=False):
        means, chance = of_curve.pivot_table("surprisal", "x", "word"), of_curve.groupby("word")["chance"].mean()
        x, bits = means.index.to_numpy(), means.to_numpy()
        at = halfway(x, bits, chance.to_numpy()) if len(x) >= _LEAST_POINTS else np.full(len(chance), np.nan)
        table = of_curve.drop_duplicates("word").sort_values("word")[["curve", "word", "age", "occurrences"]]
        table["words_seen" if snapshots else "sample_words"] = 2 ** at.clip(x[0], x[-1])
        table["censored"] = np.select([at < x[0], at > x[-1]], ["before", "after"], "")
        tables.append(table.assign(smallest_surprisal=bits[0], largest_surprisal=bits[-1]))
    return pd.concat(tables, ignore_index=True)


def halfway(x: Array, curves: Array, chance: Array) -> Array:
    """Return the x values (U,) at which curves (S, U) have fallen halfway from chance (U,) to their last value.

    The curves are fitted with sigmoids over ascending x (S,) that start at chance. A grid search finds the slope and
    the midpoint with the smallest sum of squares, and the asymptote has a closed form. The result is infinite for a
    curve that doesn't fall.
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
    return np.where(fall[best, np.arange(len(chance))] > 0, half, np.inf)


def read_ages(path: Path) -> pd.Series:
    """Return the age in months at which children know each word, indexed by lower-case word.

    The table needs a column of words (one of _WORDS) and ages in one of three forms:

    - columns `age` and `proportion`, with one row per word and age
    - columns of proportions named after ages in months: 16, 17, ...
    - a column of ages (one of _AGES)

    If there are proportions, a word's age is the age at which half of the children know it (`half_age`). Entries
    without an age and entries with several words are left out. A word with several entries, such as "fish (animal)" and
    "fish (food)", gets the mean of their ages.

    Raises ConfigError for an unknown file format, and InputError if the table is invalid.
    """
    cells = read_rows(path, "ages")
    words = texts(column(cells, *_WORDS)).str.replace(r"\s*\([^)]*\)$", "", regex=True).str.lower()
    cells["word"] = words.mask(words.str.contains(r"\s"))
    months = [name for name in cells if re.fullmatch(r"\d{1,3}(\.\d+)?", str(name))]
    if not {"age", "proportion"} <= set(cells) and len(months) >= _LEAST_POINTS:
        cells = cells.melt("word", months, "age", "proportion", ignore_index=False)
    if {"age", "proportion"} <= set(cells):
        table = cells[["word"]].assign(age=numbers(cells["age"], 0), share=numbers(cells["proportion"], 0, 1)).dropna()
        halves = {word: half_age(of["age"].to_numpy(), of["share"].to_numpy()) for word, of in table.groupby("word")}
        return pd.Series(halves, dtype=float).dropna()
    ages = column(cells, *_AGES)
    return (numbers(ages, 0) * _AGES[str(ages.name)]).groupby(cells["word"]).mean().dropna()


def half_age(ages: Array, shares: Array) -> float:
    """Return the age at which a logistic regression of shares on ages is one half, or NaN outside the range of ages."""
    if len(np.unique(ages)) < _LEAST_POINTS:
        return np.nan
    centre = ages.mean()
    clipped = np.clip(shares, 0.005, 0.995)  # the logit of 0 or 1 is infinite
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the age is known even if a step fits the shares perfectly
        constant, slope = sm.GLM(clipped, sm.add_constant(ages - centre), sm.families.Binomial()).fit().params
    at = centre - constant / slope if slope > 0 else np.nan
    return float(at) if ages.min() <= at <= ages.max() else np.nan


def _word_surprisals(folder: Path, found: Studies, snapshots: bool) -> pd.DataFrame:
    """Return one row per run and word, for runs on a curve and for words that are known and frequent enough.

    The columns are word (lower case, without punctuation), surprisal (the mean) and chance in bits, occurrences, run,
    curve and x (log2 of the size). With `snapshots`, each snapshot is a run, and its run is the curve. Raises the same
    RunErrors as `ages_of_acquisition`.
    """
    runs = found.runs[found.runs["sample_words"].notna() & found.runs["baseline"].eq("")]
    x = runs["sample_words"].astype(float).map(np.log2).groupby([runs["curve"], runs["size"]]).transform("mean")
    tables, digests = [], set()
    for run, curve, at, details in zip(
        runs["run"], runs["curve"], x, found.details.loc[runs.index, "manifest"], strict=True
    ):
        for file in sorted(folder.glob(f"{run}@*.parquet" if snapshots else f"{run}.parquet")):
            rows, made = read_words(file)
            digests.add(made["benchmark"]["digest"])
            if snapshots and not made["words_seen"]:
                continue  # untrained
            if (vocabulary := details.get("vocabulary")) is None:  # such as for external checkpoints
                raise RunError(f"{run}: the size of its vocabulary isn't known. To leave out this run, remove {file}.")
            table = _mean_surprisals(rows, file)
            table = table.assign(run=file.stem, curve=run if snapshots else curve)
            table["x"] = np.log2(made["words_seen"]) if snapshots else at
            tables.append(table.assign(chance=table["tokens"] * np.log2(vocabulary)))
    if len(digests) != 1:
        option = " scoring.snapshots=true" if snapshots else ""
        problem = "surprisals are from different texts" if digests else f"no run of {found} has surprisals there"
        raise RunError(f"{folder}: {problem}. Run python -m eval.surprisal{option} again.")
    return pd.concat(tables, ignore_index=True)


def _mean_surprisals(rows: pd.DataFrame, file: Path) -> pd.DataFrame:
    """Return word, mean surprisal and tokens, and occurrences of the known and frequent words, or of the targets."""
    least = LEAST_OCCURRENCES
    if "target" in rows:
        least, rows = 1, rows[[flag_of(cell, str(file), "target") is True for cell in rows["target"]]]
    rows = rows[rows["tokens"] > 0]
    by_word = rows.groupby(rows["word"].str.strip().str.strip(_EDGES).str.lower())
    table = by_word[["surprisal", "tokens"]].mean().assign(occurrences=by_word.size())
    return table[by_word["unk"].max().eq(0) & table["occurrences"].ge(least)].reset_index()
