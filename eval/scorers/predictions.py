"""What a model that reads from left to right expects at each token of a text, however long the text is.

A text with more tokens than the window is read in steps: each window begins after the begin symbol, and the last of its
tokens, a step of them, are those that count; the tokens before them are their context.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from eval.scorers.base import FloatArray, TokenPredictions
from eval.scorers.tokens import Tokens
from eval.scorers.trees import Ids
from pairscale.errors import check_between

CACHED = 1 << 18  # values that are worked on at a time
LEAST = -1e30  # nats, in place of -inf, which times a probability of 0 is no number


@dataclass(frozen=True)
class Windows:
    """How a long text is read: `size` tokens at a time, the begin symbol not among them, in steps of `step`."""

    size: int
    step: int

    @classmethod
    def of(cls, size: int | None, step: int | None, most: int | None, usual: int = 1024) -> Windows:
        """Return windows of `size`, by default `usual`, or the `most` that a model reads; steps are half of it.

        Raises ConfigError for a size that the model does not read and for a step that is longer than the window.
        """
        least_of = min(size or usual, most) if most is not None and size is None else size or usual
        check_between("surprisal.window", least_of, 2, most or 10**6)
        check_between("surprisal.step", step, 1, least_of)
        return cls(least_of, step or max(1, least_of // 2))

    def over(self, tokens: int) -> Iterator[tuple[int, int, int]]:
        """Yield the begin and end of each window, and the first of its tokens that counts, of a text of `tokens`."""
        end = min(self.size, tokens)
        yield 0, end, 0
        while end < tokens:
            first, end = end, min(end + self.step, tokens)
            yield max(0, end - self.size), end, first


@dataclass(frozen=True)
class Window:
    """One reading of tokens of a text: `ids` with what stands before them, and `positions` that predict `tokens`."""

    text: int
    ids: tuple[int, ...]
    positions: list[int]
    tokens: slice  # of the text, one more than it has where the window is its last

    @classmethod
    def all_of(cls, texts: Sequence[Ids], before: Sequence[int], windows: Windows) -> list[Window]:
        """Return the windows of all texts."""
        found = []
        for number, ids in enumerate(texts):
            for begin, end, first in windows.over(len(ids)):
                last = end + (end == len(ids))
                shift = len(before) - 1 - begin
                found.append(
                    cls(
                        number, (*before, *ids[begin:end].tolist()), list(range(first + shift, last + shift)),
                        slice(first, last),
                    )
                )  # fmt: skip
        return found


class Collected:
    """Predictions of texts, filled in window by window; boundaries: as of `boundaries`, None: each token is a word."""

    def __init__(self, texts: Sequence[Ids], boundaries: Tensor | None):
        self.texts, self.boundaries = texts, boundaries
        self.logprobs = [np.empty(len(ids)) for ids in texts]
        self.entropies = [np.empty(len(ids)) for ids in texts]
        self.ranks = [np.empty(len(ids), np.int64) for ids in texts]
        self.marks = [np.zeros((len(ids) + 1, 2)) for ids in texts]  # ln of the mass of both kinds of tokens

    def add(self, batch: Sequence[Window], lines: Tensor) -> None:
        """Add the windows of a batch; lines (R, V): ln p of all tokens at their positions, one window after another."""
        # The place after a text has no token: any stands there, whose values are not taken.
        read = [self.texts[window.text][window.tokens] for window in batch]
        there = [np.resize(np.append(ids, 0), len(window.positions)) for ids, window in zip(read, batch, strict=True)]
        targets = torch.from_numpy(np.concatenate(there)).to(lines.device)
        step = max(1, CACHED // lines.shape[1])
        parts = zip(torch.split(lines, step), torch.split(targets, step), strict=True)
        logprobs, ranks, entropies, *marks = np.concatenate([self._of_rows(*part) for part in parts], axis=1)
        row = 0
        for window, tokens in zip(batch, there, strict=True):
            if marks:
                self.marks[window.text][window.tokens] = np.transpose(marks)[row : row + len(tokens)]
            to = slice(window.tokens.start, min(window.tokens.stop, len(self.texts[window.text])))
            rows = slice(row, row + to.stop - to.start)
            self.logprobs[window.text][to] = logprobs[rows]
            self.ranks[window.text][to] = ranks[rows]
            self.entropies[window.text][to] = entropies[rows]
            row += len(tokens)

    def _of_rows(self, lines: Tensor, targets: Tensor) -> FloatArray:
        """Return ln p of targets (R,), their ranks, entropies and, with boundaries, ln of both masses: (3 or 5, R)."""
        of_targets = lines.gather(1, targets[:, None])
        probabilities = lines.exp()
        ranks = 1 + (lines > of_targets).sum(1)
        found = [of_targets[:, 0], ranks, -torch.linalg.vecdot(probabilities, lines.clamp_min(LEAST))]
        if self.boundaries is not None:
            with torch.autocast(lines.device.type, enabled=False):
                mass = probabilities @ self.boundaries.to(lines.dtype)
            found += mass.double().clamp(torch.finfo(torch.float64).tiny, 1).log().unbind(1)
        return np.stack([one.double().cpu().numpy() for one in found])

    def results(self, spans: Sequence[npt.NDArray[np.int32]], unknown: int | None) -> list[TokenPredictions]:
        """Return the predictions of each text; `unknown`: id of `<unk>`."""
        found = []
        for number, ids in enumerate(self.texts):
            marks = self.marks[number]
            marked = self.boundaries is None or not len(ids) or bool(self.boundaries[int(ids[0]), 1])
            found.append(
                TokenPredictions(
                    self.logprobs[number], self.entropies[number], self.ranks[number], spans[number],
                    ids == (-1 if unknown is None else unknown), marks[:, 1], float(marks[0, int(marked)]),
                )
            )  # fmt: skip
        return found


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
