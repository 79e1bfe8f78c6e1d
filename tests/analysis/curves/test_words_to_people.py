"""Words to people against inverse regression by statsmodels, and the profile against Fieller's theorem."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import betabinom, norm
from scipy.stats import t as student
from statsmodels.stats.proportion import proportion_confint

from analysis.config import CurvesConfig
from analysis.curves.fit import fit_curves
from analysis.curves.groups import fit_group
from analysis.curves.shapes import fit_shape, line, power_law, shape_table, sigmoid, unit_fits
from analysis.curves.units import units_of
from analysis.curves.words_to_people import (
    COLUMNS,
    ESTIMATED,
    NEVER,
    NO_ESTIMATE,
    REACHED,
    UNBOUNDED,
    PublishedPeople,
    described,
    fieller,
    mean_and_slope,
    people_accuracy,
    profile_limits,
    published_people,
    words_text,
    words_to_people,
)
from eval.published import read_published
from tests.support.judged_runs import judged_from, judged_once
from tests.support.simulated_judgements import SimulatedJudgements

CONFIG = CurvesConfig(method="lp", interval="auto", confidence=0.95, resamples=400, seed=1)
X = np.repeat(np.arange(17.0, 23.0), 2)
Y = 0.5 + 0.03 * (X - 17) + np.random.default_rng(0).normal(0, 0.01, len(X))


def people_at(accuracy, error=0.0):
    return pd.DataFrame({"level": ["overall"], "name": ["overall"], "accuracy": [accuracy], "error": [error]})


def test_equal_runs_at_the_largest_size_are_no_square_root_of_a_negative_number():
    """The variance of the line there is 0, and rounding took it below: warnings are errors here."""
    sizes = [25_000, 25_000, 50_000, 50_000, 100_000, 100_000]
    judged = judged_from([0.20, 0.25, 0.30, 0.35, 0.61, 0.61], sizes, [1, 2, 1, 2, 1, 2])
    (row,) = words_to_people(judged, CONFIG, people_at(0.9)).to_dict("records")
    assert row["status"] in (UNBOUNDED, ESTIMATED)


def by_line(x, y, people, error=0.0):
    """Return log2(words) by the line, its low and high limit, and whether they are bounds."""
    reference = sm.OLS(y, sm.add_constant(x - x.mean())).fit()
    intercept, slope = reference.params
    covariance = reference.cov_params()
    variances = (np.array([error**2 + covariance[0, 0]]), covariance[1:, 1], -covariance[:1, 1])
    quantile = np.array([student.ppf(0.975, len(x) - 2)])
    low, high, bounded = fieller(np.array([people - intercept]), np.array([slope]), variances, quantile)
    return x.mean() + (people - intercept) / slope, x.mean() + low[0], x.mean() + high[0], bool(bounded[0])


def test_fieller_is_inverse_regression():
    """Words are possible where people's accuracy lies within the confidence band of the line (statsmodels)."""
    _, low, high, bounded = by_line(X, Y, 0.8)
    assert bounded
    fit = sm.OLS(Y, sm.add_constant(X)).fit()
    band = fit.get_prediction(sm.add_constant(np.array([low, high]))).conf_int(alpha=0.05)
    # The upper edge of the band reaches people first.
    np.testing.assert_allclose([band[0, 1], band[1, 0]], [0.8, 0.8])


def test_fiellers_set_is_unbounded_if_the_denominator_may_be_0():
    one = np.ones(1)
    # The denominator may be 0, the numerator may not: all ratios but those between the limits.
    low, high, bounded = fieller(3 * one, 0.5 * one, (0.01 * one, one, 0 * one), 2 * one)
    assert not bounded[0]
    assert low[0] < 0 < high[0]
    for ratio, inside in ((low[0] - 0.01, True), (high[0] + 0.01, True), (low[0] + 0.01, False), (0.0, False)):
        assert ((3 - ratio * 0.5) ** 2 <= 4 * (0.01 + ratio**2)) == inside
    # Both may be 0: every ratio.
    assert np.isnan(fieller(0.1 * one, 0.1 * one, (one, one, 0 * one), 2 * one)[0])[0]


@pytest.mark.parametrize("error", [0.0, 0.02])
def test_the_profile_of_a_line_is_fiellers_set(error):
    fit = fit_shape(line(X), X, Y)
    _, low, high, _ = by_line(X, Y, 0.8, max(error, 1e-4))
    np.testing.assert_allclose(profile_limits(fit, 0.8, error, 0.95), [low, high], atol=2e-3)


def test_the_profile_of_a_weighted_line_is_fiellers_set_with_a_sandwich():
    """Sizes weigh equally and runs vary equally, so a larger weight does not make a single run more certain."""
    x = np.repeat(np.arange(17.0, 23.0), [5, 5, 5, 3, 3, 1])
    y = 0.5 + 0.03 * (x - 17) + np.random.default_rng(0).normal(0, 0.01, len(x))
    weights = 1 / np.unique(x, return_counts=True)[1][(x - 17).astype(int)]
    model = np.column_stack([np.ones(len(x)), x])
    solved = np.linalg.solve(model.T @ (weights[:, None] * model), model.T * weights)
    apart = np.eye(len(x)) - model @ solved
    form = apart.T @ np.diag(weights) @ apart
    variance = y @ form @ y / np.trace(form)
    covariance = variance * solved @ solved.T
    intercept, slope = solved @ y
    quantile = np.array([student.ppf(0.975, np.trace(form) ** 2 / np.trace(form @ form))])
    error = 0.02
    low, high, _ = fieller(
        np.array([0.8 - intercept]), np.array([slope]),
        (np.array([error**2 + covariance[0, 0]]), covariance[1:, 1], -covariance[:1, 1]), quantile,
    )  # fmt: skip
    fit = fit_shape(line(x), x, y, weights)
    np.testing.assert_allclose(profile_limits(fit, 0.8, error, 0.95), [low[0], high[0]], atol=2e-3)


@pytest.mark.parametrize(("seed", "shift"), [(55, 0.127), (9, 0.066)])
def test_the_limit_is_unbounded_if_the_interval_of_the_slope_holds_0(seed, shift):
    """The runs are skewed and tilted so that only the bootstrap's interval or only Student's holds 0."""
    x = np.repeat(np.arange(17.0, 20.0), 5)
    y = 0.5 + np.random.default_rng(seed).exponential(0.05, len(x)) + shift * (x - 18)
    judged = judged_once(y, 2.0**x)
    limits = [
        fit_curves(judged, config).slopes.query("level == 'overall'").iloc[0]["low"]
        for config in (CONFIG, replace(CONFIG, interval="t"))
    ]
    assert (limits[0] < 0 < limits[1]) if seed == 55 else (limits[1] < 0 < limits[0])
    row = words_to_people(judged, CONFIG, people_at(0.95)).iloc[0]
    assert row["status"] == (UNBOUNDED if seed == 55 else ESTIMATED)
    assert np.isfinite(row["high"]) == (row["status"] == ESTIMATED)


def test_the_profile_of_a_sigmoid_agrees_with_the_delta_method():
    y = 0.5 + 0.45 * expit(0.9 * (X - 19)) + np.random.default_rng(1).normal(0, 0.004, len(X))
    fit = fit_shape(sigmoid(X), X, y)
    at = fit.shape.reaches(0.8, fit.free)
    low, high = profile_limits(fit, 0.8, 0.0, 0.95)
    assert low < at < high
    # Within the data the curve is straight enough for the delta method.
    jacobian = fit.shape.gradient(X, fit.free)
    covariance = np.linalg.inv(jacobian.T @ jacobian) * fit.squares / (len(X) - 4)
    here = fit.shape.gradient(np.array([at]), fit.free)[0]
    rate = (fit.shape.at(np.array([at + 1e-4]), fit.free)[0] - 0.8) / 1e-4
    half = student.ppf(0.975, len(X) - 4) * math.sqrt(here @ covariance @ here) / rate
    np.testing.assert_allclose([low, high], [at - half, at + half], atol=0.2 * half)
    wider = profile_limits(fit, 0.8, 0.03, 0.95)
    assert wider[0] < low
    assert high < wider[1]
    assert profile_limits(fit, 0.999, 0.0, 0.95) == (math.inf, math.inf)


def test_limits_where_a_second_start_leads_to_a_lower_minimum():
    """A power law without a trend: its excess at one place depends on the start, which must not end the search."""
    x = np.repeat(np.linspace(0, 9, 8) + np.log2(125_000), 3)
    right = [33, 27, 25, 21, 25, 27, 16, 19, 21, 26, 17, 22, 27, 24, 21, 22, 26, 27, 24, 24, 27, 27, 19, 27]
    fit = fit_shape(power_law(x), x, np.array(right) / 40)
    low, high = profile_limits(fit, 0.7, math.nan, 0.95)
    assert low < high
    assert math.isfinite(low)


def test_mean_and_slope_vary_as_runs_within_sizes_do():
    """Variances and covariance agree with those over 400 studies whose spread between runs depends on the size."""
    cell = SimulatedJudgements(seeds=5, sizes=4, pairs=60, pair_sd=0.0, pair_slope_sd=0.0, run_sd=(0.6, 0.1))
    rng = np.random.default_rng(0)
    estimates, simulated = [], []
    for _ in range(400):
        outcome, _ = cell.draw(rng)
        fit = fit_group("g", outcome, cell.design, cell.units, "auto")
        estimates.append([value[0] for value in mean_and_slope(fit)])
        simulated.append([fit.y[:, 0].mean(), fit.line.slope[0]])
    true = np.cov(np.transpose(simulated))
    np.testing.assert_allclose(np.mean(estimates, axis=0)[:2], [true[0, 0], true[1, 1]], rtol=0.2)
    # More spread at the smallest size: a high mean goes with a shallow slope.
    assert np.mean(estimates, axis=0)[2] == pytest.approx(true[0, 1], rel=0.35)
    assert true[0, 1] < 0


def doubled_words(sizes):
    """Return the words of two runs at each of `sizes` sizes from 125k words, and their doublings."""
    doublings = np.repeat(np.arange(sizes), 2)
    return 125_000 * 2**doublings, doublings


WORDS, _ = doubled_words(4)
RISING = 0.5 + 0.05 * np.repeat(np.arange(4), 2) + np.tile([0.01, -0.01], 4)


@pytest.mark.parametrize(
    ("accuracies", "people", "status", "text"),
    [
        (RISING, 0.9, ESTIMATED, "32M ("),
        (RISING, 0.6, REACHED, "reached at 500k"),
        (RISING * 0 + 0.95, 0.9, REACHED, "reached"),
        (1 - RISING, 0.9, NEVER, "never"),
        (0.5 + (RISING - 0.5) / 1e2 + np.tile([0.02, -0.02], 4), 0.9, UNBOUNDED, "unbounded, at least"),
    ],
)
def test_each_kind_of_curve_has_its_status_and_text(accuracies, people, status, text):
    row = words_to_people(judged_once(accuracies, WORDS), CONFIG, people_at(people)).iloc[0]
    assert row["status"] == status
    assert row["text"].startswith(text)
    assert list(row.index) == COLUMNS
    if status == ESTIMATED:
        # Runs lie on the line, and HC3 limits count. By hand, of sizes at -3, -1, 1 and 3 with two runs each, .01
        # above and below the line: a residual counts (1 - h)^-2 times, which leaves mean and slope uncorrelated.
        c = np.repeat([-3.0, -1, 1, 3], 2)
        h = 1 / 8 + c**2 / 40
        terms = (c / (1 - h))[:, None] * (np.eye(8) - 1 / 8 - np.outer(c, c) / 40)
        degrees = np.trace(terms @ terms.T) ** 2 / ((terms @ terms.T) ** 2).sum()
        variances = [((0.01 * weight / (1 - h)) ** 2).sum() for weight in (1 / 8, 2 * c / 40)]
        quantile = np.array([student.ppf(0.975, degrees)])
        of_line = (np.array([variances[0]]), np.array([variances[1]]), np.zeros(1))
        low, high, _ = fieller(np.array([people - 0.575]), np.array([0.05]), of_line, quantile)
        middle = np.log2(WORDS).mean()
        np.testing.assert_allclose(np.log2([row["low"], row["high"]]), middle + np.array([low[0], high[0]]), rtol=1e-3)
        wider = words_to_people(judged_once(accuracies, WORDS), CONFIG, people_at(people, 0.02)).iloc[0]
        assert wider["low"] < row["low"]
        assert row["high"] < wider["high"]


def test_very_slow_gains_are_beyond_1e20_words():
    steady = 0.5 + (RISING - 0.5) / 20
    row = words_to_people(judged_once(steady, WORDS), CONFIG, people_at(0.95)).iloc[0]
    assert row["words"] > 1e20
    assert row["text"].startswith("beyond 1e20")


def test_one_size_or_two_give_no_estimate():
    one = words_to_people(judged_once(RISING[:2], WORDS[:2]), CONFIG, people_at(0.9)).iloc[0]
    assert (one["status"], one["text"], one["note"]) == (NO_ESTIMATE, "no estimate", "one size only: no slope")
    two = words_to_people(judged_once(RISING[::6], WORDS[::6]), CONFIG, people_at(0.9)).iloc[0]
    assert (two["status"], two["text"], two["note"]) == (NO_ESTIMATE, "no estimate", "two sizes: no curve to continue")
    reached = words_to_people(judged_once(RISING[::6], WORDS[::6]), CONFIG, people_at(0.6)).iloc[0]
    assert reached["status"] == REACHED


def test_a_shape_with_a_ceiling_below_people_gives_never():
    words, doublings = doubled_words(9)
    accuracies = 0.5 + 0.3 * expit(1.6 * (doublings - 3.5)) + np.tile([0.003, -0.003], 9)
    table = words_to_people(judged_once(accuracies, words), CONFIG, people_at(0.9, 0.01)).set_index("fit")
    assert list(table.index) == ["line", "sigmoid"]
    assert (table["status"]["sigmoid"], table["text"]["sigmoid"]) == (NEVER, "never")
    assert table["note"]["sigmoid"] == "the ceiling lies below people"
    assert table["status"]["line"] == ESTIMATED


def test_people_so_uncertain_that_any_text_may_reach_them_are_not_called_never():
    words, doublings = doubled_words(8)
    accuracies = 0.81 + 0.05 * expit(1.2 * (doublings - 3.5)) + np.tile([0.001, -0.001], 8)
    row = words_to_people(judged_once(accuracies, words), CONFIG, people_at(0.862, 0.0457)).iloc[-1]
    assert row["fit"] == "sigmoid"
    assert (row["status"], row["text"], row["low"], row["high"], row["note"]) == (UNBOUNDED, "unbounded", 0, np.inf, "")


def test_a_falling_line_above_people_has_no_limits_of_where_it_reaches_them():
    row = words_to_people(judged_once(1.45 - RISING, WORDS), CONFIG, people_at(0.5)).iloc[0]
    assert (row["status"], row["text"]) == (REACHED, "reached")
    assert row[["words", "low", "high"]].isna().all()


@pytest.mark.parametrize("accuracy", [0.5, 1.0])
def test_no_shape_is_better_than_a_line_through_every_run(accuracy):
    """All judgements right, or half of them, at six sizes: AICc compares rounding errors, and shows no spread."""
    words, _ = doubled_words(6)
    judged = judged_once(np.full(len(words), accuracy), words)
    assert words_to_people(judged, CONFIG, people_at(0.8, 0.03))["fit"].tolist() == ["line"]


def test_a_shape_that_cannot_reach_people_gives_no_row():
    """A sigmoid from .5 to people's accuracy fits best here, but never reaches it."""
    words, doublings = doubled_words(9)
    accuracies = 0.5 + 0.4 * expit(0.9 * (doublings - 3.5)) + np.tile([0.003, -0.003], 9)
    judged, people = judged_once(accuracies, words), people_at(0.9, 0.01)
    shapes = shape_table(unit_fits(judged, people, ["overall"])).set_index("shape")
    assert shapes.loc["sigmoid from .5 to people", "preferred"]
    table = words_to_people(judged, CONFIG, people).set_index("fit")
    assert "sigmoid from .5 to people" not in table.index
    assert NEVER not in set(table["status"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sigmoid", "power law"])
def test_never_is_seldom_given_to_curves_that_reach_people(kind):
    """The true curves of the simulated studies reach people, with ceilings just above their accuracy."""
    (words, doublings), rng = doubled_words(8), np.random.default_rng(0)
    rise = expit(0.8 * (doublings - 3)) if kind == "sigmoid" else 1 - np.exp2(-0.5 * doublings)
    statuses = []
    for _ in range(20):
        accuracies = 0.5 + 0.42 * rise + rng.normal(0, 0.01, len(words))
        rows = words_to_people(judged_once(accuracies, words), CONFIG, people_at(0.9, 0.015))
        statuses += list(rows[rows["fit"] != "line"]["status"])
    assert len(statuses) >= 15
    assert statuses.count(NEVER) <= 1


def test_reached_only_where_level_or_slope_is_known():
    """A line that ends above people is not "reached" if neither its slope nor its level is known."""
    noisy = 0.6 + np.array([0.2, -0.2, 0.1, -0.15, 0.2, -0.1, 0.25, 0.0])
    row = words_to_people(judged_once(noisy, WORDS), CONFIG, people_at(0.62)).iloc[0]
    assert row["last_accuracy"] > 0.62
    assert (row["status"], row["text"]) == (UNBOUNDED, "unbounded")


def test_errors_of_people_are_agresti_and_coulls():
    """One paradigm: half of Agresti and Coull's interval (statsmodels) over its quantile; then means over paradigms."""
    pairs = pd.DataFrame({"phenomenon": list("aab"), "paradigm": ["x", "y", "z"], "pair_id": list("000")})
    rows = [("paradigm", "x", 0.9), ("paradigm", "y", 1.0), ("paradigm", "z", 0.8), ("phenomenon", "a", 0.95)]
    rows += [("overall", "overall", 0.9)]
    published = pd.DataFrame([(*row[:2], "people", row[2]) for row in rows])
    published.columns = ["level", "name", "model", "accuracy"]
    alone = PublishedPeople(pairs=100, judgements=1, correlation=0.3)  # one judgement a pair: no clustering
    table = people_accuracy(published, units_of(pairs).table, alone).set_index("name")
    np.testing.assert_allclose(table["accuracy"][["overall", "a", "b"]], [0.9, 0.95, 0.8])
    low, high = proportion_confint(90, 100, alpha=2 * norm.sf(2), method="agresti_coull")  # z = 2: two more of each
    assert table["error"]["x"] == pytest.approx((high - low) / 4)
    assert table["error"]["y"] > 0
    assert table["error"]["a"] == pytest.approx(math.hypot(table["error"]["x"], table["error"]["y"]) / 2)
    three = table.loc[["x", "y", "z"], "error"]
    assert table["error"]["overall"] == pytest.approx(math.sqrt((three**2).sum()) / 3)
    assert people_accuracy(published, units_of(pairs).table, None)["error"].isna().all()
    # Of part of a benchmark the whole is a mean over that part; a paradigm without people's judgements has no row, and
    # the share of its phenomenon for an error.
    part = people_accuracy(published, units_of(pairs.iloc[:2]).table, alone).set_index("name")
    assert part["accuracy"]["overall"] == pytest.approx(0.95)
    unknown = people_accuracy(published, units_of(pairs.replace("y", "w")).table, alone).set_index("name")
    assert set(unknown.index) == {"overall", "a", "b", "x", "z"}
    assert unknown["accuracy"]["a"] == 0.95
    share = 97 / 104
    expected = math.hypot(table["error"]["x"], math.sqrt(share * (1 - share) / 104)) / 2
    assert unknown["error"]["a"] == pytest.approx(expected)


def test_the_error_of_people_allows_for_correlated_judgements_of_a_pair():
    """The variance of shares of simulated answers: 20 people on the same five pairs, beta-binomial with rho = .12."""
    published = pd.DataFrame([("paradigm", "x", "people", 0.9)], columns=["level", "name", "model", "accuracy"])
    units = units_of(pd.DataFrame({"phenomenon": ["a"], "paradigm": ["x"], "pair_id": ["0"]})).table
    people = PublishedPeople(pairs=5, judgements=20, correlation=0.12)
    error = people_accuracy(published, units, people).set_index("name")["error"]["x"]
    total = (1 - 0.12) / 0.12
    agreement = np.random.default_rng(0).beta(0.9 * total, 0.1 * total, (20_000, 5))
    shares = np.random.default_rng(1).binomial(20, agreement).sum(axis=1) / 100
    # Agresti and Coull's share is drawn to the middle: sqrt(.8846 * .1154 / 104) for sqrt(.9 * .1 / 100)
    assert error == pytest.approx(shares.std() * math.sqrt(0.8846 * 0.1154 / 104) / 0.03, rel=0.02)
    assert people.design_effect == pytest.approx(3.28)


def test_people_are_known_for_the_published_benchmarks():
    assert published_people("blimp") == PublishedPeople(pairs=5, judgements=20, correlation=0.12)
    assert published_people("climp").design_effect == 1
    assert published_people("toy") is None
    assert published_people("blimp", 0.2).design_effect == pytest.approx(4.8)
    climp = read_published("climp")
    phenomena = sorted(set(climp.loc[climp["level"] == "phenomenon", "name"]))
    pairs = pd.DataFrame({"phenomenon": phenomena, "paradigm": [f"{n}_1" for n in phenomena], "pair_id": "0"})
    table = people_accuracy(climp, units_of(pairs).table, published_people("climp"))
    assert set(table["level"]) == {"overall", "phenomenon"}
    assert table["error"].between(0.002, 0.05).all()


def test_the_correlation_follows_from_published_agreement():
    """Warstadt et al. 2020, section 3.4: 88.6% of single judgements agree, and 96.4% of majorities of 20.

    The agreement of pairs is beta-distributed about their paradigm's (table 4); more correlation, fewer majorities.
    """
    blimp = read_published("blimp")
    of_people = blimp[(blimp["model"] == "people") & (blimp["level"] == "paradigm")]["accuracy"].to_numpy()
    assert of_people.mean() == pytest.approx(0.886, abs=0.001)

    def majorities(rho):
        total = (1 - rho) / rho
        return betabinom.sf(10, 20, of_people * total, (1 - of_people) * total).mean()

    rho = brentq(lambda rho: majorities(rho) - 0.964, 0.01, 0.9)
    assert published_people("blimp").correlation == pytest.approx(rho, abs=0.005)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (940, "940"), (125_000, "120k"), (996_000, "1M"), (2.44e6, "2.4M"), (3e9, "3B"), (3.14e14, "3.1e14"),
        (1.1e20, "beyond 1e20"), (math.inf, "beyond 1e20"), (math.nan, "not known"),
    ],
)  # fmt: skip
def test_numbers_of_words_are_rounded_to_two_digits(words, text):
    assert words_text(words) == text


def test_a_limit_beyond_1e20_words_is_written_as_such():
    row = {"words": math.inf, "low": 3e20, "high": math.inf, "status": UNBOUNDED}
    assert described(row) == "unbounded, beyond 1e20"
    assert described({**row, "words": 1e9, "low": 1e8, "status": ESTIMATED}) == "1B (100M to beyond 1e20)"
