"""The papers' statements and tables, against numbers typed from the papers and other computations."""

import pandas as pd
import pytest

from analysis.published import published_file
from analysis.statements import (
    ADJECTIVE,
    ATTRACTOR,
    CLIMP_PARADIGMS,
    agreement,
    by_condition,
    check_statements,
    losses,
    paradigm_table,
    phenomenon_table,
    wide,
)
from eval.published import means_of_paradigms, read_published
from tests.support import ROOT
from tests.support.commands import run_command

MODELS = ["5-gram", "LSTM", "TXL", "GPT-2", "people"]
# Warstadt et al. 2020, table 3, in per cent, models as above.
TABLE_3 = {
    "overall": (61.2, 69.8, 69.6, 83.0, 88.6),
    "binding": (64.4, 73.5, 74.7, 80.9, 87.3),
    "ellipsis": (36.9, 67.6, 77.2, 89.3, 85.0),
    "subject_verb_agreement": (60.3, 80.1, 76.0, 86.4, 90.9),
}
TABLE_4 = {"tough_vs_raising_2": (77, 93, 86, 89, 81), "left_branch_island_echo_question": (96, 32, 63, 52, 91)}


@pytest.fixture(scope="module")
def blimp():
    return read_published("blimp")


@pytest.fixture(scope="module")
def checks():
    return check_statements()


def test_phenomena_are_means_over_their_paradigms_as_in_table_3(blimp):
    known = published_file("blimp_paradigms").set_index("paradigm")["phenomenon"].to_dict()
    for accuracies in (blimp, means_of_paradigms(blimp, known)):
        table = phenomenon_table(accuracies).set_index("phenomenon")[MODELS] * 100
        for name, row in TABLE_3.items():
            assert list(table.loc[name]) == pytest.approx(row, abs=0.0501), name


def test_table_4_has_every_paradigm_with_the_prefix_methods_that_apply(blimp):
    table = paradigm_table(blimp).set_index("paradigm")
    assert table[["one_prefix", "two_prefix"]].sum().tolist() == [20, 20]
    assert table["phenomenon"].value_counts().sort_index().tolist() == [2, 9, 7, 5, 8, 2, 7, 2, 8, 7, 4, 6]  # table 1
    for name, row in TABLE_4.items():
        assert list(table.loc[name, MODELS] * 100) == pytest.approx(row, abs=0.501), name


def test_losses_equal_those_of_section_6(blimp):
    adjective = losses(by_condition(blimp, ADJECTIVE)).set_index("model")["loss"]
    # From the cells: (.883 + .863 + .854 + .904 - .519 - .497 - .530 - .554) / 4
    assert adjective["5-gram"] == pytest.approx(0.351)
    attractor = losses(by_condition(blimp, ATTRACTOR)).set_index("model")["loss"]
    assert (round(attractor["LSTM"], 2), round(attractor["TXL"], 2)) == (0.20, 0.05)


def test_computed_numbers_equal_ones_from_the_papers_cells(checks):
    computed = checks.set_index("formula")["computed"]
    # Xiang et al. 2021, table 2, Chinese BERT: three paradigms of classifiers, five of verb complements, two coverbs.
    mean = (3 * 92.9 + 5 * 93.0 + 53.1 + 69.0 + 2 * 87.9 + 86.2 + 67.7 + 50.8 + 62.4) / 16
    assert sum(CLIMP_PARADIGMS.values()) == 16
    assert computed["climp.means['Chinese BERT']"] * 100 == pytest.approx(mean)
    assert computed["climp.sizes('LSTM').eval('char - word')['0.4M']"] == pytest.approx(0.632 - 0.606)
    # From table 3's LSTM at its 83M words, with the slope of section 6.3: islands.
    slope = published_file("slopes").set_index(["model", "phenomenon"])["slope"]["LSTM", "island_effects"]
    published = wide(read_published("blimp"), "phenomenon").loc["island_effects"]
    words = 83e6 * 2 ** ((published["people"] - published["LSTM"]) / slope)
    assert computed["blimp.words_to_people('LSTM', 'island_effects')"] == pytest.approx(words)


def test_swapped_models_fail_their_statements(blimp, checks):
    swapped = check_statements(blimp.assign(model=blimp["model"].replace({"LSTM": "GPT-2", "GPT-2": "LSTM"})))
    of_blimp = checks["paper"] == "blimp"
    assert checks[of_blimp]["agrees"].sum() - swapped[of_blimp]["agrees"].sum() > 10
    printed = checks["formula"].str.contains("cells_that_agree")
    assert (swapped[printed]["computed"] < checks[printed]["computed"]).all()


@pytest.mark.slow
def test_the_command_prints_agreement_and_writes_tables(tmp_path):
    done = run_command("analysis", "published=true", f"paths.reports={tmp_path}", f"paths.runs={tmp_path}/none")
    assert done.returncode == 2  # runs have nothing to do with it
    assert "Leave out paths.runs=" in done.stderr
    done = run_command("analysis", "published=true", f"paths.reports={tmp_path}")
    assert done.returncode == 0, done.stderr
    assert "58 of 68" in done.stdout
    assert len(pd.read_csv(tmp_path / "published/tables/statements.csv")) == 68
    table = pd.read_csv(tmp_path / "published/tables/blimp-table-3.csv").set_index("phenomenon")
    assert list(table.loc["overall", MODELS] * 100) == pytest.approx(TABLE_3["overall"], abs=0.0501)


def test_values_are_those_of_the_code_before_the_formulas(checks):
    golden = pd.read_csv(ROOT / "tests/golden/statements.csv")  # its `make_analysis.py` says how it was made
    both = golden.merge(checks, on=["place", "statement"], suffixes=("_before", ""), validate="one_to_one")
    assert len(both) == len(golden) == 68
    assert both["computed"].tolist() == pytest.approx(both["ours"].tolist(), rel=1e-12, abs=1e-12)
    assert (both["agrees"] == both["agrees_before"]).all()
    assert agreement(checks).startswith("58 of 68 statements agree")
