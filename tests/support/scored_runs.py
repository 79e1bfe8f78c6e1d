"""Changes to the score files of simulated runs, for tests of the analysis."""

from eval.scores.files import read_scores, score_path, write_scores
from train.runs.folder import RunFolder


def run_folders(runs, study="simulated"):
    """Return the run folders of a study, by name."""
    return [RunFolder(path) for path in sorted((runs / study).iterdir())]


def rescore(folder, change=lambda rows: rows, name=None, **metadata):
    """Change the lp scores of a run on blimp by the function `change` of its rows, and their metadata.

    Scores of another method (`method`), or with another name of the file, are written beside them.
    """
    scores = folder.scores("blimp")
    rows, about = read_scores(score_path(scores, "lp"))
    about |= metadata
    write_scores(scores / f"{name or about['method']}.parquet", change(rows), about)
