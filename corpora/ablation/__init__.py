"""Ablations: samples without a construction, with nothing else, with its alternate, or with as much other text removed.

intervention.py is the entrance: from the matches of a filter (corpora/constructions/) to the sentences that samples
skip and rewrite, and their listing. control.py draws the matched control, and rewriting.py rewrites sentences.
"""
