"""Define the diagnostics of Ettinger 2020, CPRAG-102 (section 7), ROLE-88 (section 8) and NEG-136 (section 9)."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from msgspec import Meta

from eval.benchmarks.config import DiagnosticConfig
from eval.diagnostics.diagnostic import Diagnostic, Question, diagnostic
from eval.diagnostics.measures import accuracy_outcomes, by_role, sensitivity_outcomes
from eval.diagnostics.questions import Filled, Item, read_rows
from pairscale.errors import InputError
from pairscale.schema import Share
from pairscale.seeds import permutation

CONDITIONS = ("original", "shuffled", "truncated", "shuffled_truncated")


class CpragRow(Item):
    context_s1: Filled
    context_s2: Filled
    expected: Filled
    within_category: Filled
    between_category: Filled
    constraint: Literal["H", "L"]


@diagnostic("cprag")
class Cprag(Diagnostic):
    """The contexts of CPRAG-102, which have two sentences and are also perturbed as in section 7.1.

    Details that the paper doesn't specify follow the authors' script (github.com/aetting/lm-diagnostics). Truncation
    keeps only the last two words of the second sentence. Shuffling puts the words of the first sentence in a random
    order, with the final mark at the end. Each trial uses one order, with and without truncation.
    """

    def questions(self, config: DiagnosticConfig) -> Iterator[Question]:
        for number, row in enumerate(read_rows(config, "CPRAG-102.tsv", CpragRow)):
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
        """Return the outcomes for tables 4 and 5."""
        expected = cloze[cloze["role"] == "expected"]
        ranked = pd.concat([expected[expected["condition"] == condition] for condition in CONDITIONS])
        wide = by_role(cloze[cloze["condition"] == "original"], "item")
        bad = wide[["within_category", "between_category"]].max(axis=1, skipna=False)
        sensitivity = sensitivity_outcomes(wide["expected"] - bad, "original")
        return pd.concat([accuracy_outcomes(ranked, ranked["condition"]), sensitivity])


def _shuffled(sentence: str, *seeds: int) -> str:
    """Return a sentence with its words in a random order and its final mark at the end."""
    body = sentence.rstrip(".!?")
    words = body.split()
    return " ".join(words[index] for index in permutation(len(words), *seeds)) + sentence[len(body) :]


ROLES = re.compile(r"^(.*\bwhich )(.+)( the )(.+)( had)$")


class RoleRow(Item):
    item: Annotated[str, Meta(pattern=r".-[ab]$")]
    context: Annotated[str, Meta(pattern=ROLES.pattern)]
    expected: Filled
    exp_cloze: Share
    target: Filled
    tgt_cloze: Share


@diagnostic("role")
class Role(Diagnostic):
    """Pairs of contexts "which X the Y had" with reversed roles, which are also perturbed as in section 8.1.

    X is replaced by "one" (generic object), and Y is replaced by "other" (generic subject). The word to predict is the
    first word of an expected phrase, such as "worked" in "worked for".
    """

    def questions(self, config: DiagnosticConfig) -> Iterator[Question]:
        rows = read_rows(config, "ROLE-88.tsv", RoleRow)
        sides = Counter((row.item[:-2], row.target) for row in rows)
        if alone := [pair for (pair, _), count in sides.items() if count != 2]:
            raise InputError(
                f"{config.path}: {alone[0]}-a and {alone[0]}-b must both exist and have the same target. Correct them."
            )
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
        """Return the outcomes for tables 7, 8 and 9. The bins are quarters of the contexts, by their highest cloze."""
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


ARTICLE = "(a|an)"


class NegRow(Item):
    context_aff: Filled
    context_neg: Filled
    target_aff: Filled
    target_neg: Filled


class SimpleRow(NegRow):
    context_aff: Annotated[str, Meta(pattern=r" \(a\|an\)$")]
    context_neg: Annotated[str, Meta(pattern=r" \(a\|an\)$")]


class NaturalRow(NegRow):
    licensing: Literal["Y", "N"]


@diagnostic("neg")
class Neg(Diagnostic):
    """Affirmative and negative sentences, simple and natural. The word's first letter decides between "a" and "an"."""

    def questions(self, config: DiagnosticConfig) -> Iterator[Question]:
        for simple in read_rows(config, "NEG-136-SIMP.tsv", SimpleRow):
            yield from _polarities("simp", simple, None)
        for natural in read_rows(config, "NEG-136-NAT.tsv", NaturalRow):
            yield from _polarities("nat", natural, natural.licensing)

    def outcomes(self, cloze: pd.DataFrame) -> pd.DataFrame:
        """Return the outcomes for tables 11, 12 and 14, and for the shares in section 9.4."""
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


def _polarities(subset: str, row: NegRow, group: str | None) -> Iterator[Question]:
    item = {"item": f"{subset.upper()}-{row.item}", "group": group}
    targets = {"affirmative": row.target_aff, "negative": row.target_neg}
    for polarity, context in (("affirmative", row.context_aff), ("negative", row.context_neg)):
        for other, target in targets.items():
            asked = context.replace(ARTICLE, "an" if target[0] in "aeiou" else "a")
            role = "true" if other == polarity else "false"
            condition = f"{subset}_{polarity}"
            yield {**item, "condition": condition, "context": asked, "candidate": target, "role": role}
