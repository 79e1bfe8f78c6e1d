"""What W&B is told of a run's scores: accuracies as summary values and tables, and the record that is read back."""

from __future__ import annotations

from typing import Any

import yaml

from eval.accuracy import accuracies
from eval.config import EvalConfig
from eval.record import scored_pairs, write_record
from train.runs import RunFolder
from train.tracking import RECORD, described, tracked


def track_scores(run: RunFolder, config: EvalConfig) -> None:
    """Track all scores of pairs that `run` has, where config.logger asks for it.

    Everything goes into the W&B run's summary, not its history, and all of it each time: scoring again, or tracking
    again what was scored before, replaces and adds nothing twice. Raises what `tracked` and readers of scores do.
    """
    if config.logger.name != "wandb":
        return
    scores = list(scored_pairs(run))
    trained = yaml.safe_load(run.config.read_text(encoding="utf-8"))
    with tracked(config.logger, "eval", run.path.name, config.study, run.path, described(trained)) as tracker:
        if tracker is None:
            return
        values: dict[str, Any] = {}
        for scored in scores:
            name = f"{scored.label}/{scored.method}"
            table = accuracies(scored.rows, config.ties)
            tracker.table(f"accuracies/{name}", table)
            for row in table[table["level"] != "paradigm"].itertuples():
                values[f"accuracy/{name}/{row.name}"] = row.accuracy
        manifest = run.read_manifest()
        if manifest.get("sample_words") or manifest.get("tokens"):  # tokens: of a model that came trained
            values["sample_words"] = manifest.get("sample_words") or manifest["tokens"]
        tracker.summarise(values | {RECORD: write_record(run, scores)})
