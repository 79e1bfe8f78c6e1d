"""Read results copied from papers, which are in one file each. NOTICE lists sources and licences.

slopes.csv has the slopes per doubling in Warstadt et al. 2020, section 6.3. perplexity.csv has the perplexities in
their note 16.
"""

from pathlib import Path
from typing import Any

import pandas as pd
import yaml


def published_file(name: str) -> pd.DataFrame:
    """Return the table NAME.csv of this folder."""
    return pd.read_csv(Path(__file__).with_name(f"{name}.csv"))


def published_values(name: str) -> dict[str, Any]:
    """Return the values of NAME.yaml in this folder."""
    values: dict[str, Any] = yaml.safe_load(Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8"))
    return values
