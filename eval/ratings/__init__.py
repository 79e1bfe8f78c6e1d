"""Ratings: sentences that people judged by degrees, and how probable a model finds them.

sentences.py reads a table, scores.py has the scores that are normalised for length and frequency (SLOR, MORCELA),
measures.py compares scores with ratings. eval/kinds/ratings.py scores a run, and shows it.
"""
