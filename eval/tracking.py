"""Send a run's scores to its tracker as summary values and tables, and those of its snapshots as curves.

    scores of        summary values                            tables
    pairs            accuracy/<label>/<method>/<phenomenon>    accuracies/<label>/<method>
    diagnostics      <measure>/<label>/<condition>             measures/<label>
    suites           overall|circuit|suite/<label>/<name>      measures/<label>
    ratings          Pearson|AUC|.../<label>/<score>           measures/<label>
    snapshots        (curves over words seen) snapshots/<label>/<method>/<phenomenon>

The measures are defined in eval/diagnostics/measures.py (accuracy@5, sensitivity ...), eval/syntaxgym/measures.py and
eval/ratings/measures.py.
"""

from collections.abc import Iterator

import pandas as pd

from eval.config import EvalConfig
from eval.kinds.items import KINDS, ItemsWork
from eval.scores.accuracy import accuracies, snapshot_point
from eval.scores.files import answers_metadata, pair_scores
from eval.syntaxgym.measures import COMPARISON, PREDICTION
from train.runs.folder import RunFolder
from train.runs.provenance import job_of
from train.trackers.tracker import Tracker, takes_results, tracked, trackers

_TABLE_LEVELS = ["paradigm", PREDICTION, COMPARISON]  # only in tables, because there are too many for summary values


def track_scores(run: RunFolder, config: EvalConfig) -> None:
    """Send all scores of `run` to the tracker, if there is one.

    Results replace those that were sent before. Points of snapshots are sent again, and lie on the earlier ones.
    Raises the same errors as `tracked`, and RunError if a score file is damaged.
    """
    if trackers()[config.logger.name] is Tracker:
        return
    manifest = run.read_manifest()
    words = manifest.get("sample_words") or manifest.get("tokens")  # pretrained models have tokens
    values = {"sample_words": words} if words else {}
    for kind, label, table in _tables(run, config.ties) if takes_results(config.logger.name) else ():
        values[f"{kind}/{label}"] = table
        rows = table[~table["level"].isin(_TABLE_LEVELS)]
        levels = "accuracy" if kind == "accuracies" else rows["level"]
        values |= dict(zip(levels + f"/{label}/" + rows["name"], rows["accuracy"], strict=True))
    with tracked(config.logger, job_of("eval", run, run.read_config(), config.study)) as tracker:
        for step in run.snapshots:
            if point := snapshot_point(run, step, config.ties):
                tracker.log(point)
        tracker.summarise(values)


def _tables(run: RunFolder, ties: str | None) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield the kind, label and table (level, name, accuracy) of each method for pairs, and of each other benchmark."""
    for folder in sorted(run.scores("").glob("*")):
        for method, scores in pair_scores(folder):
            yield "accuracies", f"{folder.name}/{method}", accuracies(scores, ties)
        for kind in KINDS.values():
            if issubclass(kind, ItemsWork) and answers_metadata(folder, *kind.files) is not None:
                yield "measures", folder.name, kind.measured(folder)
