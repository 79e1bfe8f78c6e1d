"""Read the accuracies of a run at its snapshots. No model is needed."""

from eval.scores.accuracy import accuracies
from eval.scores.files import pair_scores, read_metadata, score_path
from train.runs.folder import RunFolder


def snapshot_point(run: RunFolder, step: int, ties: str | None = None) -> dict[str, float]:
    """Return the accuracies at the snapshot after `step` steps, as a point of a tracker, or {} if it has no scores.

    The keys are words_seen and snapshots/<benchmark>/<method>/<phenomenon or "overall">. Raises RunError if a score
    file is damaged.
    """
    point: dict[str, float] = {}
    for folder in sorted(run.scores("").glob("*")):
        for method, scores in pair_scores(folder, step):
            table = accuracies(scores, ties)
            rows = table[table["level"] != "paradigm"]
            names = f"snapshots/{folder.name}/{method}/" + rows["name"]
            point["words_seen"] = read_metadata(score_path(folder, method, step))["words_seen"]
            point |= dict(zip(names, rows["accuracy"], strict=True))
    return point
