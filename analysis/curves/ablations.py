"""Effects of ablations: what runs without a construction know less than runs without as much other text.

Runs of one size and seed are cut from one permutation of the text and begin with the same weights, so that their
outcomes are subtracted, pair by pair, before anything is averaged or squared: the paired t test over runs. Sizes weigh
equally, each with a spread of its own (Satterthwaite 1946; Welch 1947).
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from analysis.config import CurvesConfig
from analysis.curves.comparisons import mean_method
from analysis.curves.designs import Design, design_of, sizes_of
from analysis.curves.intervals import Interval, at_least, contrast_errors, contrast_variance, run_terms, t_limits
from analysis.curves.p_values import equivalence, holm, two_sided
from analysis.curves.units import Units, paradigm_accuracies, units_of
from analysis.curves.variance import Array
from analysis.curves.words_to_people import fieller
from analysis.study.judgements import Judgements
from corpora.ablation.config import CONTROL, NONE, REMOVE

CHANCE = 0.5
ALL_SIZES = "all"
FULL_TEXT = "full text"
EVIDENCE = "evidence"  # a level: paradigms by what the construction is to them
DIRECT, SAME_PHENOMENA, ELSEWHERE = "direct", "same phenomena", "elsewhere"
NOT_LEARNED = "accuracy with all of the construction may be at chance: no share"
COLUMNS = [
    "base", "filter", "action", "dose", "against", "size", "level", "name", "phenomenon", "paradigms", "n_pairs",
    "direct", "runs", "treated", "compared", "difference", "low", "high", "low_new_pairs", "high_new_pairs", "p",
    "p_holm", "margin", "p_tost", "p_equivalent", "share", "share_low", "share_high", "share_note", "note",
]  # fmt: skip


@dataclass(frozen=True)
class Contrast:
    """Two kinds of runs to be compared: their rows in Judgements.runs, in one order of size and seed."""

    named: dict[str, str]  # base, filter, action, dose, against
    treated: list[int]
    compared: list[int]
    note: str  # on runs without a partner


def effects(judged: Judgements, config: CurvesConfig, direct: Mapping[str, Collection[str]]) -> pd.DataFrame:
    """Compare runs of each ablation with their matched controls and with those of the full text.

    direct: by filter, the paradigms that test the construction itself. One row of COLUMNS for each base, filter,
    action, dose, kind of runs that they are compared with ("control", "full text"), size ("all": the mean over sizes)
    and unit: overall, evidence (DIRECT; SAME_PHENOMENA, the other paradigms of their phenomena; ELSEWHERE), phenomena,
    paradigms. treated, compared: mean accuracies. difference: treated minus compared, with its limits over new samples
    and initialisations for these pairs, and for new pairs too; p, p_holm: that it is 0 (Holm within the rows of one
    level); p_tost, p_equivalent: that it is not within the margin (two one-sided tests). share: of what was learned,
    (treated - CHANCE) / (compared - CHANCE), with Fieller's limits; NaN, with the reason, where `compared` may be at
    chance. runs: pairs of runs. note: why there is no interval, and which runs have no partner.
    """
    rows = []
    plain = units_of(judged.pairs)
    for contrast in _contrasts(judged.runs):
        tests = direct.get(contrast.named["filter"], ())
        units = _with_evidence(plain, tests)
        sizes = sizes_of(judged.runs.iloc[contrast.treated])
        for size in [ALL_SIZES, *(sizes if len(sizes) > 1 else [])]:
            rows.append(_compared(judged, contrast, size, units, config))
            rows[-1]["direct"] = (rows[-1]["level"] == "paradigm") & rows[-1]["name"].isin(list(tests))
    if not rows:
        return pd.DataFrame(columns=COLUMNS)
    return pd.concat(rows, ignore_index=True)[COLUMNS]


def _contrasts(runs: pd.DataFrame) -> Iterator[Contrast]:
    """Yield what is compared: removal with its control, and every ablation with the full text."""
    place = {run: row for row, run in enumerate(runs.index)}
    for base, of_base in runs.groupby("base", sort=False):
        kinds = {
            tuple(map(str, kind)): rows for kind, rows in of_base.groupby(["filter", "action", "dose"], sort=False)
        }
        full = next((rows for (_, action, _), rows in kinds.items() if action == NONE), None)
        for (construction, action, dose), rows in kinds.items():
            control = kinds.get((construction, CONTROL, dose)) if action == REMOVE else None
            for against, others in ((CONTROL, control), (FULL_TEXT, full)):
                if action == NONE or others is None:
                    continue
                named = {"base": str(base), "filter": construction, "action": action, "dose": dose, "against": against}
                pairs, note = _paired(rows, others)
                if pairs:
                    yield Contrast(named, [place[one] for one, _ in pairs], [place[other] for _, other in pairs], note)


def _paired(rows: pd.DataFrame, others: pd.DataFrame) -> tuple[list[tuple[str, str]], str]:
    """Return pairs of runs of one size and seed, small sizes first, and a note on the runs without a partner."""
    of = [
        dict(zip(zip(table["size"], table["seed"], strict=True), table.index, strict=True)) for table in (rows, others)
    ]
    order = {size: number for number, size in enumerate(sizes_of(rows))}
    common = sorted(of[0].keys() & of[1].keys(), key=lambda key: (order[key[0]], key[1]))
    alone = len(of[0]) + len(of[1]) - 2 * len(common)
    return [(of[0][key], of[1][key]) for key in common], f"{alone} runs without a partner left out" if alone else ""


def _with_evidence(units: Units, direct: Collection[str]) -> Units:
    """Return units with the means over paradigms that test the construction, and over the others, if any do."""
    table = units.table
    paradigms = table[table["level"] == "paradigm"].reset_index(drop=True)
    tests = paradigms["name"].isin(list(direct)).to_numpy()
    if not tests.any():
        return units
    related = paradigms["phenomenon"].isin(paradigms.loc[tests, "phenomenon"]).to_numpy() & ~tests
    parts = {DIRECT: tests, SAME_PHENOMENA: related, ELSEWHERE: ~tests & ~related}
    kept = {name: of for name, of in parts.items() if of.any()}
    rows = [
        {
            "level": EVIDENCE,
            "name": name,
            "phenomenon": "",
            "paradigms": int(of.sum()),
            "n_pairs": int(paradigms.loc[of, "n_pairs"].sum()),
        }
        for name, of in kept.items()
    ]
    weights = np.stack([of / of.sum() for of in kept.values()], axis=1)
    return replace(
        units,
        table=pd.concat([table, pd.DataFrame(rows)], ignore_index=True),
        weights=np.concatenate([units.weights, weights], axis=1),
    )


def _compared(judged: Judgements, contrast: Contrast, size: str, units: Units, config: CurvesConfig) -> pd.DataFrame:
    """Return the rows of `effects` for one contrast and size."""
    runs = judged.runs.iloc[contrast.treated]
    of = np.ones(len(runs), np.bool_) if size == ALL_SIZES else (runs["size"].astype(str) == size).to_numpy()
    treated, compared = (
        judged.outcome[np.array(rows)[of]].astype(np.float64) for rows in (contrast.treated, contrast.compared)
    )
    design = design_of(runs[of])
    columns = difference(treated, compared, design, units, config)
    columns |= surviving_share(treated, compared, design, units, config)
    _, note = mean_method(design)
    table = units.table.assign(**contrast.named, size=size, runs=int(of.sum()), margin=config.ablation_margin)
    table = table.assign(**columns, note="; ".join(filter(None, (note, contrast.note))))
    for name, corrected in (("p", "p_holm"), ("p_tost", "p_equivalent")):
        table[corrected] = np.nan
        for level in table["level"].unique():
            rows = (table["level"] == level).to_numpy()
            table.loc[rows, corrected] = holm(table.loc[rows, name].to_numpy(dtype=float))
    return table


def difference(treated: Array, compared: Array, design: Design, units: Units, config: CurvesConfig) -> dict[str, Array]:
    """Return mean accuracies over sizes, their difference, its limits and p values, each (U,).

    treated, compared: (R, P) outcomes of paired runs; design: of the pairs of runs. Limits and p values are NaN where
    the runs give no interval.
    """
    weights = design.mean_weights
    accuracies = [paradigm_accuracies(outcome, units.bounds) @ units.weights for outcome in (treated, compared)]
    change, y = treated - compared, accuracies[0] - accuracies[1]
    columns = {"treated": weights @ accuracies[0], "compared": weights @ accuracies[1], "difference": weights @ y}
    method, _ = mean_method(design)
    signed = replace(units, differences=True)
    errors = contrast_errors(method, weights, y, change, design, signed, config.confidence)
    estimate = columns["difference"]
    limits = t_limits(estimate, errors.runs, errors.degrees, config.confidence)
    wider = at_least(t_limits(estimate, errors.both, errors.degrees_both, config.confidence), limits)
    columns |= {"low": limits[0], "high": limits[1], "low_new_pairs": wider[0], "high_new_pairs": wider[1]}
    columns["p"] = two_sided(estimate, errors.runs, errors.degrees)
    one_sided = contrast_errors(method, weights, y, change, design, signed, 0.9)  # tests at 5%: limits of 90%
    columns["p_tost"] = equivalence(estimate, one_sided.runs, one_sided.degrees, config.ablation_margin)
    return columns


def surviving_share(
    treated: Array, compared: Array, design: Design, units: Units, config: CurvesConfig
) -> dict[str, Any]:
    """Return the share of what `compared` learned that `treated` knows, its limits and why there are none, each (U,).

    The ratio of mean accuracies above chance, by Fieller 1954 with the covariance of paired runs, for these pairs.
    """
    weights = design.mean_weights
    method, _ = mean_method(design)
    y = [paradigm_accuracies(outcome, units.bounds) @ units.weights for outcome in (treated, compared)]
    top, bottom = (weights @ accuracies - CHANCE for accuracies in y)
    none = np.full(len(top), np.nan)
    if method == Interval.NONE:
        return {"share": none, "share_low": none, "share_high": none, "share_note": "no interval"}
    known = [
        contrast_variance(method, weights, accuracies, outcome, design, units)
        for accuracies, outcome in zip(y, (treated, compared), strict=True)
    ]
    variances, degrees = [of[0] for of in known], np.minimum(known[0][1], known[1][1])
    terms = run_terms(method, design, weights)
    spread = np.sqrt(terms.variance(y[0]) * terms.variance(y[1]))
    correlation = terms.covariance(terms, y[0], y[1]) / np.where(spread > 0, spread, np.inf)
    covariance = correlation * np.sqrt(variances[0] * variances[1])
    quantile = np.asarray(student.ppf(0.5 + config.confidence / 2, degrees))
    low, high, bounded = fieller(top, bottom, (*variances, covariance), quantile)
    learned = bounded & (bottom > 0)
    return {
        "share": np.where(learned, top / np.where(learned, bottom, 1), np.nan),
        "share_low": np.where(learned, low, np.nan),
        "share_high": np.where(learned, high, np.nan),
        "share_note": np.where(learned, "", NOT_LEARNED),
    }
