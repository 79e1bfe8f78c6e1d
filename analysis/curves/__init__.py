"""Statistics of learning curves, as functions of tables and arrays.

Start at fit.py: curves, slopes and intervals. groups.py fits the lines of a group, with intervals.py, variance.py and
designs.py behind it; comparisons.py, matched_pairs.py, mixed_models.py, shapes.py and words_to_people.py answer further
questions.
"""
