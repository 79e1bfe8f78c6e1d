"""The hierarchical model of a study: its tables, beside the default analysis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pandas as pd

from analysis.config import KEEP, CurvesConfig
from analysis.curves.fit import ALL_PAIRS, Curves, fit_curves
from analysis.curves.groups import HOW_TO_KEEP, NO_INTERVAL
from analysis.curves.hierarchical.counts import counts_of, without_lone_runs
from analysis.curves.hierarchical.diagnosis import Diagnosis
from analysis.study.judgements import Judgements
from pairscale.errors import InputError
from pairscale.machine import available_cores

PACKAGES = ("numpyro", "arviz-stats")
OF_SLOPES = ["low", "high", "rises"]  # what rests on the width of the posterior
OF_DIFFERENCES = ["low", "high", "steeper"]
SAME, OTHER, APART = "", "another direction", "no value in common"  # an interval beside the default one


@dataclass(frozen=True)
class Hierarchical:
    """What the hierarchical model says of a study.

    slopes: posterior.SLOPE_COLUMNS, note (why it has no interval), and of the default analysis of the same runs
    default, default_low, default_high (for these pairs) and beside (SAME, OTHER: one interval holds 0 or lies on the
    other side of it, APART). differences: posterior.DIFFERENCE_COLUMNS and note. ranks: posterior.rank_rows where all
    phenomena, or paradigms, have an interval. predictive: checks.predictive_rows. diagnosis: of the sampler. notes:
    groups and sizes that are left out.
    """

    slopes: pd.DataFrame
    differences: pd.DataFrame
    ranks: pd.DataFrame
    predictive: pd.DataFrame
    diagnosis: Diagnosis
    notes: list[str]


def check_sampler() -> None:
    """Raise InputError if the sampler is not installed."""
    for package in PACKAGES:
        try:
            version(package)
        except PackageNotFoundError:
            raise InputError(
                f"analysis.model=hierarchical: needs {package}, which is not installed; pip install "
                '"pairscale[bayes]", or analysis.model=default'
            ) from None


def iterations(config: CurvesConfig) -> int:
    """Return how many iterations `fit_hierarchical` reports in all."""
    from analysis.curves.hierarchical.sampling import Sampling  # an extra

    return Sampling(config.chains, config.draws, config.draws).iterations


def fit_hierarchical(
    judged: Judgements, curves: Curves, config: CurvesConfig
) -> Iterator[tuple[int, Hierarchical | str | None]]:
    """Sample the model; yield (iterations done since, None), and at the end the results, or why there are none.

    `curves`: of the default analysis of all runs. Raises InputError if the sampler is not installed.
    """
    check_sampler()
    from analysis.curves.hierarchical.checks import diagnose, predictive_rows  # what needs the extra
    from analysis.curves.hierarchical.posterior import difference_rows, rank_rows, slope_rows
    from analysis.curves.hierarchical.sampling import Sampling

    judged, alone = without_lone_runs(judged)
    counts = counts_of(judged)
    if isinstance(counts, str):
        yield 0, counts
        return
    if alone:
        curves = fit_curves(judged, config)
    sampling = Sampling(config.chains, config.draws, config.draws, config.seed, min(config.chains, available_cores()))
    for done, posterior in sampling.sample(counts):
        if posterior is None:
            yield done, None
            continue
        slopes, differences = slope_rows(posterior, config.confidence), difference_rows(posterior, config.confidence)
        ranks = rank_rows(posterior, config.acquisition_margin)
        ranks, slopes = without_ranks(ranks, without_cautioned(slopes, OF_SLOPES, config))
        rng = np.random.default_rng([config.seed, 2])
        yield done, Hierarchical(
            beside_default(slopes, curves), without_cautioned(differences, OF_DIFFERENCES, config),
            ranks, predictive_rows(posterior, config.confidence, rng),
            diagnose(posterior, slopes, differences), [*alone, *counts.notes],
        )  # fmt: skip


def without_cautioned(rows: pd.DataFrame, columns: list[str], config: CurvesConfig) -> pd.DataFrame:
    """Leave out `columns` of rows with a caution, unless analysis.cautioned_limits=keep.

    The column `note` says why; "" in other rows, which keep their caution.
    """
    left_out = rows["caution"].ne("") & (config.cautioned_limits != KEEP)
    why = f"{NO_INTERVAL}intervals may contain the truth in fewer, or more, studies than they say: " + rows["caution"]
    note = (why + "; " + HOW_TO_KEEP.format(KEEP)).where(left_out, "")
    kept = {column: rows[column].mask(left_out) for column in columns}
    return rows.assign(**kept, caution=rows["caution"].mask(left_out, ""), note=note)


def without_ranks(ranks: pd.DataFrame, slopes: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Leave out all ranks of a group's phenomena, or paradigms, of which one has no interval: they rest on it, too."""
    keys = ["group", "level"]
    left_out = pd.MultiIndex.from_frame(slopes.loc[slopes["note"] != "", keys].drop_duplicates())
    no_ranks = pd.MultiIndex.from_frame(slopes[keys]).isin(left_out)
    kept = {column: slopes[column].mask(no_ranks) for column in ("rank", "rank_low", "rank_high")}
    rows = ranks[~pd.MultiIndex.from_frame(ranks[keys]).isin(left_out)].reset_index(drop=True)
    return rows, slopes.assign(**kept)


def beside_default(slopes: pd.DataFrame, curves: Curves) -> pd.DataFrame:
    """Add the columns default, default_low, default_high and beside; `beside` is SAME where one is missing."""
    default = curves.slopes[curves.slopes["pairs"] == ALL_PAIRS]
    keys, limits = ["group", "level", "name"], {"slope": "default", "low": "default_low", "high": "default_high"}
    table = slopes.merge(default[[*keys, *limits]].rename(columns=limits), on=keys, how="left", validate="1:1")
    known = table["default_low"].notna() & table["low"].notna()
    signs = [_sign(table[low], table[high]) for low, high in (("low", "high"), ("default_low", "default_high"))]
    apart = (table["low"] > table["default_high"]) | (table["high"] < table["default_low"])
    other = known & (signs[0] != signs[1])
    return table.assign(beside=np.select([known & apart, other], [APART, OTHER], SAME))


def _sign(low: pd.Series, high: pd.Series) -> pd.Series:
    return (low > 0).astype(int) - (high < 0).astype(int)
