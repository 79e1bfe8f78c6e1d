"""Matched controls: for each sentence that an ablation removes, another one like it, to be removed in its place.

    store/<corpus>/control-<digest>/
        sentences.npy       the sentences of the construction in the train split, ascending
        controls.npy        the control of each
        manifest.json       written last: how alike they are

Controls lack the construction, and are drawn without replacement by coarsened exact matching (Iacus, King and Porro
2012): at random among the sentences of the same source, length in words and tenth of the mean log frequency of words;
if none is left, of coarser classes, the last of which are all sentences (LEVELS). Words are lemmas for a filter of
trees, and reference words for a regular expression.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from corpora.annotate.layer import Layer
from corpora.kept import Arrays, kept_arrays
from corpora.text import TextStore
from corpora.words import words
from pairscale.errors import ConfigError
from pairscale.files import sha256_json
from pairscale.progress import with_progress
from pairscale.seeds import permutation

Numbers = npt.NDArray[np.int64]

BATCH = 4_000  # sentences whose logarithms are added up at a time
NO_LEMMAS = {"", "_"}
FREQUENCY_CLASSES = 10  # quantiles of the train split
# From the finest to the coarsest classes: what sentences of one class have in common. about: to 10% of their length.
LEVELS = (
    ("source", "words", "frequency"),
    ("source", "about words", "frequency"),
    ("source", "about words"),
    ("about words", "frequency"),
    ("about words",),
    ("frequency",),
    (),
)


@dataclass(frozen=True)
class Control:
    """The control of each sentence of a construction: two arrays (sentences,), the first ascending.

    balance: how alike the pairs are, for a run's manifest. "same_class": the share that LEVELS[0] matched; "removed",
    "control": means over sentences.
    """

    sentences: Numbers
    controls: Numbers
    balance: dict[str, Any]

    def of(self, sentences: Numbers) -> Numbers:
        """Return the controls of some sentences of the construction."""
        return self.controls[np.searchsorted(self.sentences, sentences)]


def matched_control(
    text: TextStore, layer: Layer | None, matches: str, sentences: Numbers, candidates: Numbers, seed: int
) -> Control:
    """Return the controls of `sentences` (ascending) among `candidates`, drawn if they are missing.

    Args:
        text: The text of all sentences.
        layer: Its annotation, whose lemmas are the words of a sentence; None: the reference words are.
        matches: Digest of the matches that sentences and candidates follow from.
        seed: Seed of the draw.

    Raises ConfigError if there are fewer candidates than sentences, or no lemmas in the layer.
    """
    if len(candidates) < len(sentences):
        raise ConfigError(
            f"ablate.action=control: {len(sentences):,} sentences have the construction, only {len(candidates):,} do "
            "not; there is no control of so frequent a construction"
        )

    def draw() -> tuple[Arrays, dict[str, Any]]:
        counted = np.zeros(len(text), np.bool_)
        counted[text.split_sentences("train")] = True
        frequencies = mean_log_frequencies(words_of_sentences(text, layer), counted)
        controls, levels = draw_controls(_classes(text, frequencies, counted), sentences, candidates, seed)
        means = {
            name: {"words": float(text.words[of].mean()), "log_frequency": float(frequencies[of].mean())}
            for name, of in (("removed", sentences), ("control", controls))
        }
        balance = {"same_class": levels[0] / len(sentences), **means}
        return {"sentences": sentences, "controls": controls}, {"levels": levels, "balance": balance}

    made = {"matches": matches, "words": (layer or text).digest, "seed": seed, "candidates": len(candidates)}
    folder = text.folder.parent / f"control-{sha256_json(made)[:16]}"
    arrays, manifest = kept_arrays(folder, made, draw)
    return Control(arrays["sentences"], arrays["controls"], dict(manifest["balance"]))


def words_of_sentences(text: TextStore, layer: Layer | None) -> Iterator[list[str]]:
    """Yield the words of each sentence: its lemmas in a layer, else its reference words.

    Raises ConfigError if the layer has no lemmas.
    """
    if layer is None:
        yield from (words(sentence, text.manifest["reference"]) for sentence in text.sentences(range(len(text))))
        return
    any_lemma = False
    for lemmas in layer.lemmas():
        any_lemma = any_lemma or not NO_LEMMAS.issuperset(lemmas)
        yield lemmas
    if not any_lemma:
        raise ConfigError(
            f"{layer.folder}: has no lemmas, by whose frequencies a control is matched; annotate the text with a "
            "parser that gives lemmas"
        )


def mean_log_frequencies(sentences: Iterable[Sequence[str]], counted: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Return (sentences,) the mean natural logarithm of the frequencies of each sentence's words, 0 of one without.

    A word's frequency is its number of occurrences in the sentences true in `counted` (sentences,), at least 1; upper
    and lower case are one word.
    """
    known: dict[str, int] = {}
    codes, begins = array("I"), [0]
    steps = ((1, sentence) for sentence in sentences)
    for sentence in with_progress(steps, "counting words", len(counted), "sentences"):
        codes.extend([known.setdefault(word.lower(), len(known)) for word in sentence])
        begins.append(len(codes))
    of_words, lengths = np.frombuffer(codes, np.uint32), np.diff(begins)
    counts = np.bincount(of_words[np.repeat(counted, lengths)], minlength=len(known))
    logs, means = np.log(np.maximum(counts, 1)), []
    for start in range(0, len(lengths), BATCH):  # sums over more words would be less exact
        ends = np.array(begins[start : start + BATCH + 1])
        sums = np.concatenate([[0.0], np.cumsum(logs[of_words[ends[0] : ends[-1]]])])
        means.append(np.diff(sums[ends - ends[0]]) / np.maximum(1, np.diff(ends)))
    return np.concatenate(means)


def _classes(text: TextStore, frequencies: npt.NDArray[np.float64], counted: npt.NDArray[np.bool_]) -> list[Numbers]:
    """Return, for each of LEVELS, the class of every sentence of the text (sentences,)."""
    edges = np.quantile(frequencies[counted], np.arange(1, FREQUENCY_CLASSES) / FREQUENCY_CLASSES)
    columns = pd.DataFrame(
        {
            "source": text.domains_of(np.arange(len(text))),
            "words": text.words,
            "about words": np.round(np.log(np.maximum(text.words, 1)) / np.log(1.1)),
            "frequency": np.searchsorted(edges, frequencies),
        }
    )
    every = np.zeros(len(text), np.int64)
    return [columns.groupby(list(level)).ngroup().to_numpy().astype(np.int64) if level else every for level in LEVELS]


def draw_controls(
    classes: list[Numbers], sentences: Numbers, candidates: Numbers, seed: int
) -> tuple[Numbers, list[int]]:
    """Return (sentences,) a candidate for each sentence, none twice, and how many were found at each level.

    classes: of every sentence of the text (sentences of the text,), a list from the finest to the coarsest.
    """
    controls = np.full(len(sentences), -1, np.int64)
    waiting = permutation(len(sentences), seed, 0)  # indices of `sentences`
    free = candidates[permutation(len(candidates), seed, 1)]
    levels = []
    for of in classes:
        # The first of each class with the first candidate of the same class, the second with the second, and so on.
        pairs = _ranked(of[sentences[waiting]]).merge(_ranked(of[free]), on=["class", "rank"])
        one, other = pairs["place_x"].to_numpy(), pairs["place_y"].to_numpy()
        controls[waiting[one]] = free[other]
        waiting, free = np.delete(waiting, one), np.delete(free, other)
        levels.append(len(pairs))
    return controls, levels


def _ranked(classes: Numbers) -> pd.DataFrame:
    """Return the place of each, its class, and how many of the same class come before it."""
    table = pd.DataFrame({"place": np.arange(len(classes)), "class": classes})
    return table.assign(rank=table.groupby("class").cumcount())
