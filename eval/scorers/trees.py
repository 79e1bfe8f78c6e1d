"""Make batches of texts of equal length, or batches of trees, in which common beginnings are read only once.

The two sentences of a minimal pair often begin with the same words. So do many sentences of a paradigm, and prompts
differ very little. A model with a state reads a tree level by level. A model with attention reads it as one row, with a
mask that lets each token see only its ancestors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Ids = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BLOCK = 1 << 12  # texts to compare with the previous one at a time


def length_batches(
    lengths: Sequence[int] | Ids, batch_tokens: int, rows: Sequence[int] | None = None, most_rows: int = 0
) -> Iterator[list[int]]:
    """Yield batches of texts of equal length, as indices, with the longest texts first. Empty texts are left out.

    There is no padding, because padding changes the scores of some models.

    Args:
        lengths: Number of tokens of each text.
        batch_tokens: Maximum number of tokens in a batch. A longer text is in a separate batch.
        rows: Number of predictions that each text needs.
        most_rows: Maximum number of predictions in a batch, if there are `rows`.
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
    """Return R row and R column indices in a tensor (B, T, ...), given the positions in each of its rows."""
    rows = [row for row, columns in enumerate(positions) for _ in columns]
    return torch.tensor(rows), torch.tensor([at for columns in positions for at in columns])


@dataclass(frozen=True)
class Forest:
    """A batch of B trees with up to T tokens each, made from n texts with C scored tokens.

    Parents come before their children. The last token of a text is scored but not read. Padding has token 0 and no
    parent, and nothing is scored after it.
    """

    tokens: Ids  # (B, T)
    parents: Ids  # (B, T) position of the text's previous token, in the same row; -1 at the beginning of a text
    depths: Ids  # (B, T) number of tokens before this token in its text
    rows: Ids  # (C,) flat positions (in B * T) after which tokens are scored, in increasing order
    targets: Ids  # (C,) the scored tokens
    texts: Ids  # (n,) indices of the texts
    by_text: Ids  # (C,) indices into rows and targets, text after text
    counts: Ids  # (n,) number of scored tokens of each text
    alone: bool  # whether each row is a single text, and all texts have the same length

    def __len__(self) -> int:
        return len(self.texts)

    def tensors(self, device: torch.device) -> tuple[Tensor, ...]:
        """Return tokens, parents, depths, rows and targets as tensors on a device."""
        arrays = (self.tokens, self.parents, self.depths, self.rows, self.targets)
        return tuple(torch.from_numpy(array).to(device) for array in arrays)

    def results(self, logprobs: npt.NDArray[np.float64]) -> Iterator[tuple[int, npt.NDArray[np.float64]]]:
        """Yield the index of each text and the values of its scored tokens, from one value per target (C,)."""
        parts = np.split(logprobs[self.by_text], np.cumsum(self.counts)[:-1])
        return zip(self.texts.tolist(), parts, strict=True)


def forests(texts: Sequence[Ids], first: Ids, capacity: int, batch_tokens: int) -> Iterator[Forest]:
    """Yield each text once, in batches of trees.

    Args:
        texts: Token ids of N texts, each with at least one token.
        first: (N,) position of the first scored token of each text, at least 1.
        capacity: Maximum number of tokens in a tree. A longer text is a separate tree. If this is 0, each text is a
            tree, and is batched with texts of the same length, so that there is no padding.
        batch_tokens: Maximum number of tokens in a batch, including padding. A larger tree is a separate batch.
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
    """Yield batches of trees with one text each. Texts with only one token, which isn't read, come last."""
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


# The fields of one row of a forest: tokens, parents, depths, rows (text after text), targets, texts and counts.
Tree = tuple[Ids, Ids, Ids, Ids, Ids, Ids, Ids]


def _trees(texts: Sequence[Ids], first: Ids, capacity: int) -> Iterator[Tree]:
    # Big-endian bytes of equal width sort in the same order as the numbers.
    order = sorted(range(len(texts)), key=lambda index: texts[index].astype(">u4").tobytes())
    start, size = 0, 0
    common: list[int] = []  # number of first tokens that each text of the tree shares with the previous text
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
    """Yield the number of first tokens that each text shares with the previous one, not counting its last token."""
    if texts:
        yield 0
    for start in range(0, len(texts) - 1, BLOCK):
        tokens = padded([text[:-1] for text in texts[start : start + BLOCK + 1]], -1)
        alike = (tokens[1:] == tokens[:-1]) & (tokens[1:] >= 0)
        yield from np.logical_and.accumulate(alike, axis=1).sum(axis=1).tolist()


def _tree(texts: Sequence[Ids], first: Ids, chosen: list[int], common: list[int]) -> Tree:
    """Return a tree of sorted texts. `common` is the number of first tokens that each text shares with the previous."""
    lengths = np.asarray([len(texts[index]) for index in chosen])
    tokens = padded([texts[index] for index in chosen])
    place = np.arange(tokens.shape[1])
    new = (place >= np.asarray(common)[:, None]) & (place < lengths[:, None] - 1)  # (n, L)
    numbers = np.where(new, np.cumsum(new).reshape(new.shape) - 1, -1)
    # Sorted texts with a common beginning are adjacent, so a token that isn't new is the last new one at its position.
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
    """Return texts as one array (B, T), padded with `pad`."""
    rows = np.full((len(texts), max(map(len, texts))), pad, dtype=np.int64)
    for row, ids in enumerate(texts):
        rows[row, : len(ids)] = ids
    return rows
