"""Scores of parsed sentences, as the CoNLL 2018 shared task defines them (Zeman et al. 2018, section 5).

A word of the parser is aligned with the word of the treebank at the same characters. A score is the F1 of aligned words
whose column is right, so that words that were cut otherwise count as wrong; with the treebank's own words it is the
accuracy. As in the task's script, UFeats compares universal features alone, UAS and LAS demand the head that is aligned
with the right one, and LAS compares relations without their subtypes ("aux" of "aux:pass"), which `las_subtypes` has.

Sentences are given here, where the task's systems had to find them: published scores from raw text are lower by that.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

from corpora.annotate.tree import Tree

METRICS = ("words", "upos", "xpos", "feats", "lemmas", "uas", "las", "las_subtypes")
UNIVERSAL_FEATURES = frozenset(
    [
        *("PronType", "NumType", "Poss", "Reflex", "Foreign", "Abbr", "Gender", "Animacy", "Number", "Case"),
        *("Definite", "Degree", "VerbForm", "Mood", "Tense", "Aspect", "Voice", "Evident", "Polarity", "Person"),
        "Polite",
    ]
)


def scores(gold: Iterable[Tree], parsed: Iterable[Tree]) -> dict[str, float]:
    """Return each of METRICS, from 0 to 1. `parsed` has the sentences of `gold`, in the same order."""
    right: Counter[str] = Counter()
    words = 0  # of both
    for expected, tree in zip(gold, parsed, strict=True):
        words += len(expected) + len(tree)
        right += _right(expected, tree)
    return {metric: 2 * right[metric] / words for metric in METRICS}


def _right(gold: Tree, parsed: Tree) -> Counter[str]:
    """Return how many words of a sentence are right, by metric."""
    right: Counter[str] = Counter()
    aligned = _aligned(gold, parsed)
    for word, at in aligned.items():
        root = gold.heads[word] == word
        head = parsed.heads[at] == (at if root else aligned.get(gold.heads[word]))
        head = head and (root or parsed.heads[at] != at)
        relations = gold.relations[word], parsed.relations[at]
        universal, found = (relation.partition(":")[0] for relation in relations)
        right["words"] += 1
        right["upos"] += gold.upos[word] == parsed.upos[at]
        right["xpos"] += gold.xpos[word] == parsed.xpos[at]
        right["feats"] += _universal(gold.feats[word]) == _universal(parsed.feats[at])
        right["lemmas"] += gold.lemmas[word] in ("", parsed.lemmas[at])  # not annotated, or the same
        right["uas"] += head
        right["las"] += head and universal == found
        right["las_subtypes"] += head and relations[0] == relations[1]
    return right


def _aligned(gold: Tree, parsed: Tree) -> dict[int, int]:
    """Return the words of `gold` -> those of `parsed` at the same characters; in order where several share them."""
    places: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for index, span in enumerate(zip(parsed.starts, parsed.ends, strict=True)):
        places[span].append(index)
    spans = enumerate(zip(gold.starts, gold.ends, strict=True))
    return {word: places[span].pop(0) for word, span in spans if places[span]}


def _universal(feats: str) -> list[str]:
    return sorted(feature for feature in feats.split("|") if feature.partition("=")[0] in UNIVERSAL_FEATURES)
