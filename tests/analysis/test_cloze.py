"""Diagnostics: means over runs of simulated answers, the paper's numbers next to them, and what is refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint

from analysis.items import cloze
from analysis.items import results as items
from analysis.items.parts import read_answers
from analysis.study.long_table import runs
from eval.diagnostics.measures import measures
from eval.diagnostics.questions import load_questions
from eval.scores.files import write_answers
from eval.scores.schemas import CLOZE, TOPK
from pairscale.errors import RunError
from tests.support.diagnostics import config, write_files
from tests.support.simulated_study import SimulatedStudy, about

NAMES = ["cprag", "role", "neg"]


def answer(scores, files, name, seed, shuffle_seed=1, context="none"):
    """Write random answers of a run, one word in nine without any; return them."""
    drawn = {"shuffles": 3, "seed": shuffle_seed} if name == "cprag" else {"shuffles": None, "seed": None}
    questions = load_questions(config(name, files, **drawn))
    rng, n = np.random.default_rng(seed), len(questions.rows)
    expressible = rng.random(n) > 1 / 9
    rank = pd.array(rng.integers(1, 9, n), dtype="Int32")
    rank[~expressible] = pd.NA
    prob = np.where(expressible, rng.random(n) / 20, np.nan)
    rows = questions.rows.assign(prob=prob, rank=rank, n_tokens=1, expressible=expressible)[CLOZE.names]
    policy = {"context": context, "context_tokens": 32, "precision": "fp32"}
    made = about(name, questions.digest, parameters={"top_words": 5}, policy=policy)
    scores.mkdir(parents=True, exist_ok=True)
    fixed = rows[rows["trial"].isna()].drop_duplicates(["item", "condition", "context"])
    top = fixed[["item", "condition", "context"]].assign(place=1, word="the", prob=0.1)
    write_answers(scores, {"topk": top[TOPK.names], "cloze": rows}, made)
    return rows


@pytest.fixture
def study(tmp_path):
    """Return the runs of one model at two sizes with two seeds, their folder, and answers by diagnostic and run."""
    folders = SimulatedStudy(pairs=5, models=("lstm_tiny",), sizes=("125k", "1M")).write(tmp_path / "runs")
    write_files(tmp_path / "files")
    answers = {
        (name, run.path.name): answer(run.scores(name), tmp_path / "files", name, seed=10 * i + j)
        for i, run in enumerate(folders)
        for j, name in enumerate(NAMES)
    }
    return runs("simulated", folder=tmp_path / "runs"), tmp_path / "runs", answers


def test_means_over_runs_have_wilsons_intervals(study):
    table, folder, answers = study
    of = cloze.describe(read_answers(table, "cprag", folder))
    measured, means = of.measured, items.means_of(of.measured)
    largest = [answers["cprag", run] for run in table["run"] if "-1M-" in run]
    by_hand = pd.concat([measures("cprag", rows) for rows in largest]).groupby(["level", "name"])["accuracy"].mean()
    shown = items.at_largest(means)
    assert set(shown["size"]) == {"1M"}
    shown = shown.set_index(["level", "name"])
    assert shown.loc[by_hand.index, "accuracy"].tolist() == pytest.approx(by_hand.tolist())
    for row in shown[shown["accuracy"].between(0, 1) & shown["items"].notna()].loc["sensitivity"].itertuples():
        limits = proportion_confint(row.accuracy * row.items, row.items, method="wilson")
        assert (row.low, row.high) == pytest.approx(limits)
    assert set(measured.loc[measured["name"] == "low constraint", "items"]) == {1}  # of the simulated files
    assert items.slopes_of(replace(of, measured=measured[measured["size"] == "1M"]), 0.95).empty


def test_the_papers_numbers_are_next_to_ours(study):
    """The expected cells are typed from the paper's tables 4, 5, 7, 9, 11, 12 and 14."""
    table, folder, _ = study
    shown = {}
    for name in NAMES:
        found = read_answers(table, name, folder)
        part = items.part_of(found, cloze.describe(found), 0.95)
        assert [one.name for one in part.exhibits] == ["measures", "sizes"]
        assert [curve for curve, _ in part.findings] == ["lstm_tiny"]
        shown[name] = part.exhibits[0].table.set_index(["level", "name"])
    large = {name: of["BERT large (paper)"] for name, of in shown.items()}
    names = ["original", "shuffled", "truncated", "shuffled_truncated"]
    assert large["cprag"]["accuracy@5"][names].tolist() == [0.529, 0.392, 0.324, 0.213]
    assert large["neg"]["accuracy@1", "simp affirmative"] == 0.444
    assert large["role"]["sensitivity", "original"] == 0.864
    assert large["role"]["sensitivity>.01", "original"] == 0.432
    people = shown["role"]["people"]  # cloze probabilities of .36 against .03
    assert people[[("sensitivity", "original"), ("probability", "fitting roles")]].tolist() == [1, 0.36]
    base = shown["neg"]["BERT base (paper)"]["sensitivity"]
    assert base[["simp affirmative", "simp negative", "natural affirmative"]].tolist() == [1, 0, 0.625]


def test_other_questions_settings_and_missing_answers(study):
    table, folder, _ = study
    first, second = (folder / "simulated" / run / "scores" for run in table["run"][:2])
    (second / "cprag" / "topk.parquet").unlink()  # half written
    assert any(table["run"][1] in note for note in read_answers(table, "cprag", folder).notes)
    answer(first / "cprag", folder.parent / "files", "cprag", seed=1, shuffle_seed=2)
    answer(first / "neg", folder.parent / "files", "neg", seed=1, context="eos")
    for name, message in ("cprag", "different versions"), ("neg", "different settings"), ("other", "no run has"):
        with pytest.raises(RunError, match=message):
            read_answers(table, name, folder)
