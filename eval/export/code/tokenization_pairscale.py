"""The tokenizer of a language model over words, trained by pairscale, for AutoTokenizer.

The words of the Penn Treebank are those of NLTK's `word_tokenize` for one sentence (contractions and punctuation are
split off, the full stop only at the sentence's end), except that words are slices of the text: a double quote is not
rewritten. The rules below are those of nltk.tokenize.destructive.NLTKWordTokenizer: Natural Language Toolkit, (C)
2001-2026 NLTK Project, Apache License 2.0. Chinese words are those of jieba, which needs the package `rjieba`.
"""

import re
from importlib import import_module
from typing import Any

from tokenizers import NormalizedString, PreTokenizedString
from tokenizers.pre_tokenizers import PreTokenizer
from transformers import BatchEncoding, PreTrainedTokenizerFast

RULES = [
    # Starting quotes.
    (r"([«“‘„]|[`]+)", r" \1 "),
    (r"^\"", r"``"),
    (r"(``)", r" \1 "),
    (r"([ \(\[{<])(\"|\'{2})", r"\1 `` "),
    (r"(?i)(?<!\w)(\')(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)", r"\1 "),
    # Punctuation.
    (r"([^\.])(\.)([\]\)}>\"\'»”’ ]*)\s*$", r"\1 \2 \3 "),
    (r"([:,])([^\d])", r" \1 \2"),
    (r"([:,])$", r" \1 "),
    (r"\.{2,}", r" \g<0> "),
    (r"[;@#$%&]", r" \g<0> "),
    (r"[\u2012-\u2015]", r" \g<0> "),
    (r"([^\.])(\.)([\]\)}>\"\']*)\s*$", r"\1 \2\3 "),
    (r"[?!]", r" \g<0> "),
    (r"([^'])' ", r"\1 ' "),
    (r"[*]", r" \g<0> "),
    (r"[\]\[\(\)\{\}\<\>]", r" \g<0> "),
    (r"--", r" -- "),
    (r"^|$", r" "),
    # Ending quotes.
    (r"([»”’])", r" \1 "),
    (r"''", r" '' "),
    (r"\"", r" '' "),
    (r"\s+", r" "),
    (r"([^' ])('[sS]|'[mM]|'[dD]|') ", r"\1 \2 "),
    (r"([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) ", r"\1 \2 "),
    # Contractions.
    (r"(?i)\b(can)(not)\b", r" \1 \2 "),
    (r"(?i)\b(d)('ye)\b", r" \1 \2 "),
    (r"(?i)\b(gim)(me)\b", r" \1 \2 "),
    (r"(?i)\b(gon)(na)\b", r" \1 \2 "),
    (r"(?i)\b(got)(ta)\b", r" \1 \2 "),
    (r"(?i)\b(lem)(me)\b", r" \1 \2 "),
    (r"(?i)\b(more)('n)\b", r" \1 \2 "),
    (r"(?i)\b(wan)(na)(?=\s)", r" \1 \2 "),
    (r"(?i) ('t)(is)\b", r" \1 \2 "),
    (r"(?i) ('t)(was)\b", r" \1 \2 "),
]


class PairscaleTokenizer(PreTrainedTokenizerFast):
    """Words by the value `words` of tokenizer_config.json, treebank or jieba; `<unk>` if not in the vocabulary.

    tokenizer.json holds the vocabulary alone: without this class a text would be cut at white space. A class with an
    `__init__` of its own would not be read from that file.
    """

    def _encode_plus(self, *arguments: Any, **options: Any) -> BatchEncoding:
        backend = self.backend_tokenizer
        file_rule = backend.pre_tokenizer
        backend.pre_tokenizer = PreTokenizer.custom(self)
        try:
            return super()._encode_plus(*arguments, **options)
        finally:
            backend.pre_tokenizer = file_rule

    def pre_tokenize(self, text: PreTokenizedString) -> None:
        """Cut a text; called by the `tokenizers` library."""
        text.split(self._slices)

    def _slices(self, _: int, text: NormalizedString) -> list[NormalizedString | None]:
        return [text[start:end] for start, end in self.spans(str(text))]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character offsets of a sentence's words."""
        if self.init_kwargs.get("words") == "jieba":
            pieces = [word for word in import_module("rjieba").cut(text) if not word.isspace()]
        else:
            pieces = treebank(text)
        spans, end = [], 0
        for piece in pieces:
            forms = (piece, "''", '"') if piece in ("``", "''") else (piece,)
            start = end + len(text[end:]) - len(text[end:].lstrip())
            word = next(form for form in forms if text.startswith(form, start))
            end = start + len(word)
            spans.append((start, end))
        return spans


def treebank(text: str) -> list[str]:
    """Return the words of a sentence, double quotes rewritten as `` and ''."""
    text = " ".join(text.split())
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    return text.split()
