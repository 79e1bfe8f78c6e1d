"""Benchmarks of items: diagnostics (cloze.py), test suites (suites.py), rated sentences (ratings.py).

Each of these describes its benchmark: the measures of each run, and what to say about them. parts.py reads the answers
of runs, and results.py turns any description into a part of the report.
"""
