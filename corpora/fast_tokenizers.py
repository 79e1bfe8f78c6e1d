"""Tokenizers of a study as fast tokenizers of the transformers library, with the same ids and character offsets.

Those of characters and of SentencePiece are files of the `tokenizers` library (`is_serialisable`). Words by the rules
of the Penn Treebank and by jieba are cut by Python, which tokenizer.json cannot hold: there it cuts at white space.
"""

import re
from functools import partial
from typing import Any

from tokenizers import (
    AddedToken,
    Encoding,
    NormalizedString,
    PreTokenizedString,
    Regex,
    decoders,
    normalizers,
    pre_tokenizers,
)
from tokenizers import Tokenizer as Backend
from tokenizers.models import BPE, Unigram, WordLevel
from tokenizers.processors import TemplateProcessing
from transformers import BatchEncoding, PreTrainedTokenizerFast

from corpora.tokenizers import EOS, EOS_TEXT, UNK, UNK_TEXT, PieceTokenizer, Tokenizer
from pairscale.errors import ConfigError

MASK_TEXT, PAD_TEXT = "<mask>", "<pad>"
SPACE = "▁"  # as SentencePiece writes it
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


def fast_tokenizer(tokenizer: Tokenizer, masked: bool = False) -> PreTrainedTokenizerFast:
    """Return a tokenizer whose ids and offsets, without special tokens, are those of `tokenizer.encode_raw`.

    Ids 0 and 1 are `<eos>` (BOS, EOS and padding) and `<unk>`; their spelling in a text is text. A text begins with
    `<eos>`, as a model reads it. The ids of a masked model begin with `<pad>` and `<mask>`, so that all others are
    SPECIAL_TOKENS higher, and its text ends with `<eos>`, too. Words (`word_ids`) are what white space separates for
    SentencePiece, else the tokens. Raises ConfigError if `<pad>` or `<mask>` is a word.

    Where two segmentations of unigram pieces are exactly as probable ("III" as "I", "II" or "II", "I"), SentencePiece
    decides by the rounding of its float32 sums, and this tokenizer may decide otherwise.
    """
    first = [PAD_TEXT, MASK_TEXT] if masked else []
    if taken := [text for text in first if text in _tokens(tokenizer)]:
        raise ConfigError(f"tokenizer={tokenizer.config.name}: {taken[0]} is a token of the text already")
    backend = _backend(tokenizer, first)
    names = {"bos_token": EOS_TEXT, "eos_token": EOS_TEXT, "unk_token": UNK_TEXT, "pad_token": EOS_TEXT}
    if masked:
        names |= {"mask_token": MASK_TEXT, "pad_token": PAD_TEXT, "cls_token": EOS_TEXT, "sep_token": EOS_TEXT}
    after = f" {EOS_TEXT}:0" if masked else ""  # the end of a text: a causal model predicts it
    backend.post_processor = TemplateProcessing(
        single=f"{EOS_TEXT} $A{after}",
        pair=f"{EOS_TEXT} $A {EOS_TEXT} $B:1{after}",
        special_tokens=[(EOS_TEXT, len(first) + EOS)],
    )
    special = [AddedToken(text, special=True, normalized=False) for text in [*first, EOS_TEXT, UNK_TEXT]]
    backend.add_special_tokens(special)
    kind: Any = PreTrainedTokenizerFast  # without types
    if isinstance(tokenizer, PieceTokenizer):
        kind = _PieceTokenizer
    elif not is_serialisable(tokenizer):
        kind = partial(_WordTokenizer, own=tokenizer)
    fast: PreTrainedTokenizerFast = kind(tokenizer_object=backend, split_special_tokens=True, **names)
    return fast


def is_serialisable(tokenizer: Tokenizer) -> bool:
    """Return True if tokenizer.json alone cuts a text as the tokenizer does; False if that needs Python."""
    return isinstance(tokenizer, PieceTokenizer) or tokenizer.config.kind == "char"


def _tokens(tokenizer: Tokenizer) -> list[str]:
    return [tokenizer.token(index) for index in range(len(tokenizer))]


def _backend(tokenizer: Tokenizer, first: list[str]) -> Backend:
    """Return the tokenizer of the `tokenizers` library, whose ids begin with those of the tokens `first`."""
    if isinstance(tokenizer, PieceTokenizer):
        return _pieces(tokenizer, first)
    vocabulary = {token: index for index, token in enumerate([*first, *_tokens(tokenizer)])}
    backend = Backend(WordLevel(vocabulary, unk_token=UNK_TEXT))
    if tokenizer.config.kind == "char":
        backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        backend.decoder = decoders.Fuse()
    else:
        backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return backend


def _pieces(tokenizer: PieceTokenizer, first: list[str]) -> Backend:
    """Return SentencePiece's model: a space is "▁", with one before the text, and a word begins with its space."""
    processor = tokenizer.processor
    pieces = [*first, *_tokens(tokenizer)]
    scores = [0.0] * len(first) + [processor.get_score(index) for index in range(len(tokenizer))]
    reserved = {*range(len(first))} | {
        index + len(first)
        for index in range(len(tokenizer))
        if processor.is_control(index) or processor.is_unknown(index) or processor.is_byte(index)
    }
    normal = {piece: index for index, piece in enumerate(pieces) if index not in reserved}
    splits: list[Any] = [pre_tokenizers.Split(SPACE, "merged_with_next")]
    if tokenizer.config.kind == "bpe":
        vocabulary = {piece: index for index, piece in enumerate(pieces)}
        backend = Backend(BPE(vocabulary, _merges(normal, scores), unk_token=UNK_TEXT, byte_fallback=True))
    else:
        # Reserved pieces never cut a text in SentencePiece; here their score must not be the lowest of all pieces.
        lowest = min(scores[index] for index in normal.values())
        scored = [(piece, lowest if at in reserved else scores[at]) for at, piece in enumerate(pieces)]
        backend = Backend(Unigram(scored, unk_id=UNK + len(first), byte_fallback=True))
        splits.append(
            pre_tokenizers.Split(
                Regex(_reserved_spelling(normal, [EOS_TEXT, UNK_TEXT, *first])), "merged_with_previous"
            )
        )
    backend.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    backend.pre_tokenizer = pre_tokenizers.Sequence(splits)
    backend.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return backend


def _merges(pieces: dict[str, int], scores: list[float]) -> list[tuple[str, str]]:
    """Return the pairs of pieces that are pieces together, by the falling score of these."""
    ranked = sorted(pieces, key=lambda piece: -scores[pieces[piece]])
    halves = ((piece[:at], piece[at:]) for piece in ranked for at in range(1, len(piece)))
    return [(left, right) for left, right in halves if left in pieces and right in pieces]


def _reserved_spelling(pieces: dict[str, int], special: list[str]) -> str:
    """Return a pattern of the beginning of what is spelled as a reserved piece, which the model would take for it.

    It is cut off where no piece goes on, so that the text has the same pieces (if there is such a place in it).
    """
    patterns = []
    for literal, rest in (("<0x", "[0-9A-F]{2}>"), *((text, "") for text in special)):
        inside = (at for at in range(1, len(literal)) if not any(literal[at - 1 : at + 1] in piece for piece in pieces))
        at = next(inside, 1)
        patterns.append(f"{literal[:at]}(?={literal[at:]}{rest})")
    return "|".join(patterns)


class _PieceTokenizer(PreTrainedTokenizerFast):
    """SentencePiece: of the bytes of a character without a piece, the last one spans it and the others are empty."""

    def _convert_encoding(self, *arguments: Any, **options: Any) -> Any:
        columns, encodings = super()._convert_encoding(*arguments, **options)
        if "offset_mapping" in columns:
            columns["offset_mapping"] = [_spans(encoding) for encoding in encodings]
        return columns, encodings


def _spans(encoding: Encoding) -> list[tuple[int, int]]:
    """Return SentencePiece's offsets of an encoding.

    There each byte of a run of such characters has the offsets of the run, and the space before a text those of the
    text's first character.
    """
    spans = []
    character, left = 0, 0  # the one whose bytes are read, and how many of them are to come
    before = None
    for token, (start, end), text in zip(encoding.tokens, encoding.offsets, encoding.sequence_ids, strict=True):
        if byte := _BYTE.fullmatch(token):
            if not left:
                first = int(byte[1], 16)
                left = 1 + (first >= 0xC0) + (first >= 0xE0) + (first >= 0xF0)
                character = max(character, start)
            left -= 1
            start, end = character, character + (not left)
            character = end
        elif text is not None and text != before:
            character = 0
            end = 0 if token == SPACE else end
        before = text
        spans.append((start, end))
    return spans


class _WordTokenizer(PreTrainedTokenizerFast):
    """Words that Python cuts: while texts are encoded, by the tokenizer `own`."""

    def __init__(self, own: Tokenizer, **options: Any):
        super().__init__(**options)  # type: ignore[no-untyped-call]
        self.own = own

    def _encode_plus(self, *arguments: Any, **options: Any) -> BatchEncoding:
        backend = self.backend_tokenizer
        file_rule = backend.pre_tokenizer
        backend.pre_tokenizer = pre_tokenizers.PreTokenizer.custom(self)
        try:
            return super()._encode_plus(*arguments, **options)
        finally:
            backend.pre_tokenizer = file_rule

    def pre_tokenize(self, text: PreTokenizedString) -> None:
        """Cut a text; called by the `tokenizers` library."""
        text.split(self._words)

    def _words(self, _: int, text: NormalizedString) -> list[NormalizedString | None]:
        return [text[start:end] for start, end in self.own.encode_raw(str(text))[1]]
