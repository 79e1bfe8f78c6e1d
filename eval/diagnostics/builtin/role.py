"""ROLE-88: does a model tell who did it from word order? (Ettinger 2020, section 8)."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import numpy as np
import pandas as pd
from msgspec import Meta

from eval.diagnostics.config import DiagnosticConfig
from eval.diagnostics.diagnostic import Diagnostic, Question, diagnostic
from eval.diagnostics.measures import accuracy_outcomes, sensitivity_outcomes
from eval.diagnostics.questions import Filled, Item, read_rows
from pairscale.errors import InputError
from pairscale.schema import Share

ROLES = re.compile(r"^(.*\bwhich )(.+)( the )(.+)( had)$")


class Context(Item):
    item: Annotated[str, Meta(pattern=r".-[ab]$")]
    context: Annotated[str, Meta(pattern=ROLES.pattern)]
    expected: Filled
    exp_cloze: Share
    target: Filled
    tgt_cloze: Share


@diagnostic("role")
class Role(Diagnostic):
    """Pairs of contexts "which X the Y had" with their roles reversed, also perturbed as section 8.1 says.

    X becomes `one` (generic object), Y becomes `other` (generic subject). Of an expected phrase ("worked for") the
    first word is the one to predict.
    """

    def questions(self, config: DiagnosticConfig) -> Iterator[Question]:
        rows = read_rows(config, "ROLE-88.tsv", Context)
        sides = Counter((row.item[:-2], row.target) for row in rows)
        if alone := [pair for (pair, _), count in sides.items() if count != 2]:
            raise InputError(f"{config.path}: {alone[0]}-a and {alone[0]}-b must both be there, with one target")
        for row in rows:
            expected = list(dict.fromkeys(phrase.split()[0] for phrase in row.expected.split("|") if phrase.strip()))
            for condition, replacement in (
                ("original", r"\1\2\3\4\5"),
                ("generic_object", r"\1one\3\4\5"),
                ("generic_subject", r"\1\2\3other\5"),
                ("generic_both", r"\1one\3other\5"),
            ):
                context = ROLES.sub(replacement, row.context)
                asked = {"item": row.item, "condition": condition, "context": context}
                for word in expected:
                    yield {**asked, "candidate": word, "role": "expected", "cloze": row.exp_cloze}
            asked = {"item": row.item, "condition": "original", "context": row.context}
            yield {**asked, "candidate": row.target, "role": "target", "cloze": row.tgt_cloze}

    def outcomes(self, cloze: pd.DataFrame) -> pd.DataFrame:
        """Return the outcomes of tables 7, 8 and 9; bins: quarters of the contexts by their highest cloze."""
        expected = cloze[cloze["role"] == "expected"]
        original = expected[expected["condition"] == "original"]
        edges = np.percentile(original.drop_duplicates("item")["cloze"], [25, 50, 75, 100])
        quarter = np.minimum(np.searchsorted(edges, original["cloze"]), 3)
        by_cloze = original.assign(name=[f"cloze ≤ {edges[at]:.2f}" for at in quarter])
        by_cloze = by_cloze.iloc[np.argsort(quarter, kind="stable")]
        targets = cloze[cloze["role"] == "target"]
        targets = targets.assign(pair=targets["item"].str[:-2], side=targets["item"].str[-1])
        sides = targets.pivot(index="pair", columns="side", values="prob")
        return pd.concat(
            [
                accuracy_outcomes(expected, expected["condition"]),
                accuracy_outcomes(by_cloze, by_cloze["name"]),
                sensitivity_outcomes(sides["a"] - sides["b"], "original"),
            ]
        )
