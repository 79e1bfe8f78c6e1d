"""Read the accuracies of a run at its snapshots. No model is needed."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from eval.scores.accuracy import accuracies
from eval.scores.files import pair_scores, read_metadata, score_path
from train.runs.folder import RunFolder


def snapshot_accuracies(
    run: RunFolder, step: int, ties: str | None = None
) -> Iterator[tuple[str, str, int, pd.DataFrame]]:
    """Yield the benchmark, method, words seen and `accuracies` of the snapshot at `step`, for each of its scores.

    Raises RunError if a file is damaged.
    """
    for folder in sorted(run.scores("").glob("*")):
        for method, scores in pair_scores(folder, step):
            about: dict[str, Any] = read_metadata(score_path(folder, method, step))
            yield folder.name, method, about["words_seen"], accuracies(scores, ties)
