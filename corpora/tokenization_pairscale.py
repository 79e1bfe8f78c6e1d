"""Define AutoTokenizer's class for a model that pairscale trained on jieba's words. It needs the package `rjieba`."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from tokenizers import NormalizedString, PreTokenizedString
from tokenizers.pre_tokenizers import PreTokenizer
from transformers import BatchEncoding, PreTrainedTokenizerFast


class PairscaleTokenizer(PreTrainedTokenizerFast):
    """A tokenizer for the words that jieba cuts, without white space. Words outside the vocabulary are `<unk>`.

    tokenizer.json contains only the vocabulary, so it fails on a text of several words without this class. The class
    doesn't define `__init__`, because transformers would then not load it from that file.
    """

    def _encode_plus(self, *arguments: Any, **options: Any) -> BatchEncoding:
        with self._cutting():
            return super()._encode_plus(*arguments, **options)

    def _batch_encode_plus(self, *arguments: Any, **options: Any) -> BatchEncoding:
        with self._cutting():  # for transformers 4, whose `_encode_plus` encodes a single text
            return super()._batch_encode_plus(*arguments, **options)

    @contextmanager
    def _cutting(self) -> Iterator[None]:
        """Cut texts that are encoded within this context into words, and encode unknown words as `<unk>`."""
        try:
            self._cut = import_module("rjieba").cut
        except ImportError as error:  # raised here, because the `tokenizers` library hides the type of an error
            raise ImportError("This tokenizer needs rjieba to split words. Install it: pip install rjieba") from error
        backend = self.backend_tokenizer
        in_file = backend.pre_tokenizer, backend.model.unk_token
        backend.pre_tokenizer, backend.model.unk_token = PreTokenizer.custom(self), self.unk_token
        try:
            yield
        finally:
            backend.pre_tokenizer, backend.model.unk_token = in_file

    def pre_tokenize(self, text: PreTokenizedString) -> None:
        """Cut a text into words. The `tokenizers` library calls this method."""
        text.split(self._words)

    def _words(self, _: int, text: NormalizedString) -> list[NormalizedString | None]:
        words, end = [], 0
        for piece in self._cut(str(text)):
            start, end = end, end + len(piece)
            if not piece.isspace():
                words.append(text[start:end])
        return words
