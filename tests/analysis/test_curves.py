"""Slopes, intervals, tests of straightness and new items against statsmodels, scipy and brute force."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from statsmodels.stats.anova import anova_lm

from analysis.curves.fit import fit_curves, fitted_lines, lack_of_fit
from analysis.curves.lines import fit_line
from pairscale.errors import InputError
from tests.support.long_table import curve_table, grid, random_curve, row

ESTIMATES = ["slope", "intercept", "se", "df", "low", "high", "p"]


def reference(table):
    """Return statsmodels' fit with HC3 errors and Student's t to the mean accuracy of the paradigms of each run."""
    means = table.groupby(["run", "sample_words"], sort=False)["accuracy"].mean().reset_index()
    x = np.log2(means["sample_words"].astype(float))
    return sm.OLS(means["accuracy"], sm.add_constant(x)).fit().get_robustcov_results("HC3", use_t=True)


@pytest.mark.parametrize(("counts", "confidence"), [((3, 3, 3, 3), 0.95), ((4, 1, 2, 5), 0.8), ((2, 2), 0.95)])
def test_slopes_equal_statsmodels_with_hc3_and_t(counts, confidence):
    words = np.repeat(1000 * 4 ** np.arange(len(counts)), counts)
    seeds = np.concatenate([np.arange(count) for count in counts])
    table = curve_table(np.random.default_rng(1).uniform(0.4, 0.9, (len(words), 4)), words, seeds)
    fitted = fit_curves(table, confidence)
    for level, name, part in [
        ("overall", "overall", table), ("phenomenon", "p1", table[table["phenomenon"] == "p1"]),
        ("paradigm", "p0_1", table[table["paradigm"] == "p0_1"]),
    ]:  # fmt: skip
        expected, found = reference(part), row(fitted, level=level, name=name)
        low, high = expected.conf_int(1 - confidence)[1]
        intercept, slope = expected.params
        known = [slope, intercept, expected.bse[1], len(words) - 2, low, high, expected.pvalues[1]]
        np.testing.assert_allclose(found[ESTIMATES].to_numpy(dtype=float), known, rtol=1e-9)
        ends = part.groupby("sample_words")["accuracy"].mean().iloc[[0, -1]]
        assert found[["smallest_accuracy", "largest_accuracy"]].tolist() == pytest.approx(ends.tolist())
        assert found[["runs", "sizes", "smallest_words", "largest_words"]].tolist() == [
            len(words), len(counts), words.min(), words.max()
        ]  # fmt: skip


@given(arrays(float, (8, 2), elements=st.floats(0, 1)), st.floats(0.1, 3), st.floats(-0.5, 0.5))
def test_variances_stretch_and_do_not_move_with_accuracies(y, factor, shift):
    size = np.repeat(np.arange(4), 2).astype(np.intp)
    line = fit_line(size * 1.5 + 17, size)
    moved = factor * y + shift
    np.testing.assert_allclose(line.slope @ moved, factor * (line.slope @ y), atol=1e-12)
    for found, before in zip(line.variances(moved), line.variances(y), strict=True):
        known = ~np.isnan(found) & ~np.isnan(before)
        np.testing.assert_allclose(found[known], factor**2 * before[known], atol=1e-12)


def test_lines_have_the_band_of_statsmodels():
    table = random_curve(sizes=5)
    lines, expected = fitted_lines(table, 0.9), reference(table)
    of = lines[lines["level"] == "overall"]
    assert of["sample_words"].iloc[[0, -1]].tolist() == pytest.approx([1000, 16000])
    x = sm.add_constant(np.log2(of["sample_words"].to_numpy()))
    band = expected.get_prediction(x).conf_int(alpha=0.1)
    np.testing.assert_allclose(of[["accuracy", "low", "high"]], np.column_stack([expected.predict(x), band]))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (random_curve(sizes=3, seeds=1), "at least 4 runs"),
        (
            curve_table(np.full((5, 2), [[0.5]]), [1000] * 4 + [2000], range(5)),
            "runs except one have",
        ),
        (curve_table(np.full((8, 2), 0.5), *grid(4, 2)), "exactly on the line"),
        (random_curve(sizes=1, seeds=5), "have the same size"),
        (random_curve(unit="tokens"), "single training run"),
        (random_curve(seeds=2, nested=True), "3 seeds with all sizes"),
    ],
)
def test_reasons_take_the_place_of_intervals(table, said):
    fitted = fit_curves(table)
    assert fitted[["se", "df", "low", "high", "p"]].isna().all(axis=None)
    assert fitted["note"].str.contains(said).all()
    assert fitted["slope"].isna().all() == ("same size" in said)


def test_notes_say_what_an_interval_does_not_cover():
    assert fit_curves(random_curve())["note"].eq("").all()
    assert fit_curves(random_curve(sizes=5, seeds=1))["note"].str.contains("one run per size").all()
    assert fit_curves(random_curve(sample="x"))["note"].eq("").all()  # one sample of several sizes is none
    words, seeds = grid()
    same = random_curve().assign(sample=lambda of: of["size"])
    assert fit_curves(same)["note"].str.contains("new initialisations").all()
    accuracy = np.where(words[:, None] == words.max(), [[1.0, 0.9]], 0.5 + 0.01 * seeds[:, None])
    accuracy[-1, 0] = 0.95
    assert "are 0 or 1" in row(fit_curves(curve_table(accuracy, words, seeds)), name="p0_0")["note"]


def test_nested_samples_have_one_slope_per_complete_seed():
    table = random_curve(seeds=5, nested=True)
    table = table[~((table["seed"] == 4) & (table["sample_words"] == 2000))]
    found = row(fit_curves(table), level="overall")
    slopes = []
    for seed in (1, 2, 3, 5):
        of = table[table["seed"] == seed].groupby("sample_words")["accuracy"].mean()
        slopes.append(stats.linregress(np.log2(of.index.astype(float)), of).slope)
    expected = stats.ttest_1samp(slopes, 0)
    interval = expected.confidence_interval()
    known = [np.mean(slopes), interval.low, interval.high, expected.pvalue, 3, 16]
    assert found[["slope", "low", "high", "p", "df", "runs"]].tolist() == pytest.approx(known)
    assert "left out: 4" in found["note"]


@pytest.mark.parametrize("counts", [(3, 3, 3), (1, 4, 2, 1)])
def test_lack_of_fit_is_the_f_test_of_nested_models(counts):
    words = np.repeat(1000 * 2 ** np.arange(len(counts)), counts)
    table = curve_table(np.random.default_rng(2).uniform(size=(len(words), 1)), words, range(len(words)))
    y, x = table["accuracy"].to_numpy(), np.log2(words)
    sizes = (words[:, None] == np.unique(words)).astype(float)
    expected = anova_lm(sm.OLS(y, sm.add_constant(x)).fit(), sm.OLS(y, sizes).fit()).iloc[1]
    found = row(lack_of_fit(table), level="overall")
    assert found[["f", "p"]].tolist() == pytest.approx(expected[["F", "Pr(>F)"]].tolist())
    assert found[["df_between", "df_within"]].tolist() == [len(counts) - 2, len(words) - len(counts)]
    assert row(fit_curves(table), level="overall")["lack_of_fit"] == pytest.approx(found["p"])


@pytest.mark.parametrize(
    "table", [random_curve(seeds=1), random_curve(sizes=2), random_curve(nested=True), random_curve(unit="steps"),
              curve_table(np.repeat([[0.5], [0.6], [0.8]], 2, axis=0), *grid(3, 2))]
)  # fmt: skip
def test_lack_of_fit_says_why_it_cannot_be_tested(table):
    found = lack_of_fit(table)
    assert found["p"].isna().all()
    assert found["note"].ne("").all()
    assert fit_curves(table)["lack_of_fit"].isna().all()


def judged_study(items=(4, 3, 5), rng=3):
    """Return the long table and the pairs of a curve, and its (R, P) outcomes."""
    words, seeds = grid(4, 3)
    outcome = np.random.default_rng(rng).uniform(size=(len(words), sum(items))) < 0.6
    paradigm = np.repeat(np.arange(len(items)), items)
    table = curve_table(np.stack([outcome[:, paradigm == k].mean(axis=1) for k in range(len(items))], 1), words, seeds)
    pairs = table.loc[np.repeat(table.index, np.tile(items, len(words)))]
    pair_id = np.tile(np.arange(sum(items)).astype(str), len(words))
    return table, pairs.assign(pair_id=pair_id, correct=outcome.ravel()), outcome.astype(float), paradigm


def test_new_items_have_the_two_way_variance_of_runs_and_items():
    """By brute force: the variance over runs, over items' own slopes, and what single judgements add to both."""
    table, pairs, outcome, paradigm = judged_study()
    fitted = fit_curves(table, pairs=pairs.sample(frac=1, random_state=0))
    x = np.log2(grid(4, 3)[0])
    leverage = 1 / len(x) + (x - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum()
    c = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    items = overlap = 0.0
    for k in range(3):
        of = outcome[:, paradigm == k]
        n = of.shape[1]
        items += np.var([c @ z for z in of.T], ddof=1) / n / 9
        residuals = np.stack([z - np.polyval(np.polyfit(x, z, 1), x) for z in of.T], axis=1)
        residuals -= residuals.mean(axis=1, keepdims=True)
        overlap += sum(c[r] ** 2 * (residuals[r] ** 2).sum() / (1 - leverage[r]) ** 2 for r in range(len(x))) / (
            n * (n - 1) * 9
        )
    found = row(fitted, level="overall")
    runs = found["se"] ** 2
    assert found["se_new_items"] ** 2 == pytest.approx(max(runs + items - overlap, runs, items))
    assert found["df_new_items"] == min(10, 11)
    half = stats.t.ppf(0.975, 10) * found["se_new_items"]
    assert found[["low_new_items", "high_new_items"]].tolist() == pytest.approx(
        [found["slope"] - half, found["slope"] + half]
    )
    assert row(fitted, name="p1_2")["df_new_items"] == 4
    assert (fitted["se_new_items"] >= fitted["se"]).all()
    pd.testing.assert_frame_equal(fitted[fit_curves(table).columns], fit_curves(table))


def test_items_that_not_all_runs_share_give_no_interval():
    table, pairs, *_ = judged_study()
    few = pairs[(pairs["paradigm"] != "p1_2") | (pairs["run"] != "lstm-1000-1")]
    fitted = fit_curves(table, pairs=few)
    assert fitted["se_new_items"].isna().tolist() == (fitted["name"].isin(["overall", "p1", "p1_2"])).tolist()
    assert fit_curves(table, pairs=pairs[:0])["note"].str.contains("too few pairs").all()
    twice = pd.concat([pairs.assign(template=0), pairs.assign(template=1)])  # the mean over templates counts
    pd.testing.assert_frame_equal(fit_curves(table, pairs=twice), fit_curves(table, pairs=pairs))
    with pytest.raises(InputError, match="pair_id"):
        fit_curves(table, pairs=pairs.drop(columns="pair_id"))
    with pytest.raises(InputError, match="between 0 and 1"):
        fit_curves(table, confidence=95)
