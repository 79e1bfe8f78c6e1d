"""Judgement methods against sums written out by hand."""

import numpy as np
import pandas as pd
import pytest

from corpora.errors import ConfigError
from eval.config import MethodConfig, PolicyConfig
from eval.methods import METHODS, Side, critical_unk, judge
from eval.scorers import TokenScores

GOOD = ("The cats sleep .", [-1.0, -2.0, -4.0, -0.5], [0, 0, 0, 0])
BAD = ("The cats sleeps .", [-1.0, -2.0, -6.0, -0.25], [0, 0, 1, 0])


def policy(unk):
    return PolicyConfig(context="none", context_tokens=1, context_text=None, score_eos=False, unk=unk, precision="fp32")


def side(*sentences, unk="score"):
    """Each sentence is (text of words between spaces, their log-probabilities, whether they are unknown)."""
    scores = []
    for text, logprobs, unknown in sentences:
        starts = [0, *(at + 1 for at, letter in enumerate(text) if letter == " ")] if text else []
        spans = [(start, start + len(word)) for start, word in zip(starts, text.split(), strict=True)]
        scores.append(TokenScores(np.asarray(logprobs, float), np.asarray(spans), np.asarray(unknown, bool)))
    return Side.of([text for text, _, _ in sentences], scores, policy(unk))


def test_the_three_sentence_methods():
    both = side(GOOD, BAD)
    assert METHODS["lp"](both, MethodConfig()).tolist() == [-7.5, -9.25]
    assert METHODS["mean_lp"](both, MethodConfig()).tolist() == [-7.5 / 4, -9.25 / 4]
    # ((5 + 4) / 6) ^ 0.8 = e^(0.8 ln 1.5) = 1.3831619
    assert METHODS["pen_lp"](both, MethodConfig(alpha=0.8)) == pytest.approx([-7.5 / 1.3831619, -9.25 / 1.3831619])
    assert METHODS["pen_lp"](both, MethodConfig(alpha=0.0)).tolist() == [-7.5, -9.25]


def test_skipped_unknown_words_count_in_neither_sum_nor_length():
    both = side(GOOD, BAD, unk="skip")
    assert both.lp.tolist() == [-7.5, -3.25]
    assert both.tokens.tolist() == [4, 3]
    assert both.unk.tolist() == [0, 1]
    assert METHODS["mean_lp"](both, MethodConfig())[1] == -3.25 / 3


def test_a_sentence_of_nothing_has_no_mean():
    empty = side(("", [], []), ("gnu", [-3.0], [1]), unk="skip")
    assert empty.lp.tolist() == [0, 0]
    assert np.isnan(METHODS["mean_lp"](empty, MethodConfig())).all()


def test_sums_are_of_double_precision():
    logprobs = [-1e-9] * 1000 + [-1e7]
    both = side((" ".join("a" * 1001), logprobs, [0] * 1001))
    assert both.lp[0] == pytest.approx(-1e7 - 1e-6, rel=0, abs=1e-8)


def test_unknown_words_where_the_sentences_differ():
    good = side(
        ("A gnu sleeps .", [-1] * 4, [0, 1, 0, 0]),  # unknown, but the same in both
        ("A gnu sleeps .", [-1] * 4, [0, 1, 0, 0]),  # differs, and both are unknown
        ("A dog yaks .", [-1] * 4, [0, 0, 1, 0]),  # only the good one's differing word is unknown
        ("A dog sleeps .", [-1] * 4, [0, 0, 0, 0]),
        ("gnu gnu", [-1] * 2, [1, 1]),  # one is a repetition of the other: the second differs
    )
    bad = side(
        ("A gnu sleep .", [-1] * 4, [0, 1, 0, 0]),
        ("A yak sleeps .", [-1] * 4, [0, 1, 0, 0]),
        ("A dog sleep .", [-1] * 4, [0, 0, 0, 0]),
        ("A dog sleep .", [-1] * 4, [0, 0, 0, 0]),
        ("gnu", [-1], [1]),
    )
    assert critical_unk(good, bad).tolist() == [0, 2, 1, 0, 1]


def test_rows_of_a_score_file():
    pairs = pd.DataFrame({"pair_id": ["7"], "paradigm": ["p"]})
    rows = judge("mean_lp", MethodConfig(), pairs, side(GOOD), side(BAD)).iloc[0]
    assert (rows["good"], rows["bad"], rows["good_lp"], rows["bad_lp"]) == (-7.5 / 4, -9.25 / 4, -7.5, -9.25)
    assert (rows["good_tokens"], rows["good_chars"], rows["bad_chars"]) == (4, 13, 14)
    assert (rows["good_unk"], rows["bad_unk"], rows["crit_unk"]) == (0, 1, 1)


def test_what_cannot_be_judged():
    with pytest.raises(ConfigError, match=r"method=best: must be one of lp, mean_lp, pen_lp"):
        judge("best", MethodConfig(), pd.DataFrame({"pair_id": [], "paradigm": []}), side(), side())
    with pytest.raises(ConfigError, match=r"alpha=null"):
        METHODS["pen_lp"](side(GOOD), MethodConfig())
