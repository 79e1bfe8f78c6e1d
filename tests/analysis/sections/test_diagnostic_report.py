"""Diagnostics in the report: shares counted from simulated answers, and the paper's numbers."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from statsmodels.stats.proportion import proportion_confint

from analysis.exhibits.sentences.diagnostics import methods, warnings
from analysis.measures.diagnostics import at_largest, diagnosed, over_sizes
from analysis.published import published_file
from analysis.sections.answers.diagnostics import diagnostic_exhibits
from analysis.study.collect import collect
from analysis.study.judgements import score_labels
from eval.diagnostics.questions import load_questions
from eval.published import read_published
from pairscale.errors import RunError
from tests.support.browser import OpenPage, violations
from tests.support.commands import run_command
from tests.support.diagnostics import config, write_files
from tests.support.simulated_answers import WORDS, answer
from tests.support.simulated_study import SimulatedStudy, as_hub_model

NAMES = ["cprag", "role", "neg"]


def config_of(name, folder):
    values = {} if name == "cprag" else {"shuffles": None, "seed": None}
    return config(name, folder, **values)


@pytest.fixture
def study(tmp_path):
    """Return a study of one model at two sizes with two seeds, and its answers by diagnostic and run."""
    folders = SimulatedStudy(pairs=5, models=("lstm_tiny",), sizes=("125k", "1M")).write(tmp_path / "runs")
    write_files(tmp_path / "lm_diagnostics")
    answers = {
        (name, run.path.name): answer(run, config_of(name, tmp_path / "lm_diagnostics"), seed=10 * i + j)
        for i, run in enumerate(folders)
        for j, name in enumerate(NAMES)
    }
    return collect(tmp_path / "runs", "simulated"), answers


def cells(exhibits, name):
    exhibit = next(exhibit for exhibit in exhibits if exhibit.name == name)
    return exhibit.table.set_index(list(exhibit.table.columns[:1]))


def test_labels_of_diagnostics_come_last(study):
    assert score_labels(study[0]) == ["blimp", "cprag", "neg", "role"]
    assert score_labels(study[0], "neg") == ["neg"]
    with pytest.raises(RunError, match=r"no run has scores of benchmark=climp; scores there: blimp, cprag, neg, role"):
        score_labels(study[0], "climp")


def test_shares_are_counts_of_the_answers_at_the_largest_size(study):
    """The shares are means over the two runs at 1M, counted in loops over their answers."""
    collected, answers = study
    largest = [run for run in collected.runs.index if "-1M-" in run]
    hand = {"cprag": [], "role": [], "neg": []}
    top = []
    for run in largest:
        rows = answers["cprag", run]
        rows = rows[rows["condition"] == "original"]
        items = list(dict.fromkeys(rows["item"]))
        better = 0
        for item in items:
            by_role = {row.role: row.prob for row in rows[rows["item"] == item].itertuples()}
            better += all(
                by_role["expected"] > by_role[bad] for bad in ("within_category", "between_category")
            )  # a comparison with NaN is false
        hand["cprag"].append(better / len(items))
        expected = rows[rows["role"] == "expected"]
        top.append(sum(rank <= 5 for rank in expected["rank"].fillna(99)) / len(items))
        targets = answers["role", run]
        prob = {row.item: row.prob for row in targets[targets["role"] == "target"].itertuples()}
        hand["role"].append(float(prob["68-a"] > prob["68-b"]))
        simple = answers["neg", run]
        simple = simple[simple["condition"] == "simp_negative"]
        hand["neg"].append(
            np.mean([
                simple[(simple["item"] == item) & (simple["role"] == "true")]["prob"].item()
                > simple[(simple["item"] == item) & (simple["role"] == "false")]["prob"].item()
                for item in ("SIMP-4", "SIMP-12")
            ])
        )  # fmt: skip
    columns = {"cprag": "prefers the better", "role": "prefers the better", "neg": "simple negative"}
    for name, column in columns.items():
        exhibits = diagnostic_exhibits(diagnosed(collected, name), 0.95)
        table = cells(exhibits, "sensitivity")
        assert table.loc["lstm_tiny", column] == pytest.approx(np.mean(hand[name])), name
        if name == "cprag":
            prediction = cells(exhibits, "prediction").loc["lstm_tiny"].set_index("first")
            assert prediction.loc[5, "original"] == pytest.approx(np.mean(top))


def test_intervals_over_runs_are_of_the_spread_at_a_size(study):
    results = diagnosed(study[0], "cprag")
    means = over_sizes(results, 0.9)
    key = (means["level"] == "accuracy@5") & (means["name"] == "shuffled")
    shares = results.measured[(results.measured["level"] == "accuracy@5") & (results.measured["name"] == "shuffled")]
    by_size = shares.groupby(shares["run"].map(results.runs["size"]))["accuracy"].agg(list)
    for row in means[key].itertuples():
        mean, (a, b) = np.mean(by_size[row.size]), by_size[row.size]
        assert (row.accuracy, row.runs) == (pytest.approx(mean), 2)
        # Wilson's limits (statsmodels) of the trials that give the variance of the two runs' mean, or of all answers.
        trials = mean * (1 - mean) / ((a - b) ** 2 / 4) if a != b else np.inf
        by_runs = student.ppf(0.95, 1) ** 2 / trials
        square = max(by_runs, norm.ppf(0.95) ** 2 / (2 * row.items))
        limits = proportion_confint(mean / square, 1 / square, 2 * norm.sf(1), "wilson")
        assert (row.low, row.high) == pytest.approx(limits)
    assert set(at_largest(means)["size"]) == {"1M"}


def test_runs_that_agree_have_limits_over_runs_of_some_width(study):
    """Two runs with the same share, 1 or less, have Wilson's limits of all answers."""
    results = diagnosed(study[0], "cprag")
    for share in (1.0, 0.75):
        means = over_sizes(replace(results, measured=results.measured.assign(accuracy=share)), 0.95)
        of_runs = means[means["runs"] == 2]
        assert len(of_runs)
        for row in of_runs.itertuples():
            answers = 2 * row.items
            limits = proportion_confint(share * answers, answers, method="wilson")
            assert (row.low, row.high) == pytest.approx(limits)


def test_the_papers_numbers_stand_beside_ours_in_the_form_of_its_tables(study):
    """The expected cells are typed from the paper's tables 4, 5, 7, 9, 11, 12 and 14."""
    tables = {name: diagnostic_exhibits(diagnosed(study[0], name), 0.95) for name in NAMES}
    prediction = {
        name: cells(tables[name], "prediction").loc["BERT large (paper)"].set_index("first") for name in NAMES
    }
    assert prediction["cprag"].loc[5].tolist() == [0.529, 0.392, 0.039, 0.324, 0.213, 0.037]
    assert prediction["role"].loc[1].tolist() == [0.136, 0.057, 0.068, 0.045]
    assert prediction["neg"].loc[1].tolist() == [0.444]
    sensitivity = {name: cells(tables[name], "sensitivity") for name in NAMES}
    assert sensitivity["cprag"].loc["BERT base (paper)"].tolist() == [0.735, 0.441]
    assert sensitivity["role"].loc["BERT large (paper)"].tolist() == [0.864, 0.432]
    row = sensitivity["neg"].loc["BERT base (paper)"]
    assert row["simple affirmative"] == 1
    assert row["simple negative"] == 0
    assert [row[f"{kind} {of}"] for kind in ("natural", "less natural") for of in ("affirmative", "negative")
            if f"{kind} {of}" in row] == [0.625, 0.875]  # fmt: skip  # the simulated files have no less natural item


def test_all_published_numbers_are_shown(real_data, tmp_path):
    """Each published cell is in one of the tables with the items of the real files."""
    folders = SimulatedStudy(pairs=5, models=("lstm_tiny",), sizes=("1M",), seeds=(1,)).write(tmp_path / "runs")
    for name in NAMES:
        answer(folders[0], config_of(name, real_data / "lm_diagnostics"), seed=1)
    collected = collect(tmp_path / "runs", "simulated")
    for name in NAMES:
        exhibits = diagnostic_exhibits(diagnosed(collected, name), 0.95)
        table = next(exhibit for exhibit in exhibits if exhibit.name == "measures").table
        published = read_published(name)
        for model in ("BERT base", "BERT large"):
            shown = sorted(table[f"{model} (paper)"].dropna())
            assert shown == sorted(published.loc[published["model"] == model, "accuracy"]), name
        top = next(exhibit for exhibit in exhibits if exhibit.name == "top-words").table
        known = published_file("top_words")
        assert len(top) == len(known[known["benchmark"] == name].drop_duplicates(["item", "condition", "ending"]))
        assert (top["BERT large (paper)"].str.split().str.len() == 5).all()
    contexts = set(top["context"])
    assert {"A hammer is an ____", "A robin is not a ____"} < contexts
    people = next(exhibit for exhibit in diagnostic_exhibits(diagnosed(collected, "role"), 0.95)
                  if exhibit.name == "probabilities").table  # fmt: skip
    difference = people.set_index("model").loc["people", "difference"]
    assert round(difference, 3) == 0.233  # section 5.2
    stated = published_file("cloze_people")
    assert stated.loc[stated["name"] == "difference", "probability"].tolist() == [0.233]


def test_items_are_split_by_the_constraint_that_their_file_gives(study):
    collected, answers = study
    exhibits = diagnostic_exhibits(diagnosed(collected, "cprag"), 0.95)
    table = next(exhibit for exhibit in exhibits if exhibit.name == "constraint").table.set_index("contexts")
    ranks = [
        rows.loc[(rows["condition"] == "original") & (rows["role"] == "expected") & (rows["group"] == "L"), "rank"]
        for (name, run), rows in answers.items()
        if name == "cprag" and "-1M-" in run
    ]
    assert table.loc["low constraint", "items"] == 1
    assert table.loc["low constraint", "first 5"] == np.mean([(rank.fillna(99) <= 5).item() for rank in ranks])


def test_a_curve_over_sizes_needs_two_sizes(study, tmp_path):
    exhibits = diagnostic_exhibits(diagnosed(study[0], "neg"), 0.95)
    sizes = next(exhibit for exhibit in exhibits if exhibit.name == "sizes")
    assert set(sizes.table["size"]) == {"125k", "1M"}
    one = SimulatedStudy(pairs=5, models=("lstm_tiny",), sizes=("1M",), seeds=(1,), name="one").write(tmp_path / "runs")
    answer(one[0], config_of("neg", tmp_path / "lm_diagnostics"), seed=3)
    exhibits = diagnostic_exhibits(diagnosed(collect(tmp_path / "runs", "one"), "neg"), 0.95)
    assert "sizes" not in {exhibit.name for exhibit in exhibits}


def test_a_model_of_unknown_size_is_in_the_tables_but_on_no_curve(tmp_path):
    folders = SimulatedStudy(pairs=5, models=("lstm_tiny",), sizes=("125k", "1M"), seeds=(1,)).write(tmp_path / "runs")
    write_files(tmp_path / "lm_diagnostics")
    diagnostic = config_of("role", tmp_path / "lm_diagnostics")
    bert = SimulatedStudy(pairs=5, models=("bert",), sizes=("1M",), seeds=(1,)).write(tmp_path / "runs")[0]
    as_hub_model(bert)
    for seed, folder in enumerate([*folders, bert]):
        answer(folder, diagnostic, seed, {"pll": "within_word_l2r"} if folder is bert else None)
    results = diagnosed(collect(tmp_path / "runs", "simulated"), "role")
    exhibits = diagnostic_exhibits(results, 0.95)
    assert set(cells(exhibits, "sensitivity").index) >= {"lstm_tiny", "bert", "people"}
    assert set(next(exhibit for exhibit in exhibits if exhibit.name == "sizes").table["curve"]) == {"lstm_tiny"}
    assert not any("pll" in note for note in results.notes)
    assert any(text.startswith("bert: a mask in the place") for text in methods(results))
    assert results.problems.empty
    people = cells(exhibits, "sensitivity").loc["people"]
    assert people.tolist() == [1, 1]  # .36 against .03


def test_runs_that_answered_other_questions_are_refused(study, tmp_path):
    collected, _ = study
    folder = collected.folders[collected.runs.index[0]]
    other = config("cprag", tmp_path / "lm_diagnostics", seed=2)
    assert load_questions(other).digest != diagnosed(collected, "cprag").digest
    answer(folder, other, seed=1)
    with pytest.raises(RunError, match="cprag: runs were scored on different versions of the benchmark"):
        diagnosed(collected, "cprag")


def test_a_run_with_half_written_scores_is_listed_as_unscored(study):
    collected, _ = study
    folder = collected.folders[collected.runs.index[0]]
    (folder.scores("cprag") / "topk.parquet").unlink()
    results = diagnosed(collected, "cprag")
    assert results.problems["status"].tolist() == ["unscored"]
    assert any("1 run not in these tables" in text for text in warnings(results))


def analysis(tmp_path, *overrides):
    paths = [f"paths.runs={tmp_path}/runs", f"paths.reports={tmp_path}/reports"]
    return run_command("analysis", *overrides, *paths)


@pytest.mark.slow
def test_a_report_can_hold_pairs_and_diagnostics(study, tmp_path, browser):
    done = analysis(tmp_path, "study=simulated")
    assert done.returncode == 0, done.stderr
    assert "simulated · NEG-136" in done.stdout
    assert "BERT large (paper)" in done.stdout
    assert re.search(r"^lstm_tiny ", done.stdout, re.MULTILINE)
    assert r"lstm\_tiny" in (tmp_path / "reports" / "simulated" / "cprag-words.tex").read_text()
    opened = OpenPage(browser, tmp_path / "reports" / "simulated" / "report.html")
    assert opened.charts == len(re.findall(r"data-chart=", opened.html)) > 10
    opened.page.locator(".legend button").first.click()  # that of the curves, with charts beside them that have none
    assert re.search(r'aria-pressed="true"', opened.html)
    assert opened.console == []
    words = opened.page.locator("#cprag-words")
    heads = words.locator("thead th").all_inner_texts()
    assert heads == ["item", "condition", "fitting", "lstm_tiny", "context"]  # a model's name is shown as it is
    for label in ("blimp", *NAMES):
        assert f'data-section="{label}"' in opened.html
    assert WORDS[2] in opened.html
    assert violations(opened.page) == {}
    sensitivity = opened.page.locator("#cprag-sensitivity thead th").first
    assert sensitivity.inner_text() == "model"
    table = pd.read_csv(tmp_path / "reports" / "simulated" / "cprag-sensitivity.csv")
    assert table["model"].tolist() == ["lstm_tiny", "BERT base (paper)", "BERT large (paper)"]


@pytest.mark.slow
def test_a_study_with_nothing_but_a_trained_model_has_a_report(tmp_path):
    write_files(tmp_path / "lm_diagnostics")
    bert = SimulatedStudy(pairs=5, models=("bert",), sizes=("1M",), seeds=(1,)).write(tmp_path / "runs")[0]
    as_hub_model(bert)
    shutil.rmtree(bert.scores("blimp"))
    done = analysis(tmp_path, "study=simulated")
    assert done.returncode == 2
    assert "no run has scores of a benchmark; python -m eval study=simulated" in done.stderr
    answer(bert, config_of("neg", tmp_path / "lm_diagnostics"), seed=1, policy={"pll": "original"})
    done = analysis(tmp_path, "study=simulated")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "reports" / "simulated" / "report.html").read_text()
    assert "Psycholinguistic diagnostics" in page
    assert "Learning curves on minimal pairs" not in page
    charts = json.loads(re.search(r'id="charts">(.*?)</script>', page)[1])
    assert set(charts) == {"neg-sensitivity-models"}
