"""Check that our sums of log-probabilities agree with minicons and lm-evaluation-harness (tests/bench/peers.py)."""

import json
import subprocess
import sys

import pytest

from tests.support import ROOT

SCRIPT = ROOT / "tests" / "bench" / "peers.py"
SMALL = ["--pairs", "13", "--equal", "1000", "--sample", "64", "--rounds", "1", "--threads", "1"]


@pytest.mark.slow
@pytest.mark.usefixtures("peers")
def test_sums_equal_those_of_the_peers(tmp_path):
    """Score 1,000 toy sentences with a small GPT-2 (with a begin symbol), and a small BERT with two kinds of PLL."""
    command = [sys.executable, str(SCRIPT), *SMALL, "--only", "lp", "pll", "--json", str(tmp_path / "results.json")]
    subprocess.run(command, check=True, capture_output=True)
    results = json.loads((tmp_path / "results.json").read_text())
    for peer in ("minicons", "lm-evaluation-harness"):
        assert results["lp"][peer]["difference"] < 1e-3
    assert results["lp"]["ours, nothing shared"]["difference"] < 1e-4
    assert results["pll original"]["minicons"]["difference"] < 1e-3
    assert results["pll within_word_l2r"]["minicons"]["difference"] < 1e-3
