"""Prompts: questions to a model, and its answers as scores (Ide et al. 2024, section 3.3).

A base model reads the system message, a line's end, the user's message and a cue ("Answer:"); an instruct model what
its chat template makes of the two messages. An answer is the tokenizer's own continuation of the prompt: with the space
that its language has after the cue, or with what a chat template puts before an answer (mostly nothing).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from eval.config import PolicyConfig
from eval.methods.templates import Templates
from eval.scorers.base import Continuations, Scorer
from eval.scorers.chat import ChatTemplate
from pairscale.errors import ConfigError


@dataclass(frozen=True)
class Asker:
    """A model, the templates of its prompts, and the chat template that they are put in, if any."""

    scorer: Scorer
    templates: Templates
    chat_template: ChatTemplate | None

    @classmethod
    def of(cls, method: str, scorer: Scorer, templates: Templates, chat: bool | None) -> Asker:
        """Raises ConfigError for a model that answers no prompts, or has no chat template (for `chat`) that works."""
        if not scorer.answers_prompts:
            raise ConfigError(f"method={method}: a model of this kind cannot answer prompts")
        if chat and scorer.chat_template is None:
            raise ConfigError(f"method.{method}.chat=true: {scorer.name} has no chat template")
        template = None if chat is False else scorer.chat_template
        if template is not None:
            template.check()
        return cls(scorer, templates, template)

    def prompt(self, user: str) -> str:
        """Return what the model reads before its answer to the message `user`."""
        if self.chat_template is not None:
            return self.chat_template.prompt(self.templates.system, user)
        return "\n".join(filter(None, [self.templates.system, user])) + (self.templates.cue or "")

    @property
    def answers(self) -> list[str]:
        """The two answers as they follow a prompt."""
        space = self.chat_template.space if self.chat_template is not None else self.templates.space or ""
        return [space + answer for answer in self.templates.answers or ()]

    def ask(self, prompts: list[str], policy: PolicyConfig) -> tuple[Continuations, dict[str, Any]]:
        """Return the answers to prompts and, for metadata, one prompt as the model read it and the answers' tokens."""
        answered = self.scorer.continuations(prompts, self.answers, policy, self.chat_template is not None)
        read: dict[str, Any] = {
            "example": next(iter(prompts), ""),
            "answers": dict(zip(self.answers, answered.tokens, strict=True)),
        }
        if self.chat_template is not None:
            read["system_role"] = self.chat_template.takes_system  # false: the message stands first in the user's
        return answered, read


def shares(answered: Continuations) -> npt.NDArray[np.float64]:
    """Return ln (N, 2) of each answer's share of the probability of both; a share next to 1 keeps its distance."""
    one, other = answered.logprobs[:, 0], answered.logprobs[:, 1]
    return -np.logaddexp(0, np.stack([other - one, one - other], axis=1))


def answer_rows(
    pairs: pd.DataFrame,
    score: npt.NDArray[np.float64],
    lp: npt.NDArray[np.float64],
    counts: npt.NDArray[np.int64],
    order: npt.NDArray[np.str_] | None,
) -> pd.DataFrame:
    """Return the columns of one template from (2, P) arrays, good then bad."""
    values = {"": score, "_lp": lp, "_tokens": counts}
    columns = {
        f"{side}{end}": row for end, rows in values.items() for side, row in zip(("good", "bad"), rows, strict=True)
    }
    return pd.DataFrame(columns, index=pairs.index).assign(order=order)
