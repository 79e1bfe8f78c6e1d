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

from eval.benchmarks.cells import shown
from eval.config import PLAIN, EvalConfig, PolicyConfig, SurprisalCommand
from eval.scorers.chat import ChatTemplate
from eval.scorers.trees import Ids
from pairscale.errors import ConfigError, InputError
from pairscale.progress import with_progress
from train.loop.device import device_of

FloatArray = npt.NDArray[np.float64]
Batch = TypeVar("Batch", bound=Sized)  # of as many units as its length


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


@dataclass(frozen=True, slots=True)
class TokenPredictions:
    """Predictions at the n tokens of one text; logarithms are natural."""

    logprobs: FloatArray  # (n,) nats, of the tokens that are there
    entropies: FloatArray  # (n,) nats, of the distribution over tokens in each one's place
    ranks: npt.NDArray[np.int64]  # (n,) 1 + number of more probable tokens
    spans: npt.NDArray[np.int32]  # (n, 2) character offsets into the text
    unk: npt.NDArray[np.bool_]  # (n,)
    # (n + 1,) ln of the probability that a word ends before each token, and after the last: that the next token has the
    # mark of a new word or ends the text. 0 where each token is a word.
    ends: FloatArray
    begin: float  # ln of the probability that a text begins with a token marked like its first one


@dataclass(frozen=True)
class Continuations:
    """Log-probabilities of A answers to N prompts."""

    logprobs: FloatArray  # (N, A) nats: of the answer's tokens after those of the prompt, summed
    counts: npt.NDArray[np.int64]  # (N, A) number of the answer's tokens
    tokens: list[list[list[str]]]  # of each answer: its tokens, several lists of them where prompts end differently


@dataclass(frozen=True, slots=True)
class NextWords:
    """The words that a model expects after one context, and how it ranks C candidates."""

    logprobs: FloatArray  # (C,) nats; NaN where the model cannot express the candidate
    ranks: npt.NDArray[np.int64]  # (C,) 1 + number of whole words that are more probable; 0 where not expressible
    tokens: npt.NDArray[np.int64]  # (C,)
    words: list[str]  # the most probable whole words, the first one first
    word_logprobs: FloatArray  # (k,) nats


class TextTooLong(InputError):
    """A text has more tokens than a model reads; `index`: its place among the texts to score."""

    def __init__(self, name: str, positions: int, text: str, tokens: int, index: int):
        super().__init__(f"{name} reads {positions:,} tokens at most; {shown(text)} has {tokens:,}")
        self.index = index

    def at(self, index: int) -> TextTooLong:
        """Return the same error about another list of texts."""
        self.index = index
        return self


class Scorer(ABC):
    """A model that scores sentences, each alone, and predicts next words; some also answer prompts."""

    name: str
    digest: str  # of the weights
    tokenizer_digest: str
    # Further parts of a model that scores depend on (eval.scorers.tokens.score_settings); {} for our own models.
    settings: dict[str, Any]
    sample_words: int | None  # words of the text that the model was trained on, if known
    word_level: bool  # the default of policy.score_eos
    masked: bool  # scores are of hidden tokens, given both sides, rather than of tokens given those before them
    answers_prompts: bool = False  # `continuations` can be called
    chat_template: ChatTemplate | None = None  # None: prompts are plain text
    tokenizer_path: str | None = None  # the tokenizer's folder, if that is not the model's
    progress: bool

    @abstractmethod
    def score(self, sentences: Sequence[str], policy: PolicyConfig = PLAIN) -> list[TokenScores]:
        """Return scores in the order of `sentences`, with empty arrays for a sentence that has no scored token."""

    @abstractmethod
    def encode(self, texts: Sequence[str], policy: PolicyConfig = PLAIN) -> Iterator[Ids]:
        """Yield the ids of the tokens that `score` scores of each text; `<eos>` is one where it is scored."""

    @abstractmethod
    def next_words(
        self, contexts: Sequence[str], candidates: Sequence[Sequence[str]], k: int, policy: PolicyConfig = PLAIN
    ) -> list[NextWords]:
        """Return what the model expects after each context: `candidates` of one or more words, and `k` top words.

        Answers are in the order of `contexts`; equal contexts are read once. Raises ConfigError for a model without
        tokens that are words and for a policy that it cannot follow, InputError for a context that is too long.
        """

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

    def with_progress(
        self, batches: Iterable[Batch], total: int, unit: str = "sentences", title: str | None = None
    ) -> Iterable[Batch]:
        """Return the batches, with a progress bar over the `total` units that they hold if `progress` is set."""
        if not self.progress:
            return batches
        counted = ((len(batch), batch) for batch in batches)
        return with_progress(counted, title or "scoring", total, unit)


def length_batches(
    lengths: Sequence[int] | Ids, batch_tokens: int, rows: Sequence[int] | None = None, most_rows: int = 0
) -> Iterator[list[int]]:
    """Yield indices of texts that have a token, those of one length together, by falling length.

    So no text is padded, which some models let into its scores, and the largest batch comes first. A batch has at most
    `batch_tokens`, and `most_rows` of the `rows` that texts have, or one text that has more.
    """
    batch: list[int] = []
    length = held = 0
    for index in np.argsort(-np.asarray(lengths), kind="stable").tolist():
        if not lengths[index]:
            break
        more = 0 if rows is None else rows[index]
        full = (len(batch) + 1) * length > batch_tokens or (rows is not None and held + more > most_rows)
        if batch and (full or lengths[index] < length):
            yield batch
            batch, held = [], 0
        length = int(lengths[index])
        batch.append(index)
        held += more
    if batch:
        yield batch
