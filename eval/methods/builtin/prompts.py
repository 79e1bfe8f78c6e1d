"""Define methods that ask a question about each sentence (yes_no) or pair (ab_prompt; Ide et al. 2024, section 3.3).

A base model reads the system message, a newline, the user's message and a cue ("Answer:"). An instruct model reads the
two messages in its chat template. Prompt and answer are tokenized together. They are separated by the language's space
after the cue, or by the white space that a chat template adds before an answer (usually none).
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

FIRST, SECOND = "A", "B"  # names of a prompt's two sentences in score files, for any answers


@dataclass
class PromptParameters(TemplateParameters):
    """The parameters of methods with prompts."""

    chat: bool | None = None  # whether to use the model's chat template; null: use it if the tokenizer has one


@dataclass
class AbPrompt(PromptParameters):
    """The parameters of ab_prompt."""

    seed: Seed = 1  # for drawing which sentence of each pair is A


@dataclass(frozen=True)
class Questions:
    """The questions about P pairs from one template."""

    prompts: list[str]  # the user's messages
    about: npt.NDArray[np.int64]  # (2, P) index of the prompt about the good and about the bad sentence of each pair
    answers: npt.NDArray[np.int64]  # (2, P) index of the answer (0 or 1) that favours this sentence
    order: npt.NDArray[np.str_] | None = None  # (P,) whether the good sentence is A or B


@method("yes_no", PromptParameters(), "yes_no")
def yes_no(template: Template, pairs: pd.DataFrame, parameters: PromptParameters) -> Questions:
    """Ask about each sentence. Its score is p(Yes) / (p(Yes) + p(No)) (Ide et al. 2024, equation 4)."""
    prompts = [template.fill(sentence)[0] for sentence in [*pairs["good"], *pairs["bad"]]]
    about = np.arange(len(prompts)).reshape(2, -1)
    return Questions(prompts, about, np.zeros_like(about))


@method("ab_prompt", AbPrompt(), "ab")
def ab_prompt(template: Template, pairs: pd.DataFrame, parameters: AbPrompt) -> Questions:
    """Ask which sentence is better. A score is the share of its letter in p(A) + p(B) (Ide et al. 2024, 3.3)."""
    order = orders(pairs, parameters.seed)
    good_first = order == FIRST
    first = np.where(good_first, pairs["good"], pairs["bad"])
    second = np.where(good_first, pairs["bad"], pairs["good"])
    prompts = [template.fill(a, b)[0] for a, b in zip(first, second, strict=True)]
    about = np.tile(np.arange(len(pairs)), (2, 1))
    return Questions(prompts, about, np.stack([~good_first, good_first]).astype(np.int64), order)


def orders(pairs: pd.DataFrame, seed: int) -> npt.NDArray[np.str_]:
    """Draw whether the good sentence of each pair is A or B (P,), depending only on the pair's name and the seed."""
    names = zip(pairs["paradigm"], pairs["pair_id"], strict=True)
    coins = [derived_seed(None, seed, f"order:{paradigm}:{pair_id}") % 2 for paradigm, pair_id in names]
    return np.where(np.asarray(coins) == 0, FIRST, SECOND)


def chat_template_of(method: str, scorer: Scorer, chat: bool | None) -> ChatTemplate | None:
    """Return the chat template for prompts, or None for plain prompts.

    Raises ConfigError if the model can't answer prompts, if `chat` is true but there is no chat template, or if the
    template fails.
    """
    if not scorer.answers_prompts:
        raise ConfigError(f"method={method}: {scorer.name} can't answer prompts. Leave this method out.")
    if chat and scorer.chat_template is None:
        raise ConfigError(f"method.{method}.chat=true: {scorer.name} has no chat template. Set it to false.")
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
    """Ask the questions of each template about P pairs.

    A score is the logarithm of an answer's share of the probability of both answers. The share itself would be rounded
    to 1 if the model is very confident.

    Returns:
        The columns (P,) for each template, and metadata. The metadata contain an example of a prompt and the tokens of
        the answers. If a chat template is used, system_role is False if it doesn't support a system message.
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
    shares = -np.logaddexp(0, np.stack([other - one, one - other], axis=1))  # exact even for shares close to 1
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
