"""What a model that reads from left to right expects at each token of a text, however long the text is.

A text with more tokens than the window is read in steps: each window begins after the begin symbol, and the last of its
tokens, a step of them, are those that count; the tokens before them are their context.
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

USUAL = 1024  # tokens of a window
CACHED = 1 << 18  # values that are worked on at a time
LEAST = -1e30  # nats, in place of -inf, which times a probability of 0 is no number


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


@dataclass(eq=False)
class Window:
    """One reading of a text: `ids` with what stands before them; from the place `start` on they predict `targets`."""

    ids: tuple[int, ...]
    start: int
    targets: list[int]  # the tokens that count; any token in the place after the text's last one
    values: FloatArray = field(default_factory=lambda: np.empty((0, 0)))  # (3 or 5, targets), of `of_places`

    @property
    def positions(self) -> range:
        """The places whose predictions count."""
        return range(self.start, self.start + len(self.targets))


def window_size(size: int | None, step: int | None, most: int | None) -> tuple[int, int]:
    """Return the tokens of a window, by default USUAL or the `most` that a model reads, and those of a step.

    A step is half of a window if None. Raises ConfigError for a size that the model does not read and for a step that
    is longer than the window.
    """
    most = 10**6 if most is None else most
    size = size or min(USUAL, most)
    check_between("surprisal.window", size, 2, most)
    check_between("surprisal.step", step, 1, size)
    return size, step or max(1, size // 2)


def spans_of_windows(tokens: int, size: int, step: int) -> Iterator[tuple[int, int, int]]:
    """Yield the begin and end of each window, and the first of its tokens that counts, of a text of `tokens`."""
    end = min(size, tokens)
    yield 0, end, 0
    while end < tokens:
        first, end = end, min(end + step, tokens)
        yield max(0, end - size), end, first


def windows(ids: Sequence[int], before: Sequence[int], size: int, step: int) -> Iterator[Window]:
    """Yield the windows of a text, after `before`. The last one also predicts what follows the text."""
    for begin, end, first in spans_of_windows(len(ids), size, step):
        targets = [*ids[first:end], *([0] if end == len(ids) else [])]
        yield Window((*before, *ids[begin:end]), len(before) - 1 + first - begin, targets)


def of_places(lines: Tensor, targets: Sequence[Sequence[int]], boundaries: Tensor | None) -> list[FloatArray]:
    """Return for each window the numbers (3 or 5, R) at the places of its targets.

    They are ln p of the target, its rank, the entropy, and with `boundaries` ln of both masses. lines (R, V): ln p of
    all tokens at the places of all windows, one after another.
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
    """Return the predictions of a text from those of its windows; `unknown`: id of `<unk>`."""
    logprobs, ranks, entropies, *marks = np.concatenate([window.values for window in of_text], axis=1)
    ends, begin = np.zeros(len(ids) + 1), 0.0
    if boundaries is not None:
        ends = marks[1]
        begin = float(marks[int(not ids or bool(boundaries[ids[0], 1]))][0])
    unk = np.asarray(ids, dtype=np.int64) == (-1 if unknown is None else unknown)
    offsets = np.asarray(spans, dtype=np.int32).reshape(-1, 2)
    return TokenPredictions(logprobs[:-1], entropies[:-1], ranks[:-1].astype(np.int64), offsets, unk, ends, begin)


def boundaries(tokens: Tokens, vocabulary: int) -> Tensor:
    """Return (V, 2): 1 for the tokens that do not begin a word, and for those that do; special ones are both.

    Those of the model that its tokenizer does not have are neither. An end of a text ends a word, too (Pimentel and
    Meister 2024, section 4.2).
    """
    masks = torch.zeros(vocabulary, 2)
    masks[: len(tokens), 0] = 1
    masks[list(tokens.beginnings())] = torch.tensor([0.0, 1.0])
    masks[list(tokens.special)] = 1
    return masks
