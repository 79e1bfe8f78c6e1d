"""CPRAG-102: does a model infer from one sentence which noun ends the next? (Ettinger 2020, section 7)."""

from collections.abc import Iterator
from typing import Literal

import pandas as pd

from eval.diagnostics.config import DiagnosticConfig
from eval.diagnostics.diagnostic import Diagnostic, Question, diagnostic
from eval.diagnostics.measures import accuracy_outcomes, by_role, sensitivity_outcomes
from eval.diagnostics.questions import Filled, Item, read_rows
from pairscale.seeds import permutation

CONDITIONS = ("original", "shuffled", "truncated", "shuffled_truncated")


class Context(Item):
    context_s1: Filled
    context_s2: Filled
    expected: Filled
    within_category: Filled
    between_category: Filled
    constraint: Literal["H", "L"]


@diagnostic("cprag")
class Cprag(Diagnostic):
    """Contexts of two sentences, also perturbed as section 7.1 says.

    What it leaves open follows the authors' script (github.com/aetting/lm-diagnostics). truncated: of the second
    sentence only the last two words stay. shuffled: the first sentence's words in a drawn order, its final mark kept at
    the end. A trial has one order, with and without truncation.
    """

    def questions(self, config: DiagnosticConfig) -> Iterator[Question]:
        for number, row in enumerate(read_rows(config, "CPRAG-102.tsv", Context)):
            first, second = row.context_s1, row.context_s2
            item = {"item": row.item, "group": row.constraint}
            for role in ("expected", "within_category", "between_category"):
                original = {"condition": "original", "context": f"{first} {second}"}
                yield {**item, **original, "candidate": getattr(row, role), "role": role}
            cut = " ".join(second.split()[-2:])
            perturbed: list[tuple[str, int | None, str]] = [("truncated", None, f"{first} {cut}")]
            for trial in range(1, (config.shuffles or 0) + 1):
                shuffled = _shuffled(first, config.seed or 0, trial, number)
                perturbed.append(("shuffled", trial, f"{shuffled} {second}"))
                perturbed.append(("shuffled_truncated", trial, f"{shuffled} {cut}"))
            expected = {**item, "candidate": row.expected, "role": "expected"}
            for condition, drawn, context in perturbed:
                yield {**expected, "condition": condition, "trial": drawn, "context": context}

    def outcomes(self, cloze: pd.DataFrame) -> pd.DataFrame:
        """Return the outcomes of tables 4 and 5."""
        expected = cloze[cloze["role"] == "expected"]
        ranked = pd.concat([expected[expected["condition"] == condition] for condition in CONDITIONS])
        wide = by_role(cloze[cloze["condition"] == "original"], "item")
        bad = wide[["within_category", "between_category"]].max(axis=1, skipna=False)
        sensitivity = sensitivity_outcomes(wide["expected"] - bad, "original")
        return pd.concat([accuracy_outcomes(ranked, ranked["condition"]), sensitivity])


def _shuffled(sentence: str, *seeds: int) -> str:
    """Return the words of a sentence in an order drawn from `seeds`; its final mark stays at the end."""
    body = sentence.rstrip(".!?")
    words = body.split()
    return " ".join(words[index] for index in permutation(len(words), *seeds)) + sentence[len(body) :]
