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

SUMS = ["surprisal", "tokens", "unk"]  # columns of what `region_sums` returns


def region_sums(sentence: Sentence, scores: TokenScores, skip_unk: bool = False) -> npt.NDArray[np.float64]:
    """Return (R, 3): the surprisal of each region in bits, summed over its tokens, their number, and the `<unk>`s.

    A token belongs to the region that its first character other than white space is in, with all of its surprisal,
    also where it goes on into the next region; a token of nothing but white space belongs to the region after it, a
    scored `<eos>` to the last one that is not empty. An empty region has the surprisal 0. This is as in syntaxgym-core
    for models of Hugging Face. skip_unk: `<unk>` has no surprisal (policy.unk=skip).
    """
    bare = np.array([len(sentence.text[start:end].lstrip()) for start, end in scores.spans], dtype=np.int64)
    filled = np.flatnonzero(sentence.spans[:, 0] < sentence.spans[:, 1])
    at = filled[np.searchsorted(sentence.spans[filled, 0], scores.spans[:, 1] - bare, side="right") - 1]
    bits = np.where(scores.unk & skip_unk, 0.0, -scores.logprobs / np.log(2))
    sums = [np.bincount(at, values, len(sentence.spans)) for values in (bits, np.ones(len(at)), scores.unk)]
    return np.stack(sums, axis=1)


def answer_rows(suites: Suites, scores: Mapping[str, TokenScores], skip_unk: bool) -> dict[str, pd.DataFrame]:
    """Return the rows of score files, columns REGIONS and SUCCESS (eval.scores.schemas); `scores`: by text."""
    regions = [region_rows(suite, scores, skip_unk) for suite in suites.suites]
    success = [success_rows(*of_suite) for of_suite in zip(suites.suites, regions, strict=True)]
    return {name: pd.concat(of, ignore_index=True) for name, of in (("regions", regions), ("success", success))}


def region_rows(suite: Suite, scores: Mapping[str, TokenScores], skip_unk: bool = False) -> pd.DataFrame:
    """Return columns REGIONS of one suite: a row for each item, condition and region."""
    rows, sums = [], []
    for item, sentences in zip(suite.items, suite.sentences, strict=True):
        for condition, sentence in zip(suite.conditions, sentences, strict=True):
            sums.append(region_sums(sentence, scores[sentence.text], skip_unk))
            for number, (name, span) in enumerate(zip(suite.regions, sentence.spans, strict=True), start=1):
                rows.append((suite.name, item, condition, number, name, sentence.text[slice(*span)]))
    named = pd.DataFrame(rows, columns=[name for name in REGIONS.names if name not in SUMS])
    return named.join(pd.DataFrame(np.concatenate(sums), columns=SUMS)).astype({"tokens": "int32", "unk": "int32"})


def success_rows(suite: Suite, regions: pd.DataFrame) -> pd.DataFrame:
    """Return columns SUCCESS of one suite: a row for each item and prediction, and for each comparison that it joins.

    `regions`: the rows of `region_rows`.
    """
    by_item = regions.pivot(index="item", columns=["condition", "region"], values=["surprisal", "unk"])
    by_item = by_item.loc[list(suite.items)]
    rows = []
    for prediction, formula in enumerate(suite.formulas, start=1):
        parts = formula.comparisons if len(formula.comparisons) > 1 else []
        for comparison, part in enumerate([formula, *parts]):
            columns = {
                "suite": suite.name,
                "circuit": suite.circuit,
                "item": by_item.index,
                "prediction": prediction,
                "comparison": comparison or None,
                "formula": part.text,
                "success": part(by_item["surprisal"]),
                "tie": part.ties(by_item["surprisal"]),
                "unk": sum(region(by_item["unk"]) for region in part.regions),
            }
            rows.append(pd.DataFrame(columns, index=by_item.index))
    types = {"circuit": "str", "prediction": "int32", "comparison": "Int32", "unk": "int32"}
    table: pd.DataFrame = pd.concat(rows, ignore_index=True).astype(types)[SUCCESS.names]
    return table
