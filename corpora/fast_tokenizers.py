"""Convert tokenizers to transformers' fast tokenizers, with the same ids and character offsets, and save them.

All of them become files of the `tokenizers` library, except jieba's (`is_serialisable`). Its words are cut by Python
code, which tokenizer.json can't contain.
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
SPACE = "▁"  # what SentencePiece writes for a space
NEEDS_CODE = "trust_remote_code=True"  # replaces the unknown word in the file of a tokenizer that needs code
_CODE = Path(__file__).with_name("tokenization_pairscale.py")  # copied next to the tokenizer


def save_fast_tokenizer(folder: Path, tokenizer: Tokenizer, masked: bool, positions: int | None) -> None:
    """Write the files from which transformers loads a tokenizer.

    Unlike a scorer's tokenizer, the saved one reads "<eos>" and other special tokens in a text as special tokens,
    because other tools write "<eos>" there.

    Args:
        folder: The folder to write to.
        tokenizer: The tokenizer to save.
        masked: True for a masked model.
        positions: The maximum number of tokens that the model reads; None for no maximum.

    Raises WriteError if a file can't be written, and ConfigError under the same condition as `backend_of`.
    """
    backend, names = backend_of(tokenizer, masked)
    described: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "padding_side": "right",
        # token_type_ids are missing, because GPT-2 would add their embeddings. Transformers 4 returns them by default.
        "model_input_names": ["input_ids", "attention_mask"],
        **names,
        **({} if positions is None else {"model_max_length": positions}),
    }
    if not is_serialisable(tokenizer):
        # Without the code, the file cuts no words and lacks an unknown word, so it fails on a text of several words.
        backend.pre_tokenizer, backend.model.unk_token = None, NEEDS_CODE
        described |= {
            "tokenizer_class": "PairscaleTokenizer",
            "auto_map": {"AutoTokenizer": [f"{_CODE.stem}.PairscaleTokenizer", None]},
        }
        write_text(folder / _CODE.name, _CODE.read_text(encoding="utf-8"))
    write_text(folder / "tokenizer.json", backend.to_str(pretty=True))
    write_json(folder / "tokenizer_config.json", described)


def backend_of(tokenizer: Tokenizer, masked: bool = False) -> tuple[Backend, dict[str, str]]:
    """Convert a tokenizer to the `tokenizers` library. Also return its special tokens under transformers' names.

    Apart from special tokens, the ids agree with `tokenizer.encode_raw`, and so do the offsets of words that the
    backend cuts itself. Ids 0 and 1 are `<eos>` (BOS, EOS and padding) and `<unk>`. A text begins with `<eos>`, as
    models read it. For a masked model, the ids begin with `<pad>` and `<mask>`, all others are SPECIAL_TOKENS higher,
    and a text also ends with `<eos>`. With SentencePiece, words (`word_ids`) are separated by white space. Otherwise,
    each token is a word. Raises ConfigError if `<pad>` or `<mask>` is a word of the text.

    Two segmentations into unigram pieces can be equally probable. For example, "III" can be cut into "I", "II" or "II",
    "I". SentencePiece then decides by the rounding of its float32 sums, and this tokenizer may choose the other order
    of the same pieces. This happens in 5 of a million English and 40 of a million Chinese sentences.
    """
    if masked:
        check_masked(tokenizer)
    first = [PAD_TEXT, MASK_TEXT] if masked else []
    backend = _backend(tokenizer, first)
    names = {"bos_token": EOS_TEXT, "eos_token": EOS_TEXT, "unk_token": UNK_TEXT, "pad_token": EOS_TEXT}
    if masked:
        names |= {"mask_token": MASK_TEXT, "pad_token": PAD_TEXT, "cls_token": EOS_TEXT, "sep_token": EOS_TEXT}
    after = f" {EOS_TEXT}:0" if masked else ""  # a causal model predicts the final <eos> instead of reading it
    backend.post_processor = TemplateProcessing(
        single=f"{EOS_TEXT} $A{after}",
        pair=f"{EOS_TEXT} $A {EOS_TEXT} $B:1{after}",
        special_tokens=[(EOS_TEXT, len(first) + EOS)],
    )
    special = [AddedToken(text, special=True, normalized=False) for text in [*first, EOS_TEXT, UNK_TEXT]]
    backend.add_special_tokens(special)
    return backend, names


def check_masked(tokenizer: Tokenizer) -> None:
    """Raise ConfigError if the vocabulary already contains `<pad>` or `<mask>`, which a masked model adds."""
    if taken := {PAD_TEXT, MASK_TEXT}.intersection(_tokens(tokenizer)):
        raise ConfigError(
            f"tokenizer={tokenizer.config.name}: the text contains {min(taken)}, which a masked model uses as a "
            "special token. Remove it from the text, or choose another model."
        )


def is_serialisable(tokenizer: Tokenizer) -> bool:
    """Return True if tokenizer.json can cut a text like the tokenizer does, without Python code."""
    return tokenizer.config.kind != "jieba"


def _tokens(tokenizer: Tokenizer) -> list[str]:
    return [tokenizer.token(index) for index in range(len(tokenizer))]


def _backend(tokenizer: Tokenizer, first: list[str]) -> Backend:
    """Convert a tokenizer to the `tokenizers` library, with the tokens in `first` before all others."""
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
    """Convert a SentencePiece model. Spaces become "▁", "▁" precedes the text, and a word begins with its space."""
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
        # SentencePiece never cuts a text into reserved pieces. Here, their score must not be lower than all others.
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
    """Return the pairs of pieces that together form another piece, sorted by decreasing score of that piece."""
    ranked = sorted(pieces, key=lambda piece: -scores[pieces[piece]])
    halves = ((piece[:at], piece[at:]) for piece in ranked for at in range(1, len(piece)))
    return [(left, right) for left, right in halves if left in pieces and right in pieces]


def _reserved_spelling(pieces: dict[str, int], special: list[str]) -> str:
    """Return a pattern for the beginning of a text that is spelled like a reserved piece.

    The model would read such a text as the reserved piece. Cutting off its beginning prevents this. The text's pieces
    stay the same if there is a place that no piece crosses.
    """
    patterns = []
    for literal, rest in (("<0x", "[0-9A-F]{2}>"), *((text, "") for text in special)):
        inside = (at for at in range(1, len(literal)) if not any(literal[at - 1 : at + 1] in piece for piece in pieces))
        at = next(inside, 1)
        patterns.append(f"{literal[:at]}(?={literal[at:]}{rest})")
    return "|".join(patterns)
