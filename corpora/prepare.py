"""Corpora as a configuration describes them: text, tokenizer and ids, prepared once and then opened from the store."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from corpora.ablation.intervention import Intervention, intervene
from corpora.ablation.rewriting import RewrittenText
from corpora.config import CorporaConfig, TextConfig, check_chosen
from corpora.kept import MANIFEST, written_once
from corpora.samples import (
    Sample,
    check_available,
    draw_sample,
    encode_beginning,
    read_sentences,
    sample_sentences,
    shuffled_digest,
)
from corpora.sources.files import check_domains
from corpora.sources.read import describe_source, documents, published_vocabulary, source_bytes
from corpora.store import BATCH, TokenStore, dtype_of, estimated_tokens_per_word, store_manifest, write_token_store
from corpora.text import TextStore, text_manifest, write_text_store
from corpora.tokenizers import EOS, UNK, ListTokenizer, Tokenizer, fit_tokenizer, load_tokenizer, tokenizer_digest
from pairscale.errors import InputError, StoreError
from pairscale.files import sha256_json
from pairscale.progress import with_progress
from pairscale.seeds import permutation

Tokens = npt.NDArray[Any]
TOKEN_BYTES = 2.6  # of a token store per word: ids and offsets
SMALL_SHARE = 0.05  # of the train split: a smaller sample is encoded alone if there is no token store


@dataclass(frozen=True)
class SampleTokens:
    """A sample as a model reads it: the ids of its sentences, each followed by `<eos>`."""

    tokens: Tokens
    words: int
    characters: int
    sentences: int
    digest: str
    documents: npt.NDArray[np.int64] | None = None  # sentences of each, in order; None: of a sample of sentences


@dataclass(frozen=True)
class HeldOut:
    """Held-out text as a model reads it."""

    tokens: Tokens
    words: int
    sentences: int
    unk: int  # number of unknown tokens


class Corpus:
    """A corpus under one configuration. What is missing of it, from its text on, is prepared when it is asked for."""

    def __init__(self, config: CorporaConfig):
        self.config = config

    @cached_property
    def text(self) -> TextStore:
        """The text, prepared if it is missing. Raises as `prepare_text`."""
        return prepare_text(self.config)

    @property
    def prepared_text(self) -> tuple[Path, str | None]:
        """The folder of the text, and the text's digest; None if it is not prepared."""
        folder = corpus_folder(self.config) / "text"
        return folder, text_manifest(folder)["digest"] if folder.is_dir() else None

    @cached_property
    def intervention(self) -> Intervention | None:
        """What samples do about a construction; None if the configuration has no ablation."""
        if self.config.filter is None or not self.config.ablate.acts:
            return None
        return intervene(self.text, self.config.filter, self.config.ablate, self.config.seed)

    @property
    def read(self) -> TextStore:
        """The text as samples read it: with the sentences in place that an ablation rewrites."""
        return self.text if self.intervention is None else self.intervention.text

    @cached_property
    def drawn(self) -> Sample:
        """The run's sample, as sentences of `read`."""
        config, left_out, without = self.config, None, ""
        if self.intervention is not None:
            left_out, without = self.intervention.left_out, f"what ablate.action={config.ablate.action} leaves out"
        return draw_sample(self.read, config.sample, config.seed, left_out, config.corpus.domains, without)

    def sentences(self) -> Iterator[str]:
        """Yield the sentences of the sample as its model reads them: shuffled, if they are."""
        return sample_sentences(self.read, self.drawn, self.config.sample, self.config.seed)

    @property
    def folder(self) -> Path:
        """The folder of the tokenizer, and of its token store, in the store."""
        return tokenizer_folder(self.config, self.drawn.digest if self.config.tokenizer.fit_on == "sample" else None)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, fitted on the train split, or on the sample, if it is missing."""
        folder = self.folder / "tokenizer"
        if not (self.folder / MANIFEST).exists():
            self.text.verify()  # a token store checks its own digests
        with written_once(folder, "tokenizer.json") as missing:
            if missing:
                self._fitted().save(folder, self.text.digest)
        return load_tokenizer(folder, self.text.digest)

    def _fitted(self) -> Tokenizer:
        config = self.config.tokenizer
        if config.fit_on == "sample":
            sentences, count = read_sentences(self.read, self.drawn), self.drawn.sentences
        else:
            published = published_vocabulary(self.config.corpus) if config.kind == "whitespace" else None
            if published is not None and len(published) <= (config.vocab_size or len(published)):
                return ListTokenizer(config, published)
            train = self.text.split_sentences("train")
            sentences, count = self.text.sentences(train), len(train)
        counted = ((1, sentence) for sentence in sentences)
        return fit_tokenizer(config, with_progress(counted, f"fitting {config.name}", count, "sentences"), count)

    @cached_property
    def store(self) -> TokenStore | None:
        """The token store, prepared if it is missing.

        None if the tokenizer is fitted on the sample, or the sample so small that encoding it alone is quicker.
        """
        if self.config.tokenizer.fit_on == "sample":
            return None
        if not (self.folder / MANIFEST).exists() and self.drawn.share < SMALL_SHARE:
            return None
        return self.prepare_store()

    def prepare_store(self) -> TokenStore:
        """Return the token store of a tokenizer that is fitted on the train split, prepared if it is missing."""
        folder, tokenizer = self.folder, self.tokenizer
        with written_once(folder) as missing:
            if missing:
                write_token_store(folder, self.text, tokenizer, {"corpus": self.config.corpus.name})
        return TokenStore(folder, self.text)

    def _encode(self, text: TextStore, indices: npt.NDArray[np.int64]) -> Tokens:
        """Return the ids of sentences of a text: `read`, or the original."""
        if self.store is not None and not isinstance(text, RewrittenText):
            return self.store.gather(indices)
        starts = range(0, max(1, len(indices)), BATCH)
        parts = [list(text.sentences(indices[start : start + BATCH])) for start in starts]
        ids = [self.tokenizer.encode_batch(part)[0] for part in parts]
        return np.concatenate(ids).astype(dtype_of(self.tokenizer))

    def sample(self) -> SampleTokens:
        """Return the ids of the sample."""
        drawn, config = self.drawn, self.config.sample
        if config.shuffle is None:
            tokens = self._encode(self.read, drawn.indices)
            for last, end in drawn.cuts:
                ids = [*encode_beginning(self.tokenizer, self.read.sentence(last), end), EOS]
                tokens = np.concatenate([tokens, np.array(ids, tokens.dtype)])
        else:
            tokens = self.tokenizer.encode_batch(list(self.sentences()))[0].astype(dtype_of(self.tokenizer))
        documents = self._documents(drawn) if config.unit == "document" else None
        digest = shuffled_digest(drawn.digest, config.shuffle)
        return SampleTokens(tokens, drawn.words, drawn.characters, drawn.sentences, digest, documents)

    def _documents(self, drawn: Sample) -> npt.NDArray[np.int64]:
        """Return the number of sentences that a sample has of each of its documents, in its order."""
        sentences = np.append(drawn.indices, np.array([index for index, _ in drawn.cuts], np.int64))
        of = np.searchsorted(np.asarray(self.text.documents), sentences, side="right")
        begins = np.flatnonzero(np.diff(of, prepend=-1))
        return np.diff(begins, append=len(of))

    def held_out(self, split: str, words: int) -> HeldOut:
        """Return whole sentences of at most `words` words over the split, for all runs; InputError if it is empty."""
        available = self.text.split_sentences(split)
        if not len(available):
            raise InputError(
                f"corpus {self.config.corpus.name}: no {split} text among {len(self.text.splits)} documents; remove "
                f"{self.text.folder.parent} to prepare it again"
            )
        order = available[permutation(len(available), self.config.corpus.split.seed)]
        ends = np.cumsum(self.text.words[order].astype(np.int64))
        chosen = order[: max(1, int(np.searchsorted(ends, words, side="right")))]
        tokens = self._encode(self.text, chosen)
        return HeldOut(tokens, int(self.text.words[chosen].sum()), len(chosen), int((tokens == UNK).sum()))

    @property
    def manifest(self) -> dict[str, Any]:
        """The corpus's entry in a run's manifest: digests, sizes, the sample and its expected overlap."""
        vocabulary = len(self.tokenizer)  # before the folder is read: fits the tokenizer if it is missing
        entry = {
            "name": self.config.corpus.name,
            "text": self.text.digest,
            "source": self.text.manifest["source"],
            "reference": self.text.manifest["reference"],
            "splits": self.text.manifest["splits"],
            "tokenizer": tokenizer_digest(self.folder / "tokenizer"),
            "vocabulary": vocabulary,
            "sample": self.drawn.describe(),
        }
        if self.config.sample.shuffle is not None:
            entry["sample"]["shuffle"] = self.config.sample.shuffle
        if self.intervention is not None:
            entry["ablation"] = self.intervention.describe(self.drawn)
        return entry


def prepare(config: CorporaConfig) -> Corpus:
    """Return the corpus, its text prepared if missing, its ids on first use. Raises as `prepare_text`."""
    corpus = Corpus(config)
    corpus.text = prepare_text(config)
    return corpus


def prepare_text(config: TextConfig) -> TextStore:
    """Return the text of a corpus, prepared if missing; many processes may call it at once.

    Raises ConfigError if none is chosen, InputError for unusable text, StoreError if damaged or of another source.
    """
    check_chosen(config.corpus)
    folder = corpus_folder(config) / "text"
    known = text_manifest(folder).get("corpus.path", {}) if (folder / MANIFEST).exists() else {}
    description = describe_source(config.corpus, known)
    with written_once(folder) as missing:
        if missing:
            counted = ((document.size, document) for document in documents(config.corpus))
            stream = with_progress(
                counted, f"reading {config.corpus.name}", round(source_bytes(config.corpus)), "bytes"
            )
            write_text_store(folder, stream, config.corpus.reference, config.corpus.split, description)
    text = TextStore(folder)
    for key, value in description.items():
        recorded = text.manifest.get(key)
        if key != "source" and recorded != value:  # it follows from the others
            differing = f"prepared with {key}={recorded}, now {value}"
            if key == "corpus.path" and recorded and (names := {name for name, _ in recorded.items() ^ value.items()}):
                differing = f"prepared from other files: {', '.join(sorted(names))}"
            raise StoreError(
                f"{folder}: {differing}; give the other text its own corpus.name, or remove {folder.parent}"
            )
    if config.corpus.domains is not None:
        check_domains(config.corpus, text.domains)
    return text


def corpus_folder(config: TextConfig) -> Path:
    """Return store/<corpus>."""
    return Path(config.paths.store) / config.corpus.name


def tokenizer_folder(config: CorporaConfig, sample: str | None = None) -> Path:
    """Return store/<corpus>/<tokenizer>-<8 hex digits>; sample: digest of the one it is fitted on, or None."""
    description = {**dataclasses.asdict(config.tokenizer), "sample": sample}
    return corpus_folder(config) / f"{config.tokenizer.name}-{sha256_json(description)[:8]}"


def is_prepared(config: TextConfig) -> bool:
    """Return true if the text of a configuration's corpus is in the store."""
    return (corpus_folder(config) / "text" / MANIFEST).exists()


def store_bytes(config: CorporaConfig) -> tuple[int, int]:
    """Return the bytes of a corpus's store, and an estimate of those that preparing it adds; 0 if that is unknown."""
    existing = sum(file.stat().st_size for file in corpus_folder(config).rglob("*") if file.is_file())
    if not is_prepared(config):
        return existing, round(source_bytes(config.corpus))
    splits = text_manifest(corpus_folder(config) / "text")["splits"]
    small = config.sample.number / splits["train"][config.sample.count] < SMALL_SHARE
    if (tokenizer_folder(config) / MANIFEST).exists() or small or config.tokenizer.fit_on == "sample":
        return existing, 0
    return existing, round(TOKEN_BYTES * sum(split["words"] for split in splits.values()))


@dataclass(frozen=True)
class KnownSizes:
    """Sizes of a prepared corpus."""

    vocabulary: int
    tokens_per_word: float
    words_per_unit: dict[str, float]  # of the train split, per word, character and sentence


def known_sizes(config: CorporaConfig) -> KnownSizes | None:
    """Read sizes from the stores; None if missing or fitted on the sample.

    Raises ConfigError if the text is smaller or lacks a chosen domain.
    """
    folder = tokenizer_folder(config)
    try:
        manifest = text_manifest(corpus_folder(config) / "text")
    except StoreError:
        return None
    train = manifest["splits"]["train"]
    if (domains := config.corpus.domains) is not None:
        sizes = {one["name"]: one["train"] for one in manifest["domains"]}
        check_domains(config.corpus, sizes)
        train = {unit: sum(sizes[name][unit] for name in domains) for unit in train}
    check_available(config.sample, config.corpus.name, train[config.sample.count], domains)
    per_unit = {unit: train["words"] / train[unit] for unit in ("words", "characters", "sentences")}
    try:
        if (folder / MANIFEST).exists():
            tokens = store_manifest(folder)
            return KnownSizes(tokens["vocabulary"], tokens["tokens_per_word"], per_unit)
        return KnownSizes(*_fitted_sizes(folder, corpus_folder(config) / "text"), per_unit)
    except StoreError:
        return None


@lru_cache
def _fitted_sizes(folder: Path, text: Path) -> tuple[int, float]:
    """Return the size of a tokenizer's vocabulary, and its tokens per word of a text. Raises StoreError."""
    tokenizer = load_tokenizer(folder / "tokenizer")
    return len(tokenizer), estimated_tokens_per_word(TextStore(text), tokenizer)
