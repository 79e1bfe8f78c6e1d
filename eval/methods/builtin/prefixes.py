"""Define one_prefix and two_prefix, which compare critical words after a prefix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from eval.methods.method import method
from pairscale.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from eval.methods.sides import Side
    from eval.scorers.base import FloatArray


@dataclass
class Prefix:
    """The parameters of the prefix methods."""

    # Which tokens of the critical words are scored. as_published means the first token in which the sentences differ
    # for one_prefix, and the last token for two_prefix.
    prefix_span: Literal["sum", "first", "last", "as_published"] = "sum"


@method("one_prefix", Prefix())
def one_prefix(side: Side, other: Side, parameters: Prefix) -> FloatArray:
    """Score the critical words after the same prefix (Linzen et al. 2016; BLiMP, section 6.1)."""
    words = side.pairs[f"one_prefix_word_{side.name}"]
    differ = other if parameters.prefix_span == "as_published" else None
    span = "first" if differ else parameters.prefix_span
    return _critical_lp("one_prefix", side, side.pairs["one_prefix_prefix"], words, span, differ)


@method("two_prefix", Prefix())
def two_prefix(side: Side, other: Side, parameters: Prefix) -> FloatArray:
    """Score the same critical words after two different prefixes (Wilcox et al. 2019; BLiMP, section 6.1)."""
    prefixes = side.pairs[f"two_prefix_prefix_{side.name}"]
    span = "last" if parameters.prefix_span == "as_published" else parameters.prefix_span
    return _critical_lp("two_prefix", side, prefixes, side.pairs["two_prefix_word"], span)


def _critical_lp(
    method: str, side: Side, prefixes: pd.Series, words: pd.Series, span: str, differ: Side | None = None
) -> FloatArray:
    """Return ln p (P,) of the critical words in nats, or NaN if the method doesn't apply or no token is scored.

    A token is scored if it covers a character of the words and isn't skipped as <unk>. If `differ` is given, tokens
    before the first difference from the text on that side are not scored.

    Raises InputError if a sentence doesn't begin with its prefix and critical words.
    """
    from eval.methods.sides import common_start
    from eval.scores.files import judged_pairs

    scores = np.full(len(side.scores), np.nan)
    for pair in np.flatnonzero(judged_pairs(method, side.pairs)).tolist():
        text, score = str(side.pairs[side.name].iat[pair]), side.scores[pair]
        prefix, critical = str(prefixes.iat[pair]), str(words.iat[pair])
        start = len(text) - len(text.removeprefix(prefix).lstrip())  # some languages have no space here
        if not text.startswith(prefix) or not text.startswith(critical, start):
            where = f"{side.pairs['paradigm'].iat[pair]}, pair {side.pairs['pair_id'].iat[pair]}"
            raise InputError(
                f"method={method}: {where}: {text!r} doesn't begin with {prefix!r} and {critical!r}. Correct the "
                "prefix or the critical words of this pair."
            )
        inside = (score.spans[:, 0] < start + len(critical)) & (score.spans[:, 1] > start)
        if differ:
            inside[: common_start(side.surface(pair), differ.surface(pair))] = False
        if side.skip_unk:
            inside &= ~score.unk
        values = score.logprobs[inside]
        if len(values):
            scores[pair] = values.sum() if span == "sum" else values[0 if span == "first" else -1]
    return scores
