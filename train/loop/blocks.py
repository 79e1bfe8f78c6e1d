"""Batches as blocks of text, each read from its beginning, for models that carry no state from step to step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch

from corpora.prepare import SampleTokens
from corpora.tokenizers import EOS, MASK, PAD, SPECIAL_TOKENS, Tokenizer
from pairscale.errors import ConfigError
from pairscale.seeds import derived_seed, permutation
from train.loop.batches import NO_TARGET, Batch, Batches
from train.models.huggingface_config import MaskingConfig
from train.recipes import RecipeConfig

Ids = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Masked:
    """The objective of a masked model; `shift`: positions before a hidden token at which it is predicted."""

    masking: MaskingConfig
    shift: int
    vocabulary: int  # of the study's tokenizer
    begins_word: Bools  # (vocabulary,) False: a token that continues the word of the one before it

    @classmethod
    def of(cls, masking: MaskingConfig, shift: int, tokenizer: Tokenizer) -> Masked:
        return cls(masking, shift, len(tokenizer), begins_word(tokenizer))

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
            first = real & (self.begins_word[np.where(padded, EOS, blocks)] | ~_shifted(real))
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
            targets = np.concatenate([targets[:, 1:], np.full_like(targets[:, :1], NO_TARGET)], axis=1)
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
    return np.concatenate([np.full((len(body), 1), EOS, np.int32), body], axis=1)


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


def begins_word(tokenizer: Tokenizer) -> Bools:
    """Return for each id of a tokenizer whether its token begins a word: for pieces, whether it begins with "▁"."""
    if tokenizer.word_level or tokenizer.config.kind == "char":
        return np.ones(len(tokenizer), dtype=np.bool_)
    return np.array([tokenizer.token(index).startswith("▁") for index in range(len(tokenizer))])


def _shifted(real: Bools) -> Bools:
    """Return (B, T), True where a real token stands before the place."""
    return np.concatenate([np.zeros_like(real[:, :1]), real[:, :-1]], axis=1)


@lru_cache(maxsize=2)
def _order(seed: int, epoch: int, blocks: int) -> Ids:
    return permutation(blocks, seed, epoch)
