"""Batches of texts: those of one length, or trees in which a common beginning is read once, each token after its own.

The two sentences of a minimal pair begin alike, so do the sentences of a paradigm, and prompts are nearly all alike. A
model that carries a state reads a tree level by level, one that attends reads it in a row under a mask of ancestors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Ids = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BLOCK = 1 << 12  # texts that are compared with the one before at a time


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


def places(positions: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Return the R rows and R columns of `positions` in a tensor (B, T, ...)."""
    rows = [row for row, columns in enumerate(positions) for _ in columns]
    return torch.tensor(rows), torch.tensor([at for columns in positions for at in columns])


@dataclass(frozen=True)
class Forest:
    """B trees of up to T tokens, side by side. A text's last token is scored, not read.

    Parents come before their children; padding has the token 0 and no parent, and nothing is scored after it.
    """

    tokens: Ids  # (B, T)
    parents: Ids  # (B, T) place in its row of the token before, -1 at the beginning of a text
    depths: Ids  # (B, T) tokens before it in its text
    rows: Ids  # (C,) increasing: the flat place (of B * T) after which a token is scored
    targets: Ids  # (C,) that token
    texts: Ids  # (n,) which texts these are
    by_text: Ids  # (C,) places in rows and targets of the scored tokens of the first text, of the second, ...
    counts: Ids  # (n,) how many of each
    alone: bool  # each row is one text, of the same length

    def __len__(self) -> int:
        return len(self.texts)

    def tensors(self, device: torch.device) -> tuple[Tensor, ...]:
        """Return tokens, parents, depths, rows and targets on a device."""
        arrays = (self.tokens, self.parents, self.depths, self.rows, self.targets)
        return tuple(torch.from_numpy(array).to(device) for array in arrays)

    def results(self, logprobs: npt.NDArray[np.float64]) -> Iterator[tuple[int, npt.NDArray[np.float64]]]:
        """Return each text and the values of its scored tokens, from one value for each target (C,)."""
        parts = np.split(logprobs[self.by_text], np.cumsum(self.counts)[:-1])
        return zip(self.texts.tolist(), parts, strict=True)


def forests(texts: Sequence[Ids], first: Ids, capacity: int, batch_tokens: int) -> Iterator[Forest]:
    """Yield all texts, each once, as batches of trees.

    texts: of at least one token each, whose first is not scored; first (N,), at least 1: the tokens of text i from
    first[i] on are scored. A tree has up to `capacity` tokens, or one text that has more; with 0 each
    text is a tree of its own, in a batch with those of its length, so that no model reads padding. A batch has up to
    `batch_tokens`, padding included, or one tree that has more.
    """
    if not capacity:
        yield from _alone(texts, first, batch_tokens)
        return
    batch: list[Tree] = []
    for tree in _trees(texts, first, capacity):
        if batch and (len(batch) + 1) * max(len(tokens) for tokens, *_ in [tree, *batch]) > batch_tokens:
            yield _side_by_side(batch)
            batch = []
        batch.append(tree)
    if batch:
        yield _side_by_side(batch)


def _alone(texts: Sequence[Ids], first: Ids, batch_tokens: int) -> Iterator[Forest]:
    """Yield batches of trees of one text each, last those of which no token is read."""
    lengths = [len(text) - 1 for text in texts]
    unread = [index for index, length in enumerate(lengths) if not length]
    for batch in [*length_batches(lengths, batch_tokens), *([unread] if unread else [])]:
        tokens = np.stack([texts[index] for index in batch])  # (B, T + 1)
        place = np.tile(np.arange(tokens.shape[1] - 1), (len(batch), 1))
        scored = place + 1 >= first[batch][:, None]
        rows = np.flatnonzero(scored)
        targets, counts = tokens[:, 1:][scored], scored.sum(axis=1)
        numbers = np.asarray(batch), np.arange(len(rows)), counts
        yield Forest(tokens[:, :-1], place - 1, place, rows, targets, *numbers, alone=True)


# One row of a forest: tokens, parents, depths, rows in the order of texts, targets, texts, counts.
Tree = tuple[Ids, Ids, Ids, Ids, Ids, Ids, Ids]


def _trees(texts: Sequence[Ids], first: Ids, capacity: int) -> Iterator[Tree]:
    # Bytes of equal width with the highest first sort as the numbers do.
    order = sorted(range(len(texts)), key=lambda index: texts[index].astype(">u4").tobytes())
    start, size = 0, 0
    common: list[int] = []  # tokens that each text of the tree has in common with the one before
    for place, shared in enumerate(_shared([texts[index] for index in order])):
        new = len(texts[order[place]]) - 1 - shared
        if place > start and size + new > capacity:
            yield _tree(texts, first, order[start:place], common)
            start, size, common = place, 0, []
        if place == start:
            shared, new = 0, len(texts[order[place]]) - 1
        common.append(shared)
        size += new
    if order:
        yield _tree(texts, first, order[start:], common)


def _shared(texts: Sequence[Ids]) -> Iterator[int]:
    """Yield how many of the tokens that are read (all but the last) each text has in common with the one before."""
    if texts:
        yield 0
    for start in range(0, len(texts) - 1, BLOCK):
        tokens = padded([text[:-1] for text in texts[start : start + BLOCK + 1]], -1)
        alike = (tokens[1:] == tokens[:-1]) & (tokens[1:] >= 0)
        yield from np.logical_and.accumulate(alike, axis=1).sum(axis=1).tolist()


def _tree(texts: Sequence[Ids], first: Ids, chosen: list[int], common: list[int]) -> Tree:
    """Return the tree of sorted texts, from how many tokens each has in common with the one before."""
    lengths = np.asarray([len(texts[index]) for index in chosen])
    tokens = padded([texts[index] for index in chosen])
    place = np.arange(tokens.shape[1])
    new = (place >= np.asarray(common)[:, None]) & (place < lengths[:, None] - 1)  # (n, L)
    numbers = np.where(new, np.cumsum(new).reshape(new.shape) - 1, -1)
    # Texts with a beginning in common follow each other: a token that is not new is the last new one of its place.
    nodes = np.maximum.accumulate(numbers, axis=0)
    depths = np.broadcast_to(place, new.shape)[new]
    parents = np.concatenate([np.full((len(chosen), 1), -1), nodes[:, :-1]], axis=1)[new]
    scored = (place >= first[chosen][:, None]) & (place < lengths[:, None])
    rows = np.roll(nodes, 1, axis=1)[scored]
    return tokens[new], parents, depths, rows, tokens[scored], np.asarray(chosen), scored.sum(axis=1)


def _side_by_side(trees: list[Tree]) -> Forest:
    tokens, parents, depths, rows, targets, texts, counts = zip(*trees, strict=True)
    read = padded(tokens)
    places = np.concatenate([of_tree + row * read.shape[1] for row, of_tree in enumerate(rows)])
    order = np.argsort(places, kind="stable")
    by_text = np.empty_like(order)
    by_text[order] = np.arange(len(order))
    scored, numbers, lengths = np.concatenate(targets)[order], np.concatenate(texts), np.concatenate(counts)
    return Forest(
        read, padded(parents, -1), padded(depths), places[order], scored, numbers, by_text, lengths, alone=False
    )


def padded(texts: Sequence[Ids], pad: int = 0) -> Ids:
    """Return texts as one array (B, T)."""
    rows = np.full((len(texts), max(map(len, texts))), pad, dtype=np.int64)
    for row, ids in enumerate(texts):
        rows[row, : len(ids)] = ids
    return rows
