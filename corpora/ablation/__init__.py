"""Ablations: samples without a construction, with nothing else, with its alternate, or with as much other text removed.

intervention.py is the entrance: from the matches of a filter to the sentences that samples skip and rewrite, and their
listing. regex.py searches for a regular expression (corpora/constructions/ searches trees), control.py draws the
matched control, and rewriting.py rewrites sentences. config.py has the section `ablate` and the filter by regular
expression. shuffling.py puts the words of a sample in random order.
"""
