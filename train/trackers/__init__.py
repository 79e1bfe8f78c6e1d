"""Trackers: where curves, scores and slopes are sent besides the files of a run (logger=NAME), one file each.

tracker.py holds the interface, the registry and the type of the configuration group `logger`.
"""
