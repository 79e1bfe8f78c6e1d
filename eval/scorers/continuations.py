"""What a model that reads from left to right would answer: log-probabilities of continuations of a prompt."""

from __future__ import annotations

import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import numpy.typing as npt

from corpora.tokenizers import UNK, Tokenizer
from eval.config import PolicyConfig
from eval.scorers.forward import error_line
from eval.scorers.hf_tokenizers import chat_template_digest, check_embedded
from eval.scorers.too_long import TextTooLong
from pairscale.errors import ConfigError, RunError
from pairscale.progress import with_progress

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Ids = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
TEMPLATE_SECONDS = 10  # that a chat template, which is anyone's, may take for one message
ENCODED = 4096  # prompts whose tokens are made at a time
READ = 1 << 17  # prompts that are read together: their texts are held, and all templates of a benchmark are millions


@dataclass(frozen=True)
class Continuations:
    """Of N prompts and A answers.

    logprobs: (N, A) ln p of the answer's tokens after those of the prompt, summed. counts: (N, A) how many they are.
    tokens: for each answer the tokens that it became; more than one string of them where prompts end differently.
    """

    logprobs: FloatArray
    counts: npt.NDArray[np.int64]
    tokens: list[list[list[str]]]


class Answering(ABC):
    """Scorers that can be asked something."""

    name: str
    progress: bool

    @property
    def has_chat(self) -> bool:
        """Whether `chat` can be asked for."""
        return False

    @abstractmethod
    def _ids(self, texts: Sequence[str]) -> list[Ids]:
        """Tokens of each text, without any symbol that the tokenizer would add."""

    @abstractmethod
    def _token(self, index: int) -> str: ...

    @property
    @abstractmethod
    def _unknown(self) -> int | None:
        """The id of `<unk>`."""

    @abstractmethod
    def _continued(self, texts: list[Ids], first: list[int], policy: PolicyConfig, chat: bool) -> list[FloatArray]:
        """ln p of the tokens of each text from its `first` on."""

    @property
    def chat_digest(self) -> str | None:
        """Of the chat template, where there is one."""
        return None

    @property
    def chat_space(self) -> str:
        """What the chat template puts between the prompt and an answer, where that is white space."""
        return ""

    def check_chat(self) -> None:
        """Raise ConfigError for a chat template that fails on every message, or does not come to an end."""
        raise ConfigError(f"{self.name} has no chat template")

    def chat(self, system: str | None, user: str) -> str:
        """The prompt that the model's chat template makes of two messages."""
        raise ConfigError(f"{self.name} has no chat template")

    def continuations(
        self, prompts: Sequence[str], answers: Sequence[str], policy: PolicyConfig, chat: bool = False
    ) -> Continuations:
        """ln p (nats) of each answer as the tokenizer's own continuation of each prompt.

        The tokens of prompt and answer are those of the two in one text. An answer begins where these part from the
        tokens of the prompt alone, for the first of the answers to do so: all answers of a prompt follow the same
        tokens, also where a tokenizer joins the prompt's end to an answer. `chat`: prompts are of a chat template,
        and nothing is put before them.
        Raises RunError where the model cannot tell the answers apart, or one is unknown to it.
        """
        logprobs, counts = np.empty((len(prompts), len(answers))), np.empty((len(prompts), len(answers)), np.int64)
        forms: list[dict[tuple[int, ...], None]] = [{} for _ in answers]  # what each answer became, as it appeared
        for start in range(0, len(prompts), READ):
            part = slice(start, start + READ)
            texts, keys = self._joined(prompts[part], answers)
            for number, became in enumerate(forms):
                became.update(
                    dict.fromkeys(tuple(texts[key][key[1] :].tolist()) for key in keys[number :: len(answers)])
                )
            self._check_forms(forms, answers)
            try:
                values = self._continued(list(texts.values()), [first for _, first in texts], policy, chat)
            except TextTooLong as error:  # of the different texts; which prompt it is of is told above
                number = keys.index(list(texts)[error.index]) // len(answers)
                raise error.at(start + number) from None
            found = {key: (float(value.sum()), len(value)) for key, value in zip(texts, values, strict=True)}
            logprobs[part] = np.asarray([found[key][0] for key in keys]).reshape(-1, len(answers))
            counts[part] = np.asarray([found[key][1] for key in keys]).reshape(-1, len(answers))
        told = [[[self._token(index) for index in ids] for ids in became] for became in forms]
        return Continuations(logprobs, counts, told)

    def _joined(
        self, prompts: Sequence[str], answers: Sequence[str]
    ) -> tuple[dict[tuple[bytes, int], Ids], list[tuple[bytes, int]]]:
        """The different texts of prompts with answers and where in each the answer begins, by a key; the key of each.

        Keys are in the order of prompts, and of answers within a prompt.
        """
        texts: dict[tuple[bytes, int], Ids] = {}
        keys: list[tuple[bytes, int]] = []
        parts = [prompts[start : start + ENCODED] for start in range(0, len(prompts), ENCODED)]
        counted = ((len(part), part) for part in parts)
        for part in (
            with_progress(counted, f"encoding for {self.name}", len(prompts), "prompts") if self.progress else parts
        ):
            alone = self._ids(part)
            whole = self._ids([prompt + answer for prompt in part for answer in answers])
            for number, prompt in enumerate(alone):
                given = whole[number * len(answers) : (number + 1) * len(answers)]
                first = min(_common(prompt, ids) for ids in given)
                for ids in given:
                    keys.append((ids.tobytes(), first))
                    texts[keys[-1]] = ids
        return texts, keys

    def _check_forms(self, forms: list[dict[tuple[int, ...], None]], answers: Sequence[str]) -> None:
        for answer, became in zip(answers, forms, strict=True):
            if any(self._unknown in ids for ids in became) or () in became:
                raise RunError(f"{self.name}: has no tokens for the answer {answer!r} (<unk>)")
        every = [ids for became in forms for ids in became]
        if len(set(every)) < len(every):
            raise RunError(f"{self.name}: the answers {' and '.join(map(repr, answers))} are the same tokens to it")


class ModelAnswering(Answering):
    """Our own models: a prompt begins after `<eos>`, as a sentence does."""

    tokenizer: Tokenizer

    @abstractmethod
    def _logprobs(
        self, targets: list[Ids], policy: PolicyConfig, first: Sequence[int] | None = None
    ) -> list[FloatArray]: ...

    def _ids(self, texts: Sequence[str]) -> list[Ids]:
        return [np.asarray(self.tokenizer.encode_raw(text)[0], dtype=np.int64) for text in texts]

    def _token(self, index: int) -> str:
        return self.tokenizer.token(index)

    @property
    def _unknown(self) -> int | None:
        return UNK

    def _continued(self, texts: list[Ids], first: list[int], policy: PolicyConfig, chat: bool) -> list[FloatArray]:
        return self._logprobs(texts, policy, first)


class CausalAnswering(Answering):
    """Hugging Face models: a prompt begins after the begin symbol, one of a chat template as the template says."""

    tokenizer: PreTrainedTokenizerFast
    vocabulary: int

    @abstractmethod
    def _before(self, policy: PolicyConfig) -> list[int]: ...

    @abstractmethod
    def _check_lengths(self, before: list[int], targets: list[Ids]) -> None: ...

    @abstractmethod
    def _logprobs(
        self, before: list[int], targets: list[Ids], policy: PolicyConfig, first: Sequence[int] | None = None
    ) -> list[FloatArray]: ...

    def _ids(self, texts: Sequence[str]) -> list[Ids]:
        found = self.tokenizer(list(texts), add_special_tokens=False, return_attention_mask=False)["input_ids"]
        for text, ids in zip(texts, found, strict=True):
            check_embedded(self.tokenizer, text, ids, self.vocabulary, self.name)
        return [np.asarray(ids, dtype=np.int64) for ids in found]

    def _token(self, index: int) -> str:
        return str(self.tokenizer.convert_ids_to_tokens(index))

    @property
    def _unknown(self) -> int | None:
        unk: int | None = self.tokenizer.unk_token_id
        return unk

    def _continued(self, texts: list[Ids], first: list[int], policy: PolicyConfig, chat: bool) -> list[FloatArray]:
        before = self._before(policy)
        if not chat:
            self._check_lengths(before, texts)
            return self._logprobs(before, texts, policy, first)
        if policy.context != "none":
            raise ConfigError(f"policy.context={policy.context}: a chat template says itself what a prompt begins with")
        # The first token is read and not asked for; it is BOS or the mark of a message, and one for all prompts.
        self._check_lengths([0], [ids[1:] for ids in texts])
        results = [np.empty(0)] * len(texts)
        for begin in dict.fromkeys(int(ids[0]) for ids in texts):
            of = [i for i, ids in enumerate(texts) if ids[0] == begin]
            values = self._logprobs([begin], [texts[i][1:] for i in of], policy, [first[i] - 1 for i in of])
            for i, value in zip(of, values, strict=True):
                results[i] = value
        return results

    @property
    def has_chat(self) -> bool:
        return self.tokenizer.chat_template is not None

    @property
    def chat_digest(self) -> str | None:
        return chat_template_digest(self.tokenizer) if self.has_chat else None

    @cached_property
    def system_role(self) -> bool:
        """Whether the chat template takes a system message: some raise an error for one, some leave it out."""
        try:
            return "a probe" in self._rendered([("system", "a probe"), ("user", "a question")])
        except ConfigError:
            return False

    @cached_property
    def chat_space(self) -> str:
        """As the template itself writes a conversation with an answer: a space in Llama 2's, none in most."""
        asked, answer = [("user", "a question")], "an answer"
        try:
            prompt, answered = self._rendered(asked), self._rendered([*asked, ("assistant", answer)], to_answer=False)
        except ConfigError:
            return ""
        between = answered.removeprefix(prompt).partition(answer)[0]
        return between if between.isspace() else ""

    def chat(self, system: str | None, user: str) -> str:
        """The text of the chat template, up to where the answer begins; a system message that it refuses goes first in
        the user's."""
        if not system:
            return self._rendered([("user", user)])
        if self.system_role:
            return self._rendered([("system", system), ("user", user)])
        return self._rendered([("user", f"{system}\n{user}")])

    def check_chat(self) -> None:
        """Raise ConfigError for a chat template that fails on every message, or does not come to an end."""
        with _time_limit(f"{self.name}: its chat template"):
            if not self.system_role:
                self._rendered([("user", "a question")])

    def _rendered(self, messages: list[tuple[str, str]], to_answer: bool = True) -> str:
        conversation = [{"role": role, "content": content} for role, content in messages]
        try:
            # Some templates tell the day: the same prompt has to be the same tomorrow.
            rendered = self.tokenizer.apply_chat_template(
                conversation, tokenize=False, add_generation_prompt=to_answer, date_string="26 Jul 2024"
            )
        except Exception as error:  # of a template that is anyone's: its syntax, what it raises, what it may not do
            raise ConfigError(
                f"{self.name}: its chat template fails ({error_line(error)}); chat=false of the method asks without it"
            ) from error
        return str(rendered)


class _TooLate(BaseException):
    """Not an Exception, which the code that it interrupts may take for an error of its own."""


@contextmanager
def _time_limit(what: str) -> Iterator[None]:
    """Raise ConfigError after TEMPLATE_SECONDS; signals reach the main thread alone, so elsewhere there is no limit."""

    def stop(*_: object) -> NoReturn:
        raise _TooLate

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, TEMPLATE_SECONDS)
    try:
        yield
    except _TooLate:
        told = f"{what} is not done after {TEMPLATE_SECONDS} seconds; chat=false of the method asks without it"
        raise ConfigError(told) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _common(one: Ids, other: Ids) -> int:
    """Number of tokens that two texts begin with in common."""
    length = min(len(one), len(other))
    differing = np.flatnonzero(one[:length] != other[:length])
    return int(differing[0]) if len(differing) else length
