"""Judgement methods: how what a model says of a good and a bad sentence becomes two scores, the higher of which wins.

A method sees one side (good or bad) of all pairs at once, after one pass over the model that all methods share. METHODS
says what each is and needs; eval/methods/judging.py brings methods and model together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from corpora.words import count_characters
from eval.config import PREFIX_SPANS, MethodConfig, PolicyConfig
from eval.scorers.base import TokenScores
from eval.scores.files import judged_pairs
from pairscale.errors import ConfigError, InputError, check_choice

FloatArray = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Side:
    """The good or the bad sentences of all P pairs, and what the model says of them."""

    name: str  # good | bad
    pairs: pd.DataFrame  # (P rows) columns of eval.scores.files.ITEMS
    sentences: Sequence[str]
    scores: Sequence[TokenScores]
    lp: FloatArray  # (P,) sum of the token log-probabilities that count, nats
    tokens: Counts  # (P,) how many they are: <eos> included where it is scored, <unk> not where skipped
    unk: Counts  # (P,) tokens that are <unk>

    skip_unk: bool
    judged: npt.NDArray[np.bool_]  # (P,) False where unk=skip leaves no token of the text itself

    @classmethod
    def of(cls, name: str, pairs: pd.DataFrame, scores: Sequence[TokenScores], policy: PolicyConfig) -> Side:
        """Add up the tokens that the policy counts: all, or with unk=skip those that are not `<unk>`."""
        lengths = np.asarray([len(score.logprobs) for score in scores], dtype=np.int64)
        sentence = np.repeat(np.arange(len(scores)), lengths)
        unk = np.concatenate([np.empty(0, np.bool_), *(score.unk for score in scores)])
        logprobs = np.concatenate([np.empty(0), *(score.logprobs for score in scores)])
        counted = ~unk if policy.unk == "skip" else np.ones_like(unk)
        return cls(
            name,
            pairs,
            pairs[name].tolist(),
            scores,
            np.bincount(sentence[counted], logprobs[counted], minlength=len(scores)).astype(np.float64),
            np.bincount(sentence[counted], minlength=len(scores)),
            np.bincount(sentence[unk], minlength=len(scores)),
            policy.unk == "skip",
            np.asarray([policy.unk != "skip" or _any_known(score) for score in scores], dtype=np.bool_),
        )

    def surface(self, pair: int) -> list[str]:
        """The tokens of one sentence as they stand in it."""
        return [self.sentences[pair][start:end] for start, end in self.scores[pair].spans.tolist()]


def _any_known(score: TokenScores) -> bool:
    """True if a token with characters, as `<eos>` has none, is not `<unk>`."""
    return bool((~score.unk & (np.diff(score.spans.reshape(-1, 2))[:, 0] > 0)).any())


def lp(side: Side, other: Side, config: MethodConfig) -> FloatArray:
    """Log-probability of the sentence, the sum over its tokens: LP of Lau et al. 2020."""
    return side.lp


def mean_lp(side: Side, other: Side, config: MethodConfig) -> FloatArray:
    """Log-probability per token: MeanLP of Lau et al. 2020. NaN where no token counts."""
    return np.divide(side.lp, side.tokens, out=np.full_like(side.lp, np.nan), where=side.tokens > 0)


def pen_lp(side: Side, other: Side, config: MethodConfig) -> FloatArray:
    """LP / ((5 + n) / 6)^alpha for n tokens: PenLP of Lau et al. 2020 (the penalty of Wu et al. 2016)."""
    if config.alpha is None:
        raise ConfigError("alpha=null of a pen_lp method: must be a number, 0.8 in the paper")
    return side.lp / ((5 + side.tokens) / 6) ** config.alpha


def pll(side: Side, other: Side, config: MethodConfig) -> FloatArray:
    """Sum of the log-probabilities of each token with it hidden: PLL of Salazar et al. 2020, of masked models."""
    return side.lp


def one_prefix(side: Side, other: Side, config: MethodConfig) -> FloatArray:
    """ln p of the critical words after the prefix that both sentences share (Linzen et al. 2016; BLiMP, section 6.1).

    `as_published` takes the first token in which the sentences differ.
    """
    words = side.pairs[f"one_prefix_word_{side.name}"]
    return _critical_lp("one_prefix", side, other, side.pairs["one_prefix_prefix"], words, config)


def two_prefix(side: Side, other: Side, config: MethodConfig) -> FloatArray:
    """ln p of the same critical words after two different prefixes (Wilcox et al. 2019; BLiMP, section 6.1).

    `as_published` takes the last of their tokens.
    """
    prefixes = side.pairs[f"two_prefix_prefix_{side.name}"]
    return _critical_lp("two_prefix", side, other, prefixes, side.pairs["two_prefix_word"], config)


def _critical_lp(
    method: str, side: Side, other: Side, prefixes: pd.Series, words: pd.Series, config: MethodConfig
) -> FloatArray:
    """(P,) ln p of the critical words' tokens, found by character offsets; NaN where the method does not apply.

    A token counts where it covers a character of the words. NaN too where none is left that the policy counts.
    """
    scores = np.full(len(side.scores), np.nan)
    for pair in np.flatnonzero(judged_pairs(method, side.pairs)).tolist():
        start, end = _critical_span(method, side, pair, str(prefixes.iat[pair]), str(words.iat[pair]))
        score = side.scores[pair]
        inside = (score.spans[:, 0] < end) & (score.spans[:, 1] > start)
        if config.prefix_span == "as_published" and method == "one_prefix":
            inside[: _common(side.surface(pair), other.surface(pair))] = False
        if side.skip_unk:
            inside &= ~score.unk
        values = score.logprobs[inside]
        match config.prefix_span:
            case "sum":
                scores[pair] = values.sum() if len(values) else np.nan
            case "first":
                scores[pair] = values[0] if len(values) else np.nan
            case "last":
                scores[pair] = values[-1] if len(values) else np.nan
            case "as_published":
                scores[pair] = values[0 if method == "one_prefix" else -1] if len(values) else np.nan
            case _:
                raise ConfigError(f"method.{method}.prefix_span=null: must be one of {', '.join(PREFIX_SPANS)}")
    return scores


def _critical_span(method: str, side: Side, pair: int, prefix: str, words: str) -> tuple[int, int]:
    """Character offsets of the critical words in the sentence."""
    sentence = side.sentences[pair]
    for between in (" ", ""):  # a language without spaces has none here
        if sentence.startswith(f"{prefix}{between}{words}"):
            start = len(prefix) + len(between)
            return start, start + len(words)
    where = f"{side.pairs['paradigm'].iat[pair]}, pair {side.pairs['pair_id'].iat[pair]}"
    raise InputError(f"method={method}: {where}: {sentence!r} does not begin with {prefix!r} and {words!r}")


Scores = Callable[[Side, Side, MethodConfig], FloatArray]


@dataclass(frozen=True)
class Method:
    """What a method is: what it reads, and how two sides of that become scores.

    reads: sentences; masked (their tokens, each hidden); a kind of template (eval.methods.templates.PLACEHOLDERS),
    filled; scores of other methods. score: gives the scores (P,) of one side; it may look at the other side, where it
    matters how the two differ. None for prompts (eval/methods/prompting.py) and votes (eval/methods/voting.py), which
    have no tokens to sum.
    """

    reads: str
    score: Scores | None = None


SENTENCES, MASKED, VOTES = "sentences", "masked", "scores"

METHODS: dict[str, Method] = {
    "lp": Method(SENTENCES, lp),
    "mean_lp": Method(SENTENCES, mean_lp),
    "pen_lp": Method(SENTENCES, pen_lp),
    "pll": Method(MASKED, pll),
    "one_prefix": Method(SENTENCES, one_prefix),
    "two_prefix": Method(SENTENCES, two_prefix),
    # Ide et al. 2024: sections 3.2 (in a template), 3.3 (prompts) and 6 (votes).
    "in_template_lp": Method("in_template", lp),
    "in_template_mean_lp": Method("in_template", mean_lp),
    "in_template_pen_lp": Method("in_template", pen_lp),
    "in_template_comparative_lp": Method("comparative", lp),
    "ab_prompt": Method("ab"),
    "yes_no": Method("yes_no"),
    "vote_p": Method(VOTES),
    "vote_mix_p3": Method(VOTES),
    "vote_mix_l3": Method(VOTES),
    "vote_l": Method(VOTES),
}


def check_method(method: str, masked: bool) -> None:
    """Raise ConfigError for an unknown method, or one that does not fit the kind of model."""
    check_choice("method", method, METHODS)
    fitting = [name for name, of in METHODS.items() if (of.reads == MASKED) == masked]
    if method not in fitting:
        kind = "a masked model has no probability of a token after those before it" if masked else "not a masked model"
        raise ConfigError(f"method={method}: {kind}; methods for it: {', '.join(fitting)}")


def judge(method: str, config: MethodConfig, good: Side, bad: Side) -> pd.DataFrame:
    """Rows of a score file (eval.scores.files.SCORES) of one method, without the counts of words; for its pairs only.

    Raises ConfigError for an unknown method.
    """
    check_choice("method", method, METHODS)
    rows = about(good, bad).assign(template=None, trial=None, order=None, **summed(method, config, good, bad))
    return rows[judged_pairs(method, good.pairs)]


def about(good: Side, bad: Side) -> pd.DataFrame:
    """(P rows) what is the same for every method: names of the pairs, characters and unknown words of sentences."""
    return pd.DataFrame(
        {
            "pair_id": good.pairs["pair_id"],
            "paradigm": good.pairs["paradigm"],
            "good_chars": [count_characters(sentence) for sentence in good.sentences],
            "bad_chars": [count_characters(sentence) for sentence in bad.sentences],
            "good_unk": good.unk,
            "bad_unk": bad.unk,
            "crit_unk": critical_unk(good, bad),
        }
    )


def summed(method: str, config: MethodConfig, good: Side, bad: Side) -> dict[str, FloatArray | Counts]:
    """The columns (P,) of a method that makes its scores of log-probabilities of tokens.

    A text of which unk=skip leaves nothing has no score (NaN): its log-probability, 0 or that of `<eos>` alone, would
    be higher than that of any other.
    """
    score = METHODS[method].score
    assert score is not None, method
    return {
        "good": np.where(good.judged, score(good, bad, config), np.nan),
        "bad": np.where(bad.judged, score(bad, good, config), np.nan),
        "good_lp": good.lp,
        "bad_lp": bad.lp,
        "good_tokens": good.tokens,
        "bad_tokens": bad.tokens,
    }


def critical_unk(good: Side, bad: Side) -> Counts:
    """(P,) `<unk>` tokens outside what the sentences of a pair begin and end with in common, both sides together."""
    counts = np.zeros(len(good.scores), dtype=np.int64)
    for pair in np.flatnonzero(good.unk + bad.unk).tolist():
        good_tokens, bad_tokens = good.surface(pair), bad.surface(pair)
        first = _common(good_tokens, bad_tokens)
        last = _common(good_tokens[first:][::-1], bad_tokens[first:][::-1])
        for side in (good, bad):
            unk = side.scores[pair].unk
            counts[pair] += unk[first : len(unk) - last].sum()
    return counts


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Number of tokens that two sequences begin with in common."""
    for position, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return position
    return min(len(one), len(other))
