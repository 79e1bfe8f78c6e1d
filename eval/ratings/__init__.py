"""Ratings: sentences that people judged by degrees, and how probable a model finds them.

sentences.py reads a table. measures.py has the scores that are normalised for length and frequency (SLOR, MORCELA), and
compares them with ratings.
"""
