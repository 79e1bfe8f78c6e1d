"""Split text into reference words, which a corpus's reference tokenizer defines independently of a model's tokenizer.

treebank    The words of NLTK's `word_tokenize` for one sentence (Penn Treebank rules). Contractions and punctuation are
            split off, but a full stop is split off only at the end of the sentence. Unlike NLTK's, words are slices of
            the text: a double quote is not rewritten as `` or ''. Python and tokenizer.json use the same patterns.
characters  All characters except white space.
jieba       Chinese words from jieba's dictionary and hidden Markov model.
whitespace  The words between white space, for pretokenised text.

For jieba's algorithm, we use its Rust port `rjieba`. It is maintained and seven times faster than `jieba`. It prints no
warnings under Python 3.12, and doesn't keep a pickled dictionary in a folder that anyone can write to.
"""

from functools import cache, lru_cache
from itertools import chain

from tokenizers import Regex, pre_tokenizers

from corpora.config import REFERENCES
from pairscale.errors import check_choice

CACHED = 1 << 19  # number of chunks whose words are cached; natural text repeats nearly all chunks

_CLOSING_MARKS = "])}>\"'»”’ "  # marks that may follow the full stop at the end of a sentence

# The words of the Penn Treebank as patterns. NLTK rewrites a sentence in some thirty steps. Each one puts spaces around
# words, and depends on the spaces of earlier steps. Here, three steps cut the text itself. The first one reads the
# whole text, and the others read its pieces, whose ends correspond to NLTK's spaces. In Oniguruma's patterns, \G is the
# end of the previous match, and ++ and *+ don't backtrack.


def _any_case(text: str) -> str:
    """Return a pattern that ignores case like Python does, including for the long s and Turkish i's."""
    special = {"i": "[iIİı]", "s": "[sSſ]", "'": "'"}
    return "".join(special.get(letter, f"[{letter}{letter.upper()}]") for letter in text)


_SPACE = r"\s\x1c-\x1f"  # the white space of `str.split`
_MARKS = r"""«»“”‘’„`"?!;@#$%&*‒-―(){}<>\[\]"""  # always cut off
# There are two classes of letters, because NLTK's rules for quotes use the package `regex`, but its rules for
# contractions use `re`.
_IN_WORD = r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]"
_IN_CONTRACTION = r"[\p{L}\p{N}_]"

# The full stop that ends the text. NLTK treats a double quote after a space as an opening quote, not as a closing one.
_STOP = rf"""\.(?=(?:[\])}}>"'»”’]|[{_SPACE}]++(?!"|''))*+\z)"""
# A single quote before a word, except in contractions ('s, 'll).
_ENDS = "|".join(map(_any_case, ("re", "ve", "ll", "m", "t", "s", "d", "n")))
_OPENING = rf"(?<!{_IN_WORD})'(?!(?:{_ENDS})(?!{_IN_WORD}))(?={_IN_WORD})"
# A single quote that NLTK cuts off before it looks for 's, as in "x's' y", which becomes x 's ' y. _CLITIC cuts off the
# others.
_CLOSING = rf"""'(?=[{_SPACE}]++(?!\z)|[«“‘„`;@#$%&‒-―?!]|[:,](?!\p{{Nd}})|\.\.|{_STOP})"""
_INNER = rf"""(?:
    [^{_SPACE}{_MARKS}.:,'\-]++ | [:,](?=\p{{Nd}}) | (?!\.\.|{_STOP})\. | -(?!-) | (?!''|{_OPENING}|{_CLOSING})'
)"""
# NLTK cuts off every other mark in a sequence of commas and colons. The rest begins a word: "a,,b" becomes a , ,b.
_WORD = rf"""(?x:
    (?<=[:,])[:,]++{_INNER}*+ | {_INNER}++ | \.++ | '' | -- | `` | [:,](?:[:,][:,])*(?!\p{{Nd}}) | [^{_SPACE}]
)"""

_COMMAS = r"\A[:,](?=[:,]{2})|(?<=[:,])\G[:,]"  # cuts a piece of three or more commas
_CLITIC = r"(?:'(?:ll|LL|re|RE|ve|VE)|(?<=[^'])(?:n't|N'T))(?=(?:'[sSmMdD]?)?\z)|(?<!')'[sSmMdD]?\z"


def _halves(
    left: str, right: str, start: str = "", not_after: str = _IN_CONTRACTION, end: str = rf"(?!{_IN_CONTRACTION})"
) -> str:
    """Return a pattern that matches either half of a contraction. It begins with letters, so it is twice as fast."""
    left, right = _any_case(left), _any_case(right)
    before = "|".join(text + left for text in not_after.split("|"))
    return rf"{start}{left}(?={right}{end})(?<!{before})|\G{right}(?<={left}{right})"


_IS, _WAS = _any_case("is"), _any_case("was")
_CONTRACTION = "|".join(
    [
        *(_halves(*pair.split()) for pair in ("can not", "d 'ye", "gim me", "gon na", "got ta", "lem me", "more 'n")),
        _halves("wan", "na", end=r"\z"),
        # _OPENING has cut off the quote of 'tis and 'twas, except right after another contraction, as in cannot'tis.
        _halves("'t", "is", start=r"\G", not_after=f"{_IS}|{_WAS}"),
        _halves("'t", "was", start=r"\G", not_after=_WAS),
    ]
)


@cache
def treebank_splitter() -> pre_tokenizers.Sequence:
    """Return the pre-tokenizer that cuts a text into Treebank words. It is also part of tokenizer.json.

    The Unicode tables of Python, the package `regex` and Oniguruma differ for the newest letters and digits. Here,
    Oniguruma's table determines which characters next to single quotes and contractions are letters. It also determines
    which characters after commas and colons are digits.
    """
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORD), "removed", invert=True),
            pre_tokenizers.Split(Regex(f"{_COMMAS}|{_CLITIC}"), "isolated"),
            pre_tokenizers.Split(Regex(_CONTRACTION), "isolated"),
        ]
    )


@lru_cache(maxsize=CACHED)
def _chunk_words(chunk: str, ends_sentence: bool) -> tuple[str, ...]:
    """Return the words in a chunk of a sentence, which is separated from other chunks by white space."""
    pieces = treebank_splitter().pre_tokenize_str(f"a {chunk}" if ends_sentence else f"a {chunk} a")
    return tuple(word for word, _ in (pieces[1:] if ends_sentence else pieces[1:-1]))


def _treebank(text: str) -> list[str]:
    # The words of each chunk can be cached, because the rules don't look beyond the nearest white space. The exception
    # is the full stop at the end of the sentence, which may be followed by closing quotes and brackets.
    chunks = text.split()
    if not chunks:
        return chunks
    last = chunks.pop()
    while chunks and not last.strip(_CLOSING_MARKS):
        last = f"{chunks.pop()} {last}"
    return [*chain.from_iterable(_chunk_words(chunk, False) for chunk in chunks), *_chunk_words(last, True)]


def words(text: str, reference: str) -> list[str]:
    """Split a sentence into words, which are slices of `text` with only white space between them.

    Raises ConfigError if `reference` is not one of REFERENCES.
    """
    match reference:
        case "treebank":
            return _treebank(text)
        case "characters":
            return list("".join(text.split()))
        case "jieba":
            import rjieba

            return [word for word in rjieba.cut(text) if not word.isspace()]
        case "whitespace":
            return text.split()
    check_choice("corpus.reference", reference, REFERENCES)
    raise AssertionError


def spans_of(text: str, pieces: list[str]) -> list[tuple[int, int]]:
    """Return the character offsets of `pieces`, which are slices of `text` in order, separated by white space only."""
    spans = []
    end = 0
    for piece in pieces:
        start = text.index(piece, end)
        end = start + len(piece)
        spans.append((start, end))
    return spans


def word_spans(text: str, reference: str) -> list[tuple[int, int]]:
    """Return the character offsets of a sentence's words. Raises the same errors as `words`."""
    return spans_of(text, words(text, reference))


def count_words(text: str, reference: str) -> int:
    """Return the number of words in a sentence. Raises the same errors as `words`."""
    return len(words(text, reference))


def count_characters(text: str) -> int:
    """Return the number of characters that are not white space."""
    return len("".join(text.split()))
