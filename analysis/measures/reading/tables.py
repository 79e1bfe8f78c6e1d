"""Tables of what surprisal adds: by model, by curve and size, and by curve over text and over perplexity."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.curves.designs import Design, design_of, same_text, sizes_of
from analysis.curves.intervals import Interval, no_interval
from analysis.curves.variance import Array, Numbers
from analysis.measures.reading.config import SENTENCE, TEXT, ReadingConfig
from analysis.measures.reading.delta import BOTH, WORDS, Estimate, Nothing, contributions, estimate
from analysis.measures.reading.predictors import FREQUENCY, SURPRISAL, Rows
from analysis.measures.reading.regressions import Fit, Formulas, fit_rows
from analysis.measures.reading.surprisals import Model
from analysis.measures.reading.u_turn import slope, turn

MIN_TEXTS = 8  # from which texts are the clusters: fewer say little about how texts vary
SIZES, PERPLEXITY = "training text", "perplexity"  # axes of curves


def cluster_of(rows: Rows, config: ReadingConfig) -> tuple[str, Numbers]:
    """Return what the interval over words draws, TEXT or SENTENCE, and the (N,) number of it of each row."""
    texts = rows.table["text"].nunique()
    unit = config.clusters or (TEXT if texts >= MIN_TEXTS else SENTENCE)
    return unit, rows.table[unit].factorize()[0].astype(np.intp)


def fit_models(
    rows: Rows,
    models: Mapping[str, Model],
    frequency: Callable[[str], Array],
    config: ReadingConfig,
    progress: Callable[[str], None] = lambda name: None,
) -> dict[str, Fit]:
    """Fit the regressions of each model; `frequency`: (W,) log-frequencies of words for the model of a name."""
    formulas, (_, cluster) = Formulas.of(config), cluster_of(rows, config)
    fits = {}
    for name, model in models.items():
        progress(name)
        surprisal = rows.of(model.words["surprisal"].to_numpy(), SURPRISAL)
        table = pd.concat([rows.table, rows.of(frequency(name), FREQUENCY), surprisal], axis=1)
        fits[name] = fit_rows(table, formulas, config, cluster)
    return fits


def delta_tables(
    fits: Mapping[str, Fit], models: Mapping[str, Model], runs: pd.DataFrame, cluster: Numbers, confidence: float
) -> dict[str, pd.DataFrame]:
    """Return the tables `runs`, `means` and `curves` (analysis.measures.reading.result.Result).

    fits: by the name of a model. runs: rows of Study.runs of those models that are on a curve. cluster: (N,) of rows.
    """
    of_clusters = dict(
        zip(fits, contributions(np.stack([fit.difference for fit in fits.values()]), cluster), strict=True)
    )
    perplexity = {name: models[name].perplexity for name in fits}
    nothing = next(iter(fits.values())).nothing  # of all models: they have the same rows and formulas
    rows = [_of_model(name, fit, of_clusters[name], runs, perplexity[name], confidence) for name, fit in fits.items()]
    means: list[dict[str, Any]] = []
    curves: list[dict[str, Any]] = []
    for group, of in runs.groupby("group", sort=False):
        design = design_of(of)
        part = np.stack([of_clusters[str(run)] for run in of.index])
        means += [{"group": group, **row} for row in _of_sizes(of, part, design, perplexity, confidence, nothing)]
        words = np.log2([perplexity[str(run)] for run in of.index])
        for axis, on in ((SIZES, design), (PERPLEXITY, dataclasses.replace(design, x=words))):
            curves.append({"group": group, "axis": axis, **_of_curve(part, on, axis == SIZES, confidence)})
    tables = {"runs": pd.DataFrame(rows), "means": pd.DataFrame(means), "curves": pd.DataFrame(curves)}
    return {name: table.reindex(columns=_COLUMNS[name]) for name, table in tables.items()}


_COLUMNS = {
    "runs": ["model", "group", "size", "sample_words", "seed", "perplexity", "valid_ppl", "delta", "low", "high",
             "coefficient", "coefficient_low", "coefficient_high", "note"],
    "means": ["group", "size", "sample_words", "perplexity", "runs", "delta", "low", "high", "over", "low_words",
              "high_words"],
    "curves": ["group", "axis", "runs", "sizes", "slope", "low", "high", "over", "turn", "at", "before", "before_low",
               "before_high", "after", "after_low", "after_high", "side_confidence", "breaks", "note"],
}  # fmt: skip


def _of_model(
    name: str, fit: Fit, of_clusters: Array, runs: pd.DataFrame, perplexity: float, confidence: float
) -> dict[str, Any]:
    delta = estimate(np.ones(1), of_clusters[None], None, Interval.NONE, fit.nothing)
    low, high = delta.limits(WORDS, confidence)
    on_curve = (
        dict(runs.loc[name, ["group", "size", "sample_words", "seed", "valid_ppl"]]) if name in runs.index else {}
    )
    slope = Estimate(fit.coefficient, {WORDS: (fit.error, delta.errors[WORDS][1])})
    limits = dict(zip(("coefficient_low", "coefficient_high"), slope.limits(WORDS, confidence), strict=True))
    return {
        "model": name, "group": name, **on_curve, "perplexity": perplexity, "delta": delta.value, "low": low,
        "high": high, "coefficient": fit.coefficient, **limits, "note": fit.note,
    }  # fmt: skip


def _of_sizes(
    runs: pd.DataFrame,
    of_clusters: Array,
    design: Design,
    perplexity: Mapping[str, float],
    confidence: float,
    nothing: Nothing,
) -> list[dict[str, Any]]:
    """Return the mean over the runs of each size, with its interval: over runs, too, where the size has several."""
    rows = []
    for number, size in enumerate(sizes_of(runs)):
        of = design.size == number
        several = of.sum() > 1 and not design.trajectory and not same_text(design)
        method = Interval.T_SIZES if several else Interval.NONE
        mean = estimate(np.full(of.sum(), 1 / of.sum()), of_clusters[of], design.of(of), method, nothing)
        low, high = mean.limits(mean.over, confidence)
        low_words, high_words = mean.limits(WORDS, confidence)
        known = [perplexity[str(run)] for run in runs.index[of]]
        rows.append({
            "size": size, "sample_words": float(runs.loc[of, "sample_words"].mean()),
            "perplexity": float(np.exp2(np.log2(known).mean())), "runs": int(of.sum()), "delta": mean.value,
            "low": low, "high": high, "over": mean.over, "low_words": low_words, "high_words": high_words,
        })  # fmt: skip
    return rows


def _of_curve(of_clusters: Array, design: Design, over_sizes: bool, confidence: float) -> dict[str, Any]:
    """Return the slope of a curve and its test for a U-turn (True, False, or None where it cannot be tested)."""
    row: dict[str, Any] = {"runs": len(design.x), "sizes": len(design.counts), "turn": None}
    if len(design.counts) < 2:
        return {**row, "note": no_interval(design, "t")}
    line = slope(of_clusters, design, over_sizes)
    low, high = line.limits(line.over, confidence)
    row |= {"slope": line.value, "low": low, "high": high, "over": line.over, "note": ""}
    if line.over != BOTH:
        row["note"] = no_interval(design, "t")
    found = turn(of_clusters, design, over_sizes)
    if found is None:
        return {**row, "note": row["note"] or "on neither side of a break runs show a slope with an interval"}
    limits = [of.limits(of.over, found.confidence) for of in (found.before, found.after)]
    return {
        **row, "turn": found.shown, "at": float(2**found.at), "breaks": found.breaks,
        "before": found.before.value, "before_low": limits[0][0], "before_high": limits[0][1],
        "after": found.after.value, "after_low": limits[1][0], "after_high": limits[1][1],
        "side_confidence": found.confidence,
    }  # fmt: skip
