"""Statistics: each is a function from the long table to a table.

- units.py averages paradigms.
- fit.py fits slopes, and comparisons.py compares them.
- shapes.py fits other shapes than lines, and estimates the words needed to match humans.
- acquisition.py estimates in which order phenomena are acquired.
- ablations.py estimates what removing a construction changes.

All of them use the lines and intervals of lines.py.
"""
