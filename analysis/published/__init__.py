"""The papers' own results, a CSV file each (sources and licences: NOTICE), and their reader.

slopes.csv: slopes per doubling of Warstadt et al. 2020, section 6.3. perplexity.csv: perplexities of their note 16.
"""

from importlib.resources import files

import pandas as pd


def published_file(name: str) -> pd.DataFrame:
    """Return the table NAME.csv of this folder."""
    with (files("analysis.published") / f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file)
