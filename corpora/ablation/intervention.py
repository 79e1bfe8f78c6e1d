"""Interventions: from the matches of a filter to the sentences that samples skip or read in another form.

A filter is a regular expression, searched in the text itself, or patterns over the trees of an annotated text.
"""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from corpora.ablation.control import Control, matched_control
from corpora.ablation.rewriting import RewrittenText, rewritten_text
from corpora.annotate.layer import open_layer
from corpora.config import CONTROL, KEEP_ONLY, REPLACE, AblateConfig, FilterConfig, RegexFilter
from corpora.constructions.matches import find_matches
from corpora.samples import Sample
from corpora.text import TextStore
from pairscale.errors import ConfigError
from pairscale.files import sha256_json
from pairscale.seeds import derived_seed, permutation
from pairscale.tables import write_csv

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Intervention:
    """What samples of the train split do about a construction. Arrays of sentences are ascending.

    text: what samples read, the original with rewritten sentences in their places. matching: sentences with the
    construction. skipped: those that samples leave out.
    """

    filter: FilterConfig | RegexFilter
    config: AblateConfig
    original: TextStore
    text: TextStore
    matching: Numbers
    skipped: Numbers
    layer: str | None  # the annotation that was searched; None: the text itself was
    digest: str  # SHA-256 of what it follows from: matches, skipped sentences and rewritten ones
    control: Control | None = None

    @property
    def balance(self) -> dict[str, Any]:
        """How alike a control and the sentences are that it stands for; {} without a control."""
        return self.control.balance if self.control is not None else {}

    @property
    def rewritten(self) -> Numbers:
        """The sentences that samples read in another form."""
        return self.text.rewritten if isinstance(self.text, RewrittenText) else np.empty(0, np.int64)

    @property
    def left_out(self) -> npt.NDArray[np.bool_]:
        """True for each sentence of the text that samples leave out (sentences of the text,)."""
        left_out = np.zeros(len(self.original), np.bool_)
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
    text: TextStore, construction: FilterConfig | RegexFilter, config: AblateConfig, seed: int
) -> Intervention:
    """Return what the samples of a run's seed do about a construction; config.acts.

    Raises ConfigError for trees of a text without annotation, a construction that no sentence or every one has, and a
    control that cannot be drawn.
    """
    seed = derived_seed(config.seed, seed, "ablation")
    by_trees = isinstance(construction, FilterConfig)
    layer = open_layer(text.folder.parent, config.layer, text) if by_trees else None
    matches = find_matches(text, construction, layer)
    train = text.split_sentences("train")
    matching = np.intersect1d(train, matches.sentences, assume_unique=True)
    others = np.setdiff1d(train, matching, assume_unique=True)
    read_as = f" (filter.regex={construction.regex})" if isinstance(construction, RegexFilter) else ""
    where = f"of the train split of {text.folder.parent.name}"
    if not len(matching):
        raise ConfigError(f"filter={construction.name}{read_as}: matches no sentence {where}")
    kept = round(Fraction(config.dose) * len(matching))
    changed = np.sort(matching[permutation(len(matching), seed)[kept:]])
    skipped, control, read = changed, None, text
    if config.action == KEEP_ONLY:
        skipped = others
    elif config.action == CONTROL:
        control = matched_control(text, layer, matches.digest, matching, others, seed)
        skipped = np.sort(control.of(changed))
    elif config.action == REPLACE:
        assert layer is not None  # CorporaConfig allows rules of trees only
        assert isinstance(construction, FilterConfig)
        read = rewritten_text(text, layer, matches, construction, changed, seed)
        skipped = np.setdiff1d(changed, read.rewritten, assume_unique=True)
    if len(skipped) == len(train):
        raise ConfigError(
            f"filter={construction.name}{read_as}, ablate.action={config.action}: leaves out every sentence {where}"
        )
    digest = sha256_json([matches.digest, skipped.tolist(), read.digest])
    name = layer.name if layer is not None else None
    return Intervention(construction, config, text, read, matching, skipped, name, digest, control)


def write_listing(path: Path, intervention: Intervention) -> int:
    """Write the sentences that an intervention leaves out or rewrites to a CSV file; return their number.

    Columns: line of the sentence in the text (text.txt), from 1; action, "left out" or "rewritten"; words, of the
    sentence as it was; sentence; rewritten, its new form; control_of, the line of the sentence in whose place it is
    removed.
    """
    rewritten = intervention.rewritten
    chosen = np.union1d(intervention.skipped, rewritten)
    new = dict(zip(rewritten.tolist(), intervention.text.sentences(rewritten), strict=True))
    stands_for: dict[int, int] = {}
    if (control := intervention.control) is not None:
        stands_for = dict(zip(control.controls.tolist(), (control.sentences + 1).tolist(), strict=True))
    table = pd.DataFrame(
        {
            "line": chosen + 1,
            "action": np.where(np.isin(chosen, rewritten), "rewritten", "left out"),
            "words": intervention.original.words[chosen],
            "sentence": list(intervention.original.sentences(chosen)),
            "rewritten": [new.get(index, "") for index in chosen.tolist()],
            "control_of": [str(stands_for.get(index, "")) for index in chosen.tolist()],
        }
    )
    write_csv(path, table)
    return len(table)
