"""Define `Scorer`, the interface of every model, and the results of its four methods.

    score           a log-probability (nats) and a character span for every token of a sentence
    continuations   the log-probability of every answer as a continuation of a prompt
    next_words      the probability and rank of candidate words after a context, and the most probable words
    predictions     log-probability, entropy, rank and end of a word for every token of a text of any length

The scoring settings (eval.config.PolicyConfig) are applied in two places. A scorer applies `context`, `score_eos` and
`precision`, and marks `<unk>` tokens. The methods (eval/methods) then decide whether to skip these tokens (`unk`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from eval.benchmarks.cells import shown
from eval.config import PLAIN, EvalConfig, PolicyConfig, SurprisalCommand
from eval.scorers.chat import ChatTemplate
from eval.scorers.next_words import NextWords, Question, Questions, Read, Reading
from eval.scorers.predictions import TokenPredictions, Window, joined, of_places
from eval.scorers.tokens import Spans, Tokens
from eval.scorers.trees import Ids, length_batches, places
from pairscale.errors import ConfigError, InputError
from pairscale.progress import with_progress
from train.loop.device import device_of, without_gradients
from train.models.loss import CHUNK_BYTES

ROWS_BYTES = 1 << 27  # maximum size of the distributions over tokens in memory
FloatArray = npt.NDArray[np.float64]
Batch = TypeVar("Batch", bound=Sized)  # its length is the number of units in it
Windows = tuple[Sequence[Window], Sequence[int], Spans]  # of one text, and the ids and spans of its tokens
Reads = TypeVar("Reads", Reading, Window)


@dataclass(frozen=True)
class Execution:
    """Settings for running a model. None of them changes a score."""

    batch_tokens: int = 8192  # maximum number of tokens to read at a time, including padding
    device: str = "cpu"
    progress: bool = False  # show a progress bar

    @classmethod
    def of(cls, config: EvalConfig | SurprisalCommand) -> Execution:
        """Return the execution settings of a configuration. Raises ConfigError if it requests a missing GPU."""
        return cls(config.scoring.batch_tokens, device_of(config.trainer), config.trainer.progress)


@dataclass(frozen=True, slots=True)
class TokenScores:
    """The scores of one sentence, which has n scored tokens."""

    logprobs: FloatArray  # (n,) nats
    # (n, 2) character offsets into the sentence. For a scored <eos>, both are the length of the sentence.
    spans: npt.NDArray[np.int32]
    unk: npt.NDArray[np.bool_]  # (n,) whether the token is <unk>
    ids: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))  # (n,) in the model's vocabulary


@dataclass(frozen=True)
class Continuations:
    """The log-probabilities of A answers to N prompts."""

    logprobs: FloatArray  # (N, A) nats, summed over the answer's tokens, given the prompt
    counts: npt.NDArray[np.int64]  # (N, A) number of tokens in the answer
    tokens: list[list[list[str]]]  # for each answer, the different tokenizations of it after the prompts


def first_after(spans: Sequence[tuple[int, int]], start: int) -> int:
    """Return the index of the first token that covers a character from `start` on; their number if there is none.

    A token of zero width consists of the first bytes of the next character, or of a space that offsets leave out.
    """
    return next((at for at, (begin, end) in enumerate(spans) if end > start or begin >= start), len(spans))


class TextTooLong(InputError):
    """A text has more tokens than a model can read."""

    def __init__(self, name: str, positions: int, text: str, tokens: int):
        super().__init__(
            f"{name} can read at most {positions:,} tokens, but {shown(text)} has {tokens:,}. Shorten this text, or "
            "remove it."
        )
        self.text = text


class Scorer(ABC):
    """A model that scores sentences one by one and predicts next words. Some models also answer prompts."""

    masked: bool  # whether tokens are predicted from both sides, rather than only from the tokens before them
    answers_prompts: bool = False  # whether `continuations` can be called
    tokenizer_path: str | None = None  # the tokenizer's folder, if it isn't the model's folder
    sample_words: int | None = None  # number of words that the model was trained on, if known
    positions: int | None  # maximum number of tokens that the model can read; None: no maximum
    device: torch.device
    batch_tokens: int
    vocabulary: int

    def __init__(self, name: str, digest: str, tokens: Tokens, progress: bool):
        """Set the attributes that all scorers have in common. `digest` is the digest of the weights."""
        self.name, self.digest, self.tokens, self.progress = name, digest, tokens, progress
        self.tokenizer_digest = tokens.digest
        self.word_level = tokens.word_level  # the default of policy.score_eos
        # Other properties that affect the scores of a Hugging Face model (eval.scorers.tokens.score_settings).
        self.settings: dict[str, Any] = {}

    @property
    def chat_template(self) -> ChatTemplate | None:
        """The chat template for prompts, or None if prompts are plain text."""
        return self.tokens.chat_template if self.answers_prompts else None

    @abstractmethod
    def score(
        self, sentences: Sequence[str], policy: PolicyConfig = PLAIN, starts: Sequence[int] | None = None
    ) -> list[TokenScores]:
        """Score every token of sentences, or only those after a context.

        Args:
            sentences: The sentences, with their contexts. Each is scored on its own.
            policy: Scoring settings.
            starts: For each sentence, the number of characters of its context (default: 0). A token counts if it covers
                a later character, even if it begins in the context. Masked models hide only such tokens.

        Returns:
            Scores in the order of `sentences`. The arrays are empty for a sentence without scored tokens. Spans are
            offsets into the whole text.

        Raises:
            TextTooLong: If a sentence has more tokens than the model can read.
            ConfigError: If the model doesn't support the scoring settings.
        """

    @abstractmethod
    def encode(self, texts: Sequence[str], policy: PolicyConfig = PLAIN) -> Iterator[Ids]:
        """Yield, for each text, the ids of the tokens that `score` scores, including `<eos>` if it is scored."""

    @abstractmethod
    def readings(self, questions: Sequence[Question], policy: PolicyConfig) -> tuple[Questions, Read]:
        """Return the texts to read for questions about next words, and the function that reads them.

        This is called with gradients disabled. Raises ConfigError if the model doesn't support the scoring settings,
        and TextTooLong if a context is too long.
        """

    def next_words(
        self, contexts: Sequence[str], candidates: Sequence[Sequence[str]], k: int, policy: PolicyConfig = PLAIN
    ) -> list[NextWords]:
        """Predict the words that come after each context.

        Args:
            contexts: The texts to continue. Equal contexts are read once.
            candidates: For each context, the continuations to rank. Each has one or more words.
            k: The number of most probable words to return.
            policy: Scoring settings.

        Returns:
            Probabilities and ranks of the candidates, and the most probable words, in the order of `contexts`.

        Raises:
            ConfigError: If no token of the model is a word, or if the model doesn't support the scoring settings.
            TextTooLong: If a context has more tokens than the model can read.
        """
        stripped = [context.rstrip() for context in contexts]
        pairs = zip(stripped, candidates, strict=True)
        asked = list(dict.fromkeys((context, word) for context, words in pairs for word in words))
        with without_gradients(self.device, policy.precision == "bf16"):
            questions, read = self.readings(asked, policy)
            if not (words := self.tokens.words()):
                raise ConfigError(
                    f"{self.name}: no token of this model is a whole word, so it can't predict the next word. Use a "
                    "model with a word or subword tokenizer."
                )
            for stage in questions.stages:
                for batch, lines in self.read_places(stage, read, CHUNK_BYTES, "contexts"):
                    questions.add(batch, lines, words, k)
        number = {question: index for index, question in enumerate(asked)}
        return [
            questions.answer(context, [number[context, word] for word in words])
            for context, words in zip(stripped, candidates, strict=True)
        ]

    def continuations(
        self, prompts: Sequence[str], answers: Sequence[str], policy: PolicyConfig = PLAIN, chat: bool = False
    ) -> Continuations:
        """Return the log-probability (nats) of each answer after each prompt. Both are tokenized together.

        Args:
            prompts: The prompts.
            answers: The answers, with the space that separates them from a prompt.
            policy: Scoring settings.
            chat: Whether the prompts were made with `chat_template`. If so, no begin symbol is added before them.

        Raises:
            ConfigError: If the model can't answer prompts.
            RunError: If an answer contains unknown tokens, or if two answers have the same tokens.
        """
        raise ConfigError(f"{self.name}: this kind of model can't answer prompts. Use a causal neural model.")

    @abstractmethod
    def predictions(
        self, texts: Sequence[str], policy: PolicyConfig = PLAIN, window: int | None = None, step: int | None = None
    ) -> list[TokenPredictions]:
        """Predict each token of texts from the tokens before it.

        Args:
            texts: Texts of any length.
            policy: Scoring settings. If `pll` is set, masked models also read the tokens after it.
            window: The number of tokens to read at a time. The default is 1,024, or the model's limit if that is lower.
            step: The number of tokens that each further window adds. The default is half a window (predictions.py).

        Returns:
            The predictions for the tokens of each text, in the order of `texts`.

        Raises:
            ConfigError: If the model can't read windows of this size. TextTooLong: If it can't read a whole text.
        """

    def read_windows(self, texts: Sequence[Windows], read: Read, masks: Tensor | None) -> list[TokenPredictions]:
        """Read the windows of texts, and return the predictions for their tokens."""
        readings = [one for of_text, _, _ in texts for one in of_text]
        for batch, lines in self.read_places(readings, read, ROWS_BYTES, "windows", "reading"):
            for one, values in zip(batch, of_places(lines, [one.targets for one in batch], masks), strict=True):
                one.values = values
        return [joined(*of_text, self.tokens.unknown, masks) for of_text in texts]

    def scores_eos(self, policy: PolicyConfig) -> bool:
        """Return True if `<eos>` is scored. By default, only word-level models score it."""
        return self.word_level if policy.score_eos is None else policy.score_eos

    def pll_shift(self, policy: PolicyConfig) -> int | None:
        """Return how many positions before a masked token its prediction is read. Causal models ignore this setting."""
        return policy.pll_shift

    def check_length(self, text: str, tokens: int) -> None:
        """Raise TextTooLong if a text has more tokens than the model can read."""
        if self.positions is not None and tokens > self.positions:
            raise TextTooLong(self.name, self.positions, text, tokens)

    def read_places(
        self, readings: Sequence[Reads], read: Read, most_bytes: int, unit: str, title: str | None = None
    ) -> Iterator[tuple[list[Reads], Tensor]]:
        """Yield batches of readings with ln p (R, V) of all tokens at their positions. V is the vocabulary size.

        Each batch of log-probabilities has at most `most_bytes` bytes, unless a single reading needs more.
        """
        lengths, rows = [len(one.ids) for one in readings], [len(one.positions) for one in readings]
        batches = list(length_batches(lengths, self.batch_tokens, rows, max(1, most_bytes // (4 * self.vocabulary))))
        for batch in self.with_progress(batches, len(readings), unit, title):
            chosen = [readings[index] for index in batch]
            tokens = torch.tensor([one.ids for one in chosen], device=self.device)
            yield chosen, read(tokens, *places([one.positions for one in chosen]))

    def with_progress(
        self, batches: Iterable[Batch], total: int, unit: str = "sentences", title: str | None = None
    ) -> Iterable[Batch]:
        """Return the batches. If `progress` is set, show a progress bar over the `total` units in them."""
        if not self.progress:
            return batches
        counted = ((len(batch), batch) for batch in batches)
        return with_progress(counted, title or "scoring", total, unit)
