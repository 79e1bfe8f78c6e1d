"""The planner: simulated power against scipy and statsmodels, pilots by hand, and the command."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

from analysis.plan.config import PlanConfig
from analysis.plan.planner import Assumed, Goal, assume_pilot, assume_stated, plan_grids, simulate_power
from analysis.plan.run import run
from pairscale.errors import ConfigError, RunError
from tests.support.ablation_study import write_ablations
from tests.support.commands import exit_code
from tests.support.long_table import curve_table, grid
from tests.support.simulated_study import SimulatedStudy

X = np.log2([1000.0, 2000.0, 4000.0, 8000.0])
PLAN = PlanConfig(seeds=[2, 3, 5], simulations=2000)


def paired_t_power(effect, deviation, seeds):
    """Return the power of a two-sided paired t test, by the noncentral t distribution."""
    quantile, shift = stats.t.ppf(0.975, seeds - 1), effect / deviation * math.sqrt(seeds)
    return stats.nct.sf(quantile, seeds - 1, shift) + stats.nct.cdf(-quantile, seeds - 1, shift)


@pytest.mark.parametrize("effect", [0.0, 0.01, 0.03])
def test_at_one_size_power_is_that_of_the_paired_t_test(effect):
    power = simulate_power(X[:1], 5, 0.01, Goal("ablation", effect), PlanConfig(simulations=8000))
    assert power == pytest.approx(paired_t_power(effect, 0.01, 5), abs=0.012)
    assert math.isnan(simulate_power(X[:1], 1, 0.01, Goal("ablation", effect), PLAN))


def test_the_power_of_a_slope_is_that_of_studies_analysed_by_statsmodels():
    goal, rng = Goal("slope", 0.006), np.random.default_rng(7)
    x = np.repeat(np.arange(4.0), 3)
    found = 0
    for _ in range(400):
        y = 0.6 + 0.006 * x + rng.normal(0, 0.01, 12)
        found += sm.OLS(y, sm.add_constant(x)).fit(cov_type="HC3", use_t=True).pvalues[1] < 0.05
    error = math.sqrt(0.25 / 400)
    assert simulate_power(X, 3, 0.01, goal, PLAN) == pytest.approx(found / 400, abs=3 * error)


def test_nested_samples_need_three_seeds_and_have_less_power():
    def power(effect=0.005, seeds=3, nested=False):
        return simulate_power(X, seeds, 0.015, Goal("slope", effect), PLAN, nested)

    assert power(effect=0.0) < 0.08
    assert math.isnan(power(seeds=2, nested=True))
    assert 0 < power(nested=True) < power() < min(power(effect=0.01), power(seeds=6))


@pytest.mark.parametrize(
    ("kind", "variance"), [("slope", 1e-4 + 0.6 * 0.4 / 400), ("difference", 2 * (1e-4 + 0.6 * 0.4 / 400))]
)
def test_stated_variances_by_hand(kind, variance):
    assumed = assume_stated(Goal(kind, 0.01), spread=0.01, accuracy=0.6, paradigms=4)
    assert np.square(assumed.deviations(100)) == pytest.approx([variance, np.nan], nan_ok=True)


def pilot(curves="mn", seeds=3, spread=0.05):
    rng, (words, of_seeds) = np.random.default_rng(0), grid(2, seeds)
    accuracies = {curve: rng.normal(0.7, spread * (1 + (curve == "n")), (len(words), 2)) for curve in curves}
    return pd.concat([curve_table(y, words, of_seeds, curve) for curve, y in accuracies.items()])


def overall(table, curve):
    """Return the (sizes, seeds) overall accuracies of a curve."""
    return table[table["curve"] == curve].groupby(["sample_words", "seed"])["accuracy"].mean().unstack().to_numpy()


def test_a_pilots_variance_is_pooled_over_sizes_and_chance_is_binomial():
    table = pilot()
    assumed, about = assume_pilot(Goal("slope", 0.01), table, "overall", ["m"])
    variance = overall(table, "m").var(axis=1, ddof=1).mean()
    assert assumed.degrees == 4
    assert assumed.accuracy == pytest.approx(table.query("sample_words == 1000")["accuracy"].mean())
    chance = (table["accuracy"] * (1 - table["accuracy"])).mean() / 100
    assert assumed.chance == pytest.approx(min(chance, variance) * 50)
    assert about.startswith("m:")
    limit = variance * 4 / stats.chi2.ppf(0.1, 4)
    assert np.square(assumed.deviations(50)) == pytest.approx([variance, limit])
    assert assume_pilot(Goal("slope", 0.01), table, "overall")[1].startswith("n:")  # whose runs differ most


def test_a_comparison_takes_differences_of_paired_runs_or_a_second_curve_like_the_first():
    table, goal = pilot(), Goal("difference", 0.01)
    differences = overall(table, "m") - overall(table, "n")
    assumed, about = assume_pilot(goal, table, "overall")
    assert assumed.deviations(50)[0] ** 2 == pytest.approx(differences.var(axis=1, ddof=1).mean())
    assert "m minus n" in about
    alone, _ = assume_pilot(goal, table, "overall", ["m"])
    assert alone.deviations(50)[0] ** 2 == pytest.approx(2 * overall(table, "m").var(axis=1, ddof=1).mean())


@pytest.mark.parametrize(
    ("table", "goal", "unit", "curves", "error"),
    [
        (pilot(), "slope", "verbs", (), ConfigError),
        (pilot(), "slope", "p0", ("x",), ConfigError),
        (pilot(curves="mno"), "ablation", "p0", (), ConfigError),
        (pilot(seeds=1), "slope", "overall", (), RunError),
        (pilot(spread=0), "slope", "overall", (), RunError),
    ],
)
def test_pilots_that_cannot_be_used_say_why(table, goal, unit, curves, error):
    with pytest.raises(error, match=unit):
        assume_pilot(Goal(goal, 0.01), table, unit, curves)


def grids(goal, effect, seeds=(2, 3, 5)):
    names = ["1k", "2k", "4k", "8k"]
    sizes = pd.DataFrame({"sample_words": 2**X, "runs": 1, "words": 2**X, "hours": np.nan}, index=names)
    plan = PlanConfig(seeds=list(seeds), simulations=2000)
    return plan_grids(sizes, [100], Goal(goal, effect), Assumed(0.6, 0.01**2, 0.0, degrees=6), plan)


def test_grids_are_sorted_by_cost_and_stay_between_0_and_1():
    assert grids("slope", 0.01, [2])["sizes"].tolist() == ["1k,2k,4k", "1k,2k,4k,8k"]
    found = grids("ablation", 0.01, [2])["sizes"].tolist()  # every other size, too
    assert found == ["1k", "1k,2k", "1k,4k", "1k,2k,4k", "2k,8k", "1k,2k,4k,8k"]
    table = grids("slope", 0.01)
    assert len(table) == 6
    assert table["words"].is_monotonic_increasing
    assert table["words"].iloc[-1] == 5 * 15_000
    assert (table["power_high"] < table["power"] + 0.02).all()
    assert grids("slope", 0.0001)["power"].max() < 0.1
    assert len(grids("slope", 0.15)) == 3  # three doublings would pass 1
    with pytest.raises(ConfigError, match=r"effect=0\.3"):
        grids("slope", 0.3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "grids"),
    [
        (["experiment=blimp_small", "effect=0.02", "goal=difference", "pilot=simulated", "plan.seeds=[3]"], 4),
        (["experiment=ablation_small", "effect=0.05", "goal=ablation", "pilot=ablations", "plan.seeds=[4]"], 8),
    ],
)
def test_a_pilot_gives_a_command_ready_to_paste(tmp_path, words, grids, capsys):
    SimulatedStudy(pairs=40, sizes=("125k", "250k", "500k"), seeds=(1, 2, 3)).write(tmp_path / "runs")
    write_ablations(tmp_path / "runs", sizes=("125k", "250k"), seeds=(1, 2))
    paths = [f"paths.{name}={tmp_path / name}" for name in ("runs", "reports", "store")]
    assert exit_code("plan", run, *paths, *words, "plan.simulations=500") == 0
    table = pd.read_csv(tmp_path / "reports" / words[0].partition("=")[2] / "plan.csv")
    assert len(table) == grids
    chosen = table[table["power"] >= 0.8].iloc[0]
    printed = capsys.readouterr().out
    assert f"sample.size={chosen['sizes']} " in printed
    assert f"benchmark.pairs={chosen['pairs']}" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["experiment=blimp_small", "spread=0.01"], "effect=0.01"),
        (["experiment=blimp_small", "effect=0.01"], "pilot=STUDY"),
        (["experiment=blimp_small", "effect=0.01", "spread=0.01", "plan.unit=binding"], "plan.paradigms=NUMBER"),
        (["experiment=blimp_small", "effect=0.01", "spread=0.01", "goal=ablation"], "goal=ablation needs a filter"),
        (["experiment=blimp_small", "effect=0.01", "spread=0.01", "goal=difference", "model=lstm_tiny"], "two curves"),
    ],
)
def test_errors_are_one_line(words, message, capsys):
    assert exit_code("plan", run, *words) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("pairscale plan:")]
    assert message in line
