"""Fit, save and load tokenizers, which turn text into ids and back. Id 0 is always `<eos>`, and id 1 is `<unk>`.

A tokenizer is saved as a folder with tokenizer.json (configuration and digest), and vocab.txt or model.spm.
"""

import dataclasses
import hashlib
import io
import os
import re
import string
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from corpora.config import TokenizerConfig
from corpora.kept import check_recorded
from corpora.words import spans_of, words
from pairscale.errors import ConfigError, StoreError
from pairscale.files import sha256_file, write_bytes, write_json, write_text
from pairscale.progress import working
from pairscale.schema import Digest, read_json

EOS, UNK = 0, 1
EOS_TEXT, UNK_TEXT = "<eos>", "<unk>"
# The first ids of a masked model. The tokenizer's ids follow, increased by SPECIAL_TOKENS. The padding's id must be
# small, because RoBERTa counts positions from it.
PAD, MASK, SPECIAL_TOKENS = 0, 1, 2
TOKENIZER_VERSION = 1
PIECE_KINDS = ("unigram", "bpe")
WORD_KINDS = ("word", "jieba", "whitespace")
FIT_SEED = 0  # seed for drawing the sentences that SentencePiece is fitted to
MAX_BYTES = 1 << 16  # maximum size of a text that SentencePiece is fitted to; another value changes the model's bytes
UNKNOWN_SIGN = "▅"  # U+2585, which SentencePiece uses for unknown characters

Ids = npt.NDArray[np.uint32]


class Tokenizer(ABC):
    """The base class of tokenizers."""

    def __init__(self, config: TokenizerConfig):
        self.config = config

    @abstractmethod
    def __len__(self) -> int:
        """Return the size of the vocabulary, including `<eos>` and `<unk>`."""

    @abstractmethod
    def encode_spans(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the ids of a text, without `<eos>`, and each token's character offsets (start, end)."""

    def encode_raw(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Encode plain text, such as a benchmark sentence, even if the tokenizer was fitted to pretokenised text.

        Returns the same as `encode_spans`.
        """
        return self.encode_spans(text)

    @abstractmethod
    def encode_batch(self, texts: Sequence[str]) -> tuple[Ids, npt.NDArray[np.int64]]:
        """Return the ids of all texts (tokens,), with `<eos>` after each, and each text's number of ids (texts,)."""

    @abstractmethod
    def token(self, index: int) -> str:
        """Return the token with the given id."""

    @abstractmethod
    def _save_vocabulary(self, folder: Path) -> Path:
        """Write the vocabulary to a file in `folder` and return its path."""

    @property
    def word_level(self) -> bool:
        """True if tokens are words, so that a text can contain unknown ones. Such models score `<eos>` by default."""
        return self.config.kind in WORD_KINDS

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without `<eos>`."""
        return self.encode_spans(text)[0]

    def save(self, folder: Path, text: str | None = None) -> None:
        """Write the tokenizer to a folder. tokenizer.json, with the vocabulary's digest, is written last.

        `text` is the digest of the text that the tokenizer was fitted to. Pass it if `load_tokenizer` should check it.
        """
        folder.mkdir(parents=True, exist_ok=True)
        vocabulary = self._save_vocabulary(folder)
        description = {
            "version": TOKENIZER_VERSION,
            "config": dataclasses.asdict(self.config),
            "vocabulary": vocabulary.name,
            "digest": sha256_file(vocabulary),
            "text": text,
        }
        write_json(folder / "tokenizer.json", description)


class ListTokenizer(Tokenizer):
    """A tokenizer with a list of words or characters, whose ids start at 2. All others are `<unk>`."""

    def __init__(self, config: TokenizerConfig, tokens: Sequence[str]):
        super().__init__(config)
        self.tokens = [EOS_TEXT, UNK_TEXT, *tokens]
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        for special in (EOS_TEXT, UNK_TEXT):  # in a text, these spellings are unknown words
            self.ids[special] = UNK

    def __len__(self) -> int:
        return len(self.tokens)

    def token(self, index: int) -> str:
        return self.tokens[index]

    def encode_spans(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        return self._encoded(text, split(self.config.kind)(text))

    def encode_raw(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Encode plain text. A whitespace tokenizer splits it by Treebank rules, like pretokenised corpora."""
        kind = "word" if self.config.kind == "whitespace" else self.config.kind
        return self._encoded(text, split(kind)(text))

    def _encoded(self, text: str, pieces: list[str]) -> tuple[list[int], list[tuple[int, int]]]:
        return [self.ids.get(piece, UNK) for piece in pieces], spans_of(text, pieces)

    def encode_batch(self, texts: Sequence[str]) -> tuple[Ids, npt.NDArray[np.int64]]:
        known, pieces = self.ids.get, split(self.config.kind)
        ids, lengths = array("I"), np.empty(len(texts), np.int64)
        before = 0
        for index, text in enumerate(texts):
            ids.extend([known(piece, UNK) for piece in pieces(text)])
            ids.append(EOS)
            lengths[index] = len(ids) - before
            before = len(ids)
        return np.frombuffer(ids, np.uint32), lengths

    def _save_vocabulary(self, folder: Path) -> Path:
        write_text(folder / "vocab.txt", "\n".join(self.tokens) + "\n")
        return folder / "vocab.txt"


def split(kind: str) -> Callable[[str], list[str]]:
    """Return the function that splits a text into the tokens of a `ListTokenizer` of this kind."""
    # Words are split at all white space of str.split, including NO-BREAK SPACE. Every character, even white space, is a
    # token of a character tokenizer.
    if kind == "char":
        return list
    reference = {"word": "treebank", "jieba": "jieba", "whitespace": "whitespace"}[kind]
    return lambda text: words(text, reference)


class PieceTokenizer(Tokenizer):
    """A SentencePiece tokenizer (Kudo and Richardson 2018) without normalization. It puts "▁" before each text."""

    def __init__(self, config: TokenizerConfig, model: bytes):
        import sentencepiece

        super().__init__(config)
        self.model = model
        self.processor = sentencepiece.SentencePieceProcessor(model_proto=model)

    def __len__(self) -> int:
        return int(self.processor.get_piece_size())

    def token(self, index: int) -> str:
        return str(self.processor.id_to_piece(index))

    def encode(self, text: str) -> list[int]:
        return list(self.processor.encode(text))

    def encode_spans(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        # A character without a piece is encoded as bytes. The last byte's span is the character. The others' are empty.
        encoded = self.processor.encode(text, return_type="offset_mapping")
        return list(encoded["ids"]), list(encoded["offsets"])

    def encode_batch(self, texts: Sequence[str]) -> tuple[Ids, npt.NDArray[np.int64]]:
        threads = os.cpu_count() or 1
        encoded = self.processor.encode(list(texts), num_threads=threads, add_eos=True, return_type="numpy")
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        return np.concatenate([np.empty(0, np.uint32), *encoded]).astype(np.uint32), lengths

    def _save_vocabulary(self, folder: Path) -> Path:
        path = folder / "model.spm"
        write_bytes(path, self.model)
        return path


def fit_tokenizer(config: TokenizerConfig, sentences: Iterable[str], count: int) -> Tokenizer:
    """Fit a tokenizer to `count` sentences.

    Raises ConfigError if the sentences have too few distinct pieces for the size of the vocabulary.
    """
    if config.kind in PIECE_KINDS:
        return _fit_pieces(config, sentences, count)
    counts = Counter(chain.from_iterable(map(split(config.kind), sentences)))
    for special in (EOS_TEXT, UNK_TEXT, "\n"):
        counts.pop(special, None)
    # Sort by decreasing frequency, then by spelling, so that the order of the text doesn't matter.
    ranked = sorted(counts, key=lambda token: (-counts[token], token))
    return ListTokenizer(config, ranked[: config.vocab_size])


def _fit_pieces(config: TokenizerConfig, sentences: Iterable[str], count: int) -> Tokenizer:
    import sentencepiece

    if config.vocab_size is None:
        raise ConfigError(
            f"tokenizer.vocab_size=null: tokenizer={config.kind} needs a vocabulary size. Use a number such as 8000."
        )
    model = io.BytesIO()
    if count > config.fit_sentences:
        chosen = np.zeros(count, np.bool_)
        chosen[np.random.default_rng(FIT_SEED).choice(count, config.fit_sentences, replace=False)] = True
        sentences = compress(sentences, chosen)
    fitted = min(count, config.fit_sentences)
    message = f"fitting {config.vocab_size:,} {config.kind} pieces to {fitted:,} sentences"
    texts = (part for sentence in sentences for part in _parts(sentence))
    try:
        with working(message):
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=texts,
                model_writer=model,
                model_type=config.kind,
                vocab_size=config.vocab_size,
                character_coverage=config.character_coverage,
                byte_fallback=True,  # so that no character is unknown
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                add_dummy_prefix=True,
                eos_id=EOS,
                unk_id=UNK,
                bos_id=-1,
                pad_id=-1,
                eos_piece=EOS_TEXT,
                unk_piece=UNK_TEXT,
                num_threads=1,  # fixed, because this number is stored in the model's bytes
                max_sentence_length=MAX_BYTES,
                minloglevel=2,
            )
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].partition("] ")[2] or str(error)
        if too_small := re.search(r"required_chars\. \d+ vs (\d+)", reason):
            reason = f"the characters of the text alone need {too_small[1]} entries. Use at least {too_small[1]}."
        elif too_large := re.search(r"value <= (\d+)", reason):
            reason = f"the text has only {too_large[1]} pieces. Use at most {too_large[1]}."
        raise ConfigError(f"tokenizer.vocab_size={config.vocab_size}: {reason}") from None
    return PieceTokenizer(config, model.getvalue())


def _parts(text: str) -> Iterator[str]:
    """Split a text into parts that SentencePiece accepts. It silently skips long texts, and texts with UNKNOWN_SIGN.

    A long text is cut at a space, so that its words stay whole, or between characters if there is no space.
    """
    for part in text.split(UNKNOWN_SIGN):
        if len(part.encode()) <= MAX_BYTES:
            yield part
            continue
        start, most = 0, MAX_BYTES // 4  # a character has at most four bytes
        while len(part) - start > most:
            space = part.rfind(" ", start + 1, start + most)
            end = start + most if space < 0 else space
            yield part[start:end]
            start = end if space < 0 else end + 1
        yield part[start:]


class _Description(msgspec.Struct):
    """The schema of tokenizer.json."""

    config: TokenizerConfig
    vocabulary: Literal["vocab.txt", "model.spm"]  # name of the file with the vocabulary
    digest: Digest  # digest of that file
    text: Digest | None = None  # digest of the text that the tokenizer was fitted to


_REMOVE = "remove the folder to fit it again"


def _description(folder: Path) -> _Description:
    return read_json(folder / "tokenizer.json", _Description, StoreError, _REMOVE, TOKENIZER_VERSION)


def load_tokenizer(folder: Path, text: str | None = None) -> Tokenizer:
    """Read a saved tokenizer.

    Args:
        folder: The folder of the tokenizer.
        text: Digest of the text that it must have been fitted to; None for any text.

    Raises StoreError if it is missing or damaged, has another version, or was fitted to another text.
    """
    description = _description(folder)
    if text is not None:
        check_recorded(folder.parent, {"text": description.text}, {"text": text})
    path, config = folder / description.vocabulary, description.config
    try:
        vocabulary = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: this file can't be read ({error.strerror}). {_REMOVE.capitalize()}.") from None
    if hashlib.sha256(vocabulary).hexdigest() != description.digest:
        raise StoreError(
            f"{path}: this file has changed since it was written (its digest differs from "
            f"{folder / 'tokenizer.json'}). {_REMOVE.capitalize()}."
        )
    try:
        if (config.kind in PIECE_KINDS) != (path.suffix == ".spm"):
            raise ValueError(f"it is not a {config.kind} vocabulary")
        if config.kind in PIECE_KINDS:
            pieces = PieceTokenizer(config, vocabulary)
            if not pieces.encode(string.ascii_letters):  # without normalisation, letters are kept
                raise ValueError("its normalizer removes letters")
            return pieces
        tokens = vocabulary.decode().removesuffix("\n").split("\n")  # "\r" may be a token
        if tokens[:2] != [EOS_TEXT, UNK_TEXT] or len(set(tokens)) != len(tokens):
            raise ValueError(f"it must begin with {EOS_TEXT} and {UNK_TEXT}, and contain each token only once")
        return ListTokenizer(config, tokens[2:])
    except (ValueError, RuntimeError) as error:  # RuntimeError: SentencePiece
        raise StoreError(
            f"{path}: this is not a valid vocabulary ({' '.join(str(error).split())}). {_REMOVE.capitalize()}."
        ) from None


def tokenizer_digest(folder: Path) -> str:
    """Return the SHA-256 of a saved tokenizer's vocabulary. Raises StoreError if it is missing or damaged."""
    return _description(folder).digest
