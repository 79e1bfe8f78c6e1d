"""Score causal models, including our own models, n-gram models and models of transformers (GPT-2, Pythia)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from eval.config import PLAIN, PolicyConfig
from eval.scorers.base import Continuations, Scorer, TokenScores, first_after
from eval.scorers.causal_models import CausalModel
from eval.scorers.next_words import Question, Questions, Read, left_to_right
from eval.scorers.predictions import TokenPredictions, boundaries, window_size, windows
from eval.scorers.tokens import Tokens
from eval.scorers.trees import Ids
from pairscale.errors import ConfigError, RunError
from train.loop.device import without_gradients
from train.models.base import State

ENCODED = 4096  # prompts to encode at a time
READ = 1 << 17  # prompts to read at a time, because a benchmark with all templates has millions, too many for memory
Text = tuple[bytes, int]  # the bytes of the token ids, and the position of the first scored token


class CausalScorer(Scorer):
    """A model that predicts each token from the tokens before it.

    A begin symbol comes first, so that the first word is also scored. If several texts have the same beginning, it is
    read only once (trees.py). The score of a token doesn't depend on the other texts.
    """

    masked = False

    def __init__(self, model: CausalModel, tokens: Tokens, name: str, progress: bool = False):
        """Set up the scorer. Raises ConfigError if the tokenizer has no begin symbol."""
        super().__init__(name, model.digest, tokens, progress)
        self.model, self.begin = model, tokens.checked_begin(name)
        self.answers_prompts, self.positions = model.answers_prompts, model.positions
        self.device, self.batch_tokens, self.vocabulary = model.device, model.batch_tokens, model.vocabulary

    def score(
        self, sentences: Sequence[str], policy: PolicyConfig = PLAIN, starts: Sequence[int] | None = None
    ) -> list[TokenScores]:
        """Score every token of sentences (see `Scorer.score`). Each distinct sequence of tokens is read once.

        Two sentences that have the same tokens, for example because of `<unk>`, therefore have equal scores.
        """
        end = self._end(policy)
        asked = list(zip(sentences, starts or [0] * len(sentences), strict=True))
        different = list(dict.fromkeys(asked))
        texts: dict[Text, Ids] = {}
        keys: dict[tuple[str, int], Text] = {}
        spans: dict[tuple[str, int], npt.NDArray[np.int32]] = {}
        with without_gradients(self.device, policy.precision == "bf16"):
            before, state = self.model.start(self._before(policy))
            encoded = self.tokens.encode([sentence for sentence, _ in different])
            for (sentence, start), (ids, offsets) in zip(different, encoded, strict=True):
                tokens = np.asarray([*before, *ids, *end], dtype=np.int64)
                self.check_length(sentence, len(tokens) - 1)
                all_offsets = [*offsets, *[(len(sentence), len(sentence))] * len(end)]
                skipped = first_after(all_offsets, start)
                key = keys[sentence, start] = tokens.tobytes(), len(before) + skipped
                texts[key] = tokens
                spans[sentence, start] = np.asarray(all_offsets[skipped:], dtype=np.int32).reshape(-1, 2)
            first = np.asarray([at for _, at in texts], dtype=np.int64)
            values = self.model.read_texts(list(texts.values()), first, state, self.with_progress)
        scores = {}
        for (key, tokens), logprobs in zip(texts.items(), values, strict=True):
            own = tokens[key[1] :]
            unknown = own == (-1 if self.tokens.unknown is None else self.tokens.unknown)
            if end:  # <eos> isn't an unknown word, even if the vocabulary uses the same symbol for both
                unknown[-1] = False
            scores[key] = (logprobs, unknown, own)
        return [
            TokenScores(logprobs, spans[one], unknown, ids)
            for one in asked
            for logprobs, unknown, ids in [scores[keys[one]]]
        ]

    def encode(self, texts: Sequence[str], policy: PolicyConfig = PLAIN) -> Iterator[Ids]:
        """Yield, for each text, the ids of the tokens that `score` scores. Raises ConfigError if `<eos>` is missing."""
        end = self._end(policy)
        for ids, _ in self.tokens.encode(texts):
            yield np.asarray([*ids, *end], dtype=np.int64)

    def continuations(
        self, prompts: Sequence[str], answers: Sequence[str], policy: PolicyConfig = PLAIN, chat: bool = False
    ) -> Continuations:
        """Return the log-probability (nats) of each answer after each prompt (see `Scorer.continuations`).

        Prompt and answer are tokenized as one text. The answers begin at the first token that differs from the prompt
        alone in any of these texts. All answers therefore follow the same tokens of the prompt, even if a tokenizer
        joins the end of the prompt with an answer.
        """
        if not self.answers_prompts:
            return super().continuations(prompts, answers, policy, chat)
        if chat and policy.context != "none":
            raise ConfigError(
                f"policy.context={policy.context}: this setting can't be combined with a chat template, because the "
                "template determines how a prompt begins. Use policy.context=none."
            )
        logprobs, counts = np.empty((len(prompts), len(answers))), np.empty((len(prompts), len(answers)), np.int64)
        forms: list[dict[tuple[int, ...], None]] = [{} for _ in answers]  # the different token sequences of each answer
        with without_gradients(self.device, policy.precision == "bf16"):
            before, state = self.model.start(self._before(policy))
            before = [] if chat else before  # a chat template begins with its own symbol, such as BOS
            for start in range(0, len(prompts), READ):
                part = slice(start, start + READ)
                texts, keys = self._with_answers(prompts[part], answers, before)
                for number, of_answer in enumerate(forms):
                    own = keys[number :: len(answers)]
                    of_answer.update(dict.fromkeys(tuple(texts[key][key[1] :].tolist()) for key in own))
                self._check_forms(forms, answers)
                first = np.asarray([at for _, at in texts], dtype=np.int64)
                values = self.model.read_texts(list(texts.values()), first, state, self.with_progress)
                sums = {key: (float(value.sum()), len(value)) for key, value in zip(texts, values, strict=True)}
                logprobs[part] = np.asarray([sums[key][0] for key in keys]).reshape(-1, len(answers))
                counts[part] = np.asarray([sums[key][1] for key in keys]).reshape(-1, len(answers))
        tokens = [[[self.tokens.token(index) for index in ids] for ids in of_answer] for of_answer in forms]
        return Continuations(logprobs, counts, tokens)

    def predictions(
        self, texts: Sequence[str], policy: PolicyConfig = PLAIN, window: int | None = None, step: int | None = None
    ) -> list[TokenPredictions]:
        """Predict each token of texts of any length (see `Scorer.predictions`)."""
        encoded = list(self.tokens.encode(texts))
        with without_gradients(self.device, policy.precision == "bf16"):
            before, state = self.model.start(self._before(policy))
            size, step = window_size(window, step, None if self.positions is None else self.positions - len(before))
            read = [(list(windows(ids, before, size, step)), ids, spans) for ids, spans in encoded]
            masks = None if self.word_level else boundaries(self.tokens, self.vocabulary).to(self.device)
            return self.read_windows(read, self._reader(state), masks)

    def readings(self, questions: Sequence[Question], policy: PolicyConfig) -> tuple[Questions, Read]:
        before, state = self.model.start(self._before(policy))
        return left_to_right(questions, self.tokens, before, self.check_length), self._reader(state)

    def _reader(self, state: State) -> Read:
        return lambda tokens, rows, columns: self.model.all_logprobs(tokens, rows, columns, state)

    def _before(self, policy: PolicyConfig) -> list[int]:
        """Return the tokens before a text, which are the context and the begin symbol."""
        match policy.context:
            case "eos":
                return [self.begin] * (policy.context_tokens + 1)
            case "text":
                [(ids, _)] = self.tokens.encode([policy.context_text or ""])
                return [self.begin, *ids, self.begin]
            case _:
                return [self.begin]

    def _end(self, policy: PolicyConfig) -> list[int]:
        """Return the id of `<eos>` in a list, or [] if it isn't scored. Raises ConfigError if there is no `<eos>`."""
        if not self.scores_eos(policy):
            return []
        if self.tokens.eos is None:
            raise ConfigError(
                f"policy.score_eos=true: the tokenizer of {self.name} has no <eos> token. Use policy.score_eos=false."
            )
        return [self.tokens.eos]

    def _with_answers(
        self, prompts: Sequence[str], answers: Sequence[str], before: list[int]
    ) -> tuple[dict[Text, Ids], list[Text]]:
        """Return the distinct texts of `before`, prompt and answer, and the key of each prompt and answer."""
        texts: dict[Text, Ids] = {}
        keys: list[Text] = []
        parts = [prompts[start : start + ENCODED] for start in range(0, len(prompts), ENCODED)]
        for part in self.with_progress(parts, len(prompts), "prompts", "encoding prompts"):
            alone, whole = (
                [np.asarray([*before, *ids], dtype=np.int64) for ids, _ in self.tokens.encode(texts_of)]
                for texts_of in (part, [prompt + answer for prompt in part for answer in answers])
            )
            for number, prompt in enumerate(alone):
                with_answers = whole[number * len(answers) : (number + 1) * len(answers)]
                first = min(_common(prompt, ids) for ids in with_answers)
                for ids in with_answers:
                    self.check_length(part[number], len(ids) - 1)
                    keys.append((ids.tobytes(), first))
                    texts[keys[-1]] = ids
        return texts, keys

    def _check_forms(self, forms: list[dict[tuple[int, ...], None]], answers: Sequence[str]) -> None:
        for answer, of_answer in zip(answers, forms, strict=True):
            if any(self.tokens.unknown in ids for ids in of_answer) or () in of_answer:
                raise RunError(
                    f"{self.name}: the answer {answer!r} isn't in the model's vocabulary (<unk>). Choose other answers "
                    "in a file of templates, or leave out the methods that use prompts."
                )
        every = [ids for of_answer in forms for ids in of_answer]
        if len(set(every)) < len(every):
            raise RunError(
                f"{self.name}: the answers {' and '.join(map(repr, answers))} have the same tokens, so the model can't "
                "tell them apart. Choose other answers in a file of templates."
            )


def _common(one: Ids, other: Ids) -> int:
    """Return the length of the common beginning of two texts, in tokens."""
    length = min(len(one), len(other))
    differing = np.flatnonzero(one[:length] != other[:length])
    return int(differing[0]) if len(differing) else length
