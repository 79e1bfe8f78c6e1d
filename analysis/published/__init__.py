"""The papers' own results, a CSV file each (sources and licences: NOTICE), and their readers."""

from __future__ import annotations

from importlib.resources import files

import pandas as pd


def published_file(name: str) -> pd.DataFrame:
    """Return the table NAME.csv of this folder."""
    with (files("analysis.published") / f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file)


def published_slopes() -> pd.DataFrame:
    """Return slopes of Warstadt et al. 2020, section 6.3, per doubling: model, phenomenon, slope, source."""
    return published_file("slopes")


def published_perplexity() -> pd.DataFrame:
    """Return perplexities of Warstadt et al. 2020, note 16: model, words, perplexity, source."""
    return published_file("perplexity")
