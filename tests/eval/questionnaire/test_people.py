"""Answers of people: rejected files, answers that do not count, agreement compared with independent references."""

import json
from collections import defaultdict
from functools import cache

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import norm
from scipy.stats import t as student
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.sandwich_covariance import cov_cluster_2groups

from eval.questionnaire.answers import JUDGEMENTS, MAX_BYTES, agreement, counted, read_answers
from pairscale.command.compose import compose
from pairscale.errors import InputError

DIGEST = "be" * 32
EVIL = "</script><script>alert(1)</script>"
PAIRS = pd.DataFrame(
    [
        {"pair_id": pair, "paradigm": name, "phenomenon": name[0], "good": f"{name} {pair} good", "bad": f"{name} bad"}
        for name in ("a1", "a2", "b1")
        for pair in ("0", "1")
    ]
)


@cache
def config(*overrides):
    return compose("questionnaire", ["benchmark=toy", *overrides])


def content(rater="0" * 16, right=True, failed=0, **changes):
    """Return answers to all of PAIRS and two checks, as the page saves them."""
    answers = [
        {"paradigm": pair["paradigm"], "pair_id": pair["pair_id"], "first": pair["good"], "second": pair["bad"],
         "chosen": "first" if right else "second", "ms": 900}
        for pair in PAIRS.to_dict("records")
    ]  # fmt: skip
    answers += [
        {"check": "y" if i < failed else "x", "first": "x", "second": "y", "chosen": "first", "ms": 1} for i in (0, 1)
    ]
    about = {"schema": "pairscale-answers", "version": 2, "benchmark": "blimp", "digest": DIGEST, "form": "form-1"}
    return about | {"rater": rater, "native": True, "answers": answers} | changes


def write_answers(folder, *contents):
    for number, one in enumerate(contents):
        (folder / f"{number}.json").write_text(one if isinstance(one, str) else json.dumps(one))
    return [str(folder)]


def count(paths, *overrides):
    return counted(read_answers(paths), "blimp", DIGEST, PAIRS, config(*overrides).questionnaire)


def with_change(place, value, **of):
    """Return answers with one value changed; `place` is the path to it, of keys and indices."""
    fields = content(**of)
    inner = fields
    for key in place[:-1]:
        inner = inner[key]
    if value is None:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return fields


@pytest.mark.parametrize(
    ("one", "message"),
    [
        ("", "as JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "$: expected object, got array. Use a file that a form's page saved"),
        ({"schema": "other", "version": 2}, "$.schema: invalid enum value"),
        (content(version=1), "version 1, but pairscale reads version 2"),
        (content(rater=EVIL), "$.rater: expected str matching"),
        (content(benchmark=EVIL), "$.benchmark: expected str matching"),
        (" " * (MAX_BYTES + 1), "larger than"),
        (content(digest="7"), "$.digest: expected 64 hexadecimal digits"),
        (content(answers=[]), "$.answers: expected array of length >= 1"),
        (with_change(["answers", 0, "chosen"], "third"), "$.answers[0].chosen: invalid enum value 'third'"),
        (with_change(["answers", 0, "chosen"], None), "$.answers[0]: this key is missing: chosen"),
        (with_change(["answers", 0, "ms"], -1), "$.answers[0].ms: expected int >= 0, got -1"),
    ],
)
def test_a_bad_file_of_answers_raises_a_one_line_error(tmp_path, one, message):
    with pytest.raises(InputError) as caught:
        read_answers(write_answers(tmp_path, one))
    line = str(caught.value)
    assert message in line
    assert "0.json: " in line
    assert "\n" not in line
    assert len(line) < 400


def test_answers_that_are_missing_or_on_other_pairs_are_rejected(tmp_path):
    with pytest.raises(InputError, match=f"people={tmp_path}"):
        read_answers([str(tmp_path)])
    with pytest.raises(InputError, match=r"about blimp \(pairs adadadad\), but .* blimp \(pairs bebebebe\)"):
        count(write_answers(tmp_path, content(digest="ad" * 32)))
    for changed in (["answers", 0, "first"], ["answers", 0, "pair_id"], ["answers", 0, "paradigm"]):
        with pytest.raises(InputError, match=r"damaged, .* blimp .* pair"):
            count(write_answers(tmp_path, with_change(changed, "another")))


def test_notes_list_the_answers_that_do_not_count(tmp_path):
    people = [content("1" * 16), content("2" * 16, failed=1), content("3" * 16, failed=2)]
    paths = write_answers(tmp_path, *people, content("4" * 16, native=False))
    judgements, notes = count(paths)
    assert set(judgements["rater"]) == {"1" * 16}
    assert judgements["seconds"].tolist() == [0.9] * 6
    assert [note.partition(" files")[0] for note in notes] == [
        "Left out 12 answers in 2 of 4", "Left out 6 answers in 1 of 4",
    ]  # fmt: skip
    assert "max_failed_checks=0" in notes[0]
    assert "native_only=true" in notes[1]
    for options, raters in ((["max_failed_checks=1"], 2), (["max_failed_checks=2", "native_only=false"], 4)):
        assert count(paths, *(f"questionnaire.{option}" for option in options))[0]["rater"].nunique() == raters
    with pytest.raises(
        InputError, match=r"none of the answers about blimp can be used\. Left out 6 answers .*: not a native"
    ):
        count([f"{tmp_path}/3.json"])


def test_a_pair_that_one_person_judged_twice_counts_once(tmp_path):
    judgements, notes = count(write_answers(tmp_path, content(), content(right=False)))
    assert judgements["right"].tolist() == [True] * 6
    (note,) = notes
    assert note.startswith("Left out 6 answers in 1 of 2 files")


# Agreement


def draw_judgements(rng, raters, pairs, paradigms=1, people_sd=0.0, pair_sd=0.0, level=1.5):
    """Return judgements of all people on all pairs, with random effects of people and pairs (logits)."""
    people, difficulty = rng.normal(0, people_sd, raters), rng.normal(0, pair_sd, (paradigms, pairs))
    logits = level + people[:, None, None] + difficulty
    right = rng.uniform(size=logits.shape) < 1 / (1 + np.exp(-logits))
    rows = [
        (f"{r}", f"p{k}", f"h{k % 2}", f"{i}", bool(right[r, k, i]), 1.0 + i)
        for r in range(raters)
        for k in range(paradigms)
        for i in range(pairs)
    ]
    return pd.DataFrame(rows, columns=JUDGEMENTS)


def wilson(right, trials, groups):
    """Return Wilson's interval, wider by Student's t of the smaller number of groups."""
    alpha = 2 * norm.sf(student.ppf(0.975, groups - 1))
    return proportion_confint(right, trials, alpha, method="wilson")


@pytest.mark.parametrize("people_sd", [0.0, 2.0])
def test_the_interval_is_wilsons_of_the_effective_number_of_judgements(people_sd):
    """The reference is statsmodels: variance with two-way clusters, and Wilson's interval."""
    rows = draw_judgements(np.random.default_rng(3), 12, 9, people_sd=people_sd, pair_sd=1.0)
    overall = agreement(rows).iloc[-1]
    fit = sm.OLS(rows["right"].astype(float), np.ones(len(rows))).fit()
    groups = [pd.factorize(rows[name])[0] for name in ("rater", "pair_id")]
    both, of_people, of_pairs = (v[0, 0] for v in cov_cluster_2groups(fit, *groups, use_correction=False))
    variance = of_people * 12 / 11 + of_pairs * 9 / 8 - (of_people + of_pairs - both)
    p = rows["right"].mean()
    trials = min(p * (1 - p) / variance, len(rows))
    assert trials < len(rows)
    assert (overall["low"], overall["high"]) == pytest.approx(wilson(p * trials, trials, 9))
    unanimous = agreement(draw_judgements(np.random.default_rng(0), 20, 5, level=50)).iloc[-1]
    assert (unanimous["low"], unanimous["high"]) == pytest.approx(wilson(100, 100, 5))


@pytest.mark.parametrize(("raters", "pairs"), [(1, 5), (5, 1)])
def test_one_person_or_one_pair_gives_no_interval(raters, pairs):
    table = agreement(draw_judgements(np.random.default_rng(0), raters, pairs, paradigms=2))
    assert table[["low", "high"]].isna().all(axis=None)
    assert table["agreement"].notna().all()


def test_agreement_and_majority_equal_a_slow_count():
    rng = np.random.default_rng(5)
    rows = draw_judgements(rng, 6, 5, paradigms=4, pair_sd=2.0, level=0.3).sample(
        frac=0.8, random_state=1
    )  # not every person judges every pair
    table = agreement(rows).set_index("name")
    votes = defaultdict(lambda: defaultdict(list))
    for row in rows.to_dict("records"):
        votes[row["paradigm"]][row["pair_id"]].append(row["right"])
    majority, tied = {}, 0
    for name, pairs in votes.items():
        won = [sum(cast) > len(cast) - sum(cast) for cast in pairs.values()]
        majority[name] = sum(won) / len(won)
        tied += sum(sum(cast) == len(cast) - sum(cast) for cast in pairs.values())
    individual = {name: np.mean([right for cast in pairs.values() for right in cast]) for name, pairs in votes.items()}
    for name in individual:
        assert table.loc[name, "agreement"] == pytest.approx(individual[name])
        assert table.loc[name, "majority"] == pytest.approx(majority[name])
    assert tied > 0
    assert table.loc["overall", "ties"] == tied
    assert table.loc["h0", "agreement"] == pytest.approx((individual["p0"] + individual["p2"]) / 2)
    assert table.loc["overall", "majority"] == pytest.approx(sum(majority.values()) / 4)
    assert table.loc["overall", "judgements"] == len(rows)
