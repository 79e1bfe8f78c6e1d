"""The tokenizer of a language model over jieba's words, trained by pairscale, for AutoTokenizer; it needs `rjieba`."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from tokenizers import NormalizedString, PreTokenizedString
from tokenizers.pre_tokenizers import PreTokenizer
from transformers import BatchEncoding, PreTrainedTokenizerFast


class PairscaleTokenizer(PreTrainedTokenizerFast):
    """The words that jieba cuts, without white space; `<unk>` if not in the vocabulary.

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
        try:
            self._cut = import_module("rjieba").cut
        except ImportError as error:  # here, as the `tokenizers` library hides the type of an error
            raise ImportError("this tokenizer cuts words by rjieba: pip install rjieba") from error
        backend = self.backend_tokenizer
        in_file = backend.pre_tokenizer, backend.model.unk_token
        backend.pre_tokenizer, backend.model.unk_token = PreTokenizer.custom(self), self.unk_token
        try:
            yield
        finally:
            backend.pre_tokenizer, backend.model.unk_token = in_file

    def pre_tokenize(self, text: PreTokenizedString) -> None:
        """Cut a text; called by the `tokenizers` library."""
        text.split(self._words)

    def _words(self, _: int, text: NormalizedString) -> list[NormalizedString | None]:
        words, end = [], 0
        for piece in self._cut(str(text)):
            start, end = end, end + len(piece)
            if not piece.isspace():
                words.append(text[start:end])
        return words
