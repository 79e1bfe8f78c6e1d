"""Frozen and generated pairs of the same paradigms, matched in length, and the comparison of their slopes."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import chi2, linregress, t

from analysis.curves.intervals import Interval, judgement_floor
from analysis.curves.matched_pairs import companions, match, slopes_of_both, vocabulary_share
from analysis.curves.units import units_of
from analysis.exhibits.figures.style import DASHES, HUES, OF_PAIRS, style
from analysis.sections.matched_pairs import matched_exhibits
from analysis.study.collect import collect
from analysis.study.judgements import judgements
from eval.scores.files import SCORES, read_items, read_metadata, read_scores, score_path, write_items, write_scores
from pairscale.command.compose import compose
from tests.support.simulated_study import SimulatedStudy

CONFIG = compose("analysis", ["study=s"]).analysis
ANY = "generated+en"
KNOWN = "generated+en+study-k5"


@pytest.fixture
def both(tmp_path):
    """Return a study scored on frozen pairs and on longer generated ones, whose accuracy does not grow with text."""
    simulated = SimulatedStudy(pairs=120, sizes=("125k", "250k", "500k", "1M"), seeds=(1, 2, 3), models=("lstm_tiny",))
    rng = np.random.default_rng(3)
    for folder in simulated.write(tmp_path):
        frozen = folder.scores("blimp")
        items, _ = read_items(frozen)
        scores, metadata = read_scores(score_path(frozen, "lp")), read_metadata(score_path(frozen, "lp"))
        table = scores[0]
        lengths = np.resize([4, 5, 6], len(table))
        table = table.assign(good_words=lengths, bad_words=lengths)
        write_scores(score_path(frozen, "lp"), table.reindex(columns=SCORES.names), metadata)
        for label, accuracy in ((ANY, None), (KNOWN, 0.7)):
            there = folder.scores(label)
            there.mkdir(parents=True)
            shared = items["paradigm"] != "npi_licensing_1"
            write_items(there, items[shared], label, "ed" * 32)
            of_pairs = table[shared.to_numpy()].reset_index(drop=True)
            longer = of_pairs.assign(good_words=np.resize([5, 6, 7], len(of_pairs)))
            longer = longer.assign(bad_words=longer["good_words"])
            if accuracy is not None:
                right = rng.random(len(longer)) < accuracy
                longer["good"] = longer["bad"] + np.where(right, 1.0, -1.0)
            generated = metadata | {"benchmark": {"name": "generated", "digest": "ed" * 32}}
            write_scores(score_path(there, "lp"), longer.reindex(columns=SCORES.names), generated)
    study = collect(tmp_path, "simulated")
    return study, {label: judgements(study, label, "lp", "wrong") for label in ("blimp", ANY, KNOWN)}


def test_frozen_and_generated_pairs_are_companions():
    context = "blimp+context-eos-32"  # whose other policy `match` finds
    assert companions(["blimp", ANY, KNOWN, context, "toy"]) == [
        ("blimp", ANY), ("blimp", KNOWN), (context, ANY), (context, KNOWN), (ANY, KNOWN)
    ]  # fmt: skip
    assert companions(["blimp", "climp"]) == []
    assert companions(["generated+en", "generated+en+pairs-300"]) == []  # both of any words


def test_another_policy_is_not_compared(both):
    study, judged = both
    policies = {group: policy | {"context": "eos"} for group, policy in judged[ANY].policies.items()}
    assert match(study, judged["blimp"], replace(judged[ANY], policies=policies), 1) is None


def test_matched_sets_have_as_many_pairs_of_each_length_in_each_paradigm(both):
    study, judged = both
    matched = match(study, judged["blimp"], judged[ANY], 1)
    table = matched.paradigms.set_index("paradigm")
    assert "npi_licensing_1" not in table.index  # not among the generated ones
    assert set(table["matched"]) == {80}  # of 120: those of 5 and of 6 words
    assert matched.first.outcome.shape == matched.second.outcome.shape == (12, 5 * 80)
    assert matched.first.pairs["paradigm"].tolist() == matched.second.pairs["paradigm"].tolist()
    run = matched.first.runs.index[0]
    for part, label in ((matched.first, "blimp"), (matched.second, ANY)):
        scores, _ = read_scores(score_path(study.folders[run].scores(label), "lp"))
        words = part.pairs.merge(scores, on=["paradigm", "pair_id"])["good_words"]
        assert words.value_counts().to_dict() == {5: 200, 6: 200}
        rows = part.pairs.merge(scores, on=["paradigm", "pair_id"])
        assert (rows["good"] > rows["bad"]).tolist() == (part.outcome[0] == 1).tolist()  # the outcomes are those pairs'


def test_slopes_are_those_of_a_regression_and_differences_are_paired_by_run(both):
    study, judged = both
    matched = match(study, judged["blimp"], judged[KNOWN], 1)
    row = slopes_of_both(matched, CONFIG).query("level == 'overall'").iloc[0]
    x = np.log2(matched.first.runs["sample_words"].to_numpy(dtype=float))
    y = [
        np.mean([part.outcome[:, (part.pairs["paradigm"] == name).to_numpy()].mean(axis=1, dtype=float)
                 for name in part.pairs["paradigm"].unique()], axis=0)
        for part in (matched.first, matched.second)
    ]  # fmt: skip
    fits = [linregress(x, values) for values in (*y, y[1] - y[0])]
    assert [row["slope_first"], row["slope_second"], row["difference"]] == pytest.approx([f.slope for f in fits])
    # Three runs a size: each size has a spread of its own (HC2 of the means of sizes, statsmodels).
    size = np.unique(x, return_inverse=True)[1]
    dummies = np.eye(4)[size]
    saturated = sm.OLS(y[1] - y[0], dummies).fit(cov_type="HC2")
    at = np.unique(x) - x.mean()
    assert row["method"] == Interval.T_SIZES
    error = saturated.t_test(at / (at**2).sum()).sd[0, 0]
    of_size = (at / (at**2).sum()) ** 2 * saturated.cov_params().diagonal()
    change = matched.second.outcome - matched.first.outcome
    weights = at[size] / 3 / (at**2).sum()
    units = replace(units_of(matched.first.pairs), differences=True)
    # Chance in single judgements gives an estimate of its variance below chi2(.05) / degrees in one of 20 studies.
    degrees = of_size.sum() ** 2 / (of_size**2 / 2).sum()
    least = judgement_floor(change, weights, size, units)[0] * chi2.ppf(0.05, degrees) / degrees
    half = t.ppf(0.975, degrees) * max(error, np.sqrt(least))
    assert [row["low"], row["high"]] == pytest.approx([fits[2].slope - half, fits[2].slope + half])
    assert row["high_new_pairs"] - row["low_new_pairs"] >= row["high"] - row["low"] - 1e-12


def test_the_share_of_vocabulary_is_the_part_of_the_slope_that_known_words_remove(both):
    study, judged = both
    matched = match(study, judged[ANY], judged[KNOWN], 1)
    table = vocabulary_share(matched, CONFIG).set_index("name")
    whole = table.loc["overall"]
    assert (whole["from_words"], whole["to_words"], whole["runs"]) == (125_000, 250_000, 6)
    assert whole["share"] == pytest.approx(1 - whole["slope_known"] / whole["slope_any"])
    gained = table.loc["anaphor_agreement"]
    assert gained["slope_any"] > 0.03
    assert not table.loc["island_effects", "bounded"]  # a slope of 0 has no share
    assert np.isnan(table.loc["island_effects", "low"])


def test_equal_slopes_have_a_vocabulary_share_of_0(both):
    study, judged = both
    same = replace(judged[ANY], label=KNOWN)
    matched = match(study, judged[ANY], judged[ANY], 1)
    matched = replace(matched, second=replace(matched.first, label=same.label))
    share = vocabulary_share(matched, CONFIG)
    assert share["share"].dropna().to_numpy() == pytest.approx(0)
    assert slopes_of_both(matched, CONFIG)["difference"].to_numpy() == pytest.approx(0)


def test_too_few_pairs_of_one_length_are_not_compared(both):
    study, judged = both
    few = judged[ANY].select((judged[ANY].pairs["pair_id"].astype(int) < 60).to_numpy())
    matched = match(study, judged["blimp"], few, 1)
    assert matched is None  # forty of each paradigm, in both
    assert match(study, judged["blimp"], judged["blimp"].select(np.zeros(720, bool)), 1) is None


@pytest.mark.slow
def test_known_words_add_a_comparison_and_the_share_of_vocabulary(both):
    study, judged = both
    exhibits = {label: matched_exhibits(study, judged, label, CONFIG) for label in (ANY, KNOWN)}
    assert [exhibit.name for exhibit in exhibits[ANY]] == ["matched-blimp", "matched-blimp-slopes"]
    names = [exhibit.name for exhibit in exhibits[KNOWN]]
    assert names == ["matched-blimp", "matched-blimp-slopes", "matched-generated-en", "matched-generated-en-slopes",
                     "matched-generated-en-share"]  # fmt: skip
    share = exhibits[KNOWN][-1]
    assert isinstance(share.table, pd.DataFrame)
    assert share.rows()[0][0] == "Overall"
    for exhibit in exhibits[KNOWN]:
        assert all(specification["layer"] for specification in exhibit.specifications().values())


def test_a_curve_has_the_same_colour_for_all_kinds_of_pairs():
    names = [f"{curve}{OF_PAIRS}{pairs}" for pairs in ("blimp", KNOWN) for curve in ("lstm", "txl")]
    look = style(names).set_index("name")
    assert look["colour"].tolist() == [HUES[0], HUES[1]] * 2
    assert look["dash"].tolist() == [DASHES[0]] * 2 + [DASHES[1]] * 2
    assert not style([f"c{i}" for i in range(18)]).astype(str).duplicated(["colour", "dash", "shape"]).any()
