"""The numbers of the sections, against hand computations and other libraries."""

from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import ttest_ind, ttest_rel

from analysis.parts import part_of
from analysis.run import read_benchmarks, read_study
from analysis.sections import chosen, exhibits
from analysis.sections.ablations import ablation_findings, effects_of
from analysis.sections.methods import method_differences
from analysis.sections.pairs import hardest
from analysis.sections.training import perplexity_slopes
from eval.published import read_published
from pairscale.command.compose import compose
from pairscale.errors import ConfigError
from tests.support.ablation_study import write_ablations
from tests.support.long_table import curve_table
from tests.support.scored_runs import rescore, run_folders
from tests.support.simulated_study import rewrite_config
from tests.support.studies import results_of


def judged(rows, **columns):
    """Return rows (run, sample_words, pair_id, correct) as a table of pairs of one paradigm."""
    table = pd.DataFrame(rows, columns=["run", "sample_words", "pair_id", "correct"])
    return table.assign(curve="LSTM", phenomenon="binding", paradigm="p", good="Good", bad="Bad", **columns)


def test_the_hardest_pairs_are_wrong_most_often_then_by_the_widest_margin():
    rows = [(run, 1, pair, correct) for run in "rs" for pair, correct in (("a", True), ("b", False), ("c", False))]
    pairs = judged(rows, bad_score=0.0, good_score=[2, -1, -3] * 2)
    table = hardest(pairs, 2)
    assert table["pair_id"].tolist() == ["c", "b"]
    deviation = np.std([2, -1, -3], ddof=1)
    assert table["margin"].tolist() == pytest.approx([-3 / deviation, -1 / deviation])
    assert table["accuracy"].tolist() == [0, 0]


def test_differences_of_methods_are_a_paired_t_test():
    rng = np.random.default_rng(1)
    lp, mean_lp = rng.uniform(size=(2, 6))
    units = pd.DataFrame({
        "curve": "LSTM", "run": [*"abcdef"] * 2, "method": ["lp"] * 6 + ["mean_lp"] * 6, "accuracy": [*lp, *mean_lp],
    })  # fmt: skip
    (row,) = method_differences(units, "lp", 0.95).to_dict("records")
    (equal,) = method_differences(units.assign(accuracy=0.5), "lp", 0.95).to_dict("records")
    assert equal["difference"] == 0
    assert np.isnan(equal["p"])
    expected = ttest_rel(mean_lp, lp)
    limits = expected.confidence_interval()
    assert row["difference"] == pytest.approx((mean_lp - lp).mean())
    assert (row["p"], row["low"], row["high"]) == pytest.approx((expected.pvalue, limits.low, limits.high))


def test_perplexity_falls_by_the_factor_of_statsmodels():
    words = [1, 1, 2, 2, 4, 4]
    runs = curve_table(np.zeros((6, 1)), words, [1, 2] * 3).assign(valid_ppl=[90, 110, 50, 60, 28, 35.0])
    (row,) = perplexity_slopes(runs, "valid_ppl", 0.95).to_dict("records")
    x = sm.add_constant(np.log2(runs["sample_words"].to_numpy(float)))
    fit = sm.OLS(np.log2(runs["valid_ppl"]), x).fit().get_robustcov_results("HC3", use_t=True)
    factors = 2 ** np.array([fit.conf_int()[1][0], fit.params[1], fit.conf_int()[1][1]])
    assert [row["low"], row["factor"], row["high"]] == pytest.approx(factors.tolist())


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return results_of(tmp_path_factory.mktemp("study"), unk_share=0.3, pairs=30)


def test_accuracy_without_unknown_words_is_on_the_same_pairs_in_every_run(results):
    shown = {exhibit.name: exhibit for exhibit in exhibits(results, ["unknown_words"])}["unknown-words"]
    pairs = results.read_pairs(list(results.accuracies["run"].unique()))
    unknown = pairs.groupby(["paradigm", "pair_id"])["good_unk"].sum()
    free = unknown[unknown == 0].index
    assert f"{len(free)} pairs" in shown.about
    curve, size = pairs[["curve", "size"]].iloc[0]
    of_size = pairs[(pairs["curve"] == curve) & (pairs["size"] == size)].set_index(["paradigm", "pair_id"])
    kept = of_size[of_size.index.isin(free)]
    expected = kept.groupby(["run", "paradigm"])["correct"].mean().groupby("run").mean().mean()
    row = shown.table[(shown.table["curve"] == curve) & (shown.table["size"] == size)].iloc[0]
    assert row["without unknown words"] == pytest.approx(expected)
    assert len(shown.takeaways) == 2


def test_every_section_can_be_shown_and_names_are_checked(results):
    names = [exhibit.name for exhibit in exhibits(results, chosen("all"))]
    assert len(names) == len(set(names))
    default = [exhibit.name for exhibit in exhibits(results, chosen(None))]
    assert {"phenomena", "slopes", "differences", "unknown-words", "hardest-pairs", "perplexity", "runs"} <= {*default}
    assert len(default) <= 12
    assert set(names) - set(default) >= {"paradigms", "shapes"}
    assert "methods" not in names  # there is one
    assert {"paradigms", *chosen(None)} == {*chosen(["paradigms"])}
    with pytest.raises(ConfigError, match="slopes"):
        chosen(["slops"])


def test_a_pretrained_model_stands_beside_the_published_ones_on_each_paradigm(results):
    pretrained = copy(results)
    one = results.accuracies["run"] == results.accuracies["run"].iloc[0]
    names = {"island_effects_1": "adjunct_island", "island_effects_2": "wh_island"}
    table = results.accuracies[one].replace({"paradigm": names}).query("paradigm in @names.values()")
    pretrained.models = table.assign(curve="gulordava")
    shown = {one.name: one.table for one in exhibits(pretrained, ["models"])}["models-by-paradigm"]
    assert shown["paradigm"].tolist() == ["overall", *names.values()]
    ours = table.set_index("paradigm")["accuracy"]
    assert shown["gulordava"].tolist() == pytest.approx([ours.mean(), *ours[[*names.values()]]])
    published = read_published("blimp").query("model == 'LSTM'").set_index("name")["accuracy"]
    assert shown["LSTM (published)"].tolist()[1:] == published[[*names.values()]].tolist()


def test_baselines_are_no_points_of_a_curve_of_perplexities_and_no_sizes_in_notes(tmp_path):
    results_of(tmp_path, models=("lstm",), sizes=("125k", "250k", "500k"), seeds=(1, 2), pairs=5)
    folders = run_folders(tmp_path / "runs")
    for folder in folders:
        if "500k" in folder.path.name:
            rewrite_config(folder, sample__shuffle="sentence")
    config = compose("analysis", ["study=simulated", f"paths.runs={tmp_path}/runs"])
    results = read_benchmarks(config, read_study(config))[0]
    assert len(results.runs) == len(folders) == 6
    assert set(results.curve_runs["size"]) == {"125k", "250k"}
    (shown,) = exhibits(results, ["perplexity"])
    (draw,) = shown.charts.values()
    marks = draw()["layer"][1]["data"]["values"]
    assert sorted(row["sample_words"] for row in marks) == [125_000, 125_000, 250_000, 250_000]


def test_trajectories_have_a_panel_per_size_and_one_point_per_moment(tmp_path):
    """Steps are whole, so two seeds have seen slightly different amounts at the same moment of training."""
    folder = tmp_path / "runs"
    first = results_of(tmp_path, models=("lstm",), sizes=("125k", "250k"), seeds=(1, 2), pairs=5)
    for one in run_folders(folder):
        seed = int(first.runs.set_index("run").at[one.path.name, "seed"])
        rescore(one, name="lp@7", moment="1/2", words_seen=1000 + seed, step=7)
        rescore(one, name="lp@9", moment="end", words_seen=2000, step=9)
    config = compose("analysis", ["study=simulated", f"paths.runs={folder}"])
    (shown,) = exhibits(read_benchmarks(config, read_study(config))[0], ["trajectories"])
    assert shown.table[["size", "words seen", "runs"]].to_numpy().tolist() == [
        [size, words, 2] for size in ("125k", "250k") for words in (1002, 2000)
    ]
    assert [*shown.charts] == ["125k", "250k"]
    for size, draw in shown.charts.items():
        chart = draw()
        assert chart["title"] == size
        assert [row["sample_words"] for row in chart["layer"][0]["data"]["values"]] == [1002, 2000]


def test_a_study_with_ablations_states_their_effects_and_what_was_removed(tmp_path):
    write_ablations(tmp_path / "runs", sizes=("125k", "250k"), seeds=(1, 2))
    config = compose("analysis", ["study=ablations", f"paths.runs={tmp_path}/runs"])
    results = read_benchmarks(config, read_study(config))[0]
    assert not any("no scores" in note for note in results.notes)
    without = replace(results, accuracies=results.accuracies.query("paradigm != 'island_effects_2'"))
    assert [
        name for name in ("first", "second", "island_effects_1", "island_effects_2") if name in str(without.notes)
    ] == ["second", "island_effects_2"]
    assert results.direct == {"first": {"anaphor_agreement_1"}, "second": {"island_effects_1", "island_effects_2"}}
    shown = {exhibit.name: exhibit.table for exhibit in exhibits(results, chosen(None))}
    assert {"ablations", "ablations-by-size", "removed-text"} <= set(shown)
    row = shown["removed-text"].query("construction == 'first' and action == 'remove'").iloc[0]
    assert (row["sentences"], row["all sentences"]) == (1000, 20_000)
    part = part_of(results)
    ((_, text),) = [finding for finding in part.findings if "first removed, paradigms" in finding[0]]
    effects = effects_of(results).query("construction == 'first' and over == 'all sizes'")
    assert effects["paired"].all()
    effect = effects[(effects["name"] == "tests the construction") & (effects["kind"] == "treatment - control")]
    assert effect["difference"].item() < 0
    assert f"falls by {-100 * effect['difference'].item():.0f} points" in text
    texts = str(ablation_findings(effects_of(results).assign(difference=0.0), 0.95))
    assert "accuracy is the same" in texts
    assert "by 0.0 points" not in texts


def test_ablations_of_others_have_the_paradigms_that_test_them_and_runs_without_partners(tmp_path):
    """Nothing says that equal seeds of others' runs belong together: the interval is Welch's, by scipy."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame([
        {"model": "m", "seed": seed, "paradigm": paradigm, "accuracy": rng.uniform(0.6, 0.8), "removed": removed,
         "tests": bool(removed) and paradigm == "a_1"}
        for seed in range(1, 5) for paradigm in ("a_1", "a_2", "b_1") for removed in ("", "passive")
    ])  # fmt: skip
    table.to_csv(tmp_path / "others.csv", index=False)
    words = ["source=table", f"path={tmp_path}/others.csv", "results.size=1M", "columns.size=''"]
    config = compose("analysis", words)
    results = read_benchmarks(config, read_study(config))[0]
    assert results.direct == {"passive": {"a_1"}}
    effect = effects_of(results).query("name == 'tests the construction'").iloc[0]
    wide = table[table["paradigm"] == "a_1"].pivot(index="seed", columns="removed", values="accuracy")
    test = ttest_ind(wide["passive"], wide[""], equal_var=False)
    assert not effect["paired"]
    assert effect["p"] == pytest.approx(test.pvalue)
    assert (effect["low"], effect["high"]) == pytest.approx(tuple(test.confidence_interval()))
