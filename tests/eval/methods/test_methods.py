"""Judgement methods against sums written out by hand."""

import numpy as np
import pandas as pd
import pytest

from eval.config import MethodConfig, PolicyConfig, recorded_policy
from eval.methods.method import check_method, judge, methods
from eval.methods.sides import Side, about, critical_unk
from eval.scorers.base import TokenScores
from eval.scores.accuracy import outcome, tied
from pairscale.errors import ConfigError, InputError

GOOD = ("The cats sleep .", [-1.0, -2.0, -4.0, -0.5], [0, 0, 0, 0])
BAD = ("The cats sleeps .", [-1.0, -2.0, -6.0, -0.25], [0, 0, 1, 0])


def policy(unk):
    return PolicyConfig(context="none", context_tokens=1, context_text=None, score_eos=False, unk=unk, precision="fp32")


def side(*sentences, unk="score", name="good", **items):
    """Each sentence is (text of words between spaces, their log-probabilities, whether they are unknown).

    `items` are further columns of the pairs.
    """
    scores = []
    for text, logprobs, unknown in sentences:
        starts = [0, *(at + 1 for at, letter in enumerate(text) if letter == " ")] if text else []
        spans = [(start, start + len(word)) for start, word in zip(starts, text.split(), strict=True)]
        scores.append(TokenScores(np.asarray(logprobs, float), np.asarray(spans), np.asarray(unknown, bool)))
    pairs = pd.DataFrame({name: [text for text, _, _ in sentences], "paradigm": "p", **items})
    pairs["pair_id"] = [str(number) for number in range(len(pairs))]
    return Side.of(name, pairs, scores, policy(unk))


def judged(method, config, good, bad):
    return judge(method, config, good, bad, about(good, bad))


def scored(method, side, other=None, **parameters):
    return methods()[method].score(side, other or side, MethodConfig(**parameters))


def test_the_three_sentence_methods():
    both = side(GOOD, BAD)
    assert scored("lp", both).tolist() == [-7.5, -9.25]
    assert scored("mean_lp", both).tolist() == [-7.5 / 4, -9.25 / 4]
    # ((5 + 4) / 6) ^ 0.8 = e^(0.8 ln 1.5) = 1.3831619
    assert scored("pen_lp", both, alpha=0.8) == pytest.approx([-7.5 / 1.3831619, -9.25 / 1.3831619])
    assert scored("pen_lp", both, alpha=0.0).tolist() == [-7.5, -9.25]


def test_skipped_unknown_words_count_in_neither_sum_nor_length():
    both = side(GOOD, BAD, unk="skip")
    assert both.lp.tolist() == [-7.5, -3.25]
    assert both.tokens.tolist() == [4, 3]
    assert both.unk.tolist() == [0, 1]
    assert scored("mean_lp", both)[1] == -3.25 / 3


def test_a_sentence_of_nothing_has_no_mean():
    empty = side(("", [], []), ("gnu", [-3.0], [1]), unk="skip")
    assert empty.lp.tolist() == [0, 0]
    assert np.isnan(scored("mean_lp", empty)).all()


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
    rows = judged("mean_lp", MethodConfig(), side(GOOD), side(BAD, name="bad")).iloc[0]
    assert (rows["paradigm"], rows["pair_id"]) == ("p", "0")
    assert (rows["good"], rows["bad"], rows["good_lp"], rows["bad_lp"]) == (-7.5 / 4, -9.25 / 4, -7.5, -9.25)
    assert (rows["good_tokens"], rows["good_chars"], rows["bad_chars"]) == (4, 13, 14)
    assert (rows["good_unk"], rows["bad_unk"], rows["crit_unk"]) == (0, 1, 1)


ONE = {"one_prefix_method": [True, False], "one_prefix_prefix": ["The big cats", None]}
ONE |= {"one_prefix_word_good": ["do not", None], "one_prefix_word_bad": ["do never", None]}


def one_prefix_sides(unk="score"):
    """The critical words are two tokens, the second of which differs; the second pair is not flagged."""
    good = ("The big cats do not sleep .", [-1, -2, -3, -4, -5, -6, -7], [0, 0, 0, 0, 0, 0, 0])
    bad = ("The big cats do never sleep .", [-1, -2, -3, -4, -50, -60, -7], [0, 0, 0, 0, 1, 0, 0])
    return side(good, GOOD, unk=unk, **ONE), side(bad, BAD, name="bad", unk=unk, **ONE)


@pytest.mark.parametrize(
    ("span", "expected"),
    [("sum", [-9, -54]), ("first", [-4, -4]), ("last", [-5, -50]), ("as_published", [-5, -50])],
)
def test_one_prefix_scores_the_critical_words_alone(span, expected):
    good, bad = one_prefix_sides()
    rows = judged("one_prefix", MethodConfig(prefix_span=span), good, bad)
    assert rows["pair_id"].tolist() == ["0"]  # not the pair that is not flagged
    assert [*rows["good"], *rows["bad"]] == expected
    assert [*rows["good_lp"], *rows["bad_lp"]] == [-28, -127]


@pytest.mark.parametrize(("span", "expected"), [("sum", -4), ("first", -4), ("last", -4), ("as_published", np.nan)])
def test_a_skipped_unknown_word_is_not_among_the_critical_tokens(span, expected):
    good, bad = one_prefix_sides(unk="skip")
    found = scored("one_prefix", bad, good, prefix_span=span)
    assert found == pytest.approx([expected, np.nan], nan_ok=True)


def test_two_prefix_scores_the_same_word_after_two_prefixes():
    items = {"two_prefix_method": [True], "two_prefix_word": ["laughs"]}
    items |= {
        "two_prefix_prefix_good": ["The cat that the dogs see"],
        "two_prefix_prefix_bad": ["The cats that he sees"],
    }
    good = side(("The cat that the dogs see laughs .", [-1, -1, -1, -1, -1, -1, -2, -1], [0] * 8), **items)
    bad = side(("The cats that he sees laughs .", [-1, -1, -1, -1, -1, -3, -1], [0] * 7), name="bad", **items)
    for span in ("sum", "first", "last", "as_published"):
        rows = judged("two_prefix", MethodConfig(prefix_span=span), good, bad)
        assert (rows["good"].item(), rows["bad"].item()) == (-2, -3)


def test_critical_words_are_found_by_characters_whatever_the_tokens():
    """Tokens that hold the space before a word, that cut it, or that reach beyond it."""
    items = {"one_prefix_method": [True], "one_prefix_prefix": ["He has"], "one_prefix_word_good": ["begun"]}
    pairs = pd.DataFrame({"good": ["He has begun."], "paradigm": "p", "pair_id": "0", **items})
    spans = np.asarray([[0, 6], [6, 10], [10, 13]])  # "He has", " beg", "un."
    score = TokenScores(np.asarray([-1.0, -2.0, -4.0]), spans, np.zeros(3, bool))
    assert scored("one_prefix", Side.of("good", pairs, [score], policy("score")), prefix_span="sum").tolist() == [-6]


def test_a_prefix_that_is_not_the_sentences_is_one_line():
    items = {"one_prefix_method": [True], "one_prefix_prefix": ["A cat"], "one_prefix_word_good": ["sleep"]}
    with pytest.raises(InputError, match=r"one_prefix: p, pair 0: 'The cats sleep \.' does not begin with 'A cat'"):
        scored("one_prefix", side(GOOD, **items), prefix_span="sum")


def test_methods_fit_the_kind_of_model():
    with pytest.raises(ConfigError, match=r"method=lp: a masked model has no .*; methods for it: pll"):
        check_method("lp", masked=True)
    with pytest.raises(ConfigError, match=r"method=pll: not a masked model; methods for it: .*, lp, mean_lp, "):
        check_method("pll", masked=False)
    check_method("pll", masked=True)
    assert scored("pll", side(GOOD)).tolist() == [-7.5]


def test_what_cannot_be_judged():
    with pytest.raises(ConfigError, match=r"method=best: must be one of ab_prompt, .*, lp, mean_lp, one_prefix, "):
        judged("best", MethodConfig(), side(GOOD), side(BAD, name="bad"))
    with pytest.raises(ConfigError, match=r"alpha=null"):
        scored("pen_lp", side(GOOD))


@pytest.mark.parametrize("method", ["lp", "mean_lp", "pen_lp"])
def test_a_sentence_of_skipped_words_alone_wins_no_pair(method):
    """Its log-probability was 0, or that of <eos>, and so higher than any other's."""
    good = side(("gnu", [-3.0], [1]), GOOD, GOOD, unk="skip")
    bad = side(BAD, ("yak", [-2.0], [1]), BAD, unk="skip", name="bad")
    rows = judged(method, MethodConfig(alpha=0.8), good, bad)
    assert np.isnan([rows["good"].iloc[0], rows["bad"].iloc[1]]).all()
    assert rows[["good_lp", "bad_lp"]].notna().all(axis=None)
    assert outcome(rows["good"], rows["bad"], "half").tolist() == [0.5, 0.5, rows["good"].iloc[2] > rows["bad"].iloc[2]]
    assert tied(rows["good"], rows["bad"]).tolist() == [True, True, False]


def test_the_end_of_a_sentence_is_no_word_of_it():
    eos = TokenScores(np.asarray([-3.0, -0.1]), np.asarray([(0, 3), (3, 3)]), np.asarray([True, False]))
    pairs = pd.DataFrame({"good": ["gnu"], "paradigm": "p", "pair_id": "0"})
    assert not Side.of("good", pairs, [eos], policy("skip")).judged.any()
    assert Side.of("good", pairs, [eos], policy("score")).judged.all()


def test_what_becomes_of_such_a_sentence_is_in_the_policy():
    assert recorded_policy(policy("skip"), True, None)["unk_only"] == "tie"
    assert "unk_only" not in recorded_policy(policy("score"), True, None)
