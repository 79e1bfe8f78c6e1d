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
from train.config import described
from train.runs.folder import RunFolder
from train.trackers.tracker import Job, takes_results, tracked

_IN_TABLES_ALONE = ["paradigm", PREDICTION, COMPARISON]  # levels with too many rows for summary values


def track_scores(run: RunFolder, config: EvalConfig) -> None:
    """Track all scores of `run`, of pairs and of items, if the tracker has a place for them.

    They are summary values and tables, all of them each time, so that nothing is there twice after scoring again.
    Raises the errors of `tracked` and of the readers of scores.
    """
    if not takes_results(config.logger.name):
        return
    tables = list(_tables(run, config.ties))
    job = Job("eval", run.path.name, config.study, run.path, described(run.read_config()))
    with tracked(config.logger, job) as tracker:
        values = {}
        for kind, label, table in tables:
            tracker.table(f"{kind}/{label}", table)
            for level, name, accuracy in table[["level", "name", "accuracy"]].itertuples(index=False):
                if level not in _IN_TABLES_ALONE:
                    values[f"{'accuracy' if kind == 'accuracies' else level}/{label}/{name}"] = accuracy
        manifest = run.read_manifest()
        if words := manifest.get("sample_words") or manifest.get("tokens"):  # tokens: of a model that came trained
            values["sample_words"] = words
        tracker.summarise(values)


def _tables(run: RunFolder, ties: str) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield kind, label, and level, name and accuracy of each method of pairs, and of each benchmark of items."""
    for folder in sorted(run.scores("").glob("*")):
        for method, scores in pair_scores(folder):
            yield "accuracies", f"{folder.name}/{method}", accuracies(scores, ties)
        for kind in KINDS.values():
            if issubclass(kind, ItemsWork) and answers_metadata(folder, *kind.files) is not None:
                yield "measures", folder.name, kind.measured(folder)
