"""Compare human ratings of sentences with the sentences' probabilities under a model.

sentences.py reads a table of ratings. measures.py computes scores that are normalised for length and frequency (SLOR,
MORCELA), and compares them with ratings.
"""
