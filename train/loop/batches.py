"""The batches of a run, addressed by step, so that a run can resume at any step.

`Columns` reads one stream in columns whose state is carried from step to step; `Blocks` reads blocks of text, each from
its beginning, for the next token or with the objective of `Masked`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from corpora.prepare import SampleTokens
from corpora.tokenizers import EOS, MASK, PAD, SPECIAL_TOKENS, Tokenizer
from pairscale.errors import ConfigError
from pairscale.seeds import derived_seed, permutation
from train.models.config import MaskingConfig
from train.recipes import RecipeConfig

Ids = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
NO_TARGET = -100  # in place of a target that is none: padding, and tokens that are not hidden


@dataclass
class Batch:
    """One step, or a rank's part of it: inputs (B, T) and targets (B, T) int64.

    Targets are the tokens after the inputs, or hidden tokens; NO_TARGET where there is none.
    """

    inputs: Tensor
    targets: Tensor
    first: bool  # True if it reads from an initial state
    count: float | None = None  # targets of the step, for each rank; None: every place has one
    # Of a hybrid objective. Each kind of rows then weighs as its share of the step's rows: `count` and `causal_count`
    # are those of its own targets, divided by that share.
    causal_count: float | None = None
    causal: Tensor | None = None  # (B,) bool: rows that are read causally

    def terms(self) -> list[tuple[Tensor | None, float]]:
        """Return the terms of the loss: places (N,) of their targets, None for all, and the divisor of their sum."""
        if self.count is None:
            return [(None, self.targets.numel())]
        there = self.targets != NO_TARGET
        if self.causal is None or self.causal_count is None:
            return [(_places(there), self.count)]
        causal = self.causal[:, None]
        return [(_places(there & ~causal), self.count), (_places(there & causal), self.causal_count)]

    def parts(self, count: int) -> list[Batch]:
        """Return the batch in at most `count` parts of about as many rows."""
        if count == 1:
            return [self]
        causal = [None] * count if self.causal is None else self.causal.tensor_split(count)
        split = zip(self.inputs.tensor_split(count), self.targets.tensor_split(count), causal, strict=True)
        return [replace(self, inputs=rows, targets=of, causal=kind) for rows, of, kind in split if len(rows)]


def _places(chosen: Tensor) -> Tensor:
    return torch.nonzero(chosen.flatten()).squeeze(1)


class Batches(ABC):
    """All steps of a run, in order; epochs have equally many."""

    def __init__(self, words: int, steps_per_epoch: int, recipe: RecipeConfig):
        """Take a sample's number of reference words. Raises ConfigError for 0 < budget < 1 word."""
        self.words = words
        self.steps_per_epoch = steps_per_epoch
        budget = recipe.budget
        seen = budget.words_seen(words)
        if seen < 1 and budget.epochs:
            raise ConfigError(
                f"recipe.budget.epochs={budget.epochs}: must hold at least one word, or be 0 for an untrained model"
            )
        self.steps = self.steps_for(seen)

    @abstractmethod
    def at(self, step: int) -> Batch:
        """Return the batch of a step (from 0), or this rank's part of it."""

    @abstractmethod
    def steps_within(self, words: int) -> int:
        """Return the fewest steps of an epoch in which so many reference words are seen."""

    @abstractmethod
    def share_read(self, within: int) -> float:
        """Return the share of an epoch's tokens that `within` of its steps read."""

    def steps_for(self, words: int) -> int:
        """Return the fewest steps in which so many reference words are seen, with repeats."""
        epochs, rest = divmod(words, self.words)
        return epochs * self.steps_per_epoch + self.steps_within(rest)

    def words_seen(self, step: int) -> int:
        """Return the reference words read after `step` steps, with repeats, to the nearest word."""
        epochs, within = divmod(step, self.steps_per_epoch)
        return epochs * self.words + round(self.share_read(within) * self.words)

    def __len__(self) -> int:
        return self.steps

    def after(self, step: int) -> Iterator[Batch]:
        """Yield the batches after `step` steps, to the end of the run."""
        return map(self.at, range(step, self.steps))


class Columns(Batches):
    """The sample's stream cut into `batch` columns, walked in steps of `bptt`.

    Each epoch walks the same columns in the same order from an initial state, as in the published code of both models;
    its last step may be shorter. The stream begins after an `<eos>`, so that its first token is predicted too, and the
    last column is filled up from the stream's start (fewer than `batch` tokens), so that every token is predicted in
    every epoch. The sample's own order is random, so no seed is needed here.
    """

    def __init__(self, tokens: npt.NDArray[Any], words: int, recipe: RecipeConfig, share: tuple[int, int] = (0, 1)):
        """Take the sample's ids and its number of reference words; of (rank, ranks) in `share` read the rank's columns.

        Steps and words are those of all. Raises ConfigError for fewer tokens than columns or 0 < budget < 1 word.
        """
        if len(tokens) < recipe.batch:
            raise ConfigError(f"recipe.batch={recipe.batch}: more columns than the sample has tokens ({len(tokens)})")
        self.bptt = recipe.bptt
        self.column = -(-len(tokens) // recipe.batch)
        used = self.column * recipe.batch
        stream = np.empty(used + 1, dtype=tokens.dtype)
        stream[0], stream[1:] = EOS, np.resize(tokens, used)
        rank, ranks = share
        own = slice(rank * recipe.batch // ranks, (rank + 1) * recipe.batch // ranks)
        self.inputs = stream[:-1].reshape(recipe.batch, self.column)[own]
        self.targets = stream[1:].reshape(recipe.batch, self.column)[own]
        super().__init__(words, -(-self.column // self.bptt), recipe)

    def steps_within(self, words: int) -> int:
        depth = -(-words * self.column // self.words)  # of the columns that hold them, in tokens
        return -(-depth // self.bptt)

    def share_read(self, within: int) -> float:
        return min(within * self.bptt, self.column) / self.column

    def at(self, step: int) -> Batch:
        """Return the batch of a step (from 0)."""
        within = step % self.steps_per_epoch
        part = slice(within * self.bptt, (within + 1) * self.bptt)
        inputs = torch.from_numpy(self.inputs[:, part].astype(np.int64))
        targets = torch.from_numpy(self.targets[:, part].astype(np.int64))
        return Batch(inputs, targets, first=within == 0)


@dataclass(frozen=True)
class Masked:
    """The objective of a masked model; `shift`: positions before a hidden token at which it is predicted."""

    masking: MaskingConfig
    shift: int
    vocabulary: int  # of the study's tokenizer
    begins_word: Bools  # (vocabulary,) False: a token that continues the word of the one before it

    @classmethod
    def of(cls, masking: MaskingConfig, shift: int, tokenizer: Tokenizer) -> Masked:
        if tokenizer.word_level or tokenizer.config.kind == "char":
            begins = np.ones(len(tokenizer), dtype=np.bool_)
        else:
            begins = np.array([tokenizer.token(index).startswith("▁") for index in range(len(tokenizer))])
        return cls(masking, shift, len(tokenizer), begins)

    def causal(self, first: int, count: int) -> Bools | None:
        """Return which of `count` blocks, from number `first` of the run on, are causal (count,); None: never any.

        They are spread evenly: of any n blocks in a row, n times the share, to within one.
        """
        if (share := self.masking.causal_share) is None:
            return None
        causal: Bools = np.diff(np.floor(share * np.arange(first, first + count + 1))) > 0
        return causal

    def hidden(self, blocks: Ids, rng: np.random.Generator, causal: Bools | None = None) -> tuple[Ids, Ids]:
        """Return inputs and targets (B, T) of blocks (B, T) of the study's ids, NO_TARGET where there is no token.

        Of the tokens but `<eos>`, a share is drawn, at least one in a batch: of these some are replaced by the mask and
        some by random tokens (Devlin et al. 2019, section 3.1). Ids of inputs and targets are those of the network.
        In blocks that are `causal` (B,) none is hidden and each is a target.
        """
        padded = blocks == NO_TARGET
        ids = np.where(padded, PAD, blocks + SPECIAL_TOKENS)
        real = ~padded & (blocks != EOS)
        if causal is not None:
            real &= ~causal[:, None]
        if self.masking.whole_words:
            first = real & (self.begins_word[np.where(padded, EOS, blocks)] | ~np.pad(real[:, :-1], [(0, 0), (1, 0)]))
            word = np.cumsum(first)  # of each token, from 1
            drawn = real & (rng.random(word[-1] + 1) < self.masking.share)[word.reshape(real.shape)]
        else:
            drawn = real & (rng.random(real.shape) < self.masking.share)
        if not drawn.any() and real.any():
            drawn.flat[rng.choice(np.flatnonzero(real))] = True
        predicted = drawn if causal is None else drawn | (causal[:, None] & ~padded)
        targets = np.where(predicted, ids, NO_TARGET)
        fate = rng.random(real.shape)
        replaced = drawn & (fate < self.masking.masked)
        random = drawn & ~replaced & (fate < self.masking.masked + self.masking.random)
        others = rng.integers(SPECIAL_TOKENS, SPECIAL_TOKENS + self.vocabulary, size=real.shape)
        inputs = np.where(replaced, MASK, np.where(random, others, ids))
        if self.shift:  # the first token of a block is <eos>, which is not predicted
            targets = np.pad(targets[:, 1:], [(0, 0), (0, 1)], constant_values=NO_TARGET)
        return inputs, targets


class Blocks(Batches):
    """All steps of a run: the sample cut into blocks of `context` tokens, `batch` of them a step, shuffled each epoch.

    A block begins with `<eos>`. By `packing` it holds
    stream      the next tokens, whatever they belong to; the last block is filled up from the sample's start
    sentences   whole sentences, as many as fit, in the sample's order; the rest is padding
    documents   whole documents likewise, of samples that are drawn by documents
    A sentence or document longer than a block is cut. Attention reaches over all that is in a block, across the ends of
    sentences and documents, as in GPT-2 and RoBERTa (FULL-SENTENCES). The order of epoch e and what is hidden in step s
    follow from the seed and e or s alone. `masked`: None for the next token.
    """

    def __init__(
        self,
        sample: SampleTokens,
        recipe: RecipeConfig,
        seed: int,
        masked: Masked | None = None,
        share: tuple[int, int] = (0, 1),
    ):
        """`seed` orders blocks and draws what is hidden; `share`: (rank, ranks). Raises as Batches does."""
        length = recipe.bptt + (masked is None)  # the next token of the last one, too
        self.blocks = cut(sample, recipe.packing, length)
        self.batch, self.seed, self.masked, self.share = recipe.batch, seed, masked, share
        super().__init__(sample.words, -(-len(self.blocks) // recipe.batch), recipe)

    def steps_within(self, words: int) -> int:
        blocks = -(-words * len(self.blocks) // self.words)
        return -(-blocks // self.batch)

    def share_read(self, within: int) -> float:
        return min(within * self.batch, len(self.blocks)) / len(self.blocks)

    def at(self, step: int) -> Batch:
        """Return the batch of a step (from 0), or this rank's part of it."""
        epoch, within = divmod(step, self.steps_per_epoch)
        rank, ranks = self.share
        chosen = _order(self.seed, epoch, len(self.blocks))[within * self.batch : (within + 1) * self.batch]
        blocks = self.blocks[chosen].astype(np.int64)
        causal = None
        if self.masked is None:
            inputs, targets = np.where(blocks[:, :-1] == NO_TARGET, EOS, blocks[:, :-1]), blocks[:, 1:]
        else:
            rng = np.random.default_rng(derived_seed(None, self.seed, f"hidden in step {step}"))
            causal = self.masked.causal(epoch * len(self.blocks) + within * self.batch, len(blocks))
            inputs, targets = self.masked.hidden(blocks, rng, causal)
        count = np.count_nonzero(targets != NO_TARGET) / ranks
        each = -(-len(blocks) // ranks)  # rows of a rank, some of which may be read again without a target
        rows = np.arange(rank * each, (rank + 1) * each)
        own = targets[rows % len(blocks)]
        own[rows >= len(blocks)] = NO_TARGET
        batch = Batch(torch.from_numpy(inputs[rows % len(blocks)]), torch.from_numpy(own), True, count)
        if causal is None:
            return batch
        masked_count, causal_count = (_divisor(targets, kind) / ranks for kind in (~causal, causal))
        kinds = torch.from_numpy(causal[rows % len(blocks)])
        return replace(batch, count=masked_count, causal_count=causal_count, causal=kinds)


def _divisor(targets: Ids, rows: Bools) -> float:
    """Return the divisor of the summed loss of some rows of targets (B, T): their mean weighs as their share of B."""
    count = np.count_nonzero(targets[rows] != NO_TARGET)
    return count * len(rows) / np.count_nonzero(rows) if count else 1.0


def cut(sample: SampleTokens, packing: str, length: int) -> npt.NDArray[np.int32]:
    """Return a sample as blocks (B, length) of ids, `<eos>` first, NO_TARGET for padding. Raises ConfigError."""
    tokens = sample.tokens.astype(np.int32)
    room = length - 1
    if packing == "stream":
        count = -(-len(tokens) // room)
        body = np.resize(tokens, count * room).reshape(count, room)
    else:
        body = _packed(tokens, _ends(sample, packing), room)
    return np.pad(body, [(0, 0), (1, 0)], constant_values=EOS)


def _packed(tokens: npt.NDArray[np.int32], ends: Ids, room: int) -> npt.NDArray[np.int32]:
    """Return rows (B, room) of whole units, which end at `ends`, as many as fit, the longer ones cut; then padding."""
    parts: list[tuple[int, int]] = []  # begin and end of each row
    begin = start = 0
    for end in ends.tolist():
        if end - begin > room and start > begin:  # this unit does not fit behind those before it
            parts.append((begin, start))
            begin = start
        while end - begin > room:
            parts.append((begin, begin + room))
            begin += room
        start = end
    if start > begin:
        parts.append((begin, start))
    rows = np.full((len(parts), room), NO_TARGET, np.int32)
    for row, (begin, end) in zip(rows, parts, strict=True):
        row[: end - begin] = tokens[begin:end]
    return rows


def _ends(sample: SampleTokens, packing: str) -> Ids:
    """Return where the units of a sample end, behind their `<eos>`."""
    sentences = np.flatnonzero(sample.tokens == EOS) + 1
    if packing == "sentences":
        return sentences
    if sample.documents is None:
        raise ConfigError("recipe.packing=documents: needs whole documents; give sample.unit=document")
    return sentences[np.cumsum(sample.documents) - 1]


@lru_cache(maxsize=2)
def _order(seed: int, epoch: int, blocks: int) -> Ids:
    return permutation(blocks, seed, epoch)
