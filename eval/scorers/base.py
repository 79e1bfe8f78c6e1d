"""The interface of every model: `Scorer`, and what its three questions answer.

    score           a log-probability (nats) and a character span for each token of a sentence
    continuations   the log-probability of each answer as a continuation of a prompt
    next_words      the probability and rank of candidate words after a context, and the most probable words

What stands before a sentence, whether its end is scored, and how precisely, is the policy's to say
(eval.config.PolicyConfig): a scorer applies `context`, `score_eos` and `precision`, and flags `<unk>`. Whether those
tokens count (`unk`) is decided where scores become judgements (eval/methods).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from eval.config import PLAIN, PolicyConfig
from eval.scorers.chat import ChatTemplate
from eval.scorers.trees import Ids
from pairscale.errors import ConfigError
from pairscale.progress import with_progress

FloatArray = npt.NDArray[np.float64]
Batch = TypeVar("Batch", bound=Sized)  # of as many units as it holds
CPU_TOKENS = 2048  # more leave a CPU's cache between one layer's passes and the next


@dataclass(frozen=True, slots=True)
class TokenScores:
    """Scores of one sentence, token by token."""

    logprobs: FloatArray  # (n,) nats
    spans: npt.NDArray[np.int32]  # (n, 2) character offsets into the sentence; both its length for a scored <eos>
    unk: npt.NDArray[np.bool_]  # (n,)


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


class Scorer(ABC):
    """A model that scores sentences, each alone; some also answer prompts and predict next words."""

    name: str
    digest: str  # of the weights
    tokenizer_digest: str
    # Further parts of a model that scores depend on (eval.scorers.hf_tokenizers.score_settings); {} for our own models.
    settings: dict[str, Any]
    sample_words: int | None  # words of the text that the model was trained on, if known
    word_level: bool  # the default of policy.score_eos
    masked: bool  # scores are of hidden tokens, given both sides, rather than of tokens given those before them
    answers_prompts: bool = False  # `continuations` can be called
    chat_template: ChatTemplate | None = None  # None: prompts are plain text

    @abstractmethod
    def score(self, sentences: Sequence[str], policy: PolicyConfig = PLAIN) -> list[TokenScores]:
        """Return scores in the order of `sentences`, with empty arrays for a sentence that has no scored token."""

    def continuations(
        self, prompts: Sequence[str], answers: Sequence[str], policy: PolicyConfig = PLAIN, chat: bool = False
    ) -> Continuations:
        """Return ln p (nats) of each answer as the tokenizer's own continuation of each prompt.

        With `chat` the prompts come from `chat_template`, and nothing is put before them. Raises ConfigError if the
        model answers no prompts, RunError if two answers are the same tokens to it or one is unknown.
        """
        raise ConfigError(f"{self.name}: a model of this kind cannot be asked anything")

    def next_words(
        self, contexts: Sequence[str], candidates: Sequence[Sequence[str]], k: int, policy: PolicyConfig = PLAIN
    ) -> list[NextWords]:
        """Return what the model expects after each context: `candidates` of one or more words, and `k` top words.

        Answers are in the order of `contexts`; equal contexts are read once. Raises ConfigError for a model that
        predicts no words and for a policy that it cannot follow, InputError for a context that is too long.
        """
        raise ConfigError(f"{self.name}: a model of this kind predicts no next words, which diagnostics need")


def resolved_score_eos(policy: PolicyConfig, word_level: bool) -> bool:
    """Return whether `<eos>` is scored: as the policy says, or else for word-level models only, as published."""
    return word_level if policy.score_eos is None else policy.score_eos


def resolved_pll_shift(policy: PolicyConfig, scorer: Scorer) -> int | None:
    """Return how many positions before a hidden token it is predicted, by the policy or else the model's own probe."""
    return policy.pll_shift if policy.pll_shift is not None else getattr(scorer, "shift", None)


def length_batches(lengths: Ids, batch_tokens: int, before: int = 0) -> Iterator[list[int]]:
    """Yield indices of sentences that have a token, by falling length: little padding, the largest batch first.

    `before` is the number of tokens that are read before each sentence.
    """
    order = np.argsort(-lengths, kind="stable")
    order = order[: np.count_nonzero(lengths)]
    start = 0
    while start < len(order):
        count = max(1, batch_tokens // (before + int(lengths[order[start]])))
        yield order[start : start + count].tolist()
        start += count


def tokens_at_once(batch_tokens: int, device: torch.device) -> int:
    """Return `batch_tokens`, on a CPU at most what its cache holds for a model as large as GPT-2."""
    return min(batch_tokens, CPU_TOKENS) if device.type == "cpu" else batch_tokens


def begun(first: Sequence[int] | None, texts: int, before: int) -> Ids:
    """Return the place (N,) of each text's first scored token, with `before` tokens put in front of it."""
    return np.full(texts, before) if first is None else np.asarray(first, dtype=np.int64) + before


def batch_progress(
    batches: Iterable[Batch], total: int, name: str, progress: bool, unit: str = "sentences"
) -> Iterable[Batch]:
    """Return the batches, with a progress bar over the `total` units that they hold if `progress` is set."""
    if not progress:
        return batches
    counted = ((len(batch), batch) for batch in batches)
    return with_progress(counted, f"scoring {name}", total, unit)
