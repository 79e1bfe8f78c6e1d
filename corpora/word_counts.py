"""Draw a run's sample again from the store, and count its reference words (corpora/words.py) or tokens."""

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
    """Return the corpus of a run, with its sample drawn again.

    Args:
        config: The run's configuration as plain data.
        manifest: The run's manifest as plain data; None if the run hasn't been trained.
        store: The folder of prepared corpora (`paths.store`).

    Raises StoreError if the text or its annotation is missing, or if the run was trained on another one.
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
    corpus.text = TextStore(folder / "text")  # so that it is not prepared again
    try:
        digest = corpus.drawn.digest
    except ConfigError as error:  # the text exists, but its annotation is missing
        raise StoreError(str(error)) from None
    if manifest is not None and digest != manifest["corpus"]["sample"]["digest"]:
        raise StoreError(
            f"{folder}: the run was not trained on this text (its sample has another digest). Set paths.store to the "
            "store that the run used."
        )
    return corpus


def sample_counts(
    config: Mapping[str, Any], manifest: Mapping[str, Any] | None, store: Path, reference: str
) -> Counter[str]:
    """Count the words of a run's sample with a reference tokenizer. See `sample_again` for the arguments and errors."""
    sentences = sample_again(config, manifest, store).sentences()
    return Counter(word for sentence in sentences for word in words(sentence, reference))


def token_counts(
    config: Mapping[str, Any], manifest: Mapping[str, Any], store: Path, tokenizer: Tokenizer
) -> npt.NDArray[np.int64]:
    """Count each token in a run's sample, with `<eos>` at the end of each sentence. Return the counts (V,).

    `tokenizer` is the run's tokenizer. See `sample_again` for the other arguments and the errors.
    """
    corpus = sample_again(config, manifest, store)
    folder, recorded = corpus.folder, manifest["corpus"]["tokenizer"]
    if not (folder / MANIFEST).exists() or tokenizer_digest(folder / "tokenizer") != recorded:
        corpus.tokenizer, corpus.store = tokenizer, None  # the store lacks the ids of the run's tokenizer
    return np.bincount(corpus.sample().tokens, minlength=len(tokenizer))
