"""Rewrite a construction in its alternate form, or with other words, by the rules of its filter.

corpora/constructions/patterns.py describes the rules. A sentence is rewritten if a rule applies to each occurrence of
the construction in it. Otherwise, samples leave the sentence out. The rest of the sentence stays the same.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from corpora.annotate.layer import Layer
from corpora.annotate.tree import Tree
from corpora.config import FilterConfig
from corpora.constructions.matches import Matches
from corpora.constructions.patterns import OTHER, PHRASE, Rule, Slot
from corpora.text import TextStore
from corpora.words import count_characters, count_words
from pairscale.errors import ConfigError
from pairscale.progress import with_progress
from pairscale.seeds import derived_seed

NEIGHBOURS = 10  # a replacement is drawn from this number of words with the nearest frequencies
VOWELS = tuple("aeiou")

Numbers = npt.NDArray[np.int64]
Span = tuple[int, int]  # begin and end, in characters of a sentence
# A word's universal and treebank-specific part of speech, its features, and whether it begins with a vowel (a or an).
Kind = tuple[str, str, str, bool]


class RewrittenText(TextStore):
    """A text with some sentences rewritten, but with the same documents, splits and domains."""

    def __init__(self, text: TextStore, sentences: Mapping[int, str]):
        """Replace some sentences. `sentences` maps their indices to the new sentences."""
        super().__init__(text.folder)
        self.rewritten: Numbers = np.array(sorted(sentences), np.int64)
        self._sentences = dict(sentences)
        counted = [count_words(self._sentences[index], self.manifest["reference"]) for index in self.rewritten.tolist()]
        self.words = self.words.astype(np.int64)
        self.words[self.rewritten] = counted
        self.characters = self.characters.astype(np.int64)
        self.characters[self.rewritten] = [count_characters(self._sentences[i]) for i in self.rewritten.tolist()]

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the class and the arguments with which another process makes the text."""
        return RewrittenText, (TextStore(self.folder), self._sentences)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the original text's digest and of the new sentences."""
        digest = hashlib.sha256(super().digest.encode())
        for index in self.rewritten.tolist():
            digest.update(f"{index}\0{self._sentences[index]}\n".encode())
        return digest.hexdigest()

    def sentence(self, index: int) -> str:
        """Return one sentence."""
        return self._sentences.get(int(index)) or super().sentence(index)

    def sentences(self, indices: npt.ArrayLike) -> Iterator[str]:
        """Yield sentences in the order of `indices`."""
        chosen = np.asarray(indices, np.int64)
        for index, sentence in zip(chosen.tolist(), super().sentences(chosen), strict=True):
            yield self._sentences.get(index, sentence)


class Lexicon:
    """The words of a text by kind and frequency, from which replacements are drawn."""

    def __init__(self, counts: dict[Kind, Counter[str]], excluded: set[str], seed: int):
        """Rank lower-case words by their counts, without the `excluded` words, which a construction contains."""
        self._seed = seed
        self._counts = counts
        self._ranked: dict[Kind, tuple[list[str], npt.NDArray[np.float64]]] = {}
        for kind, of in counts.items():
            words = sorted((word for word in of if word not in excluded), key=lambda word: (of[word], word))
            self._ranked[kind] = words, np.log([of[word] for word in words])
        self._chosen: dict[tuple[Kind, str], str | None] = {}

    def other(self, tree: Tree, word: int) -> str | None:
        """Return another word of the same kind with a similar frequency, or None if there is none.

        The same word is always replaced by the same other word. The result begins with a capital if the word does.
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
    """Return the kind of a word in a tree."""
    before_vowel = tree.words[word].lower().startswith(VOWELS)
    return tree.upos[word], tree.xpos[word], tree.feats[word], before_vowel


def rewritten_text(
    text: TextStore, layer: Layer, matches: Matches, config: FilterConfig, chosen: Numbers, seed: int
) -> RewrittenText:
    """Return a text in which the chosen sentences are rewritten, provided that the filter's rules apply to them.

    Args:
        text: The text.
        layer: Its annotation.
        matches: The matches of the filter in the text.
        config: The filter.
        chosen: Indices of the sentences to rewrite, ascending.
        seed: Seed for drawing other words.

    Raises ConfigError if the filter has no rules, or if they don't apply to any sentence.
    """
    rules = config.rules()
    if not any(rules):
        raise ConfigError(
            f"ablate.action=replace with filter={config.name}: this filter has no rules to rewrite a sentence. Add "
            "`rewrite` to it (see conf/filter), or use ablate.action=remove."
        )
    occurrences: dict[int, list[tuple[Rule | None, dict[str, int]]]] = {index: [] for index in chosen.tolist()}
    for sentence, pattern, words in matches.occurrences():
        if sentence in occurrences:
            occurrences[sentence].append((rules[pattern], words))
    lexicon = _lexicon(text, layer, matches, rules, seed)
    trees = ((1, pair) for pair in zip(chosen.tolist(), layer.trees(chosen), strict=True))
    sentences: dict[int, str] = {}
    for index, tree in with_progress(trees, f"rewriting {config.name}", len(chosen), "sentences"):
        rewritten = rewrite(tree, occurrences[index], lexicon)
        if rewritten is not None:
            sentences[index] = rewritten
    if not sentences:
        raise ConfigError(
            f"ablate.action=replace with filter={config.name}: its rules don't apply to any of the {len(chosen):,} "
            "matching sentences. Correct the rules, or use ablate.action=remove."
        )
    return RewrittenText(text, sentences)


def _lexicon(
    text: TextStore, layer: Layer, matches: Matches, rules: Sequence[Rule | None], seed: int
) -> Lexicon | None:
    """Return the words of the train split that the construction doesn't contain, or None if no rule needs them."""
    replaced = [{part.node for part in rule or () if isinstance(part, Slot) and part.form == OTHER} for rule in rules]
    if not any(replaced):
        return None
    places: dict[int, list[int]] = defaultdict(list)  # words that match such a node, by sentence
    for sentence, pattern, words in matches.occurrences():
        places[sentence] += [words[node] for node in replaced[pattern]]
    counts: dict[Kind, Counter[str]] = defaultdict(Counter)
    excluded: set[str] = set()
    train = text.split_sentences("train")
    trees = ((1, pair) for pair in zip(train.tolist(), layer.trees(train), strict=True))
    for sentence, tree in with_progress(trees, "counting words", len(train), "sentences"):
        for word, form in enumerate(tree.words):
            counts[kind_of(tree, word)][form.lower()] += 1
        excluded.update(tree.words[word].lower() for word in places.get(sentence, ()))
    return Lexicon(counts, excluded, seed)


def rewrite(
    tree: Tree, occurrences: Sequence[tuple[Rule | None, Mapping[str, int]]], lexicon: Lexicon | None = None
) -> str | None:
    """Return a sentence with each occurrence of the construction rewritten by its rule.

    Args:
        tree: The tree of the sentence.
        occurrences: Each occurrence's rule, and the word (index) for each of its nodes.
        lexicon: The words to draw from; only needed by rules with {node:other}.

    Returns:
        The new sentence, or None if an occurrence has no rule or its rule does not apply.
    """
    parts = [_replaced(tree, rule, words, lexicon) for rule, words in occurrences if rule is not None]
    stretches = sorted(part for part in parts if part is not None)
    if len(stretches) < len(occurrences) or not stretches:
        return None
    if any(after[0] < before[1] for (before, _), (after, _) in pairwise(stretches)):
        return None
    text, end = "", 0
    for (start, stop), new in stretches:
        text += tree.sentence[end:start] + new
        end = stop
    return text + tree.sentence[end:]


def _replaced(tree: Tree, rule: Rule, words: Mapping[str, int], lexicon: Lexicon | None) -> tuple[Span, str] | None:
    """Return the span that a rule replaces and its new text, or None if the rule does not apply."""
    slots = [part for part in rule if isinstance(part, Slot)]
    spans = {slot.node: _span(tree, slot, words, {words[other.node] for other in slots}) for slot in slots}
    known = sorted(span for span in spans.values() if span is not None)
    if len(known) < len(slots):
        return None
    gaps = [tree.sentence[before[1] : after[0]] for before, after in pairwise(known)]
    if any(before[1] > after[0] for before, after in pairwise(known)) or any(gap.strip() for gap in gaps):
        return None
    new = ""
    for part in rule:
        if isinstance(part, str):
            new += part
        elif not part.left_out:
            begin, end = spans[part.node] or (0, 0)
            word = tree.sentence[begin:end]
            other = lexicon.other(tree, words[part.node]) if part.form == OTHER and lexicon is not None else word
            if other is None:
                return None
            new += _lowered(tree, begin, other) if part.form != OTHER else other
    new = " ".join(new.split())
    return (known[0][0], known[-1][1]), new[:1].upper() + new[1:] if known[0][0] == tree.starts[0] else new


def _span(tree: Tree, slot: Slot, words: Mapping[str, int], named: set[int]) -> Span | None:
    """Return a node's span, with dependents if the slot is a phrase, or None if it is missing or interrupted."""
    word = words[slot.node]
    if word < 0:
        return None
    if slot.form != PHRASE:
        return tree.starts[word], tree.ends[word]
    inside = sorted(_phrase(tree, word, named - {word}))
    if inside[-1] - inside[0] + 1 != len(inside):
        return None
    return tree.starts[inside[0]], tree.ends[inside[-1]]


def _phrase(tree: Tree, word: int, without: set[int]) -> set[int]:
    """Return a word and all its direct and indirect dependents, except words in `without` and their dependents."""
    phrase = {word}
    grown = True
    while grown:
        more = {
            one for one, head in enumerate(tree.heads) if head in phrase and one not in phrase and one not in without
        }
        phrase |= more
        grown = bool(more)
    return phrase


def _lowered(tree: Tree, begin: int, text: str) -> str:
    """Remove the capital that a text has at the start of a sentence, unless the text is a name or "I"."""
    first = tree.starts.index(begin)
    if begin != tree.starts[0] or tree.upos[first] == "PROPN" or tree.words[first] in ("I", "I'm") or text.isupper():
        return text
    return text[:1].lower() + text[1:]
