"""Statistics, each a function from the long table to a table.

units.py averages paradigms. fit.py has slopes, comparisons.py their differences, shapes.py other shapes than lines and
the words needed to match humans, acquisition.py orders, ablations.py what removing a construction changes. All use the
lines and intervals of lines.py.
"""
