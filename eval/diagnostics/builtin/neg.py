"""NEG-136: does a model mind a "not"? (Ettinger 2020, section 9)."""

from collections.abc import Iterator

import pandas as pd

from eval.diagnostics.config import DiagnosticConfig
from eval.diagnostics.diagnostic import Diagnostic, Question, diagnostic
from eval.diagnostics.measures import accuracy_outcomes, by_role, joined, sensitivity_outcomes
from eval.diagnostics.questions import Row, read_rows
from pairscale.errors import InputError

_ARTICLE = "(a|an)"
_COLUMNS = ("item", "context_aff", "context_neg", "target_aff", "target_neg")


@diagnostic("neg")
class Neg(Diagnostic):
    """Sentences affirmed and denied, simple ones and natural ones; "(a|an)" is chosen by the word's first letter."""

    def questions(self, config: DiagnosticConfig) -> Iterator[Question]:
        for row in read_rows(config, "NEG-136-SIMP.tsv", _COLUMNS):
            for name in ("context_aff", "context_neg"):
                if not row[name].endswith(f" {_ARTICLE}"):
                    raise InputError(f"{row.where}: {name} is {row[name]!r}, must end in {_ARTICLE}")
            yield from _polarities("simp", row, None)
        for row in read_rows(config, "NEG-136-NAT.tsv", (*_COLUMNS, "licensing")):
            yield from _polarities("nat", row, row.letter("licensing", "YN"))

    def outcomes(self, cloze: pd.DataFrame) -> pd.DataFrame:
        """Return the outcomes of tables 11, 12 and 14, and those of the shares of section 9.4."""
        true = cloze[(cloze["condition"] == "simp_affirmative") & (cloze["role"] == "true")]
        wide = by_role(cloze, ["condition", "group", "item"])
        margin = (wide["true"] - wide["false"]).reset_index(["condition", "group"], name="margin")
        parts = [
            (f"{prefix} {polarity}", margin["condition"].eq(f"{subset}_{polarity}") & of_group)
            for subset, prefix, of_group in (
                ("simp", "simp", True),
                ("nat", "natural", margin["group"].eq("Y")),
                ("nat", "less natural", margin["group"].eq("N")),
            )
            for polarity in ("affirmative", "negative")
        ]
        parts += [("natural both", margin["group"].eq("Y")), ("less natural both", margin["group"].eq("N"))]
        return joined(
            accuracy_outcomes(true, true["condition"].map({"simp_affirmative": "simp affirmative"})),
            *(sensitivity_outcomes(margin.loc[rows, "margin"], name) for name, rows in parts),
        )


def _polarities(subset: str, row: Row, group: str | None) -> Iterator[Question]:
    item = {"item": f"{subset.upper()}-{row['item']}", "group": group}
    for polarity, condition in (("aff", f"{subset}_affirmative"), ("neg", f"{subset}_negative")):
        for other in ("aff", "neg"):
            target = row[f"target_{other}"]
            context = row[f"context_{polarity}"].replace(_ARTICLE, "an" if target[0] in "aeiou" else "a")
            role = "true" if other == polarity else "false"
            yield {**item, "condition": condition, "context": context, "candidate": target, "role": role}
