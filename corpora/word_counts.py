"""Frequencies of reference words (corpora/words.py), and of tokens, in a run's sample, drawn again from the store."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from corpora.config import (
    AblateConfig,
    CorporaConfig,
    CorpusConfig,
    FilterConfig,
    PathsConfig,
    RegexFilter,
    SampleConfig,
    SplitConfig,
    TokenizerConfig,
)
from corpora.kept import MANIFEST
from corpora.prepare import Corpus
from corpora.text import TextStore
from corpora.tokenizers import Tokenizer, tokenizer_digest
from corpora.words import words
from pairscale.errors import ConfigError, StoreError


def sample_again(config: Mapping[str, Any], manifest: Mapping[str, Any] | None, store: Path) -> Corpus:
    """Return the corpus of a run, whose sample is drawn again. `store` is paths.store.

    config, manifest: plain data, the latter None if not trained. Raises StoreError if the text or its annotation is
    missing or another.
    """
    values, construction = config["corpus"], config.get("filter")
    folder = store / str(values["name"])
    split = SplitConfig(**values["split"])
    filters = RegexFilter if construction and "regex" in construction else FilterConfig
    known = CorporaConfig(
        seed=int(config["seed"]),
        paths=PathsConfig(store=str(store), runs="", reports=""),
        corpus=CorpusConfig(
            name=values["name"], reference=values["reference"], split=split, domains=values.get("domains")
        ),
        sample=SampleConfig(**config["sample"]),
        tokenizer=TokenizerConfig(**config["tokenizer"]),
        filter=filters(**construction) if construction else None,
        ablate=AblateConfig(**(config.get("ablate") or {})),
        dry_run=False,
    )
    corpus = Corpus(known)
    corpus.text = TextStore(folder / "text")  # which is not prepared again
    try:
        digest = corpus.drawn.digest
    except ConfigError as error:  # of a text that is there: its annotation is missing
        raise StoreError(str(error)) from None
    if manifest is not None and digest != manifest["corpus"]["sample"]["digest"]:
        raise StoreError(f"{folder}: not the text that the run was trained on (its sample has another digest)")
    return corpus


def sample_counts(
    config: Mapping[str, Any], manifest: Mapping[str, Any] | None, store: Path, reference: str
) -> Counter[str]:
    """Count the reference words of a run's sample; arguments and errors as of `sample_again`."""
    sentences = sample_again(config, manifest, store).sentences()
    return Counter(word for sentence in sentences for word in words(sentence, reference))


def token_counts(
    config: Mapping[str, Any], manifest: Mapping[str, Any], store: Path, tokenizer: Tokenizer
) -> npt.NDArray[np.int64]:
    """Count the tokens of a run's sample as its model read them, (V,): `<eos>` ends each sentence.

    tokenizer: the run's. Other arguments, and errors, as of `sample_again`.
    """
    corpus = sample_again(config, manifest, store)
    folder, recorded = corpus.folder, manifest["corpus"]["tokenizer"]
    if not (folder / MANIFEST).exists() or tokenizer_digest(folder / "tokenizer") != recorded:
        corpus.tokenizer, corpus.store = tokenizer, None  # no ids of the run's tokenizer are in the store
    return np.bincount(corpus.sample().tokens, minlength=len(tokenizer))
