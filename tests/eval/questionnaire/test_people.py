"""Answers of people: files that are refused, what does not count, and agreement against independent references."""

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

from analysis.sections.people import People, options, read_people
from analysis.study.collect import Study
from eval.published import read_published
from eval.questionnaire.agreement import agreement, agreement_table
from eval.questionnaire.answers import JUDGEMENTS, Counted, counted, read_sheets
from eval.questionnaire.forms import form_digest
from eval.scores.files import ITEMS, write_items
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, InputError
from tests.support.commands import run_command
from train.runs.folder import RunFolder

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
    return compose("analysis", ["study=s", *overrides])


def content(rater="0" * 16, right=True, failed=0, **changes):
    """A file of answers to all of PAIRS and two checks, as the page saves it."""
    said = {"first": "x", "second": "y", "chosen": "first", "ms": 900}
    answers = [
        {"paradigm": pair["paradigm"], "pair_id": pair["pair_id"], **said, "first": pair["good"],
         "second": pair["bad"], "chosen": "first" if right else "second", "position": i}
        for i, pair in enumerate(PAIRS.to_dict("records"))
    ]  # fmt: skip
    checks = [{**said, "position": len(answers) + i, "passed": i >= failed} for i in range(2)]
    asked = [(pair["paradigm"], pair["pair_id"], pair["good"], pair["bad"]) for pair in PAIRS.to_dict("records")]
    form = {"name": "form-1", "digest": form_digest(DIGEST, asked, [("x", "y")] * 2)}
    found = {
        "schema": "pairscale-answers",
        "version": 1,
        "benchmark": {"name": "blimp", "digest": DIGEST},
        "form": form,
    }
    found |= {"rater": rater, "native": True, "hidden_field": False, "answers": answers, "checks": checks}
    return found | changes


def written(folder, *contents):
    for number, one in enumerate(contents):
        (folder / f"{number}.json").write_text(one if isinstance(one, str) else json.dumps(one))
    return [str(folder)]


def count(paths, *overrides):
    return counted(read_sheets(paths), "blimp", DIGEST, PAIRS, config(*overrides).questionnaire)


def changed(place, value, **of):
    """A file of answers with one thing in it changed; `place`: keys and numbers, one in the other."""
    found = content(**of)
    inner = found
    for key in place[:-1]:
        inner = inner[key]
    if value is None:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return found


@pytest.mark.parametrize(
    ("one", "told"),
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
        (changed(["answers", 0, "first"], "another sentence"), "its pairs are not those of its form"),
        (changed(["answers", 0, "position"], 5), "something was removed or changed"),
        (changed(["answers", 0, "chosen"], "third"), "$.answers[0].chosen: invalid enum value 'third'"),
        (changed(["answers", 0, "chosen"], None), "$.answers[0]: without chosen"),
        (changed(["answers", 0, "ms"], -1), "$.answers[0].ms: expected int >= 0, got -1"),
        (changed(["answers", 0, "ms"], float("nan")), "$.answers[0].ms: expected int, got float"),
        (changed(["answers", 0, "ms"], True), "$.answers[0].ms: expected int, got bool"),
        (changed(["answers", 0, "paradigm"], ["a1"]), "$.answers[0].paradigm: expected str, got array"),
        (changed(["checks", 0, "passed"], 1), "$.checks[0].passed: expected bool, got int"),
        (changed(["benchmark", "digest"], "ad" * 32), "its pairs are not those of its form"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_in_one_line(tmp_path, one, told):
    with pytest.raises(InputError) as caught:
        read_sheets(written(tmp_path, one))
    line = str(caught.value)
    assert told in line
    assert "0.json: " in line
    assert "\n" not in line
    assert len(line) < 400


def test_missing_and_empty_folders(tmp_path):
    with pytest.raises(InputError, match="people: no file or folder /nowhere"):
        read_sheets(["/nowhere"])
    (tmp_path / "questionnaire.json").write_text("{}")  # of the forms, which answers may be put beside
    with pytest.raises(InputError, match=r"no \.json files of answers"):
        read_sheets([str(tmp_path)])


def of_another(name, digest):
    asked = [(pair["paradigm"], pair["pair_id"], pair["good"], pair["bad"]) for pair in PAIRS.to_dict("records")]
    form = {"name": "form-1", "digest": form_digest(digest, asked, [("x", "y")] * 2)}
    return content(benchmark={"name": name, "digest": digest}, form=form)


def test_answers_on_other_pairs_are_refused(tmp_path):
    paths = written(tmp_path, of_another("blimp", "ad" * 32))
    with pytest.raises(InputError, match=r"answers on blimp \(pairs adadadad\), must be on blimp \(pairs bebebebe\)"):
        count(paths)
    with pytest.raises(InputError, match="blimp has no such pair '0' of 'a1'"):
        counted(
            read_sheets(written(tmp_path, content())), "blimp", DIGEST, PAIRS.assign(good="z"), config().questionnaire
        )


def test_answers_find_the_scores_of_their_pairs(tmp_path):
    """Several labels may be of the same pairs, or of other pairs under one name; no answers are left over."""
    folder = RunFolder(tmp_path / "runs" / "s" / "r")
    for label, digest in (("blimp", DIGEST), ("blimp+context-eos-32", DIGEST), ("blimp+study-k5", "ad" * 32)):
        folder.scores(label).mkdir(parents=True)
        write_items(folder.scores(label), PAIRS.reindex(columns=ITEMS.names), "blimp", digest)
    study = Study("s", pd.DataFrame(), pd.DataFrame(), folders={"r": folder})
    labels = ["blimp", "blimp+context-eos-32", "blimp+study-k5", "cprag"]
    (tmp_path / "a").mkdir()
    paths = written(tmp_path / "a", content())
    found = read_people(config(f"people={paths[0]}"), study, labels)
    assert {label: len(sheets) for label, sheets in found.items()} == {"blimp": 1, "blimp+context-eos-32": 1}
    written(tmp_path / "a", content(), of_another("blimp", "ad" * 32))
    assert set(read_people(config(f"people={paths[0]}"), study, labels)) == {*labels[:3]}
    for name, digest in (("toy", DIGEST), ("blimp", "0" * 64)):
        written(tmp_path / "a", of_another(name, digest))
        with pytest.raises(InputError) as caught:
            read_people(config(f"people={paths[0]}"), study, labels)
        told = f"0.json: answers on {name} (pairs {digest[:8]}), the scores are of blimp (pairs adadadad), blimp (pairs"
        assert told in str(caught.value)
    assert read_people(config(), study, labels) == {}
    with pytest.raises(ConfigError, match="source=wandb lacks"):
        read_people(config(f"people={paths[0]}", "source=wandb"), study, labels)


def test_two_files_of_one_person_and_form(tmp_path):
    assert len(read_sheets(written(tmp_path, content(), content()))) == 1  # saved twice
    with pytest.raises(
        InputError, match=r"1\.json: other answers of rater 0+ on the same form than .*0\.json; keep one"
    ):
        read_sheets(written(tmp_path, content(), content(right=False)))


def test_answers_that_do_not_count_are_said(tmp_path):
    sheets = [
        content("1" * 16),
        content("2" * 16, failed=1),
        content("3" * 16, failed=2),
        content("4" * 16, native=False),
        content("5" * 16, hidden_field=True),
    ]
    paths = written(tmp_path, *sheets)
    found = count(paths)
    assert set(found.judgements["rater"]) == {"1" * 16}
    assert found.notes == [
        "2 files of answers left out: more attention checks failed than allowed (questionnaire.max_failed_checks=0).",
        "1 file of answers left out: not by a native speaker (questionnaire.native_only=true).",
        "1 file of answers left out: a field was filled that people do not see (a program's doing).",
    ]
    assert count(paths, "questionnaire.max_failed_checks=1").raters == 2
    assert count(paths, "questionnaire.max_failed_checks=2", "questionnaire.native_only=false").raters == 4
    with pytest.raises(InputError, match=r"no answers on blimp count\. 1 file of answers left out: not by a native"):
        counted(read_sheets([f"{tmp_path}/3.json"]), "blimp", DIGEST, PAIRS, config().questionnaire)


def test_a_pair_that_one_person_judged_on_two_forms_counts_once(tmp_path):
    again = content(right=False)
    again["checks"][1] |= {"first": "other check"}
    asked = [(pair["paradigm"], pair["pair_id"], pair["good"], pair["bad"]) for pair in PAIRS.to_dict("records")]
    again["form"]["digest"] = form_digest(DIGEST, asked, [("x", "y"), ("other check", "y")])
    found = count(written(tmp_path, content(), again))
    assert found.judgements["right"].tolist() == [True] * 6
    assert found.notes == ["6 answers left out: to pairs that the same person had judged on another form."]


# Agreement


def drawn(rng, raters, pairs, paradigms=1, people_sd=0.0, pair_sd=0.0, level=1.5):
    """Judgements of everyone on every pair; people and pairs differ in how often they are right (logits)."""
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
def test_the_interval_is_wilsons_of_as_many_independent_judgements(people_sd):
    """Against statsmodels: variance in two directions of clusters, and Wilson's interval."""
    rows = drawn(np.random.default_rng(3), 12, 9, people_sd=people_sd, pair_sd=1.0)
    found = agreement(rows).iloc[-1]
    fit = sm.OLS(rows["right"].astype(float), np.ones(len(rows))).fit()
    groups = [pd.factorize(rows[name])[0] for name in ("rater", "pair_id")]
    both, of_people, of_pairs = (v[0, 0] for v in cov_cluster_2groups(fit, *groups, use_correction=False))
    variance = of_people * 12 / 11 + of_pairs * 9 / 8 - (of_people + of_pairs - both)
    p = rows["right"].mean()
    trials = min(p * (1 - p) / variance, len(rows))
    assert trials < len(rows)
    alpha = 2 * norm.sf(student.ppf(0.975, 8))
    low, high = proportion_confint(p * trials, trials, alpha, method="wilson")
    assert (found["low"], found["high"]) == pytest.approx((low, high))
    half = proportion_confint(p * trials, trials, 2 * norm.sf(2), method="agresti_coull")  # z = 2: two more of each
    assert found["error"] == pytest.approx((half[1] - half[0]) / 4)


def test_everybody_right_is_no_certainty():
    rows = drawn(np.random.default_rng(0), 20, 5, level=50)
    found = agreement(rows).iloc[-1]
    assert (found["agreement"], found["majority"], found["high"]) == pytest.approx((1, 1, 1))
    alpha = 2 * norm.sf(student.ppf(0.975, 4))
    assert found["low"] == pytest.approx(proportion_confint(100, 100, alpha, method="wilson")[0])
    assert found["error"] > 0


@pytest.mark.parametrize(("raters", "pairs"), [(1, 5), (5, 1)])
def test_no_interval_where_nothing_tells_people_or_pairs_apart(raters, pairs):
    found = agreement(drawn(np.random.default_rng(0), raters, pairs, paradigms=2))
    assert found[["low", "high", "error"]].isna().all(axis=None)
    assert found["agreement"].notna().all()


def test_agreement_and_majority_against_a_slow_count():
    rng = np.random.default_rng(5)
    rows = drawn(rng, 6, 5, paradigms=4, pair_sd=2.0, level=0.3).sample(frac=0.8, random_state=1)  # not all judge all
    table = agreement(rows).set_index("name")
    single, votes = defaultdict(list), defaultdict(lambda: defaultdict(list))
    for row in rows.to_dict("records"):
        single[row["paradigm"]].append(row["right"])
        votes[row["paradigm"]][row["pair_id"]].append(row["right"])
    of_majority, tied = {}, 0
    for name, pairs in votes.items():
        won = [sum(cast) > len(cast) - sum(cast) for cast in pairs.values()]
        of_majority[name] = sum(won) / len(won)
        tied += sum(sum(cast) == len(cast) - sum(cast) for cast in pairs.values())
    individual = {name: sum(said) / len(said) for name, said in single.items()}
    for name in individual:
        assert table.loc[name, "agreement"] == pytest.approx(individual[name])
        assert table.loc[name, "majority"] == pytest.approx(of_majority[name])
    assert tied > 0
    assert table.loc["overall", "ties"] == tied
    assert table.loc["h0", "agreement"] == pytest.approx((individual["p0"] + individual["p2"]) / 2)
    assert table.loc["overall", "majority"] == pytest.approx(sum(of_majority.values()) / 4)
    assert table.loc["overall", "judgements"] == len(rows)


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    """People and pairs that differ much, where judgements taken as independent would hold it too seldom."""
    rng = np.random.default_rng(11)
    large = 1 / (1 + np.exp(-(1.0 + rng.normal(0, 1, 200_000) + rng.normal(0, 1, 200_000))))
    truth, held, naive = large.mean(), 0, 0
    for _ in range(200):
        rows = drawn(rng, 20, 12, people_sd=1.0, pair_sd=1.0, level=1.0)
        found = agreement(rows).iloc[-1]
        held += found["low"] <= truth <= found["high"]
        low, high = proportion_confint(rows["right"].sum(), len(rows), method="wilson")
        naive += low <= truth <= high
    assert 182 <= held <= 199  # of 200, 95% is 190, with a standard error of 3
    assert naive < 160


# In the place of published people


def people(rows, paradigms):
    named = pd.Series(dict(paradigms), name="phenomenon").rename_axis("paradigm")
    return People(Counted(rows, rows["rater"].nunique()), agreement(rows), named, 0.95, 0.8)


def test_people_stand_only_where_all_paradigms_were_asked():
    rows = drawn(np.random.default_rng(1), 4, 3, paradigms=3)  # p0, p1, p2 of h0, h1, h0
    whole = people(rows, [("p0", "h0"), ("p1", "h1"), ("p2", "h0")])
    assert set(whole.accuracy["name"]) == {"p0", "p1", "p2", "h0", "h1", "overall"}
    part = people(rows, [("p0", "h0"), ("p1", "h1"), ("p2", "h0"), ("p4", "h1")])
    assert set(part.accuracy["name"]) == {"p0", "p1", "p2", "h0"}
    beside = part.beside(read_published("blimp"))
    assert set(beside.loc[beside["model"] == "people", "name"]) == {"p0", "p1", "p2", "h0"}
    assert {"GPT-2", "LSTM"} < set(beside["model"])
    assert set(part.beside(read_published("toy"))["model"]) == {"people"}


def test_the_command_of_a_report_says_where_people_came_from():
    assert options(config()) == []
    said = ["questionnaire.max_failed_checks=1", "questionnaire.native_only=True", "questionnaire.threshold=0.8"]
    assert options(config("people=[a,b]", "questionnaire.max_failed_checks=1")) == ["people=[a,b]", *said]
    with pytest.raises(ConfigError, match="people=3: must be a file or a folder, or a list of them"):
        config("people=3")


def test_the_table_marks_paradigms_below_the_threshold():
    table = agreement_table("t", agreement(drawn(np.random.default_rng(0), 3, 2, level=-50)), 0.8)
    majority = next(column for column in table.columns if column.header == "majority")
    assert next(iter(majority.cells)) == "0.0!"


@pytest.mark.slow
def test_the_command_writes_forms_and_reads_answers(tmp_path):
    where = ["benchmark=toy", "benchmark.paradigms=null", f"questionnaire.folder={tmp_path}/forms"]
    done = run_command("eval.questionnaire", *where, "questionnaire.per_paradigm=1")
    assert done.returncode == 0, done.stderr
    forms = sorted(path.name for path in (tmp_path / "forms").iterdir())
    assert forms == ["form-1.html", "questionnaire.json"]
    listed = json.loads((tmp_path / "forms" / "questionnaire.json").read_text())
    (form,) = listed["forms"]
    assert f"toy: {len(form['pairs'])} pairs of {len(form['pairs'])} paradigms" in done.stdout
    before = (tmp_path / "forms" / "form-1.html").read_bytes()
    assert run_command("eval.questionnaire", *where, "questionnaire.per_paradigm=1").returncode == 0
    assert (tmp_path / "forms" / "form-1.html").read_bytes() == before
    other = run_command("eval.questionnaire", *where, "questionnaire.per_paradigm=2")
    assert other.returncode == 2
    assert "of another questionnaire, which people may be answering" in other.stderr
    assert other.stderr.count("\n") == 1
    said = {"first": "x", "second": "y", "chosen": "first", "ms": 1, "passed": True}
    answers = [
        {**said, "paradigm": pair["paradigm"], "pair_id": pair["pair_id"], "first": pair["good"],
         "second": pair["bad"], "position": i}
        for i, pair in enumerate(form["pairs"])
    ]  # fmt: skip
    asked = [(pair["paradigm"], pair["pair_id"], pair["good"], pair["bad"]) for pair in form["pairs"]]
    digest = listed["benchmark"]["digest"]
    one = content(
        answers=answers, checks=[], benchmark=listed["benchmark"], form={"digest": form_digest(digest, asked, [])}
    )
    (tmp_path / "answers").mkdir()
    paths = written(tmp_path / "answers", one)
    read = run_command("eval.questionnaire", *where, f"people={paths[0]}")
    assert read.returncode == 0, read.stderr
    assert "toy · 1 rater" in read.stdout
    assert "100.0" in read.stdout.splitlines()[-3] + read.stdout.splitlines()[-4]
    refused = run_command("eval.questionnaire", "benchmark=cprag", f"people={paths[0]}")
    assert refused.returncode == 2
    assert "a diagnostic has no pairs for people to choose from" in refused.stderr


def test_answers_to_a_benchmark_of_any_name_that_forms_have_are_read(tmp_path):
    named = content(benchmark={"name": "my own pairs", "digest": DIGEST})
    (sheet,) = read_sheets(written(tmp_path, named))
    assert sheet.benchmark == "my own pairs"
