"""The new slopes and differences against those of the old code: of committed studies and of a simulated one.

Estimates may differ by 1e-9. Curves with unequal numbers of runs and their differences are left out: the old code gave
each size the same weight, the new one each run.
"""

import numpy as np
import pandas as pd
import pytest

from analysis.curves.comparisons import compare
from analysis.curves.fit import fit_curves
from tests.bench.old_and_new_slopes import RESULTS, STUDIES, side_by_side
from tests.support import ROOT

GOLDEN = ROOT / "tests" / "golden"
UNEQUAL = "ngram"


@pytest.fixture(scope="module")
def accuracies():
    return pd.read_csv(GOLDEN / "accuracies.csv", keep_default_na=False)


def test_slopes_of_the_simulated_study(accuracies):
    old = pd.read_csv(GOLDEN / "slopes.csv").rename(columns={"group": "curve"})
    both = fit_curves(accuracies).merge(old, on=["curve", "level", "name"], suffixes=("", "_old"))
    assert len(both) == len(old) == 30
    for name, former in (("paradigms", "paradigms_old"), ("pairs", "n_pairs"), ("runs", "runs_old")):
        assert both[name].tolist() == both[former].tolist()
    equal = both[both["curve"] != UNEQUAL]
    np.testing.assert_allclose(equal[["slope", "intercept"]], equal[["slope_old", "intercept_old"]], atol=1e-9)


def test_differences_of_the_simulated_study(accuracies):
    old = pd.read_csv(GOLDEN / "differences.csv").rename(columns={"group": "curve", "pairs": "partners"})
    both = compare(accuracies).merge(old, on=["curve", "other", "level", "name"], suffixes=("", "_old"))
    assert both["paired"].tolist() == both["paired_old"].tolist()
    assert both["runs"].tolist() == both["partners"].tolist()
    equal = both[both["other"] != UNEQUAL]
    np.testing.assert_allclose(equal["difference"], equal["difference_old"], atol=1e-9)


@pytest.mark.parametrize("study", STUDIES)
def test_committed_studies(study):
    table = side_by_side(study)
    gap = (table["estimate_new"] - table["estimate_old"]).abs()
    if study == "blimp_cpu":  # unequal numbers of runs
        assert gap.max() < 0.01
    else:
        assert gap.max() < 1e-9
    assert not table["reason"].str.contains("not explained").any()
    committed = pd.read_csv(RESULTS / "old_and_new_slopes.csv", keep_default_na=False, na_values=[""])
    committed = committed[committed["study"] == study].reset_index(drop=True)
    numbers = ["estimate_new", "low_new", "high_new", "p_new"]
    np.testing.assert_allclose(committed[numbers], table[numbers], rtol=1e-6, atol=1e-12)
    assert committed["changed"].tolist() == table["changed"].tolist()
