"""The method ab_prompt: a question about both sentences of a pair (Ide et al. 2024, section 3.3)."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from eval.config import MethodConfig, PolicyConfig
from eval.methods.method import method
from eval.methods.prompting import Asker, answer_rows, shares
from pairscale.seeds import derived_seed

FIRST, SECOND = "A", "B"  # the sentences of a prompt in the score file, whatever the answers are


@method("ab_prompt", "ab", needs=("seed",))
def ab_prompt(
    asker: Asker, pairs: pd.DataFrame, config: MethodConfig, policy: PolicyConfig
) -> tuple[list[pd.DataFrame], dict[str, Any]]:
    """Return ln of the share of the good sentence's letter, and of the bad one's, between A and B, by template."""
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
    letters = np.where(good_first[:, None], [0, 1], [1, 0])  # (P, 2) of the good sentence, of the bad one
    shape = (len(asker.templates.templates), len(pairs), 2)
    score, lp, counts = (
        np.take_along_axis(values.reshape(shape), letters[None], axis=2).transpose(0, 2, 1)
        for values in (shares(answered), answered.logprobs, answered.counts)
    )
    return [answer_rows(pairs, score[t], lp[t], counts[t], order) for t in range(len(score))], read


def orders(pairs: pd.DataFrame, seed: int) -> npt.NDArray[np.str_]:
    """Return A or B (P,), the place of the good sentence: a coin for each pair, of its name and the seed alone."""
    names = zip(pairs["paradigm"], pairs["pair_id"], strict=True)
    coins = [derived_seed(None, seed, f"order:{paradigm}:{pair_id}") % 2 for paradigm, pair_id in names]
    return np.where(np.asarray(coins, dtype=np.int64) == 0, FIRST, SECOND)
