"""Comparisons of methods against pandas and scipy on the same rows, and against the papers' numbers."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import DescrStatsW

from analysis.measures.methods import (
    accuracy_by_attractor,
    accuracy_by_difference,
    accuracy_limits,
    beside_prefix_methods,
    compare_methods,
    count_judgements,
    crossed_mean,
    difference_of_methods,
    equivalent,
    length_bias,
    method_accuracies,
    pair_outcomes,
    score_files,
    shuffled_paradigms,
)
from analysis.sections.methods import attractors
from analysis.study.collect import collect
from eval.benchmarks.load import load_benchmark
from eval.published import read_published
from eval.scores.accuracy import outcome, tied
from eval.scores.files import read_scores, score_path, write_scores
from pairscale.command.compose import compose
from pairscale.errors import RunError
from tests.support.simulated_study import SimulatedStudy


@pytest.fixture
def study(tmp_path):
    """Return a study of two runs with lp, an A/B method (two templates, ties, NaN), and a vote in three trials."""
    simulated = SimulatedStudy(models=("lstm_tiny",), sizes=("125k", "250k"), seeds=(1,), pairs=40)
    rng = np.random.default_rng(1)
    for folder in simulated.write(tmp_path):
        scores = folder.scores("blimp")
        lp, metadata = read_scores(score_path(scores, "lp"))
        lp[["good_tokens", "bad_tokens"]] = rng.integers(4, 9, size=(len(lp), 2))
        write_scores(score_path(scores, "lp"), lp, metadata)
        prompts = pd.concat([lp.assign(template=name) for name in ("one", "two")], ignore_index=True)
        prompts["good"] = np.round(prompts["bad"] + rng.normal(0.2, 1, len(prompts)))
        prompts["bad"] = np.round(prompts["bad"])
        prompts.loc[::17, "good"] = np.nan
        prompts["order"] = rng.choice(["A", "B"], len(prompts))
        prompts[["good_tokens", "bad_tokens"]] = 1
        prompts.loc[::17, "good_tokens"] = 0  # as where no token counts
        write_scores(score_path(scores, "ab_prompt"), prompts, metadata | {"method": "ab_prompt"})
        votes = pd.concat([lp.assign(trial=trial) for trial in (1, 2, 3)], ignore_index=True)
        votes["good"] = rng.integers(0, 6, len(votes)).astype(float)
        votes["bad"] = 5.0 - votes["good"]
        votes[["good_tokens", "bad_tokens"]] = None
        write_scores(score_path(scores, "vote_p"), votes, metadata | {"method": "vote_p"})
    return collect(tmp_path, "simulated")


def rows_of(study, run, method):
    rows, _ = read_scores(score_path(study.folders[run].scores("blimp"), method))
    lengths, _ = read_scores(score_path(study.folders[run].scores("blimp"), "lp"))
    longer = lengths.assign(difference=lengths["good_tokens"] - lengths["bad_tokens"])
    rows = rows.merge(longer[["paradigm", "pair_id", "difference"]], on=["paradigm", "pair_id"])
    repeat = {"lp": "", "ab_prompt": rows["template"], "vote_p": rows["trial"].astype("Int64").astype(str)}
    rows["repeat"] = repeat[method]
    rows["right"] = (rows["good"] > rows["bad"]).astype(float)
    return rows


def test_the_bias_with_ties_that_count_half_is_pearsons(study):
    files, run = score_files(study, "blimp"), study.runs.index[0]
    rows = rows_of(study, run, "ab_prompt")
    rows["right"] += tied(rows["good"], rows["bad"]) / 2
    assert 0.5 in set(rows["right"])
    r = [stats.pearsonr(part["right"], part["difference"]).statistic for _, part in rows.groupby("repeat")]
    _, by_difference = count_judgements(files, "half")
    bias = length_bias(by_difference).set_index(["run", "method"]).loc[(run, "ab_prompt")]
    assert bias["r"] == pytest.approx(np.mean(r))


@pytest.mark.parametrize("method", ["lp", "ab_prompt", "vote_p"])
def test_counts_and_accuracies_equal_pandas_on_the_same_rows(study, method):
    by_paradigm, by_difference = count_judgements(score_files(study, "blimp"), "wrong")
    run = study.runs.index[1]
    rows = rows_of(study, run, method)
    ours = by_paradigm[(by_paradigm["run"] == run) & (by_paradigm["method"] == method)]
    expected = rows.groupby(["repeat", "paradigm"]).agg(
        pairs=("right", "size"), right=("right", "sum"), difference=("difference", "mean")
    )
    ours = ours.set_index(["repeat", "paradigm"]).sort_index()
    pd.testing.assert_frame_equal(ours[expected.columns], expected, check_dtype=False)
    assert ours["ties"].sum() == tied(rows["good"], rows["bad"]).sum()
    overall = rows.groupby(["repeat", "paradigm"])["right"].mean().groupby("repeat").mean()
    accuracies = method_accuracies(by_paradigm).set_index(["run", "method"]).loc[(run, method)]
    assert accuracies["accuracy"] == pytest.approx(overall.mean())
    assert (accuracies["best"], accuracies["best_accuracy"]) == (overall.idxmax(), pytest.approx(overall.max()))
    assert accuracies["repeats"] == len(overall) == {"lp": 1, "ab_prompt": 2, "vote_p": 3}[method]
    assert accuracies["sd"] == pytest.approx(overall.std(), nan_ok=True)
    r = [stats.pointbiserialr(part["right"], part["difference"]).statistic for _, part in rows.groupby("repeat")]
    bias = length_bias(by_difference).set_index(["run", "method"]).loc[(run, method)]
    assert bias["r"] == pytest.approx(np.mean(r))
    one = next(part for _, part in rows.groupby("repeat"))
    if len(r) == 1:
        limits = stats.pearsonr(one["right"], one["difference"]).confidence_interval()
        assert (bias["low"], bias["high"]) == pytest.approx((limits.low, limits.high))
    else:
        assert bias["low"] < bias["r"] < bias["high"]


def test_ties_and_the_share_of_a_are_counted_over_judgements(study):
    files = score_files(study, "blimp")
    run = study.runs.index[0]
    rows = rows_of(study, run, "ab_prompt")
    ties = tied(rows["good"], rows["bad"])
    assert ties.any()
    assert rows["good"].isna().any()
    half, _ = count_judgements(files, "half")
    of = half[(half["run"] == run) & (half["method"] == "ab_prompt")]
    assert of["right"].sum() == rows["right"].sum() + ties.sum() / 2
    decided = rows[~ties & rows["good"].notna()]
    chose_a = ((decided["order"] == "A") == (decided["good"] > decided["bad"])).mean()
    shares = method_accuracies(half).set_index(["run", "method"])["share_of_a"]
    assert shares[run, "ab_prompt"] == pytest.approx(chose_a)
    assert np.isnan(shares[run, "lp"])


def test_accuracy_over_the_difference_of_lengths_joins_the_ends(study):
    _, by_difference = count_judgements(score_files(study, "blimp"), "wrong")
    rows = pd.concat([rows_of(study, run, "lp") for run in study.runs.index])
    accuracies = accuracy_by_difference(by_difference[by_difference["method"] == "lp"], largest=2).set_index(
        "difference"
    )
    assert list(accuracies.index) == [-2, -1, 0, 1, 2]
    ends = rows["difference"] <= -2
    assert accuracies.loc[-2, "judgements"] == ends.sum()
    assert accuracies.loc[-2, "accuracy"] == pytest.approx(rows.loc[ends, "right"].mean())
    # The two runs judge the same pairs: the interval is over the pairs of one of them.
    low, high = stats.binomtest(round(ends.sum() / 2 * accuracies.loc[-2, "accuracy"]), ends.sum() // 2).proportion_ci(
        method="wilson"
    )
    assert (accuracies.loc[-2, "low"], accuracies.loc[-2, "high"]) == pytest.approx((low, high), abs=0.02)


def test_the_difference_of_two_methods_is_by_paradigm_over_the_pairs_of_both(study):
    by_paradigm, _ = count_judgements(score_files(study, "blimp"), "wrong")
    differences = difference_of_methods(by_paradigm, "ab_prompt", "lp").set_index(["run", "paradigm"])
    run, paradigm = differences.index[0]
    rows = (rows_of(study, run, method) for method in ("ab_prompt", "lp"))
    prompts, lp = (of[of["paradigm"] == paradigm] for of in rows)
    expected = (prompts["right"].mean() - lp["right"].mean(), lp["difference"].mean())
    assert tuple(differences.loc[(run, paradigm)]) == pytest.approx(expected)
    assert difference_of_methods(by_paradigm, "yes_no", "lp").empty


def test_prefix_methods_are_compared_with_full_sentences_on_their_paradigms():
    counts = pd.DataFrame(
        [("r", "lp", "", "a", 10, 9), ("r", "lp", "", "b", 10, 3), ("r", "lp", "", "c", 10, 5),
         ("r", "one_prefix", "", "a", 10, 8), ("r", "two_prefix", "", "b", 10, 6), ("r", "two_prefix", "", "c", 10, 7)],
        columns=["run", "method", "repeat", "paradigm", "pairs", "right"],
    )  # fmt: skip
    phenomena = pd.Series({"a": "x", "b": "x", "c": "y"})
    accuracies = beside_prefix_methods(counts, phenomena).set_index(["method", "level", "name"])[["accuracy", "full"]]
    assert tuple(accuracies.loc[("one_prefix", "overall", "overall")]) == (0.8, 0.9)
    assert tuple(accuracies.loc[("two_prefix", "overall", "overall")]) == pytest.approx((0.65, 0.4))
    assert tuple(accuracies.loc[("two_prefix", "phenomenon", "y")]) == (0.7, 0.5)
    assert ("one_prefix", "phenomenon", "y") not in accuracies.index
    assert beside_prefix_methods(counts[counts["method"] == "lp"], phenomena).empty


def test_word_shuffling_paradigms_are_those_of_the_paper(real_data):
    """Ide et al. 2024, section 6: people have 83.1% on word-shuffling paradigms and 89.7% on the others."""
    items = load_benchmark(compose("eval", [f"benchmark.path={real_data}/blimp"]).benchmark).pairs
    shuffled = shuffled_paradigms(items)
    assert shuffled["existential_there_quantifiers_2"]
    people = read_published("blimp").query("level == 'paradigm' and model == 'people'").set_index("name")["accuracy"]
    assert people[shuffled[shuffled].index].mean() == pytest.approx(0.831, abs=5e-4)
    assert people[shuffled[~shuffled].index].mean() == pytest.approx(0.897, abs=5e-4)


def test_a_damaged_file_is_a_message_of_one_line(study):
    path = score_path(study.folders[study.runs.index[0]].scores("blimp"), "lp")
    whole = path.read_bytes()
    path.write_bytes(whole[:200] + bytes(200) + whole[400:])
    with pytest.raises(RunError, match=r"lp\.parquet: damaged \(.*\); remove the file to score again"):
        count_judgements(score_files(study, "blimp"), "wrong")


def test_attractors_use_the_best_template_and_need_all_three_conditions():
    """Figure 4 of Ide et al. 2024: conditions of Warstadt et al. 2020, each a paradigm here."""
    paradigms = {
        "regular_plural_subject_verb_agreement_1": 0.9,
        "distractor_agreement_relational_noun": 0.8,
        "distractor_agreement_relative_clause": 0.4,
        "wh_island": 0.1,
    }
    rows = [
        ("r", method, repeat, paradigm, 10, 10 * (share - worse), 0, 0, 0, 0.0)
        for method, repeats in {"lp": {"": 0.0}, "in_template_lp": {"bad": 0.1, "good": 0.05}}.items()
        for repeat, worse in repeats.items()
        for paradigm, share in paradigms.items()
    ]
    columns = ["run", "method", "repeat", "paradigm", "pairs", "right", "ties", "decided", "chose_a", "difference"]
    counted = pd.DataFrame(rows, columns=columns)
    accuracies = accuracy_by_attractor(counted).set_index(["method", "condition"])["accuracy"]
    assert accuracies["lp"].to_dict() == pytest.approx(
        {"no attractor": 0.9, "relational noun": 0.8, "relative clause": 0.4}
    )
    assert accuracies["in_template_lp", "relative clause"] == pytest.approx(0.35)
    exhibit = attractors(counted, pd.Series({"r": "lstm_tiny"}))
    table = exhibit.table.set_index(["method", "curve"])
    assert table.loc[("lp", "lstm_tiny"), "loss"] == pytest.approx(0.3)
    assert list(exhibit.charts) == ["lp", "in_template_lp"]
    assert accuracy_by_attractor(counted[counted["paradigm"] != "distractor_agreement_relative_clause"]).empty
    assert attractors(counted[counted["method"] == "lp"], pd.Series({"r": "lstm_tiny"})) is None
    two_prefix = counted[(counted["method"] == "lp") & (counted["paradigm"] == "wh_island")].assign(method="two_prefix")
    exhibit = attractors(pd.concat([counted, two_prefix]), pd.Series({"r": "lstm_tiny"}))
    assert exhibit.table.equals(table.reset_index()), "a method that judges none of these paradigms is left out"


def draw_outcomes(rng, runs, easier=0.0, paradigms=4, pairs=50):
    """Return (runs, pairs) outcomes of two methods by the same runs and pairs, the first easier by `easier` logits.

    Pairs and runs have effects of their own on each method, so that the two do not differ by chance alone.
    """
    shape = (paradigms * pairs,)
    common = rng.normal(0.7, 1, shape) + rng.normal(0, 0.2, (runs, 1))
    logits = [common + gain + rng.normal(0, 0.7, shape) + rng.normal(0, 0.25, (runs, 1)) for gain in (easier, 0.0)]
    return [(rng.uniform(size=of.shape) < expit(of)).astype(float) for of in logits], np.repeat(list("abcd"), pairs)


def as_outcomes(methods, paradigms):
    runs = [f"r{n}" for n in range(len(next(iter(methods.values()))))]
    index = pd.MultiIndex.from_arrays([paradigms, np.arange(len(paradigms)).astype(str)], names=["paradigm", "pair_id"])
    columns = {(name, run): values[n] for name, values in methods.items() for n, run in enumerate(runs)}
    table = pd.DataFrame(columns, index=index).rename_axis(columns=["method", "run"])
    return table, pd.Series("g", index=runs)


def test_one_run_is_a_paired_comparison_within_paradigms():
    """The error of a single run is that of stratified differences, written out."""
    (one, other), paradigms = draw_outcomes(np.random.default_rng(0), 1, easier=0.5)
    row = compare_methods(*as_outcomes({"lp": one, "pen_lp": other}, paradigms)).iloc[0]
    change = pd.Series((one - other)[0]).groupby(paradigms)
    error = np.sqrt((change.var() / change.size()).sum()) / 4
    assert row["difference"] == pytest.approx(change.mean().mean())
    assert row["high"] - row["low"] == pytest.approx(2 * stats.t.ppf(0.975, 196) * error)
    assert row["p"] == pytest.approx(2 * stats.t.sf(abs(row["difference"]) / error, 196))
    assert (row["over"], row["runs"], row["paradigms"]) == ("pairs", 1, 4)


def test_without_an_effect_of_pairs_it_is_a_paired_t_test_over_runs():
    rng = np.random.default_rng(1)
    change = np.repeat(rng.normal(0.1, 0.05, (5, 1)), 40, axis=1)
    estimate, error, degrees, over = crossed_mean(change, ["a"] * 20 + ["b"] * 20)
    reference = stats.ttest_1samp(change[:, 0], 0)
    assert estimate / error == pytest.approx(reference.statistic)
    assert (degrees, over) == (pytest.approx(4), "runs and pairs")


def test_holm_corrects_over_all_comparisons():
    (one, other), paradigms = draw_outcomes(np.random.default_rng(2), 3, easier=0.2)
    third = np.where(np.arange(200) % 3 == 0, one, other)
    table = compare_methods(*as_outcomes({"a": one, "b": other, "c": third}, paradigms))
    assert table[["method", "other"]].to_numpy().tolist() == [["a", "b"], ["a", "c"], ["b", "c"]]
    np.testing.assert_allclose(table["p_holm"], multipletests(table["p"], method="holm")[1])


@pytest.mark.parametrize(("margin", "alike"), [(0.05, False), (0.5, True)])
def test_equivalence_is_that_of_statsmodels(margin, alike):
    """Two one-sided tests of one run whose single paradigm has differences of pairs alone."""
    (one, other), _ = draw_outcomes(np.random.default_rng(5), 1, paradigms=1, pairs=200)
    table = compare_methods(*as_outcomes({"a": one, "b": other}, np.repeat("a", 200)), margin=margin)
    reference, *_ = DescrStatsW((one - other)[0]).ttost_mean(-margin, margin)
    assert table["p_equivalent"].iloc[0] == pytest.approx(reference)
    assert equivalent(table).tolist() == [alike]


def test_tests_of_equivalence_are_corrected_together():
    (one, other), paradigms = draw_outcomes(np.random.default_rng(2), 3, easier=0.2)
    third = np.where(np.arange(200) % 3 == 0, one, other)
    table = compare_methods(*as_outcomes({"a": one, "b": other, "c": third}, paradigms), margin=0.1)
    alone = [
        compare_methods(*as_outcomes({"a": a, "b": b}, paradigms), margin=0.1)["p_equivalent"].iloc[0]
        for a, b in ((one, other), (one, third), (other, third))
    ]
    np.testing.assert_allclose(table["p_equivalent"], multipletests(alone, method="holm")[1])


def test_methods_are_compared_on_the_pairs_that_both_judge():
    (one, other), paradigms = draw_outcomes(np.random.default_rng(3), 2)
    outcomes, groups = as_outcomes({"lp": one, "one_prefix": other}, paradigms)
    outcomes.loc["d", "one_prefix"] = np.nan
    row = compare_methods(outcomes, groups).iloc[0]
    whole = compare_methods(*as_outcomes({"lp": one[:, :150], "x": other[:, :150]}, paradigms[:150])).iloc[0]
    assert row["paradigms"] == 3
    assert row[["difference", "low", "high", "p"]].tolist() == whole[["difference", "low", "high", "p"]].tolist()


@pytest.mark.parametrize("runs", [1, 4])
def test_equal_methods_seldom_differ_and_intervals_hold(runs):
    rng, held = np.random.default_rng(4), []
    for _ in range(300):
        (one, other), paradigms = draw_outcomes(rng, runs)
        estimate, error, degrees, _ = crossed_mean(one - other, list(paradigms))
        held.append(abs(estimate) < stats.t.ppf(0.975, degrees) * error)
    # one run does not show the variance of runs, so its interval is over pairs alone
    assert (0.6 if runs == 1 else 0.92) < np.mean(held) < 0.995


@pytest.mark.slow
def test_accuracies_near_the_ceiling_have_limits_that_hold():
    """For three runs of true accuracy .99 Student's limits cover only 83%; if all pairs are right, Wilson's hold."""
    rng, held = np.random.default_rng(5), []
    for _ in range(300):
        pairs = rng.beta(0.99 * 0.6, 0.01 * 0.6, 100)  # the chance of a pair to be judged right, the same for all runs
        outcomes, groups = as_outcomes({"lp": rng.uniform(size=(3, 100)) < pairs}, np.repeat("a", 100))
        row = accuracy_limits(outcomes.astype(float), groups).iloc[0]
        held.append(row["low"] <= 0.99 <= row["high"])
    assert np.mean(held) > 0.94
    outcomes, groups = as_outcomes({"lp": np.ones((3, 100))}, np.repeat("a", 100))
    row = accuracy_limits(outcomes, groups).iloc[0]
    assert (row["low"], row["high"]) == pytest.approx(proportion_confint(100, 100, method="wilson"))


def test_equal_judgements_give_a_difference_of_0_without_an_interval():
    outcomes, groups = as_outcomes({"lp": np.ones((3, 100)), "pen_lp": np.ones((3, 100))}, np.repeat("a", 100))
    row = compare_methods(outcomes, groups).iloc[0]
    assert row["difference"] == 0
    assert row[["low", "high", "p", "p_holm"]].isna().all()


def test_overlapping_samples_add_the_variance_of_new_text():
    """The variance of a mean of n runs over new samples is s^2 (1 / n + f / (1 - f)): Cochran 1977, section 2.6."""
    change = np.repeat(np.random.default_rng(1).normal(0.1, 0.05, (5, 1)), 40, axis=1)
    variance = change[:, 0].var(ddof=1)
    for overlap in (0.0, 0.5, 0.8):
        _, error, _, over = crossed_mean(change, ["a"] * 40, overlap)
        assert error**2 == pytest.approx(variance * (1 / 5 + overlap / (1 - overlap)))
        assert over == "runs and pairs"
    outcomes, groups = as_outcomes({"lp": change + 0.5, "pen_lp": np.full((5, 40), 0.5)}, np.repeat("a", 40))
    same_text = pd.Series(1.0, index=groups.index)
    assert accuracy_limits(outcomes, groups, same_text)[["low", "high"]].isna().all(axis=None)
    assert compare_methods(outcomes, groups, same_text)[["low", "high", "p"]].isna().all(axis=None)


def test_outcomes_of_pairs_are_means_over_templates(study):
    outcomes = pair_outcomes(score_files(study, "blimp"), "wrong")
    run = study.runs.index[0]
    for method in ("lp", "ab_prompt", "vote_p"):
        expected = rows_of(study, run, method).groupby(["paradigm", "pair_id"])["right"].mean()
        np.testing.assert_allclose(outcomes[method, run].to_numpy(), expected.reindex(outcomes.index).to_numpy())
    limits = accuracy_limits(outcomes, pd.Series("g", index=[run])).set_index("method")
    by_paradigm, _ = count_judgements(score_files(study, "blimp"), "wrong")
    expected = method_accuracies(by_paradigm).set_index(["run", "method"])["accuracy"]
    assert limits.loc["vote_p", "accuracy"] == pytest.approx(expected[run, "vote_p"])
    assert ((limits["low"] < limits["accuracy"]) & (limits["accuracy"] < limits["high"])).all()


def test_a_pair_with_an_unscored_side_counts_as_a_tie(study):
    """`eval.scores.accuracy.outcome` does the same."""
    run = study.runs.index[0]
    path = score_path(study.folders[run].scores("blimp"), "ab_prompt")
    rows, metadata = read_scores(path)
    unscored = rows.index[:4]
    rows.loc[unscored, ["good", "good_tokens"]] = [np.nan, 0]
    rows.loc[unscored[:2], ["bad", "bad_tokens"]] = [np.nan, 0]
    write_scores(path, rows, metadata)
    files = score_files(study, "blimp")
    by_paradigm, _ = count_judgements(files[files["method"] == "ab_prompt"], "half")
    assert by_paradigm.loc[by_paradigm["run"] == run, "right"].sum() == outcome(rows["good"], rows["bad"], "half").sum()
    assert by_paradigm.loc[by_paradigm["run"] == run, "ties"].sum() == tied(rows["good"], rows["bad"]).sum()
