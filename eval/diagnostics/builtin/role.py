"""ROLE-88: does a model tell who did it from word order? (Ettinger 2020, section 8)."""

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd

from eval.diagnostics.config import DiagnosticConfig
from eval.diagnostics.diagnostic import Diagnostic, Question, diagnostic
from eval.diagnostics.measures import accuracy_outcomes, joined, sensitivity_outcomes
from eval.diagnostics.questions import Row, question_file, read_rows
from pairscale.errors import InputError

_ROLES = re.compile(r"(?P<before>.*\bwhich )(?P<object>.+)(?P<between> the )(?P<subject>.+)(?P<after> had)")


@diagnostic("role")
class Role(Diagnostic):
    """Pairs of contexts "which X the Y had" with their roles reversed, also perturbed as section 8.1 says.

    X becomes `one` (generic object), Y becomes `other` (generic subject). Of an expected phrase ("worked for") the
    first word is the one to predict.
    """

    def questions(self, config: DiagnosticConfig) -> Iterator[Question]:
        columns = ("item", "context", "expected", "exp_cloze", "target", "tgt_cloze")
        targets: dict[str, dict[str, str]] = {}
        for row in read_rows(config, "ROLE-88.tsv", columns):
            pair, _, side = row["item"].rpartition("-")
            if not pair or side not in ("a", "b"):
                raise InputError(f"{row.where}: item is {row['item']!r}, must be a number with -a or -b, such as 61-a")
            targets.setdefault(pair, {})[side] = row["target"]
            cloze = row.share("exp_cloze")
            expected = list(dict.fromkeys(phrase.split()[0] for phrase in row["expected"].split("|") if phrase.strip()))
            for condition, context in _contexts(row).items():
                asked = {"item": row["item"], "condition": condition, "context": context}
                for word in expected:
                    yield {**asked, "candidate": word, "role": "expected", "cloze": cloze}
            asked = {"item": row["item"], "condition": "original", "context": row["context"]}
            yield {**asked, "candidate": row["target"], "role": "target", "cloze": row.share("tgt_cloze")}
        for pair, sides in targets.items():
            if sorted(sides) != ["a", "b"] or sides["a"] != sides["b"]:
                file = question_file(config, "ROLE-88.tsv")
                got = ", ".join(f"{pair}-{side}: {target}" for side, target in sides.items())
                raise InputError(f"{file}: a pair needs -a and -b with one target, got {got}")

    def outcomes(self, cloze: pd.DataFrame) -> pd.DataFrame:
        """Return the outcomes of tables 7, 8 and 9; bins: quarters of the contexts by their highest cloze."""
        expected = cloze[cloze["role"] == "expected"]
        original = expected[expected["condition"] == "original"]
        edges = np.percentile(original.drop_duplicates("item")["cloze"], [25, 50, 75, 100])
        quarter = np.minimum(np.searchsorted(edges, original["cloze"]), 3)
        names = pd.Series([f"cloze ≤ {edges[at]:.2f}" for at in quarter], index=original.index)
        by_cloze = original.assign(quarter=quarter).sort_values("quarter", kind="stable")
        targets = cloze[cloze["role"] == "target"]
        item = targets["item"].str.rpartition("-")
        sides = targets.assign(pair=item[0], side=item[2]).pivot(index="pair", columns="side", values="prob")
        return joined(
            accuracy_outcomes(expected, expected["condition"]),
            accuracy_outcomes(by_cloze, names.loc[by_cloze.index]),
            sensitivity_outcomes(sides["a"] - sides["b"], "original"),
        )


def _contexts(row: Row) -> dict[str, str]:
    parts = _ROLES.fullmatch(row["context"])
    if parts is None:
        raise InputError(f"{row.where}: context is {row['context']!r}, must end in 'which ... the ... had'")
    before, thing, between, agent, after = parts.groups()
    return {
        "original": row["context"],
        "generic_object": f"{before}one{between}{agent}{after}",
        "generic_subject": f"{before}{thing}{between}other{after}",
        "generic_both": f"{before}one{between}other{after}",
    }
