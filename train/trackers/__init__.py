"""Trackers: where curves, scores and slopes are sent besides the files of a run (logger=NAME), one file each."""
