"""Names of curves: what differs by default, and what the user chooses."""

import pandas as pd
import pytest

from analysis.report.labels import display_names, in_order, renamed_text
from pairscale.errors import ConfigError


def test_an_architecture_names_a_curve_that_is_alone_with_it():
    curves = ["lstm_tiny", "txl_tiny", "gpt2_tiny, lr=0.001", "lstm_small", "own"]
    names = display_names(curves, {})
    assert names == {
        "lstm_tiny": "lstm_tiny", "txl_tiny": "Transformer-XL", "gpt2_tiny, lr=0.001": "gpt2_tiny, lr=0.001",
        "lstm_small": "lstm_small", "own": "own",
    }  # fmt: skip


def test_a_label_replaces_a_name():
    assert display_names(["lstm_tiny", "own"], {"own": "Ours"}) == {"lstm_tiny": "LSTM", "own": "Ours"}


@pytest.mark.parametrize(
    ("labels", "hint"),
    [
        ({"lstm_tny": "A"}, "lstm_tiny"),
        ({"zzz": "A"}, "lstm_tiny, own"),
        ({"lstm_tiny": "A", "own": "A"}, "both be called"),
    ],
)
def test_a_label_of_no_curve_or_of_two_is_an_error(labels, hint):
    with pytest.raises(ConfigError, match=hint):
        display_names(["lstm_tiny", "own"], labels)


def test_chosen_curves_come_first_and_rows_keep_their_order():
    table = pd.DataFrame({"curve": ["a", "b", "c", "a"], "row": range(4)})
    assert in_order(table, ["c", "absent"])["row"].tolist() == [2, 0, 3, 1]


def test_sentences_get_the_names_of_curves_as_whole_words():
    names = {"lstm": "RNN", "lstm, lr=1": "Fast"}
    assert renamed_text("lstm, lr=1 and lstm have no runs (model=lstm, lstm_tiny)", names) == (
        "Fast and RNN have no runs (model=lstm, lstm_tiny)"
    )
