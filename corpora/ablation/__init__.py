"""Ablations: samples without a construction, with nothing else, with its alternate, or with as much other text removed.

intervention.py is the entrance: from the matches of a filter to the sentences that samples skip and rewrite. control.py
finds the matched control, by frequencies.py among others; rewriting.py and its lexicon.py rewrite sentences; listing.py
lists them all. config.py has the section `ablate`. shuffling.py puts the words of a sample in random order.
"""
