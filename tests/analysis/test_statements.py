"""The papers' statements and tables, against numbers typed from the papers and other computations."""

import pandas as pd
import pytest

from analysis.published import published_file
from analysis.statements import agreement, check_statements, phenomenon_table
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
    golden = pd.read_csv(ROOT / "tests/golden/statements.csv")  # made by the code of a9663e9a
    both = golden.merge(checks, on=["place", "statement"], suffixes=("_before", ""), validate="one_to_one")
    assert len(both) == len(golden) == 68
    assert both["computed"].tolist() == pytest.approx(both["ours"].tolist(), rel=1e-12, abs=1e-12)
    assert (both["agrees"] == both["agrees_before"]).all()
    assert agreement(checks).startswith("58 of 68 statements agree")
