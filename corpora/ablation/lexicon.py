"""Words by part of speech, features and frequency, for rules that put another word in the place of one."""

from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from corpora.annotate.layer import Layer
from corpora.annotate.tree import Tree
from pairscale.progress import with_progress
from pairscale.seeds import derived_seed

NEIGHBOURS = 10  # other words are drawn from so many of the nearest in frequency
VOWELS = tuple("aeiou")

Kind = tuple[
    str, str, str, bool
]  # part of speech, the treebank's own, features, and whether "an" would stand before it


class Lexicon:
    """The words of a text by kind and frequency, without those that a construction has in the place of a node."""

    def __init__(self, counts: dict[Kind, Counter[str]], excluded: set[str], seed: int):
        """counts: of lower-case words by kind."""
        self._seed = seed
        self._counts = counts
        self._ranked: dict[Kind, tuple[list[str], npt.NDArray[np.float64]]] = {}
        for kind, of in counts.items():
            words = sorted((word for word in of if word not in excluded), key=lambda word: (of[word], word))
            self._ranked[kind] = words, np.log([of[word] for word in words])
        self._chosen: dict[tuple[Kind, str], str | None] = {}

    @classmethod
    def of(
        cls, layer: Layer, sentences: npt.NDArray[np.int64], anchors: Iterable[tuple[int, int]], seed: int
    ) -> "Lexicon":
        """Count the words of sentences; anchors: sentence and word of each node that is to be replaced."""
        replaced = defaultdict(list)
        for sentence, word in anchors:
            replaced[sentence].append(word)
        counts: dict[Kind, Counter[str]] = defaultdict(Counter)
        excluded: set[str] = set()
        trees = ((1, pair) for pair in zip(sentences.tolist(), layer.trees(sentences), strict=True))
        for sentence, tree in with_progress(trees, "counting words", len(sentences), "sentences"):
            for word, text in enumerate(tree.words):
                counts[kind_of(tree, word)][text.lower()] += 1
            excluded.update(tree.words[word].lower() for word in replaced.get(sentence, ()))
        return cls(counts, excluded, seed)

    def other(self, tree: Tree, word: int) -> str | None:
        """Return another word of the same kind and about the same frequency, the same one each time; None if none is.

        It begins with a capital if the word does.
        """
        kind, text = kind_of(tree, word), tree.words[word]
        key = kind, text.lower()
        if key not in self._chosen:
            self._chosen[key] = self._drawn(*key)
        other = self._chosen[key]
        return other.capitalize() if other and text[:1].isupper() else other

    def _drawn(self, kind: Kind, word: str) -> str | None:
        words, frequencies = self._ranked.get(kind, ([], np.empty(0)))
        alphabetic = [index for index, one in enumerate(words) if one != word and one.isalpha()]
        if not alphabetic:
            return None
        distance = np.abs(frequencies[alphabetic] - np.log(max(1, self._counts[kind][word])))
        nearest = np.argsort(distance, kind="stable")[:NEIGHBOURS]
        drawn = derived_seed(None, self._seed, f"{kind}\0{word}") % len(nearest)
        return words[alphabetic[int(nearest[drawn])]]


def kind_of(tree: Tree, word: int) -> Kind:
    """Return the kind of a word of a tree."""
    before_vowel = tree.words[word].lower().startswith(VOWELS)
    return tree.upos[word], tree.xpos[word], tree.feats[word], before_vowel
