"""Methods that ask: yes_no about each sentence, ab_prompt about both of a pair (Ide et al. 2024, section 3.3).

A base model reads the system message, a line's end, the user's message and a cue ("Answer:"); an instruct model what
its chat template makes of the two messages. An answer is the tokenizer's own continuation of the prompt: with the space
that its language has after the cue, or with what a chat template puts before an answer (mostly nothing).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from eval.methods.method import method
from eval.methods.templates import Template, TemplateParameters, Templates
from pairscale.command.schemas import Seed
from pairscale.errors import ConfigError
from pairscale.seeds import derived_seed

if TYPE_CHECKING:
    import pandas as pd

    from eval.config import PolicyConfig
    from eval.scorers.base import Scorer
    from eval.scorers.chat import ChatTemplate

FIRST, SECOND = "A", "B"  # the sentences of a prompt in the score file, whatever the answers are


@dataclass
class PromptParameters(TemplateParameters):
    """Parameters of a method that asks."""

    chat: bool | None = None  # null: the model's chat template where its tokenizer has one; true | false


@dataclass
class AbPrompt(PromptParameters):
    """Parameters of ab_prompt."""

    seed: Seed = 1  # draws for each pair which sentence is A


@dataclass(frozen=True)
class Questions:
    """The questions about P pairs that one template makes."""

    prompts: list[str]  # the user's messages
    about: npt.NDArray[np.int64]  # (2, P) the number of the prompt about the good sentence, and the bad one
    answers: npt.NDArray[np.int64]  # (2, P) which answer, 0 or 1, is for the sentence
    order: npt.NDArray[np.str_] | None = None  # (P,) A or B, the place of the good sentence


@method("yes_no", PromptParameters(), "yes_no")
def yes_no(template: Template, pairs: pd.DataFrame, parameters: PromptParameters) -> Questions:
    """Share of Yes between Yes and No, after a question about the sentence (Ide et al. 2024, equation 4)."""
    prompts = [template.fill(sentence)[0] for sentence in [*pairs["good"], *pairs["bad"]]]
    about = np.arange(len(prompts)).reshape(2, -1)
    return Questions(prompts, about, np.zeros_like(about))


@method("ab_prompt", AbPrompt(), "ab")
def ab_prompt(template: Template, pairs: pd.DataFrame, parameters: AbPrompt) -> Questions:
    """Share of its letter between A and B, after a question about both sentences (Ide et al. 2024, section 3.3)."""
    order = orders(pairs, parameters.seed)
    good_first = order == FIRST
    first = np.where(good_first, pairs["good"], pairs["bad"])
    second = np.where(good_first, pairs["bad"], pairs["good"])
    prompts = [template.fill(a, b)[0] for a, b in zip(first, second, strict=True)]
    about = np.tile(np.arange(len(pairs)), (2, 1))
    return Questions(prompts, about, np.stack([~good_first, good_first]).astype(np.int64), order)


def orders(pairs: pd.DataFrame, seed: int) -> npt.NDArray[np.str_]:
    """Return A or B (P,), the place of the good sentence: a coin for each pair, of its name and the seed alone."""
    names = zip(pairs["paradigm"], pairs["pair_id"], strict=True)
    coins = [derived_seed(None, seed, f"order:{paradigm}:{pair_id}") % 2 for paradigm, pair_id in names]
    return np.where(np.asarray(coins) == 0, FIRST, SECOND)


def chat_template_of(method: str, scorer: Scorer, chat: bool | None) -> ChatTemplate | None:
    """Return the chat template that prompts are put in, None for plain prompts.

    Raises ConfigError for a model that answers no prompts, or has no chat template (for `chat`) that works.
    """
    if not scorer.answers_prompts:
        raise ConfigError(f"method={method}: a model of this kind cannot answer prompts")
    if chat and scorer.chat_template is None:
        raise ConfigError(f"method.{method}.chat=true: {scorer.name} has no chat template")
    template = None if chat is False else scorer.chat_template
    if template is not None:
        template.check()
    return template


def ask(
    scorer: Scorer,
    questions: Mapping[Template, Questions],
    templates: Templates,
    chat_template: ChatTemplate | None,
    policy: PolicyConfig,
    pairs: pd.DataFrame,
) -> tuple[dict[Template, dict[str, Any]], dict[str, Any]]:
    """Ask the questions of each template about `pairs`.

    Returns the columns (P,) of each template, and for metadata one prompt as the model read it, the answers' tokens,
    and system_role of a chat template: False if the system message stands first in the user's. The score is the
    logarithm of the answer's share of the probability of both, as the share itself is 1 where the model is sure.
    """
    from eval.methods.sides import naming_the_pair

    users = [prompt for of_template in questions.values() for prompt in of_template.prompts]
    if chat_template is not None:
        prompts = [chat_template.prompt(templates.system, user) for user in users]
        space = chat_template.space
    else:
        lines = [templates.system] if templates.system else []
        prompts = ["\n".join([*lines, user]) + (templates.cue or "") for user in users]
        space = templates.space or ""
    answers = [space + answer for answer in templates.answers or ()]
    with naming_the_pair(prompts, pairs):
        answered = scorer.continuations(prompts, answers, policy, chat_template is not None)
    read: dict[str, Any] = {"example": prompts[0], "answers": dict(zip(answers, answered.tokens, strict=True))}
    if chat_template is not None:
        read["system_role"] = chat_template.takes_system
    one, other = answered.logprobs.T
    shares = -np.logaddexp(0, np.stack([other - one, one - other], axis=1))  # one next to 1 keeps its distance
    values = {"": shares, "_lp": answered.logprobs, "_tokens": answered.counts}
    columns: dict[Template, dict[str, Any]] = {}
    first = 0
    for template, asked in questions.items():
        columns[template] = {"order": asked.order}
        for end, table in values.items():
            good, bad = table[asked.about + first, asked.answers]
            columns[template] |= {f"good{end}": good, f"bad{end}": bad}
        first += len(asked.prompts)
    return columns, read
