"""The interface of every model: `Scorer`, and the answers to its four questions.

    score           a log-probability (nats) and a character span for each token of a sentence
    continuations   the log-probability of each answer as a continuation of a prompt
    next_words      the probability and rank of candidate words after a context, and the most probable words
    predictions     at each token of a text of any length: log-probability, entropy, rank, and the end of a word

The policy (eval.config.PolicyConfig) says what stands before a sentence, whether its end is scored, and how precisely:
a scorer applies `context`, `score_eos` and `precision`, and flags `<unk>`. Whether those tokens count (`unk`) is
decided where scores become judgements (eval/methods).
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
from eval.scorers.predictions import TokenPredictions, Window
from eval.scorers.tokens import Tokens
from eval.scorers.trees import Ids, length_batches, places
from pairscale.errors import ConfigError, InputError
from pairscale.progress import with_progress
from train.loop.device import device_of, without_gradients
from train.models.loss import CHUNK_BYTES

FloatArray = npt.NDArray[np.float64]
Batch = TypeVar("Batch", bound=Sized)  # of as many units as its length
Reads = TypeVar("Reads", Reading, Window)


@dataclass(frozen=True)
class Execution:
    """How a model is run. None of it changes a score."""

    batch_tokens: int = 8192  # most tokens, padding included, that are read at a time
    device: str = "cpu"
    progress: bool = False  # show a progress bar

    @classmethod
    def of(cls, config: EvalConfig | SurprisalCommand) -> Execution:
        """Return the execution that a configuration asks for. Raises ConfigError for a GPU that is not there."""
        return cls(config.scoring.batch_tokens, device_of(config.trainer), config.trainer.progress)


@dataclass(frozen=True, slots=True)
class TokenScores:
    """Scores of one sentence, token by token."""

    logprobs: FloatArray  # (n,) nats
    spans: npt.NDArray[np.int32]  # (n, 2) character offsets into the sentence; both its length for a scored <eos>
    unk: npt.NDArray[np.bool_]  # (n,)
    ids: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))  # (n,) in the model's vocabulary


@dataclass(frozen=True)
class Continuations:
    """Log-probabilities of A answers to N prompts."""

    logprobs: FloatArray  # (N, A) nats: of the answer's tokens after those of the prompt, summed
    counts: npt.NDArray[np.int64]  # (N, A) number of the answer's tokens
    tokens: list[list[list[str]]]  # of each answer: its tokens, several lists of them where prompts end differently


class TextTooLong(InputError):
    """A text has more tokens than a model reads."""

    def __init__(self, name: str, positions: int, text: str, tokens: int):
        super().__init__(f"{name} reads {positions:,} tokens at most; {shown(text)} has {tokens:,}")
        self.text = text


class Scorer(ABC):
    """A model that scores sentences, each alone, and predicts next words; some also answer prompts."""

    masked: bool  # scores are of hidden tokens, given both sides, rather than of tokens given those before them
    answers_prompts: bool = False  # `continuations` can be called
    tokenizer_path: str | None = None  # the tokenizer's folder, if that is not the model's
    sample_words: int | None = None  # words of the text that the model was trained on, if known
    positions: int | None  # most tokens that it reads; None: no limit
    device: torch.device
    batch_tokens: int
    vocabulary: int

    def __init__(self, name: str, digest: str, tokens: Tokens, progress: bool):
        """`digest`: of the weights."""
        self.name, self.digest, self.tokens, self.progress = name, digest, tokens, progress
        self.tokenizer_digest = tokens.digest
        self.word_level = tokens.word_level  # the default of policy.score_eos
        # Further parts of a model that scores depend on (eval.scorers.tokens.score_settings); {} for our own models.
        self.settings: dict[str, Any] = {}

    @property
    def chat_template(self) -> ChatTemplate | None:
        """The template of prompts; None: they are plain text."""
        return self.tokens.chat_template if self.answers_prompts else None

    @abstractmethod
    def score(self, sentences: Sequence[str], policy: PolicyConfig = PLAIN) -> list[TokenScores]:
        """Return scores in the order of `sentences`, with empty arrays for a sentence that has no scored token."""

    @abstractmethod
    def encode(self, texts: Sequence[str], policy: PolicyConfig = PLAIN) -> Iterator[Ids]:
        """Yield the ids of the tokens that `score` scores of each text; `<eos>` is one where it is scored."""

    @abstractmethod
    def readings(self, questions: Sequence[Question], policy: PolicyConfig) -> tuple[Questions, Read]:
        """Return what the model has to read for questions about next words, and the function that reads it.

        Called without gradients. Raises ConfigError for a policy that it cannot follow, InputError for long contexts.
        """

    def next_words(
        self, contexts: Sequence[str], candidates: Sequence[Sequence[str]], k: int, policy: PolicyConfig = PLAIN
    ) -> list[NextWords]:
        """Return what the model expects after each context: `candidates` of one or more words, and `k` top words.

        Answers are in the order of `contexts`; equal contexts are read once. Raises ConfigError for a model without
        tokens that are words and for a policy that it cannot follow, InputError for a context that is too long.
        """
        stripped = [context.rstrip() for context in contexts]
        pairs = zip(stripped, candidates, strict=True)
        asked = list(dict.fromkeys((context, word) for context, words in pairs for word in words))
        with without_gradients(self.device, policy.precision == "bf16"):
            questions, read = self.readings(asked, policy)
            if not (words := self.tokens.words()):
                raise ConfigError(f"{self.name}: none of its tokens is a whole word, so it predicts no next word")
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
        """Return ln p (nats) of each answer as the tokenizer's own continuation of each prompt.

        With `chat` the prompts come from `chat_template`, and nothing is put before them. Raises ConfigError if the
        model answers no prompts, RunError if two answers are the same tokens to it or one is unknown.
        """
        raise ConfigError(f"{self.name}: a model of this kind cannot answer prompts")

    def predictions(
        self, texts: Sequence[str], policy: PolicyConfig = PLAIN, window: int | None = None, step: int | None = None
    ) -> list[TokenPredictions]:
        """Return what the model expects at each token of texts, in order, each after those before it in its text.

        window: tokens that are read at a time, by default 1,024 or as many as the model reads; step: those that a
        further window adds, by default half of one (predictions.py). Raises ConfigError for a masked
        model and for a window that the model does not read.
        """
        raise ConfigError(f"{self.name}: a masked model sees both sides of a word, so words have no surprisal for it")

    def scores_eos(self, policy: PolicyConfig) -> bool:
        """Return whether `<eos>` is scored: as the policy says, or else for word-level models only, as published."""
        return self.word_level if policy.score_eos is None else policy.score_eos

    def pll_shift(self, policy: PolicyConfig) -> int | None:
        """Return how many positions before a hidden token it is predicted; None for a model that hides no tokens."""
        return policy.pll_shift

    def check_length(self, text: str, tokens: int) -> None:
        """Raise TextTooLong for a text that the model cannot read as it reads so many tokens."""
        if self.positions is not None and tokens > self.positions:
            raise TextTooLong(self.name, self.positions, text, tokens)

    def read_places(
        self, readings: Sequence[Reads], read: Read, most_bytes: int, unit: str, title: str | None = None
    ) -> Iterator[tuple[list[Reads], Tensor]]:
        """Yield batches of readings, and ln p (R, V) of all tokens at their positions, of up to `most_bytes`."""
        lengths, rows = [len(one.ids) for one in readings], [len(one.positions) for one in readings]
        batches = list(length_batches(lengths, self.batch_tokens, rows, max(1, most_bytes // (4 * self.vocabulary))))
        for batch in self.with_progress(batches, len(readings), unit, title):
            chosen = [readings[index] for index in batch]
            tokens = torch.tensor([one.ids for one in chosen], device=self.device)
            yield chosen, read(tokens, *places([one.positions for one in chosen]))

    def with_progress(
        self, batches: Iterable[Batch], total: int, unit: str = "sentences", title: str | None = None
    ) -> Iterable[Batch]:
        """Return the batches, with a progress bar over the `total` units that they hold if `progress` is set."""
        if not self.progress:
            return batches
        counted = ((len(batch), batch) for batch in batches)
        return with_progress(counted, title or "scoring", total, unit)
