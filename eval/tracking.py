"""Tracking of a run's scores: summary values and tables.

    of pairs         accuracy/<label>/<method>/<phenomenon>    table accuracies/<label>/<method>
    of diagnostics   <measure>/<label>/<condition>             table measures/<label>
    of suites        overall|circuit|suite/<label>/<name>      table measures/<label>
    of ratings       Pearson|AUC|.../<label>/<score>           table measures/<label>

Measures are those of eval/diagnostics/measures.py (accuracy@5, sensitivity ...), eval/syntaxgym/measures.py and
eval/ratings/measures.py.
"""

from collections.abc import Iterator

import pandas as pd

from eval.config import EvalConfig
from eval.kinds.items import KINDS, ItemsWork
from eval.scores.accuracy import accuracies
from eval.scores.files import answers_metadata, pair_scores
from eval.syntaxgym.measures import COMPARISON, PREDICTION
from train.runs.folder import RunFolder
from train.runs.provenance import job_of
from train.trackers.tracker import takes_results, tracked

_IN_TABLES_ALONE = ["paradigm", PREDICTION, COMPARISON]  # levels with too many rows for summary values


def track_scores(run: RunFolder, config: EvalConfig) -> None:
    """Track all scores of `run`, of pairs and of items, if the tracker has a place for them.

    They replace those of earlier scoring, so that nothing is there twice. Raises the errors of `tracked` and of the
    readers of scores.
    """
    if not takes_results(config.logger.name):
        return
    manifest = run.read_manifest()
    words = manifest.get("sample_words") or manifest.get("tokens")  # tokens: of a model that came trained
    values = {"sample_words": words} if words else {}
    for kind, label, table in _tables(run, config.ties):
        values[f"{kind}/{label}"] = table
        rows = table[~table["level"].isin(_IN_TABLES_ALONE)]
        levels = "accuracy" if kind == "accuracies" else rows["level"]
        values |= dict(zip(levels + f"/{label}/" + rows["name"], rows["accuracy"], strict=True))
    with tracked(config.logger, job_of("eval", run, run.read_config(), config.study)) as tracker:
        tracker.summarise(values)


def _tables(run: RunFolder, ties: str) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield kind, label, and level, name and accuracy of each method of pairs, and of each benchmark of items."""
    for folder in sorted(run.scores("").glob("*")):
        for method, scores in pair_scores(folder):
            yield "accuracies", f"{folder.name}/{method}", accuracies(scores, ties)
        for kind in KINDS.values():
            if issubclass(kind, ItemsWork) and answers_metadata(folder, *kind.files) is not None:
                yield "measures", folder.name, kind.measured(folder)
