"""Scorers of the models that pairscale trains, from their run folders; ngram.py has that of n-gram models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from corpora.tokenizers import EOS, UNK
from eval.config import PolicyConfig
from eval.scorers.base import Execution, FloatArray
from eval.scorers.left_to_right import LeftToRightScorer, PromptedScorer
from eval.scorers.next_words.answers import NextTokens, Read, indices
from eval.scorers.next_words.predictions import boundaries
from eval.scorers.next_words.readings import Encoded, Question, Readings, left_to_right
from eval.scorers.next_words.whole_words import own_beginnings, own_words
from eval.scorers.trees import Forest, Ids, forests, padded
from train.loop.device import without_gradients
from train.models.base import LanguageModel, State
from train.runs.model_folder import LoadedModel

if TYPE_CHECKING:
    from train.ngram import Ngram


class TrainedScorer(LeftToRightScorer):
    """Models with one of our tokenizers."""

    _eos, _unknown = EOS, UNK

    def __init__(self, loaded: LoadedModel | Ngram, name: str, execution: Execution):
        self.name = name
        self.digest = loaded.digest
        self.tokenizer_digest = loaded.tokenizer_digest
        self.settings: dict[str, Any] = {}
        self.sample_words = loaded.info.get("sample_words")
        self.tokenizer = loaded.tokenizer
        self.vocabulary = len(self.tokenizer)
        self.word_level = self.tokenizer.word_level
        self.batch_tokens = execution.batch_tokens
        self.device = torch.device(execution.device)
        self.progress = execution.progress

    def _before(self, policy: PolicyConfig) -> list[int]:
        return [EOS]  # behind the context, which is in the state of `_reader`

    def _boundaries(self) -> Tensor | None:
        beginnings = own_beginnings(self.tokenizer)
        return None if beginnings is None else boundaries(beginnings, [EOS, UNK], len(self.tokenizer))

    def _encoded(self, texts: Sequence[str]) -> Iterator[Encoded]:
        return map(self.tokenizer.encode_raw, texts)

    def _next_tokens(self, questions: Sequence[Question], policy: PolicyConfig) -> tuple[NextTokens, Readings]:
        texts = self._encoded([f"{context} {word}" for context, word in questions])
        model = NextTokens(self._reader(policy), len(self.tokenizer), own_words(self.tokenizer))
        return model, left_to_right(questions, texts, self._before(policy), UNK)


class ModelScorer(TrainedScorer, PromptedScorer):
    """A neural model. A text begins after `<eos>`, as in training, where that ended the sentence before."""

    def __init__(self, loaded: LoadedModel, name: str, execution: Execution):
        super().__init__(loaded, name, execution)
        self.model: LanguageModel = loaded.model.to(self.device).eval()

    def _logprobs(
        self, texts: list[Ids], first: list[int], policy: PolicyConfig, chat: bool = False
    ) -> list[FloatArray]:
        texts = [np.concatenate([[EOS], ids]) for ids in texts]
        limit = self.model.tree_tokens
        capacity = self.batch_tokens if limit is None else min(limit, self.batch_tokens)
        batches = forests(texts, np.asarray(first, dtype=np.int64) + 1, capacity, self.batch_tokens)
        results = [np.empty(0)] * len(texts)
        with without_gradients(self.device, policy.precision == "bf16"):
            context = self._context_state(policy)
            for forest in self.with_progress(batches, len(texts)):
                for text, values in forest.results(self._read(forest, context)):
                    results[text] = values
        return results

    def _context_state(self, policy: PolicyConfig) -> State:
        """Return the state of one text before its begin symbol: after the context, or before everything."""
        state = self.model.initial_state(1)
        match policy.context:
            case "eos":
                before = [EOS] * policy.context_tokens
            case "text":
                before = [EOS, *self.tokenizer.encode_raw(policy.context_text or "")[0]]
            case _:
                before = []
        if before:
            _, state = self.model(torch.tensor([before], device=self.device), state)
        return state

    def _read(self, forest: Forest, context: State) -> FloatArray:
        """Return ln p (C,) of the forest's targets."""
        if not len(forest.targets):
            return np.empty(0)
        tokens, parents, depths, rows, targets = forest.tensors(self.device)
        hidden = self.model.read_trees(tokens, parents, depths, context).flatten(0, 1)  # (B*T, D)
        # The softmax is most of the work: it is computed once where several tokens follow, and nowhere else.
        after, rows = torch.unique_consecutive(rows, return_inverse=True)
        return self.model.logprobs(hidden[after], targets, rows).double().cpu().numpy()

    def _token(self, index: int) -> str:
        return self.tokenizer.token(index)

    def _reader(self, policy: PolicyConfig) -> Read:
        before = self._context_state(policy)

        def read(texts: list[Ids], positions: list[list[int]]) -> Tensor:
            state = self.model.expanded(before, len(texts))
            hidden, _ = self.model(torch.from_numpy(padded(texts, EOS)).to(self.device), state)  # (B, T, D)
            return self.model.all_logprobs(hidden[indices(positions)])

        return read
