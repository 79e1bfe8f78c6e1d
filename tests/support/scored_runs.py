"""Change the score files of simulated runs, for tests of the analysis."""

from eval.scores.files import read_scores, score_path, write_scores
from train.runs.folder import RunFolder


def run_folders(runs, study="simulated"):
    """Return the run folders of a study, by name."""
    return [RunFolder(path) for path in sorted((runs / study).iterdir())]


def rescore(folder, change=lambda rows: rows, name=None, **metadata):
    """Apply `change` to the rows of a run's lp scores on blimp, and change their metadata.

    With another `method` or file `name`, the scores are written to another file in the same folder.
    """
    scores = folder.scores("blimp")
    rows, about = read_scores(score_path(scores, "lp"))
    about |= metadata
    write_scores(scores / f"{name or about['method']}.parquet", change(rows), about)
