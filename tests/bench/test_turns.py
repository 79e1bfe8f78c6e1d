"""Ways that take turns: rates, ratios round by round, release of resources."""

import pytest

from tests.bench.packed import SideBySide
from tests.bench.turns import OURS, Case


class FixedRates:
    """A way with these rates (units a second), turn by turn; the first call is the warm-up."""

    def __init__(self, *rates):
        self.rates = [1.0, *rates]
        self.closed = False

    def __call__(self, seconds):
        return 2 * self.rates.pop(0), 2.0

    def close(self):
        self.closed = True


def test_ratios_are_of_the_same_round():
    ours, other = FixedRates(4.0, 9.0), FixedRates(2.0, 3.0)
    case = Case("case", "tokens", {OURS: ours, "other": other}).measure(2, 1.0)
    assert case.rates == {OURS: [4.0, 9.0], "other": [2.0, 3.0]}
    assert case.ratios() == {"other": [2.0, 3.0]}
    assert ours.closed
    assert other.closed


def test_all_ways_are_closed_when_one_fails():
    ours, other = FixedRates(4.0), FixedRates()
    with pytest.raises(IndexError):
        Case("case", "tokens", {OURS: ours, "other": other}).measure(1, 1.0)
    assert ours.closed
    assert other.closed


@pytest.mark.slow
def test_models_side_by_side_are_processes_that_end():
    way = SideBySide(2, 1, ("lstm_tiny", 50, 2, False))
    tokens, seconds = way(0)
    assert tokens == 2 * 2 * 35
    assert seconds == 1.0
    assert way(0.1)[0] > 0
    way.close()
    assert [process.exitcode for process in way.processes] == [0, 0]
