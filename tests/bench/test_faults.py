"""Stages with faults: a few trials of each kind (tests/bench/faults.py)."""

import os

import pytest

from tests.bench.faults import can_mount, measure, plan
from tests.bench.stages import Commands, stages

STAGES = {stage.name: stage for stage in stages()}


@pytest.fixture(scope="module")
def commands():
    return Commands()


@pytest.mark.slow
@pytest.mark.parametrize("name", STAGES)
def test_a_disturbed_stage_ends_with_the_same_files_as_an_undisturbed_one(name, commands, request):
    if "score" in name or "5-gram" in name:
        request.getfixturevalue("lmplz")
    seed = int(os.environ.get("PAIRSCALE_FAULTS_SEED", "1"))
    result = measure(STAGES[name], commands, plan(STAGES[name], 2, can_mount(), 1), seed)
    assert not result.lost, f"PAIRSCALE_FAULTS_SEED={seed}: {result.lost}"
    assert result.trials.total() >= 3
