"""One interface over every kind of model: sentences in, a log-probability and a character span for each token out.

What stands before a sentence, whether its end is scored, and how precisely, is the policy's to say
(eval.config.PolicyConfig): a scorer applies `context`, `score_eos` and `precision`, and flags `<unk>`. Whether those
tokens count (`unk`) is decided where scores become judgements (eval/methods/scoring.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from eval.config import PLAIN, PolicyConfig
from eval.scorers.trees import Ids
from pairscale.errors import RunError
from pairscale.progress import with_progress

Batch = TypeVar("Batch", bound=Sized)  # of as many units as it holds
CPU_TOKENS = 2048  # more leave a CPU's cache between one layer's passes and the next


@dataclass(frozen=True, slots=True)
class TokenScores:
    """What a model says of one sentence, token by token."""

    logprobs: npt.NDArray[np.float64]  # (n,) nats
    spans: npt.NDArray[np.int32]  # (n, 2) character offsets into the sentence; both its length for a scored <eos>
    unk: npt.NDArray[np.bool_]  # (n,)


class Scorer(Protocol):
    """A model that scores sentences, each alone."""

    name: str
    digest: str  # of the weights
    tokenizer_digest: str
    settings: dict[
        str, Any
    ]  # what else scores depend on (eval.scorers.hf_tokenizers.score_settings); {} for our own models
    sample_words: int | None  # of the text that it was trained on, where known
    word_level: bool  # the default of policy.score_eos
    masked: bool  # scores are of tokens that are hidden, not of tokens after those before them

    def score(self, sentences: Sequence[str], policy: PolicyConfig = PLAIN) -> list[TokenScores]:
        """Scores in the order of `sentences`; one without a token that is scored gets empty arrays."""


def resolved_score_eos(policy: PolicyConfig, word_level: bool) -> bool:
    """Whether `<eos>` is scored: as the policy says, else for word-level models only, as published."""
    return word_level if policy.score_eos is None else policy.score_eos


def resolved_pll_shift(policy: PolicyConfig, scorer: Scorer) -> int | None:
    """How many positions before a hidden token it is read: as the policy says, else by the masked model's own probe."""
    return policy.pll_shift if policy.pll_shift is not None else getattr(scorer, "shift", None)


def length_batches(lengths: Ids, batch_tokens: int, before: int = 0) -> Iterator[list[int]]:
    """Indices of sentences that have a token, by falling length: padding is small, the largest batch comes first.

    `before`: tokens that are read before each sentence.
    """
    order = np.argsort(-lengths, kind="stable")
    order = order[: np.count_nonzero(lengths)]
    start = 0
    while start < len(order):
        count = max(1, batch_tokens // (before + int(lengths[order[start]])))
        yield order[start : start + count].tolist()
        start += count


def tokens_at_once(batch_tokens: int, device: torch.device) -> int:
    """`batch_tokens`, or on a CPU what one batch of a model as large as GPT-2 may have so that its cache holds it."""
    return min(batch_tokens, CPU_TOKENS) if device.type == "cpu" else batch_tokens


def begun(first: Sequence[int] | None, texts: int, before: int) -> Ids:
    """(N,) place of the first token that is asked for, where `before` tokens stand before each text."""
    return np.full(texts, before) if first is None else np.asarray(first, dtype=np.int64) + before


def tracked(
    batches: Iterable[Batch], total: int, name: str, progress: bool, unit: str = "sentences"
) -> Iterable[Batch]:
    """The batches, with progress in what they hold of the `total` where it is asked for."""
    if not progress:
        return batches
    counted = ((len(batch), batch) for batch in batches)
    return with_progress(counted, f"scoring {name}", total, unit)


def weights_digest(model: nn.Module) -> str:
    """SHA-256 over names, types and values of all weights, whatever files they came from."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def check_finite(model: nn.Module, name: str) -> None:
    """Raise RunError for weights that are infinite or no numbers: no score of theirs means anything."""
    for parameter, weight in model.named_parameters():
        if weight.is_floating_point() and not bool(weight.isfinite().all()):
            raise RunError(f"{name}: its weights hold infinity or NaN (in {parameter}); they are damaged")
