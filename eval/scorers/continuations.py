"""Answers to prompts by models that read from left to right: log-probabilities of continuations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from eval.config import PLAIN, PolicyConfig
from eval.scorers.base import Continuations, FloatArray, Scorer
from eval.scorers.too_long import TextTooLong
from eval.scorers.trees import Ids
from pairscale.errors import RunError
from pairscale.progress import with_progress

ENCODED = 4096  # prompts whose tokens are made at a time
READ = 1 << 17  # prompts that are read together: their texts are held, and all templates of a benchmark are millions


class PromptedScorer(Scorer):
    """Scorers that answer prompts."""

    answers_prompts = True
    progress: bool

    @abstractmethod
    def _ids(self, texts: Sequence[str]) -> list[Ids]:
        """Return the tokens of each text, without any symbol that the tokenizer would add."""

    @abstractmethod
    def _token(self, index: int) -> str:
        """Return the text of a token."""

    @property
    @abstractmethod
    def _unknown(self) -> int | None:
        """The id of `<unk>`."""

    @abstractmethod
    def _continued(self, texts: list[Ids], first: list[int], policy: PolicyConfig, chat: bool) -> list[FloatArray]:
        """Return ln p of the tokens of each text from its `first` on."""

    def continuations(
        self, prompts: Sequence[str], answers: Sequence[str], policy: PolicyConfig = PLAIN, chat: bool = False
    ) -> Continuations:
        """Return ln p (nats) of each answer as the tokenizer's own continuation of each prompt.

        The tokens of prompt and answer are those of the two in one text. An answer begins where these part from the
        tokens of the prompt alone, for the first of the answers to do so: all answers of a prompt follow the same
        tokens, also where a tokenizer joins the prompt's end to an answer.
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


def _common(one: Ids, other: Ids) -> int:
    """Number of tokens that two texts begin with in common."""
    length = min(len(one), len(other))
    differing = np.flatnonzero(one[:length] != other[:length])
    return int(differing[0]) if len(differing) else length
