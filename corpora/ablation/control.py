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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from corpora.annotate.layer import Layer
from corpora.text import TextStore, check_recorded, file_digest, read_manifest, written_once
from corpora.words import words
from pairscale.errors import ConfigError
from pairscale.files import sha256_json, write_array, write_json
from pairscale.progress import with_progress
from pairscale.schema import Count, Digest, Positive
from pairscale.seeds import permutation

Numbers = npt.NDArray[np.int64]
Part = tuple[Numbers, npt.NDArray[Any], list[str]]  # where sentences begin (sentences + 1,), codes (words,), texts

CONTROL_VERSION = 1
ARRAYS = ("sentences", "controls")
BATCH = 4_000  # sentences whose words are counted at a time
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


class _Means(TypedDict):
    words: Any
    log_frequency: Any


class ControlManifest(TypedDict):
    """Schema of manifest.json. levels: pairs matched at each of LEVELS; removed, control: means over sentences."""

    matches: Digest
    digest: Digest
    sentences: Positive
    levels: list[Count]
    removed: _Means
    control: _Means


@dataclass(frozen=True)
class Control:
    """The control of each sentence of a construction: two arrays (sentences,), the first ascending."""

    sentences: Numbers
    controls: Numbers
    manifest: dict[str, Any]

    def of(self, sentences: Numbers) -> Numbers:
        """Return the controls of some sentences of the construction."""
        return self.controls[np.searchsorted(self.sentences, sentences)]

    def balance(self) -> dict[str, Any]:
        """Return how alike the pairs are, for a run's manifest."""
        same = self.manifest["levels"][0] / self.manifest["sentences"]
        return {"same_class": same, **{name: self.manifest[name] for name in ("removed", "control")}}


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
    key = sha256_json([matches, (layer or text).digest, seed, len(candidates), CONTROL_VERSION])[:16]
    folder = text.folder.parent / f"control-{key}"
    with written_once(folder) as missing:
        if missing:
            _write(folder, text, layer, matches, sentences, candidates, seed)
    manifest = dict(read_manifest(folder, CONTROL_VERSION, ControlManifest))
    check_recorded(folder, manifest, {"matches": matches, "digest": _digest(folder)})
    of, controls = (np.load(folder / f"{name}.npy").astype(np.int64) for name in ARRAYS)
    return Control(of, controls, manifest)


def _write(
    folder: Path, text: TextStore, layer: Layer | None, matches: str, sentences: Numbers, candidates: Numbers, seed: int
) -> None:
    counted = np.zeros(len(text), np.bool_)
    counted[text.split_sentences("train")] = True
    frequencies = mean_log_frequencies(text_parts(text) if layer is None else lemma_parts(layer), counted)
    classes = _classes(text, frequencies, counted)
    controls, levels = draw_controls(classes, sentences, candidates, seed)
    write_array(folder / "sentences.npy", sentences)
    write_array(folder / "controls.npy", controls)
    means = {
        name: {"words": float(text.words[of].mean()), "log_frequency": float(frequencies[of].mean())}
        for name, of in (("removed", sentences), ("control", controls))
    }
    manifest = {"version": CONTROL_VERSION, "matches": matches, "digest": _digest(folder), "sentences": len(sentences)}
    write_json(folder / "manifest.json", manifest | {"levels": levels, **means})


def lemma_parts(layer: Layer) -> Iterator[Part]:
    """Yield the lemmas of each part of a layer. Raises ConfigError if it has none."""
    any_lemma = False
    for begins, codes, lemmas in layer.lemmas():
        any_lemma = any_lemma or not NO_LEMMAS.issuperset(lemmas)
        yield begins, codes, lemmas
    if not any_lemma:
        raise ConfigError(
            f"{layer.folder}: has no lemmas, by whose frequencies a control is matched; annotate the text with a "
            "parser that gives lemmas"
        )


def text_parts(text: TextStore) -> Iterator[Part]:
    """Yield the reference words of a text, BATCH sentences at a time."""
    batches = ((min(BATCH, len(text) - start), start) for start in range(0, len(text), BATCH))
    for start in with_progress(batches, "counting words", len(text), "sentences"):
        known: dict[str, int] = {}
        codes, begins = [], [0]
        for sentence in text.sentences(range(start, min(start + BATCH, len(text)))):
            codes += [known.setdefault(word, len(known)) for word in words(sentence, text.manifest["reference"])]
            begins.append(len(codes))
        yield np.array(begins, np.int64), np.array(codes, np.uint32), list(known)


def mean_log_frequencies(parts: Iterable[Part], counted: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Return (sentences,) the mean natural logarithm of the frequencies of each sentence's words, 0 of one without.

    A word's frequency is its number of occurrences in the sentences true in `counted` (sentences,), at least 1; upper
    and lower case are one word.
    """
    known: dict[str, int] = {}
    kept = []
    for begins, codes, texts in parts:
        of_part = np.array([known.setdefault(text.lower(), len(known)) for text in texts], np.uint32)
        kept.append((begins, of_part[codes]))
    counts = np.zeros(len(known), np.int64)
    first = 0
    for begins, codes in kept:
        of_words = np.repeat(counted[first : first + len(begins) - 1], np.diff(begins))
        np.add.at(counts, codes[of_words], 1)
        first += len(begins) - 1
    logs = np.log(np.maximum(counts, 1))
    means = []
    for begins, codes in kept:
        sums = np.concatenate([[0.0], np.cumsum(logs[codes])])
        means.append(np.diff(sums[begins]) / np.maximum(1, np.diff(begins)))
    return np.concatenate(means)


def _classes(text: TextStore, frequencies: npt.NDArray[np.float64], counted: npt.NDArray[np.bool_]) -> list[Numbers]:
    """Return, for each of LEVELS, the class of every sentence of the text (sentences,)."""
    every = np.arange(len(text))
    edges = np.quantile(frequencies[counted], np.arange(1, FREQUENCY_CLASSES) / FREQUENCY_CLASSES)
    columns = {
        "source": text.domains_of(every).astype(np.int64),
        "words": text.words.astype(np.int64),
        "about words": np.round(np.log(np.maximum(text.words, 1)) / np.log(1.1)).astype(np.int64),
        "frequency": np.searchsorted(edges, frequencies),
    }
    return [_crossed([columns[name] for name in level], len(text)) for level in LEVELS]


def _crossed(columns: list[Numbers], length: int) -> Numbers:
    """Return one number for each combination of values."""
    crossed = np.zeros(length, np.int64)
    for column in columns:
        crossed = crossed * (int(column.max()) + 1) + column
    return crossed


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
        one, other = _paired(of[sentences[waiting]], of[free])
        controls[waiting[one]] = free[other]
        waiting, free = np.delete(waiting, one), np.delete(free, other)
        levels.append(len(one))
    return controls, levels


def _paired(classes: Numbers, others: Numbers) -> tuple[Numbers, Numbers]:
    """Return indices of both arrays: the first of each class with the first of the same class, and so on."""
    ranked = [np.stack([of, _rank_in_class(of)], axis=1) for of in (classes, others)]
    width = 1 + max((int(rows[:, 1].max(initial=0)) for rows in ranked), default=0)
    one, other = (rows[:, 0] * width + rows[:, 1] for rows in ranked)
    _, first, second = np.intersect1d(one, other, assume_unique=True, return_indices=True)
    return first, second


def _rank_in_class(classes: Numbers) -> Numbers:
    """Return how many of the same class come before each."""
    order = np.argsort(classes, kind="stable")
    ordered = classes[order]
    ranks = np.empty(len(classes), np.int64)
    ranks[order] = np.arange(len(classes)) - np.searchsorted(ordered, ordered)
    return ranks


def _digest(folder: Path) -> str:
    return sha256_json([file_digest(folder / f"{name}.npy") for name in ARRAYS])
