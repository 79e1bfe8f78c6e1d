"""Compute statistics. Each one is a function that takes the long table and returns a table.

- units.py averages paradigms.
- fit.py fits slopes, and comparisons.py compares them.
- shapes.py fits curves other than lines, and estimates the words needed to match humans.
- acquisition.py estimates in which order phenomena are acquired.
- ablations.py estimates the effect of removing a construction.

All of them use the lines and intervals in lines.py.
"""
