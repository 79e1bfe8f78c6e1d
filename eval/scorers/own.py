"""Scorer of our own neural models, from their run folders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from corpora.tokenizers import EOS, UNK, Tokenizer
from eval.config import PLAIN, PolicyConfig
from eval.scorers.base import TokenScores, begun, resolved_score_eos, tracked
from eval.scorers.continuations import ModelAnswering
from eval.scorers.trees import Forest, Ids, forests
from train.loop.device import without_gradients
from train.models.base import LanguageModel, State
from train.runs.export import LoadedModel


class ModelScorer(ModelAnswering):
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
    ) -> list[npt.NDArray[np.float64]]:
        """ln p of the tokens of each text, from its `first` one on, after the begin symbol and those before it."""
        texts = [np.concatenate([[EOS], ids]) for ids in targets]
        capacity = min(self.model.tree_tokens or self.batch_tokens, self.batch_tokens)
        batches = forests(texts, begun(first, len(texts), 1), capacity, self.batch_tokens)
        results = [np.empty(0)] * len(texts)
        bf16 = policy.precision == "bf16"
        with without_gradients(self.device, bf16):
            context = self._context_state(policy)
            for forest in tracked(batches, len(texts), self.name, self.progress):
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

    def _read(self, forest: Forest, context: State) -> npt.NDArray[np.float64]:
        """(C,) ln p of all tokens that are asked for."""
        if not len(forest.targets):
            return np.empty(0)
        tokens, parents, depths, rows, targets = forest.tensors(self.device)
        hidden = self.model.read_trees(tokens, parents, depths, context).flatten(0, 1)  # (B*T, D)
        # The softmax is most of the work: it is computed once where several tokens follow, and nowhere else.
        after, rows = torch.unique_consecutive(rows, return_inverse=True)
        return self.model.logprobs(hidden[after], targets, rows).double().cpu().numpy()
