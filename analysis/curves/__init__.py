"""Statistics of learning curves, as functions of tables and arrays.

Start at fit.py: curves, slopes and intervals. groups.py fits the lines of a group: designs.py weighs runs and sizes,
variance.py has variances and degrees of freedom, intervals.py limits; coverage.py reads how often they held in
simulated studies. The others answer further questions.
"""
