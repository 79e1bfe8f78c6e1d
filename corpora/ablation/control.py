"""Draw matched controls, which are similar sentences to remove instead of the sentences with a construction.

    store/<corpus>/control-<digest>/
        sentences.npy       the training sentences with the construction, ascending
        controls.npy        each sentence's control
        manifest.json       written last; says how similar they are

Controls lack the construction. They are drawn without replacement by coarsened exact matching (Iacus, King and Porro
2012). A control is drawn at random from the sentences with the same source, length in words and decile of the mean log
word frequency. If no such sentence is left, coarser classes are used. The last of them contains all sentences (LEVELS).
Words are lemmas if the filter has patterns over trees, and reference words if it is a regular expression.
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

BATCH = 4_000  # number of sentences whose logarithms are summed together
NO_LEMMAS = {"", "_"}
FREQUENCY_CLASSES = 10  # number of classes of equal size in the train split
# The properties that the sentences of a class share, from the finest to the coarsest classes. "about words" means that
# their lengths differ by at most about 10%.
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
    """The controls of the sentences with a construction.

    A run's manifest contains `balance`, which describes their similarity: the share that LEVELS[0] matched
    ("same_class"), and means over the sentences with the construction ("removed") and over their controls ("control").
    """

    sentences: Numbers  # (sentences,), ascending
    controls: Numbers  # (sentences,)
    balance: dict[str, Any]

    def of(self, sentences: Numbers) -> Numbers:
        """Return the controls of the given sentences, which must have the construction."""
        return self.controls[np.searchsorted(self.sentences, sentences)]


def matched_control(
    text: TextStore, layer: Layer | None, matches: str, sentences: Numbers, candidates: Numbers, seed: int
) -> Control:
    """Return the control of each sentence. Draw the controls if they are missing.

    Args:
        text: The text.
        layer: The annotation whose lemmas determine word frequencies; None to use reference words.
        matches: Digest of the matches that sentences and candidates are derived from.
        sentences: Indices of the sentences with the construction, ascending.
        candidates: Indices of the sentences to draw from.
        seed: Seed of the draw.

    Raises ConfigError if there are fewer candidates than sentences, or if the annotation has no lemmas.
    """
    if len(candidates) < len(sentences):
        raise ConfigError(
            f"ablate.action=control: {len(sentences):,} sentences have the construction, but only {len(candidates):,} "
            "don't. The construction is too frequent for a matched control. Use another action."
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
    """Yield each sentence's lemmas if there is an annotation, otherwise its reference words.

    Raises ConfigError if the annotation has no lemmas.
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
            f"{layer.folder}: this annotation has no lemmas, which are needed to match a control by frequency. "
            "Annotate the text with a parser that produces lemmas."
        )


def mean_log_frequencies(sentences: Iterable[Sequence[str]], counted: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Return each sentence's mean log word frequency in nats (sentences,). It is 0 for sentences without words.

    A word's frequency is its number of occurrences in the sentences for which `counted` (sentences,) is True, but at
    least 1. Upper and lower case are not distinguished.
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
    for start in range(0, len(lengths), BATCH):  # sums over more words would be less precise
        ends = np.array(begins[start : start + BATCH + 1])
        sums = np.concatenate([[0.0], np.cumsum(logs[of_words[ends[0] : ends[-1]]])])
        means.append(np.diff(sums[ends - ends[0]]) / np.maximum(1, np.diff(ends)))
    return np.concatenate(means)


def _classes(text: TextStore, frequencies: npt.NDArray[np.float64], counted: npt.NDArray[np.bool_]) -> list[Numbers]:
    """Return the class of each sentence of the text (sentences,), for each of LEVELS."""
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
    """Draw a different candidate for each sentence, from the finest class that has candidates left.

    Args:
        classes: The class of each sentence of the text (sentences of the text,), for each level from fine to coarse.
        sentences: Indices of the sentences that need a control.
        candidates: Indices of the sentences to draw from.
        seed: Seed of the draw.

    Returns:
        The candidate of each sentence (sentences,), and the number of candidates found at each level.
    """
    controls = np.full(len(sentences), -1, np.int64)
    waiting = permutation(len(sentences), seed, 0)  # indices into `sentences`
    free = candidates[permutation(len(candidates), seed, 1)]
    levels = []
    for of in classes:
        # In each class, match the first sentence with the first candidate, the second with the second, and so on.
        pairs = _ranked(of[sentences[waiting]]).merge(_ranked(of[free]), on=["class", "rank"])
        one, other = pairs["place_x"].to_numpy(), pairs["place_y"].to_numpy()
        controls[waiting[one]] = free[other]
        waiting, free = np.delete(waiting, one), np.delete(free, other)
        levels.append(len(pairs))
    return controls, levels


def _ranked(classes: Numbers) -> pd.DataFrame:
    """Return a table of places, their classes, and the number of earlier places with the same class (rank)."""
    table = pd.DataFrame({"place": np.arange(len(classes)), "class": classes})
    return table.assign(rank=table.groupby("class").cumcount())
