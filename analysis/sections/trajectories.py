"""Trajectories: accuracy over the words seen in training, repeats included; never in one fit with curves.

The points of a curve are independent runs; those of a trajectory are one run at several moments, so no line is fitted
and each moment has its own interval over runs.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student

from analysis.curves.fit import ALL_PAIRS, Curves, wilson_limits
from analysis.curves.units import units_of
from analysis.curves.variance import weighted_squares
from analysis.exhibits.exhibit import Exhibit
from analysis.exhibits.figures.curves import learning_curves
from analysis.exhibits.figures.style import MOST_TICKS, SIZE_LABEL, Chart, Frame, size_axis
from analysis.exhibits.sentences.curves import plural
from analysis.exhibits.tables.text import count
from analysis.measures.methods import count_judgements
from analysis.sections.section import Report, Section, contributes
from analysis.study.collect import Study
from analysis.study.judgements import Judgements
from eval.published import means_of_paradigms
from eval.scores.files import read_metadata
from pairscale.errors import RunError
from pairscale.sizes import written

KEYS = ["group", "size", "level", "name"]
APART = 0.12  # of an axis: between untrained models and the first that are trained


def read_trajectories(study: Study, judged: Judgements, ties: str) -> pd.DataFrame:
    """Read accuracies of the runs in `judged` at each scored snapshot; no rows where none was scored.

    One row per run, moment, level and name: group, size, level, name, run, seed, sample_words, moment, words_seen,
    accuracy, judgements (how many of equal weight it is a mean of). Score files are counted one by one. Raises RunError
    for a damaged file, and for one of other pairs, or of another policy, than the scores of the exported model.
    """
    paths = [
        {"run": run, "method": path.stem, "path": path, **_moment(path, judged, run)}
        for run in judged.runs.index
        if run in study.folders
        for path in sorted(study.folders[run].scores(judged.label).glob(f"{judged.method_of(run)}@*.parquet"))
    ]
    columns = [*KEYS, "run", "seed", "sample_words", "moment", "words_seen", "accuracy", "judgements"]
    if not paths:
        return pd.DataFrame(columns=columns)
    files = pd.DataFrame(paths)
    counted, _ = count_judgements(files, ties, judged.left_out)
    of_paradigms = counted.groupby(["run", "method", "paradigm"], sort=False)[["pairs", "right"]].sum().reset_index()
    phenomena = dict(zip(judged.pairs["paradigm"], judged.pairs["phenomenon"], strict=True))
    named = of_paradigms["run"] + "/" + of_paradigms["method"]
    for file, names in of_paradigms["paradigm"].groupby(named):
        if set(names) != phenomena.keys():
            raise RunError(f"{file}: other paradigms than the scores of the exported model; remove it to score again")
    accuracies = of_paradigms.assign(level="paradigm", name=of_paradigms["paradigm"], model=named)
    accuracies["accuracy"] = of_paradigms["right"] / of_paradigms["pairs"]
    points = means_of_paradigms(accuracies, phenomena)
    files = files.assign(model=files["run"] + "/" + files["method"])[["run", "model", "moment", "words_seen"]]
    runs = judged.runs[["group", "size", "seed", "sample_words"]]
    units = units_of(judged.pairs)
    counts = units.table[["level", "name"]].assign(judgements=1 / weighted_squares(1 / units.pairs, units.weights))
    return points.merge(counts, on=["level", "name"]).merge(files, on="model").join(runs, on="run")[columns]


def _moment(path: Path, judged: Judgements, run: str) -> dict[str, Any]:
    """Return moment and words_seen of a score file. Raises RunError where it does not match the final model's."""
    metadata = read_metadata(path)
    again = "remove the file, and python -m eval with scoring.snapshots=true scores it again"
    if "moment" not in metadata or "words_seen" not in metadata:
        raise RunError(f"{path}: does not say at how many words seen that was; {again}")
    if metadata["benchmark"]["digest"] != judged.digest:
        raise RunError(f"{path}: of another version of the benchmark than the scores of the exported model; {again}")
    policy = judged.policies[str(judged.runs.at[run, "group"])]
    own = metadata["policy"] | metadata["parameters"]
    if own != policy:
        other = [key for key in sorted(own.keys() | policy.keys()) if own.get(key) != policy.get(key)]
        differences = ", ".join(f"{key}={written(own.get(key))}, there {written(policy.get(key))}" for key in other)
        raise RunError(f"{path}: scored in another way than the exported model ({differences}); {again}")
    return {"moment": metadata["moment"], "words_seen": int(metadata["words_seen"])}


def trajectories(points: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """Average the runs of a group and size at each moment; `points`: as of `read_trajectories`.

    Returns group, size, level, name, moment, words_seen (a mean, as steps are whole), runs (those that have the
    moment), accuracy, low, high (over new runs: Wilson's limits with Student's quantile, as of
    analysis.curves.fit.spread_limits, and no closer than those of as many independent judgements; NaN for one run).
    Raises RunError where a run has two accuracies at one moment.
    """
    twice = points.duplicated([*KEYS, "run", "moment"])
    if twice.any():
        raise RunError(f"{points.loc[twice, 'run'].iloc[0]}: two accuracies at one moment of its training")
    grouped = points.groupby([*KEYS, "moment"], sort=False)
    table = grouped.agg(
        words_seen=("words_seen", "mean"), runs=("run", "size"), accuracy=("accuracy", "mean"),
        deviation=("accuracy", "std"), judgements=("judgements", "sum"),
    ).reset_index()  # fmt: skip
    runs, mean, deviation, judgements = (
        table[name].to_numpy(dtype=np.float64) for name in ("runs", "accuracy", "deviation", "judgements")
    )
    binomial = np.where(mean * (1 - mean) > 1e-9, mean * (1 - mean), np.inf)
    by_runs = student.ppf(0.5 + confidence / 2, np.maximum(runs - 1, 1)) ** 2 * deviation**2 / runs / binomial
    square = np.maximum(by_runs, norm.ppf(0.5 + confidence / 2) ** 2 / judgements)  # NaN for one run
    low, high = wilson_limits(mean, square)
    table = table.assign(low=low, high=high).drop(columns=["deviation", "judgements"])
    return table.sort_values([*KEYS, "words_seen"], kind="stable", ignore_index=True)


def trajectory_exhibit(study: Study, judged: Judgements, ties: str, confidence: float) -> Exhibit | None:
    """Return the exhibit of a benchmark whose runs have scored snapshots; None without any."""
    points = read_trajectories(study, judged, ties)
    if points.empty:
        return None
    rows = trajectories(points[points["level"] != "paradigm"], confidence)
    order = judged.runs.sort_values("sample_words", kind="stable")[["group", "size"]].drop_duplicates()
    cells = [(group, size) for group, size in order.itertuples(index=False) if _of(rows, group, size).any()]
    rank = pd.Series([cells.index(cell) for cell in zip(rows["group"], rows["size"], strict=True)], index=rows.index)
    rows = rows.iloc[np.lexsort([rows["words_seen"], rows["name"], rows["level"] != "overall", rank])]
    table = rows[["name", "group", "size", "words_seen", "runs", "accuracy", "low", "high"]]
    runs, missing = points["run"].nunique(), len(judged.runs) - points["run"].nunique()
    without = (
        f" {plural(missing, 'run')} of this benchmark are missing: n-gram models are counted in one pass and have no "
        "trajectory, and other runs kept no snapshot, or none was scored."
    )
    about = (
        f"Accuracy of {plural(runs, 'run')} against the {judged.unit} seen at moments of their training, repeats "
        "included, a panel for each size. These are not learning curves: their points are the same runs at several "
        f"moments, which depend on each other, so no slope is given.{without if missing else ''}"
    )
    definitions = {
        "Learning curves and trajectories": "The points of a curve are runs trained to their end, each on its own "
        "text; those of a trajectory are the same runs at several moments, on the same text and from the same start.",
        "Bands": f"{confidence:.0%} intervals for new runs at each moment (Wilson's limits with Student's quantile), "
        "wide where runs are few; those of a phenomenon show when it is chosen.",
        "Last point": "After the last step; the model that other sections score may be an earlier one "
        "(recipe.export=best).",
    }
    if (rows["words_seen"] == 0).any():
        definitions[f"0 {judged.unit}"] = (
            "The untrained models. A logarithmic axis has no 0: they stand apart at its left end, and no line leads "
            "from them."
        )
    seen = f"{judged.unit} seen"
    table = table.rename(columns={"name": "phenomenon", "group": "curve", "words_seen": seen})
    charts = {f"panel-{i}": partial(_panel, rows, points, cell, judged.unit) for i, cell in enumerate(cells)}
    heading = "Trajectories over training"
    return Exhibit(
        "trajectories", heading, about, table, cells={seen: count}, charts=charts, confidence=confidence,
        definitions=definitions,
    )  # fmt: skip


def _of(rows: pd.DataFrame, group: str, size: str) -> pd.Series:
    return (rows["group"] == group) & (rows["size"] == size)


def _panel(rows: pd.DataFrame, points: pd.DataFrame, cell: tuple[str, str], unit: str, *, frame: Frame) -> Chart:
    """Draw learning curves whose x is words seen; all panels have the same axes.

    Untrained models, at 0 words, are drawn left of all others, apart from their lines.
    """
    named = ", ".join(cell)
    trained = rows["words_seen"] > 0
    most, least = rows["words_seen"].max(), rows.loc[trained, "words_seen"].min()
    doublings = int(np.log2(most / least)) + 1
    apart = float(least / 2 ** max(1.0, doublings * APART))
    accuracies, runs = (
        table.rename(columns={"words_seen": "words"}).assign(
            group=np.where(_of(table, *cell), named, ""),
            pairs=ALL_PAIRS,
            phenomenon="",
            place=table["words_seen"].where(table["words_seen"] > 0, apart),
        )
        for table in (rows, points[points["level"] != "paradigm"])
    )
    of_cell = accuracies[accuracies["group"] == named]
    shown = (
        Curves(of_cell, accuracies, runs) if trained.all() else Curves(of_cell, accuracies, runs, accuracies[trained])
    )
    ticks = [float(most / 2**k) for k in range(0, doublings, -(-doublings // MOST_TICKS))]
    if not trained.all():
        ticks.append(apart)
    x = size_axis("place", accuracies["place"], unit, "seen in training, with repeats", ticks)
    x["axis"].labelExpr = f"datum.value < {least} ? '0' : {SIZE_LABEL}"
    return learning_curves(shown, named, x=x, unit=unit, frame=frame)


@contributes(60)
def training(section: Section, report: Report) -> list[Exhibit | None]:
    return [trajectory_exhibit(report.study, section.judged, report.config.ties, report.confidence)]
