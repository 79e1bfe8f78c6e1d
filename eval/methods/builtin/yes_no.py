"""The method yes_no: a question about each sentence (Ide et al. 2024, section 3.3)."""

from typing import Any

import pandas as pd

from eval.config import MethodConfig, PolicyConfig
from eval.methods.method import method
from eval.methods.prompting import Asker, answer_rows, shares


@method("yes_no", "yes_no")
def yes_no(
    asker: Asker, pairs: pd.DataFrame, config: MethodConfig, policy: PolicyConfig
) -> tuple[list[pd.DataFrame], dict[str, Any]]:
    """Return ln of P("Yes") / (P("Yes") + P("No")) after a question about each sentence (equation 4), by template.

    good_lp, bad_lp: ln P("Yes"). The logarithm, as the share itself is 1 in floating point where the model is sure.
    """
    prompts = [
        asker.prompt(template.fill(sentence)[0])
        for template in asker.templates.templates
        for sentence in [*pairs["good"], *pairs["bad"]]
    ]
    answered, read = asker.ask(prompts, policy)
    shape = (len(asker.templates.templates), 2, len(pairs))
    score, lp = shares(answered)[:, 0].reshape(shape), answered.logprobs[:, 0].reshape(shape)
    counts = answered.counts[:, 0].reshape(shape)
    return [answer_rows(pairs, score[t], lp[t], counts[t], None) for t in range(len(score))], read
