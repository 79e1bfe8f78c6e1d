"""Next words of a scorer, from the distributions over tokens that its model gives.

Causal models and our own read `context.rstrip()` and each candidate with its space; masked ones that with " ." after
it, and the candidate hidden. Character offsets tell which tokens are the candidate's. The probability of one of
several tokens is that of all of them, left to right; a masked model then has as many masks as the candidate has tokens,
which are filled in from the left (policy.pll=within_word_l2r, the default; original: each is hidden alone).

Ranks and top words are over whole words: tokens that begin a word and look like one (letters and digits, no marks
alone). No tokenizer tells that a token also begins longer words, so a causal model's " wait" counts as a word though
its probability holds that of " waiter". If that longer word is the candidate, its first token competes with what is
left of its probability. A masked model sees the full stop that ends the word.

Each context is read once for all of its candidates, with a longer reading only if one has several tokens.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from eval.config import PLAIN, PolicyConfig
from eval.scorers.base import FloatArray, NextWords, Scorer
from eval.scorers.next_words.readings import Question, Reading, Readings, reading_batches
from eval.scorers.trees import Ids
from pairscale.errors import ConfigError
from train.loop.device import without_gradients
from train.models.loss import CHUNK_BYTES

Read = Callable[[list[Ids], list[list[int]]], Tensor]  # texts, positions of each -> ln p of all tokens there (R, V)


@dataclass(frozen=True)
class NextTokens:
    """A model as a function to distributions over next tokens."""

    read: Read
    vocabulary: int
    words: dict[int, str]  # tokens that are whole words


class NextWordScorer(Scorer):
    """Scorers whose next words come from distributions over tokens."""

    device: torch.device
    batch_tokens: int

    @abstractmethod
    def _next_tokens(self, questions: Sequence[Question], policy: PolicyConfig) -> tuple[NextTokens, Readings]:
        """Return the model as it reads under `policy`, and what it has to read for the questions.

        Called without gradients. Raises ConfigError for a policy that it cannot follow, InputError for long contexts.
        """

    def next_words(
        self, contexts: Sequence[str], candidates: Sequence[Sequence[str]], k: int, policy: PolicyConfig = PLAIN
    ) -> list[NextWords]:
        """Return what the model expects after each context (eval.scorers.base.Scorer.next_words)."""
        stripped = [context.rstrip() for context in contexts]
        pairs = zip(stripped, candidates, strict=True)
        questions = list(dict.fromkeys((context, word) for context, words in pairs for word in words))
        with without_gradients(self.device, policy.precision == "bf16"):
            model, readings = self._next_tokens(questions, policy)
            if not model.words:
                raise ConfigError(f"{self.name}: none of its tokens is a whole word, so it predicts no next word")
            answers = Answers(model, readings, k, self.device)
            most = max(1, CHUNK_BYTES // (4 * model.vocabulary))
            for stage in readings.stages:
                batches = list(reading_batches(stage, self.batch_tokens, most))
                for batch in self.with_progress(batches, len(stage), "contexts"):
                    answers.add([stage[index] for index in batch])
        number = {question: index for index, question in enumerate(questions)}
        return [
            answers.of(context, [number[context, word] for word in words])
            for context, words in zip(stripped, candidates, strict=True)
        ]


class Answers:
    """Sums over the batches of all readings, and the answers that come of them."""

    def __init__(self, model: NextTokens, readings: Readings, k: int, device: torch.device):
        self.model, self.readings = model, readings
        self.k = min(k, len(model.words))
        self.logprobs = np.where(readings.known, 0.0, np.nan)
        self.ranks = np.zeros(len(readings.known), dtype=np.int64)
        self.top: dict[str, tuple[list[str], FloatArray]] = {}
        no_word = torch.ones(model.vocabulary, dtype=torch.bool)
        no_word[list(model.words)] = False
        self.no_word = no_word.to(device)

    def add(self, batch: list[Reading]) -> None:
        """Read a batch; ranks need the terms of all stages before."""
        positions = [reading.positions for reading in batch]
        texts = [np.asarray(reading.ids, dtype=np.int64) for reading in batch]
        lines = self.model.read(texts, positions)  # (R, V)
        keys = ((index, at) for index, used in enumerate(positions) for at in used)
        row = {key: number for number, key in enumerate(keys)}
        terms = [
            (row[index, at], token, candidate)
            for index, reading in enumerate(batch)
            for at, token, candidate in reading.terms
        ]
        if terms:
            rows, tokens, candidates = (list(column) for column in zip(*terms, strict=True))
            np.add.at(self.logprobs, candidates, lines[rows, tokens].double().cpu().numpy())
        lines.masked_fill_(self.no_word, -math.inf)
        for index, reading in enumerate(batch):
            if reading.words_at is not None:
                self._rank(lines[row[index, reading.words_at]], reading)

    def _rank(self, line: Tensor, reading: Reading) -> None:
        """line (V,): ln p of the next word, -inf for what is none."""
        ranked = [number for number in reading.candidates if self.readings.known[number]]
        logprobs = torch.tensor(self.logprobs[ranked], dtype=line.dtype, device=line.device)
        better = (line > logprobs[:, None]).sum(1).tolist()
        for number, count, logprob in zip(ranked, better, logprobs.tolist(), strict=True):
            first = self.readings.first.get(number)
            # p(first) - p(candidate), all that other words have of the first token, is no more than p(candidate).
            held = first is not None and logprob < float(line[first]) <= logprob + math.log(2)
            self.ranks[number] = 1 + count - held
        if reading.contexts:
            values, tokens = line.topk(self.k)
            words = [self.model.words[token] for token in tokens.tolist()]
            self.top |= dict.fromkeys(reading.contexts, (words, values.double().cpu().numpy()))

    def of(self, context: str, numbers: list[int]) -> NextWords:
        """Return the answer to a context, with candidates by their numbers."""
        return NextWords(self.logprobs[numbers], self.ranks[numbers], self.readings.tokens[numbers], *self.top[context])


def indices(positions: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Return the R rows and R columns of `positions` in a tensor (B, T, ...)."""
    rows = [row for row, columns in enumerate(positions) for _ in columns]
    return torch.tensor(rows), torch.tensor([at for columns in positions for at in columns])
