"""Interventions: from the matches of a filter to the sentences that samples skip or read in another form."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from corpora.ablation.config import CONTROL, KEEP_ONLY, REPLACE, AblateConfig
from corpora.ablation.control import Control, matched_control
from corpora.ablation.rewriting import RewrittenText, rewritten_text
from corpora.annotate.layer import open_layer
from corpora.constructions.config import FilterConfig
from corpora.constructions.matches import find_matches
from corpora.samples import Sample
from corpora.text import TextStore
from pairscale.errors import ConfigError
from pairscale.files import sha256_json
from pairscale.seeds import derived_seed, permutation

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Intervention:
    """What samples of the train split do about a construction. Arrays of sentences are ascending.

    text: what samples read, the original with rewritten sentences in their places. matching: sentences with the
    construction. changed: those among them that it acts upon, all but the dose. skipped: those that samples leave out.
    """

    filter: FilterConfig
    config: AblateConfig
    original: TextStore
    text: TextStore
    matching: Numbers
    changed: Numbers
    skipped: Numbers
    layer: str
    digest: str  # SHA-256 of what it follows from: matches, skipped sentences and rewritten ones
    control: Control | None = None

    @property
    def balance(self) -> dict[str, Any]:
        """How alike a control and the sentences are that it stands for; {} without a control."""
        return self.control.balance() if self.control is not None else {}

    @property
    def rewritten(self) -> Numbers:
        """The sentences that samples read in another form."""
        return self.text.rewritten if isinstance(self.text, RewrittenText) else np.empty(0, np.int64)

    def left_out(self, others: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
        """Return (sentences of the text,) true for those that samples leave out, for this or as true in `others`."""
        left_out = np.zeros(len(self.original), np.bool_) if others is None else others.copy()
        left_out[self.skipped] = True
        return left_out

    @property
    def sizes(self) -> dict[str, Any]:
        """What it is and what it does to the train split, for manifests.

        sentences, words: skipped or rewritten ones; matching: those with the construction.
        """
        train, words = self.original.manifest["splits"]["train"], self.original.words
        acted = np.union1d(self.skipped, self.rewritten)
        return {
            "filter": self.filter.name,
            "action": self.config.action,
            "dose": self.config.dose,
            "layer": self.layer,
            "digest": self.digest,
            "sentences": len(acted),
            "words": int(words[acted].sum()),
            "of_sentences": train["sentences"],
            "of_words": train["words"],
            "matching": {"sentences": len(self.matching), "words": int(words[self.matching].sum())},
            "rewritten": len(self.rewritten),
            "balance": self.balance,
        }

    def describe(self, sample: Sample) -> dict[str, Any]:
        """Return the intervention's entry in a run's manifest: its sizes, and what it did to the run's sample.

        Of the sample, sentences and words: skipped ones before its end; matching, rewritten: sentences that it has.
        """
        rewritten = np.isin(sample.indices, self.rewritten)
        of_sample = {
            "sentences": sample.skipped_sentences,
            "words": sample.skipped_words,
            "matching": int((np.isin(sample.indices, self.matching) & ~rewritten).sum()),
            "rewritten": int(rewritten.sum()),
        }
        return self.sizes | {"sample": of_sample}


def intervene(
    text: TextStore, construction: FilterConfig, config: AblateConfig, seed: int, left_out: npt.NDArray[np.bool_] | None
) -> Intervention:
    """Return what the samples of a run's seed do about a construction; config.acts.

    left_out: sentences (sentences of the text,) that samples lack anyway, which are neither acted upon nor controls.
    Raises ConfigError for a text without annotation, a construction that it lacks and a control that cannot be drawn.
    """
    seed = derived_seed(config.seed, seed, "ablation")
    layer = open_layer(text.folder.parent, config.layer, text)
    matches = find_matches(text.folder.parent, text, layer, construction)
    train = text.split_sentences("train")
    if left_out is not None:
        train = train[~left_out[train]]
    matching = np.intersect1d(train, matches.sentences, assume_unique=True)
    others = np.setdiff1d(train, matching, assume_unique=True)
    if not len(matching):
        raise ConfigError(
            f"filter={construction.name}: matches no sentence of the train split of {text.folder.parent.name}"
        )
    kept = round(Fraction(config.dose) * len(matching))
    changed = np.sort(matching[permutation(len(matching), seed)[kept:]])
    skipped, control, read = changed, None, text
    match config.action:
        case value if value == KEEP_ONLY:
            skipped = others
        case value if value == CONTROL:
            control = matched_control(text, layer, matches.digest, matching, others, seed)
            skipped = np.sort(control.of(changed))
        case value if value == REPLACE:
            read = rewritten_text(text, layer, matches, construction, changed, seed)
            skipped = np.setdiff1d(changed, read.rewritten, assume_unique=True)
    digest = sha256_json([matches.digest, skipped.tolist(), read.digest])
    return Intervention(construction, config, text, read, matching, changed, skipped, layer.name, digest, control)
