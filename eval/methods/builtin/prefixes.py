"""Methods that compare critical words after a prefix: one_prefix and two_prefix."""

import numpy as np
import pandas as pd

from eval.config import MethodConfig
from eval.methods.method import method
from eval.methods.sides import Side, common_start
from eval.scorers.base import FloatArray
from eval.scores.files import judged_pairs
from pairscale.errors import InputError


@method("one_prefix", needs=("prefix_span",))
def one_prefix(side: Side, other: Side, config: MethodConfig) -> FloatArray:
    """ln p of the critical words after the prefix of both sentences (Linzen et al. 2016; BLiMP, section 6.1)."""
    words = side.pairs[f"one_prefix_word_{side.name}"]
    return _critical_lp("one_prefix", side, other, side.pairs["one_prefix_prefix"], words, config)


@method("two_prefix", needs=("prefix_span",))
def two_prefix(side: Side, other: Side, config: MethodConfig) -> FloatArray:
    """ln p of the same critical words after two different prefixes (Wilcox et al. 2019; BLiMP, section 6.1)."""
    prefixes = side.pairs[f"two_prefix_prefix_{side.name}"]
    return _critical_lp("two_prefix", side, other, prefixes, side.pairs["two_prefix_word"], config)


def _critical_lp(
    method: str, side: Side, other: Side, prefixes: pd.Series, words: pd.Series, config: MethodConfig
) -> FloatArray:
    """Return ln p (P,) of the critical words' tokens; NaN where the method does not apply, or no token counts.

    A token counts if it covers a character of the words and the policy does not skip it. `as_published` takes the first
    token in which the sentences differ for one_prefix, the last of the words for two_prefix.
    """
    as_published = config.prefix_span == "as_published"
    span = {"one_prefix": "first", "two_prefix": "last"}[method] if as_published else config.prefix_span
    scores = np.full(len(side.scores), np.nan)
    for pair in np.flatnonzero(judged_pairs(method, side.pairs)).tolist():
        start, end = _critical_span(method, side, pair, str(prefixes.iat[pair]), str(words.iat[pair]))
        score = side.scores[pair]
        inside = (score.spans[:, 0] < end) & (score.spans[:, 1] > start)
        if as_published and method == "one_prefix":
            inside[: common_start(side.surface(pair), other.surface(pair))] = False
        if side.skip_unk:
            inside &= ~score.unk
        values = score.logprobs[inside]
        if len(values):
            scores[pair] = values.sum() if span == "sum" else values[0 if span == "first" else -1]
    return scores


def _critical_span(method: str, side: Side, pair: int, prefix: str, words: str) -> tuple[int, int]:
    """Return the character offsets of the critical words in the sentence."""
    sentence = side.sentences[pair]
    for between in (" ", ""):  # a language without spaces has none here
        if sentence.startswith(f"{prefix}{between}{words}"):
            start = len(prefix) + len(between)
            return start, start + len(words)
    where = f"{side.pairs['paradigm'].iat[pair]}, pair {side.pairs['pair_id'].iat[pair]}"
    raise InputError(f"method={method}: {where}: {sentence!r} does not begin with {prefix!r} and {words!r}")
