"""NEG-136: does a model mind a "not"? (Ettinger 2020, section 9)."""

from collections.abc import Iterator
from typing import Annotated, Literal

import pandas as pd
from msgspec import Meta

from eval.diagnostics.config import DiagnosticConfig
from eval.diagnostics.diagnostic import Diagnostic, Question, diagnostic
from eval.diagnostics.measures import accuracy_outcomes, by_role, sensitivity_outcomes
from eval.diagnostics.questions import Filled, Item, read_rows

ARTICLE = "(a|an)"


class Pair(Item):
    context_aff: Filled
    context_neg: Filled
    target_aff: Filled
    target_neg: Filled


class Simple(Pair):
    context_aff: Annotated[str, Meta(pattern=r" \(a\|an\)$")]
    context_neg: Annotated[str, Meta(pattern=r" \(a\|an\)$")]


class Natural(Pair):
    licensing: Literal["Y", "N"]


@diagnostic("neg")
class Neg(Diagnostic):
    """Sentences affirmed and denied, simple ones and natural ones; "(a|an)" is chosen by the word's first letter."""

    def questions(self, config: DiagnosticConfig) -> Iterator[Question]:
        for simple in read_rows(config, "NEG-136-SIMP.tsv", Simple):
            yield from _polarities("simp", simple, None)
        for natural in read_rows(config, "NEG-136-NAT.tsv", Natural):
            yield from _polarities("nat", natural, natural.licensing)

    def outcomes(self, cloze: pd.DataFrame) -> pd.DataFrame:
        """Return the outcomes of tables 11, 12 and 14, and those of the shares of section 9.4."""
        true = cloze[(cloze["condition"] == "simp_affirmative") & (cloze["role"] == "true")]
        wide = by_role(cloze, ["condition", "group", "item"])
        margin = wide["true"] - wide["false"]
        condition, group = (margin.index.get_level_values(name) for name in ("condition", "group"))
        margin = margin.droplevel(["condition", "group"])
        parts = [accuracy_outcomes(true, true["condition"].str.replace("_", " "))]
        for subset, name, of in (("simp", "simp", ""), ("nat", "natural", "Y"), ("nat", "less natural", "N")):
            for polarity in ("affirmative", "negative"):
                rows = (condition == f"{subset}_{polarity}") & (group == of)
                parts.append(sensitivity_outcomes(margin[rows], f"{name} {polarity}"))
        parts.append(sensitivity_outcomes(margin[group == "Y"], "natural both"))
        parts.append(sensitivity_outcomes(margin[group == "N"], "less natural both"))
        return pd.concat(parts)


def _polarities(subset: str, row: Pair, group: str | None) -> Iterator[Question]:
    item = {"item": f"{subset.upper()}-{row.item}", "group": group}
    targets = {"affirmative": row.target_aff, "negative": row.target_neg}
    for polarity, context in (("affirmative", row.context_aff), ("negative", row.context_neg)):
        for other, target in targets.items():
            asked = context.replace(ARTICLE, "an" if target[0] in "aeiou" else "a")
            role = "true" if other == polarity else "false"
            condition = f"{subset}_{polarity}"
            yield {**item, "condition": condition, "context": asked, "candidate": target, "role": role}
