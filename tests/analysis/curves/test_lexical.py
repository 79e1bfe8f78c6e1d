"""Intervals for new words: related pairs, and the variance beside statsmodels' two-way cluster covariance."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.sandwich_covariance import cov_cluster, cov_cluster_2groups

from analysis.config import CurvesConfig
from analysis.curves.fit import fit_curves
from analysis.curves.robustness.lexical import (
    clustered_variance,
    lexical_items,
    new_word_table,
    related_of,
    related_pairs,
)
from analysis.curves.units import units_of
from analysis.curves.variance import pair_variance
from analysis.sections.robustness.new_words import new_words, new_words_sentence
from analysis.sections.section import Report, Section
from analysis.study.collect import collect
from analysis.study.judgements import judgements
from pairscale.command.compose import compose
from tests.support.judged_runs import judged_from
from tests.support.simulated_study import SimulatedStudy

CONFIG = CurvesConfig(method="lp", interval="t", confidence=0.95, resamples=100, seed=1)


def one_paradigm(pairs):
    return units_of(pd.DataFrame({"phenomenon": "a", "paradigm": "a", "pair_id": range(pairs)}))


def variance_of(values, items):
    related = related_pairs(items)
    units = one_paradigm(len(values))
    return clustered_variance(np.asarray(values, float), units.bounds, units, [related]), related


def crossed(rng, pairs=400, nouns=40, verbs=30, spread=1.0):
    noun, verb = rng.integers(nouns, size=pairs), rng.integers(verbs, size=pairs)
    effects = spread * (rng.normal(size=nouns)[noun] + rng.normal(size=verbs)[verb])
    return noun, verb, effects + rng.normal(size=pairs)


def test_with_two_words_a_pair_it_is_the_two_way_covariance_of_statsmodels():
    noun, verb, values = crossed(np.random.default_rng(1))
    (variance, _), related = variance_of(values, [{f"n{n}", f"v{v}"} for n, v in zip(noun, verb, strict=True)])
    fit = sm.OLS(values, np.ones(len(values))).fit()
    both, *_ = cov_cluster_2groups(fit, noun, verb, use_correction=False)
    assert variance[0] == pytest.approx(both.item() / (1 - related.share), rel=1e-10)


def test_with_one_word_a_pair_it_is_the_covariance_of_clusters():
    noun, _, values = crossed(np.random.default_rng(2))
    (variance, _), related = variance_of(values, [{f"n{n}"} for n in noun])
    fit = sm.OLS(values, np.ones(len(values))).fit()
    assert variance[0] == pytest.approx(cov_cluster(fit, noun, use_correction=False).item() / (1 - related.share))


def test_unrelated_pairs_have_the_usual_variance():
    values = np.random.default_rng(3).normal(size=50)
    (variance, degrees), related = variance_of(values, [{f"w{i}"} for i in range(50)])
    assert related.share == pytest.approx(1 / 50)
    assert variance[0] == pytest.approx(values.var(ddof=1) / 50)
    assert degrees[0] == pytest.approx(49)
    assert related.degrees == pytest.approx(49)


def test_degrees_of_freedom_are_those_of_the_quadratic_form():
    """By its matrix: trace(A)^2 / trace(A^2) for centred residuals."""
    noun, verb, _ = crossed(np.random.default_rng(4), pairs=60, nouns=12, verbs=11)
    related = related_pairs([{f"n{n}", f"v{v}"} for n, v in zip(noun, verb, strict=True)])
    centre = np.eye(60) - 1 / 60
    form = centre @ related.pairs.toarray() @ centre
    assert related.degrees == pytest.approx(np.trace(form) ** 2 / np.trace(form @ form))


@given(seed=st.integers(0, 2**32))
def test_it_is_never_below_that_of_independent_pairs(seed):
    rng = np.random.default_rng(seed)
    noun, verb, values = crossed(rng, pairs=30, nouns=12, verbs=11, spread=rng.choice([0.0, 1.0]))
    (variance, _), _ = variance_of(values, [{f"n{n}", f"v{v}"} for n, v in zip(noun, verb, strict=True)])
    units = one_paradigm(30)
    assert variance[0] >= pair_variance(values, units.bounds, units.weights)[0] - 1e-15


def test_it_is_unbiased_for_independent_pairs_and_finds_the_words():
    """The mean of 2,000 estimates before they are raised, and of 300 with words, against the variance of means."""
    rng = np.random.default_rng(5)
    noun, verb, _ = crossed(rng, pairs=100, nouns=25, verbs=25)
    items = [{f"n{n}", f"v{v}"} for n, v in zip(noun, verb, strict=True)]
    related = related_pairs(items)
    residuals = rng.normal(size=(2000, 100))
    residuals -= residuals.mean(axis=1, keepdims=True)
    raw = (residuals * (related.pairs @ residuals.T).T).sum(axis=1) / 100**2 / (1 - related.share)
    assert raw.mean() == pytest.approx(1 / 100, rel=0.05)
    units, estimates, means = one_paradigm(400), [], []
    for _ in range(300):
        noun, verb, values = crossed(rng)
        related = related_pairs([{f"n{n}", f"v{v}"} for n, v in zip(noun, verb, strict=True)])
        estimates.append(clustered_variance(values, units.bounds, units, [related])[0][0])
        means.append(values.mean())
    assert np.mean(estimates) == pytest.approx(np.var(means), rel=0.2)


def test_items_are_words_of_either_sentence_that_few_pairs_have():
    assert lexical_items(["The cats' dog sleeps.", "The cats' dog sleep."], "treebank") == {
        "the", "cats", "dog", "sleeps", "sleep",
    }  # fmt: skip
    related = related_pairs([{"the", f"w{i // 2}"} for i in range(40)]).pairs.toarray()
    assert related.sum() == 80
    assert related[0, 1] == related[1, 0] == 1
    assert related[0, 2] == 0


def test_pairs_are_related_within_paradigms():
    pairs = pd.DataFrame({"phenomenon": "x", "paradigm": ["a", "a", "b"], "pair_id": ["0", "1", "0"]})
    items = pairs.assign(
        good=["Cats ran .", "Cats sat .", "Cats ran ."], bad=["Cats run .", "Cats sits .", "Cats run ."]
    )
    first, second = related_of(pairs, items.iloc[::-1], "treebank")
    assert first.pairs.toarray().tolist() == [[1, 1], [1, 1]]
    assert second.pairs.toarray().tolist() == [[1]]
    (chinese,) = related_of(pairs[2:].assign(paradigm="c"), items.assign(paradigm="c", good="他喜欢猫", bad="他猫喜欢"),
                            "characters")  # fmt: skip
    assert chinese.pairs.shape == (1, 1)


def test_the_table_has_the_defaults_limits_beside_those_of_new_words():
    sizes, seeds = [1000, 2000, 4000] * 3, np.repeat([1, 2, 3], 3).tolist()
    judged = judged_from([0.6, 0.7, 0.8] * 3, sizes, seeds, pairs=60)
    related = related_pairs([{f"n{i % 12}", f"v{i % 15}"} for i in range(60)])
    table = new_word_table(judged, [related], CONFIG).set_index("level").loc["overall"]
    slopes = fit_curves(judged, CONFIG).slopes.set_index("level").loc["overall"]
    assert table["slope"] == slopes["slope"]
    assert table["slope_low_pairs"] == pytest.approx(slopes["low_new_pairs"])
    assert table["slope_high_pairs"] == pytest.approx(slopes["high_new_pairs"])
    assert table["low_words"] <= table["low_pairs"] < table["accuracy"] < table["high_pairs"] <= table["high_words"]
    assert table["ratio"] >= 1
    assert table["slope_ratio"] >= 1


def test_the_report_has_them_on_request(tmp_path):
    written = SimulatedStudy(pairs=20, seeds=(1, 2, 3))
    written.write(tmp_path)
    study = collect(tmp_path, written.name)
    judged = judgements(study, "blimp", "lp", "wrong")
    section = Section(judged, fit_curves(judged, CONFIG), pd.DataFrame())
    for value, exhibits in (("false", 0), ("true", 1)):
        config = compose("analysis", ["study=simulated", f"analysis.new_words={value}", "analysis.interval=t"])
        found = new_words(section, Report(study, config, {"blimp": section}))
        assert len(found) == exhibits
    (exhibit,) = found
    assert [column.name for column in exhibit.shown][:7] == [
        "phenomenon", "curve", "accuracy", "95% for new pairs", "95% for new words", "ratio", "slope",
    ]  # fmt: skip
    assert [subject for subject, _ in exhibit.takeaways] == ["lstm_tiny", "txl_tiny"]
    assert set(section.tables["new-words-paradigms"]["level"]) == {"overall", "phenomenon", "paradigm"}


def test_what_new_words_change_is_said_in_a_sentence():
    rows = pd.DataFrame(
        [("overall", "overall", 1.5, 0.01, 0.02, 0.005, 0.03), ("phenomenon", "npi_licensing", 2.0, 0.01, 0.02, -0.01,
          0.04), ("phenomenon", "binding", 1.0, 0.01, 0.02, 0.01, 0.02)],
        columns=["level", "name", "ratio", "slope_low_pairs", "slope_high_pairs", "slope_low_words",
                 "slope_high_words"],
    )  # fmt: skip
    assert new_words_sentence(rows) == (
        "for new words the standard error of overall accuracy is 1.50 times that for new pairs, and at most 2.00 times "
        "(NPI licensing); slopes of 1 phenomenon differ from 0 for new words, of 2 for new pairs (not corrected for "
        "multiple comparisons)."
    )
