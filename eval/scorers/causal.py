"""The scorer of models that read from left to right: ours, n-gram models, and those of transformers (GPT-2, Pythia)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from eval.config import PLAIN, PolicyConfig
from eval.scorers.base import (
    Continuations,
    FloatArray,
    TextTooLong,
    TokenPredictions,
    TokenScores,
    length_batches,
)
from eval.scorers.causal_models import CausalModel
from eval.scorers.next_words import NextWordScorer, Question, Read, Readings, left_to_right, places
from eval.scorers.predictions import Collected, Window, Windows, boundaries
from eval.scorers.tokens import Tokens
from eval.scorers.trees import Ids
from pairscale.errors import ConfigError, RunError
from train.loop.device import without_gradients

ENCODED = 4096  # prompts that are encoded at a time
ROWS_BYTES = 1 << 27  # of distributions over tokens that are held at a time
READ = 1 << 17  # prompts that are read together: their texts are held, and all templates of a benchmark are millions
Text = tuple[bytes, int]  # the bytes of its tokens, and the place of the first one that is scored


class CausalScorer(NextWordScorer):
    """A model that predicts each token from those before it. The begin symbol stands first, so the first word counts.

    The score of a token does not depend on the other texts: common beginnings are read once (trees.py).
    """

    masked = False

    def __init__(self, model: CausalModel, tokens: Tokens, name: str, progress: bool = False):
        """Raises ConfigError for a tokenizer without a begin symbol."""
        self.model, self.tokens, self.name, self.progress = model, tokens, name, progress
        self.begin = tokens.checked_begin(name)
        self.digest, self.tokenizer_digest = model.digest, tokens.digest
        self.settings: dict[str, Any] = {}
        self.sample_words: int | None = None
        self.word_level = tokens.word_level
        self.chat_template = tokens.chat_template
        self.answers_prompts = model.answers_prompts
        self.device, self.batch_tokens, self.vocabulary = model.device, model.batch_tokens, model.vocabulary

    def score(self, sentences: Sequence[str], policy: PolicyConfig = PLAIN) -> list[TokenScores]:
        """Return scores in the order of `sentences`; each different string of tokens is read once.

        So two sentences that are the same to the model, as `<unk>` can make them, have equal scores: they tie.
        """
        end = self._end(policy)
        different = list(dict.fromkeys(sentences))
        texts: dict[bytes, Ids] = {}
        keys: dict[str, bytes] = {}
        spans: dict[str, npt.NDArray[np.int32]] = {}
        for sentence, (ids, offsets) in zip(different, self.tokens.encode(different), strict=True):
            tokens = np.asarray([*ids, *end], dtype=np.int64)
            keys[sentence] = tokens.tobytes()
            texts[keys[sentence]] = tokens
            all_offsets = [*offsets, *[(len(sentence), len(sentence))] * len(end)]
            spans[sentence] = np.asarray(all_offsets, dtype=np.int32).reshape(-1, 2)
        try:
            values = self._logprobs(self._before(policy), list(texts.values()), [0] * len(texts), policy)
        except TextTooLong as error:
            raise error.at([keys[sentence] for sentence in sentences].index(list(texts)[error.index])) from None
        logprobs = dict(zip(texts, values, strict=True))
        unk = -1 if self.tokens.unknown is None else self.tokens.unknown
        unknown = {key: tokens == unk for key, tokens in texts.items()}
        if end:  # no unknown word, though in some vocabularies one symbol stands for both
            for flags in unknown.values():
                flags[-1] = False
        return [
            TokenScores(logprobs[keys[text]], spans[text], unknown[keys[text]], texts[keys[text]]) for text in sentences
        ]

    def encode(self, texts: Sequence[str], policy: PolicyConfig = PLAIN) -> Iterator[Ids]:
        """Yield the ids of the tokens that `score` scores of each text; raises as that for `policy.score_eos`."""
        end = self._end(policy)
        for ids, _ in self.tokens.encode(texts):
            yield np.asarray([*ids, *end], dtype=np.int64)

    def continuations(
        self, prompts: Sequence[str], answers: Sequence[str], policy: PolicyConfig = PLAIN, chat: bool = False
    ) -> Continuations:
        """Return ln p (nats) of each answer as the tokenizer's own continuation of each prompt.

        The tokens of prompt and answer are those of the two in one text. An answer begins where these part from the
        tokens of the prompt alone, for the first of the answers to do so: all answers of a prompt follow the same
        tokens, also where a tokenizer joins the prompt's end to an answer.
        """
        if not self.answers_prompts:
            return super().continuations(prompts, answers, policy, chat)
        logprobs, counts = np.empty((len(prompts), len(answers))), np.empty((len(prompts), len(answers)), np.int64)
        forms: list[dict[tuple[int, ...], None]] = [{} for _ in answers]  # the tokens of each answer, as they appear
        for start in range(0, len(prompts), READ):
            part = slice(start, start + READ)
            texts, keys = self._joined(prompts[part], answers)
            for number, of_answer in enumerate(forms):
                own = keys[number :: len(answers)]
                of_answer.update(dict.fromkeys(tuple(texts[key][key[1] :].tolist()) for key in own))
            self._check_forms(forms, answers)
            try:
                values = self._after_prompts(list(texts.values()), [first for _, first in texts], policy, chat)
            except TextTooLong as error:
                number = keys.index(list(texts)[error.index]) // len(answers)
                raise error.at(start + number) from None
            sums = {key: (float(value.sum()), len(value)) for key, value in zip(texts, values, strict=True)}
            logprobs[part] = np.asarray([sums[key][0] for key in keys]).reshape(-1, len(answers))
            counts[part] = np.asarray([sums[key][1] for key in keys]).reshape(-1, len(answers))
        tokens = [[[self.tokens.token(index) for index in ids] for ids in of_answer] for of_answer in forms]
        return Continuations(logprobs, counts, tokens)

    def predictions(
        self, texts: Sequence[str], policy: PolicyConfig = PLAIN, window: int | None = None, step: int | None = None
    ) -> list[TokenPredictions]:
        """Return what the model expects at each token of texts of any length (eval.scorers.base.Scorer.predictions)."""
        ids, spans = [], []
        for tokens, offsets in self.tokens.encode(texts):
            ids.append(np.asarray(tokens, dtype=np.int64))
            spans.append(np.asarray(offsets, dtype=np.int32).reshape(-1, 2))
        with without_gradients(self.device, policy.precision == "bf16"):
            before, state = self.model.start(self._before(policy))
            most = None if self.model.positions is None else self.model.positions - len(before)
            windows = Windows.of(window, step, most)
            readings = Window.all_of(ids, before, windows)
            self.model.check(max((len(one.ids) for one in readings), default=0))
            masks = None
            if not self.word_level:
                masks = boundaries(self.tokens, self.vocabulary).to(self.device)
            collected = Collected(ids, masks)
            lengths, rows = [len(one.ids) for one in readings], [len(one.positions) for one in readings]
            most_rows = max(1, ROWS_BYTES // (4 * self.vocabulary))
            batches = list(length_batches(lengths, self.batch_tokens, rows, most_rows))
            for batch in self.with_progress(batches, len(readings), "windows", "reading"):
                chosen = [readings[index] for index in batch]
                read = torch.tensor([one.ids for one in chosen], device=self.device)
                at = places([one.positions for one in chosen])
                collected.add(chosen, self.model.all_logprobs(read, *at, state))
        return collected.results(spans, self.tokens.unknown)

    def _readings(self, questions: Sequence[Question], policy: PolicyConfig) -> tuple[Readings, Read]:
        before, state = self.model.start(self._before(policy))
        readings = left_to_right(questions, self.tokens, before)
        longest = 0
        for index, reading in enumerate(readings.all):
            self._check_length(len(reading.ids), reading.ids, index)
            longest = max(longest, len(reading.ids))
        self.model.check(longest)

        def read(tokens: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
            return self.model.all_logprobs(tokens, rows, columns, state)

        return readings, read

    def _before(self, policy: PolicyConfig) -> list[int]:
        """Return the tokens before a text: the context, then the begin symbol."""
        match policy.context:
            case "eos":
                return [self.begin] * (policy.context_tokens + 1)
            case "text":
                [(ids, _)] = self.tokens.encode([policy.context_text or ""])
                return [self.begin, *ids, self.begin]
            case _:
                return [self.begin]

    def _end(self, policy: PolicyConfig) -> list[int]:
        """Return `<eos>` if the policy scores it. Raises ConfigError where the tokenizer has none."""
        if not self.scores_eos(policy):
            return []
        if self.tokens.eos is None:
            raise ConfigError(f"policy.score_eos=true: the tokenizer of {self.name} has no end symbol")
        return [self.tokens.eos]

    def _logprobs(
        self, before: list[int], texts: list[Ids], first: Sequence[int], policy: PolicyConfig
    ) -> list[FloatArray]:
        """Return ln p of the tokens of each text from its `first` on, after `before` and the tokens before them."""
        with without_gradients(self.device, policy.precision == "bf16"):
            before, state = self.model.start(before)
            for index, ids in enumerate(texts):
                self._check_length(len(before) + len(ids) - 1, ids, index)
            whole = [np.concatenate([before, ids]).astype(np.int64) for ids in texts]
            self.model.check(max(map(len, whole), default=1) - 1)
            from_on = np.asarray(first, dtype=np.int64) + len(before)
            return self.model.read_texts(whole, from_on, state, self.with_progress)

    def _after_prompts(self, texts: list[Ids], first: list[int], policy: PolicyConfig, chat: bool) -> list[FloatArray]:
        """Return ln p of answers. A text begins after the begin symbol, one of a chat template as the template says."""
        if not chat:
            return self._logprobs(self._before(policy), texts, first, policy)
        if policy.context != "none":
            raise ConfigError(f"policy.context={policy.context}: a chat template says itself what a prompt begins with")
        # The first token, BOS or the mark of a message, is read and not scored; it is one for all prompts.
        results = [np.empty(0)] * len(texts)
        for begin in dict.fromkeys(int(ids[0]) for ids in texts):
            of = [number for number, ids in enumerate(texts) if ids[0] == begin]
            try:
                values = self._logprobs([begin], [texts[i][1:] for i in of], [first[i] - 1 for i in of], policy)
            except TextTooLong as error:
                raise error.at(of[error.index]) from None
            for number, value in zip(of, values, strict=True):
                results[number] = value
        return results

    def _check_length(self, tokens: int, ids: Sequence[int] | Ids, index: int) -> None:
        """Raise TextTooLong for a text, the `index`-th, that the model cannot read as it reads `tokens`."""
        if self.model.positions is not None and tokens > self.model.positions:
            raise TextTooLong(self.name, self.model.positions, self.tokens.decode(list(ids)), tokens, index)

    def _joined(self, prompts: Sequence[str], answers: Sequence[str]) -> tuple[dict[Text, Ids], list[Text]]:
        """Return the different texts of prompts with answers, and the key of each prompt with each answer in order."""
        texts: dict[Text, Ids] = {}
        keys: list[Text] = []
        parts = [prompts[start : start + ENCODED] for start in range(0, len(prompts), ENCODED)]
        for part in self.with_progress(parts, len(prompts), "prompts", "encoding prompts"):
            alone = self._ids(part)
            whole = self._ids([prompt + answer for prompt in part for answer in answers])
            for number, prompt in enumerate(alone):
                with_answers = whole[number * len(answers) : (number + 1) * len(answers)]
                first = min(_common(prompt, ids) for ids in with_answers)
                for ids in with_answers:
                    keys.append((ids.tobytes(), first))
                    texts[keys[-1]] = ids
        return texts, keys

    def _ids(self, texts: Sequence[str]) -> list[Ids]:
        return [np.asarray(ids, dtype=np.int64) for ids, _ in self.tokens.encode(texts)]

    def _check_forms(self, forms: list[dict[tuple[int, ...], None]], answers: Sequence[str]) -> None:
        for answer, of_answer in zip(answers, forms, strict=True):
            if any(self.tokens.unknown in ids for ids in of_answer) or () in of_answer:
                raise RunError(f"{self.name}: has no tokens for the answer {answer!r} (<unk>)")
        every = [ids for of_answer in forms for ids in of_answer]
        if len(set(every)) < len(every):
            raise RunError(f"{self.name}: the answers {' and '.join(map(repr, answers))} are the same tokens to it")


def _common(one: Ids, other: Ids) -> int:
    """Return the number of tokens that two texts begin with in common."""
    length = min(len(one), len(other))
    differing = np.flatnonzero(one[:length] != other[:length])
    return int(differing[0]) if len(differing) else length
