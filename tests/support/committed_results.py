"""The studies in analysis/results/, whose long tables are committed (accuracies.csv and runs.csv).

Those of older studies give accuracies overall and in each phenomenon, without paradigms.
"""

import pandas as pd

from analysis.sources.read import read_source
from analysis.sources.settings import OutcomeColumns, ResultsConfig
from tests.support import ROOT

RESULTS = ROOT / "analysis" / "results"
DEMO = "demo"


def committed_tables(study: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the long table of accuracies of a committed study, and its table of runs."""
    found = read_source("table", str(RESULTS / study), OutcomeColumns(), ResultsConfig())
    return found.accuracies, found.runs


def committed_accuracies(study: str) -> pd.DataFrame:
    """Return the long table of accuracies of a committed study."""
    return committed_tables(study)[0]
