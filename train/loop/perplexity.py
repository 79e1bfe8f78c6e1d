"""Perplexity for comparisons: total nats per reference word, whatever the model's tokens are.

Of models that carry a state, of those that read blocks, and of masked ones, whose pseudo-perplexity is something else.
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

MOST_NATS = 709.0  # exp of more overflows
COLUMN_RANGE = 3.0  # nats a token between columns of one text, whose sources differ by 1 to 2
COLUMNS = 16  # of held-out text, the same for every model
STEP = 128  # tokens a column and step
READ = 4096  # tokens that are read at a time, in windows or sentences


@dataclass(frozen=True)
class Perplexity:
    """Losses on held-out text, in nats, and their denominators."""

    nats: float  # all tokens, <eos> included
    eos_nats: float
    unk_nats: float
    words: int  # reference words; <eos> is none
    sentences: int
    tokens: int  # <eos> is none
    unk: int  # tokens outside the vocabulary
    columns: tuple[float, ...] = ()  # nats per token of each part of the text that has its own state
    vocabulary: int = 0  # 0: unknown
    # True for the losses of a masked model: of each token given all others of its sentence (Salazar et al. 2020,
    # section 2.3). They are no losses of a distribution over texts: comparable between masked models alone.
    is_pseudo: bool = False

    @property
    def called(self) -> str:
        return "pseudo-perplexity" if self.is_pseudo else "perplexity"

    @property
    def stuck(self) -> str | None:
        """The reason why the model has hardly learned, or None.

        Knowing nothing costs ln V nats for each of V tokens. If the columns, parts of one text in random order, differ
        by more than COLUMN_RANGE, the model does not leave the state in which some begin.
        """
        if not self.columns or self.vocabulary < 2:
            return None
        chance = math.log(self.vocabulary)
        above = sum(nats > chance for nats in self.columns)
        if above == 0 and max(self.columns) - min(self.columns) <= COLUMN_RANGE:
            return None
        low, high = min(self.columns), max(self.columns)
        return (
            f"the model has hardly left the state it began in: {len(self.columns)} parts of the validation text have "
            f"{low:.1f} to {high:.1f} nats a token, {above} more than the {chance:.1f} of knowing nothing about "
            f"{self.vocabulary:,} tokens; more epochs (recipe.budget), a longer recipe.warmup or a lower recipe.lr help"
        )

    @property
    def value(self) -> float:
        """exp(nats per reference word), the nats of `<eos>` included."""
        return _exp(self.nats / self.words)

    @property
    def without_eos(self) -> float:
        """Perplexity without the nats of `<eos>`."""
        return _exp((self.nats - self.eos_nats) / self.words)

    @property
    def without_unk(self) -> float:
        """Perplexity without `<eos>` and unknown words; NaN if all are unknown or tokens are not reference words."""
        known = self.words - self.unk
        if self.unk and (self.tokens != self.words or not known):
            return math.nan
        return _exp((self.nats - self.eos_nats - self.unk_nats) / known)

    def metrics(self) -> dict[str, float]:
        """Columns of metrics.csv; valid_oov_rate is a share of the model's own tokens."""
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
    """Return exp, infinite instead of an overflow."""
    return math.exp(nats) if nats < MOST_NATS else math.inf


def evaluate(model: LanguageModel, held_out: HeldOut, device: torch.device) -> Perplexity:
    """Return the perplexity of `model` on held-out text, read with carried state from an `<eos>`, without dropout."""
    tokens = torch.from_numpy(held_out.tokens.astype("int64"))
    columns = max(1, min(COLUMNS, len(tokens) // STEP))
    length = -(-len(tokens) // columns)
    # Each column starts after the last token of the one before it; padding is not counted.
    padded = torch.full((columns * length,), EOS)
    padded[: len(tokens)] = tokens
    targets = padded.view(columns, length)
    before = torch.cat([torch.tensor([EOS]), padded[:-1]]).view(columns, length)
    counted = (torch.arange(columns * length) < len(tokens)).view(columns, length)

    parts = []
    of_columns = torch.zeros(columns, dtype=torch.float64)
    with _without_dropout(model):
        state = model.initial_state(columns)
        for start in range(0, length, STEP):
            part = slice(start, start + STEP)
            hidden, state = model(before[:, part].to(device), state)
            target = targets[:, part].to(device).reshape(-1)
            losses = -model.logprobs(hidden.reshape(target.numel(), -1), target)
            losses = losses.double() * counted[:, part].to(device).reshape(-1)
            of_columns += losses.view(columns, -1).sum(1).cpu()
            parts.append((losses, target))
    return _summed(model, held_out, parts, of_columns / counted.sum(1))


def evaluate_windows(model: LanguageModel, held_out: HeldOut, device: torch.device, context: int) -> Perplexity:
    """Return the perplexity of a model that reads windows of `context` tokens of held-out text, without dropout.

    A window begins half a window after the one before it, and of all but the first one only the second half counts: so
    each token is predicted from context / 2 tokens at least, as far as there are so many before it.
    """
    tokens = torch.from_numpy(held_out.tokens.astype("int64"))
    inputs = torch.cat([torch.tensor([EOS]), tokens[:-1]])
    context = min(context, len(tokens))
    stride = max(1, context // 2)
    starts = torch.arange(0, max(1, len(tokens) - context + stride), stride).clamp(max=len(tokens) - context)
    places = starts[:, None] + torch.arange(context)  # (windows, context)
    losses = torch.empty(len(tokens), dtype=torch.float64)
    with _without_dropout(model):
        # From the end: the losses of the first half of a window are replaced by those of the window before it.
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
    """Return the pseudo-perplexity of a masked model on held-out sentences, each alone between two `<eos>`.

    Each token is hidden alone, and predicted `shift` positions before its own. Of a sentence longer than `context`
    tokens the beginning counts for all of it, in proportion.
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
    """Return words, sentences, tokens and unknown tokens of a text."""
    return held_out.words, held_out.sentences, len(held_out.tokens) - held_out.sentences, held_out.unk


@contextmanager
def _without_dropout(model: LanguageModel) -> Iterator[None]:
    """Compute without dropout and gradients, and leave the model as it was."""
    was_training = model.training
    model.eval()
    with torch.no_grad():
        yield
    model.train(was_training)


def _summed(
    model: LanguageModel, held_out: HeldOut, parts: Iterable[tuple[Tensor, Tensor]], columns: Tensor
) -> Perplexity:
    """Return the perplexity from parts of the losses (N,) and their tokens (N,), and nats per token of each column."""
    nats = eos_nats = unk_nats = 0.0
    for losses, tokens in parts:
        nats += losses.sum().item()
        eos_nats += losses[tokens == EOS].sum().item()
        unk_nats += losses[tokens == UNK].sum().item()
    return Perplexity(nats, eos_nats, unk_nats, *_counts(held_out), tuple(columns.tolist()), model.vocabulary)
