"""Effects of interventions, against scipy, statsmodels, hand computations and the committed study."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analysis.curves.ablations import ablation_effects, main_effects
from pairscale.errors import InputError
from tests.support.long_table import curve_table, grid, row

FULL, REMOVED, CONTROL = ("", "none", "1"), ("c", "remove", "0"), ("c", "control", "0")
ALL = (FULL, REMOVED, CONTROL)


def tables(variants=ALL, sizes=3, seeds=3, nested=False, rng=0):
    """Return accuracies and runs of a study with a curve per variant, with random accuracies."""
    generator, parts = np.random.default_rng(rng), []
    words, of_seeds = grid(sizes, seeds)
    for construction, action, dose in variants:
        curve, accuracies = f"m {construction} {action} {dose}", generator.uniform(0.4, 0.9, (len(words), 3))
        table = curve_table(accuracies, words, of_seeds, curve, nested=nested, model="m")
        parts.append(table.assign(construction=construction, action=action, dose=dose, base="m"))
    table = pd.concat(parts, ignore_index=True)
    runs = table.drop_duplicates("run")[["study", "run", "construction", "action", "dose", "base"]]
    return table.drop(columns=["construction", "action", "dose", "base"]), runs


def values(accuracies, action, paradigm="p0_0", dose=None):
    """Return a paradigm's accuracies by size and seed."""
    of = accuracies[accuracies["run"].str.contains(f" {action} {dose or ''}") & (accuracies["paradigm"] == paradigm)]
    return of.sort_values(["sample_words", "seed"])["accuracy"].to_numpy()


def effect(effects, kind="treatment - control", over="all sizes", level="paradigm", name="p0_0"):
    return row(effects, kind=kind, over=over, level=level, name=name)


def test_at_one_size_the_interval_is_that_of_a_paired_t_test():
    accuracies, runs = tables()
    result = effect(ablation_effects(accuracies, runs), over="2000")
    test = stats.ttest_rel(*(values(accuracies, action)[3:6] for action in ("remove", "control")))
    interval = test.confidence_interval(0.95)
    assert (result["low"], result["high"], result["p"]) == pytest.approx((interval.low, interval.high, test.pvalue))
    assert (result["df"], result["runs"], result["paired"]) == (2, 3, True)


@pytest.mark.parametrize(("over", "place"), [("all sizes", 0), ("per doubling", 1)])
def test_over_sizes_it_is_hc3_of_statsmodels(over, place):
    accuracies, runs = tables()
    result = effect(ablation_effects(accuracies, runs, confidence=0.9), over=over)
    change = values(accuracies, "remove") - values(accuracies, "control")
    x = np.repeat([-1.0, 0, 1], 3)
    fit = sm.OLS(change, sm.add_constant(x)).fit(cov_type="HC3", use_t=True)
    known = [fit.params[place], fit.bse[place], *fit.conf_int(0.1)[place], fit.pvalues[place]]
    assert result[["difference", "se", "low", "high", "p"]].tolist() == pytest.approx(known)


def test_nested_samples_give_one_value_per_complete_seed():
    accuracies, runs = tables(seeds=4, nested=True)
    accuracies = accuracies[~accuracies["run"].str.endswith("remove 0-4000-4")]
    result = effect(ablation_effects(accuracies, runs))
    complete = accuracies[accuracies["seed"] < 4]
    change = values(complete, "remove") - values(complete, "control")
    test = stats.ttest_1samp(change.reshape(3, 3).mean(axis=0), 0).confidence_interval(0.95)
    assert (result["low"], result["high"], result["df"]) == pytest.approx((test.low, test.high, 2))
    assert "left out: 4" in result["note"]


def test_curves_without_pairs_of_runs_are_independent():
    accuracies, runs = tables(sizes=1, seeds=4)
    result = effect(ablation_effects(accuracies, runs, paired=False))
    test = stats.ttest_ind(*(values(accuracies, action) for action in ("remove", "control")), equal_var=False)
    assert (result["p"], result["df"], result["runs"]) == pytest.approx((test.pvalue, test.df, 8))
    assert not result["paired"]
    other = accuracies.assign(seed=accuracies["seed"] + 10 * accuracies["run"].str.contains("control"))
    assert effect(ablation_effects(other, runs))["p"] == pytest.approx(test.pvalue)


def test_treatments_have_controls_of_their_dose_and_all_have_the_full_text():
    kinds = {"treatment - control", "treatment - full", "control - full"}
    assert set(ablation_effects(*tables())["kind"]) == kinds
    for variant in (("c", "remove", "1/8"), ("c", "replace", "0")):
        assert set(ablation_effects(*tables((FULL, variant, CONTROL)))["kind"]) == kinds - {"treatment - control"}
    assert ablation_effects(*tables((FULL,))).empty
    first = main_effects(ablation_effects(*tables()))
    assert list(first["kind"]) == ["treatment - control"]
    assert list(main_effects(ablation_effects(*tables(ALL[:2])))["kind"]) == ["treatment - full"]


def test_units_and_scopes_are_unweighted_means_of_paradigms():
    accuracies, runs = tables()
    effects = ablation_effects(accuracies, runs, direct={"c": {"p0_0"}})
    change = {
        name: (values(accuracies, "remove", name) - values(accuracies, "control", name)).mean()
        for name in ("p0_0", "p0_1", "p1_2")
    }
    expected = {
        ("scope", "tests the construction"): change["p0_0"], ("scope", "same phenomena"): change["p0_1"],
        ("scope", "other phenomena"): change["p1_2"], ("phenomenon", "p0"): (change["p0_0"] + change["p0_1"]) / 2,
        ("overall", "overall"): sum(change.values()) / 3,
    }  # fmt: skip
    for (level, name), value in expected.items():
        assert effect(effects, level=level, name=name)["difference"] == pytest.approx(value)
    assert set(effects.loc[effects["direct"], "name"]) == {"tests the construction", "p0_0"}
    assert effect(effects, level="overall", name="overall")["pairs"] == 150


def test_the_slope_over_doses_is_a_line_for_each_size_and_seed():
    variants = (FULL, REMOVED, ("c", "remove", "1/4"), ("c", "remove", "1/2"))
    accuracies, runs = tables(variants, sizes=1)
    result = effect(ablation_effects(accuracies, runs), kind="dose 1 - dose 0")
    doses = [("remove", "0-"), ("remove", "1/4"), ("remove", "1/2"), ("none", None)]
    by_dose = [values(accuracies, action, dose=dose) for action, dose in doses]
    slopes = np.polyfit([0, 0.25, 0.5, 1], np.stack(by_dose), 1)[0]
    test = stats.ttest_1samp(slopes, 0)
    assert (result["difference"], result["p"]) == pytest.approx((slopes.mean(), test.pvalue))
    assert "dose 1 - dose 0" not in set(ablation_effects(*tables(ALL))["kind"])


def test_holms_family_is_the_phenomena_of_a_comparison_and_overall_all_comparisons():
    variants = (FULL, REMOVED, CONTROL, ("d", "remove", "0"), ("d", "control", "0"))
    effects = ablation_effects(*tables(variants))
    effects = effects[(effects["over"] == "all sizes") & (effects["kind"] == "treatment - control")]
    for family in (effects.query("level == 'phenomenon' and construction == 'd'"), effects.query("level == 'overall'")):
        assert len(family) == 2
        assert family["p_holm"].to_numpy() == pytest.approx(multipletests(family["p"], method="holm")[1])


def test_runs_without_a_partner_are_counted_and_a_margin_is_about_accuracy():
    accuracies, runs = tables()
    effects = ablation_effects(accuracies[accuracies["run"] != "m c control 0-4000-3"], runs, margin=0.2)
    result = effect(effects)
    assert result["runs"] == 8
    assert "1 run can't be compared" in result["note"]
    assert (effects["equivalent"].isna() == (effects["over"] == "per doubling")).all()
    apart = accuracies[~((accuracies["size"] == "1000") ^ accuracies["run"].str.contains("control"))]
    assert "no size in common" in effect(ablation_effects(apart, runs))["note"]


def test_tables_that_cannot_be_used():
    accuracies, runs = tables()
    with pytest.raises(InputError, match="two runs of size 1000 and seed 1"):
        ablation_effects(accuracies.replace({"seed": {2: 1}}), runs)
    again = accuracies[accuracies["curve"].str.contains("none")]
    again = again.assign(curve="again", run="again " + again["run"])
    known = runs[runs["action"] == "none"]
    both = pd.concat([accuracies, again]), pd.concat([runs, known.assign(run="again " + known["run"])])
    with pytest.raises(InputError, match="again both have the dose 1"):
        ablation_effects(*both)
    with pytest.raises(InputError, match="no column action"):
        ablation_effects(accuracies, runs.drop(columns="action"))
