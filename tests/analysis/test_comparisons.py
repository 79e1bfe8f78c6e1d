"""Differences of slopes against statsmodels, scipy and hand computations."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analysis.curves.comparisons import compare, holm
from analysis.curves.fit import fit_curves
from pairscale.errors import InputError
from tests.support.long_table import random_curve, row


def mean_of(table):
    return table.groupby(["sample_words", "seed"])["accuracy"].mean()


def hc3(y):
    x = np.log2(y.index.get_level_values("sample_words").to_numpy(dtype=float))
    return sm.OLS(y.to_numpy(), sm.add_constant(x)).fit().get_robustcov_results("HC3", use_t=True)


def two_curves(**other):
    return random_curve(rng=1), random_curve(rng=2, curve="txl", gain=0.01, **other)


def test_runs_on_the_same_samples_are_paired():
    a, b = two_curves()
    b = b[~((b["seed"] == 2) & (b["sample_words"] == 4000))]
    found = row(compare(pd.concat([a, b])), level="overall")
    expected = hc3((mean_of(a) - mean_of(b)).dropna())
    known = [expected.params[1], expected.bse[1], 9, *expected.conf_int()[1], expected.pvalues[1]]
    assert found[["difference", "se", "df", "low", "high", "p"]].tolist() == pytest.approx(known)
    assert found[["paired", "runs", "sizes"]].tolist() == [True, 11, 4]
    assert "1 run can't be compared" in found["note"]


@pytest.mark.parametrize("sample", ["other", None])
def test_other_curves_are_independent_with_welchs_degrees_of_freedom(sample):
    a, b = two_curves(noise=0.1, seeds=2, sample=sample)
    found = row(compare(pd.concat([a, b]), confidence=0.9), level="overall")
    (slope, error), (other, other_error) = ((fit.params[1], fit.bse[1]) for fit in (hc3(mean_of(a)), hc3(mean_of(b))))
    variance = error**2 + other_error**2
    degrees = variance**2 / (error**4 / 10 + other_error**4 / 6)
    half = stats.t.ppf(0.95, degrees) * np.sqrt(variance)
    known = [slope - other, degrees, slope - other - half, slope - other + half, 20]
    assert found[["difference", "df", "low", "high", "runs"]].tolist() == pytest.approx(known)
    assert not found["paired"]


def test_a_few_common_samples_do_not_pair_two_curves():
    a, b = two_curves()
    b = b.assign(sample=np.where(b["seed"] == 1, b["sample"], "other"))
    assert not compare(pd.concat([a, b]))["paired"].any()


def test_nested_samples_are_compared_by_seed():
    a, b = two_curves(nested=True)
    a = a.assign(nested=True)
    found = row(compare(pd.concat([a, b])), level="overall")
    slopes = [
        [stats.linregress(np.log2(of.index.astype(float)), of).slope for _, of in mean_of(t).unstack().items()]
        for t in (a, b)
    ]
    expected = stats.ttest_rel(*slopes)
    assert found[["df", "p"]].tolist() == pytest.approx([2, expected.pvalue])
    apart = compare(pd.concat([a, b.assign(sample=None)]))
    assert row(apart, level="overall")["p"] == pytest.approx(stats.ttest_ind(*slopes, equal_var=False).pvalue)


def test_only_sizes_that_both_have_count():
    a, b = two_curves(sizes=3)
    found = compare(pd.concat([a, b]))
    shared = fit_curves(a[a["sample_words"] <= 4000]).merge(fit_curves(b), on=["level", "name"])
    np.testing.assert_allclose(found["difference"], shared["slope_x"] - shared["slope_y"])
    assert found["note"].str.contains("3 runs can't be compared").all()


def test_holm_corrects_the_phenomena_of_a_pair_and_overall_for_all_pairs():
    curves = [random_curve(rng=i, curve=name, gain=0.02 + 0.01 * i, paradigms=6) for i, name in enumerate("abc")]
    found = compare(pd.concat(curves))
    for _, of in found[found["level"] != "overall"].groupby(["curve", "other", "level"]):
        np.testing.assert_allclose(of["p_holm"], multipletests(of["p"], method="holm")[1])
    overall = found[found["level"] == "overall"]
    assert len(overall) == 3
    np.testing.assert_allclose(overall["p_holm"], multipletests(overall["p"], method="holm")[1])
    np.testing.assert_allclose(holm(np.array([0.04, np.nan, 0.01])), [0.04, np.nan, 0.02])
    assert compare(curves[0]).empty


def test_equivalent_means_that_the_interval_lies_within_the_margin():
    table = pd.concat(two_curves())
    assert compare(table)["equivalent"].isna().all()
    found = compare(table, margin=0.03)
    inside = (found["low"] > -0.03) & (found["high"] < 0.03)
    assert found["equivalent"].tolist() == inside.tolist()
    assert inside.any()
    assert not inside.all()
    with pytest.raises(InputError, match="above 0"):
        compare(table, margin=0)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"unit": "characters"}, "no size in common"),
        ({"sizes": 1}, "have the same size"),
        ({"seeds": 1, "sizes": 3, "sample": "x"}, "at least 4 runs"),
        ({"noise": 0, "gain": 0, "sample": "x"}, "exactly on the line"),
    ],
)
def test_reasons_take_the_place_of_intervals(other, said):
    a = random_curve(rng=1)
    b = random_curve(**{"rng": 2, "curve": "txl"} | other)
    found = compare(pd.concat([a, b]), margin=1)
    assert found[["se", "low", "high", "p", "p_holm", "equivalent"]].isna().all(axis=None)
    assert found["note"].str.contains(said).all()
