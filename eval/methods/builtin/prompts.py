"""Methods that ask: yes_no about each sentence, ab_prompt about both of a pair (Ide et al. 2024, section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from eval.methods.method import method
from eval.methods.prompting import PromptParameters, Questions
from eval.methods.templates import Template
from pairscale.command.schemas import Seed
from pairscale.seeds import derived_seed

if TYPE_CHECKING:
    import pandas as pd

FIRST, SECOND = "A", "B"  # the sentences of a prompt in the score file, whatever the answers are


@dataclass
class AbPrompt(PromptParameters):
    """Parameters of ab_prompt."""

    seed: Seed = 1  # draws for each pair which sentence is A


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
