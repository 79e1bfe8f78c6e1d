r"""The words of the Penn Treebank (`corpora.words`) as patterns that tokenizer.json can contain.

NLTK rewrites a sentence in some thirty steps. Each puts spaces around words, and sees the spaces of the steps before
it. Here, three steps cut the text itself: the first one reads the whole text, and the others read its pieces, whose
ends stand for NLTK's spaces. In Oniguruma's patterns, `\G` is the end of the match before, and `++` and `*+` give
nothing back.
"""

from tokenizers import Regex
from tokenizers.pre_tokenizers import Sequence, Split


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


def treebank_splitter() -> Sequence:
    """Return the pre-tokenizer that cuts a text as `corpora.words.words(text, "treebank")` does.

    Where Python's, the package `regex`'s and Oniguruma's Unicode tables differ, the newest letters count next to a
    single quote or a contraction as Oniguruma has them, and the newest digits after a comma or a colon.
    """
    return Sequence(
        [
            Split(Regex(_WORD), "removed", invert=True),
            Split(Regex(f"{_COMMAS}|{_CLITIC}"), "isolated"),
            Split(Regex(_CONTRACTION), "isolated"),
        ]
    )
