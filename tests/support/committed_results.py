"""The studies in analysis/results/, whose long tables are committed (accuracies.csv and runs.csv).

Those of older studies give accuracies overall and in each phenomenon, without paradigms.
"""

import pandas as pd

from analysis.curves.ablations import ALL_SIZES
from analysis.sources.read import read_source
from analysis.sources.settings import OutcomeColumns, ResultsConfig
from tests.support import ROOT

RESULTS = ROOT / "analysis" / "results"
ABLATION, DEMO = "ablation_small", "demo"


def committed_tables(study: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the long table of accuracies of a committed study, and its table of runs."""
    found = read_source("table", str(RESULTS / study), OutcomeColumns(), ResultsConfig())
    return found.accuracies, found.runs


def committed_accuracies(study: str) -> pd.DataFrame:
    """Return the long table of accuracies of a committed study."""
    return committed_tables(study)[0]


def committed_effects() -> pd.DataFrame:
    """Return the rows over all sizes of the ablation study's old table, with the columns that sentences need."""
    table = pd.read_csv(RESULTS / ABLATION / "effects.csv", dtype={"note": str})
    table = table.rename(columns={"group": "curve", "filter": "construction", "first": "accuracy"})
    table = table.rename(columns={"second": "other_accuracy"})
    table = table[table["over"] == ALL_SIZES]
    return table.assign(benchmark="blimp", method="lp", equivalent=pd.NA, note=table["note"].fillna(""))
