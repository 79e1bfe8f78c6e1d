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

from eval.questionnaire.agreement import agreement, agreement_table
from eval.questionnaire.answers import JUDGEMENTS, counted, read_sheets
from eval.questionnaire.forms import form_digest
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError

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


def form_digest_of(pairs, digest=DIGEST, checks=(("x", "y"), ("x", "y"))):
    """Return the digest of a form with all of these pairs (dicts)."""
    sentences = [(pair["paradigm"], pair["pair_id"], pair["good"], pair["bad"]) for pair in pairs]
    return form_digest(digest, sentences, list(checks))


def content(rater="0" * 16, right=True, failed=0, **changes):
    """Return answers to all of PAIRS and two checks, as the page saves them."""
    answer = {"first": "x", "second": "y", "chosen": "first", "ms": 900}
    answers = [
        {"paradigm": pair["paradigm"], "pair_id": pair["pair_id"], **answer, "first": pair["good"],
         "second": pair["bad"], "chosen": "first" if right else "second", "position": i}
        for i, pair in enumerate(PAIRS.to_dict("records"))
    ]  # fmt: skip
    checks = [{**answer, "position": len(answers) + i, "passed": i >= failed} for i in range(2)]
    form = {"name": "form-1", "digest": form_digest_of(PAIRS.to_dict("records"))}
    fields = {
        "schema": "pairscale-answers",
        "version": 1,
        "benchmark": {"name": "blimp", "digest": DIGEST},
        "form": form,
    }
    fields |= {"rater": rater, "native": True, "hidden_field": False, "answers": answers, "checks": checks}
    return fields | changes


def write_answers(folder, *contents):
    for number, one in enumerate(contents):
        (folder / f"{number}.json").write_text(one if isinstance(one, str) else json.dumps(one))
    return [str(folder)]


def count(paths, *overrides):
    return counted(read_sheets(paths), "blimp", DIGEST, PAIRS, config(*overrides).questionnaire)


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
        ("", "not readable as JSON"),
        ("{", "not readable as JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "$: expected object, got array; must be a file that a form's page saved"),
        ({"schema": "other", "version": 1}, "$.schema: invalid enum value"),
        (content(version=2), "version 2, this code reads 1"),
        (content(rater=EVIL), "$.rater: expected str matching"),
        (content(rater=7), "$.rater: expected str, got int"),
        (content(native="yes"), "$.native: expected bool, got str"),
        (content(benchmark={"name": "blimp"}), "$.benchmark: without digest"),
        (content(benchmark={"name": EVIL, "digest": DIGEST}), "$.benchmark.name: expected str matching"),
        (content(benchmark=[]), "$.benchmark: expected object, got array"),
        (content(answers={}), "$.answers: expected array, got object"),
        (content(answers=content()["answers"][:-1]), "its pairs are not those of its form"),
        (content(checks=content()["checks"][:-1]), "its pairs are not those of its form"),
        (with_change(["answers", 0, "first"], "another sentence"), "its pairs are not those of its form"),
        (with_change(["answers", 0, "position"], 5), "something was removed or changed"),
        (with_change(["answers", 0, "chosen"], "third"), "$.answers[0].chosen: invalid enum value 'third'"),
        (with_change(["answers", 0, "chosen"], None), "$.answers[0]: without chosen"),
        (with_change(["answers", 0, "ms"], -1), "$.answers[0].ms: expected int >= 0, got -1"),
        (with_change(["answers", 0, "ms"], float("nan")), "$.answers[0].ms: expected int, got float"),
        (with_change(["answers", 0, "ms"], True), "$.answers[0].ms: expected int, got bool"),
        (with_change(["answers", 0, "paradigm"], ["a1"]), "$.answers[0].paradigm: expected str, got array"),
        (with_change(["checks", 0, "passed"], 1), "$.checks[0].passed: expected bool, got int"),
        (with_change(["benchmark", "digest"], "ad" * 32), "its pairs are not those of its form"),
    ],
)
def test_a_bad_file_of_answers_raises_a_one_line_error(tmp_path, one, message):
    with pytest.raises(InputError) as caught:
        read_sheets(write_answers(tmp_path, one))
    line = str(caught.value)
    assert message in line
    assert "0.json: " in line
    assert "\n" not in line
    assert len(line) < 400


def test_missing_and_empty_folders_raise_errors(tmp_path):
    with pytest.raises(InputError, match="people: no file or folder /nowhere"):
        read_sheets(["/nowhere"])
    (tmp_path / "questionnaire.json").write_text("{}")  # the file of the forms, which may be in the same folder
    with pytest.raises(InputError, match=r"no \.json files of answers"):
        read_sheets([str(tmp_path)])


def answers_on(name, digest):
    form = {"name": "form-1", "digest": form_digest_of(PAIRS.to_dict("records"), digest)}
    return content(benchmark={"name": name, "digest": digest}, form=form)


def test_answers_on_other_pairs_are_rejected(tmp_path):
    paths = write_answers(tmp_path, answers_on("blimp", "ad" * 32))
    with pytest.raises(InputError, match=r"answers on blimp \(pairs adadadad\), must be on blimp \(pairs bebebebe\)"):
        count(paths)
    with pytest.raises(InputError, match="blimp has no such pair '0' of 'a1'"):
        counted(
            read_sheets(write_answers(tmp_path, content())),
            "blimp",
            DIGEST,
            PAIRS.assign(good="z"),
            config().questionnaire,
        )


def test_two_different_files_of_one_person_and_form_raise_an_error(tmp_path):
    assert len(read_sheets(write_answers(tmp_path, content(), content()))) == 1  # saved twice
    with pytest.raises(
        InputError, match=r"1\.json: other answers of rater 0+ on the same form than .*0\.json; keep one"
    ):
        read_sheets(write_answers(tmp_path, content(), content(right=False)))


def test_notes_list_the_answers_that_do_not_count(tmp_path):
    sheets = [
        content("1" * 16),
        content("2" * 16, failed=1),
        content("3" * 16, failed=2),
        content("4" * 16, native=False),
        content("5" * 16, hidden_field=True),
    ]
    paths = write_answers(tmp_path, *sheets)
    result = count(paths)
    assert set(result.judgements["rater"]) == {"1" * 16}
    assert result.notes == [
        "2 files of answers left out: more attention checks failed than allowed (questionnaire.max_failed_checks=0).",
        "1 file of answers left out: not by a native speaker (questionnaire.native_only=true).",
        "1 file of answers left out: a field was filled that people do not see (a program's doing).",
    ]
    assert count(paths, "questionnaire.max_failed_checks=1").raters == 2
    assert count(paths, "questionnaire.max_failed_checks=2", "questionnaire.native_only=false").raters == 4
    with pytest.raises(InputError, match=r"no answers on blimp count\. 1 file of answers left out: not by a native"):
        counted(read_sheets([f"{tmp_path}/3.json"]), "blimp", DIGEST, PAIRS, config().questionnaire)


def test_a_pair_that_one_person_judged_on_two_forms_counts_once(tmp_path):
    second_form = content(right=False)
    second_form["checks"][1] |= {"first": "other check"}
    checks = [("x", "y"), ("other check", "y")]
    second_form["form"]["digest"] = form_digest_of(PAIRS.to_dict("records"), checks=checks)
    result = count(write_answers(tmp_path, content(), second_form))
    assert result.judgements["right"].tolist() == [True] * 6
    assert result.notes == ["6 answers left out: to pairs that the same person had judged on another form."]


# Agreement


def draw_judgements(rng, raters, pairs, paradigms=1, people_sd=0.0, pair_sd=0.0, level=1.5):
    """Return judgements of all people on all pairs, with random effects of people and pairs (logits)."""
    people, difficulty = rng.normal(0, people_sd, raters), rng.normal(0, pair_sd, (paradigms, pairs))
    logits = level + people[:, None, None] + difficulty
    right = rng.uniform(size=logits.shape) < 1 / (1 + np.exp(-logits))
    rows = [
        (f"{r}", "f", f"p{k}", f"h{k % 2}", f"{i}", 0, bool(right[r, k, i]), 1.0 + i)
        for r in range(raters)
        for k in range(paradigms)
        for i in range(pairs)
    ]
    return pd.DataFrame(rows, columns=JUDGEMENTS)


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
    alpha = 2 * norm.sf(student.ppf(0.975, 8))
    low, high = proportion_confint(p * trials, trials, alpha, method="wilson")
    assert (overall["low"], overall["high"]) == pytest.approx((low, high))
    half = proportion_confint(p * trials, trials, 2 * norm.sf(2), method="agresti_coull")  # z = 2: two more of each
    assert overall["error"] == pytest.approx((half[1] - half[0]) / 4)


def test_unanimous_judgements_have_an_interval_and_an_error():
    rows = draw_judgements(np.random.default_rng(0), 20, 5, level=50)
    overall = agreement(rows).iloc[-1]
    assert (overall["agreement"], overall["majority"], overall["high"]) == pytest.approx((1, 1, 1))
    alpha = 2 * norm.sf(student.ppf(0.975, 4))
    assert overall["low"] == pytest.approx(proportion_confint(100, 100, alpha, method="wilson")[0])
    assert overall["error"] > 0


@pytest.mark.parametrize(("raters", "pairs"), [(1, 5), (5, 1)])
def test_one_person_or_one_pair_gives_no_interval(raters, pairs):
    table = agreement(draw_judgements(np.random.default_rng(0), raters, pairs, paradigms=2))
    assert table[["low", "high", "error"]].isna().all(axis=None)
    assert table["agreement"].notna().all()


def test_agreement_and_majority_equal_a_slow_count():
    rng = np.random.default_rng(5)
    rows = draw_judgements(rng, 6, 5, paradigms=4, pair_sd=2.0, level=0.3).sample(
        frac=0.8, random_state=1
    )  # not every person judges every pair
    table = agreement(rows).set_index("name")
    single, votes = defaultdict(list), defaultdict(lambda: defaultdict(list))
    for row in rows.to_dict("records"):
        single[row["paradigm"]].append(row["right"])
        votes[row["paradigm"]][row["pair_id"]].append(row["right"])
    majority, tied = {}, 0
    for name, pairs in votes.items():
        won = [sum(cast) > len(cast) - sum(cast) for cast in pairs.values()]
        majority[name] = sum(won) / len(won)
        tied += sum(sum(cast) == len(cast) - sum(cast) for cast in pairs.values())
    individual = {name: sum(outcomes) / len(outcomes) for name, outcomes in single.items()}
    for name in individual:
        assert table.loc[name, "agreement"] == pytest.approx(individual[name])
        assert table.loc[name, "majority"] == pytest.approx(majority[name])
    assert tied > 0
    assert table.loc["overall", "ties"] == tied
    assert table.loc["h0", "agreement"] == pytest.approx((individual["p0"] + individual["p2"]) / 2)
    assert table.loc["overall", "majority"] == pytest.approx(sum(majority.values()) / 4)
    assert table.loc["overall", "judgements"] == len(rows)


@pytest.mark.slow
def test_intervals_cover_the_true_value_at_their_nominal_rate():
    """People and pairs differ so much that intervals for independent judgements would cover it too rarely."""
    rng = np.random.default_rng(11)
    large = 1 / (1 + np.exp(-(1.0 + rng.normal(0, 1, 200_000) + rng.normal(0, 1, 200_000))))
    truth, covered, naive = large.mean(), 0, 0
    for _ in range(200):
        rows = draw_judgements(rng, 20, 12, people_sd=1.0, pair_sd=1.0, level=1.0)
        overall = agreement(rows).iloc[-1]
        covered += overall["low"] <= truth <= overall["high"]
        low, high = proportion_confint(rows["right"].sum(), len(rows), method="wilson")
        naive += low <= truth <= high
    assert 182 <= covered <= 199  # of 200, 95% is 190, with a standard error of 3
    assert naive < 160


def test_people_are_files_or_folders():
    with pytest.raises(ConfigError, match="people=3: must be a file or a folder, or a list of them"):
        config("people=3")


def test_the_table_marks_paradigms_below_the_threshold():
    table = agreement_table("t", agreement(draw_judgements(np.random.default_rng(0), 3, 2, level=-50)), 0.8)
    majority = next(column for column in table.columns if column.header == "majority")
    assert next(iter(majority.cells)) == "0.0!"


def test_the_last_answer_counts_and_the_first_has_the_time(tmp_path):
    changed = content("1" * 16)
    answer, check = changed["answers"][0], changed["checks"][0]
    answer["earlier"] = [{"chosen": "second", "ms": 400}, {"chosen": "first", "ms": 500}]
    changed["answers"][1]["earlier"] = [{"chosen": "first", "ms": 100}]  # the same again
    check["earlier"] = [{"chosen": "second", "ms": 1}]
    result = count(write_answers(tmp_path, changed, content("2" * 16)))
    assert result.notes == [
        "1 answer changed after a step back: the last one counts.",
        "1 attention check passed only after a step back.",
    ]
    mine = result.judgements[result.judgements["rater"] == "1" * 16].set_index("position")
    assert mine["right"].all()
    assert mine["seconds"].tolist()[:3] == [0.4, 0.1, 0.9]
    with pytest.raises(InputError, match=r"earlier\[0\]: without ms"):
        read_sheets(write_answers(tmp_path, with_change(["answers", 0, "earlier"], [{"chosen": "first"}])))


def test_benchmark_names_with_spaces_are_read_from_answers(tmp_path):
    named = content(benchmark={"name": "my own pairs", "digest": DIGEST})
    (sheet,) = read_sheets(write_answers(tmp_path, named))
    assert sheet.benchmark == "my own pairs"
