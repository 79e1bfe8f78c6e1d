"""The simulator of `designs.py` against a large simulation, and its limits against those of a report's tables."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.config import CONSERVATIVE, LEAVE_OUT
from analysis.curves.comparisons import compare_slopes
from analysis.curves.fit import fit_curves
from analysis.curves.groups import cautions_left, fitted_slopes
from analysis.curves.units import units_of
from analysis.study.judgements import score_labels
from analysis.study.sources.source import sources
from pairscale.command.compose import compose
from tests.bench.designs import (
    CONFIG,
    DESIGNS,
    FILE,
    KEYS,
    NAMES,
    QUESTIONS,
    Limits,
    judgements_of,
    outcome_of,
    simulate,
)
from tests.support.coverage_tables import MOST_WITHOUT
from tests.support.independent_studies import ALIKE, TWO_VALUED, UNRELATED, IndependentStudies


@pytest.mark.parametrize("choice", [LEAVE_OUT, CONSERVATIVE])
@pytest.mark.parametrize(
    "name", ["4x2 line", "4x5 same texts", "5,5,5,3 nested", "10x5 overlap up to 77%", "4x5 ceiling, 10 pairs"]
)
def test_limits_are_those_of_the_tables(name, choice):
    study = DESIGNS[name].draw(np.random.default_rng(1))
    judged, config = judgements_of(study), replace(CONFIG, cautioned_limits=choice)
    _, limits, cautions = Limits(judged).of(outcome_of(study), config)
    tables = {"slope": fitted_slopes(judged, units_of(judged.pairs), config)[0][1]}
    tables["difference"] = compare_slopes(judged, config)
    assert tables["difference"]["paired"].all() == (name == "4x5 same texts")
    for (quantity, question), ends in limits.items():
        _, left_out = cautions_left(cautions[quantity], config)
        for column, of in zip(QUESTIONS[question], ends, strict=True):
            given = np.where(left_out == "", of, np.nan)
            np.testing.assert_allclose(given, tables[quantity][column], rtol=1e-9, atol=1e-12)
    for quantity, of in cautions.items():
        caution, left_out = cautions_left(of, config)
        assert list(caution) == list(tables[quantity]["caution"])
        assert (caution != "").any() == ("overlap" in name and choice == CONSERVATIVE)
        assert (left_out != "").any() == ("ceiling" in name or ("overlap" in name and choice == LEAVE_OUT))


def test_judgements_are_those_of_a_published_table(tmp_path):
    """The same study by `source=table`, a row a pair, gives the same slopes."""
    cell = IndependentStudies((2, 3, 2), pairs=20)
    study = cell.draw(np.random.default_rng(2))
    study.table().to_csv(tmp_path / "study.csv", index=False)
    table = sources()["table"]
    (read,) = table.collect(compose("analysis", ["source=table", f"path={tmp_path / 'study.csv'}"]))
    judged = table.judge(read, score_labels(read)[0], "lp", "wrong")
    columns = ["group", "level", "name", "slope", "low", "high", "low_new_pairs", "high_new_pairs"]
    expected, of_table = (fit_curves(of, CONFIG).slopes[columns] for of in (judgements_of(study), judged))
    pd.testing.assert_frame_equal(of_table, expected)


@pytest.mark.parametrize("effects", ["normal", TWO_VALUED])
def test_true_accuracies_are_those_of_many_runs(effects):
    cell = IndependentStudies((4000, 4000), spread=(0.5, 0.2), effects=effects, pairs=5)
    study = cell.draw(np.random.default_rng(3))
    for m in range(2):
        shares = np.stack([study.correct[m, cell.size == s].mean(axis=(0, 2)) for s in range(2)])
        np.testing.assert_allclose(shares, study.true[m], atol=0.015)
    np.testing.assert_allclose(cell.expected(0)[0], [start for _, start, _ in cell.paradigms])


def test_expected_accuracies_are_those_of_many_pairs():
    cell = IndependentStudies((1, 1, 1), "late", spread=(0.3,), pairs=20_000)
    study = cell.draw(np.random.default_rng(4))
    np.testing.assert_allclose(study.true[1], cell.expected(1), atol=0.01)


@pytest.mark.parametrize("design", [{"nested": True}, {"overlap": 0.77, "blocks": ALIKE}, {"overlap": 0.77}, {}])
def test_what_a_run_adds_has_the_stated_deviation(design):
    cell = IndependentStudies((1, 1, 1), spread=(0.1, 0.2, 0.3), **design)
    rng = np.random.default_rng(5)
    effects = np.stack([cell.run_effects(rng) for _ in range(600)])
    np.testing.assert_allclose(effects.std(axis=(0, 1, 3)), cell.deviation.mean(axis=1), rtol=0.1)


def test_runs_share_the_text_that_their_design_says():
    """Correlations between runs: of models on the same texts, of samples that overlap, of a nested seed."""
    rng = np.random.default_rng(6)

    def correlations(**design):
        cell = IndependentStudies((2, 2), text=1.0, **design)
        return np.corrcoef(np.stack([cell.run_effects(rng)[..., 0].ravel() for _ in range(600)]).T)

    assert correlations(same_texts=True)[0, 4] == pytest.approx(1)
    assert correlations()[0, 4] == pytest.approx(0, abs=0.15)
    assert correlations(overlap=0.77)[2, 3] == pytest.approx(0.77, abs=0.15)  # runs of the largest size
    far = np.sqrt(0.77 * 0.77 / 512)  # of a size 512 times as large: sqrt of the product of the shares
    assert correlations(overlap=0.77)[0, 2] == pytest.approx(far, abs=0.15)
    assert correlations(overlap=0.77, blocks=UNRELATED)[0, 2] == pytest.approx(0, abs=0.15)
    assert correlations(nested=True)[0, 2] == pytest.approx(1 / np.sqrt(512), abs=0.15)


def test_a_design_gives_the_same_rows_each_time():
    first, again = (simulate("4x2 line", 3) for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    assert list(first.columns[: len(KEYS)]) == KEYS
    assert len(first) == 4 * 7


def test_the_committed_table_has_every_design():
    table = pd.read_csv(FILE)
    assert list(dict.fromkeys(table["design"])) == NAMES
    assert (table["studies"] >= 1000).all()
    # By chance one of the rows is three standard errors off.
    given = table[table["none"] <= MOST_WITHOUT]
    assert (given["covered"] >= 0.92).all(), given[given["covered"] < 0.92]
    assert given["caution"].isin([0, 1]).all()
