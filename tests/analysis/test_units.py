"""Accuracies of units from the long table: means over paradigms, given means, and tables that cannot be used."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from analysis.curves.fit import fit_curves
from analysis.curves.units import unit_accuracies
from pairscale.errors import InputError
from tests.support.long_table import curve_table, random_curve, row


@settings(max_examples=10, deadline=None)
@given(arrays(float, (2, 5), elements=st.floats(0, 1)))
def test_units_are_unweighted_means_of_paradigms(accuracy):
    table = curve_table(accuracy, [1000, 2000], [1, 1])
    table["pairs"] = pd.array([10, 20, 30, 40, 50] * 2, dtype="Int64")
    units = unit_accuracies(table.assign(name="of the user", level=1))
    for run, values in zip(units["run"].unique(), accuracy, strict=True):
        of = units[units["run"] == run]
        assert row(of, level="overall")["accuracy"] == pytest.approx(values.mean())
        assert row(of, level="overall")[["paradigms", "pairs"]].tolist() == [5, 150]
        assert row(of, name="p0")["accuracy"] == pytest.approx(values[:2].mean())
        assert row(of, name="p2")[["paradigms", "pairs"]].tolist() == [1, 50]
        assert of["level"].tolist() == ["overall"] + ["phenomenon"] * 3 + ["paradigm"] * 5


def given_means(overall=None):
    table = curve_table([[0.5, 0.6, 0.9, 0.7]], [1000], [1]).iloc[[0, 2]].assign(paradigm=None, pairs=pd.NA)
    if overall is not None:
        table = pd.concat([table, table.iloc[:1].assign(phenomenon=None, accuracy=overall)])
    return unit_accuracies(table)


def test_given_means_stay_as_they_are():
    units = given_means(overall=0.61)
    assert units[["level", "accuracy"]].to_numpy().tolist() == [
        ["overall", 0.61], ["phenomenon", 0.5], ["phenomenon", 0.9]
    ]  # fmt: skip
    assert units["pairs"].isna().all()
    assert row(given_means(), level="overall")["accuracy"] == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda of: of.drop(columns="sample_words"), "no column sample_words"),
        (lambda of: pd.concat([of, of.iloc[:1]]), "two accuracies"),
        (lambda of: of.assign(phenomenon=[f"x{i}" for i in range(len(of))]), "two phenomena"),
        (lambda of: pd.concat([of, of.iloc[:1].assign(paradigm=None)]), "means over paradigms"),
        (lambda of: of.assign(unit=["words", *["characters"] * (len(of) - 1)]), "different units .characters, words"),
        (lambda of: of[of["paradigm"].ne("p0_0") ^ of["run"].eq("lstm-1000-1")], "no paradigm was scored in every run"),
    ],
)
def test_tables_that_cannot_be_used(change, said):
    with pytest.raises(InputError, match=said):
        fit_curves(change(random_curve(paradigms=2)))


def test_only_paradigms_of_every_run_count():
    table = random_curve(paradigms=4)
    kept = fit_curves(table[~((table["paradigm"] == "p0_1") & (table["seed"] == 2))])
    without = fit_curves(table[table["paradigm"] != "p0_1"])
    assert "1 paradigms" in row(kept, level="overall")["note"]
    assert "1 paradigms" in row(kept, name="p0")["note"]
    assert (kept.loc[kept["name"].isin(["p1", "p1_2"]), "note"] == "").all()
    pd.testing.assert_frame_equal(kept.drop(columns="note"), without.drop(columns="note"))


def test_baselines_and_models_without_a_known_text_are_on_no_curve():
    table = random_curve()
    more = table.assign(run=table["run"] + "x")
    unplaced = more.assign(sample_words=pd.array([pd.NA] * len(table), dtype="Int64"), curve="hub")
    other_paradigms = more.assign(baseline="untrained", paradigm=more["paradigm"] + "x")
    together = fit_curves(pd.concat([table, unplaced, other_paradigms]))
    pd.testing.assert_frame_equal(together, fit_curves(table))
    assert fit_curves(unplaced).empty


def test_masked_models_stand_next_to_others_only_if_each_curve_has_one_method():
    a, b = random_curve(), random_curve(curve="bert", rng=1, method="pll")
    b = b[b["paradigm"] != "p0_0"]
    together = fit_curves(pd.concat([a, b]))
    assert together.groupby("curve")["method"].first().to_dict() == {"lstm": "lp", "bert": "pll"}
    assert not together["name"].eq("p0_0").any()
    apart = fit_curves(pd.concat([a, a.assign(method="mean_lp"), b]))
    assert apart.loc[apart["name"] == "p0_0", "method"].tolist() == ["lp", "mean_lp"]
    assert np.isfinite(apart["low"]).all()
