"""What the hierarchical model is given: counts, contrasts, and chance among pairs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from analysis.curves.groups import FEW
from analysis.curves.hierarchical.counts import chance_among_pairs, counts_of, without_lone_runs
from analysis.curves.units import units_of
from tests.bench.hierarchical import judged_of
from tests.support.judged_runs import judged_from, judged_groups
from tests.support.simulated_judgements import SimulatedJudgements

CELL = SimulatedJudgements(2, 4, pairs=10)


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(1)
    return counts_of(judged_of(CELL, [CELL.draw(rng)[0], CELL.draw(rng)[0]]))


def test_counts_are_sums_over_pairs(counts):
    outcome, _ = CELL.draw(np.random.default_rng(1))
    assert counts.right.shape == (16, 4)
    np.testing.assert_allclose((counts.right / counts.alike)[:8], outcome.reshape(8, 4, 10).sum(axis=2))
    assert (counts.pairs[0] / counts.alike == 10).all()
    assert counts.groups == ["model 0", "model 1"]


def test_cells_are_centred_by_how_far_runs_lie_apart_in_their_paradigm():
    """Runs of a size that differ by .2 and by .6 logits: with many pairs, deviations of .1 and .3 times root 2."""
    sizes = np.repeat([1000, 2000, 4000, 8000], 2)
    apart = np.tile([-1.0, 1.0], 4)[:, None] * [0.1, 0.3, -0.1, -0.3]
    judged = judged_groups({"a": (np.ones(8), sizes)})
    names = pd.DataFrame({"phenomenon": "x", "paradigm": list("pqrs"), "n_pairs": 10**9})
    none = np.zeros((8, 4), dtype=bool)
    counts = counts_of(replace(judged, outcome=expit(apart), tie=none, unk=none, pairs=names))
    right = counts.right[0] * (1 - counts.right[0] / counts.pairs[0])
    of_data = np.sqrt((4 * 2 * np.array([0.1, 0.3, 0.1, 0.3]) ** 2 + 0.15**2) / 5)  # runs' mean over paradigms is 0
    np.testing.assert_allclose(counts.centring["cell"][0], right / (right + of_data**-2), rtol=1e-6)
    alone = counts_of(replace(judged_groups({"a": (np.ones(3), sizes[[0, 2, 4]])}), outcome=expit(apart[:3]),
                              tie=none[:3], unk=none[:3], pairs=names.assign(n_pairs=100)))  # fmt: skip
    judged_of = alone.right * (1 - (alone.right + 1) / 102)
    share = alone.centring["cell"] / (1 - alone.centring["cell"])  # information x deviation squared
    np.testing.assert_allclose(share / 0.15**2, judged_of, rtol=0.02)


def test_lines_curves_and_bends_are_orthogonal_in_each_group(counts):
    basis = np.column_stack(list(counts.basis.values()))
    assert [columns.shape[1] for columns in counts.basis.values()] == [2, 2, 2, 2]
    np.testing.assert_allclose(basis[:4, 2], counts.doublings[:4])
    np.testing.assert_allclose(basis[:4, [1, 3, 5, 7]], 0, atol=1e-12)  # of the other group
    products = basis.T @ basis
    np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-12)


def test_a_curve_is_the_quadratic_polynomial_and_bends_are_of_higher_degree(counts):
    x = counts.doublings[:4]
    curve, bend = (counts.basis[kind][:4, 0] for kind in ("curve", "bend"))
    assert np.polynomial.Polynomial.fit(x, curve, 2, full=True)[1][0] == pytest.approx(0, abs=1e-24)
    for degree in range(3):
        assert bend @ x**degree == pytest.approx(0, abs=1e-12)


def test_contrasts_part_levels_of_the_hierarchy(counts):
    between, within, members = counts.between, counts.within, counts.members
    assert (between.shape, within.shape) == ((4, 1), (4, 2))
    np.testing.assert_allclose(between.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(members.T @ within, 0, atol=1e-12)
    assert len(np.unique(np.round(between[:3], 9))) == 1  # one value for a phenomenon


def test_one_phenomenon_where_none_has_two_paradigms():
    counts = counts_of(judged_groups({"a": ([0.5, 0.6, 0.7], [1000, 2000, 4000])}))
    assert counts.members.shape == (2, 1)
    assert counts.between.shape == (2, 0)


def test_pairs_that_differ_count_as_more_than_alike_ones():
    rng = np.random.default_rng(0)
    cell = SimulatedJudgements(5, 2, run_sd=(1e-9, 1e-9), pair_slope_sd=1e-9, pairs=400)
    alike, unlike = (
        chance_among_pairs(SimulatedJudgements.draw(of, rng)[0], [(np.arange(10), of.design)], of.units)
        for of in (SimulatedJudgements(5, 2, run_sd=(1e-9, 1e-9), pair_slope_sd=1e-9, pair_sd=1e-9, pairs=400), cell)
    )
    np.testing.assert_allclose(alike, 1, atol=0.06)
    assert (unlike > 1.15).all()


def test_pairs_count_once_where_single_ones_are_not_known():
    pairs = judged_from([0.5, 0.6], [1000, 2000], [1, 1]).pairs[:1].assign(n_pairs=100)
    units = units_of(pairs)
    assert chance_among_pairs(np.zeros((2, 1)), [], units).tolist() == [1.0]


def test_reasons_for_no_model():
    assert counts_of(judged_from([0.5, 0.6], [1000, 2000], [1, 1])) == "there is one paradigm only"
    one_size = judged_groups({"a": ([0.5, 0.6], [1000, 1000])})
    assert counts_of(one_size) == "a: not in the hierarchical model: one size only"
    both = judged_groups({"a": ([0.5, 0.6], [1000, 1000]), "b": ([0.5, 0.6, 0.6], [1000, 2000, 2000])})
    left = counts_of(both)
    assert (left.groups, left.notes[0]) == (["b"], "a: not in the hierarchical model: one size only")
    assert left.right.shape == (3, 2)
    two = judged_groups({"a": ([0.5, 0.6], [1000, 2000])})
    assert counts_of(two) == "a: not in the hierarchical model: two runs"
    three = judged_groups({"a": ([0.5, 0.6, 0.6], [1000, 2000, 2000])})
    three.runs["overlap"] = 1.0
    assert counts_of(three) == "a: not in the hierarchical model: runs of a size on the same text"
    three.runs = three.runs.assign(overlap=0.0, nested=True, seed=[1, 1, 1])
    assert (
        counts_of(three) == "a: not in the hierarchical model: nested samples of one seed, which are one draw of text"
    )
    unknown = judged_groups({"a": ([0.5, 0.6], [1000, 2000])})
    unknown.pairs = unknown.pairs.assign(n_pairs=np.nan)
    assert counts_of(unknown) == "the number of pairs of some paradigms is not known"


def test_the_only_run_of_a_size_is_left_out_where_two_sizes_have_several():
    """Nothing shows how much runs differ there; with one run a size, bends of the curve do."""
    judged = judged_groups({
        "one each": ([0.5, 0.6, 0.7], [1000, 2000, 4000]), "two": ([0.5] * 4, [1000, 1000, 2000, 2000]),
        "mixed": ([0.5, 0.6, 0.7, 0.8, 0.9, 1.0], [1000, 2000, 2000, 4000, 4000, 8000]),
        "one of several": ([0.5] * 4, [1000, 1000, 2000, 4000]),
    })  # fmt: skip
    kept, notes = without_lone_runs(judged)
    (note,) = notes
    assert note.startswith("mixed: one run at 1,000, 8,000: left out of the hierarchical model, as nothing shows")
    assert kept.runs.loc[kept.runs["group"] == "mixed", "sample_words"].tolist() == [2000, 2000, 4000, 4000]
    assert len(kept.runs) == len(judged.runs) - 2
    rows = judged.runs.index.get_indexer(kept.runs.index)
    np.testing.assert_array_equal(kept.outcome, judged.outcome[rows])
    assert counts_of(kept).right.shape == (len(kept.runs), 2)
    assert without_lone_runs(kept) == (kept, [])


@pytest.mark.parametrize(
    ("seeds", "caution"),
    [
        ((5, 5, 5, 5), ""),
        ((5, 5, 4, 2), "fewer than 5 runs at 1M, 8M"),
        ((1, 1, 1, 1), "fewer than 5 runs at all sizes"),
    ],
)
def test_sizes_of_few_runs_are_a_caution(seeds, caution):
    cell = SimulatedJudgements(seeds, 4)
    counts = counts_of(judged_of(cell, [cell.draw(np.random.default_rng(1))[0]]))
    counts = replace(counts, size=["15k", "125k", "1M", "8M"])
    assert counts.cautions(np.array([3, 1, 0, 2])) == [caution] * 7


def test_units_with_few_wrong_judgements_are_a_caution():
    """Of ten pairs, one run of each size judges one wrong in p and all in q."""
    wrong = np.zeros((8, 2, 10), dtype=bool)
    wrong[::2, 0, 0] = wrong[::2, 1] = True
    judged = judged_groups({"a": (np.ones(8), np.repeat([1000, 2000, 4000, 8000], 2))})
    outcome = 1 - wrong.reshape(8, 20).astype(float)
    pairs = pd.DataFrame({"phenomenon": "x", "paradigm": np.repeat(["p", "q"], 10), "pair_id": [*map(str, range(20))]})
    none = np.zeros(outcome.shape, dtype=bool)
    counts = counts_of(replace(judged, outcome=outcome, tie=none, unk=none, pairs=pairs))
    few = "fewer than 5 runs at all sizes"
    names = dict(zip(counts.units.table["name"], counts.cautions(np.arange(4)), strict=True))
    assert names == {"overall": few, "x": few, "p": f"{few}; {FEW}", "q": few}
    assert counts.cautions(np.arange(2), np.arange(2, 4)) == list(names.values())


def test_checkpoints_of_one_training_are_left_out_as_groups():
    judged = judged_groups({"mixed": ([0.5] * 5, [1000, 2000, 2000, 4000, 4000])})
    judged.runs["training"] = "one"
    assert without_lone_runs(judged) == (judged, [])
    assert counts_of(judged).startswith("mixed: not in the hierarchical model: checkpoints of one training")


def test_nested_samples_have_seeds_and_overlapping_ones_shares():
    rng = np.random.default_rng(1)
    nested, overlapping = SimulatedJudgements(2, 3, nested=True), SimulatedJudgements(2, 3, overlap=0.5)
    seeds = counts_of(judged_of(nested, [nested.draw(rng)[0]])).seed
    assert seeds.sum(axis=0).tolist() == [3, 3]
    shares = counts_of(judged_of(overlapping, [overlapping.draw(rng)[0]])).overlap
    np.testing.assert_allclose(shares[-2:], 0.5)
    assert counts_of(judged_of(overlapping, [overlapping.draw(rng)[0]])).seed.shape == (6, 0)
