"""The command `python -m analysis.status`: progress, failures, time left and disk of a study, and removal of runs."""
