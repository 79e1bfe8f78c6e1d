"""Ages of acquisition, and the amounts of text from sigmoids, against values by hand and other libraries."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from analysis.ages import ages_of_acquisition, half_age, halfway, read_ages
from eval.scores.files import read_words, write_words
from pairscale.errors import ConfigError, InputError, RunError
from tests.support.child_files import STUDY, write_snapshots, write_study
from tests.support.scored_runs import run_folders
from tests.support.simulated_study import as_revisions


def written(folder, table, name="ages.csv"):
    path = folder / name
    if name.endswith(".parquet"):
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if name.endswith(".tsv") else ",")
    return path


def test_forms_of_lists_give_months(tmp_path):
    kuperman = pd.DataFrame({"Word": ["dog", "Idea", "rare"], "Rating.Mean": ["2.5", "6", "NA"]})
    assert read_ages(written(tmp_path, kuperman)).to_dict() == {"dog": 30.0, "idea": 72.0}
    words = ["dog", "fish (animal)", "fish (food)", "all gone"]
    months = pd.DataFrame({"word": words, "age": [14.0, 18.0, 20.0, 19.0]})
    assert read_ages(written(tmp_path, months, "ages.parquet")).to_dict() == {"dog": 14.0, "fish": 19.0}


def test_proportions_by_age_give_the_age_of_one_half(tmp_path):
    ages = np.arange(16, 31)
    shares = 1 / (1 + np.exp(-0.5 * (ages - 22.0)))
    wide = pd.DataFrame([["dog", *shares], ["never", *(0.1 * shares)]], columns=["item_definition", *map(str, ages)])
    long = wide.melt("item_definition", var_name="age", value_name="proportion")
    for table, name in ((wide, "wide.csv"), (long, "long.tsv")):
        found = read_ages(written(tmp_path, table, name))
        assert found["dog"] == pytest.approx(22, abs=0.05)
        assert "never" not in found  # not by the last age
    slope, constant = np.polyfit(ages, np.log(shares / (1 - shares)), 1)
    assert half_age(ages, shares) == pytest.approx(-constant / slope, abs=0.05)


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ({"token": ["dog"], "age": [20]}, "item_definition"),
        ({"word": ["dog"], "months": [20]}, "age_months"),
        ({"word": ["dog", "cat"], "age": ["20", "two"]}, "line 3: age is 'two'"),
        ({"word": ["dog"], "age": [20], "proportion": [50]}, "line 2: proportion is '50'"),
    ],
)
def test_wrong_lists_are_refused_in_one_line(tmp_path, table, fault):
    path = written(tmp_path, pd.DataFrame(table))
    with pytest.raises(InputError, match=rf"{path}: .*{fault}"):
        read_ages(path)


def test_a_word_is_learned_halfway_from_chance_to_its_last_surprisal():
    x, grid = np.arange(17.0, 22.0), np.linspace(10, 25, 20_001)
    middle, steepness, fall = np.asarray([18.0, 19.5, 19.0]), np.asarray([2.0, 1.5, 3.0]), np.asarray([6.0, 5.0, 4.0])
    curves = 10 - fall / (1 + np.exp(-steepness * (x[:, None] - middle)))
    by_hand = [
        np.interp((10 - curves[-1, u]) / 2, fall[u] / (1 + np.exp(-steepness[u] * (grid - middle[u]))), grid)
        for u in range(3)
    ]
    assert halfway(x, curves, np.full(3, 10.0)) == pytest.approx(by_hand, abs=0.15)  # the grid's step
    assert halfway(x, np.full((5, 1), 10.5), np.array([10.0])) == np.inf  # never below chance


def test_a_study_learns_words_in_the_order_of_children_that_was_simulated(tmp_path):
    ages = write_study(tmp_path)
    ages = ages[ages.index % 2 == 0]
    folders = {"folder": tmp_path / "runs", "reports": tmp_path / "reports"}
    table = ages_of_acquisition("simulated", written(tmp_path, ages), **folders)
    assert table["word"].tolist() == sorted(ages["word"])
    assert set(table["occurrences"]) == {6, 7, 8, 9, 10}
    assert table["sample_words"].between(125_000, 2_000_000).all()
    assert spearmanr(table["sample_words"], table["age"]).statistic > 0.8
    runs = sorted((tmp_path / "reports/simulated/surprisal/childes").glob("*-125k-*.parquet"))
    word = table["word"][0]
    means = [pd.read_parquet(run).query(f"word == '{word.title()},'")["surprisal"].mean() for run in runs]
    assert len(runs) == len(STUDY.seeds)
    assert table["smallest_surprisal"][0] == pytest.approx(np.mean(means))
    (tmp_path / "reports/simulated/surprisal/second").mkdir()
    (tmp_path / "reports/simulated/surprisal/second/a.parquet").write_bytes(b"")
    for name, text, kind, match in (
        ("ages.csv", "other", ConfigError, "text=other"),
        ("ages.csv", None, ConfigError, "childes, second"),
        ("ages.csv", "second", RunError, "no run"),
        ("none.csv", "childes", InputError, "does not exist"),
        ("others.csv", "childes", RunError, "no word"),
    ):
        written(tmp_path, pd.DataFrame({"word": ["zebra"], "age": [30]}), "others.csv")
        with pytest.raises(kind, match=match):
            ages_of_acquisition("simulated", tmp_path / name, text, **folders)


def test_words_beyond_the_sizes_have_the_amounts_of_the_ends(tmp_path):
    write_study(tmp_path, noise=0)
    table = pd.DataFrame({"word": ["bal", "bam"], "age": [20, 21]})
    folder = tmp_path / "reports/simulated/surprisal/childes"
    for file in folder.glob("*.parquet"):  # bal is known from the start, bam is never below chance
        rows, made = read_words(file)
        rows.loc[rows["word"] == "Bal,", "surprisal"] = 0.5
        rows.loc[rows["word"] == "Bam,", "surprisal"] = 10.5
        write_words(file, rows, made)
    folders = {"folder": tmp_path / "runs", "reports": tmp_path / "reports"}
    found = ages_of_acquisition("simulated", written(tmp_path, table), **folders)
    assert found["censored"].tolist() == ["before", "after"]
    assert found["sample_words"].tolist() == pytest.approx([125_000, 2_000_000])
    as_revisions(run_folders(tmp_path / "runs"))  # checkpoints from elsewhere
    with pytest.raises(RunError, match="size of its vocabulary"):
        ages_of_acquisition("simulated", written(tmp_path, table), **folders)


def test_snapshots_of_a_run_are_a_curve_over_the_words_it_had_seen(tmp_path):
    """The simulated sizes, given as snapshots of one run, place the words where the sizes do."""
    write_study(tmp_path, noise=0)
    folder = tmp_path / "reports/simulated/surprisal"
    first = write_snapshots(tmp_path / "runs/simulated", folder / "childes", "contexts")
    folders = {"folder": tmp_path / "runs", "reports": tmp_path / "reports"}
    ages = written(tmp_path, pd.DataFrame({"word": ["bal", "dam"], "age": [20, 21]}))
    [of_run] = ages_of_acquisition("simulated", ages, "contexts", snapshots=True, **folders).to_dict("records")
    of_sizes, _ = ages_of_acquisition("simulated", ages, "childes", **folders).to_dict("records")
    assert (of_run["curve"], of_run["word"]) == (first, "bal")
    assert "sample_words" not in of_run
    assert of_run["words_seen"] == pytest.approx(of_sizes["sample_words"], rel=1e-3)
    for file in folder.glob("contexts/*.parquet"):  # a target may occur once
        rows, made = read_words(file)
        write_words(file, rows.drop_duplicates("word"), made)
    assert ages_of_acquisition("simulated", ages, "contexts", snapshots=True, **folders)["occurrences"].tolist() == [1]
    with pytest.raises(RunError, match=r"scoring\.snapshots=true"):
        ages_of_acquisition("simulated", ages, "childes", snapshots=True, **folders)
