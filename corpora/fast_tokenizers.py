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


# The words of the Penn Treebank (corpora/words.py) as patterns. NLTK rewrites a sentence in some thirty steps. Each
# puts spaces around words, and sees the spaces of the steps before it. Here, three steps cut the text itself: the first
# one reads the whole text, and the others read its pieces, whose ends stand for NLTK's spaces. In Oniguruma's patterns,
# \G is the end of the match before, and ++ and *+ give nothing back.


def _any_case(text: str) -> str:
    """Return a pattern of a text in any case, as Python has it: with long s and the Turkish letters i."""
    special = {"i": "[iIİı]", "s": "[sSſ]", "'": "'"}
    return "".join(special.get(letter, f"[{letter}{letter.upper()}]") for letter in text)


_SPACE = r"\s\x1c-\x1f"  # the white space of `str.split`
_MARKS = r"""«»“”‘’„`"?!;@#$%&*‒-―(){}<>\[\]"""  # always cut off
# Letters. NLTK's rules for quotes use the package `regex`, and those for contractions use `re`.
_IN_WORD = r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]"
_IN_CONTRACTION = r"[\p{L}\p{N}_]"

# The full stop that ends the text. A double quote after a space opens a quotation for NLTK: it closes no sentence.
_STOP = rf"""\.(?=(?:[\])}}>"'»”’]|[{_SPACE}]++(?!"|''))*+\z)"""
# A single quote before a word, except for those of contractions ('s, 'll).
_ENDS = "|".join(map(_any_case, ("re", "ve", "ll", "m", "t", "s", "d", "n")))
_OPENING = rf"(?<!{_IN_WORD})'(?!(?:{_ENDS})(?!{_IN_WORD}))(?={_IN_WORD})"
# A single quote that NLTK cuts off before it looks for 's: "x's' y" is x 's ' y. _CLITIC cuts off the others.
_CLOSING = rf"""'(?=[{_SPACE}]++(?!\z)|[«“‘„`;@#$%&‒-―?!]|[:,](?!\p{{Nd}})|\.\.|{_STOP})"""
_INNER = rf"""(?:
    [^{_SPACE}{_MARKS}.:,'\-]++ | [:,](?=\p{{Nd}}) | (?!\.\.|{_STOP})\. | -(?!-) | (?!''|{_OPENING}|{_CLOSING})'
)"""
# In a row of commas and colons, NLTK cuts off every other one. The rest of the row begins a word: "a,,b" is a , ,b.
_WORD = rf"""(?x:
    (?<=[:,])[:,]++{_INNER}*+ | {_INNER}++ | \.++ | '' | -- | `` | [:,](?:[:,][:,])*(?!\p{{Nd}}) | [^{_SPACE}]
)"""

_COMMAS = r"\A[:,](?=[:,]{2})|(?<=[:,])\G[:,]"  # a piece of three commas or more
_CLITIC = r"(?:'(?:ll|LL|re|RE|ve|VE)|(?<=[^'])(?:n't|N'T))(?=(?:'[sSmMdD]?)?\z)|(?<!')'[sSmMdD]?\z"


def _halves(
    left: str, right: str, start: str = "", not_after: str = _IN_CONTRACTION, end: str = rf"(?!{_IN_CONTRACTION})"
) -> str:
    """Return a pattern of each half of a contraction; letters come first in it, which makes it twice as fast."""
    left, right = _any_case(left), _any_case(right)
    before = "|".join(text + left for text in not_after.split("|"))
    return rf"{start}{left}(?={right}{end})(?<!{before})|\G{right}(?<={left}{right})"


_IS, _WAS = _any_case("is"), _any_case("was")
_CONTRACTION = "|".join(
    [
        *(_halves(*pair.split()) for pair in ("can not", "d 'ye", "gim me", "gon na", "got ta", "lem me", "more 'n")),
        _halves("wan", "na", end=r"\z"),
        # _OPENING has cut off the quote of 'tis and 'twas, except right after another contraction: cannot'tis.
        _halves("'t", "is", start=r"\G", not_after=f"{_IS}|{_WAS}"),
        _halves("'t", "was", start=r"\G", not_after=_WAS),
    ]
)


def treebank_splitter() -> pre_tokenizers.Sequence:
    """Return the pre-tokenizer that cuts a text as `corpora.words.words(text, "treebank")` does.

    Where Python's, the package `regex`'s and Oniguruma's Unicode tables differ, the newest letters count next to a
    single quote or a contraction as Oniguruma has them, and the newest digits after a comma or a colon.
    """
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORD), "removed", invert=True),
            pre_tokenizers.Split(Regex(f"{_COMMAS}|{_CLITIC}"), "isolated"),
            pre_tokenizers.Split(Regex(_CONTRACTION), "isolated"),
        ]
    )
