"""Scorers of Hugging Face architectures that pairscale trained: those of pretrained models, with our tokenizers."""

import re
from typing import Any

from tokenizers import Encoding
from transformers import PreTrainedTokenizerFast

from corpora.fast_tokenizers import SPACE, backend_of, is_serialisable
from corpora.tokenization_pairscale import PairscaleTokenizer
from corpora.tokenizers import PieceTokenizer, Tokenizer
from eval.scorers.base import Execution
from eval.scorers.causal import CausalScorer
from eval.scorers.hub import HubModel, HubScorer
from eval.scorers.masked import MaskedScorer
from train.models.huggingface import HuggingFaceModel
from train.models.huggingface_config import HuggingFaceConfig
from train.runs.model_folder import LoadedModel

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


def network_scorer(loaded: LoadedModel, config: HuggingFaceConfig, name: str, execution: Execution) -> HubScorer:
    """Return the scorer of a run. Raises what CausalScorer and MaskedScorer raise."""
    assert isinstance(loaded.model, HuggingFaceModel)
    hub = HubModel(loaded.model.network, fast_tokenizer(loaded.tokenizer, config.masked), name, trained_here=True)
    scorer: HubScorer
    if config.masked:
        scorer = MaskedScorer(hub, execution)
        scorer.shift = config.shift  # known, so that it need not be probed
    else:
        scorer = CausalScorer(hub, execution)
        scorer.word_level = loaded.tokenizer.word_level
    scorer.digest, scorer.tokenizer_digest = loaded.digest, loaded.tokenizer_digest  # as in the run's folder
    scorer.sample_words = loaded.info.get("sample_words")
    return scorer


def fast_tokenizer(tokenizer: Tokenizer, masked: bool = False) -> PreTrainedTokenizerFast:
    """Return the tokenizer of `corpora.fast_tokenizers.backend_of`; the spelling of a special token is text to it.

    Its offsets, too, are those of `tokenizer.encode_raw`. Raises ConfigError if `<pad>` or `<mask>` is a word.
    """
    backend, names = backend_of(tokenizer, masked)
    kind: Any = PreTrainedTokenizerFast  # without types
    if isinstance(tokenizer, PieceTokenizer):
        kind = _PieceTokenizer
    elif not is_serialisable(tokenizer):
        kind = PairscaleTokenizer
    fast: PreTrainedTokenizerFast = kind(tokenizer_object=backend, split_special_tokens=True, **names)
    return fast


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
