"""Remove a construction from samples, keep only sentences with it, rewrite it, or remove other text as a control.

Start at intervention.py. It turns the matches of a filter (corpora/constructions/) into lists of sentences that samples
skip or rewrite. control.py draws the matched control, and rewriting.py rewrites sentences.
"""
