"""Ratings: sentences that people judged by degrees, and how probable a model finds them.

sentences.py reads a table, files.py has the schema of the score file, scores.py the scores that are normalised for
length and frequency (SLOR, MORCELA), run.py scores a run, measures.py compares scores with ratings; table.py shows it.
"""
