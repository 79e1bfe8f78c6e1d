"""The labels of constructions, and the committed table of precision and recall by them."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pairscale.shares import wilson
from tests.bench.construction_quality import FILTERS, RESULTS, gold_trees, quality, read_filters, rows_of
from tests.support.construction_labels import corrected, draw, read_corrections, read_labels
from tests.support.treebank_sentences import treebank_sentences

NAMES = {path.stem for path in FILTERS.glob("*.yaml")}
COUNTS = ["sentences", "doubtful", "present", "found", "both"]
SETS = {"random": {"random"}, "fresh": {"fresh"}}


@pytest.fixture(scope="module")
def treebank() -> Path:
    folder = os.environ.get("PAIRSCALE_EWT")
    if not folder:
        pytest.skip("needs UD English EWT: set PAIRSCALE_EWT to its folder")
    return Path(folder)


def table() -> pd.DataFrame:
    return pd.read_csv(RESULTS)


def test_labels_name_constructions_and_each_sentence_once():
    labels = read_labels()
    assert len({one.sentence for one in labels}) == len(labels)
    assert set.union(*(set(one.present | one.doubtful) for one in labels)) == NAMES
    assert not any(one.present & one.doubtful for one in labels)
    for one in read_corrections():
        assert (one.construction in NAMES, one.label in ("present", "absent", "doubtful"), bool(one.reason)) == (
            True,
        ) * 3


def test_a_correction_changes_one_label():
    first = read_labels()
    changed = {
        (old.sentence, name)
        for old, new in zip(first, corrected(first, read_corrections()), strict=True)
        for name in (old.present ^ new.present) | (old.doubtful ^ new.doubtful)
    }
    assert changed == {(one.sentence, one.construction) for one in read_corrections()}


@pytest.mark.parametrize("state", ["first", "corrected"])
def test_the_committed_table_counts_the_labels(state):
    labels = read_labels() if state == "first" else corrected(read_labels(), read_corrections())
    for row in table().query("labels == @state and patterns == 'now'").itertuples():
        part = [one for one in labels if (one.set == row.set if row.set in SETS else one.set != "fresh")]
        part = [one for one in part if row.trees == "gold" or one.split != "train"]
        counts = quality(row.construction, dict.fromkeys((one.sentence for one in part), False), part)
        assert [counts[name] for name in COUNTS[:3]] == [row.sentences, row.doubtful, row.present]


def test_shares_and_intervals_follow_from_the_counts():
    for share, of in ("precision", "found"), ("recall", "present"):
        rows = table().query(f"{of} > 0")
        assert rows[share].to_numpy() == pytest.approx((rows["both"] / rows[of]).to_numpy())
        limits = [wilson(row["both"] / row[of], row[of]) for _, row in rows.iterrows()]
        assert rows[[f"{share}_low", f"{share}_high"]].to_numpy() == pytest.approx(np.array(limits))


@pytest.mark.download
def test_random_sentences_are_those_of_the_seeded_draw(treebank):
    labels = read_labels()
    for name, split, count, seed in ("random", "test", 200, 2026), ("fresh", "dev", 100, 2027):
        sentences = treebank_sentences(treebank, split).items()
        drawn = draw(((sentence, len(one.words)) for sentence, one in sentences), count, seed)
        assert [one.sentence for one in labels if one.set == name] == drawn


@pytest.mark.download
def test_the_figures_on_gold_trees_are_those_of_the_patterns(treebank):
    first = read_labels()
    labels = {"first": first, "corrected": corrected(first, read_corrections())}
    again = pd.DataFrame(rows_of(read_filters(FILTERS), {"gold": gold_trees(treebank, first)}, labels))
    committed = table().query("trees == 'gold' and patterns == 'now'")
    keys = ["construction", "labels", "set"]
    pd.testing.assert_frame_equal(again.set_index(keys)[COUNTS], committed.set_index(keys)[COUNTS])
