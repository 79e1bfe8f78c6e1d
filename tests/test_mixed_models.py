"""The mixed model against analysis of variance by hand, which is exact where all runs judge all paradigms."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit

from analysis.mixed_models import PARADIGM, PARADIGM_SLOPE, RUN, empirical_logits, fit_mixed, mixed_slopes
from tests.test_comparisons import judged_from

X = np.repeat(np.arange(17.0, 21.0), 3)


def made_up(seed, paradigms=8, slopes=0.1, runs=0.2):
    rng = np.random.default_rng(seed)
    of_paradigm = rng.normal(0, 1, paradigms) + np.outer(X - X.mean(), rng.normal(0.3, slopes, paradigms))
    return of_paradigm + rng.normal(0, runs, (len(X), 1)) + rng.normal(0, 0.1, (len(X), paradigms))


@pytest.mark.parametrize("seed", range(4))
def test_balanced_data_are_an_analysis_of_variance(seed):
    """REML estimates are those of the mean squares: of runs, of paradigms' slopes, and of what is left."""
    y = made_up(seed)
    runs, paradigms = y.shape
    x = X - X.mean()
    spread = (x**2).sum()
    slopes = x @ y / spread
    fitted = y.mean(axis=0) + np.outer(x, slopes)
    of_slopes = spread * ((slopes - slopes.mean()) ** 2).sum() / (paradigms - 1)
    left = y - fitted
    of_runs = paradigms * (left.mean(axis=1) ** 2).sum() / (runs - 2)
    residual = ((left - left.mean(axis=1, keepdims=True)) ** 2).sum() / ((runs - 2) * (paradigms - 1))
    found = fit_mixed(X, y)
    assert found["random"] == ", ".join([PARADIGM, PARADIGM_SLOPE, RUN])
    assert found["note"] == ""
    assert found["slope"] == pytest.approx(slopes.mean(), rel=1e-5)
    expected = [
        np.sqrt((of_runs + of_slopes - residual) / paradigms / spread),
        np.sqrt((of_slopes - residual) / spread), np.sqrt((of_runs - residual) / paradigms), np.sqrt(residual),
    ]  # fmt: skip
    columns = ["error", "paradigm_slope_sd", "run_sd", "residual_sd"]
    np.testing.assert_allclose([found[column] for column in columns], expected, rtol=0.01)
    assert found["degrees"] == min(runs - 2, paradigms - 1)


def test_runs_that_do_not_differ():
    """A variance of 0 lies at the end of what is possible: it is fitted all the same."""
    found = fit_mixed(X, made_up(0, runs=0.0))
    assert found["slope"] == pytest.approx(0.3, abs=0.1)
    assert found["run_sd"] < 0.05


def test_few_paradigms():
    one = fit_mixed(X, made_up(0, paradigms=1))
    slope, _ = np.polyfit(X, made_up(0, paradigms=1)[:, 0], 1)
    assert one["slope"] == pytest.approx(slope)
    assert one["random"] == "none"
    two = fit_mixed(X, made_up(0, paradigms=2))
    assert two["random"] == RUN
    # With two fixed paradigms the mean over them is all that runs differ in: least squares of it.
    (slope, _), covariance = np.polyfit(X, made_up(0, paradigms=2).mean(axis=1), 1, cov=True)
    np.testing.assert_allclose([two["slope"], two["error"]], [slope, np.sqrt(covariance[0, 0])], rtol=1e-3)


def test_failures_are_said(monkeypatch):
    monkeypatch.setattr("analysis.mixed_models.MixedLM.fit", lambda *args, **kwargs: (_ for _ in ()).throw(
        np.linalg.LinAlgError("Singular matrix")
    ))  # fmt: skip
    found = fit_mixed(X, made_up(0))
    assert found["random"] == "none"
    assert "slope" not in found
    assert found["note"].count("Singular matrix") == 3


def test_empirical_logits():
    outcome = np.array([[1, 1, 1, 0, 1], [0, 0, 0, 0, 0]], dtype=np.float32)
    found = empirical_logits(outcome, np.array([0, 3, 5]))
    np.testing.assert_allclose(found, np.log([[3.5 / 0.5, 1.5 / 1.5], [0.5 / 3.5, 0.5 / 2.5]]))
    many = empirical_logits(np.repeat([[1.0, 0.0]], 1000, axis=1), np.array([0, 2000]))
    np.testing.assert_allclose(many, logit(0.5), atol=1e-3)


def test_the_table():
    sizes = np.repeat([1000, 2000, 4000], 2)
    accuracies = 0.5 + 0.1 * np.log2(sizes / 1000)
    judged = judged_from({"a": (accuracies, sizes), "b": (accuracies[:2], sizes[:2])})
    table = mixed_slopes(judged, 0.95).set_index(["group", "name"])
    assert len(table) == 2 * 3
    right = judged.outcome[:6, :200].sum(axis=1)
    slope, _ = np.polyfit(np.log2(sizes), np.log((right + 0.5) / (200 - right + 0.5)), 1)
    assert table.loc[("a", "p"), "slope"] == pytest.approx(slope)
    assert table.loc[("a", "overall"), "random"] == RUN
    assert table.loc[("a", "p"), ["low", "high"]].notna().all()
    assert table.loc[("b", "p"), "note"] == "one size only: no slope"
    assert pd.isna(table.loc[("b", "p"), "slope"])
