"""Methods that ask the model: yes_no, about one sentence, and ab_prompt, about both (Ide et al. 2024, section 3.3).

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

from eval.config import MethodConfig, PolicyConfig
from eval.methods.templates import Templates
from eval.scorers.base import Continuations, Scorer
from eval.scorers.chat import ChatTemplate
from pairscale.errors import ConfigError
from pairscale.seeds import derived_seed

FIRST, SECOND = "A", "B"  # the sentences of a prompt in the score file, whatever the answers are


@dataclass(frozen=True)
class Asker:
    """A model, the templates of its prompts, and the chat template that they are put in, if any."""

    scorer: Scorer
    templates: Templates
    chat_template: ChatTemplate | None

    @classmethod
    def of(cls, method: str, scorer: Scorer, templates: Templates, chat: bool | None) -> Asker:
        """Return the asker of a method; `chat` null uses the model's chat template if it has one.

        Raises ConfigError for a model that answers no prompts, or has no chat template that works.
        """
        if not scorer.answers_prompts:
            raise ConfigError(f"method={method}: a model of this kind cannot be asked anything")
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


def yes_no(
    asker: Asker, pairs: pd.DataFrame, config: MethodConfig, policy: PolicyConfig
) -> tuple[list[pd.DataFrame], dict[str, Any]]:
    """ln of P("Yes") / (P("Yes") + P("No")) after a question about each sentence (equation 4), for each template.

    good_lp, bad_lp: ln P("Yes"). The logarithm, as the share itself is 1 in floating point where the model is sure.
    """
    prompts = [
        asker.prompt(template.fill(sentence)[0])
        for template in asker.templates.templates
        for sentence in [*pairs["good"], *pairs["bad"]]
    ]
    answered, read = asker.ask(prompts, policy)
    shape = (len(asker.templates.templates), 2, len(pairs))
    score, lp = _share(answered)[:, 0].reshape(shape), answered.logprobs[:, 0].reshape(shape)
    counts = answered.counts[:, 0].reshape(shape)
    rows = [_rows(pairs, score[t], lp[t], counts[t], None) for t in range(len(score))]
    return rows, read


def ab_prompt(
    asker: Asker, pairs: pd.DataFrame, config: MethodConfig, policy: PolicyConfig
) -> tuple[list[pd.DataFrame], dict[str, Any]]:
    """ln of the share of the good sentence's letter, and of the bad one's, between A and B, for each template.

    The model may say nothing but A or B and says the likelier, which is what the higher score is.
    """
    assert config.seed is not None
    order = orders(pairs, config.seed)
    good_first = order == FIRST
    first = np.where(good_first, pairs["good"], pairs["bad"])
    second = np.where(good_first, pairs["bad"], pairs["good"])
    prompts = [
        asker.prompt(template.fill(a, b)[0])
        for template in asker.templates.templates
        for a, b in zip(first, second, strict=True)
    ]
    answered, read = asker.ask(prompts, policy)
    # Columns first the good sentence's letter, then the bad one's.
    letters = np.where(good_first[:, None], [0, 1], [1, 0])
    shape = (len(asker.templates.templates), len(pairs), 2)
    score, lp, counts = (
        np.take_along_axis(values.reshape(shape), letters[None], axis=2).transpose(0, 2, 1)
        for values in (_share(answered), answered.logprobs, answered.counts)
    )
    rows = [_rows(pairs, score[t], lp[t], counts[t], order) for t in range(len(score))]
    return rows, read


def orders(pairs: pd.DataFrame, seed: int) -> npt.NDArray[np.str_]:
    """(P,) whether the good sentence is A or B: a coin for each pair, of its name and the seed alone."""
    names = zip(pairs["paradigm"], pairs["pair_id"], strict=True)
    coins = [derived_seed(None, seed, f"order:{paradigm}:{pair_id}") % 2 for paradigm, pair_id in names]
    return np.where(np.asarray(coins, dtype=np.int64) == 0, FIRST, SECOND)


def _share(answered: Continuations) -> npt.NDArray[np.float64]:
    """(N, 2) ln of each answer's share of the probability of both.

    Written so that a share next to 1 keeps its distance from it: else sure judgements would tie.
    """
    one, other = answered.logprobs[:, 0], answered.logprobs[:, 1]
    return -np.logaddexp(0, np.stack([other - one, one - other], axis=1))


def _rows(
    pairs: pd.DataFrame,
    score: npt.NDArray[np.float64],
    lp: npt.NDArray[np.float64],
    counts: npt.NDArray[np.int64],
    order: npt.NDArray[np.str_] | None,
) -> pd.DataFrame:
    """Columns of one template from (2, P) arrays, good then bad."""
    columns = {
        f"{side}{end}": values[number]
        for end, values in (("", score), ("_lp", lp), ("_tokens", counts))
        for number, side in enumerate(("good", "bad"))
    }
    return pd.DataFrame(columns, index=pairs.index).assign(order=order)
