"""Collect a model's surprisals of words in contexts for a BabyLM submission, and score its ages of words.

A word is known when a sigmoid through its mean surprisals has fallen halfway from chance to the lowest mean (Chang and
Bergen 2022, section 3.2). Children know a word at the age at which a sigmoid through their proportions reaches one
half. The sigmoids, their limits and the score are those of the pipeline of July 2026 (evaluation_pipeline/utils.py).
"""

import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import OptimizeWarning, curve_fit
from scipy.stats import pearsonr

from eval.scores.files import read_words
from pairscale.errors import InputError
from pairscale.schema import read_json

TEXT = "contexts"  # name of the text that `python -m eval.surprisal` reads (docs/guides/words_and_ages.md)
CONTEXTS, CHILDREN = "full_eval/aoa/cdi_childes.json", "full_eval/aoa/cdi_human.csv"
_FEWEST, _LARGEST_P = 3, 0.1  # fewer words, or a larger p value, give a score of 0
_TRIES, _TRIES_OF_CHILDREN = 20_000, 1_000
Array = npt.NDArray[np.float64]


def reaches(
    x: Array, y: Array, first: list[float], limits: tuple[list[float], list[float]], level: float, tries: int
) -> float | None:
    """Return where a sigmoid that is fitted to points reaches a level, or None if it does so outside x or not at all.

    Args:
        x: (N,) ascending.
        y: (N,).
        first: Height, slope, midpoint and lowest value of the sigmoid to begin with.
        limits: Their lowest and highest values.
        level: The level.
        tries: How often the sigmoid may be evaluated.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OptimizeWarning)  # the errors of the parameters aren't used
        try:
            (height, slope, middle, lowest), _ = curve_fit(
                lambda x, a, b, c, d: a / (1 + np.exp(-b * (x - c))) + d, x, y, first, bounds=limits, maxfev=tries
            )
        except RuntimeError:  # no fit was found
            return None
    if min(height, slope) <= 1e-6 or not lowest < level < lowest + height:
        return None
    at = float(middle - math.log(height / (level - lowest) - 1) / slope)
    return at if x[0] <= at <= x[-1] else None


def surprisals(checkpoints: Mapping[str, int], data: Path, files: Mapping[str, Path]) -> list[dict[str, Any]] | None:
    """Return the surprisals of words in contexts at each checkpoint as in a submission, or None if a file is missing.

    Args:
        checkpoints: The words seen at each checkpoint that the track asks for.
        data: The folder of the evaluation data.
        files: For each checkpoint, the file that `python -m eval.surprisal` wrote for the table of contexts.

    Returns:
        One dictionary per checkpoint, word of two or more letters, and context, with `surprisal` in nats.

    Raises InputError if the table is damaged, or if a text is missing or has another context.
    """
    table = data / CONTEXTS
    if not table.exists() or not files.keys() >= checkpoints.keys():
        return None
    found = read_json(table, dict[str, list[dict[str, Any]]], InputError, "Download the challenge's file again.")
    contexts = {word: [str(row["context"]) for row in rows] for word, rows in found.items() if len(word) > 1}
    results = []
    for revision, asked in checkpoints.items():
        targets = _targets(files[revision])
        nats = targets["uncorrected"] * math.log(2)
        about = {"step": revision, "word_count": asked}
        for word, rows in contexts.items():
            for number, context in enumerate(rows):
                name = f"{word} {number}"
                if name not in nats or targets["before"][name].split() != context.split():
                    raise InputError(
                        f"{files[revision]}: the text '{name}' of {table} isn't in it, or has another context. Write "
                        "the texts, and compute their surprisals again."
                    )
                more = {"target_word": word, "context_id": number, "context": context}
                results.append({**about, **more, "surprisal": float(nats[name])})
    return results


def _targets(path: Path) -> pd.DataFrame:
    """Return the summed surprisal (bits, column `uncorrected`), tokens and context (before) of each text's target."""
    words, _ = read_words(path)
    is_target = words["target"].astype(str).str.casefold().isin(["true", "1"])
    before = words[~is_target].groupby("text_id")["word"].agg(" ".join)
    sums = words[is_target].groupby("text_id")[["uncorrected", "tokens"]].sum()
    return sums.assign(before=before.reindex(sums.index).fillna(""))


def score(results: list[dict[str, Any]], data: Path, file: Path, vocabulary: int) -> float | None:
    """Return the correlation of the ages at which a model and children know words, or None without children's ages.

    Args:
        results: The surprisals of `surprisals`.
        data: The folder of the evaluation data.
        file: A file of surprisals, for the number of tokens of each word.
        vocabulary: Number of tokens in the model's vocabulary.

    Returns:
        Pearson's correlation of log10 of the words seen with the age in months, over the words that both know within
        the range of the data. It is 0 if there are fewer than three words, or if p > .1.

    Raises InputError if the table of ages is damaged.
    """
    if not (table := data / CHILDREN).exists():
        return None
    means = pd.DataFrame(results).groupby(["target_word", "word_count"], sort=False)["surprisal"].mean().unstack()
    tokens = _targets(file)["tokens"]
    tokens = tokens.groupby(tokens.index.str.rpartition(" ").get_level_values(0)).first()
    children = pd.read_csv(table, keep_default_na=False, na_values=[""])
    months = [name for name in map(str, range(16, 31)) if name in children]
    if "word" not in children or len(months) < _FEWEST:
        raise InputError(f"{table}: the columns must be word, 16, 17, ..., 30. Download the challenge's file again.")
    children = children.drop_duplicates("word").set_index("word")[months]
    proportions = children.apply(pd.to_numeric, errors="coerce")
    if (damaged := proportions.isna() & children.notna()).to_numpy().any():
        word = damaged.index[damaged.any(axis=1)][0]
        raise InputError(f"{table}: a proportion of '{word}' isn't a number. Download the challenge's file again.")
    pairs = []
    for word in means.index.intersection(proportions.index):
        model = model_age(
            means.columns.to_numpy(float), means.loc[word].to_numpy(), tokens[word] * math.log(vocabulary)
        )
        child = child_age(proportions.loc[word].dropna())
        if model is not None and child is not None:
            pairs.append((model, child))
    if len(pairs) < _FEWEST:
        return 0.0
    found = pearsonr(*zip(*pairs, strict=True))
    return 0.0 if found.pvalue > _LARGEST_P else float(found.statistic)


def model_age(words_seen: Array, nats: Array, chance: float) -> float | None:
    """Return log10 of the words seen (plus 1) at which a word is known, given its mean surprisals (nats) there."""
    x, y = np.log10(words_seen + 1), -nats
    low, span = float(y.min()), float(np.ptp(y))
    first = [span, 1.0, float(x.mean()), low]
    lowest = [0.0, 0.0, float(x.min()) - 1, low - 2 * span - 1]
    highest = [10 * span + 1, 100.0, float(x.max()) + 1, float(y.max()) + 1]
    at = reaches(x, y, first, (lowest, highest), -(chance + float(nats.min())) / 2, _TRIES)
    if at is None or not words_seen[0] <= 10**at - 1 <= words_seen[-1]:
        return None
    return at


def child_age(proportions: pd.Series) -> float | None:
    """Return the age in months at which half of the children know a word, given proportions indexed by age."""
    ages = proportions.index.to_numpy(float)
    if len(ages) < _FEWEST:
        return None
    limits = ([0.0, 0.0, ages[0], -0.5], [2.0, 1.0, ages[-1], 0.5])
    first = [1.0, 0.1, float(ages.mean()), 0.0]
    return reaches(ages, proportions.to_numpy(float), first, limits, 0.5, _TRIES_OF_CHILDREN)
