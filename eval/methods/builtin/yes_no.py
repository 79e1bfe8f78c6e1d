"""The method yes_no: a question about each sentence (Ide et al. 2024, section 3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eval.methods.method import method
from eval.methods.prompting import PromptParameters, Questions
from eval.methods.templates import Template

if TYPE_CHECKING:
    import pandas as pd


@method("yes_no", PromptParameters(), "yes_no")
def yes_no(template: Template, pairs: pd.DataFrame, parameters: PromptParameters) -> Questions:
    """Share of Yes between Yes and No, after a question about the sentence (Ide et al. 2024, equation 4)."""
    prompts = [template.fill(sentence)[0] for sentence in [*pairs["good"], *pairs["bad"]]]
    about = np.arange(len(prompts)).reshape(2, -1)
    return Questions(prompts, about, np.zeros_like(about))
