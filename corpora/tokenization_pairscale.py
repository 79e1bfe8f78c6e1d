"""The tokenizer of a language model over words, trained by pairscale, for AutoTokenizer.

The words of the Penn Treebank are those of NLTK's `word_tokenize` for one sentence (contractions and punctuation are
split off, the full stop only at the sentence's end), except that words are slices of the text: a double quote is not
rewritten. Chinese words are those of jieba. They need the package `nltk` or `rjieba`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from tokenizers import NormalizedString, PreTokenizedString
from tokenizers.pre_tokenizers import PreTokenizer
from transformers import BatchEncoding, PreTrainedTokenizerFast


class PairscaleTokenizer(PreTrainedTokenizerFast):
    """Words by the value `words` of tokenizer_config.json, treebank or jieba; `<unk>` if not in the vocabulary.

    tokenizer.json holds the vocabulary alone: without this class it fails on a text of several words. A class with an
    `__init__` of its own would not be read from that file.
    """

    def _encode_plus(self, *arguments: Any, **options: Any) -> BatchEncoding:
        with self._cutting():
            return super()._encode_plus(*arguments, **options)

    def _batch_encode_plus(self, *arguments: Any, **options: Any) -> BatchEncoding:
        with self._cutting():  # of transformers 4, where `_encode_plus` has one text
            return super()._batch_encode_plus(*arguments, **options)

    @contextmanager
    def _cutting(self) -> Iterator[None]:
        """Texts that are encoded within are cut into words, those out of the vocabulary being `<unk>`."""
        self._cut()  # here, as the `tokenizers` library hides the type of an error
        backend = self.backend_tokenizer
        in_file = backend.pre_tokenizer, backend.model.unk_token
        backend.pre_tokenizer, backend.model.unk_token = PreTokenizer.custom(self), self.unk_token
        try:
            yield
        finally:
            backend.pre_tokenizer, backend.model.unk_token = in_file

    def pre_tokenize(self, text: PreTokenizedString) -> None:
        """Cut a text; called by the `tokenizers` library."""
        text.split(self._slices)

    def _slices(self, _: int, text: NormalizedString) -> list[NormalizedString | None]:
        return [text[start:end] for start, end in self.spans(str(text))]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the character offsets of a sentence's words. Raises ImportError without their package."""
        pieces = [piece for piece in self._cut()(text) if not piece.isspace()]
        spans, end = [], 0
        for piece in pieces:
            forms = (piece, "''", '"') if piece in ("``", "''") else (piece,)
            start = end + len(text[end:]) - len(text[end:].lstrip())
            word = next(form for form in forms if text.startswith(form, start))
            end = start + len(word)
            spans.append((start, end))
        return spans

    def _cut(self) -> Callable[[str], list[str]]:
        """Return the function that cuts a sentence into words, NLTK's double quotes rewritten as `` and ''."""
        package = "rjieba" if self.init_kwargs.get("words") == "jieba" else "nltk"
        try:
            if package == "rjieba":
                return import_module("rjieba").cut
            tokenize = import_module("nltk.tokenize.destructive").NLTKWordTokenizer().tokenize
        except ImportError as error:
            raise ImportError(f"this tokenizer cuts words by {package}: pip install {package}") from error
        return lambda text: tokenize(" ".join(text.split()))
