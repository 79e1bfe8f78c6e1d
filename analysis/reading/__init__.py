"""Predict reading times from surprisal. files.py reads the times, and times.py fits the regressions."""
