"""Inject one fault of each kind (tests/bench/faults.py) into the stages. Training uses both kinds of batches.

`make faults` also tests the other models, and kills commands at random moments.
"""

import os

import pytest

from tests.bench.faults import can_mount, measure, plan
from tests.bench.stages import stages

STAGES = {stage.name: stage for stage in stages() if stage.name not in ("train, Transformer-XL", "train, GPT-2")}
_OF_RELEASE = ("analysis", "score", "train, 5-gram", "train, LSTM", "train, RoBERTa")  # other tests kill these, too


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.release] * (name in _OF_RELEASE)) for name in STAGES]
)
def test_a_disturbed_stage_ends_with_the_same_files_as_an_undisturbed_one(name, request):
    if "score" in name or "5-gram" in name:
        request.getfixturevalue("lmplz")
    seed = int(os.environ.get("PAIRSCALE_FAULTS_SEED", "1"))
    result = measure(STAGES[name], plan(STAGES[name], 1, can_mount(), 1), seed)
    assert not result.lost, f"PAIRSCALE_FAULTS_SEED={seed}: {result.lost}"
    assert result.trials.total() >= 2
