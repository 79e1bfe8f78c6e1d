"""The new slopes and differences of a simulated study against those of the old code.

Estimates may differ by 1e-9. Curves with unequal numbers of runs and their differences are left out: the old code gave
each size the same weight, the new one each run.
"""

import numpy as np
import pandas as pd
import pytest

from analysis.curves.comparisons import compare
from analysis.curves.fit import fit_curves
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
