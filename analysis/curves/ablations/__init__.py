"""Statistics of studies with interventions: what a construction's removal changes, and how surely.

Start at ablations.py, the tables of a study. matching.py chooses the groups to compare and pairs their runs, effects.py
estimates differences, shares.py the share of what was learned that survives, doses.py accuracy over doses.
"""
