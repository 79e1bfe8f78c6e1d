"""Judgement methods against sums written out by hand."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest

from eval.config import recorded_policy
from eval.methods.judging import summed
from eval.methods.method import NoParameters, fitting, methods
from eval.methods.sides import Side, about, critical_unk
from eval.scorers.base import TokenScores
from eval.scores.accuracy import outcome, tied
from pairscale.command.compose import compose
from pairscale.command.errors import describe
from pairscale.errors import ConfigError, InputError
from tests.support.small_pretrained import policy

GOOD = ("The cats sleep .", [-1.0, -2.0, -4.0, -0.5], [0, 0, 0, 0])
BAD = ("The cats sleeps .", [-1.0, -2.0, -6.0, -0.25], [0, 0, 1, 0])


def side(*sentences, unk="score", name="good", **items):
    """Return a side of sentences (text, log-probabilities of its words, 1 for each unknown word).

    `items` are further columns of the pairs.
    """
    scores = []
    for text, logprobs, unknown in sentences:
        starts = [0, *(at + 1 for at, letter in enumerate(text) if letter == " ")] if text else []
        spans = [(start, start + len(word)) for start, word in zip(starts, text.split(), strict=True)]
        scores.append(TokenScores(np.asarray(logprobs, float), np.asarray(spans), np.asarray(unknown, bool)))
    pairs = pd.DataFrame({name: [text for text, _, _ in sentences], "paradigm": "p", **items})
    pairs["pair_id"] = [str(number) for number in range(len(pairs))]
    return Side(name, pairs, scores, unk == "skip")


def with_values(method, **values):
    return dataclasses.replace(methods()[method].parameters, **values)


def scores_of(method, side, other=None, **values):
    return methods()[method].score(side, other or side, with_values(method, **values))


def test_lp_mean_lp_and_pen_lp_are_as_calculated_by_hand():
    both = side(GOOD, BAD)
    assert scores_of("lp", both).tolist() == [-7.5, -9.25]
    assert scores_of("mean_lp", both).tolist() == [-7.5 / 4, -9.25 / 4]
    # ((5 + 4) / 6) ^ 0.8 = e^(0.8 ln 1.5) = 1.3831619
    assert scores_of("pen_lp", both, alpha=0.8) == pytest.approx([-7.5 / 1.3831619, -9.25 / 1.3831619])
    assert scores_of("pen_lp", both, alpha=0.0).tolist() == [-7.5, -9.25]


def test_skipped_unknown_words_are_left_out_of_sum_and_length():
    both = side(GOOD, BAD, unk="skip")
    assert both.lp.tolist() == [-7.5, -3.25]
    assert both.tokens.tolist() == [4, 3]
    assert both.unk.tolist() == [0, 1]
    assert scores_of("mean_lp", both)[1] == -3.25 / 3
    assert np.isnan(scores_of("mean_lp", side(("", [], []), ("gnu", [-3.0], [1]), unk="skip"))).all()


def test_sums_are_in_double_precision():
    logprobs = [-1e-9] * 1000 + [-1e7]
    both = side((" ".join("a" * 1001), logprobs, [0] * 1001))
    assert both.lp[0] == pytest.approx(-1e7 - 1e-6, rel=0, abs=1e-8)


def test_unknown_words_are_counted_where_the_sentences_differ():
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


def test_rows_have_scores_sizes_and_unknown_words():
    good, bad = side(GOOD), side(BAD, name="bad")
    columns = summed("mean_lp", NoParameters(), good, bad)
    assert [columns[name].item() for name in ("good", "bad", "good_lp", "bad_lp", "good_tokens", "bad_tokens")] == [
        -7.5 / 4, -9.25 / 4, -7.5, -9.25, 4, 4
    ]  # fmt: skip
    pairs = good.pairs.assign(bad=bad.pairs["bad"])
    assert about(pairs, good, bad).iloc[0].tolist() == ["0", "p", 13, 14, 0, 1, 1, None, None]


ONE = {"one_prefix_method": [True, False], "one_prefix_prefix": ["The big cats", None]}
ONE |= {"one_prefix_word_good": ["do not", None], "one_prefix_word_bad": ["do never", None]}


def one_prefix_sides(unk="score"):
    """The critical words are two tokens, the second of which differs; the second pair is not flagged."""
    good = ("The big cats do not sleep .", [-1, -2, -3, -4, -5, -6, -7], [0, 0, 0, 0, 0, 0, 0])
    bad = ("The big cats do never sleep .", [-1, -2, -3, -4, -50, -60, -7], [0, 0, 0, 0, 1, 0, 0])
    return side(good, GOOD, unk=unk, **ONE), side(bad, BAD, name="bad", unk=unk, **ONE)


@pytest.mark.parametrize(
    ("span", "expected"), [("sum", [-9, -54]), ("first", [-4, -4]), ("last", [-5, -50]), ("as_published", [-5, -50])]
)
def test_one_prefix_scores_only_the_critical_words(span, expected):
    good, bad = one_prefix_sides()
    columns = summed("one_prefix", with_values("one_prefix", prefix_span=span), good, bad)
    assert [columns["good"][0], columns["bad"][0]] == expected
    assert np.isnan([columns["good"][1], columns["bad"][1]]).all()  # the other pair is not flagged
    assert [columns["good_lp"][0], columns["bad_lp"][0]] == [-28, -127]


@pytest.mark.parametrize(("span", "expected"), [("sum", -4), ("first", -4), ("last", -4), ("as_published", np.nan)])
def test_a_skipped_unknown_word_is_not_among_the_critical_tokens(span, expected):
    good, bad = one_prefix_sides(unk="skip")
    scores = scores_of("one_prefix", bad, good, prefix_span=span)
    assert scores == pytest.approx([expected, np.nan], nan_ok=True)


def test_two_prefix_scores_the_same_word_after_two_prefixes():
    items = {"two_prefix_method": [True], "two_prefix_word": ["laughs"]}
    items |= {
        "two_prefix_prefix_good": ["The cat that the dogs see"],
        "two_prefix_prefix_bad": ["The cats that he sees"],
    }
    good = side(("The cat that the dogs see laughs .", [-1, -1, -1, -1, -1, -1, -2, -1], [0] * 8), **items)
    bad = side(("The cats that he sees laughs .", [-1, -1, -1, -1, -1, -3, -1], [0] * 7), name="bad", **items)
    for span in ("sum", "first", "last", "as_published"):
        columns = summed("two_prefix", with_values("two_prefix", prefix_span=span), good, bad)
        assert (columns["good"].item(), columns["bad"].item()) == (-2, -3)


@pytest.mark.parametrize("ends", [[6, 10, 13], [6, 10, 12, 13]])  # "He has", " beg", "un." or "un" and "."
def test_critical_words_are_located_by_characters_whatever_the_tokens(ends):
    """Tokens may include the space before a word, split it, extend beyond it, or begin where it ends."""
    items = {"one_prefix_method": [True], "one_prefix_prefix": ["He has"], "one_prefix_word_good": ["begun"]}
    pairs = pd.DataFrame({"good": ["He has begun."], "paradigm": "p", "pair_id": "0", **items})
    spans = np.asarray([*zip([0, *ends], ends, strict=False)])
    score = TokenScores(np.asarray([-1.0, -2.0, -4.0, -8.0])[: len(ends)], spans, np.zeros(len(ends), bool))
    assert scores_of("one_prefix", Side("good", pairs, [score]), prefix_span="sum").tolist() == [-6]


def test_a_prefix_that_does_not_begin_the_sentence_raises_an_error():
    items = {"one_prefix_method": [True], "one_prefix_prefix": ["A cat"], "one_prefix_word_good": ["sleep"]}
    with pytest.raises(InputError, match=r"one_prefix: p, pair 0: 'The cats sleep \.' doesn't begin with 'A cat'"):
        scores_of("one_prefix", side(GOOD, **items), prefix_span="sum")


@pytest.mark.parametrize("method", ["lp", "mean_lp", "pen_lp"])
def test_a_sentence_of_skipped_words_only_wins_no_pair(method):
    """Its log-probability would be 0, or that of <eos>, and higher than any other."""
    good = side(("gnu", [-3.0], [1]), GOOD, GOOD, unk="skip")
    bad = side(BAD, ("yak", [-2.0], [1]), BAD, unk="skip", name="bad")
    rows = pd.DataFrame(summed(method, methods()[method].parameters, good, bad))
    assert np.isnan([rows["good"].iloc[0], rows["bad"].iloc[1]]).all()
    assert rows[["good_lp", "bad_lp"]].notna().all(axis=None)
    assert outcome(rows["good"], rows["bad"], "half").tolist() == [0.5, 0.5, rows["good"].iloc[2] > rows["bad"].iloc[2]]
    assert tied(rows["good"], rows["bad"]).tolist() == [True, True, False]


def test_a_skipped_word_before_eos_leaves_nothing_to_judge_and_the_settings_say_that_it_ties():
    eos = TokenScores(np.asarray([-3.0, -0.1]), np.asarray([(0, 3), (3, 3)]), np.asarray([True, False]))
    pairs = pd.DataFrame({"good": ["gnu"], "paradigm": "p", "pair_id": "0"})
    assert not Side("good", pairs, [eos], skip_unk=True).judged.any()
    assert Side("good", pairs, [eos]).judged.all()
    assert recorded_policy(policy(unk="skip"), True, None)["unk_only"] == "tie"
    assert "unk_only" not in recorded_policy(policy(), True, None)


def test_a_list_of_methods_serves_models_of_both_kinds():
    configs = dict.fromkeys(("lp", "pll", "mean_lp"), NoParameters())
    assert list(fitting(configs, masked=False)) == ["lp", "mean_lp"]
    assert list(fitting(configs, masked=True)) == ["pll"]
    for method, masked, others in (("lp", True, ".*, pll"), ("pll", False, ".*, lp, mean_lp, ")):
        with pytest.raises(ConfigError, match=rf"method={method} doesn't work with this model.*: {others}"):
            fitting({method: NoParameters()}, masked=masked)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("method.pen_lp.alhpa=1", r"'method\.pen_lp\.alhpa'\. Did you mean 'method\.pen_lp\.alpha'\?$"),
        ("+method.pen_lp.seed=1", r"'method\.pen_lp\.seed'\. Available: alpha\.$"),
        ("method.lp.alpha=1", r"'method\.lp\.alpha'\. .*none"),
        ("method.lp=3", r"method\.lp=3: .* method\.lp\.KEY=VALUE"),
        ("method.lp=null", r"method\.lp=null: .* method\.lp\.KEY=VALUE"),
        ("method.penlp.alpha=1", r"method\.penlp.*Did you mean 'pen_lp'\?"),
        ("method=[pen_pl]", r"'pen_pl'\. Did you mean 'pen_lp'\?"),
        ("method=[best]", r"'best'\. Available: ab_prompt, "),
        ("method.pen_lp.alpha=long", r"method\.pen_lp\.alpha=long: .*must be a number"),
        ("method.pen_lp.alpha=11", r"alpha=11: .*must be .*from 0 to 10"),
        ("method=[morcela]", r"method\.morcela\.beta, method\.morcela\.gamma: .*no default"),
    ],
)
def test_unknown_methods_and_unusable_parameters_raise_errors(override, message):
    with pytest.raises(ConfigError) as caught:
        compose("eval", [override])
    assert re.search(message, describe(caught.value))
