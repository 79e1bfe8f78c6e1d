"""Intervals for new words too: pairs of a paradigm that share lexical items depend on each other (Clark 1973).

The pairs of a generated benchmark are combinations of the same nouns and verbs. The interval for "new pairs too" is for
further pairs of these words; what a model does with a word is in all pairs that have it, so new words change more.

Pairs i and j of a paradigm are related if they share a lexical item: a word of either sentence, in the form that
stands there, that occurs in no more than a tenth of the paradigm's pairs. Words in more pairs belong to the template,
and new pairs have them, too. The variance of a mean is the sum of the products of residuals of all related pairs: the
estimator of Cameron, Gelbach and Miller (2011, section 2) for errors clustered in several dimensions that are not
nested, each word a cluster. Clusters of pairs that hang together through some word would be whole paradigms, and
clusters by one word of each pair would leave the others out.

With residuals from the mean of n pairs and s the share of related pairs among all n^2, sums are too small by 1 - s and
are divided by it, which is exact for independent pairs (of unrelated ones it is the usual n / (n - 1)). Degrees of
freedom are those of Bell and McCaffrey 2002 for independent pairs. As sums of products can come out too small, and even
below 0, a variance is at least that of independent pairs. Words that paradigms have in common count as different ones.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, eye_array
from scipy.stats import t as student

from analysis.config import CurvesConfig
from analysis.curves.ablations.effects import estimate
from analysis.curves.fit import wilson_limits
from analysis.curves.groups import cautions, cautions_left, fit_groups
from analysis.curves.intervals import Errors, at_least, t_limits, with_pairs
from analysis.curves.units import Units, units_of
from analysis.curves.variance import Array, Numbers, pair_variance, satterthwaite, weighted_squares
from analysis.study.judgements import Judgements
from corpora.words import words

TEMPLATE = 0.1  # share of a paradigm's pairs above which a word belongs to the template
_OF_CHARACTERS = "characters"  # a reference tokenizer whose words are no lexical items: those are jieba's
NEW_WORDS = [
    "group", "level", "name", "paradigms", "n_pairs", "accuracy", "low_pairs", "high_pairs", "low_words", "high_words",
    "ratio", "slope", "slope_low_pairs", "slope_high_pairs", "slope_low_words", "slope_high_words", "slope_ratio",
]  # fmt: skip


@dataclass(frozen=True)
class Related:
    """Related pairs of a paradigm: `pairs` (n, n), a sparse array, 1 where two share an item, and on the diagonal."""

    pairs: Any

    @property
    def share(self) -> float:
        """The share of related pairs among all n^2."""
        return float(self.pairs.sum() / self.pairs.shape[0] ** 2)

    @property
    def degrees(self) -> float:
        """Degrees of freedom of a variance over independent pairs: trace(A)^2 / trace(A^2), A of centred residuals."""
        n, rows = self.pairs.shape[0], self.pairs.sum(axis=1)
        squares = self.pairs.nnz - 2 / n * (rows**2).sum() + rows.sum() ** 2 / n**2
        return float((n - rows.sum() / n) ** 2 / squares)


def lexical_items(sentences: Sequence[str], reference: str) -> set[str]:
    """Return the words of sentences, marks left out, in lower case; `reference`: a reference tokenizer."""
    found = (word.lower() for sentence in sentences for word in words(sentence, reference))
    return {word for word in found if any(character.isalnum() for character in word)}


def related_pairs(items: Sequence[Collection[str]]) -> Related:
    """Return which of n pairs share an item that at most TEMPLATE of them have (two of them at least may)."""
    counts = Counter(word for of in items for word in of)
    most = max(2, TEMPLATE * len(items))
    number = {word: place for place, word in enumerate(word for word, n in counts.items() if 2 <= n <= most)}
    rows = [(i, number[word]) for i, of in enumerate(items) for word in of if word in number]
    places = np.array(rows, np.int64).reshape(-1, 2)
    ones = np.ones(len(places), np.int32)
    have = csr_array((ones, (places[:, 0], places[:, 1])), shape=(len(items), max(1, len(number))))
    shared = (have @ have.T + eye_array(len(items), dtype=np.int32, format="csr")).tocsr()
    shared.data[:] = 1
    return Related(shared)


def related_of(pairs: pd.DataFrame, items: pd.DataFrame, reference: str) -> list[Related]:
    """Return the related pairs of each paradigm, in the order of `pairs` (paradigm, pair_id, sorted by paradigm).

    `items`: sentences of the benchmark (eval.scores.files.ITEMS). Of a corpus of characters, words are jieba's.
    """
    reference = {_OF_CHARACTERS: "jieba", "jieba": "jieba"}.get(reference, "treebank")
    sentences = pairs.merge(items[["paradigm", "pair_id", "good", "bad"]], on=["paradigm", "pair_id"], how="left")
    found = [lexical_items(both, reference) for both in zip(sentences["good"], sentences["bad"], strict=True)]
    bounds = units_of(pairs).bounds
    return [related_pairs(found[start:end]) for start, end in pairwise(bounds)]


def clustered_variance(values: Array, bounds: Numbers, units: Units, related: Sequence[Related]) -> tuple[Array, Array]:
    """Return the (U,) variances of units' means of (P,) values over new pairs of new words, and degrees of freedom."""
    of_paradigms, degrees = np.empty(len(related)), np.empty(len(related))
    for k, ((start, end), of) in enumerate(zip(pairwise(bounds), related, strict=True)):
        residual = values[start:end] - values[start:end].mean()
        of_paradigms[k] = residual @ (of.pairs @ residual) / (end - start) ** 2 / (1 - of.share)
        degrees[k] = of.degrees
    variance = weighted_squares(of_paradigms, units.weights)
    parts = of_paradigms[:, None] * units.weights**2
    least = pair_variance(values, bounds, units.weights)
    free = satterthwaite(np.abs(parts), np.broadcast_to(degrees[:, None], parts.shape))
    return np.maximum(variance, least), np.where(variance > least, free, units.pair_degrees)


def with_words(errors: Errors, values: Array, units: Units, related: Sequence[Related]) -> tuple[Array, Array]:
    """Return the (U,) errors over new runs, pairs and words, and their degrees; `values` (P,): what pairs add."""
    variance, free = clustered_variance(values, units.bounds, units, related)
    both, degrees = with_pairs(errors.runs**2, errors.degrees, variance - errors.chance, free)
    return np.sqrt(both), degrees


def new_word_table(judged: Judgements, related: Sequence[Related], config: CurvesConfig) -> pd.DataFrame:
    """Return accuracies at each group's largest size and slopes with limits for new pairs, and words too: NEW_WORDS.

    All limits are over new runs as well, with Student's t (Wilson's of accuracies, as analysis.curves.fit), NaN where
    the runs give none. ratio: the error for new words over that for new pairs.
    """
    units, tables = units_of(judged.pairs), []
    for fit in fit_groups(judged, units, config.interval):
        at = fit.design.size == fit.design.size[fit.design.x.argmax()]
        largest, outcome = estimate(fit.outcome[at], fit.design.of(at), units), fit.outcome.astype(np.float64)
        these = t_limits(fit.line.slope, fit.errors.runs, fit.errors.degrees, config.confidence)
        columns: dict[str, Array] = {}
        _, left_out = cautions_left(cautions(fit), config)
        for prefix, value, errors, values in (
            ("", largest.value, largest.errors, outcome[at].mean(axis=0)),
            ("slope_", fit.line.slope, fit.errors, fit.design.contrast @ outcome),
        ):
            limits = t_limits if prefix else _wilson
            new = with_words(errors, values, units, related)
            pairs = limits(value, errors.both, errors.degrees_both, config.confidence)
            pairs = at_least(pairs, these) if prefix else pairs
            further = at_least(limits(value, *new, config.confidence), pairs)
            for what, ends in (("pairs", pairs), ("words", further)):
                low, high = (np.where(left_out != "", np.nan, end) for end in ends) if prefix else ends
                columns |= {f"{prefix}low_{what}": low, f"{prefix}high_{what}": high}
            columns[f"{prefix}ratio"] = new[0] / np.where(errors.both > 0, errors.both, np.nan)
        table = units.table.assign(group=fit.group, accuracy=largest.value, slope=fit.line.slope, **columns)
        tables.append(table[NEW_WORDS])
    return pd.concat(tables, ignore_index=True)


def _wilson(value: Array, error: Array, degrees: Array, confidence: float) -> tuple[Array, Array]:
    binomial = value * (1 - value)
    square = student.ppf(0.5 + confidence / 2, degrees) ** 2 * error**2
    return wilson_limits(value, square / np.where(binomial > 1e-9, binomial, np.inf))
