"""`python -m analysis.plan`: from a pilot, or stated numbers, to the command of a grid; errors in one line."""

import re
import shutil
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.curves.designs import design_of
from analysis.curves.units import paradigm_accuracies, units_of
from analysis.plan.pilot import from_pilot, only_unit, spread_of, stated
from analysis.plan.run import check_curves
from analysis.study.collect import collect
from analysis.study.judgements import judgements
from eval.sweeps import expected_points
from pairscale.command.compose import compose
from pairscale.errors import ConfigError, RunError
from tests.support.ablation_study import BOTH, write_ablations
from tests.support.commands import run_command
from tests.support.simulated_study import SimulatedStudy

STUDY = SimulatedStudy(pairs=40, sizes=("125k", "250k", "500k"), seeds=(1, 2, 3))
QUICK = ("plan.simulations=40", "plan.seeds=[2,3]", "plan.pairs=[20,40]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    STUDY.write(folder / "runs")
    SimulatedStudy(name="alone", seeds=(1,), pairs=10).write(folder / "runs")
    return folder


def plan(folder, *words):
    paths = [f"paths.{name}={folder / name}" for name in ("runs", "reports", "store")]
    return run_command("analysis.plan", *paths, *words)


def judged(folder):
    return judgements(collect(folder / "runs", "simulated"), "blimp", "lp", "wrong")


def test_a_pilots_spread_by_hand(folder):
    of = judged(folder)
    units = units_of(of.pairs)
    rows = np.flatnonzero(of.runs["group"] == "lstm_tiny")
    outcome, design = of.outcome[rows].astype(float), design_of(of.runs.iloc[rows])
    spread = spread_of(outcome, design, only_unit(units, "island_effects"))
    accuracy = paradigm_accuracies(outcome, units.bounds)[:, 2:5].mean(axis=1)
    variances = [accuracy[design.size == s].var(ddof=1) for s in range(3)]
    assert spread.total.degrees == 6
    if not spread.total.slope:
        assert spread.total.variance == pytest.approx(np.mean(variances))
    means = [accuracy[design.size == s].mean() for s in range(3)]
    assert spread.gain == pytest.approx((means[2] - means[0]) / 2)
    assert spread.accuracy == pytest.approx(np.mean(means) - spread.gain)
    assert spread.chance == pytest.approx(spread.judgement / (3 * 40))
    assert spread.paradigms == 3


def test_a_stated_gain_stands_in_for_the_pilots(folder):
    words = ["experiment=blimp_small", "pilot=simulated", "effect=0.01", f"paths.runs={folder / 'runs'}"]
    assert from_pilot(compose("plan", [*words, "plan.gain=0.003"])).spread.gain == 0.003
    assert from_pilot(compose("plan", words)).spread.gain > 0.01


def test_units_and_runs_that_a_pilot_lacks_are_named(folder):
    units = units_of(judged(folder).pairs)
    with pytest.raises(ConfigError, match=r"plan\.unit=verbs: no such unit; available: overall, anaphor_agreement"):
        only_unit(units, "verbs")
    of = judged(folder)
    alone = of.runs[(of.runs["group"] == "lstm_tiny") & (of.runs["seed"] == 1)]
    with pytest.raises(RunError, match="no two runs at any size"):
        spread_of(np.zeros((3, len(of.pairs))), design_of(alone), only_unit(units, "overall"))


def test_a_curve_is_not_compared_with_itself(folder):
    words = ["experiment=blimp_small", "pilot=simulated", "effect=0.01", f"paths.runs={folder / 'runs'}"]
    message = r"plan\.other=lstm_tiny: the curve that it is compared with is lstm_tiny too; allowed: txl_tiny, null"
    for group in ("lstm_tiny", "null"):  # null: the first curve
        with pytest.raises(ConfigError, match=message):
            from_pilot(compose("plan", [*words, "goal=difference", f"plan.group={group}", "plan.other=lstm_tiny"]))


def test_what_an_ablation_is_compared_with_may_be_named(tmp_path):
    write_ablations(tmp_path, BOTH[:3], sizes=("125k", "250k"))
    words = ["experiment=ablation_small", "pilot=ablations", "effect=0.1", f"paths.runs={tmp_path}", "goal=ablation"]
    control, full = "llama_tiny, control of first", "llama_tiny, full text"
    for other, expected in (("null", control), (f"'{control}'", control), (f"'{full}'", full)):
        about = from_pilot(compose("plan", [*words, f"plan.other={other}"])).about
        assert f"(llama_tiny, first removed less {expected}, of one size and seed)" in about
    with pytest.raises(ConfigError, match=rf"is compared with this curve; allowed: {control}; {full}; null"):
        from_pilot(compose("plan", [*words, "plan.other='llama_tiny, first removed'"]))


@pytest.mark.parametrize(
    ("goal", "what"), [("slope", "accuracies of runs"), ("difference", "differences between pair")]
)
def test_a_pilot_whose_runs_do_not_differ_is_refused(tmp_path, goal, what):
    for folder in SimulatedStudy(pairs=10, sizes=("125k", "250k"), seeds=(1, 2)).write(tmp_path):
        if folder.path.name.endswith("-s2"):
            first = folder.path.with_name(folder.path.name.replace("-s2", "-s1"))
            shutil.copytree(first / "scores", folder.path / "scores", dirs_exist_ok=True)
    words = ["experiment=blimp_small", "pilot=simulated", "effect=0.01", f"paths.runs={tmp_path}", f"goal={goal}"]
    with pytest.raises(RunError, match=f"pilot=simulated: {what}.* of a size are all the same in plan.unit=overall: "):
        from_pilot(compose("plan", words))


def test_a_pilot_on_some_of_the_pairs_is_read_and_of_several_the_planned_ones(tmp_path):
    SimulatedStudy(pairs=10, sizes=("125k", "250k"), seeds=(1, 2)).write(tmp_path)

    def config(*words):
        words = ("experiment=blimp_small", "pilot=simulated", "effect=0.04", f"paths.runs={tmp_path}", *words)
        return compose("plan", list(words))

    whole = from_pilot(config())
    for scores in tmp_path.glob("simulated/*/scores/blimp"):
        scores.rename(scores.with_name("blimp+pairs-10"))
    assert from_pilot(config()) == whole
    for scores in tmp_path.glob("simulated/*/scores/blimp+pairs-10"):
        shutil.copytree(scores, scores.with_name("blimp+pairs-9"))
    assert from_pilot(config("benchmark.pairs=10")) == whole
    with pytest.raises(ConfigError, match=r"has scores of blimp\+pairs-10, blimp\+pairs-9, and none of blimp; choose"):
        from_pilot(config())


@pytest.mark.parametrize(
    ("words", "paradigms"),
    [
        ((), 67),
        (("plan.unit=island_effects",), 8),
        (("plan.unit=island_effects", "plan.paradigms=3"), 3),
        (("plan.unit=adjunct_island",), 1),
        (("plan.unit=island_effects", "benchmark.paradigms=[adjunct_island,wh_island,causative]"), 2),
        (("goal=ablation", "plan.unit='tests the construction'", "plan.paradigms=4"), 4),
        (("benchmark=climp", "plan.unit=ba", "plan.paradigms=2"), 2),
    ],
)
def test_a_stated_unit_has_the_paradigms_that_are_published(words, paradigms):
    config = compose("plan", ["experiment=blimp_small", "effect=0.01", "spread=0.01", *words])
    basis = stated(config, 17.0)
    assert basis.spread.paradigms == paradigms
    assert f"judgements; {paradigms} paradigm{'s' if paradigms > 1 else ''}, accuracy" in basis.about


def test_people_are_as_accurate_in_a_stated_phenomenon_as_in_its_paradigms():
    def people(*words):
        words = ("experiment=blimp_small", "goal=people", "effect=4", "spread=0.01", "plan.gain=0.02", *words)
        return stated(compose("plan", list(words)), 17.0).spread

    two = [people(f"plan.unit=anaphor_{name}_agreement").people for name in ("gender", "number")]
    assert people("plan.unit=anaphor_agreement").people == pytest.approx(np.mean(two)) == pytest.approx(0.975, abs=0.02)
    # Their error is that of the analysis; a stated accuracy is exact.
    errors = [people(f"plan.unit=anaphor_{name}_agreement").people_error for name in ("gender", "number")]
    assert min(errors) > 0.005
    assert people("plan.unit=anaphor_agreement").people_error == pytest.approx(np.hypot(*errors) / 2)
    assert people("plan.people=0.9").people_error == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("plan.unit=nosuchunit",), r"nosuchunit: no such unit; available: overall, anaphor_agreement, .*, and parad"),
        (("plan.unit=nosuchunit", "plan.paradigms=3"), "nosuchunit: no such unit"),
        (("plan.unit='tests the construction'",), "no such unit"),
        (("benchmark=climp", "plan.unit=islands"), "available: overall, anaphor_agreement, ba, "),
        (("benchmark=climp", "plan.unit=ba"), "how many plan.unit=ba of benchmark=climp has is not known; state it"),
    ],
)
def test_stated_units_without_paradigms_are_named(words, message):
    config = compose("plan", ["experiment=blimp_small", "effect=0.01", "spread=0.01", *words])
    with pytest.raises(ConfigError, match=message):
        stated(config, 17.0)


@pytest.mark.slow
def test_a_pilot_gives_a_command_ready_to_paste(folder):
    done = plan(folder, "experiment=blimp_small", "effect=0.04", "pilot=simulated", *QUICK)
    assert done.returncode == 0, done.stderr
    command = re.search(
        r"python -m eval -m experiment=blimp_small sample.size=(\S+) seed=(\S+) .*pairs=\d+", done.stdout
    )
    assert command is not None, done.stdout
    assert command[1].startswith("125k,")
    assert command[2] in ("1,2", "1,2,3")
    assert "Checked: 40 simulated studies of this very grid" in done.stdout
    assert "With the variance between runs at its upper limit (90%, one-sided)" in done.stdout
    page = folder / "reports/blimp_small/plan"
    table = pd.read_csv(page / "plan-grids.csv")
    assert table["hours"].to_numpy() == pytest.approx(table["words"].to_numpy() / 21_000 / 3600)  # the pilot's words/s
    # Two models, sizes of 125k, 250k and 500k words, each read three times.
    row = table[(table["training sizes"] == "125k to 500k (3)") & (table["seeds"] == 2)].iloc[0]
    assert (row["words"], row["runs"]) == (2 * 2 * 3 * 875_000, 12)
    assert (table["upper"] <= table["power"] + 0.01).all()
    assert command[0] in (page / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("goal", "effect", "further"),
    [
        ("difference", "0.05", ()),
        ("ablation", "0.1", ("plan.unit=island_effects",)),
        ("people", "16", ("plan.unit=anaphor_agreement",)),
    ],
)
def test_other_goals(folder, goal, effect, further):
    experiment = "ablation_small" if goal == "ablation" else "blimp_small"
    words = (f"experiment={experiment}", f"goal={goal}", f"effect={effect}", "pilot=simulated")
    done = plan(folder, *words, *QUICK, *further)
    assert done.returncode == 0, done.stderr
    assert "power" in done.stdout
    if goal != "people":
        assert "differences of 9 pairs of runs (lstm_tiny less txl_tiny, of one size and seed)" in done.stdout


@pytest.mark.slow
def test_stated_numbers_and_overrides_reach_the_grid(folder):
    words = (
        "experiment=blimp_small",
        "effect=0.02",
        "spread=0.01",
        "model=lstm_tiny",
        "recipe.budget.epochs=5",
        "rate=10000",
    )
    done = plan(folder, *words, *QUICK)
    assert done.returncode == 0, done.stderr
    assert "67 paradigms" in done.stdout
    assert "experiment=blimp_small model=lstm_tiny recipe.budget.epochs=5 sample.size=" in done.stdout
    table = pd.read_csv(folder / "reports/blimp_small/plan/plan-grids.csv")
    row = table[(table["training sizes"] == "125k to 1M (4)") & (table["seeds"] == 3)].iloc[0]
    assert row["words"] == 3 * 5 * 1_875_000
    assert row["hours"] == pytest.approx(row["words"] / 10_000 / 3600)
    assert "upper" not in table


@pytest.mark.slow
def test_conditions_are_planned_and_the_full_text_is_trained_once_for_both_filters(folder):
    words = ("experiment=ablation_small", "effect=0.02", "spread=0.01", "goal=ablation", "plan.simulations=0")
    done = plan(folder, *words, *QUICK[1:])
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(folder / "reports/ablation_small/plan/plan-grids.csv")
    row = table[(table["training sizes"] == "125k") & (table["seeds"] == 2)].iloc[0]
    assert (row["words"], row["runs"]) == (2 * 5 * 500_000, 10)


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (("ablate.action=remove,control",), False),
        (("ablate.action=none,remove",), False),
        (("ablate.action=none,replace",), False),
        (("ablate.action=remove",), True),
        (("ablate.action=replace,control",), True),
        (("ablate.action=remove,control", "filter=passive"), False),
        (("ablate.action=none",), True),
    ],
)
def test_an_ablation_has_a_treatment_and_what_it_is_compared_with(words, refused):
    runs = [run for _, run in expected_points("ablation_small", ["seed=1", "sample.size=125k", *words])]
    with pytest.raises(ConfigError, match="has no treatment beside") if refused else nullcontext():
        check_curves("experiment=ablation_small", "ablation", runs)
    with pytest.raises(ConfigError, match="has one curve") if len(runs) == 1 else nullcontext():
        check_curves("experiment=ablation_small", "difference", runs)


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "unknown"), [("rate={lstm_tny:20000,txl_tiny:9000}", True), ("rate=20000", False)])
def test_models_without_a_rate_are_named(folder, rate, unknown):
    words = ("experiment=blimp_small", "effect=0.02", "spread=0.01", "plan.simulations=0", *QUICK[1:])
    done = plan(folder, *words, rate)
    note = "words/s of lstm_tiny are not known, so hours are not: rate has those of lstm_tny, txl_tiny."
    assert (note in " ".join(done.stderr.split())) == unknown
    table = pd.read_csv(folder / "reports/blimp_small/plan/plan-grids.csv")
    assert ("hours" not in table or table["hours"].isna().all()) == unknown


@pytest.mark.slow
def test_grids_whose_accuracies_would_leave_the_scale_are_left_out(folder):
    words = ("experiment=blimp_small", "effect=0.12", "spread=0.01", "plan.simulations=0", *QUICK[1:])
    done = plan(folder, *words)
    assert done.returncode == 0, done.stderr
    note = (
        "4 of 8 grids are left out: accuracy would be 1.01 at sample.size=1M (from 0.65 at 125,000, +0.12 a doubling)"
    )
    assert note in " ".join(done.stderr.split())
    table = pd.read_csv(folder / "reports/blimp_small/plan/plan-grids.csv")
    assert {*table["training sizes"]} == {"125k to 500k (3)"}


def test_chance_that_exceeds_the_spread_between_runs_is_no_part_of_it_and_one_degree_is_singular(tmp_path):
    SimulatedStudy(name="few", models=("lstm_tiny",), sizes=("125k",), pairs=2).write(tmp_path / "runs")
    words = ("experiment=blimp_small", "effect=0.01", "pilot=few", "plan.simulations=0", "plan.seeds=[3]")
    done = plan(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert re.search(r"at 125,000 words, the same at all sizes \(.*?\); chance in single judgements alone would", text)
    assert ", so the pilot shows no further spread between runs; 1 degree of freedom: its" in text
    assert "6 paradigms." in text


@pytest.mark.slow
def test_no_grid_suffices(folder):
    done = plan(folder, "experiment=blimp_small", "effect=0.0001", "spread=0.05", *QUICK)
    assert done.returncode == 0
    assert "No grid suffices: a slope of +0.0001 a doubling: the most powerful reaches" in done.stdout
    assert "python -m eval" not in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["experiment=blimp_small"], "effect=null: give the effect to be found"),
        (["experiment=blimp_small", "effect=0", "spread=0.01"], "effect=0.0: must lie between -1 and 1"),
        (["experiment=blimp_small", "effect=0.01", "power=1.2", "spread=0.01"], "power=1.2: must lie between 0 and 1"),
        (["experiment=blimp_small", "effect=0.01"], "pilot=null, spread=null: give pilot=STUDY, or spread=0.01"),
        (["experiment=blimp_small", "effect=0.01", "spread=0"], "spread=0.0: must be above 0"),
        (
            ["experiment=blimp_small", "effect=1", "goal=people", "spread=0.01"],
            "effect=1.0: with goal=people",
        ),
        (["effect=0.01", "spread=0.01"], "experiment=null: name the experiment"),
        (["experiment=blimp_small", "effect=0.01", "spread=0.01", "sample.size=1M"], "has 1 size (sample.size)"),
        (["experiment=blimp_small", "effect=0.01", "pilot=alone"], "pilot=alone: no two runs at any size of"),
        (["experiment=blimp_small", "effect=0.01", "pilot=nowhere"], "nowhere"),
        (["experiment=blimp_small", "effect=0.01", "pilot=simulated", "plan.group=x"], "plan.group=x: no such curve"),
        (["experiment=blimp_small", "effect=0.01", "goal=area"], "goal=area: must be one of"),
        (["experiment=blimp_small", "effect=0.01", "spread=0.01", "plan.seeds=[0]"], "plan.seeds=0: must be from 1"),
        (["experiment=blimp_small", "effect=4", "spread=0.01", "goal=people"], "plan.gain=null"),
        (
            ["experiment=blimp_small", "effect=0.02", "spread=0.01", "goal=ablation"],
            "experiment=blimp_small: has no treatment beside its control or the full text; goal=ablation needs runs of",
        ),
        (
            ["experiment=blimp_small", "effect=0.02", "spread=0.01", "goal=difference", "model=lstm_tiny"],
            "experiment=blimp_small: has one curve; goal=difference needs two, such as those of two models",
        ),
        (
            ["experiment=blimp_small", "effect=0.3", "spread=0.01"],
            "goal=slope, effect=0.3: accuracy would be 1.25 at sample.size=500k (from 0.65 at 125,000, +0.3 a d",
        ),
        (
            ["experiment=ablation_small", "effect=-0.95", "spread=0.01", "goal=ablation"],
            "goal=ablation, effect=-0.95: accuracy would be 1.12 at sample.size=125k",
        ),
        (["experiment=blimp_small", "effect=0.01", "spread=0.01", "rate=-1"], "rate=-1: must be a number of words/s"),
    ],
)
def test_errors_are_one_line(folder, words, message):
    done = plan(folder, *words)
    assert done.returncode == 2, done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("pairscale plan:")]
    assert len(lines) == 1
    assert message in lines[0]


def test_nothing_is_written_into_the_runs(folder):
    assert {path.name for path in Path(folder / "runs").iterdir()} == {"simulated", "alone"}
