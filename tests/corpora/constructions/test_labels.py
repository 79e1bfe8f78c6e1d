"""The committed table of precision and recall of constructions, counted again from the labels."""

import os
from pathlib import Path

import pandas as pd
import pytest

from tests.bench.construction_quality import RESULTS, STATES, gold_trees, quality, read_labels, rows_of

COUNTS = ["sentences", "doubtful", "present", "found", "both"]


@pytest.mark.parametrize("state", STATES)
def test_the_committed_table_counts_the_labels(state):
    labels = read_labels(state)
    for row in pd.read_csv(RESULTS).query("labels == @state and patterns == 'now'").itertuples():
        part = [one for one in labels if (one.set != "fresh" if row.set == "all" else one.set == row.set)]
        part = [one for one in part if row.trees == "gold" or one.split != "train"]
        counts = quality(row.construction, dict.fromkeys((one.sentence for one in part), False), part)
        assert [counts[name] for name in COUNTS[:3]] == [row.sentences, row.doubtful, row.present]


@pytest.mark.download
def test_the_figures_on_gold_trees_are_those_of_the_patterns():
    folder = os.environ.get("PAIRSCALE_EWT")
    if not folder:
        pytest.skip("needs UD English EWT: set PAIRSCALE_EWT to its folder")
    again = pd.DataFrame(rows_of({"gold": gold_trees(Path(folder), read_labels("first"))}))
    committed = pd.read_csv(RESULTS).query("trees == 'gold' and patterns == 'now'")
    keys = ["construction", "labels", "set"]
    pd.testing.assert_frame_equal(again.set_index(keys)[COUNTS], committed.set_index(keys)[COUNTS])
