"""Amounts of text at which units are acquired, by hand and by numpy."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.curves.acquisition import words_to_threshold
from pairscale.errors import InputError
from tests.support.long_table import curve_table, row


def table(accuracies, curve="m", words=(1000, 2000, 4000), **columns):
    """Return the long table of a curve of (sizes, seeds) or (sizes, seeds, paradigms) accuracies."""
    y = np.asarray(accuracies)
    sizes, seeds, *_ = y.shape
    runs = np.repeat(words, seeds), np.tile(np.arange(seeds), sizes)
    return curve_table(y.reshape(sizes * seeds, -1), *runs, curve=curve, **{"model": "m", **columns})


def crossing(*tables):
    """Return the row of the first paradigm."""
    return row(words_to_threshold(pd.concat(tables)), name="p0_0")


@pytest.mark.parametrize(
    ("accuracies", "status", "words"),
    [
        ((0.7, 0.7, 0.7), "before the smallest size", np.nan),
        ((0.5, 0.5, 0.59), "not by the largest size", np.nan),
        ((0.7, 0.5, 0.7), "estimated", 2000 * 2**0.5),  # the last crossing counts: from there on it stays
        ((0.5, 0.7, 0.5), "not by the largest size", np.nan),
        ((0.5, 0.55, 0.65), "estimated", 2000 * 2**0.5),  # .6 is halfway, on a line over log2(words)
    ],
)
def test_a_unit_is_acquired_where_it_stays_above(accuracies, status, words):
    result = crossing(table([[of] for of in accuracies]))
    assert result["status"] == status
    assert result["words"] == pytest.approx(words, nan_ok=True)
    assert "no interval" in result["note"]


def test_the_interval_is_where_the_band_of_the_means_holds_the_threshold():
    accuracies = np.asarray([[0.50, 0.52], [0.58, 0.62], [0.69, 0.71]])
    result = crossing(table(accuracies))
    spread = np.sqrt(accuracies.var(axis=1, ddof=1).mean() / 2)
    half = stats.t.ppf(0.975, 3) * spread
    means = accuracies.mean(axis=1)
    low = 10 + np.interp(0.6, means + half, [0, 1, 2])
    high = 10 + np.interp(0.6, means - half, [0, 1, 2])
    assert (result["low"], result["high"]) == pytest.approx((2**low / 1.024, 2**high / 1.024))
    nested = crossing(table(accuracies, nested=True))
    assert nested["low"] < result["low"]
    assert nested["high"] > result["high"]


def test_the_threshold_is_above_the_highest_baseline_of_the_model():
    curve = table([[0.5], [0.6], [0.8]])
    untrained = table([[0.55]], "u", [1000], baseline="untrained")
    other = table([[0.9]], "v", [1000], baseline="untrained", model="other")
    shuffled = table([[0.9], [0.58]], "x", [1000, 2000], baseline="sentence")
    result = crossing(curve, untrained, other)
    assert (result["baseline"], result["threshold"]) == pytest.approx((0.55, 0.65))
    assert crossing(curve, untrained, other, shuffled)["baseline"] == 0.58  # of the largest size
    with pytest.raises(InputError, match="margin=0"):
        words_to_threshold(curve, margin=0)


def test_units_that_are_not_acquired_share_the_last_rank():
    rise = np.reshape([-0.1, 0.0, 0.1], (3, 1, 1))
    words = words_to_threshold(table(0.6 + rise - np.asarray([0.01, 0.02, 0.03, 0.5, 0.5, -0.5])))
    ranks = words[words["level"] == "paradigm"].sort_values("name")["rank"]
    assert list(ranks) == [2, 3, 4, 5, 5, 1]
