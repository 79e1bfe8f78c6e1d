"""Write a small simulated study once per test module, and copy it for tests that change it."""

import shutil

import pytest

from analysis.study.long_table import runs
from tests.support.simulated_study import SimulatedStudy
from train.runs.folder import RunFolder

STUDY = SimulatedStudy(sizes=("125k", "1M"), pairs=20, unk_share=0.3)
FIRST = "lstm_tiny-english-unigram-125k-s1"
LAST = "txl_tiny-english-unigram-1M-s2"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    STUDY.write(folder)
    return folder


@pytest.fixture
def own(written, tmp_path):
    """Return a copy of the study that a test may change."""
    shutil.copytree(written, tmp_path / "runs")
    return tmp_path / "runs"


def run_folder(own, run, study="simulated"):
    return RunFolder(own / study / run)


def table_of_runs(own):
    return runs("simulated", folder=own).set_index("run")
