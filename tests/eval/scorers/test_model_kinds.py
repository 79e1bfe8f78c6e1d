"""Scores of every causal and masked kind that transformers has, against a loop over one unpadded text at a time."""

import pytest

from pairscale.errors import PairscaleError
from tests.support.model_kinds import INEXACT, NAMES, NOT_BUILT, REFUSED, worst_difference


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of transformers about its own kinds
@pytest.mark.parametrize(("task", "kind"), [(task, kind) for task, names in NAMES.items() for kind in names])
def test_scores_of_a_kind_equal_its_own_logits(task, kind):
    if kind in NOT_BUILT:
        pytest.xfail(NOT_BUILT[kind])
    if (task, kind) in REFUSED:
        with pytest.raises(PairscaleError, match=REFUSED[task, kind]):
            worst_difference(kind, task)
        return
    _, worst = worst_difference(kind, task)
    assert worst < INEXACT.get(kind, 2e-5)  # nats per token
