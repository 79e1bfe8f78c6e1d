"""The papers' own results, a file each (sources and licences: NOTICE), and their readers.

slopes.csv: slopes per doubling of Warstadt et al. 2020, section 6.3. perplexity.csv: perplexities of their note 16.
"""

from importlib.resources import files
from typing import Any

import pandas as pd
import yaml


def published_file(name: str) -> pd.DataFrame:
    """Return the table NAME.csv of this folder."""
    with (files("analysis.published") / f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file)


def published_values(name: str) -> dict[str, Any]:
    """Return the values of NAME.yaml in this folder."""
    values: dict[str, Any] = yaml.safe_load((files("analysis.published") / f"{name}.yaml").read_text(encoding="utf-8"))
    return values
