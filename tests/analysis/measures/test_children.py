"""Ages of acquisition, amounts of text from sigmoids, and correlations, against values by hand and other libraries."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import pearsonr, rankdata, spearmanr

from analysis.measures.age_lists import half_age, read_ages
from analysis.measures.children import (
    PEARSON,
    SPEARMAN,
    halfway,
    learnt,
    statistic,
    surprisal_folder,
    word_surprisals,
)
from pairscale.errors import ConfigError, InputError, RunError
from tests.support.child_files import STUDY, write_study


def written(folder, table, name="ages.csv"):
    path = folder / name
    if name.endswith(".parquet"):
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if name.endswith(".tsv") else ",")
    return path


def test_forms_of_lists_give_months(tmp_path):
    kuperman = pd.DataFrame({"Word": ["dog", "Idea", "rare"], "Rating.Mean": ["2.5", "6", "NA"]})
    found = read_ages(written(tmp_path, kuperman))
    assert found.ages.to_dict() == {"dog": 30.0, "idea": 72.0}
    assert found.left_out == {"no age": 1}
    months = pd.DataFrame(
        {"word": ["dog", "fish (animal)", "fish (food)", "all gone"], "age": [14.0, 18.0, 20.0, 19.0]}
    )
    found = read_ages(written(tmp_path, months, "ages.parquet"))
    assert found.ages.to_dict() == {"dog": 14.0, "fish": 19.0}
    assert found.left_out == {"several words": 1, "the same word again": 1}


def test_proportions_by_age_give_the_age_of_one_half(tmp_path):
    ages = np.arange(16, 31)
    shares = 1 / (1 + np.exp(-0.5 * (ages - 22.0)))
    wide = pd.DataFrame([["dog", *shares], ["never", *(0.1 * shares)]], columns=["item_definition", *map(str, ages)])
    long = wide.melt("item_definition", var_name="age", value_name="proportion")
    for table, name in ((wide, "wide.csv"), (long, "long.tsv")):
        found = read_ages(written(tmp_path, table, name))
        assert found.ages["dog"] == pytest.approx(22, abs=0.05)
        assert "never" not in found.ages  # not by the last age that was asked
    logit = np.log(shares / (1 - shares))
    slope, constant = np.polyfit(ages, logit, 1)
    assert half_age(ages, shares) == pytest.approx(-constant / slope, abs=0.05)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"token": ["dog"], "age": [20]}, "no column of words (word, Word, item_definition, definition); there are"),
        ({"word": ["dog"], "months": [20]}, "no column of ages (Rating.Mean, AoA_Kup, age_years, age_months, aoa, age"),
        ({"word": ["dog", "cat"], "age": ["20", "two"]}, "line 3: age is 'two', must be a number"),
        ({"word": ["dog"], "age": [-1]}, "line 2: age is -1, must be above 0, or empty"),
        ({"word": ["dog"], "age": [20], "proportion": [50]}, "proportion is 50, must be a share from 0 to 1"),
        ({"word": ["dog"], "age": [""]}, "holds no word with an age"),
    ],
)  # fmt: skip
def test_wrong_lists_are_refused_in_one_line(tmp_path, table, message):
    path = written(tmp_path, pd.DataFrame(table))
    with pytest.raises(InputError) as error:
        read_ages(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_files_that_are_not_there_or_of_no_table_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"analysis\.children=.*none\.csv: no such file"):
        read_ages(tmp_path / "none.csv")
    (tmp_path / "ages.xlsx").write_text("")
    with pytest.raises(ConfigError, match=r"analysis\.children=.*: must end in \.csv"):
        read_ages(tmp_path / "ages.xlsx")


def test_a_word_is_learnt_halfway_from_chance_to_its_last_surprisal():
    x = np.arange(17.0, 22.0)
    middle, steepness, fall = np.asarray([18.0, 19.5, 19.0]), np.asarray([2.0, 1.5, 3.0]), np.asarray([6.0, 5.0, 4.0])
    curves = 10 - fall / (1 + np.exp(-steepness * (x[:, None] - middle)))
    found = halfway(x, curves, np.full(3, 10.0))
    last = 10 - curves[-1]
    by_hand = [
        np.interp(drop / 2, fall[u] / (1 + np.exp(-steepness[u] * (grid - middle[u]))), grid)
        for u, (drop, grid) in enumerate(zip(last, [np.linspace(10, 25, 20_001)] * 3, strict=True))
    ]
    assert found == pytest.approx(by_hand, abs=0.15)  # the grid's step


def test_words_beyond_the_sizes_are_censored():
    x = np.arange(17.0, 22.0)
    early, never = np.full(5, 4.0), np.full(5, 10.5)
    found = learnt(x, np.stack([early, never], axis=1), np.asarray([10.0, 10.0]))
    assert found.x.tolist() == [17.0, 21.0]
    assert found.early.tolist() == [True, False]
    assert found.late.tolist() == [False, True]
    assert found.censored == 1


def test_correlations_and_partial_ones_are_those_of_other_libraries():
    rng = np.random.default_rng(1)
    controls = rng.normal(size=(2, 40))
    ages = controls[0] + rng.normal(size=40)
    scores = (controls[0] - controls[1] + ages + rng.normal(size=(3, 40))).astype(float)
    assert statistic(SPEARMAN, scores, ages, None).value[0] == pytest.approx(spearmanr(scores[0], ages).statistic)
    assert statistic(PEARSON, scores, ages, None).value[1] == pytest.approx(pearsonr(scores[1], ages).statistic)
    for measure, ranked in ((PEARSON, np.asarray), (SPEARMAN, lambda of: rankdata(of, axis=-1))):
        x, y, z = ranked(scores)[2], ranked(ages), sm.add_constant(ranked(controls).T)
        left = [sm.OLS(of, z).fit().resid for of in (x, y)]
        assert statistic(measure, scores, ages, controls).value[2] == pytest.approx(pearsonr(*left).statistic)


def test_surprisals_of_words_are_means_over_what_all_runs_know(tmp_path):
    ages = write_study(tmp_path)
    folder = surprisal_folder(tmp_path / "reports", "simulated", None)
    runs = sorted(path.stem for path in folder.glob("*.parquet"))
    read, found = word_surprisals(folder, runs, set(ages["word"][:30]))
    assert read == runs
    assert found.words == sorted(ages["word"][:30])
    assert found.surprisal.shape == (len(STUDY.sizes) * 2, 30)
    assert set(found.occurrences) == {6}
    with pytest.raises(ConfigError, match=r"analysis\.children_text=other: must be one of childes"):
        surprisal_folder(tmp_path / "reports", "simulated", "other")
    with pytest.raises(ConfigError, match=r"first: python -m eval\.surprisal study=none text=FILE"):
        surprisal_folder(tmp_path / "reports", "none", None)
    (folder.parent / "second").mkdir()
    (folder.parent / "second" / "a.parquet").write_bytes(b"")
    with pytest.raises(ConfigError, match="several texts have surprisals: childes, second; name one"):
        surprisal_folder(tmp_path / "reports", "simulated", None)
    with pytest.raises(RunError, match="no run of the study has surprisals there"):
        word_surprisals(folder, ["other"], {"dog"})
