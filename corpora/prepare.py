"""Prepare a corpus's text, tokenizer and token ids once, and open them from the store afterwards."""

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
TOKEN_BYTES = 2.6  # size of a token store per word, ids and offsets together
SMALL_SHARE = 0.05  # without a token store, a sample below this share of the train split is encoded separately


@dataclass(frozen=True)
class SampleTokens:
    """A sample as token ids. Each sentence is followed by `<eos>`."""

    tokens: Tokens
    words: int
    characters: int
    sentences: int
    digest: str
    documents: npt.NDArray[np.int64] | None = None  # sentences in each document; None for a sample of sentences


@dataclass(frozen=True)
class HeldOut:
    """Held-out text as token ids."""

    tokens: Tokens
    words: int
    sentences: int
    unk: int  # number of unknown tokens


class Corpus:
    """A configured corpus. Its text, tokenizer and token ids are prepared on first use if they are missing."""

    def __init__(self, config: CorporaConfig):
        self.config = config

    @cached_property
    def text(self) -> TextStore:
        """The text, which is prepared if it is missing. Raises the same errors as `prepare_text`."""
        return prepare_text(self.config)

    @property
    def prepared_text(self) -> tuple[Path, str | None]:
        """The folder and digest of the text. The digest is None if the text is not prepared."""
        folder = corpus_folder(self.config) / "text"
        return folder, text_manifest(folder)["digest"] if folder.is_dir() else None

    @cached_property
    def intervention(self) -> Intervention | None:
        """The ablation that is applied before sampling, or None if there is none."""
        if self.config.filter is None or not self.config.ablate.acts:
            return None
        return intervene(self.text, self.config.filter, self.config.ablate, self.config.seed)

    @property
    def read(self) -> TextStore:
        """The text that samples are drawn from, including any sentences that the ablation has rewritten."""
        return self.text if self.intervention is None else self.intervention.text

    @cached_property
    def drawn(self) -> Sample:
        """The run's sample, as indices of sentences in `read`."""
        config, left_out, without = self.config, None, ""
        if self.intervention is not None:
            left_out = self.intervention.left_out
            without = f"the sentences that ablate.action={config.ablate.action} leaves out"
        return draw_sample(self.read, config.sample, config.seed, left_out, config.corpus.domains, without)

    def sentences(self) -> Iterator[str]:
        """Yield the sentences of the sample as the model reads them, including any shuffling of words."""
        return sample_sentences(self.read, self.drawn, self.config.sample, self.config.seed)

    @property
    def folder(self) -> Path:
        """The folder of the tokenizer and its token store."""
        return tokenizer_folder(self.config, self.drawn.digest if self.config.tokenizer.fit_on == "sample" else None)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer. If it is missing, it is fitted to the train split or the sample."""
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
        """The token store, which is prepared if it is missing.

        None if the tokenizer is fitted to the sample, or is so small that encoding only the sample is faster.
        """
        if self.config.tokenizer.fit_on == "sample":
            return None
        if not (self.folder / MANIFEST).exists() and self.drawn.share < SMALL_SHARE:
            return None
        return self.prepare_store()

    def prepare_store(self) -> TokenStore:
        """Return the token store of a tokenizer fitted to the train split. Write the store if it is missing."""
        folder, tokenizer = self.folder, self.tokenizer
        with written_once(folder) as missing:
            if missing:
                write_token_store(folder, self.text, tokenizer, {"corpus": self.config.corpus.name})
        return TokenStore(folder, self.text)

    def _encode(self, text: TextStore, indices: npt.NDArray[np.int64]) -> Tokens:
        """Return the token ids of sentences. `text` is `read` or the original text."""
        if self.store is not None and not isinstance(text, RewrittenText):
            return self.store.gather(indices)
        starts = range(0, max(1, len(indices)), BATCH)
        parts = [list(text.sentences(indices[start : start + BATCH])) for start in starts]
        ids = [self.tokenizer.encode_batch(part)[0] for part in parts]
        return np.concatenate(ids).astype(dtype_of(self.tokenizer))

    def sample(self) -> SampleTokens:
        """Encode the sample."""
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
        """Return the number of sentences in each document, in the sample's order, as an array of shape (documents,)."""
        sentences = np.append(drawn.indices, np.array([index for index, _ in drawn.cuts], np.int64))
        of = np.searchsorted(np.asarray(self.text.documents), sentences, side="right")
        begins = np.flatnonzero(np.diff(of, prepend=-1))
        return np.diff(begins, append=len(of))

    def held_out(self, split: str, words: int) -> HeldOut:
        """Encode randomly chosen whole sentences of a split, which are the same for all runs.

        Args:
            split: "valid" or "test".
            words: The maximum number of words. At least one sentence is returned.

        Raises InputError if the split is empty.
        """
        available = self.text.split_sentences(split)
        if not len(available):
            raise InputError(
                f"corpus {self.config.corpus.name}: none of its {len(self.text.splits)} documents is in the {split} "
                f"split. Remove {self.text.folder.parent} and prepare it again with a larger corpus.split.{split}."
            )
        order = available[permutation(len(available), self.config.corpus.split.seed)]
        ends = np.cumsum(self.text.words[order].astype(np.int64))
        chosen = order[: max(1, int(np.searchsorted(ends, words, side="right")))]
        tokens = self._encode(self.text, chosen)
        return HeldOut(tokens, int(self.text.words[chosen].sum()), len(chosen), int((tokens == UNK).sum()))

    @property
    def manifest(self) -> dict[str, Any]:
        """The corpus's entry in a run's manifest, with digests, sizes, the sample and its expected overlap."""
        vocabulary = len(self.tokenizer)  # first, because this fits the tokenizer if it is missing
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
    """Return the corpus of a configuration, and prepare its text if it is missing.

    The tokenizer and the token ids are prepared on first use. Raises the same errors as `prepare_text`.
    """
    corpus = Corpus(config)
    corpus.text = prepare_text(config)
    return corpus


def prepare_text(config: TextConfig) -> TextStore:
    """Return the text of a corpus, and prepare it if it is missing. Several processes may call this at once.

    Raises:
        ConfigError: If no corpus is chosen, or it lacks a chosen domain.
        InputError: If the source cannot be read or has too little text.
        StoreError: If the prepared text is damaged, or was prepared from another source or with other settings.
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
        if key != "source" and recorded != value:  # the source follows from the other values
            differing = f"this text was prepared with {key}={recorded}, but the current value is {value}"
            if key == "corpus.path" and recorded and (names := {name for name, _ in recorded.items() ^ value.items()}):
                differing = f"this text was prepared from other files ({', '.join(sorted(names))})"
            raise StoreError(
                f"{folder}: {differing}. Choose another corpus.name for the new text, or remove {folder.parent}."
            )
    if config.corpus.domains is not None:
        check_domains(config.corpus, text.domains)
    return text


def corpus_folder(config: TextConfig) -> Path:
    """Return store/<corpus>."""
    return Path(config.paths.store) / config.corpus.name


def tokenizer_folder(config: CorporaConfig, sample: str | None = None) -> Path:
    """Return store/<corpus>/<tokenizer>-<8 hex digits>.

    `sample` is the digest of the sample that the tokenizer is fitted to, or None if it is fitted to the train split.
    """
    description = {**dataclasses.asdict(config.tokenizer), "sample": sample}
    return corpus_folder(config) / f"{config.tokenizer.name}-{sha256_json(description)[:8]}"


def is_prepared(config: TextConfig) -> bool:
    """Return True if the text of the corpus is in the store."""
    return (corpus_folder(config) / "text" / MANIFEST).exists()


def store_bytes(config: CorporaConfig) -> tuple[int, int]:
    """Return the size of a corpus's store, and an estimate of what preparing it adds (0 if unknown), in bytes."""
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
    words_per_unit: dict[str, float]  # number of words per word, character and sentence in the train split


def known_sizes(config: CorporaConfig) -> KnownSizes | None:
    """Read the sizes of a corpus from the store.

    Returns None if it is not prepared or its tokenizer is fitted to the sample. Raises ConfigError if the text is
    smaller than the sample or lacks a chosen domain.
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
    """Return a tokenizer's vocabulary size and its tokens per word in a text. Raises StoreError if one is damaged."""
    tokenizer = load_tokenizer(folder / "tokenizer")
    return len(tokenizer), estimated_tokens_per_word(TextStore(text), tokenizer)
