"""Scorer of our own neural models, from their run folders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from corpora.tokenizers import EOS, UNK, Tokenizer
from eval.config import PLAIN, PolicyConfig
from eval.scorers.base import FloatArray, TokenScores, batch_progress, begun, resolved_score_eos
from eval.scorers.continuations import PromptedScorer
from eval.scorers.next_words.answers import NextTokens, NextWordScorer, indices, padded
from eval.scorers.next_words.readings import Question, Readings, left_to_right
from eval.scorers.next_words.whole_words import own_words
from eval.scorers.trees import Forest, Ids, forests
from train.loop.device import without_gradients
from train.models.base import LanguageModel, State
from train.runs.export import LoadedModel


class ModelScorer(PromptedScorer, NextWordScorer):
    """Our own language models. A sentence begins after `<eos>`, as in training, where that ended the one before."""

    masked = False

    def __init__(self, loaded: LoadedModel, name: str, batch_tokens: int, device: str = "cpu", progress: bool = False):
        """`batch_tokens`: most tokens, padding included, that are read at a time; it changes no score."""
        self.name = name
        self.digest = loaded.digest
        self.tokenizer_digest = loaded.tokenizer_digest
        self.settings: dict[str, Any] = {}
        self.sample_words = loaded.info.get("sample_words")
        self.tokenizer: Tokenizer = loaded.tokenizer
        self.word_level = self.tokenizer.word_level
        self.model: LanguageModel = loaded.model.to(device).eval()
        self.batch_tokens = batch_tokens
        self.device = torch.device(device)
        self.progress = progress

    def score(self, sentences: Sequence[str], policy: PolicyConfig = PLAIN) -> list[TokenScores]:
        """Each different string of tokens is read once, with others of about its length.

        So two sentences that are the same to the model, as <unk> can make them, have equal scores: they tie.
        """
        eos = resolved_score_eos(policy, self.word_level)
        targets: dict[bytes, Ids] = {}
        spans: dict[str, tuple[bytes, npt.NDArray[np.int32]]] = {}
        for sentence in dict.fromkeys(sentences):
            ids, offsets = self.tokenizer.encode_raw(sentence)
            if eos:
                ids, offsets = [*ids, EOS], [*offsets, (len(sentence), len(sentence))]
            tokens = np.asarray(ids, dtype=np.int64)
            targets[tokens.tobytes()] = tokens
            spans[sentence] = tokens.tobytes(), np.asarray(offsets, dtype=np.int32).reshape(-1, 2)
        logprobs = dict(zip(targets, self._logprobs(list(targets.values()), policy), strict=True))
        found = {
            sentence: TokenScores(logprobs[key], offsets, targets[key] == UNK)
            for sentence, (key, offsets) in spans.items()
        }
        return [found[sentence] for sentence in sentences]

    def _logprobs(
        self, targets: list[Ids], policy: PolicyConfig, first: Sequence[int] | None = None
    ) -> list[FloatArray]:
        """Return ln p of each text's tokens, from its `first` one on, after the begin symbol and those before it."""
        texts = [np.concatenate([[EOS], ids]) for ids in targets]
        capacity = min(self.model.tree_tokens or self.batch_tokens, self.batch_tokens)
        batches = forests(texts, begun(first, len(texts), 1), capacity, self.batch_tokens)
        results = [np.empty(0)] * len(texts)
        bf16 = policy.precision == "bf16"
        with without_gradients(self.device, bf16):
            context = self._context_state(policy)
            for forest in batch_progress(batches, len(texts), self.name, self.progress):
                for text, values in forest.results(self._read(forest, context)):
                    results[text] = values
        return results

    def _context_state(self, policy: PolicyConfig) -> State:
        """State of one text before a sentence's begin symbol: after the context, or before everything."""
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
        """(C,) ln p of all tokens that are asked for."""
        if not len(forest.targets):
            return np.empty(0)
        tokens, parents, depths, rows, targets = forest.tensors(self.device)
        hidden = self.model.read_trees(tokens, parents, depths, context).flatten(0, 1)  # (B*T, D)
        # The softmax is most of the work: it is computed once where several tokens follow, and nowhere else.
        after, rows = torch.unique_consecutive(rows, return_inverse=True)
        return self.model.logprobs(hidden[after], targets, rows).double().cpu().numpy()

    def _ids(self, texts: Sequence[str]) -> list[Ids]:
        return [np.asarray(self.tokenizer.encode_raw(text)[0], dtype=np.int64) for text in texts]

    def _token(self, index: int) -> str:
        return self.tokenizer.token(index)

    @property
    def _unknown(self) -> int | None:
        return UNK

    def _continued(self, texts: list[Ids], first: list[int], policy: PolicyConfig, chat: bool) -> list[FloatArray]:
        """A prompt begins after `<eos>`, as a sentence does."""
        return self._logprobs(texts, policy, first)

    def _next_tokens(self, questions: Sequence[Question], policy: PolicyConfig) -> tuple[NextTokens, Readings]:
        before = self._context_state(policy)

        def read(texts: list[Ids], positions: list[list[int]]) -> Tensor:
            state = _expanded(before, self.model, len(texts))
            hidden, _ = self.model(padded(texts, EOS, self.device), state)  # (B, T, D)
            return self.model.all_logprobs(hidden[indices(positions)])

        texts = (self.tokenizer.encode_raw(f"{context} {word}") for context, word in questions)
        model = NextTokens(read, len(self.tokenizer), own_words(self.tokenizer))
        return model, left_to_right(questions, texts, [EOS], UNK)


def _expanded(state: State, model: LanguageModel, batch: int) -> State:
    """Return the state of one text for `batch` texts; the model's own states show which dimension is the batch's."""

    def repeated(tensor: Tensor, one: Tensor, two: Tensor) -> Tensor:
        wider = [dim for dim in range(one.dim()) if one.shape[dim] != two.shape[dim]]
        return tensor.repeat_interleave(batch, dim=wider[0]) if wider else tensor

    return tuple(map(repeated, state, model.initial_state(1), model.initial_state(2)))
