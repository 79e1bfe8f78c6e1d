"""Frequencies of reference words (corpora/words.py), and of tokens, in a run's sample, drawn again from the store."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from corpora.ablation.config import AblateConfig, RegexFilter
from corpora.ablation.intervention import intervene
from corpora.ablation.rewriting import RewrittenText
from corpora.ablation.shuffling import sample_sentences
from corpora.config import SampleConfig
from corpora.constructions.config import FilterConfig
from corpora.samples import Sample, draw_sample, encode_beginning
from corpora.store import BATCH, TokenStore, store_manifest
from corpora.text import TextStore
from corpora.tokenizers import EOS, Tokenizer
from corpora.words import words
from pairscale.errors import ConfigError, StoreError


def sample_again(
    config: Mapping[str, Any], manifest: Mapping[str, Any] | None, store: Path
) -> tuple[TextStore, Sample]:
    """Return the text of a run, as its ablation leaves it, and its sample, drawn again. `store` is paths.store.

    config, manifest: plain data, the latter None if not trained. Raises StoreError if the text or its annotation is
    missing or another.
    """
    corpus = store / str(config["corpus"]["name"])
    text = TextStore(corpus / "text")
    domains, left_out = config["corpus"].get("domains"), None
    if (construction := config.get("filter")) is not None and (ablate := AblateConfig(**config["ablate"])).acts:
        kind = RegexFilter if "regex" in construction else FilterConfig
        try:
            ablated = intervene(text, kind(**construction), ablate, int(config["seed"]))
        except ConfigError as error:  # of a text that is there: its annotation is missing
            raise StoreError(str(error)) from None
        text, left_out = ablated.text, ablated.left_out
    sample = draw_sample(text, SampleConfig(**config["sample"]), int(config["seed"]), left_out, domains)
    if manifest is not None and sample.digest != manifest["corpus"]["sample"]["digest"]:
        raise StoreError(f"{corpus}: not the text that the run was trained on (its sample has another digest)")
    return text, sample


def sample_counts(
    config: Mapping[str, Any], manifest: Mapping[str, Any] | None, store: Path, reference: str
) -> Counter[str]:
    """Count the reference words of a run's sample. `store` is paths.store.

    config, manifest: plain data, the latter None if not trained. Raises StoreError if the text is missing or another.
    """
    text, sample = sample_again(config, manifest, store)
    sentences = sample_sentences(text, sample, SampleConfig(**config["sample"]), int(config["seed"]))
    return Counter(word for sentence in sentences for word in words(sentence, reference))


def token_counts(
    config: Mapping[str, Any], manifest: Mapping[str, Any], store: Path, tokenizer: Tokenizer
) -> npt.NDArray[np.int64]:
    """Count the tokens of a run's sample as its model read them, (V,): `<eos>` ends each sentence.

    tokenizer: the run's. Raises StoreError if the text is missing or another.
    """
    text, sample = sample_again(config, manifest, store)
    counts = np.zeros(len(tokenizer), np.int64)
    own = SampleConfig(**config["sample"])
    if own.shuffle is not None:
        ids = tokenizer.encode_batch(list(sample_sentences(text, sample, own, int(config["seed"]))))[0]
        return np.bincount(ids, minlength=len(counts))
    encoded = None if isinstance(text, RewrittenText) else _encoded(text, str(manifest["corpus"]["tokenizer"]))
    for start in range(0, len(sample.indices), BATCH):
        indices = sample.indices[start : start + BATCH]
        ids = encoded.gather(indices) if encoded else tokenizer.encode_batch(list(text.sentences(indices)))[0]
        counts += np.bincount(ids, minlength=len(counts))
    for index, end in sample.cuts:
        np.add.at(counts, [*encode_beginning(tokenizer, text.sentence(index), end), EOS], 1)
    return counts


def _encoded(text: TextStore, tokenizer: str) -> TokenStore | None:
    """Return the token store of a text by the tokenizer of that digest; None if there is none."""
    for manifest in sorted(text.folder.parent.glob("*/manifest.json")):
        folder = manifest.parent
        if (folder / "tokens.bin").is_file() and store_manifest(folder)["digests"]["tokenizer"] == tokenizer:
            return TokenStore(folder, text)
    return None
