"""Statistics of learning curves, as functions of tables and arrays.

Start at fit.py: curves, slopes and intervals. groups.py fits the lines of a group: designs.py weighs runs and sizes,
variance.py has variances and their degrees of freedom, intervals.py chooses an interval and gives its limits.
acquisition/ has the order in which units are acquired and the shapes of curves, for which two_lines.py has breaks.
comparisons.py, matched_pairs.py, mixed_models.py, shapes.py and words_to_people.py answer further questions;
robustness/ asks what curves rest on; coverage.py reads how often the intervals held in simulated studies.
"""
