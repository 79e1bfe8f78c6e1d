"""Measure perplexity per reference word, so that models with different tokens can be compared.

There are separate functions for models that carry a state, models that read blocks, and masked models. The
pseudo-perplexity of masked models can't be compared with perplexities.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from corpora.prepare import HeldOut
from corpora.tokenizers import EOS, MASK, SPECIAL_TOKENS, UNK
from train.models.base import LanguageModel

MOST_NATS = 709.0  # the exponential of a larger number overflows
COLUMN_RANGE = 3.0  # largest normal difference between columns, in nats per token; sources of text differ by 1 to 2
COLUMNS = 16  # columns of the held-out text, the same for every model
STEP = 128  # tokens per column and step
READ = 4096  # tokens to read at a time, in windows or sentences


@dataclass(frozen=True)
class Perplexity:
    """Losses on held-out text, in nats, and their denominators."""

    nats: float  # sum over all tokens, including <eos>
    eos_nats: float
    unk_nats: float
    words: int  # number of reference words, without <eos>
    sentences: int
    tokens: int  # number of tokens, without <eos>
    unk: int  # number of tokens outside the vocabulary
    columns: tuple[float, ...] = ()  # nats per token in each part of the text that has its own state
    vocabulary: int = 0  # 0: unknown
    # True for a masked model, which predicts each token from all others in its sentence (Salazar et al. 2020, section
    # 2.3). These losses don't define a distribution over texts, so they can only be compared between masked models.
    is_pseudo: bool = False

    @property
    def called(self) -> str:
        return "pseudo-perplexity" if self.is_pseudo else "perplexity"

    @property
    def stuck(self) -> str | None:
        """A warning if the model has hardly learned anything, else None.

        A model that knows nothing needs ln V nats per token, with a vocabulary of V. The columns are parts of one text
        in random order. If they differ by more than COLUMN_RANGE, some never leave the state in which they begin.
        """
        if not self.columns or self.vocabulary < 2:
            return None
        chance = math.log(self.vocabulary)
        above = sum(nats > chance for nats in self.columns)
        if above == 0 and max(self.columns) - min(self.columns) <= COLUMN_RANGE:
            return None
        low, high = min(self.columns), max(self.columns)
        return (
            f"The model has hardly learned anything. Its loss is {low:.1f} to {high:.1f} nats per token in "
            f"{len(self.columns)} parts of the validation text. For {above} of them, this is worse than guessing among "
            f"{self.vocabulary:,} tokens ({chance:.1f} nats). Try more epochs (recipe.budget), a longer recipe.warmup "
            "or a lower recipe.lr."
        )

    @property
    def value(self) -> float:
        """The perplexity per reference word, exp(nats / words), including the nats of `<eos>`."""
        return _exp(self.nats / self.words)

    @property
    def without_eos(self) -> float:
        """The perplexity without the nats of `<eos>`."""
        return _exp((self.nats - self.eos_nats) / self.words)

    @property
    def without_unk(self) -> float:
        """The perplexity without `<eos>` and unknown words.

        It is NaN if all words are unknown, or if tokens are not reference words.
        """
        known = self.words - self.unk
        if self.unk and (self.tokens != self.words or not known):
            return math.nan
        return _exp((self.nats - self.eos_nats - self.unk_nats) / known)

    def metrics(self) -> dict[str, float]:
        """Return the columns for metrics.csv. valid_oov_rate is a share of the model's own tokens."""
        nats, unk = self.nats / self.words, self.unk / self.tokens
        if self.is_pseudo:
            return {"valid_pseudo_nats_per_word": nats, "valid_pseudo_ppl": self.value, "valid_oov_rate": unk}
        return {
            "valid_nats_per_word": nats,
            "valid_ppl": self.value,
            "valid_ppl_without_eos": self.without_eos,
            "valid_ppl_without_unk": self.without_unk,
            "valid_oov_rate": unk,
        }


def _exp(nats: float) -> float:
    """Return the exponential, or infinity if it would overflow."""
    return math.exp(nats) if nats < MOST_NATS else math.inf


def evaluate(model: LanguageModel, held_out: HeldOut, device: torch.device) -> Perplexity:
    """Return the perplexity of a model that carries its state through the held-out text, starting at an `<eos>`.

    Dropout is off.
    """
    tokens = torch.from_numpy(held_out.tokens.astype("int64"))
    columns = max(1, min(COLUMNS, len(tokens) // STEP))
    length = -(-len(tokens) // columns)
    # Each column continues after the last token of the previous one. Padding is ignored.
    padded = torch.full((columns * length,), EOS)
    padded[: len(tokens)] = tokens
    targets = padded.view(columns, length)
    before = torch.cat([torch.tensor([EOS]), padded[:-1]]).view(columns, length)
    counted = (torch.arange(columns * length) < len(tokens)).view(columns, length)

    # Small tensors that stay among large ones that go would keep the memory of all steps in use.
    losses = torch.empty(columns * length, dtype=torch.float64)
    of_columns = torch.zeros(columns, dtype=torch.float64)
    with _without_dropout(model):
        state = model.initial_state(columns)
        for start in range(0, length, STEP):
            part = slice(start, start + STEP)
            hidden, state = model(before[:, part].to(device), state)
            target = targets[:, part].reshape(-1).to(device)
            values = -model.logprobs(hidden.reshape(len(target), -1), target).double().cpu()
            values *= counted[:, part].reshape(-1)
            of_columns += values.view(columns, -1).sum(1)
            losses[columns * start : columns * start + len(values)] = values
    steps = (part.reshape(-1) for part in torch.split(targets, STEP, 1))
    parts = zip(torch.split(losses, columns * STEP), steps, strict=True)
    return _summed(model, held_out, parts, of_columns / counted.sum(1))


def evaluate_windows(model: LanguageModel, held_out: HeldOut, device: torch.device, context: int) -> Perplexity:
    """Return the perplexity of a model that reads the held-out text in windows of `context` tokens. Dropout is off.

    Each window begins half a window after the previous one. Only its second half is scored, except in the first window,
    which is scored whole. So each token is predicted from at least context / 2 tokens if there are that many before it.
    """
    tokens = torch.from_numpy(held_out.tokens.astype("int64"))
    inputs = torch.cat([torch.tensor([EOS]), tokens[:-1]])
    context = min(context, len(tokens))
    stride = max(1, context // 2)
    starts = torch.arange(0, max(1, len(tokens) - context + stride), stride).clamp(max=len(tokens) - context)
    places = starts[:, None] + torch.arange(context)  # (windows, context)
    losses = torch.empty(len(tokens), dtype=torch.float64)
    with _without_dropout(model):
        # Start at the end, so that each window's first half is overwritten by the window before it.
        for part in reversed(torch.split(places, max(1, READ // context))):
            hidden, _ = model(inputs[part].to(device), model.initial_state(len(part)))
            target = tokens[part].to(device).flatten()
            values = -model.logprobs(hidden.flatten(0, 1), target).double().cpu().view(part.shape)
            for place, value in zip(part.flip(0), values.flip(0), strict=True):
                losses[place] = value
    columns = [part.mean() for part in losses.tensor_split(max(1, min(COLUMNS, len(tokens) // STEP)))]
    return _summed(model, held_out, [(losses, tokens)], torch.stack(columns))


def evaluate_masked(
    model: LanguageModel, held_out: HeldOut, device: torch.device, context: int, shift: int
) -> Perplexity:
    """Return the pseudo-perplexity of a masked model on held-out sentences, each read alone between two `<eos>`.

    Tokens are masked one at a time, and predicted `shift` positions before their own. If a sentence is longer than
    `context` tokens, the losses of its beginning are scaled up to the whole sentence.
    """
    ends = np.flatnonzero(held_out.tokens == EOS)
    sentences = [torch.from_numpy(part[part != EOS].astype("int64")) for part in np.split(held_out.tokens, ends)]
    eos = torch.tensor([SPECIAL_TOKENS + EOS])
    nats = 0.0
    with _without_dropout(model):
        for sentence in sorted((one for one in sentences if len(one)), key=len):
            read = sentence[: context - 2]
            text = torch.cat([eos, read + SPECIAL_TOKENS, eos])
            for places in torch.split(torch.arange(1, len(read) + 1), max(1, READ // len(text))):
                rows = torch.arange(len(places))
                copies = text.repeat(len(places), 1)
                copies[rows, places] = MASK
                hidden, _ = model(copies.to(device), model.initial_state(len(copies)))
                at = hidden[rows.to(device), (places - shift).to(device)]
                logprobs = model.logprobs(at, text[places].to(device)).double()
                nats -= float(logprobs.sum()) * len(sentence) / len(read)
    return Perplexity(nats, 0.0, 0.0, *_counts(held_out), (), model.vocabulary, is_pseudo=True)


def _counts(held_out: HeldOut) -> tuple[int, int, int, int]:
    """Return the numbers of words, sentences, tokens and unknown tokens in a text."""
    return held_out.words, held_out.sentences, len(held_out.tokens) - held_out.sentences, held_out.unk


@contextmanager
def _without_dropout(model: LanguageModel) -> Iterator[None]:
    """Turn dropout and gradients off within the block, and restore the model afterwards."""
    was_training = model.training
    model.eval()
    with torch.no_grad():
        yield
    model.train(was_training)


def _summed(
    model: LanguageModel, held_out: HeldOut, parts: Iterable[tuple[Tensor, Tensor]], columns: Tensor
) -> Perplexity:
    """Sum the losses (N,) of tokens (N,) to a perplexity. `columns` contains the nats per token of each column."""
    nats = eos_nats = unk_nats = 0.0
    for losses, tokens in parts:
        nats += losses.sum().item()
        eos_nats += losses[tokens == EOS].sum().item()
        unk_nats += losses[tokens == UNK].sum().item()
    return Perplexity(nats, eos_nats, unk_nats, *_counts(held_out), tuple(columns.tolist()), model.vocabulary)
