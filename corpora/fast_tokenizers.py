"""Tokenizers of a study as fast tokenizers, with the same ids and character offsets, and the files of these.

All but those of jieba's words are files of the `tokenizers` library (`is_serialisable`): Python cuts these, which
tokenizer.json cannot contain.
"""

from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, decoders, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend
from tokenizers.models import BPE, Unigram, WordLevel
from tokenizers.processors import TemplateProcessing

from corpora.tokenizers import EOS, EOS_TEXT, UNK, UNK_TEXT, PieceTokenizer, Tokenizer
from corpora.words import treebank_splitter
from pairscale.errors import ConfigError
from pairscale.files import write_json, write_text

MASK_TEXT, PAD_TEXT = "<mask>", "<pad>"
SPACE = "▁"  # as SentencePiece writes it
NEEDS_CODE = "trust_remote_code=True"  # in place of the unknown word in the file of a tokenizer with code
_CODE = Path(__file__).with_name("tokenization_pairscale.py")  # which travels


def save_fast_tokenizer(folder: Path, tokenizer: Tokenizer, masked: bool, positions: int | None) -> None:
    """Write the files from which transformers makes the tokenizer of a model that reads `positions` tokens at most.

    Unlike a scorer's tokenizer it reads the spelling of a special token in a text as that token: tools write "<eos>"
    there. Raises WriteError, and ConfigError as `backend_of`.
    """
    backend, names = backend_of(tokenizer, masked)
    described: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "padding_side": "right",
        # Without token_type_ids, which transformers 4 returns by default: GPT-2 would add their embeddings.
        "model_input_names": ["input_ids", "attention_mask"],
        **names,
        **({} if positions is None else {"model_max_length": positions}),
    }
    if not is_serialisable(tokenizer):
        # The file alone cuts no words and has no unknown one: read without the code, it fails on a text of several.
        backend.pre_tokenizer, backend.model.unk_token = None, NEEDS_CODE
        described |= {
            "tokenizer_class": "PairscaleTokenizer",
            "auto_map": {"AutoTokenizer": [f"{_CODE.stem}.PairscaleTokenizer", None]},
        }
        write_text(folder / _CODE.name, _CODE.read_text(encoding="utf-8"))
    write_text(folder / "tokenizer.json", backend.to_str(pretty=True))
    write_json(folder / "tokenizer_config.json", described)


def backend_of(tokenizer: Tokenizer, masked: bool = False) -> tuple[Backend, dict[str, str]]:
    """Return the tokenizer of the `tokenizers` library, and its special tokens as transformers names them.

    Its ids, without special tokens, are those of `tokenizer.encode_raw`, and so are the offsets of the words that it
    cuts itself. Ids 0 and 1 are `<eos>` (BOS, EOS and padding) and `<unk>`. A text begins with `<eos>`, as a model
    reads it. The ids of a masked model begin with `<pad>` and `<mask>`, so that all others are SPECIAL_TOKENS higher,
    and its text ends with `<eos>`, too. Words (`word_ids`) are what white space separates for SentencePiece, else the
    tokens. Raises ConfigError if `<pad>` or `<mask>` is a word.

    Where two segmentations of unigram pieces are exactly as probable ("III" as "I", "II" or "II", "I"), SentencePiece
    decides by the rounding of its float32 sums, and this tokenizer may decide otherwise: the same pieces come in
    another order in 5 of a million English and 40 of a million Chinese sentences.
    """
    if masked:
        check_masked(tokenizer)
    first = [PAD_TEXT, MASK_TEXT] if masked else []
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
    return backend, names


def check_masked(tokenizer: Tokenizer) -> None:
    """Raise ConfigError if `<pad>` or `<mask>`, which a masked model adds, is a token of the text already."""
    if taken := {PAD_TEXT, MASK_TEXT}.intersection(_tokens(tokenizer)):
        raise ConfigError(f"tokenizer={tokenizer.config.name}: {min(taken)} is a token of the text already")


def is_serialisable(tokenizer: Tokenizer) -> bool:
    """Return True if tokenizer.json alone cuts a text as the tokenizer does; False if that needs Python."""
    return tokenizer.config.kind != "jieba"


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
    elif is_serialisable(tokenizer):
        backend.pre_tokenizer = treebank_splitter()
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
