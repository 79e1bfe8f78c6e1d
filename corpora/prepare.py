"""Corpora as a configuration describes them: text, tokenizer and ids, prepared once and then opened from the store."""

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from corpora.ablation.intervention import Intervention, intervene
from corpora.ablation.rewriting import RewrittenText
from corpora.ablation.shuffling import sample_sentences, shuffled_digest
from corpora.config import CorporaConfig, TextConfig, check_chosen
from corpora.samples import Sample, check_available, draw_sample, encode_beginning, read_sentences
from corpora.sources.files import check_domains
from corpora.sources.read import describe_source, documents, published_vocabulary, source_bytes
from corpora.store import (
    BATCH,
    FITTED,
    TokenStore,
    check_fitted,
    dtype_of,
    fitted_manifest,
    store_manifest,
    write_fitted,
    write_token_store,
)
from corpora.text import MANIFEST, TextStore, text_manifest, write_text_store, written_once
from corpora.tokenizers import (
    EOS,
    UNK,
    ListTokenizer,
    Tokenizer,
    fit_tokenizer,
    load_tokenizer,
    tokenizer_digest,
)
from pairscale.errors import InputError, StoreError
from pairscale.files import sha256_json
from pairscale.progress import Share, with_progress
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
    def drawn(self) -> Sample:
        """The run's sample, as sentences of `read`."""
        intervention, domains = self.intervention, self.config.corpus.domains
        if intervention is None:
            return draw_sample(self.read, self.config.sample, self.config.seed, None, domains)
        without = f"what ablate.action={self.config.ablate.action} leaves out"
        return draw_sample(self.read, self.config.sample, self.config.seed, intervention.left_out, domains, without)

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
    def store(self) -> TokenStore | None:
        """The token store, prepared if it is missing.

        None if the tokenizer is fitted on the sample, or the sample so small that encoding it alone is quicker.
        """
        if self.config.tokenizer.fit_on == "sample":
            return None
        folder = tokenizer_folder(self.config)
        if not (folder / MANIFEST).exists() and self.drawn.share < SMALL_SHARE:
            return None
        return self.prepare_store()

    def prepare_store(self) -> TokenStore:
        """Return the token store of a tokenizer that is fitted on the train split, prepared if it is missing."""
        folder = tokenizer_folder(self.config)
        tokenizer = None if (folder / MANIFEST).exists() else self._fitted_on_train(folder)
        with written_once(folder) as missing:
            if missing:
                assert tokenizer is not None
                write_token_store(folder, self.text, tokenizer, {"corpus": self.config.corpus.name})
        return TokenStore(folder, self.text)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, fitted on the train split or on the sample."""
        if self.config.tokenizer.fit_on == "train":  # no sample is drawn, which need not exist
            if (tokenizer_folder(self.config) / MANIFEST).exists():
                return self.prepare_store().tokenizer
            self.text.verify()  # a token store would check its own digests
            return self._fitted_on_train(tokenizer_folder(self.config))
        folder = tokenizer_folder(self.config, self.drawn.digest) / "tokenizer"
        with written_once(folder, "tokenizer.json") as missing:
            if missing:
                self._fit(self.read, self.drawn.indices, folder.parent.name, self.drawn.cuts).save(folder)
        return load_tokenizer(folder)

    def _fitted_on_train(self, folder: Path) -> Tokenizer:
        """Return a store's tokenizer, fitted if it is missing. Raises StoreError if fitted on another text."""
        with written_once(folder, FITTED) as missing:
            if missing:
                tokenizer = self._fit(self.text, self.text.split_sentences("train"), folder.name)
                tokenizer.save(folder / "tokenizer")
                write_fitted(folder, self.text, tokenizer)
        check_fitted(folder, self.text)
        return load_tokenizer(folder / "tokenizer")

    def _fit(
        self, text: TextStore, indices: npt.NDArray[np.int64], name: str, cuts: tuple[tuple[int, int], ...] = ()
    ) -> Tokenizer:
        text.verify()
        if self.config.tokenizer.kind == "whitespace" and self.config.tokenizer.fit_on == "train":
            published = published_vocabulary(self.config.corpus)
            if published is not None and len(published) <= (self.config.tokenizer.vocab_size or len(published)):
                return ListTokenizer(self.config.tokenizer, published)

        count = len(indices) + len(cuts)
        counted = ((1, sentence) for sentence in read_sentences(text, indices, cuts))
        sentences = with_progress(counted, f"fitting {name}", count, "sentences")
        return fit_tokenizer(self.config.tokenizer, sentences, count)

    def _encode(self, text: TextStore, indices: npt.NDArray[np.int64]) -> Tokens:
        """Return the ids of sentences of a text: `read`, or the original."""
        if self.store is not None and not isinstance(text, RewrittenText):
            return self.store.gather(indices)
        starts = range(0, max(1, len(indices)), BATCH)
        parts = [list(text.sentences(indices[start : start + BATCH])) for start in starts]
        ids = np.concatenate([self.tokenizer.encode_batch(part)[0] for part in parts])
        # The type that a token store has; it exists only for tokenizers that are fitted on the train split.
        return ids if self.config.tokenizer.fit_on == "sample" else ids.astype(dtype_of(self.tokenizer))

    def sample(self) -> SampleTokens:
        """Return the ids of the sample."""
        drawn, config = self.drawn, self.config.sample
        if config.shuffle is None:
            tokens = self._encode(self.read, drawn.indices)
            for last, end in drawn.cuts:
                ids = [*encode_beginning(self.tokenizer, self.read.sentence(last), end), EOS]
                tokens = np.concatenate([tokens, np.array(ids, tokens.dtype)])
        else:
            sentences = list(sample_sentences(self.read, drawn, config, self.config.seed))
            tokens = self.tokenizer.encode_batch(sentences)[0].astype(dtype_of(self.tokenizer))
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
        sample_digest = self.drawn.digest if self.config.tokenizer.fit_on == "sample" else None
        folder = tokenizer_folder(self.config, sample_digest)
        entry = {
            "name": self.config.corpus.name,
            "text": self.text.digest,
            "source": self.text.manifest["source"],
            "reference": self.text.manifest["reference"],
            "splits": self.text.manifest["splits"],
            "tokenizer": tokenizer_digest(folder / "tokenizer"),
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

    Raises NoCorpus if none is chosen, InputError for unusable text, StoreError if damaged or of another source.
    """
    check_chosen(config.corpus)
    folder = corpus_folder(config) / "text"
    known = text_manifest(folder).get("corpus.path", {}) if (folder / MANIFEST).exists() else {}
    description = describe_source(config.corpus, known)
    with written_once(folder) as missing:
        if missing:
            share = Share()
            counted = ((len(document.sentences), document) for document in documents(config.corpus, share))
            stream = with_progress(counted, f"reading {config.corpus.name}", share, "sentences")
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
    folder = tokenizer_folder(config)
    try:
        tokens = store_manifest(folder) if (folder / MANIFEST).exists() else fitted_manifest(folder)
    except StoreError:
        return None
    per_unit = {unit: train["words"] / train[unit] for unit in ("words", "characters", "sentences")}
    return KnownSizes(tokens["vocabulary"], tokens["tokens_per_word"], per_unit)
