"""Counts of judgements and what is made of them, against pandas and scipy on the same rows, and the papers' numbers."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.collect import collect
from analysis.method_comparison import (
    accuracy_by_attractor,
    accuracy_by_difference,
    beside_prefix_methods,
    count_judgements,
    difference_of_methods,
    length_bias,
    method_accuracies,
    score_files,
    shuffled_paradigms,
)
from analysis.score_exhibits import _attractors
from conf import compose
from corpora.errors import RunError
from eval.benchmarks import load_benchmark
from eval.published import read_published
from eval.scores import read_scores, score_path, write_scores
from tests.made_up_study import MadeUpStudy


@pytest.fixture
def study(tmp_path):
    """Two runs with lp, an A/B method of two templates with ties and NaN, and a vote in three trials."""
    made = MadeUpStudy(models=("lstm_tiny",), sizes=("125k", "250k"), seeds=(1,), pairs=40)
    rng = np.random.default_rng(1)
    for folder in made.write(tmp_path):
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
        write_scores(score_path(scores, "ab_prompt"), prompts, metadata | {"method": "ab_prompt"})
        votes = pd.concat([lp.assign(trial=trial) for trial in (1, 2, 3)], ignore_index=True)
        votes["good"] = rng.integers(0, 6, len(votes)).astype(float)
        votes["bad"] = 5.0 - votes["good"]
        votes[["good_tokens", "bad_tokens"]] = None
        write_scores(score_path(scores, "vote_p"), votes, metadata | {"method": "vote_p"})
    return collect(tmp_path, "made_up")


def rows_of(study, run, method):
    rows, _ = read_scores(score_path(study.folders[run].scores("blimp"), method))
    lengths, _ = read_scores(score_path(study.folders[run].scores("blimp"), "lp"))
    longer = lengths.assign(difference=lengths["good_tokens"] - lengths["bad_tokens"])
    rows = rows.merge(longer[["paradigm", "pair_id", "difference"]], on=["paradigm", "pair_id"])
    repeat = {"lp": "", "ab_prompt": rows["template"], "vote_p": rows["trial"].astype("Int64").astype(str)}
    rows["repeat"] = repeat[method]
    rows["right"] = (rows["good"] > rows["bad"]).astype(float)
    return rows


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
    assert ours["ties"].sum() == (rows["good"] == rows["bad"]).sum()
    overall = rows.groupby(["repeat", "paradigm"])["right"].mean().groupby("repeat").mean()
    found = method_accuracies(by_paradigm).set_index(["run", "method"]).loc[(run, method)]
    assert found["accuracy"] == pytest.approx(overall.mean())
    assert (found["best"], found["best_accuracy"]) == (overall.idxmax(), pytest.approx(overall.max()))
    assert found["repeats"] == len(overall) == {"lp": 1, "ab_prompt": 2, "vote_p": 3}[method]
    assert found["sd"] == pytest.approx(overall.std(), nan_ok=True)
    r = [stats.pointbiserialr(part["right"], part["difference"]).statistic for _, part in rows.groupby("repeat")]
    bias = length_bias(by_difference).set_index(["run", "method"]).loc[(run, method), "r"]
    assert bias == pytest.approx(np.mean(r))


def test_ties_and_the_share_of_a_are_of_judgements(study):
    files = score_files(study, "blimp")
    run = study.runs.index[0]
    rows = rows_of(study, run, "ab_prompt")
    ties = rows["good"] == rows["bad"]
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
    found = accuracy_by_difference(by_difference[by_difference["method"] == "lp"], largest=2).set_index("difference")
    assert list(found.index) == [-2, -1, 0, 1, 2]
    at = rows["difference"] <= -2
    assert found.loc[-2, "judgements"] == at.sum()
    assert found.loc[-2, "accuracy"] == pytest.approx(rows.loc[at, "right"].mean())
    # The two runs judge the same pairs: the interval is over the pairs of one of them.
    low, high = stats.binomtest(round(at.sum() / 2 * found.loc[-2, "accuracy"]), at.sum() // 2).proportion_ci(
        method="wilson"
    )
    assert (found.loc[-2, "low"], found.loc[-2, "high"]) == pytest.approx((low, high), abs=0.02)


def test_difference_of_two_methods_is_by_paradigm_over_what_both_judge(study):
    by_paradigm, _ = count_judgements(score_files(study, "blimp"), "wrong")
    found = difference_of_methods(by_paradigm, "ab_prompt", "lp").set_index(["run", "paradigm"])
    run, paradigm = found.index[0]
    rows = (rows_of(study, run, method) for method in ("ab_prompt", "lp"))
    prompts, lp = (of[of["paradigm"] == paradigm] for of in rows)
    expected = (prompts["right"].mean() - lp["right"].mean(), lp["difference"].mean())
    assert tuple(found.loc[(run, paradigm)]) == pytest.approx(expected)
    assert difference_of_methods(by_paradigm, "yes_no", "lp").empty


def test_prefix_methods_stand_beside_full_sentences_on_their_own_paradigms():
    counts = pd.DataFrame(
        [("r", "lp", "", "a", 10, 9), ("r", "lp", "", "b", 10, 3), ("r", "lp", "", "c", 10, 5),
         ("r", "one_prefix", "", "a", 10, 8), ("r", "two_prefix", "", "b", 10, 6), ("r", "two_prefix", "", "c", 10, 7)],
        columns=["run", "method", "repeat", "paradigm", "pairs", "right"],
    )  # fmt: skip
    phenomena = pd.Series({"a": "x", "b": "x", "c": "y"})
    found = beside_prefix_methods(counts, phenomena).set_index(["method", "level", "name"])[["accuracy", "full"]]
    assert tuple(found.loc[("one_prefix", "overall", "overall")]) == (0.8, 0.9)
    assert tuple(found.loc[("two_prefix", "overall", "overall")]) == pytest.approx((0.65, 0.4))
    assert tuple(found.loc[("two_prefix", "phenomenon", "y")]) == (0.7, 0.5)
    assert ("one_prefix", "phenomenon", "y") not in found.index
    assert beside_prefix_methods(counts[counts["method"] == "lp"], phenomena).empty


def test_word_shuffling_paradigms_are_those_of_the_paper(real_data):
    """Ide et al. 2024, section 6: people have 83.1% on word-shuffling paradigms and 89.7% on the others."""
    items = load_benchmark(compose("eval", [f"benchmark.path={real_data}/blimp"]).benchmark).pairs
    shuffled = shuffled_paradigms(items)
    assert shuffled["existential_there_quantifiers_2"]
    people = read_published("blimp").query("level == 'paradigm' and model == 'people'").set_index("name")["accuracy"]
    assert people[shuffled[shuffled].index].mean() == pytest.approx(0.831, abs=5e-4)
    assert people[shuffled[~shuffled].index].mean() == pytest.approx(0.897, abs=5e-4)


def test_a_damaged_file_is_one_line(study):
    path = score_path(study.folders[study.runs.index[0]].scores("blimp"), "lp")
    whole = path.read_bytes()
    path.write_bytes(whole[:200] + bytes(200) + whole[400:])
    with pytest.raises(RunError, match=r"lp\.parquet: damaged \(.*\); remove the file to score again"):
        count_judgements(score_files(study, "blimp"), "wrong")


def test_attractors_are_of_the_best_template_and_of_all_three_kinds():
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
    found = accuracy_by_attractor(counted).set_index(["method", "condition"])["accuracy"]
    assert found["lp"].to_dict() == pytest.approx({"no attractor": 0.9, "relational noun": 0.8, "relative clause": 0.4})
    assert found["in_template_lp", "relative clause"] == pytest.approx(0.35)
    exhibit = _attractors(counted, pd.Series({"r": "lstm_tiny"}))
    table = exhibit.table.set_index(["method", "curve"])
    assert table.loc[("lp", "lstm_tiny"), "loss"] == pytest.approx(0.3)
    assert list(exhibit.charts) == ["lp", "in_template_lp"]
    assert accuracy_by_attractor(counted[counted["paradigm"] != "distractor_agreement_relative_clause"]).empty
    assert _attractors(counted[counted["method"] == "lp"], pd.Series({"r": "lstm_tiny"})) is None
