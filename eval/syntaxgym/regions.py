"""Surprisal by region, from the scores of tokens, and which predictions hold: what score files have rows of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from eval.scores.schemas import REGIONS, SUCCESS
from eval.syntaxgym.suites import Sentence, Suite, Suites

if TYPE_CHECKING:
    from eval.scorers.base import TokenScores

SURPRISAL, TOKENS, UNK = range(3)  # of the last axis of what `region_sums` returns


def region_sums(sentence: Sentence, scores: TokenScores, skip_unk: bool = False) -> npt.NDArray[np.float64]:
    """Return (R, 3): the surprisal of each region in bits, summed over its tokens, their number, and the `<unk>`s.

    A token belongs to the region that its first character other than white space is in, with all of its surprisal,
    also where it goes on into the next region; a token of nothing but white space belongs to the region after it, a
    scored `<eos>` to the last one that is not empty. An empty region has the surprisal 0. This is as in syntaxgym-core
    for models of Hugging Face. skip_unk: `<unk>` has no surprisal (policy.unk=skip).
    """
    starts, ends = scores.spans[:, 0], scores.spans[:, 1]
    tokens = [sentence.text[start:end] for start, end in scores.spans]
    first = np.where([token.strip() != "" for token in tokens], ends - [len(token.lstrip()) for token in tokens], ends)
    first = np.where(starts == ends, starts, first)
    filled = np.flatnonzero(sentence.spans[:, 0] < sentence.spans[:, 1])
    at = filled[np.searchsorted(sentence.spans[filled, 0], first, side="right") - 1]
    bits = -scores.logprobs / np.log(2)
    if skip_unk:
        bits = np.where(scores.unk, 0.0, bits)
    sums = np.zeros((len(sentence.spans), 3))
    for column, values in ((SURPRISAL, bits), (TOKENS, 1.0), (UNK, scores.unk.astype(float))):
        np.add.at(sums[:, column], at, values)
    return sums


def suite_sums(suite: Suite, scores: Mapping[str, TokenScores], skip_unk: bool) -> npt.NDArray[np.float64]:
    """Return (I, C, R, 3): `region_sums` of each sentence; `scores`: by text."""
    return np.asarray(
        [[region_sums(sentence, scores[sentence.text], skip_unk) for sentence in item] for item in suite.sentences]
    )


def answers(suites: Suites, scores: Mapping[str, TokenScores], skip_unk: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of both score files: columns SUCCESS and REGIONS (eval.scores.schemas)."""
    sums = [(suite, suite_sums(suite, scores, skip_unk)) for suite in suites.suites]
    success = pd.concat([success_rows(suite, of_suite) for suite, of_suite in sums], ignore_index=True)
    return success, pd.concat([_region_rows(suite, of_suite) for suite, of_suite in sums], ignore_index=True)


def success_rows(suite: Suite, sums: npt.NDArray[np.float64]) -> pd.DataFrame:
    """Return columns SUCCESS of one suite: a row for each item and prediction, and for each comparison that it joins.

    `sums`: (I, C, R, 3) of `suite_sums`.
    """
    by_region = [
        {
            (condition, region + 1): sums[:, at, region, column]
            for at, condition in enumerate(suite.conditions)
            for region in range(len(suite.regions))
        }
        for column in (SURPRISAL, UNK)
    ]
    rows = []
    for prediction, formula in enumerate(suite.formulas, start=1):
        parts = formula.comparisons if len(formula.comparisons) > 1 else []
        for comparison, part in enumerate([formula, *parts]):
            columns = {
                "suite": suite.name,
                "circuit": suite.circuit,
                "item": suite.items,
                "prediction": prediction,
                "comparison": comparison or None,
                "formula": part.text,
                "success": np.broadcast_to(part(by_region[0]), len(suite.items)),
                "tie": np.broadcast_to(part.ties(by_region[0]), len(suite.items)),
                "unk": sum(region(by_region[1]) for region in part.regions),
            }
            rows.append(pd.DataFrame(columns, index=range(len(suite.items))))
    types = {"circuit": "str", "prediction": "int32", "comparison": "Int32", "unk": "int32"}
    table: pd.DataFrame = pd.concat(rows, ignore_index=True).astype(types)[SUCCESS.names]
    return table


def _region_rows(suite: Suite, sums: npt.NDArray[np.float64]) -> pd.DataFrame:
    rows = [
        (suite.name, item, condition, number, suite.regions[number - 1], sentence.text[slice(*span)], *values)
        for item, sentences, of_item in zip(suite.items, suite.sentences, sums, strict=True)
        for condition, sentence, of_sentence in zip(suite.conditions, sentences, of_item, strict=True)
        for number, (span, values) in enumerate(zip(sentence.spans, of_sentence, strict=True), start=1)
    ]
    return pd.DataFrame(rows, columns=REGIONS.names).astype({"tokens": "int32", "unk": "int32"})
