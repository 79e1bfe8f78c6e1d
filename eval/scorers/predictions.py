"""Predict each token of a text of any length with a causal model.

A text with more tokens than a window is read in several windows, each after a begin symbol. Each further window
predicts `step` new tokens. The tokens before them in the window are their context.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from eval.scorers.tokens import Spans, Tokens
from eval.scorers.trees import FloatArray
from pairscale.errors import check_between

USUAL = 1024  # default number of tokens in a window
CACHED = 1 << 18  # values to process at a time
LEAST = -1e30  # nats, instead of -inf, because -inf times a probability of 0 would be NaN


@dataclass(frozen=True, slots=True)
class TokenPredictions:
    """Predictions for the n tokens of one text. Logarithms are natural."""

    logprobs: FloatArray  # (n,) nats, for the actual tokens
    entropies: FloatArray  # (n,) nats, of the distribution over all tokens at each position
    ranks: npt.NDArray[np.int64]  # (n,) 1 + the number of more probable tokens
    spans: npt.NDArray[np.int32]  # (n, 2) character offsets into the text
    unk: npt.NDArray[np.bool_]  # (n,) whether the token is <unk>
    # (n + 1,) ln of the probability that a word ends before each token, and after the last one. A word ends if the next
    # token begins a new word or ends the text. The values are 0 if each token is a word.
    ends: FloatArray
    # ln of the probability that the first token begins a word (or doesn't, if the actual first token doesn't)
    begin: float


@dataclass(eq=False)
class Window:
    """Part of a text that is read at once."""

    ids: tuple[int, ...]  # the tokens to read, including those before the text
    start: int  # the position at which the first of `targets` is predicted
    targets: list[int]  # the tokens to predict, and an arbitrary token after the end of the text
    values: FloatArray = field(default_factory=lambda: np.empty((0, 0)))  # (3 or 5, targets), from `of_places`

    @property
    def positions(self) -> range:
        """The positions whose predictions are used."""
        return range(self.start, self.start + len(self.targets))


def window_size(size: int | None, step: int | None, most: int | None) -> tuple[int, int]:
    """Return the number of tokens in a window and in a step.

    `most` is the model's limit. By default, a window has USUAL tokens, or `most` if that is lower, and a step is half
    a window. Raises ConfigError if the window exceeds the model's limit, or if the step is longer than the window.
    """
    most = 10**6 if most is None else most
    size = size or min(USUAL, most)
    check_between("surprisal.window", size, 2, most)
    check_between("surprisal.step", step, 1, size)
    return size, step or max(1, size // 2)


def spans_of_windows(tokens: int, size: int, step: int) -> Iterator[tuple[int, int, int]]:
    """Yield the begin, the end and the first new token of each window, for a text of `tokens` tokens."""
    end = min(size, tokens)
    yield 0, end, 0
    while end < tokens:
        first, end = end, min(end + step, tokens)
        yield max(0, end - size), end, first


def windows(ids: Sequence[int], before: Sequence[int], size: int, step: int) -> Iterator[Window]:
    """Yield the windows of a text, each after the tokens `before`. The last one also predicts the end of the text."""
    for begin, end, first in spans_of_windows(len(ids), size, step):
        targets = [*ids[first:end], *([0] if end == len(ids) else [])]
        yield Window((*before, *ids[begin:end]), len(before) - 1 + first - begin, targets)


def of_places(lines: Tensor, targets: Sequence[Sequence[int]], boundaries: Tensor | None) -> list[FloatArray]:
    """Return, for each window, an array (3 or 5, targets) of values at its targets.

    The values are ln p of the target, its rank, and the entropy. With `boundaries`, they also include the ln of the
    probabilities that the token doesn't begin a word, and that it does. `lines` (R, V) is ln p of all tokens at the
    positions of all R targets, one window after the other.
    """
    step = max(1, CACHED // lines.shape[1])
    all_targets = torch.tensor([target for of_window in targets for target in of_window], device=lines.device)
    found = []
    for part, tokens in zip(torch.split(lines, step), torch.split(all_targets, step), strict=True):
        of_tokens = part.gather(1, tokens[:, None])
        probabilities = part.exp()
        entropies = -torch.linalg.vecdot(probabilities, part.clamp_min(LEAST))
        values = [of_tokens[:, 0], 1 + (part > of_tokens).sum(1), entropies]
        if boundaries is not None:
            with torch.autocast(part.device.type, enabled=False):
                mass = probabilities @ boundaries.to(part.dtype)
            values += mass.double().clamp(torch.finfo(torch.float64).tiny, 1).log().unbind(1)
        found.append(np.stack([one.double().cpu().numpy() for one in values]))
    return np.split(np.concatenate(found, axis=1), np.cumsum([len(of_window) for of_window in targets])[:-1], axis=1)


def joined(
    of_text: Sequence[Window], ids: Sequence[int], spans: Spans, unknown: int | None, boundaries: Tensor | None
) -> TokenPredictions:
    """Join the predictions of a text's windows. `unknown` is the id of `<unk>`."""
    logprobs, ranks, entropies, *marks = np.concatenate([window.values for window in of_text], axis=1)
    ends, begin = np.zeros(len(ids) + 1), 0.0
    if boundaries is not None:
        ends = marks[1]
        begin = float(marks[int(not ids or bool(boundaries[ids[0], 1]))][0])
    unk = np.asarray(ids, dtype=np.int64) == (-1 if unknown is None else unknown)
    offsets = np.asarray(spans, dtype=np.int32).reshape(-1, 2)
    return TokenPredictions(logprobs[:-1], entropies[:-1], ranks[:-1].astype(np.int64), offsets, unk, ends, begin)


def boundaries(tokens: Tokens, vocabulary: int) -> Tensor:
    """Return an array (V, 2). Column 0 is 1 for tokens that don't begin a word, and column 1 for tokens that do.

    Special tokens have 1 in both columns, because the end of a text also ends a word (Pimentel and Meister 2024,
    section 4.2). Tokens that are missing from the tokenizer have 0 in both.
    """
    masks = torch.zeros(vocabulary, 2)
    masks[: len(tokens), 0] = 1
    masks[list(tokens.beginnings())] = torch.tensor([0.0, 1.0])
    masks[list(tokens.special)] = 1
    return masks
