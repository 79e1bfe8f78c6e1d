"""Send curves, scores and slopes to experiment trackers (logger=NAME), in addition to a run's own files.

tracker.py contains the interface, the registry and the type of the configuration group `logger`. Each of the other
files defines one tracker.
"""
