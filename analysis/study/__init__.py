"""The long table of a study, from its run folders (run_folders.py) and score files (score_files.py): long_table.py."""

from analysis.study.long_table import accuracies, notes, pairs, problems, runs, trajectories

__all__ = ["accuracies", "notes", "pairs", "problems", "runs", "trajectories"]
