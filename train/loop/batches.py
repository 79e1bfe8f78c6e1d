"""Return the batch of any step of a run, so that a run can resume at any step.

`Columns` reads one stream in columns and carries their state from step to step. `Blocks` reads each block of text from
its beginning, to predict the next token or the tokens that `Masked` masks.
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
NO_TARGET = -100  # marks places where nothing is predicted: padding, and tokens that are not masked


@dataclass
class Batch:
    """The inputs (B, T) and targets (B, T), int64, of one step or of one rank's part of it.

    Targets are the tokens after the inputs, or masked tokens. NO_TARGET marks places without a target.
    """

    inputs: Tensor
    targets: Tensor
    first: bool  # True if it is read from an initial state
    count: float | None = None  # number of targets in the step, per rank; None: every place has one
    # Only for a hybrid objective. `count` and `causal_count` are the numbers of targets in masked and causal rows, each
    # divided by the share of such rows in the step. So both kinds of rows are weighted by their shares.
    causal_count: float | None = None
    causal: Tensor | None = None  # (B,) bool: True for rows that are read causally

    def terms(self) -> list[tuple[Tensor | None, float]]:
        """Return the places (N,) of the targets (None: all) and the divisor of each term of the loss."""
        if self.count is None:
            return [(None, self.targets.numel())]
        there = self.targets != NO_TARGET
        if self.causal is None or self.causal_count is None:
            return [(_places(there), self.count)]
        causal = self.causal[:, None]
        return [(_places(there & ~causal), self.count), (_places(there & causal), self.causal_count)]

    def parts(self, count: int) -> list[Batch]:
        """Split the batch into at most `count` parts with about the same number of rows."""
        if count == 1:
            return [self]
        causal = [None] * count if self.causal is None else self.causal.tensor_split(count)
        split = zip(self.inputs.tensor_split(count), self.targets.tensor_split(count), causal, strict=True)
        return [replace(self, inputs=rows, targets=of, causal=kind) for rows, of, kind in split if len(rows)]


def _places(chosen: Tensor) -> Tensor:
    return torch.nonzero(chosen.flatten()).squeeze(1)


class Batches(ABC):
    """The steps of a run, in order. Every epoch has the same number of steps."""

    def __init__(self, words: int, steps_per_epoch: int, recipe: RecipeConfig):
        """Plan the steps for a sample of `words` reference words. Raises ConfigError if 0 < budget < 1 word."""
        self.words = words
        self.steps_per_epoch = steps_per_epoch
        budget = recipe.budget
        seen = budget.words_seen(words)
        if seen < 1 and budget.epochs:
            raise ConfigError(
                f"recipe.budget.epochs={budget.epochs}: this is too small, because less than one word would be read. "
                "Raise it, or set it to 0 for an untrained model."
            )
        self.steps = self.steps_for(seen)

    @abstractmethod
    def at(self, step: int) -> Batch:
        """Return the batch of a step (counted from 0), or this rank's part of it."""

    @abstractmethod
    def steps_within(self, words: int) -> int:
        """Return the smallest number of steps in an epoch that read `words` reference words."""

    @abstractmethod
    def share_read(self, within: int) -> float:
        """Return the share of an epoch's tokens that its first `within` steps read."""

    def steps_for(self, words: int) -> int:
        """Return the smallest number of steps that read `words` reference words, counting repeats."""
        epochs, rest = divmod(words, self.words)
        return epochs * self.steps_per_epoch + self.steps_within(rest)

    def words_seen(self, step: int) -> int:
        """Return the number of reference words read in `step` steps, counting repeats, to the nearest word."""
        epochs, within = divmod(step, self.steps_per_epoch)
        return epochs * self.words + round(self.share_read(within) * self.words)

    def __len__(self) -> int:
        return self.steps

    def after(self, step: int) -> Iterator[Batch]:
        """Yield all batches of the run after the first `step`."""
        return map(self.at, range(step, self.steps))


class Columns(Batches):
    """The steps of a run that cuts the sample's stream into `batch` columns and reads `bptt` tokens of each per step.

    Each epoch reads the same columns in the same order from an initial state, as in the published code of both models.
    Its last step may be shorter. The stream begins after an `<eos>`, so that its first token is predicted, too. The
    last column is filled with fewer than `batch` tokens from the start of the stream, so that every token is predicted
    in every epoch. The sample is already in random order, so no seed is needed here.
    """

    def __init__(self, tokens: npt.NDArray[Any], words: int, recipe: RecipeConfig, share: tuple[int, int] = (0, 1)):
        """Cut the token ids of a sample of `words` reference words into columns.

        Args:
            tokens: the ids of the sample (N,).
            words: the number of reference words in the sample.
            recipe: the recipe that sets the number of columns, the tokens per step and the budget.
            share: this rank and the number of ranks. Only this rank's columns are read; steps and words refer to all.

        Raises:
            ConfigError: if there are fewer tokens than columns, or if 0 < budget < 1 word.
        """
        if len(tokens) < recipe.batch:
            raise ConfigError(
                f"recipe.batch={recipe.batch}: these are too many columns for a sample of {len(tokens)} tokens. "
                "Lower recipe.batch or raise sample.size."
            )
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
        depth = -(-words * self.column // self.words)  # tokens to read in each column
        return -(-depth // self.bptt)

    def share_read(self, within: int) -> float:
        return min(within * self.bptt, self.column) / self.column

    def at(self, step: int) -> Batch:
        """Return the batch of a step (counted from 0)."""
        within = step % self.steps_per_epoch
        part = slice(within * self.bptt, (within + 1) * self.bptt)
        inputs = torch.from_numpy(self.inputs[:, part].astype(np.int64))
        targets = torch.from_numpy(self.targets[:, part].astype(np.int64))
        return Batch(inputs, targets, first=within == 0)


@dataclass(frozen=True)
class Masked:
    """The objective of a masked model, which draws the tokens to mask."""

    masking: MaskingConfig
    shift: int  # how many positions before its own a masked token is predicted
    vocabulary: int  # number of tokens of the study's tokenizer
    begins_word: Bools  # (vocabulary,) False for a token that continues the word of the token before it

    @classmethod
    def of(cls, masking: MaskingConfig, shift: int, tokenizer: Tokenizer) -> Masked:
        if tokenizer.word_level or tokenizer.config.kind == "char":
            begins = np.ones(len(tokenizer), dtype=np.bool_)
        else:
            begins = np.array([tokenizer.token(index).startswith("▁") for index in range(len(tokenizer))])
        return cls(masking, shift, len(tokenizer), begins)

    def causal(self, first: int, count: int) -> Bools | None:
        """Return which of `count` blocks, starting with block `first`, are causal (count,), or None if none ever is.

        Causal blocks are spread evenly. Any n consecutive blocks contain n times their share, to within one.
        """
        if (share := self.masking.causal_share) is None:
            return None
        causal: Bools = np.diff(np.floor(share * np.arange(first, first + count + 1))) > 0
        return causal

    def hidden(self, blocks: Ids, rng: np.random.Generator, causal: Bools | None = None) -> tuple[Ids, Ids]:
        """Mask tokens of blocks (B, T) of the study's ids, and return the inputs and targets (B, T) of the network.

        A share of all tokens except `<eos>` is drawn, at least one per batch. Some of these are replaced by the mask
        and some by random tokens (Devlin et al. 2019, section 3.1). Inputs and targets use the network's ids. NO_TARGET
        marks places in `blocks` and targets without a token. In `causal` blocks (B,), every token is a target and none
        is masked.
        """
        padded = blocks == NO_TARGET
        ids = np.where(padded, PAD, blocks + SPECIAL_TOKENS)
        real = ~padded & (blocks != EOS)
        if causal is not None:
            real &= ~causal[:, None]
        if self.masking.whole_words:
            first = real & (self.begins_word[np.where(padded, EOS, blocks)] | ~np.pad(real[:, :-1], [(0, 0), (1, 0)]))
            word = np.cumsum(first)  # number of each token's word, from 1
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
    """The steps of a run that reads blocks of `context` tokens, `batch` per step, in a new order in each epoch.

    A block begins with `<eos>`. What follows depends on `packing`:
    stream      the next tokens of the sample; the last block is filled from the start of the sample
    sentences   as many whole sentences as fit, in the sample's order, then padding
    documents   as many whole documents as fit, for samples that are drawn by documents
    Sentences or documents longer than a block are cut. Attention spans the whole block, across the ends of sentences
    and documents, as in GPT-2 and RoBERTa (FULL-SENTENCES). The order in epoch e depends only on the seed and e. The
    tokens masked in step s depend only on the seed and s.
    """

    def __init__(
        self,
        sample: SampleTokens,
        recipe: RecipeConfig,
        seed: int,
        masked: Masked | None = None,
        share: tuple[int, int] = (0, 1),
    ):
        """Cut the sample into blocks.

        Args:
            sample: the tokens of the sample and the ends of its units.
            recipe: the recipe that sets block length, batch, packing and budget.
            seed: orders the blocks and draws the masked tokens.
            masked: the masked objective; None to predict the next token.
            share: this rank and the number of ranks.

        Raises:
            ConfigError: if the sample does not fit the packing, or if 0 < budget < 1 word.
        """
        length = recipe.bptt + (masked is None)  # one more, because the last token's successor is predicted, too
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
        each = -(-len(blocks) // ranks)  # rows per rank; some may be read a second time, without targets
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
    """Return the divisor for the summed loss of these rows of targets (B, T) that keeps their share of B."""
    count = np.count_nonzero(targets[rows] != NO_TARGET)
    return count * len(rows) / np.count_nonzero(rows) if count else 1.0


def cut(sample: SampleTokens, packing: str, length: int) -> npt.NDArray[np.int32]:
    """Cut a sample into blocks (B, length) of ids that begin with `<eos>`. NO_TARGET marks padding.

    Raises ConfigError if `packing` is "documents" and the sample was not drawn by documents.
    """
    tokens = sample.tokens.astype(np.int32)
    room = length - 1
    if packing == "stream":
        count = -(-len(tokens) // room)
        body = np.resize(tokens, count * room).reshape(count, room)
    else:
        body = _packed(tokens, _ends(sample, packing), room)
    return np.pad(body, [(0, 0), (1, 0)], constant_values=EOS)


def _packed(tokens: npt.NDArray[np.int32], ends: Ids, room: int) -> npt.NDArray[np.int32]:
    """Fill rows (B, room) with as many whole units as fit, then padding. Units end at `ends`; longer ones are cut."""
    parts: list[tuple[int, int]] = []  # begin and end of each row
    begin = start = 0
    for end in ends.tolist():
        if end - begin > room and start > begin:  # this unit does not fit into the row
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
    """Return the positions just after each unit of a sample, including its `<eos>`."""
    sentences = np.flatnonzero(sample.tokens == EOS) + 1
    if packing == "sentences":
        return sentences
    if sample.documents is None:
        raise ConfigError("recipe.packing=documents: this needs a sample of whole documents. Add sample.unit=document.")
    return sentences[np.cumsum(sample.documents) - 1]


@lru_cache(maxsize=2)
def _order(seed: int, epoch: int, blocks: int) -> Ids:
    return permutation(blocks, seed, epoch)
