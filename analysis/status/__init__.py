"""The command `python -m analysis.status`: progress, failures, time left and disk of a study, and removal of its runs.

states.py reads the state of each run, report.py tabulates them, removal.py deletes.
"""
