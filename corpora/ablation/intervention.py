"""Turn the matches of a filter into an intervention, which determines the sentences that samples skip or rewrite.

A filter is either a regular expression, which searches the text itself, or patterns over the trees of an annotation.
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
    """An ablation applied to a text. It determines which training sentences samples skip or read in rewritten form."""

    filter: FilterConfig | RegexFilter
    config: AblateConfig
    original: TextStore
    text: TextStore  # what samples read: the original, with some sentences rewritten
    matching: Numbers  # indices of the sentences with the construction, ascending
    skipped: Numbers  # indices of the sentences that samples leave out, ascending
    layer: str | None  # the annotation that was searched; None if the text itself was searched
    digest: str  # SHA-256 of the matches and of the skipped and rewritten sentences
    control: Control | None = None

    @property
    def balance(self) -> dict[str, Any]:
        """The similarity of the controls to the sentences with the construction, or {} without a control."""
        return self.control.balance if self.control is not None else {}

    @property
    def rewritten(self) -> Numbers:
        """The indices of the rewritten sentences."""
        return self.text.rewritten if isinstance(self.text, RewrittenText) else np.empty(0, np.int64)

    @property
    def left_out(self) -> npt.NDArray[np.bool_]:
        """A mask of the text's sentences (sentences,), which is True for each sentence that samples leave out."""
        left_out = np.zeros(len(self.original), np.bool_)
        left_out[self.skipped] = True
        return left_out

    @property
    def sizes(self) -> dict[str, Any]:
        """The settings of the intervention and its effect on the train split, as recorded in manifests.

        "sentences" and "words" count the text that is skipped or rewritten. "matching" counts the sentences with the
        construction, and their words.
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
        """Return the intervention's entry in a run's manifest, with its sizes and its effect on the run's sample.

        For the sample, "sentences" and "words" count the text that is skipped before the sample's end. "matching" and
        "rewritten" count sentences in the sample.
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
    """Return the intervention of an ablation on a text.

    Args:
        text: The text.
        construction: The filter.
        config: The ablation, which must have an effect (`config.acts`).
        seed: The run's seed, which `config.seed` overrides.

    Raises ConfigError if the text lacks an annotation that the filter needs, if no sentence matches, if every sentence
    would be left out, or if no control can be drawn.
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
        raise ConfigError(
            f"filter={construction.name}{read_as}: this filter doesn't match any sentence {where}. Correct the filter, "
            "or choose another one."
        )
    kept = round(Fraction(config.dose) * len(matching))
    changed = np.sort(matching[permutation(len(matching), seed)[kept:]])
    skipped, control, read = changed, None, text
    if config.action == KEEP_ONLY:
        skipped = others
    elif config.action == CONTROL:
        control = matched_control(text, layer, matches.digest, matching, others, seed)
        skipped = np.sort(control.of(changed))
    elif config.action == REPLACE:
        assert layer is not None  # CorporaConfig allows this action only for patterns over trees
        assert isinstance(construction, FilterConfig)
        read = rewritten_text(text, layer, matches, construction, changed, seed)
        skipped = np.setdiff1d(changed, read.rewritten, assume_unique=True)
    if len(skipped) == len(train):
        raise ConfigError(
            f"filter={construction.name}{read_as} with ablate.action={config.action}: this leaves out every sentence "
            f"{where}. Use another action or filter."
        )
    digest = sha256_json([matches.digest, skipped.tolist(), read.digest])
    name = layer.name if layer is not None else None
    return Intervention(construction, config, text, read, matching, skipped, name, digest, control)


def write_listing(path: Path, intervention: Intervention) -> int:
    """Write the sentences that an intervention leaves out or rewrites to a CSV file. Return their number.

    The columns are `line` (the sentence's line number in text.txt, from 1), `action` ("left out" or "rewritten"),
    `words` (number of words in the original sentence), `sentence` (the original), `rewritten` (the new sentence), and
    `control_of` (line number of the sentence that this one is the control of).
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
