"""Shapes of curves, predictions and words to match humans, against numpy, statsmodels and brute force."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.optimize import brentq
from scipy.stats import t as student
from statsmodels.tools.eval_measures import aicc

from analysis.curves.shapes import LINE, LOGISTIC, POWER_LAW, fit_shapes, words_text, words_to_humans
from analysis.formats import DASH
from eval.published import read_published
from pairscale.errors import InputError
from tests.support.long_table import curve_table, grid, random_curve, row

WORDS, OF_SEEDS = grid(8, 2)
DOUBLINGS = np.log2(WORDS / 1000)
CURVES = {
    LINE: (0.5 + 0.03 * DOUBLINGS, {"intercept": 0.5, "slope": 0.03}),
    POWER_LAW: (0.9 - 0.4 * 2 ** (-0.3 * DOUBLINGS), {"ceiling": 0.9, "gap": 0.4, "rate": 0.3}),
    LOGISTIC: (0.5 + 0.4 / (1 + np.exp(-1.2 * (DOUBLINGS - 3))),
               {"floor": 0.5, "ceiling": 0.9, "rate": 1.2, "midpoint": 8000}),
}  # fmt: skip


def study(shape, noise=0.0):
    scatter = noise * np.random.default_rng(1).normal(size=len(WORDS))
    return curve_table((CURVES[shape][0] + scatter)[:, None], WORDS, OF_SEEDS)


@pytest.mark.parametrize("shape", CURVES)
def test_shapes_find_the_curve_that_made_the_accuracies(shape):
    found = row(fit_shapes(study(shape)), level="overall", shape=shape)
    for name, value in CURVES[shape][1].items():
        assert found[name] == pytest.approx(value, rel=1e-3)
    assert found[["runs", "sizes"]].tolist() == [16, 8]
    assert found["squares"] == pytest.approx(0, abs=1e-9)
    assert found["predicted"] == pytest.approx(CURVES[shape][0][-1], abs=1e-4)


@pytest.mark.parametrize("shape", CURVES)
def test_aicc_prefers_the_shape_that_made_the_accuracies(shape):
    of = fit_shapes(study(shape, 0.003)).query("level == 'overall'").set_index("shape")
    assert of["aicc_above_best"].idxmin() == shape
    assert of.loc[shape, "aicc_above_best"] == 0
    line = sm.OLS(study(shape, 0.003)["accuracy"].to_numpy(), sm.add_constant(DOUBLINGS)).fit()
    assert of.loc[LINE, "squares"] == pytest.approx(line.ssr)
    assert of.loc[LINE, "aicc"] == pytest.approx(aicc(line.llf, 16, 3))


def test_the_largest_size_is_predicted_from_the_smaller_ones():
    table = study(LOGISTIC, 0.01)
    found = row(fit_shapes(table), level="overall", shape=LINE)
    rest = table[table["sample_words"] < WORDS.max()]
    slope, intercept = np.polyfit(np.log2(rest["sample_words"].astype(float)), rest["accuracy"], 1)
    largest = table.loc[table["sample_words"] == WORDS.max(), "accuracy"].mean()
    known = [intercept + slope * math.log2(WORDS.max()), largest]
    assert found[["predicted", "largest_accuracy"]].tolist() == pytest.approx(known)
    assert found["error"] == pytest.approx(known[0] - largest)


def test_what_too_few_sizes_or_dependent_runs_cannot_give_is_missing():
    fitted = fit_shapes(random_curve(4)).groupby("shape").first()
    assert fitted["predicted"].notna().tolist() == [True, False, False]
    assert fitted["squares"].notna().tolist() == [True, False, True]
    assert "5 sizes" in fitted.loc[LOGISTIC, "note"]
    assert "A prediction needs" in fitted.loc[POWER_LAW, "note"]
    for dependent in ({"nested": True}, {"unit": "tokens"}):
        trained = fit_shapes(random_curve(6, **dependent))
        assert trained["aicc"].isna().all()
        assert trained["note"].str.contains("depend on each other").all()
    flat = fit_shapes(curve_table(np.full((16, 1), 0.5), WORDS, OF_SEEDS))
    assert flat["aicc"].isna().all()


def humans(accuracy, **columns):
    return pd.DataFrame({"level": ["overall"], "name": ["overall"], "accuracy": [accuracy], **columns})


def needed(table, accuracy, **columns):
    return row(words_to_humans(table, humans(accuracy, **columns)), level="overall")


def possible(table, accuracy, x, se=0.0):
    """Return how far the line at x lies from humans in excess of Student's quantile, by statsmodels."""
    means = table.groupby("run", sort=False).agg(y=("accuracy", "mean"), words=("sample_words", "first"))
    fit = sm.OLS(means["y"], sm.add_constant(np.log2(means["words"].astype(float)))).fit()
    fit = fit.get_robustcov_results("HC3", use_t=True)
    at = np.array([1, x])
    error = math.sqrt(at @ fit.cov_params() @ at + se**2)
    return abs(at @ fit.params - accuracy) - student.ppf(0.975, len(means) - 2) * error


@pytest.mark.parametrize("se", [0.0, 0.01])
def test_fiellers_interval_ends_where_the_line_may_just_differ_from_humans(se):
    table = random_curve(5, noise=0.01)
    found = needed(table, 0.9, se=se)
    means = table.groupby("sample_words")["accuracy"].mean()
    slope, intercept = np.polyfit(np.log2(means.index.astype(float)), means, 1)
    middle = (0.9 - intercept) / slope
    assert found["words"] == pytest.approx(2**middle)
    ends = [brentq(lambda x: possible(table, 0.9, x, se), *sorted((middle, end))) for end in (9, 60)]
    assert found[["low", "high"]].tolist() == pytest.approx([2**end for end in ends])
    assert found["extrapolation"]


def test_an_interval_without_an_end_says_so():
    table = random_curve(4, gain=0.005, noise=0.04, rng=5)
    found = needed(table, 0.9)
    assert found["high"] == math.inf
    assert found["interval"].endswith("to never")
    assert possible(table, 0.9, math.log2(found["low"])) == pytest.approx(0, abs=1e-9)
    assert possible(table, 0.9, 2000) < 0
    below = needed(table, 0.4)
    assert below["low"] == 0 < below["high"] < math.inf
    falling = needed(random_curve(4, gain=-0.05), 0.9)
    assert falling[["words", "low", "interval"]].tolist() == [math.inf, math.inf, "never to never"]
    few = needed(random_curve(3, seeds=1), 0.9)
    assert few["interval"] == ""
    assert "at least 4 runs" in few["note"]
    assert np.isfinite(few["words"])


def test_published_humans_are_compared_by_unit():
    table = random_curve(5).assign(phenomenon=lambda of: of["phenomenon"].map({"p0": "binding", "p1": "ellipsis"}))
    published = read_published("blimp")
    found = words_to_humans(table, published)
    assert set(found["name"]) == {"overall", "binding", "ellipsis"}
    people = published[(published["model"] == "people") & (published["name"] == "binding")]["accuracy"].item()
    assert found.loc[found["name"] == "binding", "humans"].eq(people).all()
    with pytest.raises(InputError, match="no column accuracy"):
        words_to_humans(table, published.drop(columns="accuracy"))
    assert words_to_humans(table, humans(0.9, model="GPT-2")).empty


def test_amounts_of_text_are_written_with_two_digits():
    words = (950, 12_345, 999_999, 3.14e14, 1e21, math.inf, math.nan)
    assert [words_text(one) for one in words] == ["950", "12k", "1M", "3.1e14", "beyond 1e20", "never", DASH]
