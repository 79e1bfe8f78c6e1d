"""Diagnostics: shares counted from simulated answers, the paper's numbers next to them, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from analysis.items import cloze
from analysis.items import results as items
from analysis.items.parts import read_answers
from analysis.study.long_table import runs
from pairscale.errors import RunError
from tests.support.diagnostics import config, write_files
from tests.support.simulated_answers import answer
from tests.support.simulated_study import SimulatedStudy

NAMES = ["cprag", "role", "neg"]


def config_of(name, folder, **values):
    return config(name, folder, **(values if name == "cprag" else {"shuffles": None, "seed": None}))


@pytest.fixture
def study(tmp_path):
    """Return the runs of one model at two sizes with two seeds, their folder, and answers by diagnostic and run."""
    simulated = SimulatedStudy(pairs=5, models=("lstm_tiny",), sizes=("125k", "1M"))
    folders = simulated.write(tmp_path / "runs")
    write_files(tmp_path / "files")
    answers = {
        (name, run.path.name): answer(run, config_of(name, tmp_path / "files"), seed=10 * i + j)
        for i, run in enumerate(folders)
        for j, name in enumerate(NAMES)
    }
    return runs("simulated", folder=tmp_path / "runs"), tmp_path / "runs", answers


def described(table, name, folder):
    return cloze.describe(read_answers(table, name, folder))


def part(table, name, folder, **options):
    found = read_answers(table, name, folder)
    return items.part_of(found, cloze.describe(found), 0.95, **options)


def measures_of(part):
    return part.exhibits[0].table.set_index(["level", "name"])


def test_shares_are_counts_of_the_answers(study):
    """Means over the two runs at 1M of shares that are counted in loops over their answers."""
    table, folder, answers = study
    hand = {name: [] for name in NAMES}
    first_5 = []
    for run in (run for run in table["run"] if "-1M-" in run):
        rows = answers["cprag", run]
        rows = rows[rows["condition"] == "original"]
        right = 0
        for _, item in rows.groupby("item"):
            prob = dict(zip(item["role"], item["prob"], strict=True))  # a comparison with NaN is false
            right += prob["expected"] > prob["within_category"] and prob["expected"] > prob["between_category"]
        hand["cprag"].append(right / rows["item"].nunique())
        ranks = rows.loc[rows["role"] == "expected", "rank"].fillna(99)
        first_5.append((ranks <= 5).mean())
        targets = answers["role", run]
        prob = targets[targets["role"] == "target"].set_index("item")["prob"]
        hand["role"].append(float(prob["68-a"] > prob["68-b"]))
        simple = answers["neg", run]
        simple = simple[simple["condition"] == "simp_negative"].pivot(index="item", columns="role", values="prob")
        hand["neg"].append((simple["true"] > simple["false"]).mean())
    for name, part_of_name in {"cprag": "original", "role": "original", "neg": "simp negative"}.items():
        means = items.at_largest(items.means_of(described(table, name, folder).measured))
        shares = means.set_index(["level", "name"])["accuracy"]
        assert shares["sensitivity", part_of_name] == pytest.approx(np.mean(hand[name]))
        if name == "cprag":
            assert shares["accuracy@5", "original"] == pytest.approx(np.mean(first_5))


def test_means_have_wilsons_intervals(study):
    table, folder, _ = study
    of = described(table, "cprag", folder)
    measured, means = of.measured, items.means_of(of.measured)
    by_hand = measured.groupby(["size", "level", "name"])["accuracy"].mean()
    for row in means[means["level"] != "probability"].itertuples():
        share = by_hand[row.size, row.level, row.name]
        assert (row.accuracy, row.runs) == (pytest.approx(share), 2)
        limits = proportion_confint(share * row.items, row.items, method="wilson")
        assert (row.low, row.high) == pytest.approx(limits)
    assert set(items.at_largest(means)["size"]) == {"1M"}
    low = measured[measured["name"] == "low constraint"]
    assert set(low["items"]) == {1}  # of the simulated files
    assert items.slopes_of(replace(of, measured=measured[measured["size"] == "1M"]), 0.95).empty


def test_the_papers_numbers_are_next_to_ours(study):
    """The expected cells are typed from the paper's tables 4, 5, 7, 9, 11, 12 and 14."""
    table, folder, _ = study
    parts = {name: part(table, name, folder) for name in NAMES}
    shown = {name: measures_of(of)["BERT large (paper)"] for name, of in parts.items()}
    names = ["original", "shuffled", "truncated", "shuffled_truncated"]
    assert shown["cprag"]["accuracy@5"][names].tolist() == [0.529, 0.392, 0.324, 0.213]
    assert shown["neg"]["accuracy@1", "simp affirmative"] == 0.444
    assert shown["role"]["sensitivity", "original"] == 0.864
    assert shown["role"]["sensitivity>.01", "original"] == 0.432
    people = measures_of(parts["role"])["people"]  # cloze probabilities of .36 against .03
    assert people[[("sensitivity", "original"), ("probability", "fitting roles")]].tolist() == [1, 0.36]
    base = measures_of(parts["neg"])["BERT base (paper)"]["sensitivity"]
    assert base[["simp affirmative", "simp negative", "natural affirmative"]].tolist() == [1, 0, 0.625]
    for of in parts.values():
        assert [one.name for one in of.exhibits] == ["measures", "sizes"]
        assert [curve for curve, _ in of.findings] == ["lstm_tiny"]
        assert all(all(exhibit.panels.values()) for exhibit in of.exhibits)


def test_other_questions_settings_and_missing_answers(study):
    table, folder, _ = study
    first, second = (folder / "simulated" / run / "scores" for run in table["run"][:2])
    (second / "cprag" / "topk.parquet").unlink()  # half written
    assert any(table["run"][1] in note for note in read_answers(table, "cprag", folder).notes)
    run = type("Run", (), {"scores": lambda self, label: first / label})()
    answer(run, config_of("cprag", folder.parent / "files", seed=2), seed=1)
    with pytest.raises(RunError, match="different versions"):
        read_answers(table, "cprag", folder)
    answer(run, config_of("neg", folder.parent / "files"), 1, {"context": "eos"})
    with pytest.raises(RunError, match="different settings"):
        read_answers(table, "neg", folder)
    with pytest.raises(RunError, match="no run has complete scores"):
        read_answers(table, "other", folder)
