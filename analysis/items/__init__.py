"""Benchmarks of items: diagnostics (cloze.py), test suites (suites.py), rated sentences (ratings.py).

answers.py reads the answers of runs and has what the three share.
"""
