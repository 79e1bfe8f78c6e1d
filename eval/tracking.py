"""Tracking of a run's scores: summary values and tables, and the record that `source=wandb` reads back.

    of pairs         accuracy/<label>/<method>/<phenomenon>    table accuracies/<label>/<method>
    of diagnostics   <measure>/<label>/<condition>             table measures/<label>
    of suites        overall|circuit|suite/<label>/<name>      table measures/<label>
    of ratings       Pearson|AUC|.../<label>/<score>           table measures/<label>

Measures are those of eval/diagnostics/measures.py (accuracy@5, sensitivity ...), eval/syntaxgym/measures.py and
eval/ratings/measures.py.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from eval.config import EvalConfig
from eval.kinds.registry import KINDS
from eval.kinds.work import ItemsWork
from eval.scores.accuracy import accuracies
from eval.scores.files import answers_metadata
from eval.scores.record import RECORD, scored_pairs, write_record
from eval.syntaxgym.measures import COMPARISON, PREDICTION
from train.config import described
from train.runs.folder import RunFolder
from train.trackers.tracker import Job, takes_results, tracked


def track_scores(run: RunFolder, config: EvalConfig) -> None:
    """Track all scores of `run`, of pairs and of items, if the tracker has a place for them.

    They are summary values and tables, all of them each time, so that nothing is there twice after scoring again.
    Raises the errors of `tracked` and of the readers of scores.
    """
    if not takes_results(config.logger.name):
        return
    scores, measures = list(scored_pairs(run)), dict(_measures(run))
    trained = run.read_config()
    with tracked(config.logger, Job("eval", run.path.name, config.study, run.path, described(trained))) as tracker:
        values: dict[str, Any] = {}
        for scored in scores:
            name = f"{scored.label}/{scored.method}"
            table = accuracies(scored.rows, config.ties)
            tracker.table(f"accuracies/{name}", table)
            for row in table[table["level"] != "paradigm"].itertuples():
                values[f"accuracy/{name}/{row.name}"] = row.accuracy
        for label, table in measures.items():
            tracker.table(f"measures/{label}", table)
            for row in table[~table["level"].isin([PREDICTION, COMPARISON])].itertuples():
                values[f"{row.level}/{label}/{row.name}"] = row.accuracy
        manifest = run.read_manifest()
        if manifest.get("sample_words") or manifest.get("tokens"):  # tokens: of a model that came trained
            values["sample_words"] = manifest.get("sample_words") or manifest["tokens"]
        tracker.summarise(values | {RECORD: write_record(run, scores)})


def _measures(run: RunFolder) -> Iterator[tuple[str, pd.DataFrame]]:
    """Label and measures of each benchmark of items that a run is scored on: level, name, accuracy."""
    for folder in sorted(run.scores("").glob("*")):
        for kind in KINDS.values():
            if issubclass(kind, ItemsWork) and answers_metadata(folder, *kind.files) is not None:
                yield folder.name, kind.measured(folder)
