"""Models that read from left to right: the scores of sentences, and of answers as continuations of prompts."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from torch import Tensor

from eval.config import PLAIN, PolicyConfig
from eval.scorers.base import Continuations, FloatArray, TextTooLong, TokenPredictions, TokenScores
from eval.scorers.next_words.answers import NextWordScorer, Read
from eval.scorers.next_words.predictions import Collected, Window, Windows
from eval.scorers.next_words.readings import Encoded, reading_batches
from eval.scorers.trees import Ids
from pairscale.errors import ConfigError, RunError
from train.loop.device import without_gradients

ENCODED = 4096  # prompts that are encoded at a time
ROWS_BYTES = 1 << 27  # of distributions over tokens that are held at a time
READ = 1 << 17  # prompts that are read together: their texts are held, and all templates of a benchmark are millions
Text = tuple[bytes, int]  # the bytes of its tokens, and the place of the first one that is scored


class LeftToRightScorer(NextWordScorer):
    """Scorers that predict each token from those before it."""

    masked = False
    vocabulary: int  # tokens that the model predicts
    positions: int | None = None  # most tokens that the model reads; None: no limit

    @property
    @abstractmethod
    def _eos(self) -> int | None:
        """The id of `<eos>`."""

    @property
    @abstractmethod
    def _unknown(self) -> int | None:
        """The id of `<unk>`."""

    @abstractmethod
    def _encoded(self, texts: Sequence[str]) -> Iterable[Encoded]:
        """Yield the tokens of each text and their offsets, without any symbol that the tokenizer would add."""

    @abstractmethod
    def _logprobs(
        self, texts: list[Ids], first: list[int], policy: PolicyConfig, chat: bool = False
    ) -> list[FloatArray]:
        """Return ln p of the tokens of each text from its `first` on, after what stands before a text or a `chat`."""

    @abstractmethod
    def _before(self, policy: PolicyConfig) -> list[int]:
        """Return the tokens that are read before a text: the begin symbol, and what stands before it."""

    @abstractmethod
    def _reader(self, policy: PolicyConfig) -> Read:
        """Return the function to distributions over next tokens; texts begin with those of `_before`."""

    @abstractmethod
    def _boundaries(self) -> Tensor | None:
        """Return eval.scorers.next_words.predictions.boundaries of the tokens, None where each token is a word."""

    def predictions(
        self, texts: Sequence[str], policy: PolicyConfig = PLAIN, window: int | None = None, step: int | None = None
    ) -> list[TokenPredictions]:
        """Return what the model expects at each token of texts of any length (eval.scorers.base.Scorer.predictions)."""
        before = self._before(policy)
        windows = Windows.of(window, step, None if self.positions is None else self.positions - len(before))
        ids, spans = [], []
        for tokens, offsets in self._encoded(texts):
            ids.append(np.asarray(tokens, dtype=np.int64))
            spans.append(np.asarray(offsets, dtype=np.int32).reshape(-1, 2))
        readings = Window.all_of(ids, before, windows)
        with without_gradients(self.device, policy.precision == "bf16"):
            read, masks = self._reader(policy), self._boundaries()
            collected = Collected(ids, None if masks is None else masks.to(self.device))
            batches = list(reading_batches(readings, self.batch_tokens, max(1, ROWS_BYTES // (4 * self.vocabulary))))
            for batch in self.with_progress(batches, len(readings), "windows", "reading"):
                chosen = [readings[index] for index in batch]
                whole = [np.asarray(one.ids, dtype=np.int64) for one in chosen]
                collected.add(chosen, read(whole, [one.positions for one in chosen]))
        return collected.results(spans, self._unknown)

    def score(self, sentences: Sequence[str], policy: PolicyConfig = PLAIN) -> list[TokenScores]:
        """Return scores in the order of `sentences`; each different string of tokens is read once.

        So two sentences that are the same to the model, as `<unk>` can make them, have equal scores: they tie.
        """
        end = self._end(policy)
        different = list(dict.fromkeys(sentences))
        texts: dict[bytes, Ids] = {}
        keys: dict[str, bytes] = {}
        spans: dict[str, npt.NDArray[np.int32]] = {}
        for sentence, (ids, offsets) in zip(different, self._encoded(different), strict=True):
            tokens = np.asarray([*ids, *end], dtype=np.int64)
            keys[sentence] = tokens.tobytes()
            texts[keys[sentence]] = tokens
            all_offsets = [*offsets, *[(len(sentence), len(sentence))] * len(end)]
            spans[sentence] = np.asarray(all_offsets, dtype=np.int32).reshape(-1, 2)
        try:
            values = self._logprobs(list(texts.values()), [0] * len(texts), policy)
        except TextTooLong as error:
            raise error.at([keys[sentence] for sentence in sentences].index(list(texts)[error.index])) from None
        logprobs = dict(zip(texts, values, strict=True))
        unknown = {key: tokens == (-1 if self._unknown is None else self._unknown) for key, tokens in texts.items()}
        if end:  # no unknown word, though in some vocabularies one symbol stands for both
            for flags in unknown.values():
                flags[-1] = False
        return [
            TokenScores(logprobs[keys[text]], spans[text], unknown[keys[text]], texts[keys[text]]) for text in sentences
        ]

    def encode(self, texts: Sequence[str], policy: PolicyConfig = PLAIN) -> Iterator[Ids]:
        """Yield the ids of the tokens that `score` scores of each text; raises as that for `policy.score_eos`."""
        end = self._end(policy)
        for ids, _ in self._encoded(texts):
            yield np.asarray([*ids, *end], dtype=np.int64)

    def _end(self, policy: PolicyConfig) -> list[int]:
        """Return `<eos>` if the policy scores it. Raises ConfigError where the tokenizer has none."""
        if not self.scores_eos(policy):
            return []
        if self._eos is None:
            raise ConfigError(f"policy.score_eos=true: the tokenizer of {self.name} has no end symbol")
        return [self._eos]


class PromptedScorer(LeftToRightScorer):
    """Scorers that answer prompts."""

    answers_prompts = True

    @abstractmethod
    def _token(self, index: int) -> str:
        """Return the text of a token."""

    def continuations(
        self, prompts: Sequence[str], answers: Sequence[str], policy: PolicyConfig = PLAIN, chat: bool = False
    ) -> Continuations:
        """Return ln p (nats) of each answer as the tokenizer's own continuation of each prompt.

        The tokens of prompt and answer are those of the two in one text. An answer begins where these part from the
        tokens of the prompt alone, for the first of the answers to do so: all answers of a prompt follow the same
        tokens, also where a tokenizer joins the prompt's end to an answer.
        """
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
                values = self._logprobs(list(texts.values()), [first for _, first in texts], policy, chat)
            except TextTooLong as error:
                number = keys.index(list(texts)[error.index]) // len(answers)
                raise error.at(start + number) from None
            sums = {key: (float(value.sum()), len(value)) for key, value in zip(texts, values, strict=True)}
            logprobs[part] = np.asarray([sums[key][0] for key in keys]).reshape(-1, len(answers))
            counts[part] = np.asarray([sums[key][1] for key in keys]).reshape(-1, len(answers))
        tokens = [[[self._token(index) for index in ids] for ids in of_answer] for of_answer in forms]
        return Continuations(logprobs, counts, tokens)

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
        return [np.asarray(ids, dtype=np.int64) for ids, _ in self._encoded(texts)]

    def _check_forms(self, forms: list[dict[tuple[int, ...], None]], answers: Sequence[str]) -> None:
        for answer, of_answer in zip(answers, forms, strict=True):
            if any(self._unknown in ids for ids in of_answer) or () in of_answer:
                raise RunError(f"{self.name}: has no tokens for the answer {answer!r} (<unk>)")
        every = [ids for of_answer in forms for ids in of_answer]
        if len(set(every)) < len(every):
            raise RunError(f"{self.name}: the answers {' and '.join(map(repr, answers))} are the same tokens to it")


def _common(one: Ids, other: Ids) -> int:
    """Return the number of tokens that two texts begin with in common."""
    length = min(len(one), len(other))
    differing = np.flatnonzero(one[:length] != other[:length])
    return int(differing[0]) if len(differing) else length
