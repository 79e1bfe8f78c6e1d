"""Benchmarks of items: diagnostics (cloze.py), test suites (suites.py), rated sentences (ratings.py), and people.

answers.py reads the answers of runs and has what the three share; people.py reads answers to questionnaires.
"""
